//! Small multiples over time: of more runs than fit into one picture, a panel each, with common axes and the others in
//! grey. They are SVG that needs no script: dozens of them are there at once.

use super::over_time::{self, Part, Subject};
use super::spec::{self, Chart, Unit};
use super::{COLOURS, Figure, Size};
use crate::format;
use crate::run::Run;
use serde::Serialize;
use std::fmt::Write as _;

/// More panels than these say less than a figure over the parameter.
pub(crate) const MOST_PANELS: usize = 16;
/// The drawing's own units; the page stretches it to the panel's width.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 100.0;

/// The panels of a figure.
#[derive(Serialize)]
pub(crate) struct Panels {
    /// The figure's id, of which the names of its lines are made.
    id: String,
    /// The top of the vertical axis.
    top: String,
    /// Its foot.
    foot: String,
    /// Both ends of the horizontal axis.
    ends: [String; 2],
    runs: Vec<Panel>,
    /// The same for whoever draws without the page's SVG: `figure.js` makes a panel of each line.
    #[serde(skip)]
    pub(crate) chart: Chart,
}

/// One run.
#[derive(Serialize)]
struct Panel {
    label: String,
    colour: usize,
    /// The drawing's commands; empty for a run without values.
    path: String,
    /// The same in words.
    words: String,
}

/// The vertical axis of all panels.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Axis {
    fn of(unit: Unit, values: &[f64]) -> Self {
        let top = values.iter().copied().fold(0.0, f64::max);
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        match unit {
            Unit::Latency => {
                let low = positive.fold(f64::INFINITY, f64::min);
                let decade = |value: f64, round: fn(f64) -> f64| 10_f64.powf(round(value.log10()));
                let (low, high) = (decade(low, f64::floor), decade(top, f64::ceil));
                Self { low, high: if high > low { high } else { low * 10.0 }, is_log: true }
            }
            Unit::Factor => {
                let high = spec::cut_off(values).map_or(top, |(usual, _)| usual);
                Self { low: 0.0, high, is_log: false }
            }
            _ => Self { low: 0.0, high: top, is_log: false },
        }
    }

    /// The height of a value, from the top down.
    fn height(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.is_log {
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        HEIGHT * (1.0 - share)
    }
}

/// Panels of the figures that one looks at first.
pub(crate) fn figures(runs: &[Run]) -> Vec<Figure> {
    let parts = over_time::looked_at_first();
    parts.into_iter().filter_map(|(subject, part)| figure(runs, subject, part)).collect()
}

fn figure(runs: &[Run], subject: &Subject, part: &Part) -> Option<Figure> {
    let columns = || runs.iter().filter_map(|run| run.columns.values.get(part.column));
    let values: Vec<f64> = columns().flatten().flatten().copied().collect();
    if !values.iter().any(|value| *value > 0.0) {
        return None;
    }
    let axis = Axis::of(subject.unit, &values);
    let time @ [start, end] = spec::time_domain(runs);
    let id = over_time::id_of(subject, part);
    let panels = runs.iter().enumerate().map(|(index, run)| Panel {
        label: run.label.clone(),
        colour: index % COLOURS,
        path: path(run, part.column, axis, time),
        words: words(run, part.column, subject.unit),
    });
    let mut figure = Figure::new(&id, over_time::title_of(subject, part));
    figure.size = Size::Wide;
    let show = |value| over_time::show(subject.unit, value);
    let highest = values.iter().copied().fold(0.0, f64::max);
    if highest > axis.high {
        figure.note = format!("Peaks of up to {} are cut off.", show(highest));
    } else if axis.is_log {
        "The vertical axis is logarithmic.".clone_into(&mut figure.note);
    }
    figure.table = Some(over_time::table_of(runs, part.column, subject.unit));
    figure.panels = Some(Panels {
        chart: chart(runs, subject, part, &figure.title),
        id,
        top: show(axis.high),
        foot: if axis.is_log { show(axis.low) } else { "0".to_owned() },
        ends: [format::seconds(start), format::seconds(end)],
        runs: panels.collect(),
    });
    Some(figure)
}

