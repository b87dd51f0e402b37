//! From measurement to run record.

use leyden_device::{Programs, Stats};
use leyden_sim::{Counted, Span, Time};

use super::measure::Measured;
use super::series::{Closed, Direction, Snapshot};
use super::traffic::{Latencies, Traffic};
use leyden_record as record;

const MIB: f64 = 1_048_576.0;

/// Mapping units that a third of a run must have written for its write amplification to say anything.
const LEAST_UNITS: u64 = 1 << 16;

/// Sizes that turn the device's counters into bytes and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Bytes of a flash page.
    pub page_bytes: u64,
    /// Bytes of a mapping unit.
    pub unit_bytes: u64,
    /// Mapping units of a flash block.
    pub block_units: u64,
    /// A page cache stands between: the drive is asked to write less than the host writes, and write
    /// amplification is against that.
    pub is_cached: bool,
}

impl Units {
    /// Bytes that the drive was asked to write; the host wrote so many.
    const fn bytes_asked(&self, units_written: u64, host_bytes: u64) -> u64 {
        if self.is_cached { units_written * self.unit_bytes } else { host_bytes }
    }
}

impl Measured {
    /// Fills in what was measured: `host`, `flash`, `map`, `buffer`, `utilisation` and `series`
    /// whole, `gc` but for the policy's name, `wear.bad_blocks`, `sim.digest`; adds the warnings.
    pub fn fill(&self, units: &Units, record: &mut record::RunRecord) {
        let grown = self.grown();
        record.host = self.host();
        record.flash = self.flash(&grown, units);
        fill_gc(&grown, units, &mut record.gc);
        record.map = map(&grown);
        record.buffer = buffer(&grown, units);
        record.utilisation = self.utilisation(&grown);
        record.series = self.series(units);
        record.steadiness.ramp = self.settling;
        record.steadiness.waf_by_third = self.waf_by_third(units);
        record.wear.bad_blocks = grown.bad_blocks.get();
        record.sim.digest = self.digest.to_string();
        record.warnings.extend(self.warnings.iter().cloned());
    }

    fn host(&self) -> record::Host {
        let elapsed_s = self.elapsed().as_secs_f64();
        // The whole host as one tenant.
        let all = self.traffic.row("", elapsed_s);
        record::Host {
            reads: all.reads,
            writes: all.writes,
            flushes: all.flushes,
            trims: self.traffic.trims.count(),
            errors: self.failed.commands,
            write_faults: self.failed.write_faults,
            bytes_read: all.bytes_read,
            bytes_written: all.bytes_written,
            elapsed_s,
            recorded_s: self.recorded.map(Span::as_secs_f64),
            iops: all.iops,
            mib_per_s: all.mib_per_s,
            read_latency_us: all.read_latency_us,
            write_latency_us: all.write_latency_us,
            flush_latency_us: all.flush_latency_us,
            tenants: self.tenants.shares().map(|(name, it)| it.row(name, elapsed_s)).collect(),
        }
    }

    /// The growth of the device's counters during the measured part.
    pub fn grown(&self) -> Stats {
        self.after.since(&self.before)
    }

    fn flash(&self, grown: &Stats, units: &Units) -> record::Flash {
        let ftl = &grown.ftl;
        let asked = units.bytes_asked(grown.ssd.units_written, self.traffic.bytes_written);
        record::Flash {
            waf: waf(&ftl.programs, asked, units),
            erases: ftl.erases,
            programs: ftl.programs,
            reads: ftl.reads,
            padded_units: ftl.padded_units,
            program_failures: ftl.program_failures,
            erase_failures: ftl.erase_failures,
        }
    }

    fn utilisation(&self, grown: &Stats) -> record::Utilisation {
        let elapsed_ns = self.elapsed().as_ns() as f64;
        let share = |busy: &Span| ratio(busy.as_ns() as f64, elapsed_ns);
        record::Utilisation {
            dies: grown.die_busy.iter().map(share).collect(),
            channels: grown.channel_busy.iter().map(share).collect(),
        }
    }

