//! Metrics as OpenMetrics text (<https://prometheus.io/docs/specs/om/open_metrics_spec/>): the format, and those of served drives.
//!
//! One list for each subject names them. Figures that run records have, too, name their key there: the same count under the same meaning.

use std::fmt::Write;
use std::sync::Arc;

use leyden_device::ZoneState;

use super::reading::Reading;
use crate::latencies::{Kind as Command, Latency};

/// The text's type for clients.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The text about one drive is not longer, nor is what stands around it, nor that about a campaign.
pub(super) const PART_MOST: usize = 64 << 10;
/// The last line.
pub(super) const END: &str = "# EOF\n";

/// Upper ends of the buckets of latencies, in nanoseconds: 1, 2, 5 and so on, from a microsecond to ten seconds.
const BUCKETS_NS: [u64; 22] = {
    let (mut ends, mut decade_ns, mut at) = ([0; 22], 1_000, 0);
    while at < 22 {
        ends[at] = decade_ns * [1, 2, 5][at % 3];
        at += 1;
        if at.is_multiple_of(3) {
            decade_ns *= 10;
        }
    }
    ends
};

/// The kind of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServedKind {
    /// A count that grows.
    Counter,
    /// A level.
    Gauge,
    /// A distribution.
    Histogram,
    /// Facts as labels.
    Info,
}

impl ServedKind {
    /// Its name in OpenMetrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// A label and its value, or neither, and the number beside it.
pub(super) type Point = (&'static str, &'static str, f64);

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct ServedMetric {
    /// Its name, with the unit at its end.
    pub name: &'static str,
    /// Its kind.
    pub kind: ServedKind,
    /// The unit, if it has one; the name ends with it.
    pub unit: &'static str,
    /// The meaning, in one line.
    pub help: &'static str,
    /// The key of the same figure in run records, or none.
    pub key: &'static str,
}

/// A metric, and its values in a `T`.
pub(super) struct Measured<T: 'static> {
    pub(super) metric: ServedMetric,
    pub(super) points: fn(&T) -> Vec<Point>,
}

const fn metric(
    name: &'static str,
    kind: ServedKind,
    unit: &'static str,
    key: &'static str,
    help: &'static str,
    points: fn(&Reading) -> Vec<Point>,
) -> Measured<Reading> {
    Measured { metric: ServedMetric { name, kind, unit, help, key }, points }
}

pub(super) fn one(value: f64) -> Vec<Point> {
    vec![("", "", value)]
}

