//! The result of an exploration: findings, and verdicts by model.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::files::Persistence;
use crate::realistic::Power;
use crate::state::State;
use crate::verdict::{Outcome, Verdict};
use crate::why::Why;

/// Where states come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Any loss that a volatile cache allows.
    Adversarial,
    /// The losses of the recorded drive.
    Realistic,
    /// The losses of a drive that ignores flushes.
    Lying,
    /// Any loss that a volatile cache allows, and again during recovery.
    Recovery,
}

impl Model {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adversarial => "adversarial",
            Self::Realistic => "realistic",
            Self::Lying => "lying",
            Self::Recovery => "recovery",
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
    /// The check's message.
    pub said: String,
    /// Tried again, it has another verdict.
    pub is_flaky: bool,
    /// Of the model `realistic`: what the drive did when its power failed.
    #[serde(default)]
    pub power: Option<Power>,
    /// Why, if that was looked for.
    #[serde(default)]
    pub why: Option<Why>,
    /// Of calls on files: what is lost in the state, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// Verdicts on the states of one moment.
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

/// The end of the trials of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// All states that were asked for were tried.
    #[default]
    States,
    /// The time that was given was used up.
    Budget,
    /// No other state was found.
    Exhausted,
}

/// The verdict of a crash test as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// Everything held, and the check sees what a power cut takes.
    #[default]
    Held,
    /// Something broke that a lawful drive may do.
    Broken,
    /// None: the check fails where nothing is lost.
    CheckFails,
    /// None: the check passes what a drive that ignores all flushes leaves.
    CheckBlind,
    /// None: fewer states were tried than were required.
    TooFew,
}

/// The results of one model.
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
    /// Of the model `recovery`: states that second cuts have left.
    #[serde(default)]
    pub second_cuts: Option<u64>,
    /// Of the model `realistic`: cuts after which recovery had to scan all of flash, since the capacitors had not saved the
    /// mapping table. A scan finds writes that were promised to nobody, too.
    #[serde(default)]
    pub scans: Option<usize>,
    /// States that were asked for.
    #[serde(default)]
    pub asked: usize,
    /// The reason for its end.
    #[serde(default)]
    pub stop: Stop,
    /// How long that took, in seconds of the wall's time.
    pub seconds: f64,
}

impl ModelSummary {
    /// Of a model that was not tried.
    pub(crate) fn untried(model: Model) -> Self {
        Self {
            model,
            moments: 0,
            states: 0,
            repeats: 0,
            inferred: 0,
            is_refuted: false,
            verdicts: BTreeMap::new(),
            tallies: Vec::new(),
            findings: Vec::new(),
            cuts: None,
            second_cuts: None,
            scans: None,
            asked: 0,
            stop: Stop::States,
            seconds: 0.0,
        }
    }

    /// States tried, states asked for, and what ended it.
    pub fn extent(&self) -> String {
        let Self { states, asked, .. } = self;
        let second = self.second_cuts.map_or_else(String::new, |cuts| {
            format!(", cut again while they recover: {cuts} states")
        });
        let first = match self.stop {
            Stop::States => counted(*states, "state"),
            Stop::Budget => format!("stopped by --budget after {states} of {asked} states"),
            Stop::Exhausted if *states == 1 => {
                format!("1 state, and there is no other ({asked} asked for)")
            }
            Stop::Exhausted => {
                format!("{states} states, and there are no others ({asked} asked for)")
            }
        };
        first + &second
    }

    /// States that broke.
    pub fn broken(&self) -> usize {
        self.verdicts
            .iter()
            .filter(|(verdict, _)| verdict.is_broken())
            .map(|(_, count)| count)
            .sum()
    }
}

