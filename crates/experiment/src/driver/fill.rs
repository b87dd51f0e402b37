//! From measurement to run record.

use leyden_device::{Programs, Reads, Stats};
use leyden_sim::{Span, Time};

use super::measure::Measured;
use super::series::{Closed, Direction, Snapshot};
use super::traffic::{Latencies, Traffic};
use crate::record;

const MIB: f64 = 1_048_576.0;

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

impl Measured {
    /// Fills in what was measured: `host`, `flash`, `map`, `buffer`, `utilisation` and `series`
    /// whole, `gc` but for the policy's name, `wear.bad_blocks`, `sim.digest`; adds the warnings.
    pub fn fill(&self, units: &Units, record: &mut record::RunRecord) {
        record.host = self.host();
        record.flash = self.flash(units);
        self.fill_gc(units, &mut record.gc);
        record.map = self.map();
        record.buffer = self.buffer(units);
        record.utilisation = self.utilisation();
        record.series = self.series(units);
        record.wear.bad_blocks = self.after.bad_blocks;
        record.sim.digest = self.digest.to_string();
        record.warnings.extend(self.warnings.iter().cloned());
    }

    fn host(&self) -> record::Host {
        let elapsed_s = self.elapsed().as_secs_f64();
        // What the whole host got, as one of those that share the drive.
        let all = self.traffic.row("", elapsed_s);
        record::Host {
            reads: all.reads,
            writes: all.writes,
            flushes: all.flushes,
            trims: self.traffic.trims.count(),
            errors: self.errors,
            bytes_read: all.bytes_read,
            bytes_written: all.bytes_written,
            elapsed_s,
            iops: all.iops,
            mib_per_s: all.mib_per_s,
            read_latency_us: all.read_latency_us,
            write_latency_us: all.write_latency_us,
            flush_latency_us: all.flush_latency_us,
            tenants: self.tenants.shares().map(|(name, it)| it.row(name, elapsed_s)).collect(),
        }
    }

    /// How much a counter grew.
    fn grown(&self, counter: impl Fn(&Stats) -> u64) -> u64 {
        counter(&self.after) - counter(&self.before)
    }

    /// Bytes that the drive was asked to write.
    fn bytes_asked(&self, units: &Units) -> u64 {
        if units.is_cached {
            self.grown(|stats| stats.host_units_written) * units.unit_bytes
        } else {
            self.traffic.bytes_written
        }
    }

    fn flash(&self, units: &Units) -> record::Flash {
        let programs = programs_between(&self.before.programs, &self.after.programs);
        record::Flash {
            waf: waf(&programs, self.bytes_asked(units), units),
            erases: self.grown(|stats| stats.erases),
            programs,
            reads: reads_between(&self.before.reads, &self.after.reads),
            padded_units: self.grown(|stats| stats.padded_units),
            program_failures: self.grown(|stats| stats.program_failures),
            erase_failures: self.grown(|stats| stats.erase_failures),
        }
    }

    fn fill_gc(&self, units: &Units, gc: &mut record::Gc) {
        gc.collections = self.grown(|stats| stats.gc_collections);
        let page_units = units.page_bytes as f64 / units.unit_bytes as f64;
        gc.copied_pages = self.grown(|stats| stats.gc_copied_units) as f64 / page_units;
        gc.copied_zombie_pages =
            self.grown(|stats| stats.gc_copied_zombie_units) as f64 / page_units;
        gc.victim_utilisation = ratio(
            self.grown(|stats| stats.gc_victim_valid_units) as f64,
            (gc.collections * units.block_units) as f64,
        );
    }

    fn map(&self) -> record::Map {
        record::Map {
            pages: self.after.map_pages,
            protected_pages: self.after.map_protected_pages,
            dirty_peak: self.after.map_dirty_peak,
            writebacks: self.grown(|stats| stats.map_writebacks),
            journal_pages: self.grown(|stats| stats.map_journal_pages),
            hit_ratio: ratio(
                self.grown(|stats| stats.map_update_hits) as f64,
                self.grown(|stats| stats.map_updates) as f64,
            ),
        }
    }

    fn buffer(&self, units: &Units) -> record::Buffer {
        record::Buffer {
            peak_bytes: self.after.buffer_peak_units * units.unit_bytes,
            stalls_s: self.grown(|stats| stats.buffer_stalled.as_ns()) as f64 / 1e9,
            discarded_bytes: self.grown(|stats| stats.buffer_discarded_units) * units.unit_bytes,
            coalesced_writes: self.grown(|stats| stats.buffer_coalesced_units),
            read_hits: self.grown(|stats| stats.buffer_read_hits),
        }
    }

