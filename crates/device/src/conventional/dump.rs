//! The data that a power cut must save of a conventional drive, and the recovery.

use leyden_buffer::{PoolKind, PoolSizes, SlotId};
use leyden_ftl::dump_area::{DumpPage, root_bytes};
use leyden_ftl::map::{MapPage, MapStore, ProtectionConfig};
use leyden_nand::{DieId, Geometry, Interrupted, Lpn};
use leyden_power::{Demand, Program};
use leyden_sim::{Bytes, ConfigError, Time};

use super::Conventional;
use crate::controller::ToDump;
use crate::controller::power::{CutLoss, PowerLoss, PowerSupply, Recovery};
use crate::{Config, Payload};

/// A page of a dump.
#[derive(Clone, Debug)]
pub enum Item<P> {
    /// The table of contents of the rest.
    Root,
    /// Units of the host's data.
    Units(Vec<(Lpn, P)>),
    /// A mapping page.
    Map(MapPage),
    /// A page of the mapping table's journal, by its number.
    Journal(u64),
}

impl<P> Item<P> {
    /// Adds this item to `loss`: it is not dumped.
    pub(super) fn add_loss(&self, unit_bytes: u32, loss: &mut CutLoss) {
        match self {
            Self::Units(units) => {
                let bytes = units.len() as u64 * u64::from(unit_bytes);
                loss.promised = Bytes::new(loss.promised.get() + bytes);
            }
            Self::Map(_) | Self::Journal(_) => loss.map_pages += 1,
            Self::Root => {}
        }
    }
}

impl<P: Payload> Conventional<P> {
    /// The host's data that was promised, then the mapping table, which could be found otherwise.
    pub(super) fn pages_to_dump(
        &self,
        supply: &PowerSupply,
        ended: &dyn Fn(&Interrupted) -> bool,
    ) -> ToDump<Item<P>> {
        let dies = self.ftl.geometry().dies();
        let mut items = vec![Item::Root; supply.root_pages() as usize];
        let mut homes = vec![DieId(0); items.len()];
        let units = self.writer.buffer.protected();
        let promised_units = units.len() as u64;
        let per_page = self.ftl.geometry().units_per_page() as usize;
        let mut by_home = vec![Vec::new(); if supply.is_in_place() { dies } else { 1 } as usize];
        let homes_count = by_home.len() as u32;
        for (lpn, content) in units {
            by_home[(lpn.0 / per_page as u32 % homes_count) as usize].push((lpn, content));
        }
        for (home, units) in by_home.iter().enumerate() {
            for page in units.chunks(per_page) {
                items.push(Item::Units(page.to_vec()));
                homes.push(DieId(home as u32));
            }
        }
        let map_pages = self.ftl.map_pages_to_dump(ended);
        let journal_pages = self.ftl.journal_pages_to_dump(ended);
        let table_pages = (map_pages.len() + journal_pages.len()) as u64;
        for page in map_pages {
            items.push(Item::Map(page));
            homes.push(self.ftl.die_of_map_page(page));
        }
        for number in journal_pages {
            items.push(Item::Journal(number));
            homes.push(DieId((number % u64::from(dies)) as u32));
        }
        ToDump { items, homes, promised_units, table_pages, at_home: Vec::new() }
    }

    /// Settles what was on its way, and dumps those of `items` that `programs` name.
    pub(super) fn write_dump(
        &mut self,
        supply: &PowerSupply,
        interrupted: &[(Interrupted, bool)],
        items: &[Item<P>],
        programs: &[Program],
    ) {
        for (op, ended) in interrupted {
            self.ftl.settle_cut(op, *ended);
            if *ended && self.writer.buffer.keeps_groups() {
                let buffer = &self.writer.buffer;
                self.ftl.map_at_cut(op, |source| buffer.is_started(SlotId(source)));
            }
        }
        let listed: Vec<MapPage> = items
            .iter()
            .filter_map(|item| if let Item::Map(page) = item { Some(*page) } else { None })
            .collect();
        self.ftl.begin_dump();
        let mut roots = self.ftl.dump_root(&listed, supply.root_pages()).into_iter();
        for program in programs {
            let at = program.page as usize;
            if program.failed {
                self.ftl.fail_dump_page(program.die, supply.pages_per_block());
                continue;
            }
            let page = match &items[at] {
                Item::Root => roots.next().expect("a page for each root item"),
                Item::Units(units) => DumpPage::Units(units.clone()),
                Item::Map(page) => self.ftl.map_page_to_dump(*page),
                Item::Journal(number) => self.ftl.journal_page_to_dump(*number),
            };
            self.ftl
                .dump_page(program.die, supply.pages_per_block(), page)
                .expect("a dump is planned within its room");
        }
    }

