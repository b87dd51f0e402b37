//! What an exploration comes to: findings, and verdicts by model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::realistic::Power;
use crate::state::State;
use crate::verdict::Verdict;

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
    /// States among them whose outcome was known without a try: what was read in an earlier state is the same in them.
    /// Depends on the order in which tries end; the outcomes do not.
    #[serde(default)]
    pub inferred: u64,
    /// One of these that was tried all the same came out otherwise: outcomes depend on more than what the drive holds.
    #[serde(default)]
    pub is_refuted: bool,
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
