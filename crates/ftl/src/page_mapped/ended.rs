//! Operations that have ended: what changes in which room, in one order.

use leyden_nand::{BlockId, Content, DieId, Kind, Lpn, Operation, Outcome, Ppa, Ppn};
use leyden_sim::Time;

use super::data::unit_of;
use super::ftl::Ftl;
use super::programs::ProgramCause;

/// The operation that ended, as far as it concerns the caller.
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
    /// The next operation to end at or before `now`, with what the caller must know of it: after
    /// [`Ftl::next_through_gate`], [`Ftl::next_outcome`] and what has [`Ftl::ended`] with that.
    #[inline]
    pub fn next_ended(&mut self, now: Time) -> Option<(Outcome, Ended)> {
        if self.has_gate_to_look_at()
            && let Some(ended) = self.next_through_gate(now)
        {
            return Some(ended);
        }
        let outcome = self.next_outcome(now)?;
        Some((outcome, self.ended(outcome)))
    }

    /// The next operation to end at or before `now`, once none has [passed the gate](Ftl::next_through_gate).
    #[inline]
    pub fn next_outcome(&mut self, now: Time) -> Option<Outcome> {
        self.medium.next_outcome(now)
    }

    /// The result of a completed operation.
    #[inline]
    pub fn ended(&mut self, outcome: Outcome) -> Ended {
        self.collector.unstick(outcome.die);
        let Operation { kind, tag, .. } = outcome.operation;
        match kind {
            Kind::HostRead(_) => Ended::HostRead(tag),
            Kind::Read(page) => {
                self.stats.reads.gc_user += 1;
                self.collector.stage_copies(page, outcome.die, &mut self.data, &self.medium);
                Ended::Internal
            }
            Kind::Program(page) => self.program_ended(outcome, page, tag),
            Kind::Erase(block) => {
                self.erase_ended(block, outcome.failed);
                Ended::Internal
            }
        }
    }

    /// True if programs wait at the gate, and may pass now.
    #[inline]
    pub fn has_gate_to_look_at(&self) -> bool {
        self.table.has_event()
    }

    /// The next program to pass the gate, with what the caller must know of it.
    pub fn next_through_gate(&mut self, now: Time) -> Option<(Outcome, Ended)> {
        let outcome =
            self.table.next_through_gate(now, &self.programs, &self.medium, &self.data)?;
        let Operation { kind: Kind::Program(page), tag, .. } = outcome.operation else {
            unreachable!("only programs wait at the gate")
        };
        self.collector.unstick(outcome.die);
        Some((outcome, self.data_program_ended(outcome, page, tag)))
    }

    #[inline]
    fn program_ended(&mut self, outcome: Outcome, page: Ppn, tag: u32) -> Ended {
        let cause = self.programs.cause(tag);
        self.count_program(cause, outcome.failed);
        match cause {
            ProgramCause::Map | ProgramCause::GcMap | ProgramCause::Journal => {
                self.table_program_ended(cause, &outcome, page);
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

    /// A program of the mapping table, or of its journal, has ended.
    #[inline(never)]
    fn table_program_ended(&mut self, cause: ProgramCause, outcome: &Outcome, page: Ppn) {
        if cause == ProgramCause::Journal {
            self.table.journal_ended(outcome, page, &mut self.programs);
            return;
        }
        let waited = self.table.page_ended(outcome, page, &mut self.programs, &self.medium);
        for die in waited {
            self.collector.unstick(die);
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
    #[inline(always)]
    fn data_program_ended(&mut self, outcome: Outcome, page: Ppn, tag: u32) -> Ended {
        let Outcome { time, die, failed, .. } = outcome;
        if self.programs.cause(tag) == ProgramCause::User {
            return Ended::UserProgram { page, tag, failed };
        }
        if failed {
            self.copies_failed(die, page, tag);
        } else {
            self.commit_copies(time, page, tag);
        }
        self.end_program(time, page, tag);
        Ended::Internal
    }

    /// The program of a page of copies has failed: its units are copied again.
    #[cold]
    #[inline(never)]
    fn copies_failed(&mut self, die: DieId, page: Ppn, tag: u32) {
        let stream = self.blocks().stream(self.geometry().block_of_page(page));
        for &from in self.programs.sources(tag) {
            self.collector.stage_again(die, stream, Ppa(from));
        }
    }

    /// A page of copies has been programmed: what is still valid has moved.
    #[inline]
    fn commit_copies(&mut self, now: Time, page: Ppn, tag: u32) {
        for unit in 0..self.programs.units(tag) {
            let from = Ppa(self.programs.source(tag, unit));
            if self.data.is_valid(from) {
                // Not overwritten meanwhile: the map still points to where it came from.
                self.commit_copy(now, page, unit, from);
            }
        }
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
    }

    /// Makes unit `unit` of `page`, whose program of the host's data has ended, the current version of
    /// `lpn`, whose data it holds.
    #[inline]
    pub fn commit(&mut self, now: Time, page: Ppn, unit: u32, lpn: Lpn) {
        let geometry = self.medium.geometry();
        let unit = unit_of(geometry, page, unit);
        debug_assert_eq!(self.medium.lpn(unit), Some(lpn), "committed what was not written");
        let emptier = self.data.commit(now, geometry, lpn, unit, &mut self.stats);
        self.collector.unstick_die_of(geometry, emptier);
        self.table.note_change(lpn, Some(unit), &self.data);
    }

    /// How many units of a program have a source: the first ones. The others are padding.
    #[inline]
    pub fn units(&self, tag: u32) -> u32 {
        self.programs.units(tag)
    }

    /// The source of unit `unit` of a program, one of those that have one ([`Ftl::units`]).
    #[inline]
    pub fn source(&self, tag: u32, unit: u32) -> u32 {
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
    #[inline(never)]
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