/// The results of an exploration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The verdict as a whole.
    #[serde(default)]
    pub verdict: RunVerdict,
    /// Flushes that the drive was asked for in the run.
    pub flushes: usize,
    /// Writes in the run with force unit access: each is a flush of its own.
    #[serde(default)]
    pub fua_writes: usize,
    /// Lines that were acknowledged.
    pub acks: usize,
    /// The seed of random choices.
    pub seed: u64,
    /// Bytes that are kept or lost as a whole.
    pub atom_bytes: u32,
    /// The negative control: what the check says when nothing is lost, after the file system was unmounted.
    #[serde(default)]
    pub intact: Option<Outcome>,
    /// The positive control: states of a drive that ignores all flushes. A check that passes all of them sees nothing.
    pub control: ModelSummary,
    /// The models that were asked for; none if the negative control failed.
    pub models: Vec<ModelSummary>,
    /// States that each model had to try.
    #[serde(default)]
    pub required: Option<usize>,
    /// I/O errors that the work met, as rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// The persistence rules of the files, if calls on files were recorded and no drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Persistence>,
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
                let Finding { verdict, count, first, said, lost, .. } = finding;
                let name = verdict.name();
                let mut told = format!(
                    "{name} in {}, first in number {first}: {said}",
                    counted(*count, "state")
                );
                if !lost.is_empty() {
                    let state = serde_json::to_string(&finding.state).expect("a state is JSON");
                    let lost = lost.join("\n  ");
                    let _ = write!(told, "\n  {lost}\n  again: run_state(r#\"{state}\"#)"); // no I/O
                }
                told
            })
            .collect();
        assert!(self.verdict != RunVerdict::Broken, "power cuts broke it:\n{}", told.join("\n"));
        assert_eq!(self.verdict, RunVerdict::Held, "{}", self.headline());
    }

    /// States of lawful drives that were tried, and those of them that broke.
    fn lawful(&self) -> (usize, usize) {
        let lawful = self.models.iter().filter(|model| model.model != Model::Lying);
        lawful.fold((0, 0), |(all, broken), model| (all + model.states, broken + model.broken()))
    }

    /// Whether the check passes where nothing is lost.
    pub(crate) fn is_intact(&self) -> bool {
        self.intact.as_ref().is_none_or(|it| it.verdict == Verdict::Held)
    }

    /// The verdict as a whole. Software that met I/O errors must have kept its promises where
    /// nothing else was lost. A check that fails where nothing is lost shows nothing; one that
    /// fails in a lawful state has found something, whatever the lying model found.
    pub(crate) fn judge(&self) -> RunVerdict {
        let has_few = |required| self.models.iter().any(|model| model.states < required);
        if !self.is_intact() && self.faults.is_empty() {
            RunVerdict::CheckFails
        } else if !self.is_intact() || self.lawful().1 > 0 {
            RunVerdict::Broken
        } else if self.control.broken() == 0 {
            RunVerdict::CheckBlind
        } else if self.required.is_some_and(has_few) {
            RunVerdict::TooFew
        } else {
            RunVerdict::Held
        }
    }

    /// The promises and flushes of the run, and the verdict in words.
    pub fn headline(&self) -> String {
        let fua = match self.fua_writes {
            0 => String::new(),
            writes => format!(", {}", counted(writes, "FUA write")),
        };
        let (promises, flushes) =
            (counted(self.acks, "promise"), counted(self.flushes, self.sync()));
        let faults = match self.faults.len() {
            0 => String::new(),
            _ => format!(", I/O errors ({})", self.faults.join("; ")),
        };
        format!("{promises}, {flushes}{fua}{faults}: {}", self.in_words())
    }

    /// The name of a sync in the run.
    const fn sync(&self) -> &'static str {
        if self.files.is_some() { "file sync" } else { "drive flush" }
    }

    /// The substitute that the positive control gives for a promise of the drive.
    pub const fn liar(&self) -> &'static str {
        if self.files.is_some() {
            "a disk that ignores all syncs"
        } else {
            "a drive that ignores all flushes"
        }
    }

    /// The verdict in words.
    pub fn in_words(&self) -> String {
        let (states, broken) = self.lawful();
        let of = |verdict| {
            self.models
                .iter()
                .filter(|model| model.model != Model::Lying)
                .map(move |model| model.verdicts.get(&verdict).copied().unwrap_or(0))
                .sum::<usize>()
        };
        match self.verdict {
            RunVerdict::Held => format!("held in {}", counted(states, "state")),
            RunVerdict::Broken if !self.is_intact() => {
                "NOT safe from I/O errors, the check fails though no power was cut".to_owned()
            }
            RunVerdict::Broken if of(Verdict::Lost) == broken => {
                format!("NOT crash-safe, {broken} of {states} states lose acknowledged data")
            }
            RunVerdict::Broken => match of(Verdict::Lost) {
                0 => format!("NOT crash-safe, {broken} of {states} states break"),
                lost => format!(
                    "NOT crash-safe, {lost} of {states} states lose acknowledged data, {} break otherwise",
                    broken - lost
                ),
            },
            RunVerdict::CheckFails => {
                "no verdict, the check fails where nothing is lost: the check or the work is broken"
                    .to_owned()
            }
            RunVerdict::CheckBlind => {
                format!("no verdict, the check passes {}", self.liar())
            }
            RunVerdict::TooFew => format!(
                "no verdict, fewer states were tried than the {} required",
                self.required.unwrap_or_default()
            ),
        }
    }
}

