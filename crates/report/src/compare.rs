//! All figures of all runs in one table; with several runs, each beside its ratio over the first.

use crate::format;
use crate::run::Run;
use leyden_experiment::{Latency, Power, Recovery, RunRecord};
use serde::Serialize;

/// Which way is better.
#[derive(Clone, Copy, PartialEq)]
enum Better {
    Higher,
    Lower,
    /// Neither: it tells what happened, not how well. Counts are such, since more work counts more.
    Neutral,
}
use Better::{Higher, Lower, Neutral};

/// A figure of a record.
#[derive(Clone, Copy)]
struct Metric {
    label: &'static str,
    better: Better,
    show: fn(f64) -> String,
    /// None where there was nothing to measure.
    get: fn(&RunRecord) -> Option<f64>,
    /// Also in the short table that opens a comparison.
    key: bool,
}

const fn metric(
    label: &'static str,
    better: Better,
    show: fn(f64) -> String,
    get: fn(&RunRecord) -> Option<f64>,
) -> Metric {
    Metric { label, better, show, get, key: false }
}

const fn key(metric: Metric) -> Metric {
    Metric { key: true, ..metric }
}

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
    groups(runs, |metric| metric.key)
}

fn groups(runs: &[Run], wanted: fn(&Metric) -> bool) -> Vec<Group> {
    let groups = METRICS.iter().map(|(title, metrics)| Group {
        title,
        rows: metrics
            .iter()
            .filter(|m| wanted(m) && (!OPTIONAL.contains(title) || told(m, runs)))
            .map(|m| row(m, runs))
            .collect(),
    });
    groups.filter(|g| !g.rows.is_empty()).collect()
}

/// Groups that a record may say nothing of.
const OPTIONAL: [&str; 2] = ["Power loss", "Recovery"];

fn told(metric: &Metric, runs: &[Run]) -> bool {
    runs.iter().any(|run| (metric.get)(run.record).is_some())
}

fn row(metric: &Metric, runs: &[Run]) -> Row {
    let values: Vec<Option<f64>> = runs.iter().map(|r| (metric.get)(r.record)).collect();
    let first = values.first().copied().flatten();
    let cells = values.iter().enumerate().map(|(i, value)| {
        let ratio = match (first, value) {
            (Some(first), Some(value)) if i > 0 && first != 0.0 => Some(value / first),
            _ => None,
        };
        Cell {
            text: value.map_or_else(|| format::DASH.to_owned(), metric.show),
            ratio: ratio.map_or_else(String::new, format::ratio),
            class: ratio.map_or("", |ratio| verdict(metric.better, ratio)),
        }
    });
    Row { label: metric.label, cells: cells.collect() }
}

/// Differences below one per cent are none.
fn verdict(better: Better, ratio: f64) -> &'static str {
    let up = ratio > 1.01;
    let down = ratio < 0.99;
    match better {
        Higher if up => "better",
        Higher if down => "worse",
        Lower if up => "worse",
        Lower if down => "better",
        _ => "",
    }
}

/// A latency, if there was any.
fn measured(n: u64, latency: &Latency, pick: fn(&Latency) -> f64) -> Option<f64> {
    (n > 0).then(|| pick(latency))
}

fn read(r: &RunRecord, pick: fn(&Latency) -> f64) -> Option<f64> {
    measured(r.host.reads, &r.host.read_latency_us, pick)
}

fn write(r: &RunRecord, pick: fn(&Latency) -> f64) -> Option<f64> {
    measured(r.host.writes, &r.host.write_latency_us, pick)
}

fn flush(r: &RunRecord, pick: fn(&Latency) -> f64) -> Option<f64> {
    measured(r.host.flushes, &r.host.flush_latency_us, pick)
}

fn power(r: &RunRecord, pick: fn(&Power) -> f64) -> Option<f64> {
    r.power.as_ref().map(pick)
}

fn recovery(r: &RunRecord, pick: fn(&Recovery) -> f64) -> Option<f64> {
    r.recovery.as_ref().map(pick)
}

