//! Messages of crash tests.

use std::io::Write;

use leyden_crashtest::{
    FileHistory, Finding, History as _, Model, ModelSummary, SUMMARY, Session, Summary, Timeline,
    Verdict, Why,
};
use leyden_report::format::{bytes, count, number, seconds};
use serde_json::Value;

use super::kept::{PAGE, Recorded, failure, read_json};
use crate::commands::print_json;
use crate::failure::Failure;
use crate::output::escape::shown;
use crate::output::table::Table;

/// The recorded run in a line.
pub(super) fn recorded(timeline: &Timeline, length_bytes: u64) -> String {
    let events = timeline.events();
    let span = events.last().map_or(0, |last| last.0.since(events[0].0).as_ns());
    format!(
        "recorded {} and {} in {} of the drive's time: {}",
        counted(events.len(), "event"),
        counted(timeline.acks().len(), "acknowledgement"),
        seconds(span as f64 / 1e9),
        bytes(length_bytes)
    )
}

/// A recorded run of files in a line.
pub(super) fn recorded_files(history: &FileHistory, length_bytes: u64) -> String {
    let drives = match history.drives() {
        1 => String::new(),
        drives => format!(" of {drives} drives"),
    };
    format!(
        "recorded {}{drives}, {} and {}: {}",
        counted(history.event_count(), "event"),
        counted(history.syncs().len(), "sync"),
        counted(history.acks().len(), "acknowledgement"),
        bytes(length_bytes)
    )
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number as u64))
}

/// Unsynced data that no state has, because the kernel had not written it back when the work ended. File systems write some
/// of their own when they are unmounted: a little says nothing.
pub(super) fn unwritten(timeline: &Timeline) -> Option<String> {
    let (during, after) = timeline.written_bytes();
    (after > (during / 10).max(256 << 10)).then(|| {
        format!(
            "{} were written when the work had ended, by unmounting: the kernel writes unsynced data back 5 to 30 s later, \
             and no state has it\n  help: to have it in states, let the work run longer, or end it with `sync -f $LEYDEN_MOUNT`",
            bytes(after)
        )
    })
}

/// The verdict, both controls, each model, and what broke.
pub(super) fn summary(session: &Session, summary: &Summary) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}", summary.headline())?;
    writeln!(out, "controls: {}", controls(summary))?;
    for model in &summary.models {
        writeln!(out, "{}: {}", model.model.name(), line(model))?;
    }
    for model in &summary.models {
        findings(model, &mut out)?;
    }
    writeln!(out, "\nsee {}", session.folder().join(PAGE).display())?;
    Ok(())
}

/// Both controls.
pub(super) fn controls(summary: &Summary) -> String {
    let control = &summary.control;
    let intact = match &summary.intact {
        Some(intact) if intact.verdict == Verdict::Held => {
            "it passes where nothing is lost".to_owned()
        }
        Some(intact) => {
            let said = intact.said.lines().next().unwrap_or_default();
            return format!(
                "where nothing is lost the check does not pass: {}, {said}",
                intact.verdict.name()
            );
        }
        None => "where nothing is lost it was not tried".to_owned(),
    };
    format!(
        "the check notices {} of {} lies of {}; {intact}",
        control.broken(),
        control.states,
        summary.liar()
    )
}

/// A model in a line.
pub(super) fn line(model: &ModelSummary) -> String {
    let mut line = model.extent();
    line.push_str(if model.broken() == 0 { ": all held" } else { ": " });
    let broken = model.verdicts.iter().filter(|(verdict, _)| **verdict != Verdict::Held);
    let broken: Vec<String> = broken
        .map(|(verdict, states)| format!("{} {}", count(*states as u64), verdict.name()))
        .collect();
    if model.broken() == 0 && !broken.is_empty() {
        line.push_str(", ");
    }
    line.push_str(&broken.join(", "));
    let rate = model.states as f64 / model.seconds.max(1e-9);
    line.extend(["; ", &count(model.repeats), " repeats left out"]);
    if model.inferred > 0 {
        line.extend([", ", &count(model.inferred), " known from the reads of earlier ones"]);
    }
    line.extend(["; ", &number(rate), " states/s"]);
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
        for line in &finding.lost {
            writeln!(out, "  {}", shown(line, false))?;
        }
        why(finding.why.as_ref(), out)?;
    }
    Ok(())
}

/// Why a state breaks.
pub(super) fn why(why: Option<&Why>, out: &mut impl Write) -> Result<(), Failure> {
    for line in why.iter().flat_map(|why| why.lines()) {
        writeln!(out, "  why: {line}")?;
    }
    Ok(())
}

/// Facts that a reader needs to judge a finding.
pub(super) fn remarks(model: Model, finding: &Finding) -> Vec<&'static str> {
    let flaky = finding.is_flaky.then_some("flaky: tried again, it came out otherwise");
    let lawful = (model == Model::Lying).then_some("on a drive that lies");
    flaky.into_iter().chain(lawful).collect()
}

/// The commands that try a finding again.
pub(super) fn commands(session: &Session, name: &str, is_small: bool) -> Vec<String> {
    let folder = session.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let of = |what: &str, name: &str| {
        format!("leyden crashtest {what} {folder} {folder}/findings/{name}.json")
    };
    let small = format!("{name}-small");
    let best = if is_small { &small } else { name };
    let shrink = (!is_small).then(|| of("shrink", name));
    let replay = of("replay", best);
    let more =
        [String::new(), " --run 'ls -l $LEYDEN_MOUNT'".to_owned(), format!(" --copy {name}-files")];
    shrink.into_iter().chain(more.into_iter().map(|more| replay.clone() + &more)).collect()
}

pub(super) fn states(finding: &Finding) -> String {
    let first = count(finding.first as u64);
    match finding.count {
        1 => format!("1 state, number {first}"),
        many => format!("{} states, the first is number {first}", count(many as u64)),
    }
}

/// Lines of what a check said that are shown.
const SAID_MOST: usize = 4;

/// `leyden crashtest show`.
pub(super) fn show(session: &Session, json: bool) -> Result<(), Failure> {
    let plan = session.plan().map_err(failure)?;
    let run = Recorded::open(session, None)?;
    let last: Option<Summary> = read_json(session, SUMMARY)?;
    if json {
        return print_json(&serde_json::json!({
            "plan": serde_json::to_value(&plan).map_err(Failure::internal)?,
            "acknowledged": run.history().acks(),
            "last_run": serde_json::to_value(&last).unwrap_or(Value::Null),
        }));
    }
    let mut table = Table::of_texts();
    let line = match &run {
        Recorded::Drive(timeline) => {
            table.row(["file system", &plan.fs]);
            table.row(["device", &bytes(plan.size_bytes)]);
            recorded(timeline, session.recording().metadata()?.len())
        }
        Recorded::Files(history) => {
            table.row(["files", plan.files.unwrap_or_default().name()]);
            recorded_files(history, session.files_recording().metadata()?.len())
        }
    };
    table.row(["work", &plan.work]);
    table.row(["check", &plan.check]);
    table.row(["recorded", &line]);
    table.write(&mut anstream::stdout().lock())?;
    match last {
        Some(last) => summary(session, &last),
        None => Ok(()),
    }
}
