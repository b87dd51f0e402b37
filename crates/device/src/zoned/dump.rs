//! The data that a power cut must save of a zoned drive, and the recovery.

use std::collections::BTreeMap;

use leyden_ftl::dump_area::DumpPage;
use leyden_ftl::zoned::{ZoneId, ZoneState};
use leyden_nand::{DieId, Interrupted, Lpn};
use leyden_power::Program;
use leyden_sim::{Bytes, Time};

use super::Zoned;
use crate::Payload;
use crate::controller::ToDump;
use crate::controller::power::{CutLoss, PowerLoss, PowerSupply, Recovery};

/// A page of a dump.
#[derive(Clone, Debug)]
pub enum Item<P> {
    /// A part of the zone table.
    Root,
    /// Units of the host's data, with their home addresses, for the dump area.
    Units(Vec<(Lpn, P)>),
    /// The next page of a zone, on the die where it goes on.
    Home {
        /// The die.
        die: DieId,
        /// The units.
        units: Vec<(Lpn, P)>,
    },
}

impl<P> Item<P> {
    fn units(&self) -> &[(Lpn, P)] {
        match self {
            Self::Root => &[],
            Self::Units(units) | Self::Home { units, .. } => units,
        }
    }

    /// Adds this item to `loss`: it is not dumped.
    pub(super) fn add_loss(&self, unit_bytes: u32, loss: &mut CutLoss) {
        let bytes = self.units().len() as u64 * u64::from(unit_bytes);
        loss.promised = Bytes::new(loss.promised.get() + bytes);
        loss.map_pages += u64::from(matches!(self, Self::Root));
    }
}

impl<P: Payload> Zoned<P> {
    /// The zone table, then what is protected: zone by zone, in the order of each zone.
    pub(super) fn pages_to_dump(&self, supply: &PowerSupply) -> ToDump<Item<P>> {
        let mut items = vec![Item::Root; supply.root_pages() as usize];
        let mut homes = vec![DieId(0); items.len()];
        let per_page = self.ftl.geometry().units_per_page() as usize;
        let mut at_home = Vec::new();
        let mut elsewhere = Vec::new();
        let mut promised_units = 0;
        if supply.is_in_place() {
            at_home = vec![0; self.ftl.geometry().dies() as usize];
        }
        for zone in (0..self.ftl.shape().zones).map(ZoneId) {
            let units = self.promised(zone);
            promised_units += units.len() as u64;
            if !supply.is_in_place() {
                elsewhere.extend(units);
                continue;
            }
            let dies = self.ftl.next_dies(zone, units.len().div_ceil(per_page) as u32);
            let mut pages = units.chunks(per_page);
            for (&die, page) in dies.iter().zip(pages.by_ref()) {
                items.push(Item::Home { die, units: page.to_vec() });
                homes.push(die);
                at_home[die.index()] += 1;
            }
            // It has no block for the rest.
            elsewhere.extend(pages.flatten().cloned());
        }
        for zone in (0..self.ftl.shape().zones).map(ZoneId) {
            let units = self.in_zrwa(zone);
            promised_units += units.len() as u64;
            elsewhere.extend(units);
        }
        let dies = self.ftl.geometry().dies();
        for (page, units) in (0..).zip(elsewhere.chunks(per_page)) {
            items.push(Item::Units(units.to_vec()));
            homes.push(DieId(page % dies));
        }
        ToDump { items, homes, promised_units, table_pages: 0, at_home }
    }

    fn lpn(&self, zone: ZoneId, unit: u32) -> Lpn {
        Lpn(zone.0 * self.ftl.shape().size + unit)
    }

    /// The protected units of `zone` that are not on flash, in order.
    fn promised(&self, zone: ZoneId) -> Vec<(Lpn, P)> {
        let (first, units) = self.buffer.kept_units(zone.0);
        (first..).zip(units).map(|(unit, it)| (self.lpn(zone, unit), it.clone())).collect()
    }

    /// The contents of the Zone Random Write Area of `zone`.
    fn in_zrwa(&self, zone: ZoneId) -> Vec<(Lpn, P)> {
        let wp = self.ftl.zones().get(zone).wp;
        let window = self.buffer.window(zone.0);
        window.map(|(offset, it)| (self.lpn(zone, wp + offset), it.clone())).collect()
    }

    /// Counts pages in flight whose programs the cut let end as on flash, so that the zone continues behind them.
    /// Otherwise the zone would continue at the address of such a page. A reset that erases the block of the page
    /// programmed there next would show the old page again, and a scan would join it with data of after the cut.
    ///
    /// A dump in place programs protected data once more, from the first page in flight on: such a zone ends there.
    pub(super) fn settle_cut(&mut self, supply: &PowerSupply, interrupted: &[(Interrupted, bool)]) {
        for (op, _) in interrupted.iter().filter(|&&(_, ended)| ended) {
            let Some((ZoneId(zone), first)) = self.ftl.page_at_cut(op) else { continue };
            let is_dumped = self.buffer.kept(zone) > self.buffer.settled(zone);
            if !(supply.is_in_place() && is_dumped) {
                self.buffer.ended(zone, first, false);
            }
        }
    }

