//! Figures over a parameter: what the varied key does to each of the figures that matter. Lines where its
//! values are numbers, bars where they are names.

use super::spec::{self, Across, Chart, Line, Points, Stroke, Unit};
use super::{Bar, Figure, Segment, Size};
use crate::identity;
use crate::metrics::{self, Metric, metric_at};
use crate::replicates::{Estimate, Replicates, replicates};
use crate::table::Table;
use leyden_record::RunRecord;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The figures that matter: where the record has each, its heading, and the unit of the axis.
const SHOWN: [(&str, &str, Unit); 9] = [
    ("host.iops", "IOPS", Unit::Iops),
    ("flash.waf", "Write amplification", Unit::Factor),
    ("host.read_latency_us.p99", "Read latency, p99", Unit::Latency),
    ("host.read_latency_us.p9999", "Read latency, p99.99", Unit::Latency),
    ("host.write_latency_us.p99", "Write latency, p99", Unit::Latency),
    ("host.write_latency_us.p9999", "Write latency, p99.99", Unit::Latency),
    ("host.flush_latency_us.p99", "Flush latency, p99", Unit::Latency),
    ("power.energy_mj.max", "Energy of a dump at the peak", Unit::Energy),
    ("recovery.time_ms.max", "Ready after a power cut", Unit::Seconds),
];
/// Fewer experiments than these are told well enough by the table.
const LEAST: usize = 3;
const SEED: &str = "seed";
/// More lines than these are points: of a sample each experiment would be a line of its own.
const MOST_LINES: usize = 2 * super::COLOURS;

/// A run of a table of results.
#[derive(Clone, Debug, Default)]
pub struct SweptRun {
    /// Varied keys and their values, but for the seed.
    pub values: Vec<(String, String)>,
    /// Its figures, by key.
    pub figures: BTreeMap<String, f64>,
}

/// Runs that differ in their seed only.
struct Experiment {
    name: String,
    values: Vec<(String, String)>,
    runs: usize,
    figures: BTreeMap<&'static str, Estimate>,
}

impl Experiment {
    fn of_records(experiment: &Replicates<'_>) -> Self {
        let varied = experiment.records[0].varied.iter().filter(|it| it.key != SEED);
        let figures = registry().filter_map(|it| Some((it.key, experiment.estimate(it)?)));
        Self {
            name: experiment.name.clone(),
            values: varied.map(|it| (it.key.clone(), it.value.clone())).collect(),
            runs: experiment.records.len(),
            figures: figures.collect(),
        }
    }

    fn of_runs(runs: &[&SweptRun]) -> Self {
        let values = runs[0].values.clone();
        let figures = registry().filter_map(|metric| {
            let all: Option<Vec<f64>> =
                runs.iter().map(|run| run.figures.get(metric.key).copied()).collect();
            Some((metric.key, Estimate::of(&all?)?))
        });
        let name = values.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ");
        Self { name, runs: runs.len(), figures: figures.collect(), values }
    }

