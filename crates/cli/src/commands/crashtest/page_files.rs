//! The page of a crash test of files.

use std::fmt::Write as _;

use leyden_crashtest::{FileHistory, History as _, Plan, RunVerdict, Seed, Session, Summary};
use leyden_report::format::{count, seconds};
use leyden_report::{CrashFinding, CrashModel, CrashRun, CrashTestPage};

use super::kept::{blind, fails, read_json};
use super::{provenance, tell};
use crate::failure::Failure;

pub(super) fn page<'a>(
    session: &Session,
    plan: &'a Plan,
    history: &FileHistory,
    summary: &Summary,
) -> Result<CrashTestPage<'a>, Failure> {
    let models = summary.models.iter().map(|model| CrashModel {
        name: model.model.name(),
        line: tell::line(model),
        tallies: (model.tallies.iter())
            .map(|tally| (moment_ns(history, tally.at), [tally.held, tally.lost, tally.broken]))
            .collect(),
    });
    Ok(CrashTestPage {
        title: &plan.work,
        verdict: summary.headline(),
        is_held: summary.verdict == RunVerdict::Held,
        facts: facts(session, plan, history, summary),
        warnings: warnings(history, summary),
        run: recorded_run(history),
        models: models.collect(),
        findings: findings(session, history, summary)?,
        curve: Vec::new(),
    })
}

/// When the events before `at` had happened.
fn moment_ns(history: &FileHistory, at: usize) -> u64 {
    at.checked_sub(1).map_or(0, |last| history.time_ns(last))
}

fn facts(
    session: &Session,
    plan: &Plan,
    history: &FileHistory,
    summary: &Summary,
) -> Vec<(&'static str, String)> {
    let run = format!(
        "{} events, {} syncs, {} acknowledgements",
        count(history.event_count() as u64),
        count(summary.flushes as u64),
        count(summary.acks as u64)
    );
    let rules = summary.files.unwrap_or_default().name();
    let mut kept = format!(
        "as {rules} keeps them; {} B of a file are kept or lost as a whole",
        count(u64::from(summary.atom_bytes))
    );
    if history.drives() > 1 {
        let drives = history.drives();
        let _ = write!(kept, "; on {drives} drives, of which all or some lose power"); // no I/O
    }
    let mut facts = vec![
        ("Work", plan.work.clone()),
        ("Check", plan.check.clone()),
        ("Files", kept),
        ("Recorded", run),
        ("Controls", tell::controls(summary)),
        ("Seed", summary.seed.to_string()),
        ("Made", provenance::made(session)),
    ];
    facts.extend(provenance::software(session).map(|text| ("Software", text)));
    facts
}

fn warnings(history: &FileHistory, summary: &Summary) -> Vec<String> {
    let mut warnings = Vec::new();
    match summary.verdict {
        RunVerdict::CheckBlind => warnings.push(blind(summary)),
        RunVerdict::CheckFails => warnings.push(fails(summary)),
        RunVerdict::TooFew => warnings.push(summary.in_words()),
        RunVerdict::Held | RunVerdict::Broken => {}
    }
    if history.acks().is_empty() {
        let text = "The work acknowledged nothing: only that its data is consistent was checked.";
        warnings.push(text.to_owned());
    }
    warnings
}

fn recorded_run(history: &FileHistory) -> CrashRun {
    if history.event_count() == 0 {
        return CrashRun { is_of_files: true, ..CrashRun::default() };
    }
    let first = (history.begin() as usize).min(history.event_count() - 1);
    CrashRun {
        is_of_files: true,
        span_ns: (history.time_ns(first), history.time_ns(history.event_count() - 1)),
        writes: history.writes().collect(),
        flushes: history.syncs().iter().map(|sync| sync.time_ns).collect(),
        acks: history.ack_times_ns().collect(),
    }
}

fn findings(
    session: &Session,
    history: &FileHistory,
    summary: &Summary,
) -> Result<Vec<CrashFinding>, Failure> {
    let mut told = Vec::new();
    for model in &summary.models {
        for (number, finding) in (1..).zip(&model.findings) {
            let name = format!("{}-{number}", model.model.name());
            let begin = moment_ns(history, history.begin() as usize);
            let small: Option<Seed> = read_json(session, &format!("findings/{name}-small.json"))?;
            let state = small.as_ref().map_or(&finding.state, |small| &small.state);
            let into = moment_ns(history, state.at).saturating_sub(begin);
            let mut taken = history.lost_words(state);
            if taken.is_empty() {
                taken.push("nothing is lost: the data of this moment fails the check".to_owned());
            }
            told.push(CrashFinding {
                why: Vec::new(),
                commands: tell::commands(session, &name, small.is_some()),
                name,
                verdict: finding.verdict.name(),
                remark: tell::remarks(model.model, finding).join("; "),
                states: tell::states(finding),
                moment: format!(
                    "{} into the run, after {} acknowledgements",
                    seconds(into as f64 / 1e9),
                    count(history.acks_before(state.at) as u64)
                ),
                taken,
                said: finding.said.clone(),
            });
        }
    }
    Ok(told)
}
