//! What crash tests say.

use std::io::Write;

use leyden_crashtest::{Finding, Model, ModelSummary, Session, Summary, Timeline, Verdict};
use leyden_report::format::{bytes, count, number, seconds};
use serde_json::Value;

use super::kept::{SUMMARY, failure, read_json};
use crate::commands::print_json;
use crate::failure::Failure;
use crate::output::table::Table;

/// The recorded run in a line.
pub(super) fn recorded(timeline: &Timeline, length_bytes: u64) -> String {
    let events = timeline.events();
    let span = events.last().map_or(0, |last| last.0.since(events[0].0).as_ns());
    format!(
        "recorded {} events and {} acknowledgements in {} of the drive's time: {}",
        count(events.len() as u64),
        count(timeline.acks().len() as u64),
        seconds(span as f64 / 1e9),
        bytes(length_bytes)
    )
}

/// A table of each model, and what broke.
pub(super) fn summary(summary: &Summary) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    table(summary).write(&mut out)?;
    for model in &summary.models {
        findings(model, &mut out)?;
    }
    Ok(())
}

fn table(summary: &Summary) -> Table {
    let mut table = Table::default();
    table.row(["flushes", &count(summary.flushes as u64)]);
    table.row(["acknowledged", &count(summary.acks as u64)]);
    table.row(["positive control", &control(summary)]);
    for model in &summary.models {
        table.row([model.model.name(), &line(model)]);
    }
    table
}

/// What came of the drive that ignored all flushes.
pub(super) fn control(summary: &Summary) -> String {
    let control = &summary.control;
    format!("{} of {} lies noticed", control.broken(), control.states)
}

/// A model in a line.
pub(super) fn line(model: &ModelSummary) -> String {
    let mut line = format!(
        "{} states ({} repeats left out)",
        count(model.states as u64),
        count(model.repeats)
    );
    if model.broken() == 0 {
        line.push_str(": all held");
    }
    for (verdict, states) in model.verdicts.iter().filter(|(verdict, _)| **verdict != Verdict::Held)
    {
        line.extend([", ", &count(*states as u64), " ", verdict.name()]);
    }
    if model.inferred > 0 {
        line.extend(["; ", &count(model.inferred), " known from what earlier ones read"]);
    }
    let rate = model.states as f64 / model.seconds.max(1e-9);
    line.extend(["; ", &number(rate), " states/s"]);
    if model.is_exhausted {
        line.push_str("; no other state was found");
    }
    line
}

fn findings(model: &ModelSummary, out: &mut impl Write) -> Result<(), Failure> {
    for (at, finding) in (1..).zip(&model.findings) {
        let remarks = remarks(model.model, finding).join("; ");
        let remarks = if remarks.is_empty() { remarks } else { format!(" ({remarks})") };
        writeln!(
            out,
            "\n{}-{at}: {}{remarks}, {} states, the first is number {}",
            model.model.name(),
            finding.verdict.name(),
            count(finding.count as u64),
            count(finding.first as u64)
        )?;
        for line in finding.said.lines().take(SAID_MOST) {
            writeln!(out, "  | {line}")?;
        }
    }
    Ok(())
}

/// What must be known of a finding to judge it.
pub(super) fn remarks(model: Model, finding: &Finding) -> Vec<&'static str> {
    let flaky = finding.is_flaky.then_some("flaky: tried again, it came out otherwise");
    let lawful = (model == Model::Lying).then_some("on a drive that lies");
    flaky.into_iter().chain(lawful).collect()
}

/// Lines of what a check said that are shown.
const SAID_MOST: usize = 4;

/// `leyden crashtest show`.
pub(super) fn show(session: &Session, json: bool) -> Result<(), Failure> {
    let plan = session.plan().map_err(failure)?;
    let timeline = session.timeline(None).map_err(failure)?;
    let last: Option<Summary> = read_json(session, SUMMARY)?;
    if json {
        return print_json(&serde_json::json!({
            "plan": serde_json::to_value(&plan).map_err(Failure::failed)?,
            "acknowledged": timeline.acks(),
            "last_run": serde_json::to_value(&last).unwrap_or(Value::Null),
        }));
    }
    let mut table = Table::default();
    table.row(["file system", &plan.fs]);
    table.row(["device", &bytes(plan.size_bytes)]);
    table.row(["work", &plan.work]);
    table.row(["check", &plan.check]);
    table.row(["recorded", &recorded(&timeline, session.recording().metadata()?.len())]);
    table.write(&mut anstream::stdout().lock())?;
    match last {
        Some(last) => summary(&last),
        None => Ok(()),
    }
}
