//! Latency distributions on the scale of nines: each step to the right leaves a tenth of the
//! commands, so that the tail gets as much room as the body.

use super::spec::{self, Across, Chart, Line, Points, Stroke, Unit};
use super::{Figure, Size, coincide};
use crate::format;
use crate::run::Run;
use crate::series::MAX_POINTS;
use crate::table::Table;
use leyden_record::{Host, Latency};
use serde_json::json;
use std::f64::consts::LOG10_2;

/// A kind of command.
struct Kind {
    id: &'static str,
    label: &'static str,
    nothing: &'static str,
    latency: fn(&Host) -> &Latency,
    count: fn(&Host) -> u64,
}

static KINDS: [Kind; 3] = [
    Kind {
        id: "reads",
        label: "Reads",
        nothing: "Nothing was read.",
        latency: |h| &h.read_latency_us,
        count: |h| h.reads,
    },
    Kind {
        id: "writes",
        label: "Writes",
        nothing: "Nothing was written.",
        latency: |h| &h.write_latency_us,
        count: |h| h.writes,
    },
    Kind {
        id: "flushes",
        label: "Flushes",
        nothing: "Nothing was flushed.",
        latency: |h| &h.flush_latency_us,
        count: |h| h.flushes,
    },
];

const NOTE: &str = "Read a point (p, y) as: p % of the commands took y or less.";

/// Percentiles worth a row in the table.
const ROWS: [f64; 8] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// One figure of all kinds for one run, one figure per kind for several.
pub(crate) fn figures(runs: &[Run]) -> Vec<Figure> {
    let title = "Latency distribution";
    if let [run] = runs {
        let lines = KINDS.iter().enumerate();
        let lines = lines.filter_map(|(i, kind)| line(kind, run, kind.label, i));
        return vec![figure("percentiles", title, lines.collect(), "No command was measured.")];
    }
    let kinds = KINDS
        .iter()
        .filter(|kind| kind.id != "flushes" || runs.iter().any(|r| r.record.host.flushes > 0));
    let figures = kinds.map(|kind| {
        let lines = runs.iter().enumerate();
        let lines = lines.filter_map(|(i, run)| line(kind, run, &run.label, i));
        let id = format!("percentiles-{}", kind.id);
        let title = format!("{title}: {}", kind.label.to_lowercase());
        figure(&id, &title, lines.collect(), kind.nothing)
    });
    figures.collect()
}

/// Each line with how many commands it is of.
fn figure(id: &str, title: &str, lines: Vec<(Line, u64)>, nothing: &str) -> Figure {
    let mut figure = Figure::new(id, title);
    figure.size = Size::Wide;
    if lines.is_empty() {
        return figure.nothing(nothing);
    }
    let note = match &lines[..] {
        [(only, _)] => format!("{} only. {NOTE}", only.label),
        _ => NOTE.to_owned(),
    };
    figure.table = Some(table(&lines));
    let mut lines: Vec<Line> = lines.into_iter().map(|(line, _)| line).collect();
    let coincide = coincide::dash(&[], &mut lines, Unit::Latency);
    figure.note(format!("{note} {coincide}").trim_end()).chart(chart(lines, title))
}

/// A distribution as a line over the nines.
fn line(kind: &Kind, run: &Run, label: &str, colour: usize) -> Option<(Line, u64)> {
    let latency = (kind.latency)(&run.record.host);
    let count = (kind.count)(&run.record.host);
    let points = points(&latency.distribution, count);
    let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    (!x.is_empty()).then(|| {
        let points = Points::Here { x, y };
        (Line { label: label.to_owned(), colour, stroke: Stroke::Solid, points }, count)
    })
}

/// `[percentile, µs]` as (nines, µs). The 100th percentile would be infinitely far to the right; it
/// is drawn where one command in `count` stands.
fn points(distribution: &[(f64, f64)], count: u64) -> Vec<(f64, f64)> {
    let last = (count.max(1) as f64).log10();
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(distribution.len());
    for &(percentile, us) in distribution {
        let left = 1.0 - percentile / 100.0;
        let before = points.last().map_or(0.0, |p| p.0);
        let nines = if left > 0.0 { -left.log10() } else { last };
        if us > 0.0 && us.is_finite() && nines.is_finite() {
            // Never leftwards: digits lost near 100 % must not fold the line back.
            points.push((format::rounded(nines.max(before)), format::rounded(us)));
        }
    }
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let end = points.len().wrapping_sub(1);
    let thinned = points.iter().enumerate();
    // Counted from the right, where every point matters.
    thinned.filter(|(i, _)| *i == 0 || (end - i).is_multiple_of(step)).map(|(_, p)| *p).collect()
}

