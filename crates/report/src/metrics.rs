//! The figures of a run record: what each is called, which way is better, and how it is found and shown.
//! The table of `leyden compare`, a report's tables and its plots over a parameter are made from this list.

use crate::format;
use leyden_record::{Latency, Power, Recovery, RunRecord, Store, ZonedBlock};

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is.
    Higher,
    /// Less is.
    Lower,
    /// Neither: it tells what happened, not how well, or it tells of the machine that simulated it. Counts
    /// are such, since more work counts more.
    Neutral,
}
use Better::{Higher, Lower, Neutral};

/// A figure of a record.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, below that of its group.
    pub label: &'static str,
    /// Which way is better.
    pub better: Better,
    show: fn(f64) -> String,
    get: fn(&RunRecord) -> Option<f64>,
    /// One of the few that a comparison begins with.
    pub is_key: bool,
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
    /// Its value; none where there was nothing to measure.
    pub fn of(&self, record: &RunRecord) -> Option<f64> {
        (self.get)(record).filter(|value| value.is_finite())
    }

    /// A value of it as text, with its unit.
    pub fn text(&self, value: Option<f64>) -> String {
        value.map_or_else(|| format::DASH.to_owned(), self.show)
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
            Higher if up => "better",
            Higher if down => "worse",
            Lower if up => "worse",
            Lower if down => "better",
            _ => "",
        }
    }
}

/// Every figure, by group, in reading order.
pub const fn metric_groups() -> &'static [MetricGroup] {
    GROUPS
}

const fn metric(
    label: &'static str,
    better: Better,
    show: fn(f64) -> String,
    get: fn(&RunRecord) -> Option<f64>,
) -> Metric {
    Metric { label, better, show, get, is_key: false }
}

const fn key(metric: Metric) -> Metric {
    Metric { is_key: true, ..metric }
}

