//! A run of whatever kind of drive ([`Case`]), and what each kind draws.

use crate::run::twice;
use crate::shrink::{Shrunk, shrink};
use crate::subject::{Run, Subject};
use crate::zoned::ZonedOptions;
use crate::zoned_block::ZonedBlockOptions;
use crate::{Failure, Options, Outcome};

impl Subject {
    /// The case of `seed`.
    pub fn draw(self, seed: u64) -> Case {
        match self {
            Self::Conventional => Options::drawn(seed).into(),
            Self::Zoned => ZonedOptions::drawn(seed).into(),
            Self::ZonedBlock => ZonedBlockOptions::drawn(seed).into(),
        }
    }

    /// Every name that a campaign should reach.
    pub fn names(self) -> Vec<String> {
        match self {
            Self::Conventional => Options::names(),
            Self::Zoned => ZonedOptions::names(),
            Self::ZonedBlock => ZonedBlockOptions::names(),
        }
    }
}

/// A run of whatever kind of drive.
#[derive(Clone, PartialEq, Debug)]
pub enum Case {
    /// Of a conventional drive.
    Conventional(Box<Options>),
    /// Of a zoned drive.
    Zoned(Box<ZonedOptions>),
    /// Of a block device on two drives.
    ZonedBlock(Box<ZonedBlockOptions>),
}

impl From<Options> for Case {
    fn from(options: Options) -> Self {
        Self::Conventional(Box::new(options))
    }
}

impl From<ZonedOptions> for Case {
    fn from(options: ZonedOptions) -> Self {
        Self::Zoned(Box::new(options))
    }
}

impl From<ZonedBlockOptions> for Case {
    fn from(options: ZonedBlockOptions) -> Self {
        Self::ZonedBlock(Box::new(options))
    }
}

/// Evaluates an expression with the run of a case, whatever its kind.
macro_rules! each {
    ($case:expr, $run:ident => $body:expr) => {
        match $case {
            Case::Conventional($run) => $body,
            Case::Zoned($run) => $body,
            Case::ZonedBlock($run) => $body,
        }
    };
}
pub(crate) use each;

const fn subject_of<R: Run>(_: &R) -> Subject {
    R::SUBJECT
}

impl Case {
    /// The kind of its drive.
    pub fn subject(&self) -> Subject {
        each!(self, run => subject_of(run.as_ref()))
    }

    /// The seed that its commands are drawn from.
    pub fn seed(&self) -> u64 {
        each!(self, run => Run::seed(run.as_ref()))
    }

    /// Runs it once; the story of its last rounds too, if it `tells`.
    pub fn play(&self, tells: bool) -> (Outcome, Vec<String>) {
        each!(self, run => run.play(tells))
    }

    /// Runs it twice; that the two agree is part of the outcome.
    pub fn run_twice(&self) -> Outcome {
        twice(|| self.play(false).0)
    }

    /// How much there is of it, for a message.
    pub fn extent(&self) -> String {
        each!(self, run => run.extent())
    }

    /// Makes it small, in at most `most_attempts` runs, each made twice; before each, `goes_on` says whether there
    /// are to be more. `None` if it does not fail.
    pub fn shrunk(
        &self,
        most_attempts: u32,
        goes_on: impl FnMut(u32) -> bool,
    ) -> Option<ShrunkCase> {
        each!(self, run => shrunk(run.as_ref(), most_attempts, goes_on, |run| run.play(false).0))
    }
}

/// A case made small, how it fails, and the runs that this took.
pub type ShrunkCase = (Case, Failure, u32);

fn shrunk<R: Run>(
    run: &R,
    most_attempts: u32,
    mut goes_on: impl FnMut(u32) -> bool,
    mut play: impl FnMut(&R) -> Outcome,
) -> Option<ShrunkCase>
where
    Case: From<R>,
{
    let (mut attempts, mut last) = (0, None);
    let small = shrink(run, most_attempts, |run| {
        attempts += 1;
        match &last {
            // Nothing more is made smaller, and nothing is run for it.
            Some(last) if !goes_on(attempts) => Outcome { failure: None, ..Outcome::clone(last) },
            _ => last.insert(twice(|| play(run))).clone(),
        }
    });
    small.map(|Shrunk { options, failure, attempts }| (options.into(), failure, attempts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coverage, Kind, Tally};

    #[test]
    fn an_interrupted_shrinker_runs_nothing_more() {
        let outcome = |cuts| Outcome {
            tally: Tally::default(),
            coverage: Coverage::default(),
            digest: 0,
            failure: Some(Failure { kind: Kind::Lost, cuts, message: String::new() }),
        };
        let shrunk_until = |last: u32| {
            let mut played = 0;
            let play = |options: &Options| {
                played += 1;
                outcome(options.rounds.len() as u64)
            };
            let small = shrunk(&Options::drawn(7), 1_000, |attempt| attempt <= last, play).unwrap();
            (played, small)
        };
        let (played, (case, failure, _)) = shrunk_until(3);
        assert_eq!((played, failure.kind), (3, Kind::Lost), "a run that fails is made once");
        let (more, (smaller, ..)) = shrunk_until(1_000);
        assert!(more > 20 && case != smaller, "{more}");
    }

    #[test]
    fn a_case_is_what_its_subject_draws() {
        for subject in [Subject::Conventional, Subject::Zoned, Subject::ZonedBlock] {
            let case = subject.draw(7);
            assert_eq!((case.subject(), case.seed()), (subject, 7));
            each!(&case, run => assert_eq!(run.checked(), Ok(())));
            assert!(!subject.names().is_empty());
        }
    }
}