pub(super) fn count(value: u64) -> Vec<Point> {
    one(value as f64)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn banks(reading: &Reading, of: fn(&super::reading::Bank) -> Option<f64>) -> Vec<Point> {
    reading.banks.iter().filter_map(|bank| Some(("bank", bank.of, of(bank)?))).collect()
}

use ServedKind::{Counter, Gauge, Histogram, Info};

/// Metrics of served drives, in the order of the text.
#[rustfmt::skip] // one metric a line, so that the list reads as a table
static METRICS: &[Measured<Reading>] = &[
    metric("leyden_drive", Info, "", "", "The drive: its kind.", |r| vec![("kind", r.kind, 1.0)]),
    metric("leyden_power_on", Gauge, "", "", "1 with power, 0 without.", |r| count(r.status.is_on.into())),
    metric("leyden_simulated_time_seconds", Gauge, "seconds", "", "The drive's clock.", |r| one(seconds(r.status.time_ns))),
    metric("leyden_capacity_bytes", Gauge, "bytes", "", "Bytes that can be addressed.", |r| count(r.status.capacity_bytes)),
    metric("leyden_image_bytes", Gauge, "bytes", "", "Bytes that the image takes in its file system.", |r| count(r.status.allocated_bytes)),
    metric("leyden_reads", Counter, "", "host.reads", "Read commands.", |r| count(r.status.reads)),
    metric("leyden_writes", Counter, "", "host.writes", "Write commands, those of zeroes included.", |r| count(r.status.writes)),
    metric("leyden_flushes", Counter, "", "host.flushes", "Flush commands.", |r| count(r.status.flushes)),
    metric("leyden_trims", Counter, "", "", "Trim commands.", |r| count(r.status.trims)),
    metric("leyden_errors", Counter, "", "host.errors", "Commands that failed.", |r| count(r.status.failed)),
    metric("leyden_read_bytes", Counter, "bytes", "host.bytes_read", "Bytes that hosts have asked to read.", |r| count(r.counts.read_bytes)),
    metric("leyden_written_bytes", Counter, "bytes", "host.bytes_written", "Bytes that hosts have written.", |r| count(r.counts.written_bytes)),
    metric("leyden_in_flight", Gauge, "", "", "Commands in flight.", |r| count(r.status.pending)),
    metric("leyden_command_latency_seconds", Histogram, "seconds", "", "Latency of successful commands of the modelled drive, in its own time.", |_| Vec::new()),
    metric("leyden_host_share_ratio", Gauge, "ratio", "", "Share of the commands' time that the serving machine took; above 0.2 it is the limit.", |r| r.status.host_share.map_or_else(Vec::new, one)),
    metric("leyden_write_amplification_ratio", Gauge, "ratio", "flash.waf", "Units programmed for each unit written, since the drive was opened.", |r| if r.amplified().1 > 0 { one(r.status.waf) } else { Vec::new() }),
    metric("leyden_programmed_pages", Counter, "pages", "", "Flash pages programmed, by cause.", programs),
    metric("leyden_erased_blocks", Counter, "blocks", "flash.erases", "Flash blocks erased.", |r| count(r.stats.ftl.erases)),
    metric("leyden_gc_collected_blocks", Counter, "blocks", "gc.collections", "Blocks that garbage collection chose.", |r| count(r.stats.ftl.gc.collections)),
    metric("leyden_gc_copied_bytes", Counter, "bytes", "", "Bytes that garbage collection copied.", |r| count(r.stats.ftl.gc.copied_units * r.unit_bytes)),
    metric("leyden_bad_blocks", Gauge, "blocks", "wear.bad_blocks", "Blocks that are bad.", |r| count(r.stats.bad_blocks.get())),
    metric("leyden_die_busy_seconds", Counter, "seconds", "", "Time that dies were busy, summed over dies.", |r| one(r.stats.die_busy.iter().map(|it| it.as_secs_f64()).sum())),
    metric("leyden_dies", Gauge, "", "", "Dies.", |r| count(r.stats.die_busy.len() as u64)),
    metric("leyden_buffer_bytes", Gauge, "bytes", "", "Bytes in the write buffer, by region.", |r| r.buffer.map_or_else(Vec::new, |it| vec![("region", "protected", it.protected_bytes as f64), ("region", "plain", it.plain_bytes as f64)])),
    metric("leyden_buffer_size_bytes", Gauge, "bytes", "", "Size of the write buffer, by region.", |r| r.buffer.map_or_else(Vec::new, |it| vec![("region", "protected", it.protected_size_bytes as f64), ("region", "plain", it.plain_size_bytes as f64)])),
    metric("leyden_map_dirty_pages", Gauge, "pages", "", "Pages of the mapping table that are dirty.", |r| r.map.map_or_else(Vec::new, |it| count(it.0.into()))),
    metric("leyden_map_dirty_limit_pages", Gauge, "pages", "", "Pages of the mapping table that may be dirty at once.", |r| r.map.map_or_else(Vec::new, |it| count(it.1.into()))),
    metric("leyden_zones", Gauge, "", "", "Zones, by state.", |r| r.zones.map_or_else(Vec::new, |it| ZoneState::ALL.iter().zip(it.states).map(|(state, count)| ("state", state.name(), count.into())).collect())),
    metric("leyden_open_zones", Gauge, "zones", "", "Zones that are open.", |r| r.zones.map_or_else(Vec::new, |it| count(it.open.into()))),
    metric("leyden_active_zones", Gauge, "zones", "", "Zones that are active, open ones included.", |r| r.zones.map_or_else(Vec::new, |it| count(it.active.into()))),
    metric("leyden_layer_copied_bytes", Counter, "bytes", "zoned_block.copied_bytes", "Bytes that reclaim of the layer on two drives copied.", |r| r.status.zoned_block.as_ref().map_or_else(Vec::new, |it| count(it.copied_bytes))),
    metric("leyden_bank_joules", Gauge, "joules", "", "Energy of the full capacitor bank.", |r| banks(r, |bank| Some(seconds(bank.holds_nj)))),
    metric("leyden_cut_joules", Gauge, "joules", "", "Energy that a power cut now would take from the bank.", |r| banks(r, |bank| Some(seconds(bank.needs?.energy_nj)))),
    metric("leyden_cut_dump_seconds", Gauge, "seconds", "", "Time that the dump of a power cut now would take.", |r| banks(r, |bank| Some(seconds(bank.needs?.dump_ns)))),
    metric("leyden_cut_promised_bytes", Gauge, "bytes", "", "Acknowledged bytes that only the dump of a power cut now would save.", |r| banks(r, |bank| Some(bank.needs?.promised_bytes as f64))),
    metric("leyden_power_cuts", Counter, "", "", "Power cuts since the server began.", |r| count(r.cut_count)),
    metric("leyden_lost_bytes", Counter, "bytes", "", "Acknowledged bytes that power cuts have lost since the server began.", |r| count(r.lost_bytes)),
    metric("leyden_recording_bytes", Gauge, "bytes", "", "Bytes of the recording.", |r| r.recorded.map_or_else(Vec::new, |it| count(it.bytes))),
];

fn programs(reading: &Reading) -> Vec<Point> {
    let by = &reading.stats.ftl.programs;
    let all = [
        ("host", by.user),
        ("gc", by.gc_user),
        ("map", by.map),
        ("gc_map", by.gc_map),
        ("dump", by.dump),
    ];
    all.map(|(cause, pages)| ("cause", cause, pages as f64)).to_vec()
}

/// Metrics of served drives, in the order of the text.
pub fn served_metrics() -> impl Iterator<Item = &'static ServedMetric> {
    METRICS.iter().map(|it| &it.metric)
}