fn chart(lines: Vec<Line>, title: &str) -> Chart {
    let of = |pick: fn(&Points) -> &[f64]| {
        let all = lines.iter().flat_map(move |l| pick(&l.points));
        all.copied().collect::<Vec<f64>>()
    };
    let xs = of(|p| match p {
        Points::Here { x, .. } => x,
        Points::Column { .. } => &[],
    });
    let ys = of(|p| match p {
        Points::Here { y, .. } => y,
        Points::Column { .. } => &[],
    });
    let right = xs.iter().copied().fold(1.0, f64::max);
    let (values, labels): (Vec<f64>, Vec<String>) = ticks(right).into_iter().unzip();
    // Where room is short, every second or third of the nines, and no 50.
    let every = |n: f64| {
        let kept = values.iter().copied();
        kept.filter(|v| v % n == 0.0).collect::<Vec<f64>>()
    };
    let (second, third) = (every(2.0), every(3.0));
    // Ticks are looked up by their place, as the label expression knows only numbers.
    let cases = values.iter().zip(&labels);
    let cases = cases.map(|(v, l)| format!("datum.value === {v} ? '{l}'"));
    let cases: Vec<String> = cases.collect();
    let cases = cases.join(" : ");
    let x = spec::x_axis(
        &json!({"domain": [0.0, right], "nice": false, "zero": true}),
        &json!({
            "title": "percentile (%)",
            "values": {"expr": format!(
                "width < 220 ? {third:?} : width < 480 ? {second:?} : {values:?}"
            )},
            "labelOverlap": false,
            // Without room for all, Vega would thin them out once more.
            "tickCount": 20,
            "labelExpr": format!("{cases} : ''"),
        }),
    );
    let y = spec::y_axis(Unit::Latency, &ys);
    let mut spec = spec::line_spec(&lines, &x, &y, "monotone", title);
    spec["height"] = json!(300);
    Chart { across: Across::Nines, unit: Unit::Latency, lines, rows: Vec::new(), spec }
}

/// Ticks up to `right` nines: 0, 50, 90, 99, 99.9 ...
fn ticks(right: f64) -> Vec<(f64, String)> {
    let mut ticks = vec![(0.0, "0".to_owned()), (format::rounded(LOG10_2), "50".to_owned())];
    for nines in 1..=(right.floor() as usize) {
        let label = match nines {
            1 => "90".to_owned(),
            2 => "99".to_owned(),
            n => format!("99.{}", "9".repeat(n - 2)),
        };
        ticks.push((nines as f64, label));
    }
    ticks
}

/// Percentiles beyond which fewer than ten commands lie say nothing: the registry's rule for its figures, too.
fn table(lines: &[(Line, u64)]) -> Table {
    let labels = lines.iter().map(|(line, _)| line.label.clone());
    let mut table = Table::new(std::iter::once("Percentile".to_owned()).chain(labels));
    for percentile in ROWS {
        let nines = format::rounded(-(1.0 - percentile / 100.0).log10());
        let cells = lines.iter().map(|(line, count)| {
            let Points::Here { x, y } = &line.points else {
                return format::DASH.to_owned();
            };
            let least = (10.0 / (1.0 - percentile / 100.0)).round();
            if percentile < 100.0 && (*count as f64) < least {
                return format::DASH.to_owned();
            }
            // The first point at or beyond it, or the maximum.
            let at = x.partition_point(|v| *v < nines).min(y.len() - 1);
            format::latency(y[at])
        });
        let cells: Vec<String> = cells.collect();
        if cells.iter().all(|cell| cell == format::DASH) {
            continue;
        }
        let head =
            if percentile >= 100.0 { "Maximum".to_owned() } else { format!("{percentile} %") };
        table.rows.push(std::iter::once(head).chain(cells).collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_stands_where_one_command_in_all_stands() {
        let points = points(&[(0.0, 10.0), (90.0, 20.0), (99.0, 30.0), (100.0, 99.0)], 10_000);
        assert_eq!(points, [(0.0, 10.0), (1.0, 20.0), (2.0, 30.0), (4.0, 99.0)]);
    }

    #[test]
    fn percentiles_of_too_few_commands_have_no_row() {
        let rows = |count: u64| {
            let distribution = [(0.0, 10.0), (50.0, 20.0), (99.0, 30.0), (100.0, 99.0)];
            let (x, y) = points(&distribution, count).into_iter().unzip();
            let points = Points::Here { x, y };
            let line = Line { label: "Reads".into(), colour: 0, stroke: Stroke::Solid, points };
            let heads = table(&[(line, count)]).rows.into_iter().map(|row| row[0].clone());
            heads.collect::<Vec<_>>()
        };
        assert_eq!(rows(19), ["Maximum"]);
        assert_eq!(rows(200), ["50 %", "90 %", "95 %", "Maximum"]);
        assert_eq!(rows(999)[3..], ["Maximum"]);
        assert_eq!(rows(1_000)[3..], ["99 %", "Maximum"]);
        assert_eq!(rows(1_000_000).len(), 8, "99.999 % has ten beyond it");
    }

    #[test]
    fn few_commands_never_fold_the_line_back() {
        let points = points(&[(50.0, 10.0), (99.0, 20.0), (100.0, 30.0)], 2);
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(points.last(), Some(&(2.0, 30.0)));
    }

    #[test]
    fn thinning_keeps_both_ends() {
        let long: Vec<(f64, f64)> =
            (0..5000).map(|i| (f64::from(i) / 50.0, f64::from(i + 1))).collect();
        let points = points(&long, 1_000_000);
        assert!(points.len() <= MAX_POINTS + 1);
        assert_eq!(points.first().map(|p| p.1), Some(1.0));
        assert_eq!(points.last().map(|p| p.1), Some(5000.0));
    }

    #[test]
    fn ticks_are_percentiles() {
        let labels: Vec<String> = ticks(4.2).into_iter().map(|t| t.1).collect();
        assert_eq!(labels, ["0", "50", "90", "99", "99.9", "99.99"]);
    }
}
