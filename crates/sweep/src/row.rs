//! A point's results.

use std::collections::BTreeMap;

use leyden_record::RunRecord;
use leyden_report::{Cell, cells};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Figures of the machine, which no result is.
const OF_MACHINE: &str = "sim.";
/// The one figure under that key that is a result.
const CHECKED: &str = "sim.checked";

/// A point and what its run came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its number in the plan, from 0.
    pub point: u64,
    /// The hash of its configuration, inputs and version.
    pub id: String,
    /// The scenario's name.
    pub name: String,
    /// The device that the plan names, if it names some.
    #[serde(default)]
    pub device: Option<String>,
    /// Its seed.
    pub seed: u64,
    /// The values of what is varied, in the plan's order.
    pub values: Vec<String>,
    /// Why there are no results: the run failed, or there is no such configuration.
    #[serde(default)]
    pub error: Option<String>,
    /// The digest of everything that happened.
    #[serde(default)]
    pub digest: Option<String>,
    /// The run's warnings.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The figures, by key.
    #[serde(default)]
    pub figures: BTreeMap<String, Cell>,
    /// Values of each interval, by key, if they are kept: as long as `time_s`.
    #[serde(default)]
    pub series: BTreeMap<String, Vec<f64>>,
}

impl Row {
    /// With the results of `record`.
    pub(crate) fn fill(&mut self, record: &RunRecord, with_series: bool) {
        self.name.clone_from(&record.name);
        self.seed = record.seed;
        self.digest = Some(record.sim.digest.clone());
        self.warnings.clone_from(&record.warnings);
        self.figures = cells(record);
        self.figures.retain(|key, _| !key.starts_with(OF_MACHINE) || key == CHECKED);
        if with_series {
            self.series = series(record);
        }
    }
}

/// The record's series by key; lists of tables become a series for each of their keys.
fn series(record: &RunRecord) -> BTreeMap<String, Vec<f64>> {
    let mut found = BTreeMap::new();
    let intervals = record.series.time_s.len();
    let value = serde_json::to_value(&record.series).unwrap_or_default();
    for (key, value) in value.as_object().into_iter().flatten() {
        let Some(items) = value.as_array().filter(|items| items.len() == intervals) else {
            continue;
        };
        let Some(Value::Object(first)) = items.first() else {
            found.insert(key.clone(), items.iter().filter_map(Value::as_f64).collect());
            continue;
        };
        for part in first.keys() {
            let values = items.iter().map(|item| item[part].as_f64().unwrap_or(0.0));
            found.insert(format!("{key}.{part}"), values.collect());
        }
    }
    found
}
