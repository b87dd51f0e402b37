//! All figures of all runs in one table; with several runs, each beside its ratio over the first.

use crate::format;
use crate::metrics::{Metric, metric_groups};
use crate::run::Run;
use crate::table::Table;
use serde::Serialize;

/// A group of rows under a heading.
#[derive(Serialize)]
pub(crate) struct Group {
    title: &'static str,
    rows: Vec<Row>,
}

/// A figure across the runs.
#[derive(Serialize)]
struct Row {
    label: &'static str,
    cells: Vec<Cell>,
}

/// A figure of one run.
#[derive(Serialize)]
struct Cell {
    text: String,
    /// Over the first run; empty for the first run and where there is no ratio.
    ratio: String,
    /// "better", "worse" or empty.
    class: &'static str,
}

/// Every figure, by group.
pub(crate) fn everything(runs: &[Run]) -> Vec<Group> {
    groups(runs, |_| true)
}

/// The key figures alone.
pub(crate) fn key_figures(runs: &[Run]) -> Vec<Group> {
    groups(runs, |metric| metric.is_key)
}

/// The key figures of many runs: a row a run, which is read down a column.
pub(crate) fn by_run(runs: &[Run]) -> Table {
    let metrics: Vec<(String, &Metric)> = metric_groups()
        .iter()
        .flat_map(|group| group.metrics.iter().map(move |metric| (group.title, metric)))
        .filter(|(_, metric)| metric.is_key && is_measured(metric, runs))
        .map(|(title, metric)| {
            let is_latency = title.ends_with("latency");
            let named = || format!("{title}, {}", metric.label.to_lowercase());
            (if is_latency { named() } else { metric.label.to_owned() }, metric)
        })
        .collect();
    let heads = metrics.iter().map(|(head, _)| head.clone());
    let mut table = Table::new(std::iter::once("Run".to_owned()).chain(heads));
    for run in runs {
        let cells = metrics.iter().map(|(_, metric)| metric.text(metric.of(run.record)));
        table.rows.push(std::iter::once(run.label.clone()).chain(cells).collect());
    }
    table
}

fn groups(runs: &[Run], wanted: fn(&Metric) -> bool) -> Vec<Group> {
    let groups = metric_groups().iter().map(|group| Group {
        title: group.title,
        rows: group
            .metrics
            .iter()
            .filter(|m| wanted(m) && is_measured(m, runs))
            .map(|m| row(m, runs))
            .collect(),
    });
    groups.filter(|g| !g.rows.is_empty()).collect()
}

fn is_measured(metric: &Metric, runs: &[Run]) -> bool {
    runs.iter().any(|run| metric.of(run.record).is_some())
}

fn row(metric: &Metric, runs: &[Run]) -> Row {
    let values: Vec<Option<f64>> = runs.iter().map(|r| metric.of(r.record)).collect();
    let first = values.first().copied().flatten();
    let cells = values.iter().enumerate().map(|(i, &value)| {
        let ratio = if i > 0 { Metric::ratio(first, value) } else { None };
        Cell {
            text: metric.text(value),
            ratio: ratio.map_or_else(String::new, format::ratio),
            class: ratio.map_or("", |ratio| metric.verdict(ratio)),
        }
    });
    Row { label: metric.label, cells: cells.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    use leyden_record::RunRecord;

    fn with_iops(iops: f64) -> RunRecord {
        let mut record = RunRecord::default();
        record.host.iops = iops;
        record
    }

    #[test]
    fn ratios_are_over_the_first_run() {
        let records = [with_iops(100.0), with_iops(150.0), with_iops(100.5)];
        let groups = everything(&Run::all(&records));
        let cells = &groups[0].rows[0].cells;
        assert_eq!((cells[0].ratio.as_str(), cells[1].ratio.as_str()), ("", "×1.500"));
        assert_eq!((cells[1].class, cells[2].class), ("better", ""));
    }

    #[test]
    fn many_runs_have_a_row_each() {
        let records = [with_iops(100.0), with_iops(150.0)];
        let table = by_run(&Run::all(&records));
        let iops = table.head.iter().position(|head| head == "IOPS").unwrap();
        let column: Vec<&str> = table.rows.iter().map(|row| row[iops].as_str()).collect();
        assert_eq!(column, ["100.0", "150.0"]);
    }

    #[test]
    fn missing_figures_have_no_value_and_no_ratio() {
        let records = [with_iops(0.0), with_iops(5.0)];
        let groups = everything(&Run::all(&records));
        assert_eq!(groups[0].rows[0].cells[1].ratio, "");
        assert!(groups.iter().all(|g| g.title != "Read latency"), "nothing was read");
        let flash = groups.iter().find(|g| g.title == "Flash").unwrap();
        assert!(
            flash.rows.iter().all(|row| row.label != "Write amplification"),
            "nothing was written"
        );
    }
}
