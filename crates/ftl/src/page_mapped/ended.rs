//! Operations that have ended: what changes in which room, in one order.

use leyden_nand::{BlockId, Content, Kind, Operation, Outcome, Ppa, Ppn};
use leyden_sim::Time;
use leyden_sim::canary::{Canary, is_planted};

use super::data::unit_of;
use super::ftl::Ftl;
use super::programs::ProgramCause;

/// What ended, as far as the caller is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// A host read; its tag.
    HostRead(u32),
    /// A program of user data: for each of its units the caller says what became of it
    /// ([`Ftl::commit`] or not), then calls [`Ftl::end_program`].
    UserProgram {
        /// The page.
        page: Ppn,
        /// Names its units' sources.
        tag: u32,
        /// True if it failed: none of its units is on flash.
        failed: bool,
    },
    /// Something of the FTL's own.
    Internal,
}

impl<C: Content> Ftl<C> {
    /// The next operation to end at or before `now`, with what the caller must know of it.
    #[inline]
    pub fn next_ended(&mut self, now: Time) -> Option<(Outcome, Ended)> {
        if self.table.next_event().is_some()
            && let Some(ended) = self.next_through_gate(now)
        {
            return Some(ended);
        }
        let outcome = self.medium.next_outcome(now)?;
        self.collector.unstick(outcome.die);
        let Operation { kind, tag, .. } = outcome.operation;
        let ended = match kind {
            Kind::HostRead(_) => Ended::HostRead(tag),
            Kind::Read(page) => {
                self.stats.reads.gc_user += 1;
                self.collector.stage_copies(page, outcome.die, &mut self.data, &self.medium);
                Ended::Internal
            }
            Kind::Program(page) => self.program_ended(&outcome, page, tag),
            Kind::Erase(block) => {
                self.erase_ended(block, outcome.failed);
                Ended::Internal
            }
        };
        Some((outcome, ended))
    }

    fn next_through_gate(&mut self, now: Time) -> Option<(Outcome, Ended)> {
        let outcome =
            self.table.next_through_gate(now, &self.programs, &self.medium, &self.data)?;
        let Operation { kind: Kind::Program(page), tag, .. } = outcome.operation else {
            unreachable!("only programs wait at the gate")
        };
        self.collector.unstick(outcome.die);
        Some((outcome, self.data_program_ended(&outcome, page, tag)))
    }

    #[inline]
    fn program_ended(&mut self, outcome: &Outcome, page: Ppn, tag: u32) -> Ended {
        let cause = self.programs.cause(tag);
        self.count_program(cause, outcome.failed);
        match cause {
            ProgramCause::Map | ProgramCause::GcMap => {
                let waited = self.table.page_ended(outcome, page, &mut self.programs, &self.medium);
                for die in waited {
                    self.collector.unstick(die);
                }
                Ended::Internal
            }
            ProgramCause::Journal => {
                self.table.journal_ended(outcome, page, &mut self.programs);
                Ended::Internal
            }
            ProgramCause::User | ProgramCause::Gc => {
                if outcome.failed {
                    self.data.blocks_mut().fail(self.medium.geometry().block_of_page(page));
                }
                if self.table.pass_gate(outcome, &self.programs, &self.medium, &self.data) {
                    self.data_program_ended(outcome, page, tag)
                } else {
                    Ended::Internal
                }
            }
        }
    }

    /// Counts a program that has ended.
    #[inline]
    pub(super) fn count_program(&mut self, cause: ProgramCause, failed: bool) {
        let stats = &mut self.stats;
        stats.program_failures += u64::from(failed);
        *match cause {
            ProgramCause::User => &mut stats.programs.user,
            ProgramCause::Gc => &mut stats.programs.gc_user,
            ProgramCause::Map | ProgramCause::Journal => &mut stats.programs.map,
            ProgramCause::GcMap => &mut stats.programs.gc_map,
        } += 1;
    }

    /// A program of data has ended, and may change the map.
    #[inline]
    fn data_program_ended(&mut self, outcome: &Outcome, page: Ppn, tag: u32) -> Ended {
        let failed = outcome.failed;
        if self.programs.cause(tag) == ProgramCause::User {
            return Ended::UserProgram { page, tag, failed };
        }
        self.end_copies(outcome, page, tag);
        Ended::Internal
    }

    /// A page of copies has been programmed: what is still valid has moved.
    #[inline]
    fn end_copies(&mut self, outcome: &Outcome, page: Ppn, tag: u32) {
        let now = outcome.time;
        for unit in 0..self.geometry().units_per_page() {
            let Some(from) = self.programs.source(tag, unit).map(Ppa) else {
                continue;
            };
            if outcome.failed {
                let stream = self.blocks().stream(self.geometry().block_of_page(page));
                self.collector.stage_again(outcome.die, stream, from);
            } else if self.data.is_valid(from) {
                // Not overwritten meanwhile: the map still points to where it came from.
                self.commit_copy(now, page, unit, from);
            }
        }
        self.end_program(now, page, tag);
    }

    #[inline]
    fn commit_copy(&mut self, now: Time, page: Ppn, unit: u32, from: Ppa) {
        let geometry = self.medium.geometry();
        let unit = unit_of(geometry, page, unit);
        let lpn = self.medium.lpn(unit).expect("committed a unit that was not written");
        let emptier = self.data.commit_copy(now, geometry, lpn, unit, from);
        self.collector.unstick_die_of(geometry, emptier);
        if self.table.follows_changes() {
            self.table.note_copy(lpn, unit, geometry.block_of(from), &self.data);
        }
        if is_planted(Canary::LostGcMapUpdate) {
            self.data.lose_map_update(lpn, from);
        }
    }

    /// Makes unit `unit` of `page`, whose program of the host's data has ended, the current version of
    /// its logical page.
    #[inline]
    pub fn commit(&mut self, now: Time, page: Ppn, unit: u32) {
        let geometry = self.medium.geometry();
        let unit = unit_of(geometry, page, unit);
        let lpn = self.medium.lpn(unit).expect("committed a unit that was not written");
        let emptier = self.data.commit(now, geometry, lpn, unit, &mut self.stats);
        self.collector.unstick_die_of(geometry, emptier);
        self.table.note_change(lpn, Some(unit), &self.data);
    }

    /// The source of unit `unit` of a program; `None` for padding.
    #[inline]
    pub fn source(&self, tag: u32, unit: u32) -> Option<u32> {
        self.programs.source(tag, unit)
    }

    /// Lets go of a program that has ended, once its units have been committed or not.
    #[inline]
    pub fn end_program(&mut self, now: Time, page: Ppn, tag: u32) {
        self.programs.remove(tag);
        if self.table.waits_for_programs() {
            self.table.wake_writers();
        }
        let block = self.medium.geometry().block_of_page(page);
        let is_full = self.medium.next_page(block).is_none();
        self.data.page_ended(now, block, is_full);
    }

    /// A block was erased, or not.
    pub(super) fn erase_ended(&mut self, block: BlockId, failed: bool) {
        self.stats.erases += 1;
        if failed {
            self.stats.erase_failures += 1;
            self.data.blocks_mut().retire(block);
            return;
        }
        self.data.blocks_mut().erased(block);
        if self.endurance_cycles != 0 && self.medium.erases(block) >= self.endurance_cycles {
            self.data.blocks_mut().retire(block);
            self.medium.retire(block);
        }
    }
}
