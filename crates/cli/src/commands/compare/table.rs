//! The table of a comparison: a column for each experiment beside its ratio to the first; or, if they are
//! many, a row for each.

use std::io::Write;

use leyden_record::RunRecord;
use leyden_report::{Estimate, Metric, Replicates, format, metric_at, metric_groups, replicates};

use crate::output::table::Table;

/// More than so many experiments make a row each: as columns they fit no terminal.
const MOST_COLUMNS: usize = 4;
/// The figures of a row: where the record has each, and its heading.
const IN_ROWS: [(&str, &str); 7] = [
    ("host.iops", "IOPS"),
    ("host.read_latency_us.p99", "read p99"),
    ("host.read_latency_us.p9999", "p99.99"),
    ("host.write_latency_us.p99", "write p99"),
    ("host.write_latency_us.p9999", "p99.99"),
    ("flash.waf", "WA"),
    ("power.capacitance_uf", "capacitance"),
];

pub(super) fn show(records: &[RunRecord], out: &mut dyn Write) -> std::io::Result<()> {
    let experiments = replicates(records);
    let table =
        if experiments.len() > MOST_COLUMNS { rows(&experiments) } else { columns(&experiments) };
    table.write(out)?;
    let runs = experiments.iter().map(|it| it.records.len()).max().unwrap_or(0);
    if runs > 1 {
        writeln!(
            out,
            "\nmeans over {runs} seeds; ±: half the 95 % confidence interval of the mean"
        )?;
        if experiments.len() > 1 {
            writeln!(
                out,
                "ratios of the means; in brackets the least and the most of a seed's own"
            )?;
        }
    }
    Ok(())
}

fn columns(experiments: &[Replicates<'_>]) -> Table {
    let mut table = Table::default();
    for group in metric_groups() {
        let told = |metric: &&Metric| {
            let mut values = experiments.iter().filter_map(|it| it.estimate(metric));
            metric.is_key && values.any(|estimate| estimate.mean != 0.0)
        };
        for (index, metric) in group.metrics.iter().filter(told).enumerate() {
            if index == 0 {
                let mut cells = vec![group.title.to_owned()];
                for (index, experiment) in experiments.iter().enumerate() {
                    cells.push(experiment.name.clone());
                    cells.extend((index > 0).then(|| "ratio".to_owned()));
                }
                table.head(cells);
            }
            let estimates: Vec<_> = experiments.iter().map(|it| it.estimate(metric)).collect();
            let mut cells = vec![metric.label.to_owned()];
            for (index, estimate) in estimates.iter().enumerate() {
                cells.push(text(metric, *estimate));
                cells.extend((index > 0).then(|| ratio(experiments, index, metric)));
            }
            table.row(cells);
        }
    }
    table
}

fn rows(experiments: &[Replicates<'_>]) -> Table {
    let find = |(key, head): &(&str, &'static str)| {
        let metric = metric_at(key)?;
        let told = experiments.iter().any(|it| it.estimate(metric).is_some());
        told.then_some((*head, metric))
    };
    let metrics: Vec<(&str, &Metric)> = IN_ROWS.iter().filter_map(find).collect();
    let mut table = Table::default();
    let mut head = vec!["run"];
    for (name, _) in &metrics {
        head.extend([*name, "ratio"]);
    }
    table.head(head);
    for (index, experiment) in experiments.iter().enumerate() {
        let mut cells = vec![experiment.name.clone()];
        for (_, metric) in &metrics {
            cells.push(text(metric, experiment.estimate(metric)));
            cells.push(ratio(experiments, index, metric));
        }
        table.row(cells);
    }
    table
}

/// The mean, and how sure it is.
fn text(metric: &Metric, estimate: Option<Estimate>) -> String {
    let mean = metric.text(estimate.map(|estimate| estimate.mean));
    match estimate.and_then(|estimate| Some((estimate.mean, estimate.half_width?))) {
        Some((value, half)) if value != 0.0 => {
            format!("{mean} ±{}", format::percent(half / value.abs()))
        }
        _ => mean,
    }
}

/// The ratio of the means over the first experiment, and how far it goes between seeds.
fn ratio(experiments: &[Replicates<'_>], index: usize, metric: &Metric) -> String {
    let (first, other) = (&experiments[0], &experiments[index]);
    let mean = |it: &Replicates<'_>| it.estimate(metric).map(|estimate| estimate.mean);
    let Some(ratio) = Metric::ratio(mean(first), mean(other)) else {
        return format::DASH.to_owned();
    };
    match other.ratios(first, metric).filter(|_| index > 0) {
        Some([least, most]) => {
            let [least, most] = [least, most].map(format::number);
            format!("{} [{least}, {most}]", format::ratio(ratio))
        }
        None => format::ratio(ratio),
    }
}
