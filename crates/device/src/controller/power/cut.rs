//! The power fails.

use leyden_nand::Interrupted;
use leyden_sim::Time;

use super::outcome::PowerLoss;
use super::state::PowerState;
use super::supply::PowerSupply;
use crate::Payload;
use crate::controller::Controller;
use crate::controller::namespace::Namespace;

impl<P: Payload, N: Namespace<P>> Controller<P, N> {
    /// The power fails at `now`: commands in the drive vanish, what is protected is dumped as far as
    /// the energy reaches, and DRAM forgets everything. What happens at `now` itself has not happened.
    /// Until [`Controller::restore_power`], commands end with an error.
    ///
    /// A dump lasts as long as it costs ([`PowerLoss::cost`]). The energy for all of it is in the bank when it
    /// begins, so neither a return of the power in its midst nor another cut then changes what it saves.
    ///
    /// # Panics
    /// If the configuration has no `power` table, the power is off already, or time runs backwards.
    pub fn cut_power(&mut self, now: Time) -> PowerLoss {
        (N::ops().cut_power)(self, now)
    }

    pub(in crate::controller) fn lose_power(&mut self, now: Time) -> PowerLoss {
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
        self.dump_end = self.dump_end.max(now + loss.cost.time);
        self.cuts += 1;
        let (energy, pages) = (loss.cost.energy.as_pj(), loss.cost.pages);
        self.commands.digest_mut().add(now.as_ns()).add(energy).add(pages);
        self.namespace.lose_power(now, &interrupted);
        self.commands.lose_power();
        self.power_state = PowerState::Off;
        loss
    }

    /// Dumps the protected data. Also returns the operations in flight, and whether each still ended.
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
