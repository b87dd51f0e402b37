//! The power fails.

use std::collections::VecDeque;

use leyden_buffer::schedule::ScheduleConfig;
use leyden_nand::{Interrupted, Lpn};
use leyden_sim::canary::{Canary, is_planted};
use leyden_sim::{Energy, Time};

use super::plan::Item;
use super::{CutCost, PowerState};
use crate::{Payload, Ssd};

/// What a power cut has saved and lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// When.
    pub time: Time,
    /// What the dump has cost. If something was lost, this is as far as the budget reached.
    pub cost: CutCost,
    /// Energy left in the bank.
    pub energy_left: Energy,
    /// Logical pages that the drive had promised to keep, and that the budget did not reach.
    pub lost: Vec<Lpn>,
    /// Mapping pages, or pages of the mapping table's journal, that the budget did not reach. Recovery
    /// scans all of flash for their entries.
    pub lost_map_pages: u64,
    /// The logical pages whose entries were lost with those, from the first up to, not including, the
    /// second: what recovery finds of them is the newest that flash holds, which may be what was
    /// trimmed, or what an earlier recovery had given up.
    pub uncertain: Vec<(Lpn, Lpn)>,
    /// Programs that the cut has torn: their pages hold nothing.
    pub torn_pages: u64,
    /// The power failed while the drive was recovering, or could only be read: nothing had changed
    /// since the cut before.
    pub during_recovery: bool,
}

impl<P: Payload> Ssd<P> {
    /// The power fails at `now`: commands in the drive vanish, what is protected is dumped as far as
    /// the energy reaches, and DRAM forgets everything. What happens at `now` itself has not happened.
    /// Until [`Ssd::restore_power`], commands end with [`crate::Status::NotReady`].
    ///
    /// # Panics
    /// If the configuration has no `power` table, the power is off already, or time runs backwards.
    pub fn cut_power(&mut self, now: Time) -> PowerLoss {
        assert!(now >= self.now, "time ran backwards");
        assert!(self.power_state != PowerState::Off, "the power is off already");
        self.now = now;
        let supply = self.power.take().expect("a drive whose power can be cut has a power table");
        let (loss, interrupted) =
            if let PowerState::Recovering(_) | PowerState::ReadOnly = self.power_state {
                let during_recovery = true;
                (PowerLoss { time: now, during_recovery, ..PowerLoss::default() }, Vec::new())
            } else {
                self.dump(&supply, now)
            };
        self.power = Some(supply);
        self.counters.cuts += 1;
        self.digest.add(now.as_ns()).add(loss.cost.energy.as_pj()).add(loss.cost.pages);
        self.ftl.lose_power(now, &interrupted);
        if self.config.buffer.schedule != ScheduleConfig::default() {
            self.ftl.store_mut().watch();
        }
        self.writer.lose_power(&self.config.buffer, &self.ftl);
        self.requests.clear();
        self.frontend.lose_power();
        self.waiting.clear();
        self.flushes.clear();
        self.trims = VecDeque::new();
        self.power_state = PowerState::Off;
        loss
    }

    /// Dumps what is protected. Also returns what was on its way, and whether it still ended.
    fn dump(
        &mut self,
        supply: &super::PowerSupply,
        now: Time,
    ) -> (PowerLoss, Vec<(Interrupted, bool)>) {
        let plan = self.plan_dump(supply, now, supply.supply.budget(&supply.config));
        let mut loss = PowerLoss {
            time: now,
            cost: self.cost_of(supply, &plan),
            energy_left: plan.budget.left(),
            ..PowerLoss::default()
        };
        for (op, ended) in &plan.interrupted {
            self.ftl.settle_cut(op, *ended);
            loss.torn_pages += u64::from(!ended);
        }
        self.ftl.begin_dump();
        let mut roots = self.ftl.dump_root(&plan.map_pages, supply.root_pages).into_iter();
        for program in &plan.programs {
            let item = &plan.items[program.page as usize];
            let is_last = |what: fn(&Item<P>) -> bool| {
                plan.items.iter().rposition(what) == Some(program.page as usize)
            };
            if is_planted(Canary::DumpPageSkipped) && is_last(|item| matches!(item, Item::Units(_)))
                || is_planted(Canary::DumpMapPageSkipped)
                    && is_last(|item| matches!(item, Item::Map(_)))
            {
                continue;
            }
            let page = self.dump_page(item, &mut roots);
            self.ftl
                .dump_page(program.die, supply.pages_per_block, page)
                .expect("a dump is planned within its room");
        }
        for &item in &plan.left {
            match &plan.items[item as usize] {
                Item::Units(units) => loss.lost.extend(units.iter().map(|&(lpn, _)| lpn)),
                Item::Map(page) => {
                    loss.lost_map_pages += 1;
                    loss.uncertain.push(self.ftl.map().lpns_of(*page));
                }
                Item::Journal(_) => {
                    loss.lost_map_pages += 1;
                    loss.uncertain = vec![(Lpn(0), Lpn(self.mapping_units()))];
                }
                // Nobody knows then which mapping pages are missing.
                Item::Root => loss.uncertain = vec![(Lpn(0), Lpn(self.mapping_units()))],
            }
        }
        self.counters.lost_units += loss.lost.len() as u64;
        (loss, plan.interrupted)
    }
}
