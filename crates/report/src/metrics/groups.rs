//! The list of figures: one entry gives a figure its key, label, unit, better direction and source.

use super::{Better, Metric, MetricGroup, Percentile, Source, Unit, mean_of, notes};
use Better::{Higher, Lower, Neutral};
use Unit::{
    Bytes, Count, Factor, Mib, MibPerS, Microfarads, Micros, Millijoules, Millis, Number, Seconds,
    Share,
};
use leyden_record::{
    Cache, FlushWaits, Hints, Latency, Power, Recovery, RunRecord, Store, ZonedBlock, Zones,
};

const fn metric(
    key: &'static str,
    label: &'static str,
    unit: Unit,
    better: Better,
    get: fn(&RunRecord) -> Option<f64>,
) -> Metric {
    let source = Source::Value(get);
    Metric {
        key,
        label,
        unit,
        better,
        source,
        formula: "",
        is_key: false,
        is_row: true,
        card: None,
    }
}

/// A latency of the commands that `of` selects.
const fn latency(
    key: &'static str,
    percentile: &'static Percentile,
    of: fn(&RunRecord) -> (u64, &Latency),
) -> Metric {
    let source = Source::Latency(of, percentile);
    let (label, unit, better) = (percentile.label, Micros, Lower);
    Metric {
        key,
        label,
        unit,
        better,
        source,
        formula: "",
        is_key: false,
        is_row: true,
        card: None,
    }
}

/// A comparison begins with it.
const fn key(metric: Metric) -> Metric {
    Metric { is_key: true, ..metric }
}

/// The table of a run has it in a row with others.
const fn beside(metric: Metric) -> Metric {
    Metric { is_row: false, ..metric }
}

/// It follows from several numbers of the record.
const fn derived(formula: &'static str, metric: Metric) -> Metric {
    Metric { formula, ..metric }
}

/// A report shows it in large type, with a sentence below.
const fn card(metric: Metric, note: fn(&RunRecord) -> String) -> Metric {
    Metric { card: Some(note), ..metric }
}

const fn group(title: &'static str, metrics: &'static [Metric]) -> MetricGroup {
    MetricGroup { title, metrics }
}

fn reads(r: &RunRecord) -> (u64, &Latency) {
    (r.host.reads, &r.host.read_latency_us)
}

fn writes(r: &RunRecord) -> (u64, &Latency) {
    (r.host.writes, &r.host.write_latency_us)
}

fn flushes(r: &RunRecord) -> (u64, &Latency) {
    (r.host.flushes, &r.host.flush_latency_us)
}

fn power(r: &RunRecord, pick: fn(&Power) -> f64) -> Option<f64> {
    r.power.as_ref().map(pick)
}

fn recovery(r: &RunRecord, pick: fn(&Recovery) -> f64) -> Option<f64> {
    r.recovery.as_ref().map(pick)
}

fn zones(r: &RunRecord, pick: fn(&Zones) -> f64) -> Option<f64> {
    r.zones.as_ref().map(pick)
}

fn store(r: &RunRecord, pick: fn(&Store) -> f64) -> Option<f64> {
    r.zones.as_ref().and_then(|zones| zones.store.as_ref()).map(pick)
}

fn layer(r: &RunRecord, pick: fn(&ZonedBlock) -> f64) -> Option<f64> {
    r.zoned_block.as_ref().map(pick)
}

fn cache(r: &RunRecord, pick: fn(&Cache) -> f64) -> Option<f64> {
    r.cache.as_ref().map(pick)
}

fn hints(r: &RunRecord, pick: fn(&Hints) -> f64) -> Option<f64> {
    r.hints.as_ref().map(pick)
}

/// A sum over the flushes that waited, for each of them.
fn flush_wait(r: &RunRecord, pick: fn(&FlushWaits) -> u64) -> Option<f64> {
    let waits = &r.zones.as_ref()?.flush_waits;
    (waits.flushes > 0).then(|| pick(waits) as f64 / waits.flushes as f64)
}

fn erases_per_gib(r: &RunRecord) -> Option<f64> {
    let written_gib = r.host.bytes_written as f64 / f64::from(1 << 30);
    (written_gib > 0.0).then(|| r.flash.erases as f64 / written_gib)
}

const fn percentile(
    label: &'static str,
    least_samples: u64,
    get: fn(&Latency) -> f64,
) -> Percentile {
    Percentile { label, least_samples, get }
}

