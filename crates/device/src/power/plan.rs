//! The dump: what goes to flash when the power fails, in which order, as far as the energy reaches.

use leyden_buffer::Region;
use leyden_ftl::dump_area::DumpPage;
use leyden_ftl::map::MapPage;
use leyden_nand::{DieId, Interrupted, Kind, Lpn};
use leyden_power::{Budget, DieLoad, Dump, Program, Step};
use leyden_sim::{Bytes, Capacitance, Energy, Span, Time};

use super::PowerSupply;
use crate::{Payload, Ssd};

/// What a cut costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutCost {
    /// The host's data that the drive has promised to keep and that is not on flash.
    pub promised: Bytes,
    /// Mapping pages that flash does not hold as they are; or, if the table's changes are logged, pages
    /// of the journal that it does not hold.
    pub map_pages: u64,
    /// Pages that the dump programs.
    pub pages: u64,
    /// From the cut until the last program has ended.
    pub time: Span,
    /// What dump and controller draw until then, programs that were in flight included.
    pub energy: Energy,
    /// The capacitance that holds this energy.
    pub capacitance: Capacitance,
}

/// What a cut loses if the bank holds less than it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutLoss {
    /// The host's data that the drive has promised to keep, and that the dump does not reach.
    pub promised: Bytes,
    /// Mapping pages, or pages of their journal, that the dump does not reach: recovery scans all of
    /// flash for entries.
    pub map_pages: u64,
}

/// A page to dump.
#[derive(Clone, Debug)]
pub(super) enum Item<P> {
    /// What the rest holds; the last of its pages says so.
    Root,
    Units(Vec<(Lpn, P)>),
    Map(MapPage),
    /// A page of the mapping table's journal, by its number.
    Journal(u64),
}

/// A dump, thought through.
#[derive(Debug)]
pub(super) struct Plan<P> {
    pub(super) items: Vec<Item<P>>,
    /// Programs in the order they begin.
    pub(super) programs: Vec<Program>,
    /// Items that are not programmed, because the budget is spent or there is no room.
    pub(super) left: Vec<u32>,
    /// What was on its way, and whether it still ends.
    pub(super) interrupted: Vec<(Interrupted, bool)>,
    pub(super) budget: Budget,
    pub(super) promised_units: u64,
    pub(super) map_pages: Vec<MapPage>,
    pub(super) journal_pages: Vec<u64>,
}

impl<P: Payload> Ssd<P> {
    /// What a cut at this moment would cost, if the energy reached. Changes nothing.
    ///
    /// `None` for a drive without `[device.power]`, or one that has no power or recovers.
    pub fn cut_cost(&self) -> Option<CutCost> {
        let supply = self.power.as_ref()?;
        if self.power_state != super::PowerState::On {
            return None;
        }
        let endless = Budget::new(Energy::from_pj(u64::MAX), supply.config.base_power);
        Some(self.cost_of(supply, &self.plan_dump(supply, self.now, endless)))
    }

    /// What a cut at this moment would lose if the bank held `energy`. Changes nothing.
    ///
    /// `None` as for [`Ssd::cut_cost`].
    pub fn cut_loss(&self, energy: Energy) -> Option<CutLoss> {
        let supply = self.power.as_ref()?;
        if self.power_state != super::PowerState::On {
            return None;
        }
        let plan = self.plan_dump(supply, self.now, Budget::new(energy, supply.config.base_power));
        let mut loss = CutLoss::default();
        for &item in &plan.left {
            match &plan.items[item as usize] {
                Item::Units(units) => {
                    let bytes = units.len() as u64 * u64::from(self.geometry().unit_bytes());
                    loss.promised = Bytes::new(loss.promised.get() + bytes);
                }
                Item::Map(_) | Item::Journal(_) => loss.map_pages += 1,
                Item::Root => {}
            }
        }
        Some(loss)
    }

    /// The bank, and what the drive needs at worst; `None` if its power is never cut.
    pub fn power_supply(&self) -> Option<leyden_power::Supply> {
        self.power.as_ref().map(|supply| supply.supply)
    }

    pub(super) fn cost_of(&self, supply: &PowerSupply, plan: &Plan<P>) -> CutCost {
        let energy = plan.budget.used();
        CutCost {
            promised: Bytes::new(plan.promised_units * u64::from(self.geometry().unit_bytes())),
            map_pages: (plan.map_pages.len() + plan.journal_pages.len()) as u64,
            pages: plan.programs.len() as u64,
            time: plan.budget.latest_end(),
            energy,
            capacitance: supply.supply.bank.capacitance_for(energy),
        }
    }

