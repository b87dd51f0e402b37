//! A record on its way to the page: its label, colour and thinned-out series.

use crate::series::{self, Columns};
use leyden_record::RunRecord;

/// One run, as the figures see it.
pub(crate) struct Run<'a> {
    /// Its name on the page; unique within the report.
    pub label: String,
    /// The recorded numbers.
    pub record: &'a RunRecord,
    /// Its series, thinned out for charts.
    pub columns: Columns,
}

impl<'a> Run<'a> {
    /// Labels all records and thins out their series.
    pub(crate) fn all(records: &'a [RunRecord]) -> Vec<Self> {
        let labels = labels(records);
        let pairs = records.iter().zip(labels);
        pairs
            .map(|(record, label)| Self { label, record, columns: series::columns(&record.series) })
            .collect()
    }
}

/// Names made unique, since legends and colours go by them: the second "x" becomes "x (2)".
fn labels(records: &[RunRecord]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::with_capacity(records.len());
    for (i, record) in records.iter().enumerate() {
        let name = record.name.trim();
        let name = if name.is_empty() { format!("run {}", i + 1) } else { name.to_owned() };
        let mut label = name.clone();
        let mut n = 2;
        while taken.contains(&label) {
            label = format!("{name} ({n})");
            n += 1;
        }
        taken.push(label);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_unique_and_never_empty() {
        let named = |name: &str| RunRecord { name: name.into(), ..RunRecord::default() };
        let records = [named("a"), named("a"), named(" "), named("a (2)")];
        assert_eq!(labels(&records), ["a", "a (2)", "run 3", "a (2) (2)"]);
    }
}
