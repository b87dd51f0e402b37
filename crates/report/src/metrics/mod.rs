//! The registry of figures: each has one key, label, unit, better direction and source, in `groups.rs`. The table of
//! `leyden run`, comparisons, reports (tables, cards, plots over a parameter), CSV, the reference page and the schema of
//! records are made from it.

mod groups;
mod notes;
mod unit;

pub use groups::PERCENTILES;
pub use unit::Unit;

use crate::format;
use groups::GROUPS;
use leyden_record::{Latency, RunRecord};
use serde_json::json;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is.
    Higher,
    /// Less is.
    Lower,
    /// Neither: a count, since more work counts more, or a figure of the machine that simulated it.
    Neutral,
}

impl Better {
    /// `higher` or `lower`.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Higher => Some("higher"),
            Self::Lower => Some("lower"),
            Self::Neutral => None,
        }
    }
}

/// A figure of a record.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Where the record has it; a derived figure stands beside its inputs there.
    pub key: &'static str,
    /// Its name, below that of its group.
    pub label: &'static str,
    /// The record's unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Of a figure that the record has not: how it follows from others.
    pub formula: &'static str,
    /// One of the few that a comparison begins with.
    pub is_key: bool,
    /// The table of a run gives it a row. Others stand in rows of several figures there.
    pub is_row: bool,
    /// A report shows it in large type above this sentence.
    pub card: Option<fn(&RunRecord) -> String>,
    source: Source,
}

/// How a figure is read from a record.
#[derive(Clone, Copy, Debug)]
enum Source {
    Value(fn(&RunRecord) -> Option<f64>),
    /// Of latencies, if there were enough.
    Latency(fn(&RunRecord) -> (u64, &Latency), &'static Percentile),
}

/// Figures under a heading.
#[derive(Clone, Copy, Debug)]
pub struct MetricGroup {
    /// The heading.
    pub title: &'static str,
    /// The figures.
    pub metrics: &'static [Metric],
}

impl Metric {
    /// Its value, in its unit; none where there was nothing to measure, or too few samples.
    pub fn of(&self, record: &RunRecord) -> Option<f64> {
        let value = match self.source {
            Source::Value(get) => get(record),
            Source::Latency(of, percentile) => {
                let (samples, latency) = of(record);
                percentile.of(samples, latency)
            }
        };
        value.filter(|value| value.is_finite())
    }

    /// The samples that it needs to mean something.
    pub fn least_samples(&self) -> u64 {
        match self.source {
            Source::Value(_) => 1,
            Source::Latency(_, percentile) => percentile.least_samples,
        }
    }

    /// A value of it as text, with its unit.
    pub fn text(&self, value: Option<f64>) -> String {
        value.map_or_else(|| format::DASH.to_owned(), |value| self.unit.text(value))
    }

    /// The value over that of the first run; none if there is no such ratio.
    pub fn ratio(first: Option<f64>, value: Option<f64>) -> Option<f64> {
        first.zip(value).filter(|(first, _)| *first != 0.0).map(|(first, value)| value / first)
    }

    /// Whether a ratio over the first run is "better" or "worse"; empty if neither. Differences below one
    /// per cent are none.
    pub fn verdict(&self, ratio: f64) -> &'static str {
        let (up, down) = (ratio > 1.01, ratio < 0.99);
        match self.better {
            Better::Higher if up => "better",
            Better::Higher if down => "worse",
            Better::Lower if up => "worse",
            Better::Lower if down => "better",
            _ => "",
        }
    }
}

/// The figure that the record has at `key`.
pub fn metric_at(key: &str) -> Option<&'static Metric> {
    GROUPS.iter().flat_map(|group| group.metrics).find(|metric| metric.key == key)
}

/// Every figure, by group, in reading order.
pub const fn metric_groups() -> &'static [MetricGroup] {
    GROUPS
}

/// The figures of the group with this title; none if there is no such group.
pub fn metrics_of(title: &str) -> &'static [Metric] {
    GROUPS.iter().find(|group| group.title == title).map_or(&[], |group| group.metrics)
}

/// The published schema of a run record: its names, and in `x-metrics` every figure with its key, label, unit and
/// better direction.
pub fn record_schema() -> schemars::Schema {
    let mut schema = RunRecord::schema();
    let described = GROUPS.iter().flat_map(|group| {
        group.metrics.iter().map(|metric| {
            let mut entry = json!({
                "key": metric.key, "group": group.title, "label": metric.label, "unit": metric.unit.name(),
                "better": metric.better.name(), "least_samples": metric.least_samples(),
            });
            if !metric.formula.is_empty() {
                entry["formula"] = metric.formula.into();
            }
            entry
        })
    });
    schema.insert("x-metrics".to_owned(), described.collect());
    schema
}

