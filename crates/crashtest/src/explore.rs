//! Trying states model by model, and putting together what came out.

use std::collections::BTreeMap;
use std::time::Duration;

use leyden_image::recording::Recording;
use leyden_sim::Capacitance;
use serde::{Deserialize, Serialize};

use crate::choose::spread;
use crate::contract::{Flushes, cuts, cuts_at, moments};
use crate::error::CrashError;
use crate::pool::Runner;
use crate::realistic::{self, Power};
use crate::search::{Search, Seen};
use crate::state::State;
use crate::timeline::Timeline;
use crate::trials::Trials;
use crate::verdict::Verdict;

/// Moments at which a drive that lies is cut, and states that the positive control tries.
const LIES: usize = 8;
/// Cuts of the recorded drive, unless the limits say otherwise.
const CUTS_MOST: usize = 20_000;

/// Where states come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Whatever a volatile cache may lose.
    Adversarial,
    /// What the recorded drive loses.
    Realistic,
    /// What a drive may lose that ignores flushes.
    Lying,
}

impl Model {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adversarial => "adversarial",
            Self::Realistic => "realistic",
            Self::Lying => "lying",
        }
    }
}

/// When to stop, for each model.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// After this time.
    pub budget: Duration,
    /// After so many states.
    pub states: usize,
}

/// What is explored, and how.
#[derive(Clone, Debug)]
pub struct Explore {
    /// The models, one after the other.
    pub models: Vec<Model>,
    /// What random choices come from.
    pub seed: u64,
    /// When to stop.
    pub limits: Limits,
    /// Another bank of capacitors for the model `realistic`.
    pub bank: Option<Capacitance>,
    /// Cuts of the model `realistic` are spread evenly over the time of the run, and not aimed.
    pub even: bool,
}

/// States that broke in the same way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// How.
    pub verdict: Verdict,
    /// The first line that was said, numbers left out.
    pub cause: String,
    /// How many states.
    pub count: usize,
    /// The number of the first of them, from 1.
    pub first: usize,
    /// The first of them.
    pub state: State,
    /// What was said of it.
    pub said: String,
    /// Tried again, it has another verdict.
    pub is_flaky: bool,
    /// Of the model `realistic`: what the drive did when its power failed.
    #[serde(default)]
    pub power: Option<Power>,
}

/// What became of the states of one moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// The power failed when the events before this one had happened.
    pub at: usize,
    /// States in which everything held; those that the check has no opinion of are left out.
    pub held: usize,
    /// States in which something acknowledged was lost.
    pub lost: usize,
    /// States that broke in another way.
    pub broken: usize,
}

/// What a model came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModelSummary {
    /// The model.
    pub model: Model,
    /// Moments at which the power may fail.
    pub moments: usize,
    /// States that were tried, all different.
    pub states: usize,
    /// States that were like an earlier one, and not tried.
    pub repeats: u64,
    /// States by verdict.
    pub verdicts: BTreeMap<Verdict, usize>,
    /// The same by moment, in the order of time.
    #[serde(default)]
    pub tallies: Vec<Tally>,
    /// Everything that broke, by cause; most states first.
    pub findings: Vec<Finding>,
    /// Of the model `realistic`: cuts whose states were tried, and those of them that broke something. Several
    /// cuts may leave the same state.
    pub cuts: Option<(usize, usize)>,
    /// No new state was left to try; otherwise a limit ended it.
    pub is_exhausted: bool,
    /// How long that took, in seconds of the wall's time.
    pub seconds: f64,
}

impl ModelSummary {
    /// States that broke.
    pub fn broken(&self) -> usize {
        self.verdicts
            .iter()
            .filter(|(verdict, _)| verdict.is_broken())
            .map(|(_, count)| count)
            .sum()
    }
}

/// What an exploration came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Events of the recording that flushed.
    pub flushes: usize,
    /// Lines that were acknowledged.
    pub acks: usize,
    /// What random choices came from.
    pub seed: u64,
    /// Bytes that are kept or lost as a whole.
    pub atom_bytes: u32,
    /// States of a drive that ignores all flushes: a check that passes all of them sees nothing.
    pub control: ModelSummary,
    /// The models that were asked for.
    pub models: Vec<ModelSummary>,
}

