//! Vega-Lite specifications, and the data the page's script fills them with.
//!
//! A specification names its data `rows`; the script makes rows `{x, v, k}` of a chart's lines, so
//! that a series is stored once however many charts show it. Colours are CSS variables, which is how
//! charts follow the theme (and the printer) without being redrawn.

use super::axes::CUT_OFF_ABOVE;
pub use super::axes::{NUMBER, Unit, cut_off, x_axis, y_axis};
use super::{COLOURS, Key};
use crate::format::rounded;
use crate::run::Run;
use crate::series::Band;
use serde::Serialize;
use serde_json::{Value, json};

/// Widths of lines.
const THICK: f64 = 1.75;
const THIN: f64 = 1.0;

/// The quantity on the horizontal axis of a chart of lines.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Across {
    /// Simulated seconds.
    Time,
    /// The nines of a percentile: -log10(1 - p).
    Nines,
    /// Erases of a block.
    Erases,
    /// The protected share of the mapping table.
    ProtectedShare,
    /// The share of the drive that takes most of the writes.
    Locality,
    /// Reads for each write.
    ReadsPerWrite,
    /// Microfarads.
    Capacitance,
    /// Milliseconds from a power cut on.
    AfterCut,
    /// Writes of the whole drive in a day.
    DriveWrites,
    /// The share of its life that a bank has behind it.
    Age,
    /// The varied key.
    Parameter,
}

/// The stroke of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stroke {
    /// Whole and thick.
    #[default]
    Solid,
    /// Whole and thin: a maximum beside its median.
    Thin,
    /// Dashed, and drawn above all others: one that lies on another line, or a percentile beside its median.
    Dashed,
}

/// One line or one layer of a stack.
#[derive(Clone, Serialize)]
pub struct Line {
    /// Name, unique within the chart.
    pub label: String,
    /// Index into the palette, beyond its end dashed.
    #[serde(skip)]
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Where its points are.
    #[serde(flatten)]
    pub points: Points,
}

/// The points of a line.
#[derive(Clone, Serialize)]
#[serde(untagged)]
pub enum Points {
    /// A column of a run's series.
    Column {
        /// Index of the run.
        run: usize,
        /// Name of the column.
        column: &'static str,
    },
    /// Given here.
    Here {
        /// Ascending.
        x: Vec<f64>,
        /// As long as `x`.
        y: Vec<f64>,
    },
}

impl Points {
    /// The points given here; none of a column.
    pub fn here(&self) -> (&[f64], &[f64]) {
        match self {
            Self::Here { x, y } => (x, y),
            Self::Column { .. } => (&[], &[]),
        }
    }
}

/// A chart as it travels to the page.
#[derive(Clone, Serialize)]
pub struct Chart {
    /// The horizontal axis.
    pub across: Across,
    /// The unit of the values.
    pub unit: Unit,
    /// Lines, from the front to the back, or layers from the bottom to the top.
    pub lines: Vec<Line>,
    /// Rows that are not made of lines (a histogram's bars).
    pub rows: Vec<Value>,
    /// The Vega-Lite specification.
    pub spec: Value,
}

impl Chart {
    /// The legend; none where there is only one thing to tell apart.
    pub fn keys(&self) -> Vec<Key> {
        if self.lines.len() < 2 {
            return Vec::new();
        }
        let keys = self.lines.iter().map(|line| Key {
            label: line.label.clone(),
            colour: line.colour % COLOURS,
            thin: line.stroke == Stroke::Thin,
            dashed: line.colour >= COLOURS || line.stroke == Stroke::Dashed,
        });
        keys.collect()
    }
}

/// The end of the horizontal axis: where the runs start and end.
pub(crate) fn time_domain(runs: &[Run]) -> [f64; 2] {
    let with_series = || runs.iter().filter(|r| !r.columns.time.is_empty());
    let start = with_series().map(|r| r.columns.start);
    let end = with_series().filter_map(|r| r.columns.time.last().copied());
    [start.reduce(f64::min).unwrap_or(0.0), end.reduce(f64::max).unwrap_or(1.0)]
}

/// When the power was cut, in seconds of the axis of time, over all `runs`.
fn cuts(runs: &[Run]) -> Vec<f64> {
    let made = |run: &Run| {
        let start = run.record.series.start_s;
        let cuts = run.record.power.iter().flat_map(|power| &power.made);
        cuts.map(|cut| rounded(cut.at_s - start)).collect::<Vec<f64>>()
    };
    let mut cuts: Vec<f64> = runs.iter().flat_map(made).filter(|at| *at >= 0.0).collect();
    cuts.sort_by(f64::total_cmp);
    cuts.dedup();
    cuts
}

/// More runs in a chart than these, and bands would hide lines.
const MOST_BANDS: usize = 3;