    /// Write amplification in each third of what was written; empty if that is too little to tell.
    fn waf_by_third(&self, units: &Units) -> Vec<f64> {
        let ends = self.series.closed.iter().map(|closed| &closed.device);
        let all = self.grown().ssd.units_written;
        if all / 3 < LEAST_UNITS {
            return Vec::new();
        }
        let (mut before, mut wafs) = (&self.series.before, Vec::new());
        for end in ends {
            let due = all * (wafs.len() as u64 + 1) / 3;
            if end.units_written - self.series.before.units_written >= due {
                let grown = end.since(before);
                wafs.push(waf(&grown.programs, grown.units_written * units.unit_bytes, units));
                before = end;
            }
        }
        wafs
    }

    fn series(&self, units: &Units) -> record::Series {
        let mut series = record::Series {
            interval_s: self.series.length.as_secs_f64(),
            start_s: self.start.since(self.run_start).as_secs_f64(),
            ..record::Series::default()
        };
        let (dies, channels) = (self.after.die_busy.len(), self.after.channel_busy.len());
        let (mut start, mut before) = (self.series.start, self.series.before);
        for interval in &self.series.closed {
            let shown = Shown::new(start, &before, interval);
            series.time_s.push(interval.end.since(self.series.start).as_secs_f64());
            shown.push_host(interval, &mut series);
            shown.push_flash(interval, units, &mut series);
            series.die_busy.push(shown.busy(shown.grown.die_busy, dies));
            series.channel_busy.push(shown.busy(shown.grown.channel_busy, channels));
            series.buffered_bytes.push(interval.device.buffered_units.get() * units.unit_bytes);
            series.free_blocks.push(interval.device.free_blocks.get());
            (start, before) = (interval.end, interval.device);
        }
        series
    }
}

impl Traffic {
    /// The share of tenant `name` during `elapsed_s` seconds.
    fn row(&self, name: &str, elapsed_s: f64) -> record::Tenant {
        let (reads, writes) = (self.reads.count(), self.writes.count());
        let bytes = self.bytes_read + self.bytes_written;
        record::Tenant {
            name: name.to_owned(),
            reads,
            writes,
            flushes: self.flushes.count(),
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            iops: ratio((reads + writes) as f64, elapsed_s),
            mib_per_s: ratio(bytes as f64 / MIB, elapsed_s),
            read_latency_us: latency(&self.reads),
            write_latency_us: latency(&self.writes),
            flush_latency_us: latency(&self.flushes),
        }
    }
}

/// An interval of the series, as rates.
struct Shown {
    seconds: f64,
    grown: Snapshot,
}

impl Shown {
    fn new(start: Time, before: &Snapshot, interval: &Closed) -> Self {
        Self {
            seconds: interval.end.since(start).as_secs_f64(),
            grown: interval.device.since(before),
        }
    }

    fn push_host(&self, interval: &Closed, series: &mut record::Series) {
        let (reads, writes) = (&interval.host.reads, &interval.host.writes);
        let flushes = &interval.host.flushes;
        let iops = |direction: &Direction| ratio(direction.count as f64, self.seconds);
        let rate = |direction: &Direction| ratio(direction.bytes as f64 / MIB, self.seconds);
        let mean = |direction: &Direction| {
            ratio(direction.latency_sum_ns as f64 / 1e3, direction.count as f64)
        };
        let max = |direction: &Direction| direction.latency_max_ns as f64 / 1e3;
        let percentile = |direction: &Direction, percent| {
            let ns = direction.latencies.percentile_ns(percent).min(direction.latency_max_ns);
            ns as f64 / 1e3
        };
        series.read_iops.push(iops(reads));
        series.write_iops.push(iops(writes));
        series.read_mib_per_s.push(rate(reads));
        series.write_mib_per_s.push(rate(writes));
        series.read_mean_us.push(mean(reads));
        series.read_max_us.push(max(reads));
        series.read_p50_us.push(percentile(reads, 50));
        series.read_p99_us.push(percentile(reads, 99));
        series.write_mean_us.push(mean(writes));
        series.write_max_us.push(max(writes));
        series.write_p50_us.push(percentile(writes, 50));
        series.write_p99_us.push(percentile(writes, 99));
        series.flushes_per_s.push(iops(flushes));
        series.flush_mean_us.push(mean(flushes));
        series.flush_max_us.push(max(flushes));
        series.flush_p50_us.push(percentile(flushes, 50));
        series.flush_p99_us.push(percentile(flushes, 99));
        let outstanding_s = interval.host.outstanding_ns as f64 / 1e9;
        series.queue_depth.push(ratio(outstanding_s, self.seconds));
    }