/// The text about drives of these names.
pub(super) fn text(names: &[String], readings: &[Arc<Reading>]) -> String {
    let mut text = String::new();
    for measured in METRICS {
        family(&mut text, measured, names, readings);
    }
    text + END
}

fn family(
    text: &mut String,
    Measured { metric, points }: &Measured<Reading>,
    names: &[String],
    readings: &[Arc<Reading>],
) {
    describe(text, metric);
    for (drive, reading) in names.iter().zip(readings) {
        let drive = format!("drive=\"{}\"", escaped(drive));
        if metric.kind == Histogram {
            for command in Command::ALL {
                let labels = format!("{drive},command=\"{}\"", command.name());
                buckets(text, metric.name, &labels, reading.latencies.of(command));
            }
        }
        for point in points(reading) {
            value(text, metric, &drive, point);
        }
    }
}

/// Writes the lines before a metric's values.
pub(super) fn describe(text: &mut String, metric: &ServedMetric) {
    let ServedMetric { name, kind, unit, help, .. } = metric;
    // Writing to a string does not fail.
    let _ = writeln!(text, "# TYPE {name} {}", kind.name());
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
}

/// Writes a value, with its labels behind `labels`.
pub(super) fn value(text: &mut String, metric: &ServedMetric, labels: &str, point: Point) {
    let (label, of, number) = point;
    let suffix = match metric.kind {
        Counter => "_total",
        Info => "_info",
        Gauge | Histogram => "",
    };
    let comma = if labels.is_empty() || label.is_empty() { "" } else { "," };
    let own = if label.is_empty() { String::new() } else { format!("{label}=\"{of}\"") };
    let all = format!("{labels}{comma}{own}");
    let braced = if all.is_empty() { all } else { format!("{{{all}}}") };
    let _ = writeln!(text, "{}{suffix}{braced} {number}", metric.name);
}

/// The cumulative buckets of one kind of command, their count and their sum.
fn buckets(text: &mut String, name: &str, labels: &str, latency: &Latency) {
    let histogram = &latency.histogram;
    let mut values = histogram.iter_recorded().peekable();
    let mut below = 0;
    for end in BUCKETS_NS {
        // A value stands for a hundredth around it. Its lower end is what a model of round numbers has.
        let is_below = |value: u64| histogram.lowest_equivalent(value) <= end;
        while let Some(value) = values.next_if(|it| is_below(it.value_iterated_to())) {
            below += value.count_since_last_iteration();
        }
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{:?}\"}} {below}", seconds(end));
    }
    let all = histogram.len();
    let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {all}");
    let _ = writeln!(text, "{name}_count{{{labels}}} {all}");
    let _ = writeln!(text, "{name}_sum{{{labels}}} {}", seconds(latency.sum_ns));
}

/// A label's value as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_in_the_buckets_that_end_above_them() {
        let mut latencies = crate::latencies::Latencies::default();
        for ns in [10_000, 10_000, 11_000, 4_000_000, 20_000_000_000] {
            latencies.record(Command::Read, leyden_sim::Span::from_ns(ns));
        }
        let mut text = String::new();
        buckets(&mut text, "x", "a=\"b\"", latencies.of(Command::Read));
        for line in [
            "x_bucket{a=\"b\",le=\"5e-6\"} 0",
            "x_bucket{a=\"b\",le=\"1e-5\"} 2",
            "x_bucket{a=\"b\",le=\"2e-5\"} 3",
            "x_bucket{a=\"b\",le=\"0.002\"} 3",
            "x_bucket{a=\"b\",le=\"0.005\"} 4",
            "x_bucket{a=\"b\",le=\"10.0\"} 4",
            "x_bucket{a=\"b\",le=\"+Inf\"} 5",
            "x_count{a=\"b\"} 5",
            "x_sum{a=\"b\"} 20.004031",
        ] {
            assert!(text.lines().any(|it| it == line), "no {line} in\n{text}");
        }
    }

    /// The rules of the format that a list can break.
    #[test]
    fn names_have_their_units_and_are_there_once() {
        let all = || served_metrics().chain(super::super::campaign_metrics());
        let mut names: Vec<_> = all().map(|metric| metric.name).collect();
        for metric in all() {
            let (name, unit) = (metric.name, metric.unit);
            let is_clean = |it: char| it.is_ascii_lowercase() || it == '_';
            assert!(name.starts_with("leyden_") && name.chars().all(is_clean), "{name}");
            assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name} {unit}");
            assert!(!name.ends_with("_total") && !name.ends_with("_info"), "{name}");
            assert!(
                metric.help.ends_with('.') && !metric.help.contains(['\\', '"', '\n']),
                "{name}"
            );
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
        assert_eq!((BUCKETS_NS[0], BUCKETS_NS[3], BUCKETS_NS[21]), (1_000, 10_000, 10_000_000_000));
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
