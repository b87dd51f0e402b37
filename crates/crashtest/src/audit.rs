//! Syncs that no check needs, the flushes of a drive or those of files: each is left out once.

use serde::{Deserialize, Serialize};

use crate::cut::Flushes;
use crate::error::CrashError;
use crate::explore::{Explore, explore_history};
use crate::history::{History, Sync};
use crate::runner::Runner;
use crate::search::Search;
use crate::state::State;
use crate::summary::{RunVerdict, Summary};
use crate::verdict::Outcome;

/// A flush that was answered and not done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditedFlush {
    /// Which, from 0.
    pub number: usize,
    /// When it was answered, by the drive's clock.
    pub time_ns: u64,
    /// The call, in words.
    #[serde(default)]
    pub call: String,
    /// Lines that had been acknowledged when the power failed.
    pub acks: usize,
    /// States that were tried.
    pub states: usize,
    /// The first of them that broke: the flush is needed.
    pub noticed: Option<(State, Outcome)>,
}

/// States that are tried of the recording as it is.
const AS_IT_IS: usize = 100;

/// The use of each flush.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Audit {
    /// The recording as it is, with all flushes.
    pub as_it_is: Summary,
    /// Each flush left out; none if the recording as it is does not hold: what breaks then says nothing of a flush.
    pub flushes: Vec<AuditedFlush>,
}

/// Tries the recording as it is. If that holds, leaves out one sync after the other, and cuts the power at the moments that the
/// loss may last to ([`History::moments_after`]). Of each sync at most `states` states are tried, and none after the first
/// that breaks.
///
/// # Errors
/// If a state cannot be tried.
pub fn audit(
    runner: &mut dyn Runner,
    history: &dyn History,
    states: usize,
    seed: u64,
) -> Result<Audit, CrashError> {
    let options = Explore::adversarial(seed, AS_IT_IS);
    let as_it_is = explore_history(runner, history, &options, &mut |_| {})?;
    if matches!(as_it_is.verdict, RunVerdict::Broken | RunVerdict::CheckFails) {
        return Ok(Audit { as_it_is, flushes: Vec::new() });
    }
    let flushes = each_left_out(runner, history, states, seed)?;
    Ok(Audit { as_it_is, flushes })
}

fn each_left_out(
    runner: &mut dyn Runner,
    history: &dyn History,
    states: usize,
    seed: u64,
) -> Result<Vec<AuditedFlush>, CrashError> {
    let mut audited = Vec::new();
    // A flush that never ended promised nothing, and is no sync of the history.
    for Sync { number, ended, time_ns, call } in history.syncs() {
        let moments = history.moments_after(ended);
        let Some(&next) = moments.first() else { continue };
        let cuts = history.cuts(Flushes::Without(number), &|at| moments.binary_search(&at).is_ok());
        let mut search = Search::new(history, &cuts, seed).take(states);
        let acks = history.acks_before(next);
        let mut flush = AuditedFlush { number, time_ns, call, acks, states: 0, noticed: None };
        runner.run(&mut || search.next(), &mut |_, state, outcome| {
            flush.states += 1;
            if outcome.verdict.is_broken() && flush.noticed.is_none() {
                flush.noticed = Some((state, outcome));
            }
            flush.noticed.is_none()
        })?;
        audited.push(flush);
    }
    Ok(audited)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use leyden_oracle::{Op, Request};
    use leyden_sim::{Span, Time};

    use super::*;
    use crate::runner::in_turn;
    use crate::state::Image;
    use crate::timeline::Timeline;

    /// Software that reads its state from sector 0: it wants as much there as it has promised.
    struct Counter(Arc<Timeline>);

    impl Counter {
        fn outcome(&self, state: &State, acks: usize) -> Outcome {
            let found = usize::from(Image::new(&self.0, state).atom(0)[0]);
            Outcome::of(if found < acks { Err(format!("{found} of {acks}")) } else { Ok(()) })
        }
    }

    impl Runner for Counter {
        fn run(
            &mut self,
            next: &mut dyn FnMut() -> Option<State>,
            done: &mut dyn FnMut(usize, State, Outcome) -> bool,
        ) -> Result<(), CrashError> {
            in_turn(next, done, |state| self.outcome(state, self.0.acks_before(state.at)));
            Ok(())
        }

        fn run_promised(&mut self, state: &State, acks: usize) -> Result<Outcome, CrashError> {
            Ok(self.outcome(state, acks))
        }
    }

    /// Step after step: `w` counts in sector 0, `o` writes elsewhere, `f` flushes, `x` is a flush that fails, `a` promises.
    fn recorded(steps: &str) -> Arc<Timeline> {
        let mut timeline = Timeline::new(4_096, 512);
        let (mut now, mut count) = (Time::ZERO, 0);
        for step in steps.chars() {
            now += Span::from_us(1);
            let (op, lba) = match step {
                'w' => (Op::Write, 0),
                'o' => (Op::Write, 5),
                'a' => {
                    timeline.mark(now, "ack\n");
                    continue;
                }
                _ => (Op::Flush, 0),
            };
            count += u8::from(step == 'w');
            let sectors = u32::from(op == Op::Write);
            let request = Request { op, lba, sectors, fua: false, plp: false };
            let data = if op == Op::Write { vec![count; 512] } else { Vec::new() };
            let command = timeline.submit(now, request, &data);
            now += Span::from_us(1);
            timeline.end(now, command, step != 'x');
        }
        Arc::new(timeline)
    }

    fn audited(steps: &str) -> Audit {
        let timeline = recorded(steps);
        audit(&mut Counter(Arc::clone(&timeline)), &*timeline, 50, 1).unwrap()
    }

    /// Numbers of the flushes that were left out, and whether that was noticed.
    fn noticed(steps: &str) -> Vec<(usize, bool)> {
        let flushes = audited(steps).flushes.into_iter();
        flushes.map(|flush| (flush.number, flush.noticed.is_some())).collect()
    }

    #[test]
    fn an_audit_notices_each_flush_that_a_promise_needs_and_no_other() {
        assert_eq!(noticed("wfaofwfa"), [(0, true), (1, false), (2, true)]);
        // Before anything is promised, and a second one at once.
        assert_eq!(noticed("ofwffa"), [(0, false), (1, false), (2, false)]);
        // One that failed promised nothing, and has its number all the same.
        assert_eq!(noticed("wfawxwfa"), [(0, true), (2, true)]);
        // A later flush makes up for it before the next promise.
        assert_eq!(noticed("wfwfaa"), [(0, false), (1, true)]);
    }

    #[test]
    fn an_audit_of_what_breaks_as_it_is_says_nothing_of_flushes() {
        let broken = audited("wfawaofw");
        assert_eq!(broken.as_it_is.verdict, RunVerdict::Broken);
        assert!(broken.flushes.is_empty());
    }

    #[test]
    fn an_audit_tells_what_it_tried_of_a_flush() {
        let flushes = audited("wfaofwfa").flushes;
        assert_eq!(flushes.iter().map(|flush| flush.acks).collect::<Vec<_>>(), [1, 1, 2]);
        let (state, outcome) = flushes[0].noticed.clone().unwrap();
        assert!(outcome.verdict.is_broken() && state.lost.contains(&(0, None)), "{state:?}");
        // None after the first that breaks; of what is not noticed, both states of the next moment.
        assert!(flushes[1].states >= 2 && flushes[0].states <= 2, "{flushes:?}");
    }
}