    fn estimate(&self, metric: &Metric) -> Option<Estimate> {
        self.figures.get(metric.key).copied()
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

fn registry() -> impl Iterator<Item = &'static Metric> {
    metrics::metric_groups().iter().flat_map(|group| group.metrics)
}

/// A figure for each of the figures that matter; none unless a key was varied over several values.
pub(crate) fn figures(records: &[RunRecord]) -> Vec<Figure> {
    let experiments: Vec<Experiment> =
        replicates(records).iter().map(Experiment::of_records).collect();
    let keys = identity::varied_keys(records).into_iter().filter(|key| *key != SEED);
    over(&keys.collect::<Vec<_>>(), &experiments, false)
}

/// As for records, of a table of results; with every other figure of the registry that the table has, if `all`.
pub(crate) fn figures_of_runs(runs: &[SweptRun], all: bool) -> Vec<Figure> {
    let mut places: BTreeMap<&[(String, String)], usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&SweptRun>> = Vec::new();
    for run in runs {
        let place = *places.entry(&run.values).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(run);
    }
    let experiments: Vec<Experiment> =
        groups.iter().map(|runs| Experiment::of_runs(runs)).collect();
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in runs.iter().flat_map(|run| &run.values) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    over(&keys, &experiments, all)
}

fn over(keys: &[&str], experiments: &[Experiment], all: bool) -> Vec<Figure> {
    let Some((&key, others)) = keys.split_first() else { return Vec::new() };
    if experiments.len() < LEAST {
        return Vec::new();
    }
    let sweep = Sweep { key, others, experiments };
    let shown =
        SHOWN.iter().filter_map(|(key, head, unit)| sweep.figure(metric_at(key)?, head, *unit));
    let mut figures: Vec<Figure> = shown.collect();
    let is_other = |metric: &&Metric| SHOWN.iter().all(|(key, ..)| *key != metric.key);
    for metric in registry().filter(is_other).filter(|_| all) {
        figures.extend(sweep.figure(metric, metric.key, unit_of(metric)));
    }
    figures
}

/// The axis of a figure of the registry.
fn unit_of(metric: &Metric) -> Unit {
    match metric.unit {
        metrics::Unit::Factor => Unit::Factor,
        metrics::Unit::Share => Unit::Percent,
        metrics::Unit::Bytes => Unit::Bytes,
        metrics::Unit::MibPerS => Unit::MibPerS,
        metrics::Unit::Micros => Unit::Latency,
        metrics::Unit::Millis | metrics::Unit::Seconds => Unit::Seconds,
        metrics::Unit::Millijoules => Unit::Energy,
        metrics::Unit::Count
        | metrics::Unit::Number
        | metrics::Unit::Mib
        | metrics::Unit::Microfarads => Unit::Commands,
    }
}

/// Experiments by the values of the keys that were varied.
struct Sweep<'a> {
    /// The horizontal axis.
    key: &'a str,
    /// The keys that distinguish lines.
    others: &'a [&'a str],
    experiments: &'a [Experiment],
}

