//! The power fails.

use leyden_nand::{Interrupted, Lpn};
use leyden_sim::{Energy, Time};

use super::{CutCost, PowerState, PowerSupply};
use crate::Payload;
use crate::controller::{Controller, Namespace};

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

impl<P: Payload, N: Namespace<P>> Controller<P, N> {
    /// The power fails at `now`: commands in the drive vanish, what is protected is dumped as far as
    /// the energy reaches, and DRAM forgets everything. What happens at `now` itself has not happened.
    /// Until [`Controller::restore_power`], commands end with an error.
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
        self.cuts += 1;
        let (energy, pages) = (loss.cost.energy.as_pj(), loss.cost.pages);
        self.desk.digest_mut().add(now.as_ns()).add(energy).add(pages);
        self.namespace.lose_power(now, &interrupted);
        self.desk.lose_power();
        self.power_state = PowerState::Off;
        loss
    }

    /// Dumps what is protected. Also returns what was on its way, and whether it still ended.
    fn dump(&mut self, supply: &PowerSupply, now: Time) -> (PowerLoss, Vec<(Interrupted, bool)>) {
        let plan = self.plan_dump(supply, now, supply.budget());
        let mut loss = PowerLoss {
            time: now,
            cost: self.cost_of(supply, &plan),
            energy_left: plan.budget.left(),
            torn_pages: plan.interrupted.iter().filter(|(_, ended)| !ended).count() as u64,
            ..PowerLoss::default()
        };
        let (items, programs) = (&plan.to_dump.items, &plan.programs);
        self.namespace.dump(supply, &plan.interrupted, items, programs);
        for item in plan.items_left() {
            self.namespace.note_lost(item, &mut loss);
        }
        (loss, plan.interrupted)
    }
}
