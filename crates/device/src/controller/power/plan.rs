//! The dump: what goes to flash when the power fails, in which order, as far as the energy reaches.

use leyden_nand::{DieId, Interrupted, Kind};
use leyden_power::{Budget, DieLoad, Dump, Program, Step};
use leyden_sim::{Bytes, ConfigError, Energy, Span, Time};

use super::outcome::{CutCost, CutLoss};
use super::state::PowerState;
use super::supply::PowerSupply;
use crate::Payload;
use crate::controller::Controller;
use crate::controller::namespace::{Namespace, ToDump};

/// A dump plan.
#[derive(Debug)]
pub(super) struct Plan<I> {
    pub(super) to_dump: ToDump<I>,
    /// Programs in the order they begin.
    pub(super) programs: Vec<Program>,
    /// Items that are not programmed, because the budget is spent or there is no room.
    pub(super) left: Vec<u32>,
    /// The operations in flight, and whether each still ends.
    pub(super) interrupted: Vec<(Interrupted, bool)>,
    pub(super) budget: Budget,
}

impl<I> Plan<I> {
    /// The items that are not programmed.
    pub(super) fn items_left(&self) -> impl Iterator<Item = &I> {
        self.left.iter().map(|&item| &self.to_dump.items[item as usize])
    }
}

impl<P: Payload, N: Namespace<P>> Controller<P, N> {
    /// Too many blocks are bad from the factory if a die has fewer than it is to keep back for dumps.
    pub(crate) fn check_dump_room(&self) -> Result<(), ConfigError> {
        let Some(supply) = &self.power else { return Ok(()) };
        let kept = 2 * supply.blocks_per_dump();
        let mut dies = (0..self.geometry().dies()).map(DieId);
        let Some(die) = dies.find(|&die| self.namespace.dump_blocks(die) < kept) else {
            return Ok(());
        };
        let problem = format!(
            "of the blocks of die {}, {} are good, and {kept} are kept back for dumps",
            die.0,
            self.namespace.dump_blocks(die),
        );
        Err(ConfigError::new("nand.faults.factory_bad_blocks", problem))
    }

    /// The cost of a cut at this moment, if the energy reached. Changes nothing.
    ///
    /// `None` for a drive without `[device.power]`, or one that has no power or recovers.
    pub fn cut_cost(&self) -> Option<CutCost> {
        (N::ops().cut_cost)(self)
    }

    pub(in crate::controller) fn cost_of_cut(&self) -> Option<CutCost> {
        let supply = self.power.as_ref()?;
        if self.power_state != PowerState::On {
            return None;
        }
        let endless = Budget::new(Energy::from_pj(u64::MAX), supply.config.base_power);
        Some(self.cost_of(supply, &self.plan_dump(supply, self.now, endless)))
    }

    /// The loss of a cut at this moment if the bank held `energy`. Changes nothing.
    ///
    /// `None` as for [`Controller::cut_cost`].
    pub fn cut_loss(&self, energy: Energy) -> Option<CutLoss> {
        (N::ops().cut_loss)(self, energy)
    }

    pub(in crate::controller) fn loss_of_cut(&self, energy: Energy) -> Option<CutLoss> {
        let supply = self.power.as_ref()?;
        if self.power_state != PowerState::On {
            return None;
        }
        let plan = self.plan_dump(supply, self.now, Budget::new(energy, supply.config.base_power));
        let mut loss = CutLoss::default();
        for item in plan.items_left() {
            self.namespace.add_loss(item, &mut loss);
        }
        Some(loss)
    }

    /// The bank, and what the drive needs at worst; `None` if its power is never cut.
    pub fn power_supply(&self) -> Option<leyden_power::Supply> {
        self.power.as_ref().map(|supply| supply.supply)
    }

    pub(super) fn cost_of(&self, supply: &PowerSupply, plan: &Plan<N::Item>) -> CutCost {
        let energy = plan.budget.used();
        CutCost {
            promised: Bytes::new(
                plan.to_dump.promised_units * u64::from(self.geometry().unit_bytes()),
            ),
            map_pages: plan.to_dump.table_pages,
            pages: plan.programs.len() as u64,
            failed_programs: plan.programs.iter().filter(|program| program.failed).count() as u64,
            time: plan.budget.latest_end(),
            energy,
            capacitance: supply.supply.bank.capacitance_for(energy),
        }
    }

    /// Plans a dump that begins `now` with `budget`: first what is in flight goes on to its
    /// end as far as the budget reaches, then the host's data is programmed, then the mapping table,
    /// which could be found otherwise.
    pub(super) fn plan_dump(
        &self,
        supply: &PowerSupply,
        now: Time,
        mut budget: Budget,
    ) -> Plan<N::Item> {
        let geometry = *self.geometry();
        let mut free_at = vec![Span::ZERO; geometry.dies() as usize];
        let mut channels = vec![Span::ZERO; geometry.channels() as usize];
        let interrupted =
            self.settle_interrupted(supply, now, &mut budget, &mut free_at, &mut channels);
        let ended = |op: &Interrupted| interrupted.contains(&(*op, true));
        let to_dump = self.namespace.to_dump(supply, &ended);

        let loads = (0..geometry.dies()).map(|die| DieLoad {
            free_at: free_at[die as usize],
            room: self.namespace.dump_blocks(DieId(die)).min(supply.blocks_per_dump())
                * supply.pages_per_block()
                + to_dump.at_home.get(die as usize).copied().unwrap_or(0),
        });
        let mut dump = Dump::new(&supply.config.dump, supply.costs, loads, channels)
            .with_failures(supply.failures(now));
        let mut left = Vec::new();
        for (item, &home) in to_dump.homes.iter().enumerate() {
            if !dump.add(item as u32, home) {
                left.push(item as u32);
            }
        }
        let mut programs = Vec::with_capacity(to_dump.items.len());
        while let Step::Program(program) = dump.next(&mut budget) {
            programs.push(program);
        }
        left.extend(dump.left());
        Plan { to_dump, programs, left, interrupted, budget }
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
        let energy = supply.costs.program_energy;
        let reset = supply.costs.reset;
        let mut interrupted = self.namespace.on_the_way();
        interrupted.sort_by_key(|op| (op.end.unwrap_or(Time::MAX), op.die));
        let settle = |op: Interrupted| {
            let Some(end) = op.end else { return (op, false) };
            let die = &mut free_at[op.die.index()];
            if let Kind::Program(_) = op.operation.kind {
                let rest = if end > now { end.since(now) } else { Span::ZERO };
                if rest == Span::ZERO || budget.commit(rest, energy) {
                    *die = rest;
                    let channel = &mut channels[self.geometry().channel_of(op.die).index()];
                    *channel = (*channel).max(Span::from_ns(
                        rest.as_ns().saturating_sub(supply.costs.program.as_ns()),
                    ));
                    return (op, true);
                }
            }
            *die = reset;
            (op, false)
        };
        interrupted.into_iter().map(settle).collect()
    }
}