impl Sweep<'_> {
    fn figure(&self, metric: &Metric, head: &str, unit: Unit) -> Option<Figure> {
        if self.experiments.iter().all(|it| it.estimate(metric).is_none_or(|e| e.mean == 0.0)) {
            return None;
        }
        let id = format!("sweep-{}", super::plain(head));
        let mut figure = Figure::new(id, format!("{head} over {}", identity::short(self.key)));
        figure.size = Size::Half;
        figure.table = Some(self.table(metric));
        let seeds = self.experiments.iter().map(|it| it.runs).max().unwrap_or(1);
        figure.note = match seeds {
            1 => "One seed: --seeds 5 shows how sure each point is.".to_owned(),
            _ => format!("Means over {seeds} seeds, with their 95 % confidence."),
        };
        if let Some(lines) = self.lines(metric) {
            return Some(figure.chart(self.chart(lines, metric, unit, head)));
        }
        figure.bars = self.bars(metric);
        Some(figure)
    }

    /// The values of the other keys, by which lines are told apart.
    fn label(&self, experiment: &Experiment) -> String {
        let values = self.others.iter().filter_map(|key| experiment.value(key));
        values.collect::<Vec<_>>().join(" ")
    }

    fn value<'a>(&self, experiment: &'a Experiment) -> &'a str {
        experiment.value(self.key).unwrap_or("")
    }

    /// Lines over the key's values, if they are numbers in one unit.
    fn lines(&self, metric: &Metric) -> Option<Vec<Line>> {
        let numbers: Option<Vec<(f64, &str)>> =
            self.experiments.iter().map(|it| quantity(self.value(it))).collect();
        let numbers = numbers?;
        if numbers.iter().any(|(_, unit)| *unit != numbers[0].1) {
            return None;
        }
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for (experiment, (x, _)) in self.experiments.iter().zip(numbers) {
            let Some(estimate) = experiment.estimate(metric) else { continue };
            let label = self.label(experiment);
            match lines.iter_mut().find(|(known, _)| *known == label) {
                Some((_, points)) => points.push((x, on_axis(metric, estimate.mean))),
                None => lines.push((label, vec![(x, on_axis(metric, estimate.mean))])),
            }
        }
        if lines.len() > MOST_LINES {
            let all = lines.into_iter().flat_map(|(_, points)| points).collect();
            lines = vec![(String::new(), all)];
        }
        let lines = lines.into_iter().enumerate().map(|(colour, (label, mut points))| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let label = if label.is_empty() { metric.label.to_owned() } else { label };
            let (x, y) = points.into_iter().unzip();
            Line { label, colour, stroke: Stroke::Solid, points: Points::Here { x, y } }
        });
        Some(lines.collect())
    }

    fn chart(&self, lines: Vec<Line>, metric: &Metric, unit: Unit, title: &str) -> Chart {
        let all = |pick: fn(&Points) -> &[f64]| {
            lines.iter().flat_map(move |line| pick(&line.points)).copied().collect::<Vec<f64>>()
        };
        let (xs, mut ys) = (all(|points| points.here().0), all(|points| points.here().1));
        let mut spread = self.spread(&lines, metric);
        ys.extend(spread.iter().filter_map(|row| row["high"].as_f64()));
        let unit_name = quantity(self.value(&self.experiments[0])).map_or("", |(_, unit)| unit);
        let name = identity::short(self.key);
        let axis_title =
            if unit_name.is_empty() { name.to_owned() } else { format!("{name} ({unit_name})") };
        let low = xs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = xs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let x = spec::x_axis(
            &json!({"domain": [low, high], "nice": false, "zero": false}),
            &json!({"title": axis_title, "labelExpr": spec::NUMBER}),
        );
        let y = spec::y_axis(unit, &ys);
        // A logarithmic axis has no place for 0: a bar begins where the axis does.
        let foot = y["scale"]["domain"][0].as_f64().unwrap_or(0.0);
        for row in &mut spread {
            row["low"] = row["low"].as_f64().map(|low| low.max(foot)).into();
        }
        let mut spec = spec::line_spec(&lines, &x, &y, "linear", title);
        spec["mark"]["point"] = json!({"filled": true, "size": 36});
        spec["mark"]["clip"] = json!(false); // the first and the last point lie on the edges
        if self.is_scatter(&lines) {
            spec["mark"] = json!({"type": "point", "filled": true, "size": 14});
        }
        if SHOWN.iter().all(|(key, ..)| *key != metric.key) {
            let unit = metric.unit.name();
            let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
            spec["encoding"]["y"]["axis"]["title"] = json!(format!("{}{unit}", metric.label));
        }
        if !spread.is_empty() {
            with_spread(&mut spec, &spread);
        }
        Chart { across: Across::Parameter, unit, lines, rows: Vec::new(), spec }
    }

    /// Whether the points of more lines than can be told apart stand in one.
    fn is_scatter(&self, lines: &[Line]) -> bool {
        lines.len() == 1
            && self.experiments.iter().any(|it| self.label(it) != self.label(&self.experiments[0]))
    }

    /// The confidence of each point of several seeds, as rows of a layer.
    fn spread(&self, lines: &[Line], metric: &Metric) -> Vec<Value> {
        let rows = self.experiments.iter().filter_map(|experiment| {
            let estimate = experiment.estimate(metric)?;
            let half = estimate.half_width?;
            let (x, _) = quantity(self.value(experiment))?;
            let label = self.label(experiment);
            let label = if label.is_empty() { lines.first()?.label.clone() } else { label };
            let low = on_axis(metric, estimate.mean - half);
            let high = on_axis(metric, estimate.mean + half);
            Some(json!({"x": x, "low": low, "high": high, "k": label}))
        });
        rows.collect()
    }

    /// A bar for each experiment.
    fn bars(&self, metric: &Metric) -> Vec<Bar> {
        let means = self.experiments.iter().map(|it| it.estimate(metric).map(|e| e.mean));
        let most = means.clone().flatten().fold(0.0, f64::max);
        let bar = |(experiment, mean): (&Experiment, Option<f64>)| {
            let percent = mean.filter(|_| most > 0.0).map_or(0.0, |mean| mean / most * 100.0);
            let value = metric.text(mean);
            let title = format!("{}: {value}", experiment.name);
            let segments = vec![Segment { colour: 0, percent, title }];
            Bar { label: experiment.name.clone(), value, from_percent: 0.0, segments }
        };
        self.experiments.iter().zip(means).map(bar).collect()
    }

    fn table(&self, metric: &Metric) -> Table {
        let mut table = Table::new(["Experiment", metric.label, "± (95 %)", "Runs"]);
        for experiment in self.experiments {
            let estimate = experiment.estimate(metric);
            table.rows.push(vec![
                experiment.name.clone(),
                metric.text(estimate.map(|estimate| estimate.mean)),
                metric.text(estimate.and_then(|estimate| estimate.half_width)),
                experiment.runs.to_string(),
            ]);
        }
        table
    }
}