/// A chart of all runs, marked as one of panels.
fn chart(runs: &[Run], subject: &Subject, part: &Part, title: &str) -> Chart {
    let lines = over_time::lines_of(runs, 0..runs.len(), part.column);
    let mut chart = spec::lines_over_time(runs, lines, subject.unit, title);
    chart.spec["usermeta"]["panels"] = true.into();
    chart
}

/// The steps of a line, in whole units: a value holds for the interval that ends at its time.
fn path(run: &Run, column: &str, axis: Axis, [start, end]: [f64; 2]) -> String {
    let Some(values) = run.columns.values.get(column) else { return String::new() };
    let span = (end - start).max(f64::MIN_POSITIVE);
    let x_of = |time: f64| (WIDTH * (time - start) / span).round() as i32;
    // Stretches of one height, and where each begins and ends.
    let mut stretches: Vec<(i32, i32, i32)> = Vec::new();
    let mut from = x_of(run.columns.start);
    for (&until, value) in run.columns.time.iter().zip(values) {
        let until = x_of(until);
        if let Some(value) = value {
            let y = axis.height(*value).round() as i32;
            match stretches.last_mut() {
                Some((height, _, last)) if *height == y && *last == from => *last = until,
                _ => stretches.push((y, from, until)),
            }
        }
        from = until;
    }
    let mut path = String::new();
    let mut at = None;
    for (y, from, until) in stretches {
        // Writing to a string does not fail.
        let _ = if at == Some(from) {
            write!(path, "V{y}H{until}")
        } else {
            write!(path, "M{from} {y}H{until}")
        };
        at = Some(until);
    }
    path
}

/// Least, median and greatest value.
fn words(run: &Run, column: &str, unit: Unit) -> String {
    let values = run.columns.values.get(column).into_iter().flatten().flatten();
    let mut values: Vec<f64> = values.copied().collect();
    values.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else {
        return "no values".to_owned();
    };
    let show = |value: f64| over_time::show(unit, value);
    let median = show(values[values.len() / 2]);
    format!("from {} to {}, median {median}", show(*least), show(*most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::{RunRecord, Series};

    /// Runs of three intervals: the second has no write in it.
    fn records(count: usize) -> Vec<RunRecord> {
        let record = |number: usize| {
            let rate = 100.0 * (number + 1) as f64;
            let series = Series {
                interval_s: 1.0,
                time_s: vec![1.0, 2.0, 3.0, 4.0],
                write_iops: vec![rate, 0.0, rate, rate / 2.0],
                write_p99_us: vec![50.0, 0.0, 2_000.0, 50.0],
                waf: vec![1.0, 0.0, 2.0, 2.0],
                ..Series::default()
            };
            RunRecord { name: format!("run {number}"), series, ..RunRecord::default() }
        };
        (0..count).map(record).collect()
    }

    #[test]
    fn panels_have_common_axes_and_gaps() {
        let records = records(8);
        let runs = Run::all(&records);
        let figure =
            figure(&runs, over_time::looked_at_first()[1].0, over_time::looked_at_first()[1].1)
                .unwrap();
        let panels = figure.panels.unwrap();
        assert_eq!((panels.top.as_str(), panels.foot.as_str()), ("800.0/s", "0"));
        assert_eq!(panels.ends, [0.0, 4.0].map(format::seconds));
        // Of the last run the highest line, at the top; of the first one an eighth of that.
        assert!(panels.runs[7].path.starts_with("M0 0H80V100H160"), "{}", panels.runs[7].path);
        assert!(panels.runs[0].path.starts_with("M0 88H80V100H160"), "{}", panels.runs[0].path);
        assert_eq!(panels.runs[0].words, "from 0/s to 100.0/s, median 100.0/s");
    }

    #[test]
    fn a_gap_is_no_line_and_latencies_have_whole_decades() {
        let records = records(1);
        let runs = Run::all(&records);
        let axis = Axis::of(Unit::Latency, &[50.0, 2_000.0]);
        assert_eq!((axis.low.round(), axis.high.round()), (10.0, 10_000.0));
        assert!((axis.height(100.0) - HEIGHT * 2.0 / 3.0).abs() < 1e-9);
        let axis = Axis { low: 0.0, high: 2.0, is_log: false };
        assert_eq!(path(&runs[0], "waf", axis, [0.0, 4.0]), "M0 50H80M160 0H320");
    }
}
