//! Page programs and reads by what caused them: stacked over time, and in total.

use super::spec::{self, Line, Points, Stroke, Unit};
use super::{Bar, Figure, Key, MOST_OVERLAID, Segment, Size, over_time};
use crate::format;
use crate::run::Run;
use crate::series::{Cause, PROGRAM_CAUSES, READ_CAUSES};
use crate::table::Table;
use leyden_record::RunRecord;

/// Programs or reads.
struct Subject<T: 'static> {
    id: &'static str,
    title: &'static str,
    nothing: &'static str,
    causes: &'static [Cause<T>],
    totals: fn(&RunRecord) -> &T,
}

/// Programs by cause.
pub(crate) fn programs(runs: &[Run]) -> Vec<Figure> {
    figures(
        runs,
        &Subject {
            id: "programs",
            title: "Page programs by cause",
            nothing: "No page was programmed.",
            causes: &PROGRAM_CAUSES,
            totals: |r| &r.flash.programs,
        },
    )
}

/// Reads by cause.
pub(crate) fn reads(runs: &[Run]) -> Vec<Figure> {
    figures(
        runs,
        &Subject {
            id: "page-reads",
            title: "Page reads by cause",
            nothing: "No page was read.",
            causes: &READ_CAUSES,
            totals: |r| &r.flash.reads,
        },
    )
}

/// The totals, and a stack per run with common axes.
fn figures<T>(runs: &[Run], subject: &Subject<T>) -> Vec<Figure> {
    let top = runs.iter().map(|run| highest(run, subject.causes));
    let top = top.fold(0.0, f64::max);
    let stacked = if runs.len() <= MOST_OVERLAID { runs.len() } else { 0 };
    let stacks = (0..stacked).map(|run| stack(runs, run, subject, top));
    let mut figures: Vec<Figure> = stacks.collect();
    let totals = totals(runs, subject);
    if runs.len() == 1 {
        figures.push(totals);
    } else {
        figures.insert(0, totals);
    }
    figures
}

/// The highest point of a run's stack.
fn highest<T>(run: &Run, causes: &[Cause<T>]) -> f64 {
    let at = |i: usize| {
        let values = causes.iter().filter_map(|c| run.columns.values.get(c.column));
        values.filter_map(|v| v[i]).sum::<f64>()
    };
    (0..run.columns.time.len()).map(at).fold(0.0, f64::max)
}

/// One run's operations over time.
fn stack<T>(runs: &[Run], run: usize, subject: &Subject<T>, top: f64) -> Figure {
    let (id, title) = if runs.len() == 1 {
        (subject.id.to_owned(), subject.title.to_owned())
    } else {
        (format!("{}-{}", subject.id, run + 1), format!("{}: {}", subject.title, runs[run].label))
    };
    let mut figure = Figure::new(id, title.clone());
    if runs.len() > 1 {
        figure.size = Size::of_one_in(runs.len());
    }
    let present = subject.causes.iter().filter(|cause| {
        let values = runs[run].columns.values.get(cause.column);
        values.is_some_and(|v| v.iter().flatten().any(|v| *v > 0.0))
    });
    let lines = present.map(|cause| Line {
        label: cause.label.to_owned(),
        colour: cause.colour,
        stroke: Stroke::Solid,
        points: Points::Column { run, column: cause.column },
    });
    let lines: Vec<Line> = lines.collect();
    if lines.is_empty() {
        return figure.nothing(subject.nothing);
    }
    let mut figure = match &lines[..] {
        [only] => figure.note(format!("{} only.", only.label)),
        _ => figure,
    };
    figure.table = Some(over_time::table(runs, &lines, Unit::PagesPerS));
    figure.chart(spec::stack_over_time(runs, lines, Unit::PagesPerS, top, &title))
}

/// Totals over the run: a bar per cause for one run, a bar per run for several.
fn totals<T>(runs: &[Run], subject: &Subject<T>) -> Figure {
    let mut figure =
        Figure::new(format!("{}-totals", subject.id), format!("{}: totals", subject.title));
    let counts = |run: &Run| -> Vec<u64> {
        let totals = (subject.totals)(run.record);
        subject.causes.iter().map(|c| (c.total)(totals)).collect()
    };
    let counts: Vec<Vec<u64>> = runs.iter().map(counts).collect();
    let sum = |counts: &Vec<u64>| counts.iter().sum::<u64>();
    let most = counts.iter().map(sum).max().unwrap_or(0);
    if most == 0 {
        return figure.nothing(subject.nothing);
    }
    figure.table = Some(totals_table(runs, subject, &counts));
    if let [only] = &counts[..] {
        figure.bars = bars_by_cause(subject, only, most);
        return figure;
    }
    figure.size = Size::Wide;
    figure.keys = keys(subject, &counts);
    let bars = runs.iter().zip(&counts).map(|(run, counts)| Bar {
        label: run.label.clone(),
        value: format::count(sum(counts) as f64),
        from_percent: 0.0,
        segments: segments(subject, counts, most),
    });
    figure.bars = bars.collect();
    figure
}

fn bars_by_cause<T>(subject: &Subject<T>, counts: &[u64], total: u64) -> Vec<Bar> {
    let causes = subject.causes.iter().zip(counts).filter(|(_, count)| **count > 0);
    let bars = causes.map(|(cause, &count)| Bar {
        label: cause.label.to_owned(),
        value: format!(
            "{} ({})",
            format::count(count as f64),
            format::percent(count as f64 / total as f64)
        ),
        from_percent: 0.0,
        segments: segment(cause.colour, cause.label, count, total).into_iter().collect(),
    });
    bars.collect()
}

fn segments<T>(subject: &Subject<T>, counts: &[u64], of: u64) -> Vec<Segment> {
    let causes = subject.causes.iter().zip(counts);
    causes.filter_map(|(cause, &count)| segment(cause.colour, cause.label, count, of)).collect()
}

/// A piece of a bar; none of nothing.
fn segment(colour: usize, label: &str, count: u64, of: u64) -> Option<Segment> {
    (count > 0).then(|| Segment {
        colour,
        percent: format::rounded(100.0 * count as f64 / of as f64),
        title: format!("{label}: {}", format::count(count as f64)),
    })
}

/// A legend of the causes that occur in any run.
fn keys<T>(subject: &Subject<T>, counts: &[Vec<u64>]) -> Vec<Key> {
    let causes = subject.causes.iter().enumerate();
    causes
        .filter(|(i, _)| counts.iter().any(|c| c[*i] > 0))
        .map(|(_, cause)| Key {
            label: cause.label.to_owned(),
            colour: cause.colour,
            thin: false,
            dashed: false,
        })
        .collect()
}

fn totals_table<T>(runs: &[Run], subject: &Subject<T>, counts: &[Vec<u64>]) -> Table {
    let labels = runs.iter().map(|run| run.label.clone());
    let mut table = Table::new(std::iter::once("Cause".to_owned()).chain(labels));
    for (i, cause) in subject.causes.iter().enumerate() {
        let cells = counts.iter().map(|c| format::count(c[i] as f64));
        let head = cause.label.to_owned();
        table.rows.push(std::iter::once(head).chain(cells).collect());
    }
    let sums = counts.iter().map(|c| format::count(c.iter().sum::<u64>() as f64));
    table.rows.push(std::iter::once("All".to_owned()).chain(sums).collect());
    table
}
