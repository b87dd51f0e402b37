//! The page of `leyden torture`: the verdict, power cuts, losses that were allowed, coverage, and what failed. Speeds
//! are not on it: the same campaign makes the same page.

use leyden_report::figures::{Bar, Figure, Section, Segment, Size, Table};
use leyden_report::format::{count, rounded};
use leyden_report::{AnswerPage, Card, ReportError, render_answer};
use leyden_torture::campaign::{Campaign, Summary};
use leyden_torture::exhaustive::Exhausted;
use leyden_torture::shortfalls;

use super::{command_of, command_of_all};
use crate::version;

/// Failures that have a row.
const MOST_FAILURES: usize = 50;

pub(super) fn of_campaign(summary: &Summary, campaign: &Campaign) -> Result<String, ReportError> {
    let Campaign { subject, start, seeds, .. } = campaign;
    let command = command_of_all(campaign);
    let mut warnings = Vec::new();
    if summary.seeds < *seeds {
        let (done, all) = (count(summary.seeds), count(*seeds));
        warnings.push(format!("The campaign was stopped: {done} of {all} seeds were run."));
    }
    let mut sections = vec![
        Section::new("cuts", "Power cuts", vec![cuts(summary), losses(summary)]),
        Section::new("coverage", "Coverage", vec![coverage(summary, campaign)]),
    ];
    if !summary.failed.is_empty() {
        sections.insert(0, Section::new("failures", "Failures", vec![failures(summary, campaign)]));
    }
    let (drives, made) = (count(summary.seeds), count(summary.cuts));
    render_answer(AnswerPage {
        title: format!("Torture of {} drives", subject.name()),
        kind: "torture",
        verdict: Some(verdict(summary.violations, &drives, &made)),
        facts: vec![
            (
                "Drives",
                format!("{}, seeds {start} to {}", subject.name(), last(*start, summary.seeds)),
            ),
            ("Digest", summary.digest.clone()),
            ("Leyden", version::VERSION.to_owned()),
        ],
        warnings,
        cards: vec![
            card(
                "Random drives",
                &drives,
                "Each run twice; both runs agree to the bit, or the seed fails.",
            ),
            card("Power cuts", &made, "Each followed by a look at every promise."),
            card(
                "Commands",
                &count(summary.tally.commands),
                "Those that look after a cut included.",
            ),
            card("Seeds that failed", &count(summary.violations), ""),
        ],
        sections,
        command: &command,
        ..AnswerPage::default()
    })
}

pub(super) fn of_tiny_drives(
    done: &[Exhausted],
    drives: usize,
    command: &str,
) -> Result<String, ReportError> {
    let sum = |of: fn(&Exhausted) -> u64| done.iter().map(of).sum::<u64>();
    let failed = sum(|it| u64::from(it.failure.is_some()));
    let mut warnings = Vec::new();
    if done.len() < drives {
        warnings
            .push(format!("The campaign was stopped: {} of {drives} drives were run.", done.len()));
    }
    let mut table = Table::new(["drive", "events", "power cuts", "second cuts", "result"]);
    for it in done {
        let result = it.failure.as_ref().map_or_else(|| "held".to_owned(), ToString::to_string);
        let numbers = [it.events, it.cuts, it.second_cuts].map(count);
        table.rows.push(std::iter::once(it.drive.clone()).chain(numbers).chain([result]).collect());
    }
    let mut figure = Figure::new("drives", "Tiny drives, cut at every moment");
    figure.size = Size::Wide;
    figure.table = Some(table);
    let (cuts, all) = (count(sum(|it| it.cuts)), count(done.len() as u64));
    render_answer(AnswerPage {
        title: "Torture at every moment".to_owned(),
        kind: "torture",
        verdict: Some(verdict(failed, &all, &cuts)),
        facts: vec![("Leyden", version::VERSION.to_owned())],
        warnings,
        cards: vec![
            card("Drives", &all, "One for each combination of policies."),
            card("Power cuts", &cuts, "One at each event of each run."),
            card("In dumps and recoveries", &count(sum(|it| it.second_cuts)), "Second cuts."),
            card("Drives that failed", &count(failed), ""),
        ],
        sections: vec![Section::new("each", "Each drive", vec![figure])],
        command,
        ..AnswerPage::default()
    })
}