const MEAN: Percentile = percentile("Mean", 1, |l| l.mean);
const P50: Percentile = percentile("Median (p50)", 20, |l| l.p50);
const P99: Percentile = percentile("p99", 1_000, |l| l.p99);
const P999: Percentile = percentile("p99.9", 10_000, |l| l.p999);
const P9999: Percentile = percentile("p99.99", 100_000, |l| l.p9999);
const MAX: Percentile = percentile("Maximum", 1, |l| l.max);

/// The percentiles that a record has.
pub const PERCENTILES: [Percentile; 4] = [P50, P99, P999, P9999];

#[rustfmt::skip] // one figure a line, so that the list reads as the table it becomes
pub(super) static GROUPS: &[MetricGroup] = &[
    group("Host", &[
        card(key(metric("host.iops", "IOPS", Number, Higher, |r| Some(r.host.iops))), notes::commands),
        card(key(metric("host.mib_per_s", "Bandwidth", MibPerS, Higher, |r| Some(r.host.mib_per_s))), notes::bandwidth),
        beside(metric("host.reads", "Reads", Count, Neutral, |r| Some(r.host.reads as f64))),
        beside(metric("host.writes", "Writes", Count, Neutral, |r| Some(r.host.writes as f64))),
        beside(metric("host.flushes", "Flushes", Count, Neutral, |r| Some(r.host.flushes as f64))),
        metric("host.trims", "Trims and write-zeroes", Count, Neutral, |r| Some(r.host.trims as f64)),
        metric("host.errors", "Commands that failed", Count, Lower, |r| Some(r.host.errors as f64)),
        beside(metric("host.bytes_read", "Read", Bytes, Neutral, |r| Some(r.host.bytes_read as f64))),
        beside(metric("host.bytes_written", "Written", Bytes, Neutral, |r| Some(r.host.bytes_written as f64))),
        metric("host.elapsed_s", "Simulated time", Seconds, Neutral, |r| Some(r.host.elapsed_s)),
        beside(metric("host.recorded_s", "Recorded in", Seconds, Neutral, |r| r.host.recorded_s)),
    ]),
    group("Read latency", &[
        beside(key(latency("host.read_latency_us.mean", &MEAN, reads))),
        beside(key(latency("host.read_latency_us.p50", &P50, reads))),
        beside(key(latency("host.read_latency_us.p99", &P99, reads))),
        beside(key(latency("host.read_latency_us.p999", &P999, reads))),
        beside(key(latency("host.read_latency_us.p9999", &P9999, reads))),
        beside(key(latency("host.read_latency_us.max", &MAX, reads))),
    ]),
    group("Write latency", &[
        beside(key(latency("host.write_latency_us.mean", &MEAN, writes))),
        beside(key(latency("host.write_latency_us.p50", &P50, writes))),
        beside(key(latency("host.write_latency_us.p99", &P99, writes))),
        beside(key(latency("host.write_latency_us.p999", &P999, writes))),
        beside(key(latency("host.write_latency_us.p9999", &P9999, writes))),
        beside(key(latency("host.write_latency_us.max", &MAX, writes))),
    ]),
    group("Flush latency", &[
        beside(key(latency("host.flush_latency_us.mean", &MEAN, flushes))),
        beside(latency("host.flush_latency_us.p50", &P50, flushes)),
        beside(key(latency("host.flush_latency_us.p99", &P99, flushes))),
        beside(latency("host.flush_latency_us.p999", &P999, flushes)),
        beside(latency("host.flush_latency_us.p9999", &P9999, flushes)),
        beside(key(latency("host.flush_latency_us.max", &MAX, flushes))),
    ]),
    group("Flash", &[
        card(key(metric("flash.waf", "Write amplification", Factor, Lower, |r| (r.host.bytes_written > 0).then_some(r.flash.waf))), notes::programs),
        beside(key(metric("steadiness.precondition.waf", "Write amplification, preconditioning", Factor, Neutral, |r| r.steadiness.precondition.as_ref().map(|settling| settling.waf)))),
        key(derived("flash.erases / host.bytes_written", metric("flash.erases_per_gib", "Block erases per GiB written", Number, Lower, erases_per_gib))),
        metric("flash.erases", "Block erases", Count, Neutral, |r| Some(r.flash.erases as f64)),
        beside(metric("flash.programs.user", "Pages programmed for the host", Count, Neutral, |r| Some(r.flash.programs.user as f64))),
        metric("flash.padded_units", "Units padded", Count, Neutral, |r| Some(r.flash.padded_units as f64)),
        metric("flash.program_failures", "Failed programs", Count, Neutral, |r| Some(r.flash.program_failures as f64)),
        metric("flash.erase_failures", "Failed erases", Count, Neutral, |r| Some(r.flash.erase_failures as f64)),
    ]),
    group("Garbage collection", &[
        metric("gc.collections", "Blocks collected", Count, Neutral, |r| Some(r.gc.collections as f64)),
        metric("gc.wear_moves", "Blocks emptied to level wear", Count, Neutral, |r| (r.gc.wear_moves > 0).then_some(r.gc.wear_moves as f64)),
        metric("gc.copied_pages", "Pages copied", Number, Neutral, |r| Some(r.gc.copied_pages)),
        derived("gc.copied_zombie_pages / gc.copied_pages", metric("gc.zombie_share_of_copies", "Zombie share of copies", Share, Lower, |r| r.hints.as_ref()
            .map(|_| r.gc.copied_zombie_pages / r.gc.copied_pages.max(1.0)))),
        metric("gc.copied_zombie_pages", "Zombie pages copied", Number, Neutral, |r| Some(r.gc.copied_zombie_pages)),
        key(metric("gc.victim_utilisation", "Valid share of victims", Share, Lower, |r| (r.gc.collections > 0).then_some(r.gc.victim_utilisation))),
    ]),
    group("Mapping table", &[
        metric("map.pages", "Mapping pages", Count, Neutral, |r| Some(r.map.pages as f64)),
        metric("map.protected_pages", "Protected pages", Count, Neutral, |r| Some(r.map.protected_pages as f64)),
        metric("map.dirty_peak", "Most dirty at once", Count, Neutral, |r| Some(r.map.dirty_peak as f64)),
        metric("map.writebacks", "Written back", Count, Neutral, |r| Some(r.map.writebacks as f64)),
        metric("map.journal_pages", "Journal pages written", Count, Neutral, |r| Some(r.map.journal_pages as f64)),
        metric("map.hit_ratio", "Updates of dirty pages", Share, Higher, |r| Some(r.map.hit_ratio)),
    ]),
    group("Write buffer", &[
        metric("buffer.peak_bytes", "Most held at once", Bytes, Neutral, |r| Some(r.buffer.peak_bytes as f64)),
        metric("buffer.stalls_s", "Writes waiting for room", Seconds, Neutral, |r| Some(r.buffer.stalls_s)),
        metric("buffer.discarded_bytes", "Dropped unwritten", Bytes, Neutral, |r| Some(r.buffer.discarded_bytes as f64)),
        metric("buffer.coalesced_writes", "Units overwritten in place", Count, Neutral, |r| Some(r.buffer.coalesced_writes as f64)),
        metric("buffer.read_hits", "Units read from it", Count, Neutral, |r| Some(r.buffer.read_hits as f64)),
    ]),
    group("Zones", &[
        metric("zones.resets", "Resets", Count, Neutral, |r| zones(r, |z| z.resets as f64)),
        metric("zones.finishes", "Finished early", Count, Neutral, |r| zones(r, |z| z.finishes as f64)),
        metric("zones.implicit_closes", "Closed to open others", Count, Neutral, |r| zones(r, |z| z.implicit_closes as f64)),
        metric("zones.protected_peak_bytes", "Protected region, peak", Bytes, Neutral, |r| zones(r, |z| z.protected_peak_bytes as f64)),
        metric("zones.discarded_protected_bytes", "Protected region, reset before programmed", Bytes, Neutral, |r| zones(r, |z| z.discarded_protected_bytes as f64)),
        metric("zones.plain_peak_bytes", "Unprotected region, peak", Bytes, Neutral, |r| zones(r, |z| z.plain_peak_bytes as f64)),
        metric("zones.discarded_plain_bytes", "Unprotected region, reset before programmed", Bytes, Neutral, |r| zones(r, |z| z.discarded_plain_bytes as f64)),
        metric("zones.promoted_bytes", "Protected with data above it", Bytes, Neutral, |r| zones(r, |z| z.promoted_bytes as f64)),
        metric("zones.flush_waits.flushes", "Flushes that waited", Count, Neutral, |r| zones(r, |z| z.flush_waits.flushes as f64)),
        derived("zones.flush_waits.bytes / zones.flush_waits.flushes", metric("zones.flush_waits.bytes_mean", "Data that a flush waited for, mean", Bytes, Lower, |r| flush_wait(r, |w| w.bytes))),
        metric("zones.flush_waits.bytes_peak", "Data that a flush waited for, most", Bytes, Lower, |r| zones(r, |z| z.flush_waits.bytes_peak as f64)),
        derived("zones.flush_waits.zones / zones.flush_waits.flushes", metric("zones.flush_waits.zones_mean", "Zones that a flush waited for, mean", Number, Lower, |r| flush_wait(r, |w| w.zones))),
    ]),
    group("Key-value store", &[
        key(metric("zones.store.puts_per_s", "Pairs put per second", Number, Higher, |r| store(r, |s| s.puts_per_s))),
        key(metric("zones.store.mib_per_s", "Put", MibPerS, Higher, |r| store(r, |s| s.mib_per_s))),
        metric("zones.store.puts", "Pairs put", Count, Neutral, |r| store(r, |s| s.puts as f64)),
        metric("zones.store.log_append_p99_us", "Log appends, p99", Micros, Lower, |r| store(r, |s| s.log_append_p99_us)),
        metric("zones.store.flushed", "Memtables flushed", Count, Neutral, |r| store(r, |s| s.flushed as f64)),
        metric("zones.store.compacted", "Tables compacted", Count, Neutral, |r| store(r, |s| s.compacted as f64)),
        metric("zones.store.stalled_s", "Writer stopped", Seconds, Neutral, |r| store(r, |s| s.stalled_s)),
        metric("zones.store.delayed_s", "Writer slowed down", Seconds, Neutral, |r| store(r, |s| s.delayed_s)),
        metric("zones.store.exposed_bytes_mean", "Exposed by its order of syncs, mean", Bytes, Lower, |r| store(r, |s| s.exposed_bytes_mean)),
        metric("zones.store.exposed_bytes_peak", "Exposed by its order of syncs, peak", Bytes, Lower, |r| store(r, |s| s.exposed_bytes_peak as f64)),
        metric("zones.store.lost_puts", "Pairs that power cuts took", Count, Lower, |r| store(r, |s| s.lost_puts as f64)),
        metric("zones.store.lost_table_bytes", "Lost of tables, without a log", Bytes, Lower, |r| store(r, |s| s.lost_table_bytes as f64)),
    ]),
    group("Zoned block device", &[
        key(metric("zoned_block.waf", "Write amplification, end to end", Factor, Lower, |r| layer(r, |z| z.waf))),
        metric("zoned_block.layer_waf", "Of the layer", Factor, Lower, |r| layer(r, |z| z.layer_waf)),
        metric("zoned_block.conventional_waf", "Of the conventional drive", Factor, Lower, |r| layer(r, |z| z.conventional_waf)),
        metric("zoned_block.zoned_waf", "Of the zoned drive", Factor, Lower, |r| layer(r, |z| z.zoned_waf)),
        key(metric("zoned_block.copied_bytes", "Copied by reclaim", Bytes, Lower, |r| layer(r, |z| z.copied_bytes as f64))),
        key(metric("zoned_block.copied_journal_bytes", "Copied by reclaim, journal", Bytes, Lower, |r| layer(r, |z| z.copied_journal_bytes as f64))),
        metric("zoned_block.copied_meta_bytes", "Copied by reclaim, file-system metadata", Bytes, Lower, |r| layer(r, |z| z.copied_meta_bytes as f64)),
        metric("zoned_block.copied_data_bytes", "Copied by reclaim, data", Bytes, Lower, |r| layer(r, |z| z.copied_data_bytes as f64)),
        metric("zoned_block.filled_bytes", "Zeroes filled in", Bytes, Lower, |r| layer(r, |z| z.filled_bytes as f64)),
        metric("zoned_block.metadata_bytes", "Tables written", Bytes, Lower, |r| layer(r, |z| z.metadata_bytes as f64)),
        metric("zoned_block.host_bytes", "Written by the host", Bytes, Neutral, |r| layer(r, |z| z.host_bytes as f64)),
        metric("zoned_block.host_journal_bytes", "Written by the host, journal", Bytes, Neutral, |r| layer(r, |z| z.host_journal_bytes as f64)),
        metric("zoned_block.journal_share_of_copies", "Journal share of copies", Share, Lower, |r| layer(r, |z| z.journal_share_of_copies)),
        metric("zoned_block.separated_bytes", "To journal zones", Bytes, Neutral, |r| layer(r, |z| z.separated_bytes as f64)),
        metric("zoned_block.reclaimed", "Chunks moved", Count, Neutral, |r| layer(r, |z| z.reclaimed as f64)),
        metric("zoned_block.aborted", "Moves given up", Count, Neutral, |r| layer(r, |z| z.aborted as f64)),
        metric("zoned_block.starved", "Requests that waited for a zone", Count, Lower, |r| layer(r, |z| z.starved as f64)),
    ]),
    group("Page cache", &[
        metric("cache.hit_ratio", "Pages read that were in it", Share, Higher, |r| cache(r, |c| c.hit_ratio)),
        derived("cache.rewritten / (cache.dirtied + cache.rewritten)", metric("cache.rewritten_share", "Pages written that were dirty", Share, Neutral, |r|
            cache(r, |c| c.rewritten as f64 / (c.dirtied + c.rewritten).max(1) as f64))),
        metric("cache.written_back", "Pages written back", Count, Neutral, |r| cache(r, |c| c.written_back as f64)),
        metric("cache.direct", "Requests that bypass it", Count, Neutral, |r| cache(r, |c| c.direct as f64)),
        metric("cache.throttled_writes", "Throttled writes", Count, Neutral, |r| cache(r, |c| c.throttled_writes as f64)),
        metric("cache.throttled_s", "Throttled for", Seconds, Neutral, |r| cache(r, |c| c.throttled_s)),
        metric("cache.dirty_bytes_mean", "Dirty data, mean", Bytes, Neutral, |r| cache(r, |c| c.dirty_bytes_mean)),
        metric("cache.dirty_bytes_peak", "Dirty data, peak", Bytes, Neutral, |r| cache(r, |c| c.dirty_bytes_peak as f64)),
        metric("cache.dirty_bytes_left", "Dirty data at the end", Bytes, Neutral, |r| cache(r, |c| c.dirty_bytes_left as f64)),
        metric("cache.failed", "Pages lost: not writable", Count, Lower, |r| cache(r, |c| c.failed as f64)),
    ]),
    // The host counts in units of 4 KiB.
    group("Zombie hints", &[
        card(metric("hints.known_dirty_share", "Dirty data known to the drive", Share, Higher, |r| r.hints.as_ref()?.known_dirty_share), notes::hints),
        card(metric("hints.known_overwrite_share", "Overwrites known before", Share, Higher, |r| r.hints.as_ref()?.known_overwrite_share), notes::hints),
        metric("hints.announced", "Units announced", Count, Neutral, |r| hints(r, |h| h.announced as f64)),
        metric("hints.sent", "Units sent", Count, Neutral, |r| hints(r, |h| h.sent as f64)),
        metric("hints.commands", "Commands for hints", Count, Neutral, |r| hints(r, |h| h.commands as f64)),
        metric("hints.repeated", "Units announced again while waiting", Count, Neutral, |r| hints(r, |h| h.repeated as f64)),
        metric("hints.withdrawn", "Units written before sent", Count, Neutral, |r| hints(r, |h| h.withdrawn as f64)),
        metric("hints.dropped", "Units dropped from a full queue", Count, Neutral, |r| hints(r, |h| h.dropped as f64)),
        metric("hints.missing", "Units lost on the way", Count, Neutral, |r| hints(r, |h| h.missing as f64)),
        metric("hints.beyond_end", "Units beyond the drive's end", Count, Neutral, |r| hints(r, |h| h.beyond_end as f64)),
        metric("hints.false_announced", "Units announced falsely", Count, Neutral, |r| hints(r, |h| h.false_announced as f64)),
        metric("hints.empty_units", "Units named that hold nothing", Count, Neutral, |r| hints(r, |h| h.empty_units as f64)),
        metric("hints.zombie_bytes_mean", "Zombie data, mean", Bytes, Neutral, |r| hints(r, |h| h.zombie_bytes_mean)),
    ]),
    group("Power loss", &[
        beside(key(metric("power.energy_mj.max", "Energy of a dump at the peak", Millijoules, Lower, |r| power(r, |p| p.energy_mj.max)))),
        beside(metric("power.energy_mj.p50", "Energy of a dump, median", Millijoules, Lower, |r| power(r, |p| p.energy_mj.p50))),
        beside(metric("power.worst.energy_mj", "Energy at worst", Millijoules, Lower, |r| power(r, |p| p.worst.energy_mj))),
        card(beside(key(metric("power.capacitance_uf", "Capacitance at the peak", Microfarads, Lower, |r| power(r, |p| p.capacitance_uf)))), notes::dump),
        beside(key(metric("power.worst.capacitance_uf", "Capacitance at worst", Microfarads, Lower, |r| power(r, |p| p.worst.capacitance_uf)))),
        beside(metric("power.bank.capacitance_uf", "The bank's capacitance", Microfarads, Neutral, |r| power(r, |p| p.bank.capacitance_uf))),
        beside(metric("power.bank.parts", "Parts of the bank", Count, Neutral, |r| power(r, |p| p.bank.parts as f64))),
        beside(metric("power.dump_ms.max", "Longest dump", Millis, Lower, |r| power(r, |p| p.dump_ms.max))),
        metric("power.worst.dump_ms", "Hold-up time at worst", Millis, Lower, |r| power(r, |p| p.worst.dump_ms)),
        metric("power.protected_bytes_peak", "Most to save at once", Bytes, Neutral, |r| power(r, |p| p.protected_bytes_peak as f64)),
        beside(metric("power.lost_promised_writes", "Promised writes lost", Count, Lower, |r| power(r, |p| p.lost_promised_writes as f64))),
    ]),
    group("Recovery", &[
        beside(key(metric("recovery.time_ms.max", "Ready after", Millis, Lower, |r| recovery(r, |v| v.time_ms.max)))),
        key(metric("recovery.scan_ms.max", "State rebuilt after", Millis, Lower, |r| recovery(r, |v| v.scan_ms.max))),
        beside(metric("recovery.charge_ms", "Bank charged after", Millis, Lower, |r| recovery(r, |v| v.charge_ms))),
        metric("recovery.pages_scanned", "Pages scanned", Count, Neutral, |r| recovery(r, |v| v.pages_scanned as f64)),
        metric("recovery.pages_restored", "Pages put back", Count, Neutral, |r| recovery(r, |v| v.pages_restored as f64)),
    ]),
    group("Wear and utilisation", &[
        metric("wear.min", "Erases per block, least", Count, Neutral, |r| Some(r.wear.min as f64)),
        metric("wear.mean", "Erases per block, mean", Number, Neutral, |r| Some(r.wear.mean)),
        metric("wear.max", "Erases per block, most", Count, Neutral, |r| Some(r.wear.max as f64)),
        metric("wear.bad_blocks", "Bad blocks", Count, Neutral, |r| Some(r.wear.bad_blocks as f64)),
        card(key(metric("utilisation.dies", "Dies busy, mean", Share, Neutral, |r| mean_of(&r.utilisation.dies))), notes::busy),
        metric("utilisation.channels", "Channels busy, mean", Share, Neutral, |r| mean_of(&r.utilisation.channels)),
    ]),
    // The machine's, and what else it did meanwhile: never judged.
    group("Simulation", &[
        metric("sim.host_ios_per_s", "Host I/Os per second of wall time", Number, Neutral, |r| Some(r.sim.host_ios_per_s)),
        metric("sim.flash_ops_per_s", "Flash operations per second of wall time", Number, Neutral, |r| Some(r.sim.flash_ops_per_s)),
        metric("sim.wall_s", "Wall time of the run", Seconds, Neutral, |r| Some(r.sim.wall_s)),
        metric("sim.precondition_wall_s", "Wall time of preconditioning, before it", Seconds, Neutral, |r| Some(r.sim.precondition_wall_s)),
        metric("sim.cpu_s", "Processor time of the run", Seconds, Neutral, |r| Some(r.sim.cpu_s)),
        metric("sim.peak_rss_mib", "Peak memory", Mib, Neutral, |r| Some(r.sim.peak_rss_mib)),
        metric("sim.host_ios_per_cpu_s", "Host I/Os per second of processor time", Number, Neutral, |r| Some(r.sim.host_ios_per_cpu_s)),
        metric("sim.flash_ops_per_cpu_s", "Flash operations per second of processor time", Number, Neutral, |r| Some(r.sim.flash_ops_per_cpu_s)),
        metric("sim.bytes_per_mapping_unit", "State per mapping unit", Bytes, Neutral, |r| Some(r.sim.bytes_per_mapping_unit)),
    ]),
];