/// Whether bands are drawn behind `lines`.
pub(crate) fn is_banded(runs: &[Run], lines: &[Line]) -> bool {
    lines.len() <= MOST_BANDS && lines.iter().any(|line| band(runs, line).is_some())
}

/// The highest value of a band that the axis shows, and the highest there is, if that lies beyond the
/// axis: lines under bands of many times their height would be flat.
pub(super) fn cut_band(runs: &[Run], lines: &[Line], unit: Unit) -> Option<(f64, f64)> {
    // The axis of latencies is logarithmic, that of shares ends at 1.
    if matches!(unit, Unit::Latency | Unit::Percent | Unit::Hits) || !is_banded(runs, lines) {
        return None;
    }
    let values: Vec<f64> = column_values(runs, lines).flatten().copied().collect();
    // An axis of factors is made for the lines: a band of their peaks would stretch it.
    let usual = match cut_off(&values) {
        Some((usual, _)) if unit == Unit::Factor => usual,
        _ => values.iter().copied().fold(0.0, f64::max) * CUT_OFF_ABOVE,
    };
    let top = band_values(runs, lines).fold(0.0, f64::max);
    (top > usual && usual > 0.0).then_some((usual, top))
}

/// The points of the lines that are columns of runs, gaps included.
pub(super) fn column_values<'a>(
    runs: &'a [Run],
    lines: &'a [Line],
) -> impl Iterator<Item = &'a Option<f64>> {
    let columns = lines.iter().filter_map(|line| match &line.points {
        Points::Column { run, column } => runs[*run].columns.values.get(column),
        Points::Here { .. } => None,
    });
    columns.flatten()
}

fn band_values<'a>(runs: &'a [Run], lines: &'a [Line]) -> impl Iterator<Item = f64> + 'a {
    let bands = lines.iter().filter_map(|line| band(runs, line));
    bands.flat_map(|band| band.high.iter().flatten().copied())
}

fn band<'a>(runs: &'a [Run], line: &Line) -> Option<&'a Band> {
    match line.points {
        Points::Column { run, column } => runs[run].columns.bands.get(column),
        Points::Here { .. } => None,
    }
}

/// Puts a band behind each line that has one, and a mark over each power cut.
fn layered(mut spec: Value, runs: &[Run], lines: &[Line]) -> Value {
    let banded = is_banded(runs, lines);
    let cuts = cuts(runs);
    if !banded && cuts.is_empty() {
        return spec;
    }
    let x = spec["encoding"]["x"].clone();
    let mut below = Vec::new();
    if banded {
        below.push(json!({
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "area", "interpolate": spec["mark"]["interpolate"], "opacity": 0.2, "clip": true},
            "encoding": from_low_to_high(&spec["encoding"]),
        }));
    }
    let mut above = Vec::new();
    if !cuts.is_empty() {
        let at: Vec<Value> = cuts.iter().map(|at| json!({"x": at})).collect();
        above.push(json!({
            "data": {"values": at},
            "mark": {"type": "rule", "color": "var(--worse)", "strokeDash": [4, 3], "strokeWidth": 1.25},
            "encoding": {"x": x},
        }));
    }
    between(&mut spec, below, above);
    spec
}

/// Makes the marks of `spec` one layer, with others below and above it.
pub(super) fn between(spec: &mut Value, below: Vec<Value>, above: Vec<Value>) {
    let mut marks = json!({});
    if let Some(parts) = spec.as_object_mut() {
        for part in ["mark", "encoding"] {
            marks[part] = parts.remove(part).unwrap_or_default();
        }
    }
    spec["layer"] = below.into_iter().chain([marks]).chain(above).collect();
}

/// Puts a named vertical rule over a chart of lines at each of `marks`. Names stand on the side that has more room, each
/// below the one before.
pub fn with_marks(spec: &mut Value, marks: &[(f64, String)]) {
    let x = spec["encoding"]["x"].clone();
    let rows: Vec<Value> = marks.iter().map(|(x, name)| json!({"x": x, "name": name})).collect();
    let rule = json!({
        "data": {"values": rows},
        "mark": {"type": "rule", "color": "var(--worse)", "strokeDash": [4, 3], "strokeWidth": 1.25},
        "encoding": {"x": x},
    });
    let names = rows.iter().zip(marks).enumerate().flat_map(|(number, (row, (at, _)))| {
        let (align, dx) =
            if share_of(&x["scale"], *at) < 0.5 { ("left", 5) } else { ("right", -5) };
        let name = |(colour, stroke_px)| {
            json!({
                "data": {"values": [row]},
                "mark": {
                    "type": "text", "align": align, "baseline": "top", "dx": dx,
                    "color": colour, "stroke": colour, "strokeWidth": stroke_px,
                },
                "encoding": {"x": x, "y": {"value": 4 + 14 * number}, "text": {"field": "name"}},
            })
        };
        // The first one takes out the lines behind the letters.
        [("var(--surface)", 4), ("var(--ink)", 0)].map(name)
    });
    let above = std::iter::once(rule).chain(names).collect();
    between(spec, Vec::new(), above);
}