fn verdict(failed: u64, drives: &str, cuts: &str) -> (String, bool) {
    match failed {
        0 => (format!("Every promise was kept: {drives} drives, {cuts} power cuts"), true),
        1 => (format!("1 of {drives} drives FAILED, after {cuts} power cuts in all"), false),
        failed => (
            format!("{} of {drives} drives FAILED, after {cuts} power cuts in all", count(failed)),
            false,
        ),
    }
}

fn card(label: &'static str, value: &str, note: &str) -> Card {
    Card { label, value: value.to_owned(), unit: String::new(), note: note.to_owned() }
}

fn last(start: u64, seeds: u64) -> u64 {
    start.saturating_add(seeds.saturating_sub(1))
}

/// A figure of counts as bars, on a common scale.
fn bars(id: &str, title: &str, colour: usize, rows: &[(&str, u64)]) -> Figure {
    let most = rows.iter().map(|row| row.1).max().unwrap_or(0).max(1) as f64;
    let mut figure = Figure::new(id, title);
    let mut table = Table::new(["", "count"]);
    for (label, times) in rows {
        let (value, percent) = (count(*times), rounded(100.0 * *times as f64 / most));
        let title = format!("{label}: {value}");
        let segments = vec![Segment { colour, percent, title }];
        let label = (*label).to_owned();
        figure.bars.push(Bar {
            label: label.clone(),
            value: value.clone(),
            from_percent: 0.0,
            segments,
        });
        table.rows.push(vec![label, value]);
    }
    figure.table = Some(table);
    figure
}

fn cuts(summary: &Summary) -> Figure {
    let tally = &summary.tally;
    let rows = [
        ("all", summary.cuts),
        ("during recovery", tally.cuts_in_recovery),
        ("before the dump had ended", tally.cuts_in_dump),
        ("of read-only drives", tally.read_only_cuts),
    ];
    bars("cuts", "Power cuts by moment", 0, &rows)
}

/// Losses that a drive with too little energy, or a page cache, may have.
fn losses(summary: &Summary) -> Figure {
    let tally = &summary.tally;
    let rows = [
        ("reported as lost", tally.reported_losses),
        ("reported as scanned for", tally.uncertain_units),
        ("seen to be older than promised", tally.confirmed_losses),
        ("dirty in a page cache", tally.cached_losses),
        ("not written out by a page cache", tally.unwritten_units),
    ];
    bars("losses", "Units that were allowed to be lost", 1, &rows).note(
        "On drives with too little energy, which report them, and in page caches of the host.",
    )
}

fn coverage(summary: &Summary, campaign: &Campaign) -> Figure {
    let short = shortfalls(summary, campaign.subject);
    let mut all: Vec<(String, u64)> = summary.coverage.all(campaign.subject.names()).collect();
    let reached = all.iter().filter(|(_, times)| *times > 0).count();
    all.sort_by_key(|(_, times)| *times);
    let mut table = Table::new(["point", "times", ""]);
    for (name, times) in &all {
        let floor = short.iter().find(|it| it.name == *name);
        let remark =
            floor.map_or_else(String::new, |it| format!("below its floor of {}", count(it.floor)));
        table.rows.push(vec![name.clone(), count(*times), remark]);
    }
    let mut figure =
        Figure::new("points", "Points of the coverage, the rarest first").note(format!(
            "{} of {} points reached. Floors are for 1,000 seeds, scaled to the campaign's.",
            count(reached as u64),
            count(all.len() as u64)
        ));
    figure.size = Size::Wide;
    figure.table = Some(table);
    figure
}

fn failures(summary: &Summary, campaign: &Campaign) -> Figure {
    let mut table = Table::new(["seed", "after cuts", "failure", "again"]);
    for failed in summary.failed.iter().take(MOST_FAILURES) {
        let line = failed.failure.message.lines().next().unwrap_or_default();
        table.rows.push(vec![
            failed.seed.to_string(),
            count(failed.failure.cuts),
            line.to_owned(),
            command_of(campaign, failed.seed),
        ]);
    }
    let mut figure = Figure::new("failed", "Seeds that failed");
    if summary.failed.len() > MOST_FAILURES {
        figure.note =
            format!("The first {MOST_FAILURES} of {}.", count(summary.failed.len() as u64));
    }
    figure.size = Size::Wide;
    figure.table = Some(table);
    figure
}