/// Puts a bar through each point.
fn with_spread(spec: &mut Value, rows: &[Value]) {
    let bars = json!({
        "data": {"values": rows},
        "mark": {"type": "rule", "strokeWidth": 1.25, "clip": true},
        "encoding": spec::from_low_to_high(&spec["encoding"]),
    });
    spec::between(spec, vec![bars], Vec::new());
}

/// A value in the unit of the axis: spans of time are in seconds there.
fn on_axis(metric: &Metric, value: f64) -> f64 {
    if metric.unit == metrics::Unit::Millis { value / 1e3 } else { value }
}

/// A number and its unit, as a configuration writes it.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim();
    let is_unit = unit.chars().all(|c| c.is_alphabetic() || matches!(c, '%' | '/'));
    Some((number.replace('_', "").parse().ok()?, unit)).filter(|_| is_unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::Varied;

    fn run(op: &str, policy: &str, waf: f64) -> RunRecord {
        let varied = |key: &str, value: &str| Varied { key: key.into(), value: value.into() };
        let mut record = RunRecord { name: format!("{op} {policy}"), ..RunRecord::default() };
        record.varied = vec![varied("device.op", op), varied("device.victim", policy)];
        (record.flash.waf, record.host.bytes_written) = (waf, 1);
        record
    }

    #[test]
    fn numbers_make_lines_and_names_make_bars() {
        let sweep = |values: [&str; 2]| {
            let runs = values.iter().flat_map(|op| [run(op, "a", 2.0), run(op, "b", 3.0)]);
            let records: Vec<_> = runs.collect();
            let figures = figures(&records);
            let waf = figures.into_iter().find(|f| f.title.starts_with("Write ampl")).unwrap();
            (waf.chart.map(|chart| chart.lines), waf.bars.len())
        };
        let (lines, bars) = sweep(["28 %", "7 %"]);
        let lines = lines.unwrap();
        assert_eq!((lines.len(), bars), (2, 0));
        assert_eq!((lines[1].label.as_str(), lines[1].points.here().0), ("b", &[7.0, 28.0][..]));
        let (lines, bars) = sweep(["greedy", "fifo"]);
        assert!(lines.is_none() && bars == 4);
        let (lines, _) = sweep(["7 %", "1 GiB"]);
        assert!(lines.is_none(), "units that differ have no common axis");
    }

    #[test]
    fn points_of_several_seeds_have_their_confidence() {
        let runs = ["7 %", "14 %", "28 %"].into_iter().flat_map(|op| {
            [("1", 2.0), ("2", 2.5)].map(|(seed, waf)| {
                let mut record = run(op, "a", waf);
                record.varied.push(Varied { key: SEED.into(), value: seed.into() });
                record
            })
        });
        let records: Vec<_> = runs.collect();
        let figures = figures(&records);
        let waf = figures.into_iter().find(|it| it.title.starts_with("Write ampl")).unwrap();
        let layers = waf.chart.unwrap().spec["layer"].clone();
        let row = &layers[0]["data"]["values"][0];
        // Two values 0.5 apart: half a width of t(1) * s / sqrt 2 = 12.706 * 0.25.
        let high = row["high"].as_f64().unwrap();
        assert!((high - (2.25 + 12.706 * 0.25)).abs() < 1e-9, "{row}");
        assert_eq!((&row["x"], &row["low"]), (&json!(7.0), &json!(0.0)));
    }

    #[test]
    fn a_bar_on_a_logarithmic_axis_begins_above_zero() {
        let runs = ["7 %", "14 %", "28 %"].into_iter().flat_map(|op| {
            [("1", 100.0), ("2", 300.0)].map(|(seed, p99)| {
                let mut record = run(op, "a", 2.0);
                record.varied.push(Varied { key: SEED.into(), value: seed.into() });
                record.host.writes = 1_000_000;
                record.host.write_latency_us.p99 = p99;
                record
            })
        });
        let records: Vec<_> = runs.collect();
        let figures = figures(&records);
        let p99 =
            figures.into_iter().find(|it| it.title.starts_with("Write latency, p99 ")).unwrap();
        let layers = p99.chart.unwrap().spec["layer"].clone();
        let domain = &layers[1]["encoding"]["y"]["scale"]["domain"];
        let row = &layers[0]["data"]["values"][0];
        // 200 ± 12.706 * 100: the interval reaches far below 0.
        assert!(row["low"] == domain[0] && domain[0].as_f64() > Some(0.0), "{row} {domain}");
    }

    fn table(points: &[(&str, &str, f64)]) -> Vec<SweptRun> {
        let run = |(op, policy, waf): &(&str, &str, f64)| SweptRun {
            values: [("device.op", op), ("device.victim", policy)]
                .map(|(key, value)| (key.to_owned(), (*value).to_owned()))
                .into(),
            figures: [("flash.waf".to_owned(), *waf), ("gc.collections".to_owned(), 7.0)].into(),
        };
        points.iter().map(run).collect()
    }

    #[test]
    fn a_table_of_results_makes_the_same_lines_with_means_over_its_seeds() {
        let runs =
            table(&[("7 %", "a", 2.0), ("7 %", "a", 3.0), ("9 %", "a", 1.5), ("7 %", "b", 4.0)]);
        let figures = figures_of_runs(&runs, false);
        assert_eq!(figures.len(), 1);
        let lines = &figures[0].chart.as_ref().unwrap().lines;
        let (x, y) = lines[0].points.here();
        assert_eq!((lines[0].label.as_str(), x, y), ("a", &[7.0, 9.0][..], &[2.5, 1.5][..]));
        assert_eq!(figures[0].table.as_ref().unwrap().rows[0][3], "2");
        let ids: Vec<String> = figures_of_runs(&runs, true).into_iter().map(|it| it.id).collect();
        assert!(ids.contains(&"sweep-gc-collections".to_owned()), "{ids:?}");
    }

    #[test]
    fn points_of_a_sample_are_no_lines() {
        let names: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let points: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str(), 2.0)).collect();
        let figures = figures_of_runs(&table(&points), false);
        let chart = figures[0].chart.as_ref().unwrap();
        assert_eq!((chart.lines.len(), chart.lines[0].points.here().0.len()), (1, 40));
        assert_eq!(chart.spec["mark"]["type"], "point");
    }

    #[test]
    fn two_runs_are_no_sweep() {
        assert!(figures(&[run("7 %", "a", 2.0), run("9 %", "a", 2.0)]).is_empty());
    }
}