    /// Adds to `loss` what was lost with `item`, which was not dumped.
    pub(super) fn note_item_lost(&mut self, item: &Item<P>, loss: &mut PowerLoss) {
        let everything = (Lpn(0), Lpn(self.ftl.map().len()));
        match item {
            Item::Units(units) => {
                loss.lost.extend(units.iter().map(|&(lpn, _)| lpn));
                self.counters.lost_units += units.len() as u64;
            }
            Item::Map(page) => {
                loss.lost_map_pages += 1;
                loss.uncertain.push(self.ftl.map().lpns_of(*page));
            }
            Item::Journal(_) => {
                loss.lost_map_pages += 1;
                loss.uncertain = vec![everything];
            }
            // The missing mapping pages are then unknown.
            Item::Root => loss.uncertain = vec![everything],
        }
    }

    /// Finds the way back from what flash holds, and takes dumped data back into the buffer.
    pub(super) fn recover_from_flash(&mut self) -> Recovery {
        let recovered = self.ftl.recover();
        let per_page = u64::from(self.ftl.geometry().units_per_page());
        let recovery = Recovery {
            ready_at: Time::ZERO,
            pages_scanned: recovered.steps.iter().map(|step| step.pages).sum(),
            pages_restored: (recovered.units.len() as u64).div_ceil(per_page),
            scanned_map_pages: u64::from(recovered.scanned_map_pages),
            steps: recovered.steps,
            ..Recovery::default()
        };
        for (lpn, content) in recovered.units {
            self.writer.put_back(lpn, content);
        }
        self.writer.wake(&self.ftl);
        recovery
    }
}

/// The most that a drive with `config` may have to save; `None` if its power is never cut.
pub(crate) fn demand(
    config: &Config,
    geometry: &Geometry,
    pools: &PoolSizes,
) -> Result<Option<Demand>, ConfigError> {
    if config.power.is_none() {
        return Ok(None);
    }
    // Blocks kept back leave no more units than there are without them. If too many are asked for, that is refused where
    // those blocks are known: else the refusal would propose what is refused next.
    let units = config.ftl.units_at_most(geometry).map_err(|error| error.within("ftl"))?;
    let map_pages = units.div_ceil(config.ftl.map.entries_per_page(geometry));
    let slots = pools[PoolKind::Protected.index()].slots;
    let buffer = u64::from(slots) * u64::from(geometry.unit_bytes());
    Ok(Some(Demand {
        buffer: Bytes::new(buffer),
        mapping_pages: u64::from(protected_pages(config, geometry, map_pages)),
        journal_pages: u64::from(root_bytes(map_pages).div_ceil(geometry.page_bytes())),
        most_on_one_die: None,
    }))
}

/// Pages of the mapping table, or of its journal, that a dump may have to save.
fn protected_pages(config: &Config, geometry: &Geometry, map_pages: u32) -> u32 {
    let page_units = geometry.units_per_page();
    let writing = geometry.dies();
    match &config.ftl.map.protection {
        ProtectionConfig::Full(_) => map_pages,
        // Beside the journal in DRAM, each die may be writing a page of it.
        ProtectionConfig::Journal(journal) => {
            journal.shape(geometry, map_pages).dram_pages.saturating_add(writing)
        }
        // Beside the pages that may be dirty, each die may be writing one.
        ProtectionConfig::Partial(partial) => {
            let limit = MapStore::limit_of(partial.protected, map_pages, page_units);
            (limit + writing).min(map_pages)
        }
        ProtectionConfig::None(_) => (page_units.min(map_pages) + writing).min(map_pages),
    }
}