impl Summary {
    /// For tests: says what broke.
    ///
    /// # Panics
    /// If something broke, or the check saw nothing wrong on a drive that ignored all flushes.
    pub fn assert_held(&self) {
        let findings = self.models.iter().flat_map(|model| &model.findings);
        let told: Vec<String> = findings
            .map(|finding| {
                let Finding { verdict, count, first, said, .. } = finding;
                format!("{} in {count} states, first in number {first}: {said}", verdict.name())
            })
            .collect();
        assert!(self.held(), "power cuts broke it:\n{}", told.join("\n"));
        assert!(self.control_works(), "the check passes on a drive that ignores all flushes");
    }

    /// True if the software survived everything; a drive that lies is not held against it.
    pub fn held(&self) -> bool {
        let mut lawful = self.models.iter().filter(|model| model.model != Model::Lying);
        lawful.all(|model| model.broken() == 0)
    }

    /// True if the check noticed that a drive ignored all flushes.
    pub fn control_works(&self) -> bool {
        self.control.broken() > 0
    }
}

/// What is told while states are tried.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The model.
    pub model: Model,
    /// States so far.
    pub states: usize,
    /// How many of them broke.
    pub broken: usize,
    /// The share of the limits that is used up.
    pub share: f64,
}

/// Who is told.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(Told);

/// Tries states of each model, the positive control first.
///
/// # Errors
/// If a state cannot be tried, or the recorded drive does something else when it is run again.
pub fn explore(
    runner: &mut dyn Runner,
    timeline: &Timeline,
    recording: Option<&Recording>,
    options: &Explore,
    progress: Progress<'_>,
) -> Result<Summary, CrashError> {
    let lies = Explore {
        models: vec![Model::Lying],
        limits: Limits { states: LIES, ..options.limits },
        ..options.clone()
    };
    let control = explore_model(runner, timeline, recording, &lies, Model::Lying, progress)?;
    let mut models = Vec::new();
    for &model in &options.models {
        models.push(explore_model(runner, timeline, recording, options, model, progress)?);
    }
    Ok(Summary {
        flushes: timeline.events().iter().filter(|(_, event)| event.is_flush()).count(),
        acks: timeline.acks().len(),
        seed: options.seed,
        atom_bytes: timeline.atom_bytes(),
        control,
        models,
    })
}

fn explore_model(
    runner: &mut dyn Runner,
    timeline: &Timeline,
    recording: Option<&Recording>,
    options: &Explore,
    model: Model,
    progress: Progress<'_>,
) -> Result<ModelSummary, CrashError> {
    let mut trials = Trials::new(model, options.limits);
    match model {
        Model::Adversarial => {
            let cuts = cuts(timeline, Flushes::All);
            let mut search = Search::new(timeline, &cuts, options.seed);
            trials.run(runner, &mut || search.next(), progress)?;
            trials.end(runner, cuts.len(), search.repeats())
        }
        Model::Lying => {
            let all = moments(timeline);
            let few: Vec<usize> =
                spread(all.len()).into_iter().take(LIES).map(|at| all[at]).collect();
            let cuts = cuts_at(timeline, Flushes::None, |at| few.contains(&at));
            let mut search = Search::new(timeline, &cuts, options.seed);
            trials.run(runner, &mut || search.next(), progress)?;
            trials.end(runner, cuts.len(), search.repeats())
        }
        Model::Realistic => {
            let Some(recording) = recording else {
                let problem = "the model `realistic` takes a recording of a drive";
                return Err(CrashError::Input(problem.to_owned()));
            };
            let most = options.limits.states.min(CUTS_MOST);
            let times = realistic::times(timeline, options.seed, most, options.even);
            let states = realistic::states(recording, timeline, &times, options.bank)?;
            let mut seen = Seen::new(timeline);
            let mut cuts_a_state: Vec<usize> = Vec::new();
            let (mut different, mut powers) = (Vec::new(), Vec::new());
            for (state, power) in states {
                let number = seen.number(&state);
                if number == cuts_a_state.len() {
                    cuts_a_state.push(0);
                    different.push(state);
                    powers.push(power);
                }
                cuts_a_state[number] += 1;
            }
            let mut different = different.into_iter();
            trials.run(runner, &mut || different.next(), progress)?;
            let cuts = trials.cuts(&cuts_a_state);
            let mut summary = trials.end(runner, times.len(), seen.repeats())?;
            for finding in &mut summary.findings {
                finding.power = Some(powers[finding.first - 1]);
            }
            Ok(ModelSummary { cuts: Some(cuts), ..summary })
        }
    }
}