/// Where `at` lies on an axis whose ends are given, from 0 to 1; elsewhere at its end.
fn share_of(scale: &Value, at: f64) -> f64 {
    let [Some(low), Some(high)] = [0, 1].map(|end| scale["domain"][end].as_f64()) else {
        return 1.0;
    };
    if scale["type"] == "log" {
        (at / low).ln() / (high / low).ln()
    } else {
        (at - low) / (high - low)
    }
}

/// The channels of marks that reach from a row's `low` to its `high`.
pub(super) fn from_low_to_high(encoding: &Value) -> Value {
    let mut y = encoding["y"].clone();
    y["field"] = json!("low");
    json!({"x": encoding["x"], "y": y, "y2": {"field": "high"}, "color": encoding["color"]})
}

/// Says what the marks of a chart over time are; empty if there are none.
pub(crate) fn key_to_marks(runs: &[Run]) -> &'static str {
    if cuts(runs).is_empty() { "" } else { "Dashed and vertical: the power was cut." }
}

/// Whether most points of the columns are gaps.
fn is_sparse(runs: &[Run], lines: &[Line]) -> bool {
    let points = || column_values(runs, lines);
    points().filter(|value| value.is_none()).count() * 2 > points().count()
}

/// A chart of lines over time.
pub(crate) fn lines_over_time(
    runs: &[Run],
    lines: Vec<Line>,
    unit: Unit,
    description: &str,
) -> Chart {
    let mut values: Vec<f64> = column_values(runs, &lines).flatten().copied().collect();
    match cut_band(runs, &lines, unit) {
        Some((shown, _)) => values.push(shown),
        None if is_banded(runs, &lines) => values.extend(band_values(runs, &lines)),
        None => {}
    }
    let x = x_axis(
        &json!({"domain": time_domain(runs), "nice": false, "zero": false}),
        &json!({"title": "simulated time (s)"}),
    );
    let is_here = lines.iter().all(|line| matches!(line.points, Points::Here { .. }));
    let values = if is_here {
        lines.iter().flat_map(|line| line.points.here().1).copied().collect()
    } else {
        values
    };
    let interpolate = if is_here { "linear" } else { "step-before" };
    let mut spec = line_spec(&lines, &x, &y_axis(unit, &values), interpolate, description);
    if is_sparse(runs, &lines) {
        // Steps of one interval each would be specks; the script leaves out where they begin.
        spec["mark"] = json!({"type": "point", "filled": true, "size": 14, "clip": true});
        spec["usermeta"] = json!({"points": true});
        for channel in ["strokeWidth", "strokeOpacity", "strokeDash"] {
            spec["encoding"].as_object_mut().map(|parts| parts.remove(channel));
        }
    }
    let spec = layered(spec, runs, &lines);
    Chart { across: Across::Time, unit, lines, rows: Vec::new(), spec }
}

/// Layers on top of each other over time, up to `top` on the vertical axis.
pub(crate) fn stack_over_time(
    runs: &[Run],
    lines: Vec<Line>,
    unit: Unit,
    top: f64,
    description: &str,
) -> Chart {
    let x = x_axis(
        &json!({"domain": time_domain(runs), "nice": false, "zero": false}),
        &json!({"title": "simulated time (s)"}),
    );
    let mut y = y_axis(unit, &[top]);
    y["stack"] = json!("zero");
    let spec = json!({
        "description": description,
        "width": "container",
        "height": 220,
        "data": {"name": "rows"},
        "mark": {"type": "area", "interpolate": "step-before", "fillOpacity": 0.9},
        "encoding": {
            "x": x,
            "y": y,
            "order": {"field": "i", "type": "quantitative"},
            "color": colour_channel(&lines),
        },
    });
    let spec = layered(spec, runs, &lines);
    Chart { across: Across::Time, unit, lines, rows: Vec::new(), spec }
}