    /// Dumps those of `items` that `programs` name.
    pub(super) fn write_dump(
        &mut self,
        supply: &PowerSupply,
        items: &[Item<P>],
        programs: &[Program],
    ) {
        self.ftl.begin_dump();
        let root = self.ftl.dump_root(|zone| self.buffer.settled(zone.0), supply.root_pages());
        let mut roots = root.into_iter();
        let mut is_written = vec![false; items.len()];
        let mut in_order: Vec<&Program> = programs.iter().collect();
        // Pages of a zone that go on side by side are programmed in its order.
        in_order.sort_by_key(|program| program.page);
        for program in in_order {
            let at = program.page as usize;
            if program.failed {
                self.ftl.fail_dump_page(program.die, supply.pages_per_block());
                continue;
            }
            is_written[at] = match &items[at] {
                Item::Root => {
                    let root = roots.next().expect("a page for each root item");
                    self.dump_page(supply, program.die, root)
                }
                Item::Home { die, units } if *die == program.die && self.goes_on(*die, units) => {
                    self.program_home(units);
                    true
                }
                Item::Home { units, .. } | Item::Units(units) => {
                    self.dump_page(supply, program.die, DumpPage::Units(units.clone()))
                }
            };
        }
        self.lost = self.not_kept(items, &is_written);
    }

    fn dump_page(&mut self, supply: &PowerSupply, die: DieId, page: DumpPage<P>) -> bool {
        self.ftl.dump_page(die, supply.pages_per_block(), page).is_some()
    }

    /// True if the next page of the units' zone goes to `die`: it doesn't if the budget has left out pages
    /// before it.
    fn goes_on(&self, die: DieId, units: &[(Lpn, P)]) -> bool {
        let zone = self.zone_of(units[0].0.0).0;
        self.ftl.next_die(zone) == Some(die)
    }

    fn program_home(&mut self, units: &[(Lpn, P)]) {
        let (zone, first) = self.zone_of(units[0].0.0);
        self.ftl.program_home(zone, first, units.iter().map(|(_, content)| content.clone()));
    }

    /// The lost units of `items`: those not written, and those of the same zone above them.
    fn not_kept(&self, items: &[Item<P>], is_written: &[bool]) -> Vec<Lpn> {
        let mut hole: BTreeMap<ZoneId, u32> = BTreeMap::new();
        let units = |at: usize| items[at].units().iter().map(|&(lpn, _)| lpn);
        for at in (0..items.len()).filter(|&at| !is_written[at]) {
            for lpn in units(at) {
                let (zone, unit) = self.zone_of(lpn.0);
                let first = hole.entry(zone).or_insert(unit);
                *first = unit.min(*first);
            }
        }
        let mut lost: Vec<Lpn> = (0..items.len()).flat_map(units).collect();
        lost.retain(|lpn| {
            let (zone, unit) = self.zone_of(lpn.0);
            hole.get(&zone).is_some_and(|&first| unit >= first)
        });
        lost.sort_unstable();
        lost
    }

    /// Adds to `loss` what was lost with `item`, which was not dumped.
    pub(super) fn note_item_lost(&mut self, item: &Item<P>, loss: &mut PowerLoss) {
        if matches!(item, Item::Root) {
            // Recovery scans then, and finds no reset that nothing was written after.
            loss.lost_map_pages += 1;
            loss.uncertain = vec![(Lpn(0), self.lpn(ZoneId(self.ftl.shape().zones), 0))];
        }
        self.counters.lost_units += self.lost.len() as u64;
        loss.lost.append(&mut self.lost);
    }

    /// Finds the way back from what flash holds, and takes dumped data back into the buffer.
    pub(super) fn recover_from_flash(&mut self) -> Recovery {
        let recovered = self.ftl.recover();
        let shape = *self.ftl.shape();
        for zone in (0..shape.zones).map(ZoneId) {
            self.buffer.set_settled(zone.0, self.ftl.end(zone));
            if self.ftl.zones().get(zone).has_zrwa {
                self.buffer.open_window(zone.0, shape.zrwa_size);
            }
        }
        let per_page = u64::from(self.ftl.geometry().units_per_page());
        let count = recovered.units.len() as u64;
        for unit in recovered.units {
            let (zone, wp) = (unit.zone.0, self.ftl.zones().get(unit.zone).wp);
            match unit.unit.checked_sub(wp).filter(|_| self.ftl.zones().get(unit.zone).has_zrwa) {
                Some(offset) => self.buffer.write_window(zone, offset, unit.content),
                None => self.buffer.put_back(zone, unit.unit, unit.content),
            }
        }
        for zone in (0..shape.zones).map(ZoneId) {
            // The last page of a zone that takes no more writes never fills up.
            if matches!(self.ftl.zones().get(zone).state, ZoneState::Full | ZoneState::ReadOnly) {
                self.buffer.force(zone.0, self.buffer.end(zone.0));
            }
        }
        Recovery {
            ready_at: Time::ZERO,
            pages_scanned: recovered.steps.iter().map(|step| step.pages).sum(),
            pages_restored: count.div_ceil(per_page),
            scanned_map_pages: u64::from(recovered.is_scanned),
            steps: recovered.steps,
            ..Recovery::default()
        }
    }
}
