//! The trials of one model: which states were given out, what became of each, and putting that together.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::wall;
use crate::error::CrashError;
use crate::runner::Runner;
use crate::state::State;
use crate::summary::{Finding, Model, ModelSummary, Stop, Tally};
use crate::verdict::{Outcome, Verdict};

/// When to stop, for each model.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// After this time, if one is given: then what is tried depends on how fast the machine is.
    pub budget: Option<Duration>,
    /// After so many states.
    pub states: usize,
    /// With fewer states than this the run says nothing.
    pub required: Option<usize>,
}

/// Progress reports while states are tried.
#[derive(Clone, Copy, Debug)]
pub struct TrialProgress<'a> {
    /// The model.
    pub model: Model,
    /// States so far.
    pub states: usize,
    /// How many of them broke.
    pub broken: usize,
    /// The share of the limits that is used up.
    pub share: f64,
    /// The number of the state that was tried last, from 1.
    pub number: usize,
    /// Its outcome.
    pub outcome: &'a Outcome,
}

/// The function that is called with progress.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(TrialProgress<'_>);

/// The trials of one model.
pub(crate) struct Trials {
    model: Model,
    limits: Limits,
    began: std::time::Instant,
    stop: Stop,
    /// Outcomes that the runner had known before.
    known_before: u64,
    /// The result of each state, by number; none if it was not tried, or is not yet.
    tried: Vec<Option<Tried>>,
}

/// A state that was tried.
#[derive(Clone, Debug)]
struct Tried {
    /// The moment of the cut.
    at: usize,
    verdict: Verdict,
    /// The state and the outcome, if it broke.
    broken: Option<(State, Outcome)>,
}

impl Trials {
    pub(crate) fn new(model: Model, limits: Limits) -> Self {
        Self {
            model,
            limits,
            began: wall(),
            stop: Stop::States,
            known_before: 0,
            tried: Vec::new(),
        }
    }

    pub(crate) fn run(
        &mut self,
        runner: &mut dyn Runner,
        next: &mut dyn FnMut() -> Option<State>,
        progress: Progress<'_>,
    ) -> Result<(), CrashError> {
        let Self { model, limits, began, stop, known_before, tried } = self;
        *known_before = runner.guessed().0;
        let (mut given, mut broken) = (0, 0);
        let mut next = || {
            if given == limits.states {
                return None;
            }
            if limits.budget.is_some_and(|budget| began.elapsed() > budget) {
                *stop = Stop::Budget;
                return None;
            }
            let state = next();
            if state.is_none() {
                *stop = Stop::Exhausted;
            }
            given += usize::from(state.is_some());
            state
        };
        runner.run(&mut next, &mut |number, state, outcome| {
            if tried.len() <= number {
                tried.resize(number + 1, None);
            }
            let is_broken = outcome.verdict.is_broken();
            broken += usize::from(is_broken);
            let states = tried.len();
            let budget = limits.budget.unwrap_or(Duration::MAX);
            let used = began.elapsed().as_secs_f64() / budget.as_secs_f64();
            let share = used.max(states as f64 / limits.states as f64);
            let told = TrialProgress {
                model: *model,
                states,
                broken,
                share,
                number: number + 1,
                outcome: &outcome,
            };
            progress(told);
            let (at, verdict) = (state.at, outcome.verdict);
            let kept = is_broken.then_some((state, outcome));
            tried[number] = Some(Tried { at, verdict, broken: kept });
            true
        })
    }

    /// Of cuts that left these states: how many were tried, and how many broke.
    pub(crate) fn cuts(&self, cuts_a_state: &[usize]) -> (usize, usize) {
        let tried = self.tried.iter().zip(cuts_a_state);
        let tried = tried.filter_map(|(tried, cuts)| Some((tried.as_ref()?.verdict, *cuts)));
        tried.fold((0, 0), |(all, broken), (verdict, cuts)| {
            (all + cuts, broken + if verdict.is_broken() { cuts } else { 0 })
        })
    }

    pub(crate) fn end(
        self,
        runner: &mut dyn Runner,
        moments: usize,
        repeats: u64,
    ) -> Result<ModelSummary, CrashError> {
        let mut verdicts = BTreeMap::new();
        let mut groups: BTreeMap<(Verdict, String), Finding> = BTreeMap::new();
        let tried =
            (1..).zip(&self.tried).filter_map(|(number, tried)| Some((number, tried.as_ref()?)));
        for (number, Tried { verdict, broken, .. }) in tried {
            *verdicts.entry(*verdict).or_insert(0) += 1;
            let Some((state, outcome)) = broken else { continue };
            let group = groups.entry((*verdict, outcome.cause())).or_insert_with(|| Finding {
                verdict: *verdict,
                cause: outcome.cause(),
                count: 0,
                first: number,
                state: state.clone(),
                said: outcome.said.clone(),
                is_flaky: false,
                power: None,
                why: None,
                lost: Vec::new(),
            });
            group.count += 1;
        }
        let tallies = tallies(self.tried.iter().flatten());
        let (known, is_refuted) = runner.guessed();
        let inferred = known - self.known_before;
        let seconds = self.began.elapsed().as_secs_f64();
        let mut findings: Vec<Finding> = groups.into_values().collect();
        findings.sort_by_key(|finding| (std::cmp::Reverse(finding.count), finding.first));
        for finding in &mut findings {
            finding.is_flaky = runner.run_one(&finding.state)?.verdict != finding.verdict;
        }
        Ok(ModelSummary {
            model: self.model,
            moments,
            states: verdicts.values().sum(),
            repeats,
            inferred,
            is_refuted,
            verdicts,
            tallies,
            findings,
            cuts: None,
            second_cuts: None,
            scans: None,
            asked: self.limits.states,
            stop: self.stop,
            seconds,
        })
    }
}

/// The verdicts on the states of each moment, in the order of time.
fn tallies<'a>(tried: impl Iterator<Item = &'a Tried>) -> Vec<Tally> {
    let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
    for &Tried { at, verdict, .. } in tried {
        let tally = tallies.entry(at).or_insert(Tally { at, held: 0, lost: 0, broken: 0 });
        match verdict {
            Verdict::Held => tally.held += 1,
            Verdict::Skipped => {}
            Verdict::Lost => tally.lost += 1,
            _ => tally.broken += 1,
        }
    }
    tallies.into_values().collect()
}