/// A specification of lines whose points are `x`, `v`, told apart by `k`.
pub fn line_spec(
    lines: &[Line],
    x: &Value,
    y: &Value,
    interpolate: &str,
    description: &str,
) -> Value {
    let labels: Vec<&str> = lines.iter().map(|l| l.label.as_str()).collect();
    let all_thin = lines.iter().all(|l| l.stroke == Stroke::Thin);
    let per_line = |value: &dyn Fn(&Line) -> Value| {
        let range: Vec<Value> = lines.iter().map(value).collect();
        // Ordinal, or the first two of the range would be taken for its ends.
        let scale = json!({"type": "ordinal", "domain": labels, "range": range});
        json!({"field": "k", "type": "ordinal", "scale": scale, "legend": null})
    };
    let mut spec = json!({
        "description": description,
        "width": "container",
        "height": 220,
        "data": {"name": "rows"},
        "mark": {"type": "line", "interpolate": interpolate, "strokeJoin": "round", "clip": true,
                 "strokeWidth": if all_thin { THIN } else { THICK },
                 "strokeOpacity": if all_thin { 0.75 } else { 1.0 }},
        "encoding": {"x": x, "y": y, "color": colour_channel(lines)},
    });
    // Only what tells lines apart is a channel: a scale of one value is not a constant to Vega.
    if lines.iter().any(|l| l.stroke == Stroke::Thin) && !all_thin {
        let is_thin = |l: &Line| l.stroke == Stroke::Thin;
        spec["encoding"]["strokeWidth"] =
            per_line(&|l| json!(if is_thin(l) { THIN } else { THICK }));
        spec["encoding"]["strokeOpacity"] =
            per_line(&|l| json!(if is_thin(l) { 0.6 } else { 1.0 }));
    }
    if lines.iter().any(|l| l.colour >= COLOURS || l.stroke == Stroke::Dashed) {
        spec["encoding"]["strokeDash"] = per_line(&|l| match (l.colour / COLOURS, l.stroke) {
            (_, Stroke::Dashed) => json!([6, 5]),
            (0, _) => json!([1, 0]),
            (n, _) => json!([4 * n, 2]),
        });
    }
    spec
}

/// Colours of the lines, as CSS variables.
fn colour_channel(lines: &[Line]) -> Value {
    let labels: Vec<&str> = lines.iter().map(|l| l.label.as_str()).collect();
    let range = lines.iter().map(|l| format!("var(--c{})", l.colour % COLOURS));
    let range: Vec<String> = range.collect();
    json!({
        "field": "k",
        "type": "nominal",
        "sort": null,
        "scale": {"domain": labels, "range": range},
        "legend": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::{RunRecord, Series};

    /// The chart of intervals in which `one_in` has 1,000 commands and the others none.
    fn bursts(one_in: u32) -> (Chart, Option<(f64, f64)>) {
        let n = 6000_u32;
        let series = Series {
            interval_s: 1.0,
            time_s: (1..=n).map(f64::from).collect(),
            read_iops: (0..n).map(|i| f64::from(i % one_in / (one_in - 1)) * 1000.0).collect(),
            ..Series::default()
        };
        let records = [RunRecord { series, ..RunRecord::default() }];
        let line = Line {
            label: "reads".into(),
            colour: 0,
            stroke: Stroke::Solid,
            points: Points::Column { run: 0, column: "read_iops" },
        };
        let runs = Run::all(&records);
        let cut = cut_band(&runs, std::slice::from_ref(&line), Unit::Iops);
        (lines_over_time(&runs, vec![line], Unit::Iops, ""), cut)
    }

    #[test]
    fn names_of_marks_stand_where_there_is_room() {
        let x = x_axis(&json!({"type": "log", "domain": [0.1, 1_000]}), &json!({}));
        let mut spec = line_spec(&[], &x, &y_axis(Unit::Years, &[1.0]), "linear", "");
        with_marks(&mut spec, &[(500.0, "right".to_owned()), (0.9, "left".to_owned())]);
        let placed = |layer: usize| {
            let part = &spec["layer"][layer];
            (part["mark"]["align"].clone(), part["encoding"]["y"]["value"].clone())
        };
        assert_eq!(placed(2), ("right".into(), 4.into()));
        assert_eq!(placed(5), ("left".into(), 18.into()));
        assert_eq!(share_of(&json!({"domain": [0, 4]}), 1.0).to_bits(), 0.25_f64.to_bits());
    }

    #[test]
    fn bands_lie_within_the_axis() {
        let (chart, cut) = bursts(2);
        let [band, lines] = [0, 1].map(|layer| &chart.spec["layer"][layer]["encoding"]["y"]);
        assert_eq!(lines["scale"]["domain"], json!([0, 1000.0]));
        assert_eq!((&band["scale"], &band["field"]), (&lines["scale"], &json!("low")));
        assert_eq!(cut, None);
    }

    #[test]
    fn a_band_of_many_times_the_line_is_cut_off_and_told() {
        let (chart, cut) = bursts(10);
        let top = chart.spec["layer"][1]["encoding"]["y"]["scale"]["domain"][1].as_f64().unwrap();
        let (shown, highest) = cut.unwrap();
        assert!((shown - top).abs() < 1e-6 && top < 400.0, "{top} for a line at 100");
        assert!((highest - 1000.0).abs() < 1e-9);
    }
}
