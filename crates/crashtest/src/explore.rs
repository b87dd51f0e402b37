//! Trying states model by model, and putting together what came out.

use leyden_image::recording::Recording;
use leyden_sim::Capacitance;

use crate::choose::spread;
use crate::contract::first_unlawful;
use crate::cut::Flushes;
use crate::error::CrashError;
use crate::history::History;
use crate::realistic::{self, Power};
use crate::runner::Runner;
use crate::search::{Search, Seen};
use crate::state::State;
use crate::summary::{Model, ModelSummary, RunVerdict, Summary};
use crate::timeline::Timeline;
use crate::trials::{Limits, Progress, Trials};

/// Moments at which a drive that lies is cut, and states that the positive control tries.
const LIES: usize = 8;
/// Cuts of the recorded drive, unless the limits say otherwise.
const CUTS_MOST: usize = 20_000;

/// The history to explore, and the options.
#[derive(Clone, Debug)]
pub struct Explore {
    /// The models, one after the other.
    pub models: Vec<Model>,
    /// The seed of random choices.
    pub seed: u64,
    /// When to stop.
    pub limits: Limits,
    /// Another bank of capacitors for the model `realistic`.
    pub bank: Option<Capacitance>,
    /// Cuts of the model `realistic` are spread evenly over the time of the run, and not aimed.
    pub even: bool,
    /// I/O errors that the work met: where nothing is lost the check must pass all the same.
    pub faults: Vec<String>,
}

impl Explore {
    /// At most `states` states of the model `adversarial`.
    pub(crate) fn adversarial(seed: u64, states: usize) -> Self {
        Self {
            models: vec![Model::Adversarial],
            seed,
            limits: Limits { budget: None, states, required: None },
            bank: None,
            even: false,
            faults: Vec::new(),
        }
    }
}

/// The explored history, and its drive if one was recorded.
#[derive(Clone, Copy)]
struct Subject<'a> {
    history: &'a dyn History,
    drive: Option<(&'a Timeline, &'a Recording)>,
}

/// Tries states of each model, after both controls. If the check fails where nothing is lost, nothing else is tried.
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
    let drive = recording.map(|recording| (timeline, recording));
    explore_subject(runner, Subject { history: timeline, drive }, options, progress)
}

/// As [`explore`], of anything that was recorded; the model `realistic` takes a drive and is refused.
///
/// # Errors
/// As [`explore`].
pub fn explore_history(
    runner: &mut dyn Runner,
    history: &dyn History,
    options: &Explore,
    progress: Progress<'_>,
) -> Result<Summary, CrashError> {
    explore_subject(runner, Subject { history, drive: None }, options, progress)
}

fn explore_subject(
    runner: &mut dyn Runner,
    subject: Subject<'_>,
    options: &Explore,
    progress: Progress<'_>,
) -> Result<Summary, CrashError> {
    let history = subject.history;
    let (flushes, fua_writes) = history.sync_counts();
    let mut summary = Summary {
        verdict: RunVerdict::Held,
        flushes,
        fua_writes,
        acks: history.acks().len(),
        seed: options.seed,
        atom_bytes: history.atom_bytes(),
        intact: Some(runner.run_one(&State::new(history.closed(), Vec::new()))?),
        control: ModelSummary::untried(Model::Lying),
        models: Vec::new(),
        required: options.limits.required,
        faults: options.faults.clone(),
        files: history.files(),
    };
    summary.verdict = summary.judge();
    if !summary.is_intact() {
        return Ok(summary);
    }
    let lies = Explore {
        models: vec![Model::Lying],
        limits: Limits { states: LIES, budget: None, required: None },
        ..options.clone()
    };
    summary.control = explore_model(runner, subject, &lies, Model::Lying, progress)?;
    for &model in &options.models {
        let told = explore_model(runner, subject, options, model, progress)?;
        summary.models.push(told);
    }
    summary.verdict = summary.judge();
    Ok(summary)
}

fn explore_model(
    runner: &mut dyn Runner,
    subject: Subject<'_>,
    options: &Explore,
    model: Model,
    progress: Progress<'_>,
) -> Result<ModelSummary, CrashError> {
    let history = subject.history;
    let mut trials = Trials::new(model, options.limits);
    match model {
        Model::Recovery => {
            let problem = "second cuts are tried by `again`";
            Err(CrashError::Input(problem.to_owned()))
        }
        Model::Adversarial => {
            let cuts = history.cuts(Flushes::All, &|_| true);
            let mut search = Search::new(history, &cuts, options.seed);
            trials.run(runner, &mut || search.next(), progress)?;
            trials.end(runner, cuts.len(), search.repeats())
        }
        Model::Lying => {
            let all = history.moments();
            let few: Vec<usize> =
                spread(all.len()).into_iter().take(LIES).map(|at| all[at]).collect();
            let cuts = history.cuts(Flushes::None, &|at| few.contains(&at));
            let mut search = Search::new(history, &cuts, options.seed);
            trials.run(runner, &mut || search.next(), progress)?;
            trials.end(runner, cuts.len(), search.repeats())
        }
        Model::Realistic => {
            let Some((timeline, recording)) = subject.drive else {
                let problem = "the model `realistic` takes a recording of a drive";
                return Err(CrashError::Input(problem.to_owned()));
            };
            let most = options.limits.states.min(CUTS_MOST);
            let times = realistic::times(timeline, options.seed, most, options.even);
            let states = realistic::states(recording, timeline, &times, options.bank)?;
            if options.bank.is_none() {
                refuse_unlawful(timeline, &states)?;
            }
            let scans = states.iter().filter(|(_, power)| power.lost_map_pages > 0).count();
            let mut seen = Seen::new(history);
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
            Ok(ModelSummary { cuts: Some(cuts), scans: Some(scans), ..summary })
        }
    }
}

/// Refuses states of the recorded drive that are not among a lawful drive's: a drive that breaks a
/// promise by itself is no test of other software. With a smaller bank it may.
fn refuse_unlawful(timeline: &Timeline, states: &[(State, Power)]) -> Result<(), CrashError> {
    let Some((place, atom)) = first_unlawful(timeline, states.iter().map(|(state, _)| state))
    else {
        return Ok(());
    };
    let time = states[place].1.time_ns;
    Err(CrashError::Worker(format!(
        "cut at {time} ns, the recorded drive loses atom {atom}, which a flush had settled"
    )))
}
