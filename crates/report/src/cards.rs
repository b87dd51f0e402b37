//! The figures of a single run in large type: those to which the registry gives a sentence, and the latencies.

use crate::format;
use crate::metrics::{Metric, metric_groups, metrics_of};
use leyden_record::RunRecord;
use serde::Serialize;

/// A figure in large type with a sentence below.
#[derive(Default, Serialize)]
pub struct Card {
    /// Its name.
    pub label: &'static str,
    /// Its number.
    pub value: String,
    /// The number's unit; may be empty.
    pub unit: String,
    /// A sentence below it; may be empty.
    pub note: String,
}

/// Latencies of one kind of command.
#[derive(Serialize)]
pub(crate) struct LatencyCard {
    label: &'static str,
    /// The sentence that replaces the numbers.
    nothing: Option<&'static str>,
    numbers: Vec<Number>,
    note: String,
}

/// One number of a [`LatencyCard`].
#[derive(Serialize)]
struct Number {
    label: &'static str,
    value: String,
    unit: String,
}

/// The figures of the registry with a sentence; also a key figure that was not measured, if others of its group were.
pub(crate) fn cards(record: &RunRecord) -> Vec<Card> {
    let mut cards = Vec::new();
    for group in metric_groups() {
        let is_measured = group.metrics.iter().any(|metric| metric.of(record).is_some());
        for metric in group.metrics {
            let value = metric.of(record);
            let is_shown = value.is_some() || (is_measured && metric.is_key);
            if let Some(note) = metric.card.filter(|_| is_shown) {
                let (value, unit) = parts(metric, value);
                cards.push(Card { label: metric.label, value, unit, note: note(record) });
            }
        }
    }
    cards
}

/// Value and unit apart.
fn parts(metric: &Metric, value: Option<f64>) -> (String, String) {
    let text = metric.text(value);
    match text.split_once(' ') {
        Some((value, unit)) => (value.to_owned(), unit.to_owned()),
        None => (text, String::new()),
    }
}

/// Read, write and flush latencies.
pub(crate) fn latency_cards(record: &RunRecord) -> Vec<LatencyCard> {
    let host = &record.host;
    let mut cards = vec![
        latency(record, "Read latency", host.reads, "Nothing was read."),
        latency(record, "Write latency", host.writes, "Nothing was written."),
    ];
    if host.flushes > 0 {
        cards.push(latency(record, "Flush latency", host.flushes, ""));
    }
    cards
}

/// The figures of a group of latencies: the mean in the note, the others in large type.
fn latency(
    record: &RunRecord,
    label: &'static str,
    commands: u64,
    nothing: &'static str,
) -> LatencyCard {
    if commands == 0 {
        let (numbers, note) = (Vec::new(), String::new());
        return LatencyCard { label, nothing: Some(nothing), numbers, note };
    }
    let [mean, others @ ..] = metrics_of(label) else { unreachable!("a group of the registry") };
    let numbers = others.iter().filter_map(|metric| {
        let (value, unit) = parts(metric, Some(metric.of(record)?));
        Some(Number { label: metric.label, value, unit })
    });
    let numbers = numbers.collect();
    let note = format!(
        "{} {}, of {} commands",
        mean.label.to_lowercase(),
        mean.text(mean.of(record)),
        format::count(commands)
    );
    LatencyCard { label, nothing: None, numbers, note }
}