/// The mean of shares, if there are any.
fn mean_of(shares: &[f64]) -> Option<f64> {
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// A percentile of latencies, their mean or their largest.
#[derive(Clone, Copy, Debug)]
pub struct Percentile {
    /// Its name.
    pub label: &'static str,
    /// It says nothing of fewer samples: ten of them lie beyond it.
    pub least_samples: u64,
    get: fn(&Latency) -> f64,
}

impl Percentile {
    /// Of `samples` latencies; none if they are too few, or the record is of a version that does not have it.
    pub fn of(&self, samples: u64, latency: &Latency) -> Option<f64> {
        let value = (self.get)(latency);
        (samples >= self.least_samples && value > 0.0).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(title: &str, label: &str) -> &'static Metric {
        let group = GROUPS.iter().find(|group| group.title == title).unwrap();
        group.metrics.iter().find(|metric| metric.label == label).unwrap()
    }

    #[test]
    fn figures_of_the_machine_are_never_judged() {
        let simulation = GROUPS.iter().find(|group| group.title == "Simulation").unwrap();
        for metric in simulation.metrics {
            assert_eq!((metric.verdict(0.1), metric.verdict(10.0)), ("", ""), "{}", metric.label);
            assert!(!metric.is_key, "{}", metric.label);
        }
    }

    #[test]
    fn every_key_is_a_name_of_the_record_and_stands_once() {
        let root = RunRecord::schema().to_value();
        let mut seen = std::collections::BTreeSet::new();
        for metric in GROUPS.iter().flat_map(|group| group.metrics) {
            assert!(seen.insert(metric.key), "{} twice", metric.key);
            assert_eq!(metric_at(metric.key).unwrap().label, metric.label);
            let mut at = &root;
            for part in metric.key.split('.') {
                let known = &at["properties"][part];
                assert!(known.is_object() || !metric.formula.is_empty(), "{}", metric.key);
                let named = known["$ref"].as_str().or(known["anyOf"][0]["$ref"].as_str());
                at = named.and_then(|name| root.pointer(&name[1..])).unwrap_or(known);
            }
        }
    }

    /// A record of which every number is another.
    fn distinct() -> serde_json::Value {
        fn number(value: &mut serde_json::Value, next: &mut u64) {
            match value {
                serde_json::Value::Object(parts) => {
                    parts.values_mut().for_each(|part| number(part, next));
                }
                serde_json::Value::Number(_) => {
                    *next += 1;
                    *value = (*next).into();
                }
                _ => {}
            }
        }
        let mut record = RunRecord {
            cache: Some(leyden_record::Cache::default()),
            hints: Some(leyden_record::Hints {
                known_dirty_share: Some(0.0),
                known_overwrite_share: Some(0.0),
                ..Default::default()
            }),
            zones: Some(leyden_record::Zones {
                store: Some(leyden_record::Store::default()),
                ..Default::default()
            }),
            zoned_block: Some(leyden_record::ZonedBlock::default()),
            power: Some(leyden_record::Power::default()),
            recovery: Some(leyden_record::Recovery::default()),
            ..RunRecord::default()
        };
        record.steadiness.precondition = Some(leyden_record::Settling::default());
        record.host.recorded_s = Some(0.0);
        let mut value = serde_json::to_value(record).unwrap();
        number(&mut value, &mut 1_000_000);
        value
    }

    #[test]
    fn a_figure_is_the_number_that_stands_at_its_key() {
        let value = distinct();
        let record: RunRecord = serde_json::from_value(value.clone()).unwrap();
        let (mut compared, mut lists) = (0, Vec::new());
        for metric in GROUPS.iter().flat_map(|group| group.metrics) {
            let stands = value.pointer(&format!("/{}", metric.key.replace('.', "/")));
            match stands {
                Some(number) if number.is_number() => {
                    assert_eq!(metric.of(&record), number.as_f64(), "{}", metric.key);
                    compared += 1;
                }
                // The mean of a list.
                Some(list) if list.is_array() => lists.push(metric.key),
                _ => assert!(!metric.formula.is_empty(), "{}", metric.key),
            }
        }
        assert!(compared > 100, "{compared}");
        assert_eq!(lists, ["utilisation.dies", "utilisation.channels"]);
    }

    #[test]
    fn every_figure_is_in_the_csv_and_in_the_schema() {
        let mut record: RunRecord = serde_json::from_value(distinct()).unwrap();
        record.utilisation.dies = vec![0.5];
        record.utilisation.channels = vec![0.25];
        let csv = crate::csv(&[record]);
        let schema = record_schema().to_value();
        for metric in GROUPS.iter().flat_map(|group| group.metrics) {
            let is_column = csv.lines().next().unwrap().split(',').any(|name| name == metric.key);
            assert!(is_column, "{}", metric.key);
            let listed = schema["x-metrics"].as_array().unwrap();
            assert!(listed.iter().any(|entry| entry["key"] == metric.key), "{}", metric.key);
        }
    }

    #[test]
    fn a_percentile_of_few_samples_is_none() {
        let mut record = RunRecord::default();
        record.host.write_latency_us =
            Latency { p50: 1.0, p99: 2.0, p999: 3.0, p9999: 4.0, ..Latency::default() };
        for (writes, known) in [(19, 0), (20, 1), (999, 1), (1_000, 2), (99_999, 3), (100_000, 4)] {
            record.host.writes = writes;
            let of = |percentile: &&Percentile| {
                percentile.of(writes, &record.host.write_latency_us).is_some()
            };
            assert_eq!(PERCENTILES.iter().filter(of).count(), known, "{writes}");
            let p99 = metric_at("host.write_latency_us.p99").unwrap();
            assert_eq!(p99.of(&record).is_some(), known >= 2, "{writes}");
        }
    }

    #[test]
    fn fewer_erases_for_the_same_data_are_better() {
        let metric = find("Flash", "Block erases per GiB written");
        assert_eq!((metric.verdict(0.829), metric.verdict(1.2)), ("better", "worse"));
        let mut record = RunRecord::default();
        assert_eq!(metric.of(&record), None);
        (record.host.bytes_written, record.flash.erases) = (2 << 30, 10);
        assert_eq!(metric.text(metric.of(&record)), "5.000");
    }
}
