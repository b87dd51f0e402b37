//! Makes a failing run of any kind of drive small: fewer rounds, fewer commands, fewer features, the first policies and
//! smaller numbers; the same kind of failure.

mod features;

use leyden_sim::Span;

use crate::subject::Run;
use crate::{Cut, Failure, Outcome, Round, Verify};

/// A run made small.
#[derive(Clone, PartialEq, Debug)]
pub struct Shrunk<R> {
    /// The run.
    pub options: R,
    /// How it fails.
    pub failure: Failure,
    /// Runs that this took.
    pub attempts: u32,
}

/// Makes `options` small; `attempt` runs options once, and at most `most_attempts` are made. `None`
/// if they do not fail.
pub fn shrink<R: Run>(
    options: &R,
    most_attempts: u32,
    mut attempt: impl FnMut(&R) -> Outcome,
) -> Option<Shrunk<R>> {
    let failure = attempt(options).failure?;
    let mut shrinking = Shrinking {
        best: Shrunk { options: options.clone(), failure, attempts: 1 },
        most_attempts,
        attempt: &mut attempt,
    };
    loop {
        let before = shrinking.best.options.clone();
        shrinking.rounds();
        shrinking.features();
        shrinking.parts_of_rounds();
        shrinking.commands();
        if shrinking.best.options == before || shrinking.is_over() {
            return Some(shrinking.best);
        }
    }
}

struct Shrinking<'a, R, F> {
    best: Shrunk<R>,
    most_attempts: u32,
    attempt: &'a mut F,
}

impl<R: Run, F: FnMut(&R) -> Outcome> Shrinking<'_, R, F> {
    const fn is_over(&self) -> bool {
        self.best.attempts >= self.most_attempts
    }

    /// Takes `change` if the run still fails in the same way; true if it does.
    fn try_change(&mut self, change: impl FnOnce(&mut R)) -> bool {
        let mut options = self.best.options.clone();
        change(&mut options);
        if options == self.best.options || self.is_over() {
            return false;
        }
        self.best.attempts += 1;
        match (self.attempt)(&options).failure {
            Some(failure) if failure.kind == self.best.failure.kind => {
                (self.best.options, self.best.failure) = (options, failure);
                true
            }
            _ => false,
        }
    }

    /// Changes the rounds.
    fn try_rounds(&mut self, change: impl FnOnce(&mut Vec<Round>)) -> bool {
        self.try_change(|options| {
            if let Some(rounds) = options.rounds_mut() {
                change(rounds);
            }
        })
    }

    fn count(&self) -> usize {
        self.best.options.rounds().len()
    }

    /// Leaves out rounds: what comes after the failure, then ever shorter stretches.
    fn rounds(&mut self) {
        let cuts = self.best.failure.cuts;
        self.try_change(|options| options.end_after(cuts));
        let mut stretch = self.count().div_ceil(2);
        while stretch > 0 {
            let mut first = 0;
            while first < self.count() {
                let end = (first + stretch).min(self.count());
                if !self.try_rounds(|rounds| drop(rounds.drain(first..end))) {
                    first = end;
                }
            }
            stretch /= 2;
        }
        // The work of a round without its cut.
        for index in 0..self.count() {
            self.try_rounds(|rounds| rounds[index].cut = Cut::Never);
        }
    }

    /// Turns off what there is to each round.
    fn parts_of_rounds(&mut self) {
        let rounds: [fn(&mut Round); 10] = [
            |round| round.again.clear(),
            |round| round.again.truncate(1),
            |round| round.early = false,
            |round| round.verify = Verify::Nothing,
            |round| round.verify = Verify::All,
            |round| round.off = Span::from_ns(1),
            |round| round.reload = false,
            |round| round.check = false,
            |round| halve(&mut round.commands),
            sooner,
        ];
        for index in 0..self.count() {
            for change in rounds {
                self.try_rounds(|rounds| change(&mut rounds[index]));
            }
        }
    }

    /// Leaves out commands: ever shorter stretches of each round.
    fn commands(&mut self) {
        for index in 0..self.count() {
            let count = self.best.options.rounds()[index].commands;
            let mut stretch = count.div_ceil(2);
            while stretch > 0 && !self.is_over() {
                let mut first = 0;
                while first < count {
                    let last = (first + stretch).min(count) - 1;
                    self.try_rounds(|rounds| {
                        let round = &mut rounds[index];
                        round.skip = with(&round.skip, (first, last));
                    });
                    first = last + 1;
                }
                stretch /= 2;
            }
        }
    }
}

fn halve(number: &mut u32) {
    *number = number.div_ceil(2);
}

/// The cut comes sooner by half.
fn sooner(round: &mut Round) {
    match &mut round.cut {
        Cut::After(span) | Cut::AfterFlush(span) | Cut::Idle(span) => {
            *span = Span::from_ns(span.as_ns() / 2);
        }
        Cut::AtEvent { events, .. } | Cut::AfterFailure { events } => *events /= 2,
        Cut::AtTablePage { pages: count }
        | Cut::AtStage { stages: count }
        | Cut::AtCopy { pages: count }
        | Cut::AfterTrims { trims: count } => *count = (*count / 2).max(1),
        Cut::Never => {}
    }
}

/// `skip` with `more`, as few stretches as possible.
fn with(skip: &[(u32, u32)], more: (u32, u32)) -> Vec<(u32, u32)> {
    let mut all = skip.to_vec();
    all.push(more);
    all.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::new();
    for (first, last) in all {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_merge() {
        assert_eq!(with(&[], (1, 2)), [(1, 2)]);
        assert_eq!(with(&[(0, 1), (8, 9)], (2, 4)), [(0, 4), (8, 9)]);
        assert_eq!(with(&[(0, 3), (5, 9)], (2, 5)), [(0, 9)]);
    }
}