    fn push_flash(&self, interval: &Closed, units: &Units, series: &mut record::Series) {
        let rate = |count: u64| ratio(count as f64, self.seconds).round() as u64;
        let grown = &self.grown;
        let asked = units.bytes_asked(grown.units_written, interval.host.writes.bytes);
        series.waf.push(waf(&grown.programs, asked, units));
        series.programs.push(grown.programs.map_each(rate));
        series.reads.push(grown.reads.map_each(rate));
    }

    fn busy(&self, busy: Span, of: usize) -> f64 {
        ratio(busy.as_ns() as f64 / 1e9, self.seconds * of as f64)
    }
}

fn fill_gc(grown: &Stats, units: &Units, gc: &mut record::Gc) {
    let of = &grown.ftl.gc;
    let page_units = units.page_bytes as f64 / units.unit_bytes as f64;
    gc.collections = of.collections;
    gc.wear_moves = of.wear_moves;
    gc.copied_pages = of.copied_units as f64 / page_units;
    gc.copied_zombie_pages = of.copied_zombie_units as f64 / page_units;
    gc.victim_utilisation =
        ratio(of.victim_valid_units as f64, (of.collections * units.block_units) as f64);
}

fn map(grown: &Stats) -> record::Map {
    let of = &grown.map;
    record::Map {
        pages: grown.map_pages.get(),
        protected_pages: grown.map_protected_pages.get(),
        dirty_peak: of.dirty_peak.get(),
        writebacks: of.writebacks,
        journal_pages: of.journal_pages,
        hit_ratio: ratio(of.hits as f64, of.updates as f64),
    }
}

fn buffer(grown: &Stats, units: &Units) -> record::Buffer {
    let of = &grown.buffer;
    record::Buffer {
        peak_bytes: of.peak_units.get() * units.unit_bytes,
        stalls_s: grown.ssd.stalled.as_ns() as f64 / 1e9,
        discarded_bytes: of.discarded_units * units.unit_bytes,
        coalesced_writes: of.coalesced_units,
        read_hits: grown.ssd.read_hits,
    }
}

/// `part / whole`; 0 of nothing is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

fn waf(programs: &Programs, bytes_written: u64, units: &Units) -> f64 {
    ratio((programs.total() * units.page_bytes) as f64, bytes_written as f64)
}

fn latency(latencies: &Latencies) -> record::Latency {
    if latencies.count() == 0 {
        return record::Latency::default();
    }
    let quantile = |q| latencies.quantile_ns(q) as f64 / 1e3;
    let distribution = latencies.distribution();
    record::Latency {
        mean: latencies.mean_ns() / 1e3,
        p50: quantile(0.5),
        p99: quantile(0.99),
        p999: quantile(0.999),
        p9999: quantile(0.9999),
        max: latencies.max_ns() as f64 / 1e3,
        distribution: distribution
            .into_iter()
            .map(|(percentile, ns)| (percentile, ns as f64 / 1e3))
            .collect(),
    }
}
