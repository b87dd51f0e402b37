//! The share of a drive that each tenant got: one table.

use super::{Figure, Size};
use crate::format;
use crate::run::Run;
use crate::table::Table;
use leyden_record::Latency;

/// The table; none if the drive is not shared.
pub(crate) fn figure(runs: &[Run]) -> Option<Figure> {
    let mut table = Table::new([
        "Who",
        "Commands a second",
        "Read latency, mean",
        "99 %",
        "Write latency, mean",
        "99 %",
    ]);
    for run in runs {
        for tenant in &run.record.host.tenants {
            let who = if runs.len() > 1 {
                format!("{}: {}", run.label, tenant.name)
            } else {
                tenant.name.clone()
            };
            let slow = |count: u64, latency: &Latency| match count {
                0 => [format::DASH.to_owned(), format::DASH.to_owned()],
                _ => [format::latency(latency.mean), format::latency(latency.p99)],
            };
            let mut row = vec![who, format::number(tenant.iops)];
            row.extend(slow(tenant.reads, &tenant.read_latency_us));
            row.extend(slow(tenant.writes, &tenant.write_latency_us));
            table.rows.push(row);
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    let mut figure = Figure::new("tenants", "Who shares the drive");
    figure.size = Size::Wide;
    figure.table = Some(table);
    Some(figure.note("Each job of the workload, or each class of the trace's requests."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::{Host, RunRecord, Tenant};

    #[test]
    fn those_who_share_are_told_apart_and_nobody_who_is_alone() {
        let tenant = |name: &str, reads| Tenant {
            name: name.into(),
            reads,
            iops: 12.0,
            read_latency_us: Latency { mean: 80.0, p99: 1_500.0, ..Latency::default() },
            ..Tenant::default()
        };
        let mut record = RunRecord { name: "a".into(), ..RunRecord::default() };
        let alone = [record.clone()];
        assert!(figure(&Run::all(&alone)).is_none());
        record.host =
            Host { tenants: vec![tenant("wal", 0), tenant("data", 3)], ..Host::default() };
        let shared = [record];
        let table = figure(&Run::all(&shared)).unwrap().table.unwrap();
        let rows: Vec<String> = table.rows.iter().map(|row| row.join("|")).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].starts_with("wal|12.00|") && rows[0].contains(format::DASH), "{rows:?}");
        assert!(rows[1].contains(&format::latency(1_500.0)), "{rows:?}");
    }
}