fn mean_of(shares: &[f64]) -> Option<f64> {
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

fn mib(value: f64) -> String {
    format::bytes(value * 1024.0 * 1024.0)
}

#[rustfmt::skip] // one figure a line, so that the list reads as the table it becomes
static METRICS: &[(&str, &[Metric])] = &[
    ("Host", &[
        key(metric("IOPS", Higher, format::number, |r| Some(r.host.iops))),
        key(metric("Bandwidth", Higher, format::mib_per_s, |r| Some(r.host.mib_per_s))),
        metric("Reads", Neutral, format::count, |r| Some(r.host.reads as f64)),
        metric("Writes", Neutral, format::count, |r| Some(r.host.writes as f64)),
        metric("Flushes", Neutral, format::count, |r| Some(r.host.flushes as f64)),
        metric("Trims and write-zeroes", Neutral, format::count, |r| Some(r.host.trims as f64)),
        metric("Commands that failed", Lower, format::count, |r| Some(r.host.errors as f64)),
        metric("Read", Neutral, format::bytes, |r| Some(r.host.bytes_read as f64)),
        metric("Written", Neutral, format::bytes, |r| Some(r.host.bytes_written as f64)),
        metric("Simulated time", Neutral, format::seconds, |r| Some(r.host.elapsed_s)),
    ]),
    ("Read latency", &[
        metric("Mean", Lower, format::latency, |r| read(r, |l| l.mean)),
        key(metric("Median (p50)", Lower, format::latency, |r| read(r, |l| l.p50))),
        key(metric("p99", Lower, format::latency, |r| read(r, |l| l.p99))),
        key(metric("p99.9", Lower, format::latency, |r| read(r, |l| l.p999))),
        metric("Maximum", Lower, format::latency, |r| read(r, |l| l.max)),
    ]),
    ("Write latency", &[
        metric("Mean", Lower, format::latency, |r| write(r, |l| l.mean)),
        key(metric("Median (p50)", Lower, format::latency, |r| write(r, |l| l.p50))),
        key(metric("p99", Lower, format::latency, |r| write(r, |l| l.p99))),
        key(metric("p99.9", Lower, format::latency, |r| write(r, |l| l.p999))),
        metric("Maximum", Lower, format::latency, |r| write(r, |l| l.max)),
    ]),
    ("Flush latency", &[
        metric("Mean", Lower, format::latency, |r| flush(r, |l| l.mean)),
        metric("p99.9", Lower, format::latency, |r| flush(r, |l| l.p999)),
        metric("Maximum", Lower, format::latency, |r| flush(r, |l| l.max)),
    ]),
    ("Flash", &[
        key(metric("Write amplification", Lower, format::factor,
            |r| (r.host.bytes_written > 0).then_some(r.flash.waf))),
        key(metric("Block erases", Neutral, format::count, |r| Some(r.flash.erases as f64))),
        metric("Units padded", Neutral, format::count, |r| Some(r.flash.padded_units as f64)),
        metric("Failed programs", Neutral, format::count, |r| Some(r.flash.program_failures as f64)),
        metric("Failed erases", Neutral, format::count, |r| Some(r.flash.erase_failures as f64)),
    ]),
    ("Garbage collection", &[
        metric("Blocks collected", Neutral, format::count, |r| Some(r.gc.collections as f64)),
        metric("Pages copied", Neutral, format::number, |r| Some(r.gc.copied_pages)),
        metric("Zombie pages copied", Neutral, format::number, |r| Some(r.gc.copied_zombie_pages)),
        metric("Valid share of victims", Lower, format::percent,
            |r| (r.gc.collections > 0).then_some(r.gc.victim_utilisation)),
    ]),
    ("Mapping table", &[
        metric("Mapping pages", Neutral, format::count, |r| Some(r.map.pages as f64)),
        metric("Protected pages", Neutral, format::count, |r| Some(r.map.protected_pages as f64)),
        metric("Most dirty at once", Neutral, format::count, |r| Some(r.map.dirty_peak as f64)),
        metric("Written back", Neutral, format::count, |r| Some(r.map.writebacks as f64)),
        metric("Journal pages written", Neutral, format::count, |r| Some(r.map.journal_pages as f64)),
        metric("Updates of dirty pages", Higher, format::percent, |r| Some(r.map.hit_ratio)),
    ]),
    ("Write buffer", &[
        metric("Most held at once", Neutral, format::bytes, |r| Some(r.buffer.peak_bytes as f64)),
        metric("Writes waiting for room", Neutral, format::seconds, |r| Some(r.buffer.stalls_s)),
        metric("Dropped unwritten", Neutral, format::bytes, |r| Some(r.buffer.discarded_bytes as f64)),
        metric("Units overwritten in place", Neutral, format::count, |r| Some(r.buffer.coalesced_writes as f64)),
        metric("Units read from it", Neutral, format::count, |r| Some(r.buffer.read_hits as f64)),
    ]),
    ("Power loss", &[
        key(metric("Energy of a dump at the peak, mJ", Lower, format::number, |r| power(r, |p| p.energy_mj.max))),
        metric("Energy of a dump, median, mJ", Lower, format::number, |r| power(r, |p| p.energy_mj.p50)),
        metric("Energy at worst, mJ", Lower, format::number, |r| power(r, |p| p.worst.energy_mj)),
        key(metric("Capacitance at the peak, µF", Lower, format::number, |r| power(r, |p| p.capacitance_uf))),
        key(metric("Capacitance at worst, µF", Lower, format::number, |r| power(r, |p| p.worst.capacitance_uf))),
        metric("The bank's capacitance, µF", Neutral, format::number, |r| power(r, |p| p.bank.capacitance_uf)),
        metric("Parts of the bank", Neutral, format::count, |r| power(r, |p| p.bank.parts as f64)),
        metric("Longest dump", Lower, format::seconds, |r| power(r, |p| p.dump_ms.max / 1e3)),
        metric("Most to save at once", Neutral, format::bytes, |r| power(r, |p| p.protected_bytes_peak as f64)),
        metric("Promised writes lost", Lower, format::count, |r| power(r, |p| p.lost_promised_writes as f64)),
    ]),
    ("Recovery", &[
        key(metric("Ready after", Lower, format::seconds, |r| recovery(r, |v| v.time_ms.max / 1e3))),
        metric("State rebuilt after", Lower, format::seconds, |r| recovery(r, |v| v.scan_ms.max / 1e3)),
        metric("Bank charged after", Lower, format::seconds, |r| recovery(r, |v| v.charge_ms / 1e3)),
        metric("Pages scanned", Neutral, format::count, |r| recovery(r, |v| v.pages_scanned as f64)),
        metric("Pages put back", Neutral, format::count, |r| recovery(r, |v| v.pages_restored as f64)),
    ]),
    ("Wear and utilisation", &[
        metric("Erases per block, mean", Neutral, format::number, |r| Some(r.wear.mean)),
        metric("Erases per block, most", Neutral, format::count, |r| Some(r.wear.max as f64)),
        metric("Bad blocks", Neutral, format::count, |r| Some(r.wear.bad_blocks as f64)),
        metric("Dies busy, mean", Neutral, format::percent, |r| mean_of(&r.utilisation.dies)),
        metric("Channels busy, mean", Neutral, format::percent, |r| mean_of(&r.utilisation.channels)),
    ]),
    ("Simulation", &[
        key(metric("Host I/Os per second of wall time", Higher, format::number, |r| Some(r.sim.host_ios_per_s))),
        metric("Flash operations per second of wall time", Higher, format::number, |r| Some(r.sim.flash_ops_per_s)),
        metric("Wall time", Lower, format::seconds, |r| Some(r.sim.wall_s)),
        metric("Wall time of preconditioning", Lower, format::seconds, |r| Some(r.sim.precondition_wall_s)),
        metric("Peak memory", Lower, mib, |r| Some(r.sim.peak_rss_mib)),
        metric("State per mapping unit", Lower, format::bytes, |r| Some(r.sim.bytes_per_mapping_unit)),
    ]),
];

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((cells[0].ratio.as_str(), cells[1].ratio.as_str()), ("", "×1.50"));
        assert_eq!((cells[1].class, cells[2].class), ("better", ""));
    }

    #[test]
    fn what_was_not_measured_has_no_value_and_no_ratio() {
        let records = [with_iops(0.0), with_iops(5.0)];
        let groups = everything(&Run::all(&records));
        assert_eq!(groups[0].rows[0].cells[1].ratio, "");
        let read = groups.iter().find(|g| g.title == "Read latency").unwrap();
        assert_eq!(read.rows[0].cells[1].text, format::DASH);
    }
}
