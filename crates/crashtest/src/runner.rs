//! Runners, which try states: processes that mount them, or software in memory.

use crate::error::CrashError;
use crate::state::State;
use crate::verdict::Outcome;

/// Tries states, and reports in the order in which they end.
pub trait Runner {
    /// Tries what `next` yields until that is nothing, and tells `done`. `done` says whether to go on.
    ///
    /// # Errors
    /// If a state cannot be tried at all.
    fn run(
        &mut self,
        next: &mut dyn FnMut() -> Option<State>,
        done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    ) -> Result<(), CrashError>;

    /// Tries one state, whatever is known of it.
    ///
    /// # Errors
    /// As [`Runner::run`].
    fn run_one(&mut self, state: &State) -> Result<Outcome, CrashError> {
        run_one(self, state)
    }

    /// Tries one state in which only the first `acks` promises had been made.
    ///
    /// # Errors
    /// As [`Runner::run`].
    fn run_promised(&mut self, state: &State, acks: usize) -> Result<Outcome, CrashError>;

    /// How many outcomes were known without a try, and whether one that was tried all the same came out otherwise.
    fn guessed(&self) -> (u64, bool) {
        (0, false)
    }
}

pub(crate) fn run_one<R: Runner + ?Sized>(
    runner: &mut R,
    state: &State,
) -> Result<Outcome, CrashError> {
    let mut states = Some(state.clone());
    let mut found = None;
    runner.run(&mut || states.take(), &mut |_, _, outcome| {
        found = Some(outcome);
        true
    })?;
    found.ok_or(CrashError::Interrupted)
}

/// Tries states in this process, one after the other, until `next` has none or `done` wants no more.
pub(crate) fn in_turn(
    next: &mut dyn FnMut() -> Option<State>,
    done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    mut attempt: impl FnMut(&State) -> Outcome,
) {
    let mut number = 0;
    while let Some(state) = next() {
        let outcome = attempt(&state);
        if !done(number, state, outcome) {
            break;
        }
        number += 1;
    }
}
