//! The figures of a record as cells of a table, by key: for CSV, for sweeps and for data frames.

use std::collections::BTreeMap;
use std::fmt;

use leyden_record::RunRecord;
use leyden_sim::{Bytes, Ratio, Span};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metrics::metric_groups;

/// Parts of a record that are lists, or that repeat the configuration.
const LEFT_OUT: [&str; 4] = ["config", "series", "varied", "inputs"];
/// Names of a run, which have columns of their own.
const IDENTITY: [&str; 2] = ["seed", "record_version"];

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// Whether it is so.
    Flag(bool),
    /// A count.
    Integer(u64),
    /// A measure.
    Number(f64),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(is) => is.fmt(f),
            Self::Integer(count) => count.fmt(f),
            Self::Number(value) => match serde_json::Number::from_f64(*value) {
                Some(number) => number.fmt(f),
                None => Ok(()),
            },
        }
    }
}

/// The numbers of a record and the figures of the registry, by key, in the units of the record. A figure of which there
/// are too few samples has none.
pub fn cells(record: &RunRecord) -> BTreeMap<String, Cell> {
    let mut cells = BTreeMap::new();
    let value = serde_json::to_value(record).unwrap_or_default();
    for (name, part) in value.as_object().into_iter().flatten() {
        if !LEFT_OUT.contains(&name.as_str()) && !IDENTITY.contains(&name.as_str()) {
            collect(name, part, &mut cells);
        }
    }
    for metric in metric_groups().iter().flat_map(|group| group.metrics) {
        match metric.of(record) {
            // The record's own digits, where it has them.
            Some(value) => _ = cells.entry(metric.key.to_owned()).or_insert(Cell::Number(value)),
            None => drop(cells.remove(metric.key)),
        }
    }
    cells
}

fn collect(name: &str, value: &Value, into: &mut BTreeMap<String, Cell>) {
    let cell = match value {
        Value::Object(parts) => {
            for (part, value) in parts {
                collect(&format!("{name}.{part}"), value, into);
            }
            return;
        }
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) => Cell::Integer(count),
            (None, Some(value)) => Cell::Number(value),
            (None, None) => return,
        },
        // Whether it had settled, above all.
        Value::Bool(is) => Cell::Flag(*is),
        _ => return,
    };
    into.insert(name.to_owned(), cell);
}

/// In which unit a value of the configuration is told as a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// It is a number, or a share as a fraction.
    Plain,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

impl Dimension {
    /// The ending of such a column's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bytes => "_bytes",
            Self::Seconds => "_s",
        }
    }
}

/// A value of the configuration as a plain number: shares as fractions, sizes in bytes, times in seconds. `None` if it
/// is a name.
///
/// ```
/// use leyden_report::{Dimension, quantity};
/// assert_eq!(quantity("8 MiB"), Some((8_388_608.0, Dimension::Bytes)));
/// assert_eq!(quantity("12.5 %"), Some((0.125, Dimension::Plain)));
/// assert_eq!(quantity("greedy"), None);
/// ```
pub fn quantity(value: &str) -> Option<(f64, Dimension)> {
    if let Some(number) = value.parse::<f64>().ok().filter(|number| number.is_finite()) {
        return Some((number, Dimension::Plain));
    }
    if let Some(share) = value.parse::<Ratio>().ok().filter(|_| value.contains('%')) {
        return Some((share.as_f64(), Dimension::Plain));
    }
    if let Ok(size) = value.parse::<Bytes>() {
        return Some((size.get() as f64, Dimension::Bytes));
    }
    value.parse::<Span>().ok().map(|span| (span.as_secs_f64(), Dimension::Seconds))
}
