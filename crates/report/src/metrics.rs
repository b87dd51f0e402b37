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
    /// Where the record has it, or, if it follows from several numbers there, what it is called beside them.
    pub key: &'static str,
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

/// The figure that the record has at `key`.
pub fn metric_at(key: &str) -> Option<&'static Metric> {
    GROUPS.iter().flat_map(|group| group.metrics).find(|metric| metric.key == key)
}

/// Every figure, by group, in reading order.
pub const fn metric_groups() -> &'static [MetricGroup] {
    GROUPS
}

const fn metric(
    key: &'static str,
    label: &'static str,
    better: Better,
    show: fn(f64) -> String,
    get: fn(&RunRecord) -> Option<f64>,
) -> Metric {
    Metric { key, label, better, show, get, is_key: false }
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

/// A percentile of latencies.
#[derive(Clone, Copy, Debug)]
pub struct Percentile {
    /// Its name.
    pub label: &'static str,
    /// It says nothing of fewer samples: ten of them lie beyond it.
    pub least_samples: u64,
    get: fn(&Latency) -> f64,
}

const P50: Percentile = Percentile { label: "Median (p50)", least_samples: 20, get: |l| l.p50 };
const P99: Percentile = Percentile { label: "p99", least_samples: 1_000, get: |l| l.p99 };
const P999: Percentile = Percentile { label: "p99.9", least_samples: 10_000, get: |l| l.p999 };
const P9999: Percentile = Percentile { label: "p99.99", least_samples: 100_000, get: |l| l.p9999 };

/// The percentiles that a record has.
pub const PERCENTILES: [Percentile; 4] = [P50, P99, P999, P9999];

impl Percentile {
    /// Of `samples` latencies; none if they are too few, or the record is of a version that does not have it.
    pub fn of(&self, samples: u64, latency: &Latency) -> Option<f64> {
        let value = (self.get)(latency);
        (samples >= self.least_samples && value > 0.0).then_some(value)
    }
}

fn read_at(r: &RunRecord, percentile: &Percentile) -> Option<f64> {
    percentile.of(r.host.reads, &r.host.read_latency_us)
}

fn write_at(r: &RunRecord, percentile: &Percentile) -> Option<f64> {
    percentile.of(r.host.writes, &r.host.write_latency_us)
}

fn flush_at(r: &RunRecord, percentile: &Percentile) -> Option<f64> {
    percentile.of(r.host.flushes, &r.host.flush_latency_us)
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
        key(metric("host.iops", "IOPS", Higher, format::number, |r| Some(r.host.iops))),
        key(metric("host.mib_per_s", "Bandwidth", Higher, format::mib_per_s, |r| Some(r.host.mib_per_s))),
        metric("host.reads", "Reads", Neutral, count, |r| Some(r.host.reads as f64)),
        metric("host.writes", "Writes", Neutral, count, |r| Some(r.host.writes as f64)),
        metric("host.flushes", "Flushes", Neutral, count, |r| Some(r.host.flushes as f64)),
        metric("host.trims", "Trims and write-zeroes", Neutral, count, |r| Some(r.host.trims as f64)),
        metric("host.errors", "Commands that failed", Lower, count, |r| Some(r.host.errors as f64)),
        metric("host.bytes_read", "Read", Neutral, bytes, |r| Some(r.host.bytes_read as f64)),
        metric("host.bytes_written", "Written", Neutral, bytes, |r| Some(r.host.bytes_written as f64)),
        metric("host.elapsed_s", "Simulated time", Neutral, format::seconds, |r| Some(r.host.elapsed_s)),
        metric("host.recorded_s", "Recorded in", Neutral, format::seconds, |r| r.host.recorded_s),
    ]),
    group("Read latency", &[
        key(metric("host.read_latency_us.mean", "Mean", Lower, format::latency, |r| read(r, |l| l.mean))),
        key(metric("host.read_latency_us.p50", "Median (p50)", Lower, format::latency, |r| read_at(r, &P50))),
        key(metric("host.read_latency_us.p99", "p99", Lower, format::latency, |r| read_at(r, &P99))),
        key(metric("host.read_latency_us.p999", "p99.9", Lower, format::latency, |r| read_at(r, &P999))),
        key(metric("host.read_latency_us.p9999", "p99.99", Lower, format::latency, |r| read_at(r, &P9999))),
        key(metric("host.read_latency_us.max", "Maximum", Lower, format::latency, |r| read(r, |l| l.max))),
    ]),
    group("Write latency", &[
        key(metric("host.write_latency_us.mean", "Mean", Lower, format::latency, |r| write(r, |l| l.mean))),
        key(metric("host.write_latency_us.p50", "Median (p50)", Lower, format::latency, |r| write_at(r, &P50))),
        key(metric("host.write_latency_us.p99", "p99", Lower, format::latency, |r| write_at(r, &P99))),
        key(metric("host.write_latency_us.p999", "p99.9", Lower, format::latency, |r| write_at(r, &P999))),
        key(metric("host.write_latency_us.p9999", "p99.99", Lower, format::latency, |r| write_at(r, &P9999))),
        key(metric("host.write_latency_us.max", "Maximum", Lower, format::latency, |r| write(r, |l| l.max))),
    ]),
    group("Flush latency", &[
        key(metric("host.flush_latency_us.mean", "Mean", Lower, format::latency, |r| flush(r, |l| l.mean))),
        metric("host.flush_latency_us.p50", "Median (p50)", Lower, format::latency, |r| flush_at(r, &P50)),
        key(metric("host.flush_latency_us.p99", "p99", Lower, format::latency, |r| flush_at(r, &P99))),
        metric("host.flush_latency_us.p999", "p99.9", Lower, format::latency, |r| flush_at(r, &P999)),
        metric("host.flush_latency_us.p9999", "p99.99", Lower, format::latency, |r| flush_at(r, &P9999)),
        key(metric("host.flush_latency_us.max", "Maximum", Lower, format::latency, |r| flush(r, |l| l.max))),
    ]),
    group("Flash", &[
        key(metric("flash.waf", "Write amplification", Lower, format::factor, |r| (r.host.bytes_written > 0).then_some(r.flash.waf))),
        key(metric("steadiness.precondition.waf", "Write amplification, preconditioning", Neutral, format::factor, |r| r.steadiness.precondition.as_ref().map(|settling| settling.waf))),
        key(metric("flash.erases_per_gib", "Block erases per GiB written", Lower, format::number, erases_per_gib)),
        metric("flash.erases", "Block erases", Neutral, count, |r| Some(r.flash.erases as f64)),
        metric("flash.programs.user", "Pages programmed for the host", Neutral, count, |r| Some(r.flash.programs.user as f64)),
        metric("flash.padded_units", "Units padded", Neutral, count, |r| Some(r.flash.padded_units as f64)),
        metric("flash.program_failures", "Failed programs", Neutral, count, |r| Some(r.flash.program_failures as f64)),
        metric("flash.erase_failures", "Failed erases", Neutral, count, |r| Some(r.flash.erase_failures as f64)),
    ]),
    group("Garbage collection", &[
        metric("gc.collections", "Blocks collected", Neutral, count, |r| Some(r.gc.collections as f64)),
        metric("gc.copied_pages", "Pages copied", Neutral, format::number, |r| Some(r.gc.copied_pages)),
        metric("gc.zombie_share_of_copies", "Zombie share of copies", Lower, format::percent, |r| r.hints.as_ref()
            .map(|_| r.gc.copied_zombie_pages / r.gc.copied_pages.max(1.0))),
        metric("gc.copied_zombie_pages", "Zombie pages copied", Neutral, format::number, |r| Some(r.gc.copied_zombie_pages)),
        key(metric("gc.victim_utilisation", "Valid share of victims", Lower, format::percent, |r| (r.gc.collections > 0).then_some(r.gc.victim_utilisation))),
    ]),
    group("Mapping table", &[
        metric("map.pages", "Mapping pages", Neutral, count, |r| Some(r.map.pages as f64)),
        metric("map.protected_pages", "Protected pages", Neutral, count, |r| Some(r.map.protected_pages as f64)),
        metric("map.dirty_peak", "Most dirty at once", Neutral, count, |r| Some(r.map.dirty_peak as f64)),
        metric("map.writebacks", "Written back", Neutral, count, |r| Some(r.map.writebacks as f64)),
        metric("map.journal_pages", "Journal pages written", Neutral, count, |r| Some(r.map.journal_pages as f64)),
        metric("map.hit_ratio", "Updates of dirty pages", Higher, format::percent, |r| Some(r.map.hit_ratio)),
    ]),
    group("Write buffer", &[
        metric("buffer.peak_bytes", "Most held at once", Neutral, bytes, |r| Some(r.buffer.peak_bytes as f64)),
        metric("buffer.stalls_s", "Writes waiting for room", Neutral, format::seconds, |r| Some(r.buffer.stalls_s)),
        metric("buffer.discarded_bytes", "Dropped unwritten", Neutral, bytes, |r| Some(r.buffer.discarded_bytes as f64)),
        metric("buffer.coalesced_writes", "Units overwritten in place", Neutral, count, |r| Some(r.buffer.coalesced_writes as f64)),
        metric("buffer.read_hits", "Units read from it", Neutral, count, |r| Some(r.buffer.read_hits as f64)),
    ]),
    group("Key-value store", &[
        key(metric("zones.store.puts_per_s", "Pairs put per second", Higher, format::number, |r| store(r, |s| s.puts_per_s))),
        key(metric("zones.store.mib_per_s", "Put", Higher, format::mib_per_s, |r| store(r, |s| s.mib_per_s))),
        metric("zones.store.compacted", "Tables compacted", Neutral, count, |r| store(r, |s| s.compacted as f64)),
        metric("zones.store.stalled_s", "Writer stopped", Neutral, format::seconds, |r| store(r, |s| s.stalled_s)),
        metric("zones.store.delayed_s", "Writer slowed down", Neutral, format::seconds, |r| store(r, |s| s.delayed_s)),
        metric("zones.store.exposed_bytes_mean", "Exposed by its order of syncs, mean", Lower, bytes, |r| store(r, |s| s.exposed_bytes_mean.round())),
    ]),
    group("Zoned block device", &[
        key(metric("zoned_block.waf", "Write amplification, end to end", Lower, format::factor, |r| layer(r, |z| z.waf))),
        metric("zoned_block.layer_waf", "Of the layer", Lower, format::factor, |r| layer(r, |z| z.layer_waf)),
        metric("zoned_block.conventional_waf", "Of the conventional drive", Lower, format::factor, |r| layer(r, |z| z.conventional_waf)),
        metric("zoned_block.zoned_waf", "Of the zoned drive", Lower, format::factor, |r| layer(r, |z| z.zoned_waf)),
        key(metric("zoned_block.copied_bytes", "Copied by reclaim", Lower, bytes, |r| layer(r, |z| z.copied_bytes as f64))),
        key(metric("zoned_block.copied_journal_bytes", "Of that, journal", Lower, bytes, |r| layer(r, |z| z.copied_journal_bytes as f64))),
        metric("zoned_block.copied_meta_bytes", "Of that, file-system metadata", Lower, bytes, |r| layer(r, |z| z.copied_meta_bytes as f64)),
        metric("zoned_block.copied_data_bytes", "Of that, data", Lower, bytes, |r| layer(r, |z| z.copied_data_bytes as f64)),
        metric("zoned_block.filled_bytes", "Zeroes filled in", Lower, bytes, |r| layer(r, |z| z.filled_bytes as f64)),
        metric("zoned_block.metadata_bytes", "Tables written", Lower, bytes, |r| layer(r, |z| z.metadata_bytes as f64)),
        metric("zoned_block.separated_bytes", "To journal zones", Neutral, bytes, |r| layer(r, |z| z.separated_bytes as f64)),
        metric("zoned_block.reclaimed", "Chunks moved", Neutral, count, |r| layer(r, |z| z.reclaimed as f64)),
        metric("zoned_block.aborted", "Moves given up", Neutral, count, |r| layer(r, |z| z.aborted as f64)),
        metric("zoned_block.starved", "Requests that waited for a zone", Lower, count, |r| layer(r, |z| z.starved as f64)),
    ]),
    group("Power loss", &[
        key(metric("power.energy_mj.max", "Energy of a dump at the peak", Lower, format::energy, |r| power(r, |p| p.energy_mj.max))),
        metric("power.energy_mj.p50", "Energy of a dump, median", Lower, format::energy, |r| power(r, |p| p.energy_mj.p50)),
        metric("power.worst.energy_mj", "Energy at worst", Lower, format::energy, |r| power(r, |p| p.worst.energy_mj)),
        key(metric("power.capacitance_uf", "Capacitance at the peak", Lower, format::capacitance, |r| power(r, |p| p.capacitance_uf))),
        key(metric("power.worst.capacitance_uf", "Capacitance at worst", Lower, format::capacitance, |r| power(r, |p| p.worst.capacitance_uf))),
        metric("power.bank.capacitance_uf", "The bank's capacitance", Neutral, format::capacitance, |r| power(r, |p| p.bank.capacitance_uf)),
        metric("power.bank.parts", "Parts of the bank", Neutral, count, |r| power(r, |p| p.bank.parts as f64)),
        metric("power.dump_ms.max", "Longest dump", Lower, format::seconds, |r| power(r, |p| p.dump_ms.max / 1e3)),
        metric("power.protected_bytes_peak", "Most to save at once", Neutral, bytes, |r| power(r, |p| p.protected_bytes_peak as f64)),
        metric("power.lost_promised_writes", "Promised writes lost", Lower, count, |r| power(r, |p| p.lost_promised_writes as f64)),
    ]),
    group("Recovery", &[
        key(metric("recovery.time_ms.max", "Ready after", Lower, format::seconds, |r| recovery(r, |v| v.time_ms.max / 1e3))),
        key(metric("recovery.scan_ms.max", "State rebuilt after", Lower, format::seconds, |r| recovery(r, |v| v.scan_ms.max / 1e3))),
        metric("recovery.charge_ms", "Bank charged after", Lower, format::seconds, |r| recovery(r, |v| v.charge_ms / 1e3)),
        metric("recovery.pages_scanned", "Pages scanned", Neutral, count, |r| recovery(r, |v| v.pages_scanned as f64)),
        metric("recovery.pages_restored", "Pages put back", Neutral, count, |r| recovery(r, |v| v.pages_restored as f64)),
    ]),
    group("Wear and utilisation", &[
        metric("wear.mean", "Erases per block, mean", Neutral, format::number, |r| Some(r.wear.mean)),
        metric("wear.max", "Erases per block, most", Neutral, count, |r| Some(r.wear.max as f64)),
        metric("wear.bad_blocks", "Bad blocks", Neutral, count, |r| Some(r.wear.bad_blocks as f64)),
        key(metric("utilisation.dies", "Dies busy, mean", Neutral, format::percent, |r| mean_of(&r.utilisation.dies))),
        metric("utilisation.channels", "Channels busy, mean", Neutral, format::percent, |r| mean_of(&r.utilisation.channels))
    ]),
    // The machine's, and what else it did meanwhile: never judged.
    group("Simulation", &[
        metric("sim.host_ios_per_s", "Host I/Os per second of wall time", Neutral, format::number, |r| Some(r.sim.host_ios_per_s)),
        metric("sim.flash_ops_per_s", "Flash operations per second of wall time", Neutral, format::number, |r| Some(r.sim.flash_ops_per_s)),
        metric("sim.wall_s", "Wall time of the run", Neutral, format::seconds, |r| Some(r.sim.wall_s)),
        metric("sim.precondition_wall_s", "Wall time of preconditioning, before it", Neutral, format::seconds, |r| Some(r.sim.precondition_wall_s)),
        metric("sim.cpu_s", "Processor time of the run", Neutral, format::seconds, |r| Some(r.sim.cpu_s)),
        metric("sim.peak_rss_mib", "Peak memory", Neutral, mib, |r| Some(r.sim.peak_rss_mib)),
        metric("sim.bytes_per_mapping_unit", "State per mapping unit", Neutral, bytes, |r| Some(r.sim.bytes_per_mapping_unit)),
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

    /// Figures that follow from several numbers of a record.
    const DERIVED: [&str; 2] = ["flash.erases_per_gib", "gc.zombie_share_of_copies"];

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
                assert!(known.is_object() || DERIVED.contains(&metric.key), "{}", metric.key);
                let named = known["$ref"].as_str().or(known["anyOf"][0]["$ref"].as_str());
                at = named.and_then(|name| root.pointer(&name[1..])).unwrap_or(known);
            }
        }
    }

    #[test]
    fn a_percentile_of_few_samples_is_none() {
        let mut record = RunRecord::default();
        record.host.write_latency_us =
            Latency { p50: 1.0, p99: 2.0, p999: 3.0, p9999: 4.0, ..Latency::default() };
        for (writes, known) in [(19, 0), (20, 1), (999, 1), (1_000, 2), (99_999, 3), (100_000, 4)] {
            record.host.writes = writes;
            let of = |percentile: &&Percentile| write_at(&record, percentile).is_some();
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