    /// Thinks a dump through that begins `now` with `budget`: first what is in flight goes on to its
    /// end as far as the budget reaches, then the host's data is programmed, then the mapping table,
    /// which could be found otherwise.
    pub(super) fn plan_dump(&self, supply: &PowerSupply, now: Time, mut budget: Budget) -> Plan<P> {
        let geometry = *self.geometry();
        let mut free_at = vec![Span::ZERO; geometry.dies() as usize];
        let mut channels = vec![Span::ZERO; geometry.channels() as usize];
        let interrupted =
            self.settle_interrupted(supply, now, &mut budget, &mut free_at, &mut channels);
        let ended = |op: &Interrupted| interrupted.contains(&(*op, true));
        let map_pages = self.ftl.map_pages_to_dump(ended);
        let journal_pages = self.ftl.journal_pages_to_dump(ended);
        let (items, homes, promised_units) = self.items(supply, &map_pages, &journal_pages);

        let loads = (0..geometry.dies()).map(|die| DieLoad {
            free_at: free_at[die as usize],
            room: self.ftl.dump_blocks(DieId(die)).min(supply.blocks_per_dump)
                * supply.pages_per_block,
        });
        let mut dump = Dump::new(&supply.config.dump, supply.costs, loads, channels);
        let mut left = Vec::new();
        for (item, &home) in homes.iter().enumerate() {
            if !dump.add(item as u32, home) {
                left.push(item as u32);
            }
        }
        let mut programs = Vec::with_capacity(items.len());
        loop {
            match dump.next(&mut budget) {
                Step::Program(program) => programs.push(program),
                Step::Done => break,
                Step::Spent => {
                    left.extend(dump.left());
                    break;
                }
            }
        }
        Plan {
            items,
            programs,
            left,
            interrupted,
            budget,
            promised_units,
            map_pages,
            journal_pages,
        }
    }

    /// Programs that have begun go on to their end, first come, first served, if the budget reaches;
    /// everything else is broken off.
    fn settle_interrupted(
        &self,
        supply: &PowerSupply,
        now: Time,
        budget: &mut Budget,
        free_at: &mut [Span],
        channels: &mut [Span],
    ) -> Vec<(Interrupted, bool)> {
        let mut interrupted = self.ftl.on_the_way();
        interrupted.sort_by_key(|op| (op.end.unwrap_or(Time::MAX), op.die));
        let settle = |op: Interrupted| {
            let Some(end) = op.end else { return (op, false) };
            let die = &mut free_at[op.die.index()];
            if let Kind::Program(_) = op.operation.kind {
                let rest = if end > now { end.since(now) } else { Span::ZERO };
                if rest == Span::ZERO || budget.commit(rest, supply.costs.program_energy) {
                    *die = rest;
                    let channel = &mut channels[self.geometry().channel_of(op.die).index()];
                    *channel = (*channel).max(Span::from_ns(
                        rest.as_ns().saturating_sub(supply.costs.program.as_ns()),
                    ));
                    return (op, true);
                }
            }
            *die = supply.costs.reset;
            (op, false)
        };
        interrupted.into_iter().map(settle).collect()
    }

    /// What is to be dumped, most important first, each with the die that its address names; and how
    /// many units of it are the host's.
    fn items(
        &self,
        supply: &PowerSupply,
        map_pages: &[MapPage],
        journal_pages: &[u64],
    ) -> (Vec<Item<P>>, Vec<DieId>, u64) {
        let dies = self.geometry().dies();
        let mut items = vec![Item::Root; supply.root_pages as usize];
        let mut homes = vec![DieId(0); items.len()];
        let units = match self.region {
            Region::Full => self.writer.buffer.newest(),
            Region::None => Vec::new(),
        };
        let promised = units.len() as u64;
        let per_page = self.geometry().units_per_page() as usize;
        let mut by_home =
            vec![Vec::new(); if supply.config.dump.is_in_place() { dies } else { 1 } as usize];
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
        for &page in map_pages {
            items.push(Item::Map(page));
            homes.push(self.ftl.die_of_map_page(page));
        }
        for &number in journal_pages {
            items.push(Item::Journal(number));
            homes.push(DieId((number % u64::from(dies)) as u32));
        }
        (items, homes, promised)
    }

    /// The page that flash holds for `item`; `roots` are the root's pages that are not written yet.
    pub(super) fn dump_page(
        &self,
        item: &Item<P>,
        roots: &mut impl Iterator<Item = DumpPage<P>>,
    ) -> DumpPage<P> {
        match item {
            Item::Root => roots.next().expect("a page for each root item"),
            Item::Units(units) => DumpPage::Units(units.clone()),
            Item::Map(page) => self.ftl.map_page_to_dump(*page),
            Item::Journal(number) => self.ftl.journal_page_to_dump(*number),
        }
    }
}