    fn utilisation(&self) -> record::Utilisation {
        let elapsed_ns = self.elapsed().as_ns() as f64;
        let shares = |before: &[Span], after: &[Span]| {
            let before = before.iter().copied().chain(std::iter::repeat(Span::ZERO));
            let grown = after.iter().zip(before).map(|(a, b)| a.as_ns() - b.as_ns());
            grown.map(|busy_ns| ratio(busy_ns as f64, elapsed_ns)).collect()
        };
        record::Utilisation {
            dies: shares(&self.before.die_busy, &self.after.die_busy),
            channels: shares(&self.before.channel_busy, &self.after.channel_busy),
        }
    }

    fn series(&self, units: &Units) -> record::Series {
        let mut series = record::Series {
            interval_s: self.series.length.as_secs_f64(),
            ..record::Series::default()
        };
        let (dies, channels) = (self.after.die_busy.len(), self.after.channel_busy.len());
        let (mut start, mut before) = (self.series.start, self.series.before);
        for interval in &self.series.closed {
            let shown = Shown::new(start, &before, interval);
            series.time_s.push(interval.end.since(self.series.start).as_secs_f64());
            shown.push_host(interval, &mut series);
            shown.push_flash(interval, units, &mut series);
            series.die_busy.push(shown.busy(interval.device.die_busy, before.die_busy, dies));
            series.channel_busy.push(shown.busy(
                interval.device.channel_busy,
                before.channel_busy,
                channels,
            ));
            (start, before) = (interval.end, interval.device);
        }
        series
    }
}

impl Traffic {
    /// What `name` got, in so many seconds.
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
    programs: record::Programs,
    reads: record::Reads,
    units_written: u64,
}

impl Shown {
    fn new(start: Time, before: &Snapshot, interval: &Closed) -> Self {
        Self {
            seconds: interval.end.since(start).as_secs_f64(),
            programs: programs_between(&before.programs, &interval.device.programs),
            reads: reads_between(&before.reads, &interval.device.reads),
            units_written: interval.device.units_written - before.units_written,
        }
    }

    fn push_host(&self, interval: &Closed, series: &mut record::Series) {
        let (reads, writes) = (&interval.host.reads, &interval.host.writes);
        let iops = |direction: &Direction| ratio(direction.count as f64, self.seconds);
        let rate = |direction: &Direction| ratio(direction.bytes as f64 / MIB, self.seconds);
        let mean = |direction: &Direction| {
            ratio(direction.latency_sum_ns as f64 / 1e3, direction.count as f64)
        };
        let max = |direction: &Direction| direction.latency_max_ns as f64 / 1e3;
        series.read_iops.push(iops(reads));
        series.write_iops.push(iops(writes));
        series.read_mib_per_s.push(rate(reads));
        series.write_mib_per_s.push(rate(writes));
        series.read_mean_us.push(mean(reads));
        series.read_max_us.push(max(reads));
        series.write_mean_us.push(mean(writes));
        series.write_max_us.push(max(writes));
    }

    fn push_flash(&self, interval: &Closed, units: &Units, series: &mut record::Series) {
        let rate = |count: u64| ratio(count as f64, self.seconds).round() as u64;
        let (p, r) = (&self.programs, &self.reads);
        let asked = if units.is_cached {
            self.units_written * units.unit_bytes
        } else {
            interval.host.writes.bytes
        };
        series.waf.push(waf(p, asked, units));
        series.programs.push(record::Programs {
            user: rate(p.user),
            gc_user: rate(p.gc_user),
            map: rate(p.map),
            gc_map: rate(p.gc_map),
            dump: rate(p.dump),
            recovery: rate(p.recovery),
        });
        series.reads.push(record::Reads {
            host: rate(r.host),
            rmw: rate(r.rmw),
            gc_user: rate(r.gc_user),
            recovery: rate(r.recovery),
        });
    }

    fn busy(&self, after: Span, before: Span, of: usize) -> f64 {
        let busy_ns = after.as_ns() - before.as_ns();
        ratio(busy_ns as f64 / 1e9, self.seconds * of as f64)
    }
}

/// `part / whole`; 0 of nothing is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

fn waf(programs: &record::Programs, bytes_written: u64, units: &Units) -> f64 {
    let p = programs;
    let pages = p.user + p.gc_user + p.map + p.gc_map + p.dump + p.recovery;
    ratio((pages * units.page_bytes) as f64, bytes_written as f64)
}

fn programs_between(before: &Programs, after: &Programs) -> record::Programs {
    record::Programs {
        user: after.user - before.user,
        gc_user: after.gc_user - before.gc_user,
        map: after.map - before.map,
        gc_map: after.gc_map - before.gc_map,
        dump: after.dump - before.dump,
        recovery: after.recovery - before.recovery,
    }
}

fn reads_between(before: &Reads, after: &Reads) -> record::Reads {
    record::Reads {
        host: after.host - before.host,
        rmw: after.rmw - before.rmw,
        gc_user: after.gc_user - before.gc_user,
        recovery: after.recovery - before.recovery,
    }
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
        max: latencies.max_ns() as f64 / 1e3,
        distribution: distribution
            .into_iter()
            .map(|(percentile, ns)| (percentile, ns as f64 / 1e3))
            .collect(),
    }
}