const fn group(title: &'static str, metrics: &'static [Metric]) -> MetricGroup {
    MetricGroup { title, metrics }
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

/// The 99.99th percentile; records of earlier versions do not have it.
fn p9999(l: &Latency) -> f64 {
    if l.p9999 > 0.0 { l.p9999 } else { f64::NAN }
}

fn power(r: &RunRecord, pick: fn(&Power) -> f64) -> Option<f64> {
    r.power.as_ref().map(pick)
}

fn store(r: &RunRecord, pick: fn(&Store) -> f64) -> Option<f64> {
    r.zones.as_ref().and_then(|zones| zones.store.as_ref()).map(pick)
}

fn layer(r: &RunRecord, pick: fn(&ZonedBlock) -> f64) -> Option<f64> {
    r.zoned_block.as_ref().map(pick)
}

fn recovery(r: &RunRecord, pick: fn(&Recovery) -> f64) -> Option<f64> {
    r.recovery.as_ref().map(pick)
}

/// The mean of shares, if there are any.
pub(crate) fn mean_of(shares: &[f64]) -> Option<f64> {
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

fn erases_per_gib(r: &RunRecord) -> Option<f64> {
    let written_gib = r.host.bytes_written as f64 / f64::from(1 << 30);
    (written_gib > 0.0).then(|| r.flash.erases as f64 / written_gib)
}

fn count(value: f64) -> String {
    format::count(value)
}

fn bytes(value: f64) -> String {
    format::bytes(value)
}

fn mib(value: f64) -> String {
    format::bytes((value * 1024.0 * 1024.0).round())
}

#[rustfmt::skip] // one figure a line, so that the list reads as the table it becomes
static GROUPS: &[MetricGroup] = &[
    group("Host", &[
        key(metric("IOPS", Higher, format::number, |r| Some(r.host.iops))),
        key(metric("Bandwidth", Higher, format::mib_per_s, |r| Some(r.host.mib_per_s))),
        metric("Reads", Neutral, count, |r| Some(r.host.reads as f64)),
        metric("Writes", Neutral, count, |r| Some(r.host.writes as f64)),
        metric("Flushes", Neutral, count, |r| Some(r.host.flushes as f64)),
        metric("Trims and write-zeroes", Neutral, count, |r| Some(r.host.trims as f64)),
        metric("Commands that failed", Lower, count, |r| Some(r.host.errors as f64)),
        metric("Read", Neutral, bytes, |r| Some(r.host.bytes_read as f64)),
        metric("Written", Neutral, bytes, |r| Some(r.host.bytes_written as f64)),
        metric("Simulated time", Neutral, format::seconds, |r| Some(r.host.elapsed_s)),
        metric("Recorded in", Neutral, format::seconds, |r| r.host.recorded_s),
    ]),
    group("Read latency", &[
        key(metric("Mean", Lower, format::latency, |r| read(r, |l| l.mean))),
        key(metric("Median (p50)", Lower, format::latency, |r| read(r, |l| l.p50))),
        key(metric("p99", Lower, format::latency, |r| read(r, |l| l.p99))),
        key(metric("p99.9", Lower, format::latency, |r| read(r, |l| l.p999))),
        key(metric("p99.99", Lower, format::latency, |r| read(r, p9999))),
        key(metric("Maximum", Lower, format::latency, |r| read(r, |l| l.max))),
    ]),
    group("Write latency", &[
        key(metric("Mean", Lower, format::latency, |r| write(r, |l| l.mean))),
        key(metric("Median (p50)", Lower, format::latency, |r| write(r, |l| l.p50))),
        key(metric("p99", Lower, format::latency, |r| write(r, |l| l.p99))),
        key(metric("p99.9", Lower, format::latency, |r| write(r, |l| l.p999))),
        key(metric("p99.99", Lower, format::latency, |r| write(r, p9999))),
        key(metric("Maximum", Lower, format::latency, |r| write(r, |l| l.max))),
    ]),
    group("Flush latency", &[
        key(metric("Mean", Lower, format::latency, |r| flush(r, |l| l.mean))),
        metric("Median (p50)", Lower, format::latency, |r| flush(r, |l| l.p50)),
        key(metric("p99", Lower, format::latency, |r| flush(r, |l| l.p99))),
        metric("p99.9", Lower, format::latency, |r| flush(r, |l| l.p999)),
        metric("p99.99", Lower, format::latency, |r| flush(r, p9999)),
        key(metric("Maximum", Lower, format::latency, |r| flush(r, |l| l.max))),
    ]),
    group("Flash", &[
        key(metric("Write amplification", Lower, format::factor,
            |r| (r.host.bytes_written > 0).then_some(r.flash.waf))),
        key(metric("Write amplification, preconditioning", Neutral, format::factor,
            |r| r.steadiness.precondition.as_ref().map(|settling| settling.waf))),
        key(metric("Block erases per GiB written", Lower, format::number, erases_per_gib)),
        metric("Block erases", Neutral, count, |r| Some(r.flash.erases as f64)),
        metric("Pages programmed for the host", Neutral, count, |r| Some(r.flash.programs.user as f64)),
        metric("Units padded", Neutral, count, |r| Some(r.flash.padded_units as f64)),
        metric("Failed programs", Neutral, count, |r| Some(r.flash.program_failures as f64)),
        metric("Failed erases", Neutral, count, |r| Some(r.flash.erase_failures as f64)),
    ]),
    group("Garbage collection", &[
        metric("Blocks collected", Neutral, count, |r| Some(r.gc.collections as f64)),
        metric("Pages copied", Neutral, format::number, |r| Some(r.gc.copied_pages)),
        metric("Zombie pages copied", Neutral, format::number, |r| Some(r.gc.copied_zombie_pages)),
        key(metric("Valid share of victims", Lower, format::percent,
            |r| (r.gc.collections > 0).then_some(r.gc.victim_utilisation))),
    ]),
    group("Mapping table", &[
        metric("Mapping pages", Neutral, count, |r| Some(r.map.pages as f64)),
        metric("Protected pages", Neutral, count, |r| Some(r.map.protected_pages as f64)),
        metric("Most dirty at once", Neutral, count, |r| Some(r.map.dirty_peak as f64)),
        metric("Written back", Neutral, count, |r| Some(r.map.writebacks as f64)),
        metric("Journal pages written", Neutral, count, |r| Some(r.map.journal_pages as f64)),
        metric("Updates of dirty pages", Higher, format::percent, |r| Some(r.map.hit_ratio)),
    ]),
    group("Write buffer", &[
        metric("Most held at once", Neutral, bytes, |r| Some(r.buffer.peak_bytes as f64)),
        metric("Writes waiting for room", Neutral, format::seconds, |r| Some(r.buffer.stalls_s)),
        metric("Dropped unwritten", Neutral, bytes, |r| Some(r.buffer.discarded_bytes as f64)),
        metric("Units overwritten in place", Neutral, count, |r| Some(r.buffer.coalesced_writes as f64)),
        metric("Units read from it", Neutral, count, |r| Some(r.buffer.read_hits as f64)),
    ]),
    group("Key-value store", &[
        key(metric("Pairs put per second", Higher, format::number, |r| store(r, |s| s.puts_per_s))),
        key(metric("Put", Higher, format::mib_per_s, |r| store(r, |s| s.mib_per_s))),
        metric("Tables compacted", Neutral, count, |r| store(r, |s| s.compacted as f64)),
        metric("Writer stopped", Neutral, format::seconds, |r| store(r, |s| s.stalled_s)),
        metric("Writer slowed down", Neutral, format::seconds, |r| store(r, |s| s.delayed_s)),
        metric("Exposed by its order of syncs, mean", Lower, bytes, |r| store(r, |s| s.exposed_bytes_mean.round())),
    ]),
    group("Zoned block device", &[
        key(metric("Write amplification, end to end", Lower, format::factor, |r| layer(r, |z| z.waf))),
        metric("Of the layer", Lower, format::factor, |r| layer(r, |z| z.layer_waf)),
        metric("Of the conventional drive", Lower, format::factor, |r| layer(r, |z| z.conventional_waf)),
        metric("Of the zoned drive", Lower, format::factor, |r| layer(r, |z| z.zoned_waf)),
        key(metric("Copied by reclaim", Lower, bytes, |r| layer(r, |z| z.copied_bytes as f64))),
        key(metric("Of that, journal", Lower, bytes, |r| layer(r, |z| z.copied_journal_bytes as f64))),
        metric("Of that, file-system metadata", Lower, bytes, |r| layer(r, |z| z.copied_meta_bytes as f64)),
        metric("Of that, data", Lower, bytes, |r| layer(r, |z| z.copied_data_bytes as f64)),
        metric("Zeroes filled in", Lower, bytes, |r| layer(r, |z| z.filled_bytes as f64)),
        metric("Tables written", Lower, bytes, |r| layer(r, |z| z.metadata_bytes as f64)),
        metric("To journal zones", Neutral, bytes, |r| layer(r, |z| z.separated_bytes as f64)),
        metric("Chunks moved", Neutral, count, |r| layer(r, |z| z.reclaimed as f64)),
        metric("Moves given up", Neutral, count, |r| layer(r, |z| z.aborted as f64)),
        metric("Requests that waited for a zone", Lower, count, |r| layer(r, |z| z.starved as f64)),
    ]),
    group("Power loss", &[
        key(metric("Energy of a dump at the peak", Lower, format::energy, |r| power(r, |p| p.energy_mj.max))),
        metric("Energy of a dump, median", Lower, format::energy, |r| power(r, |p| p.energy_mj.p50)),
        metric("Energy at worst", Lower, format::energy, |r| power(r, |p| p.worst.energy_mj)),
        key(metric("Capacitance at the peak", Lower, format::capacitance, |r| power(r, |p| p.capacitance_uf))),
        key(metric("Capacitance at worst", Lower, format::capacitance, |r| power(r, |p| p.worst.capacitance_uf))),
        metric("The bank's capacitance", Neutral, format::capacitance, |r| power(r, |p| p.bank.capacitance_uf)),
        metric("Parts of the bank", Neutral, count, |r| power(r, |p| p.bank.parts as f64)),
        metric("Longest dump", Lower, format::seconds, |r| power(r, |p| p.dump_ms.max / 1e3)),
        metric("Most to save at once", Neutral, bytes, |r| power(r, |p| p.protected_bytes_peak as f64)),
        metric("Promised writes lost", Lower, count, |r| power(r, |p| p.lost_promised_writes as f64)),
    ]),
    group("Recovery", &[
        key(metric("Ready after", Lower, format::seconds, |r| recovery(r, |v| v.time_ms.max / 1e3))),
        key(metric("State rebuilt after", Lower, format::seconds, |r| recovery(r, |v| v.scan_ms.max / 1e3))),
        metric("Bank charged after", Lower, format::seconds, |r| recovery(r, |v| v.charge_ms / 1e3)),
        metric("Pages scanned", Neutral, count, |r| recovery(r, |v| v.pages_scanned as f64)),
        metric("Pages put back", Neutral, count, |r| recovery(r, |v| v.pages_restored as f64)),
    ]),
    group("Wear and utilisation", &[
        metric("Erases per block, mean", Neutral, format::number, |r| Some(r.wear.mean)),
        metric("Erases per block, most", Neutral, count, |r| Some(r.wear.max as f64)),
        metric("Bad blocks", Neutral, count, |r| Some(r.wear.bad_blocks as f64)),
        key(metric("Dies busy, mean", Neutral, format::percent, |r| mean_of(&r.utilisation.dies))),
        metric("Channels busy, mean", Neutral, format::percent, |r| mean_of(&r.utilisation.channels))
    ]),
    // The machine's, and what else it did meanwhile: never judged.
    group("Simulation", &[
        metric("Host I/Os per second of wall time", Neutral, format::number, |r| Some(r.sim.host_ios_per_s)),
        metric("Flash operations per second of wall time", Neutral, format::number, |r| Some(r.sim.flash_ops_per_s)),
        metric("Wall time of the run", Neutral, format::seconds, |r| Some(r.sim.wall_s)),
        metric("Wall time of preconditioning, before it", Neutral, format::seconds, |r| Some(r.sim.precondition_wall_s)),
        metric("Processor time of the run", Neutral, format::seconds, |r| Some(r.sim.cpu_s)),
        metric("Peak memory", Neutral, mib, |r| Some(r.sim.peak_rss_mib)),
        metric("State per mapping unit", Neutral, bytes, |r| Some(r.sim.bytes_per_mapping_unit)),
    ]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn find(title: &str, label: &str) -> &'static Metric {
        let group = GROUPS.iter().find(|group| group.title == title).unwrap();
        group.metrics.iter().find(|metric| metric.label == label).unwrap()
    }

    #[test]
    fn what_the_machine_did_is_never_judged() {
        let simulation = GROUPS.iter().find(|group| group.title == "Simulation").unwrap();
        for metric in simulation.metrics {
            assert_eq!((metric.verdict(0.1), metric.verdict(10.0)), ("", ""), "{}", metric.label);
            assert!(!metric.is_key, "{}", metric.label);
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