/// A number of things: `1 state`, `2 states`.
fn counted(number: usize, what: &str) -> String {
    match (number, what) {
        (1, what) => format!("1 {what}"),
        (_, "drive flush") => format!("{number} drive flushes"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(model: Model, verdicts: &[(Verdict, usize)]) -> ModelSummary {
        let states = verdicts.iter().map(|(_, count)| count).sum();
        let verdicts = verdicts.iter().copied().collect();
        ModelSummary { states, verdicts, asked: 300, ..ModelSummary::untried(model) }
    }

    fn summary(intact: Verdict, lies: usize, verdicts: &[(Verdict, usize)]) -> Summary {
        let mut summary = Summary {
            files: None,
            verdict: RunVerdict::Held,
            flushes: 9,
            fua_writes: 0,
            acks: 200,
            seed: 1,
            atom_bytes: 4_096,
            intact: Some(Outcome::new(intact, "")),
            control: model(Model::Lying, &[(Verdict::Lost, lies), (Verdict::Held, 8 - lies)]),
            models: vec![model(Model::Adversarial, verdicts)],
            required: None,
            faults: Vec::new(),
        };
        summary.verdict = summary.judge();
        summary
    }

    #[test]
    fn each_control_has_a_verdict_of_its_own() {
        let held = [(Verdict::Held, 40)];
        let lost = [(Verdict::Held, 30), (Verdict::Lost, 10)];
        assert_eq!(summary(Verdict::Held, 8, &held).verdict, RunVerdict::Held);
        assert_eq!(summary(Verdict::Held, 8, &lost).verdict, RunVerdict::Broken);
        assert_eq!(summary(Verdict::Held, 0, &held).verdict, RunVerdict::CheckBlind);
        // It has seen something, if not the lies.
        assert_eq!(summary(Verdict::Held, 0, &lost).verdict, RunVerdict::Broken);
        assert_eq!(summary(Verdict::Failed, 8, &lost).verdict, RunVerdict::CheckFails);
        // No opinion of the state in which everything is there is none at all.
        assert_eq!(summary(Verdict::Skipped, 8, &held).verdict, RunVerdict::CheckFails);
        let few = Summary { required: Some(41), ..summary(Verdict::Held, 8, &held) };
        assert_eq!(few.judge(), RunVerdict::TooFew);
        let enough = Summary { required: Some(40), ..few };
        assert_eq!(enough.judge(), RunVerdict::Held);
    }

    /// After I/O errors a check that fails without a power cut has found a promise that was not kept.
    #[test]
    fn software_that_met_errors_is_judged_without_a_cut_too() {
        let held = [(Verdict::Held, 40)];
        let met = |intact| {
            let faults = vec!["flush:nth=3,times=1".to_owned()];
            Summary { faults, ..summary(intact, 8, &held) }
        };
        assert_eq!(met(Verdict::Held).judge(), RunVerdict::Held);
        let mut broken = met(Verdict::Lost);
        broken.verdict = broken.judge();
        assert_eq!(broken.verdict, RunVerdict::Broken);
        let want = "200 promises, 9 drive flushes, I/O errors (flush:nth=3,times=1): NOT safe from I/O errors";
        assert!(broken.headline().starts_with(want), "{}", broken.headline());
    }

    #[test]
    fn promises_and_flushes_come_first() {
        let lost = summary(Verdict::Held, 8, &[(Verdict::Held, 30), (Verdict::Lost, 10)]);
        let want =
            "200 promises, 9 drive flushes: NOT crash-safe, 10 of 40 states lose acknowledged data";
        assert_eq!(lost.headline(), want);
        let stopped = ModelSummary { stop: Stop::Budget, ..lost.models[0].clone() };
        assert_eq!(stopped.extent(), "stopped by --budget after 40 of 300 states");
    }
}
