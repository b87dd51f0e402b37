//! Counters over time, as columns that a chart can draw.
//!
//! A chart is some 600 pixels wide, and a record has up to 1,024 intervals, in which a drive's collections
//! come and go: drawn one by one they beat with the pixels, and one run's line hides another's. So runs of
//! consecutive intervals become one, at most [`MAX_POINTS`] of them, and the 5th and 95th percentile of what
//! was joined are kept as a band around it. How intervals are joined depends on what they hold:
//! - a maximum keeps the maximum, so that no spike is lost;
//! - a rate or a share becomes the mean, weighted by the length of the intervals;
//! - a latency becomes the mean over all the commands, weighted by how many there were: of percentiles
//!   too, so that a point is a typical interval's percentile, not that of all the commands;
//! - write amplification becomes the mean over all the bytes, weighted by what the host wrote.
//!
//! A record says 0 for the latency or the write amplification of an interval in which nothing was
//! read or written. That is "no value" here, and a gap in the line.

use crate::format::rounded;
use leyden_record::{Programs, Reads, Series};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Most points of a line.
pub(crate) const MAX_POINTS: usize = 160;
/// Fewer intervals than these make no band.
const LEAST_FOR_BAND: usize = 3;
/// Fewer commands than these in a point make no 99th percentile.
const LEAST_FOR_P99: f64 = 100.0;

type Get = fn(&Series, usize) -> Option<f64>;

/// How intervals are joined into one.
#[derive(Clone, Copy)]
enum Join {
    /// The largest.
    Max,
    /// The mean over time.
    Mean,
    /// The mean over whatever the getter counts per second.
    MeanOver(Get),
}

/// One column of a series.
pub(crate) struct Column {
    /// Its name in the page's data.
    pub name: &'static str,
    get: Get,
    join: Join,
    /// Whether 0 stands for "no value".
    zero_is_none: bool,
    /// Commands without which there is no value.
    least: f64,
}

/// The series of one run, thinned out.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Columns {
    /// Where the first interval starts, seconds.
    pub start: f64,
    /// End of each interval, seconds.
    pub time: Vec<f64>,
    /// Values by column name; each as long as `time`.
    pub values: BTreeMap<&'static str, Vec<Option<f64>>>,
    /// Of what was joined into them, the 5th and the 95th percentile. Only if enough was.
    pub bands: BTreeMap<&'static str, Band>,
}

impl Columns {
    /// The columns whose names are `drawn`, and the bands of those where that is true.
    pub(crate) fn only(&self, drawn: impl Fn(&str) -> Option<bool>) -> Self {
        let mut only = self.clone();
        only.values.retain(|name, _| drawn(name).is_some());
        only.bands.retain(|name, _| drawn(name) == Some(true));
        if only.values.is_empty() {
            only.time.clear();
        }
        only
    }
}

/// Two values for each point of a line.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Band {
    /// The lower.
    pub low: Vec<Option<f64>>,
    /// The upper.
    pub high: Vec<Option<f64>>,
}

macro_rules! field {
    ($field:ident) => {
        |s: &Series, i: usize| s.$field.get(i).copied()
    };
    ($list:ident . $field:ident) => {
        |s: &Series, i: usize| s.$list.get(i).map(|p| p.$field as f64)
    };
}

const fn rate(name: &'static str, get: Get) -> Column {
    Column { name, get, join: Join::Mean, zero_is_none: false, least: 0.0 }
}

const fn gaps(name: &'static str, get: Get, join: Join) -> Column {
    Column { name, get, join, zero_is_none: true, least: 0.0 }
}

/// A 99th percentile: of fewer commands than [`LEAST_FOR_P99`] it is their maximum.
const fn p99(name: &'static str, get: Get, per_s: Get) -> Column {
    let join = Join::MeanOver(per_s);
    Column { name, get, join, zero_is_none: true, least: LEAST_FOR_P99 }
}

/// Every column, in no particular order.
static COLUMNS: &[Column] = &[
    rate("read_iops", field!(read_iops)),
    rate("write_iops", field!(write_iops)),
    rate("read_mib_per_s", field!(read_mib_per_s)),
    rate("write_mib_per_s", field!(write_mib_per_s)),
    gaps("read_mean_us", field!(read_mean_us), Join::MeanOver(field!(read_iops))),
    gaps("read_p50_us", field!(read_p50_us), Join::MeanOver(field!(read_iops))),
    p99("read_p99_us", field!(read_p99_us), field!(read_iops)),
    gaps("read_max_us", field!(read_max_us), Join::Max),
    gaps("write_mean_us", field!(write_mean_us), Join::MeanOver(field!(write_iops))),
    gaps("write_p50_us", field!(write_p50_us), Join::MeanOver(field!(write_iops))),
    p99("write_p99_us", field!(write_p99_us), field!(write_iops)),
    gaps("write_max_us", field!(write_max_us), Join::Max),
    gaps("flush_p50_us", field!(flush_p50_us), Join::MeanOver(field!(flushes_per_s))),
    p99("flush_p99_us", field!(flush_p99_us), field!(flushes_per_s)),
    gaps("flush_max_us", field!(flush_max_us), Join::Max),
    gaps("waf", field!(waf), Join::MeanOver(field!(write_mib_per_s))),
    rate("die_busy", field!(die_busy)),
    rate("channel_busy", field!(channel_busy)),
    rate("queue_depth", field!(queue_depth)),
    rate("buffered_bytes", |s, i| s.buffered_bytes.get(i).map(|bytes| *bytes as f64)),
    rate("free_blocks", |s, i| s.free_blocks.get(i).map(|blocks| *blocks as f64)),
    rate("programs.user", field!(programs.user)),
    rate("programs.gc_user", field!(programs.gc_user)),
    rate("programs.map", field!(programs.map)),
    rate("programs.gc_map", field!(programs.gc_map)),
    rate("programs.dump", field!(programs.dump)),
    rate("reads.host", field!(reads.host)),
    rate("reads.rmw", field!(reads.rmw)),
    rate("reads.gc_user", field!(reads.gc_user)),
    rate("reads.recovery", field!(reads.recovery)),
];

/// The column of that name.
fn column(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|c| c.name == name)
}

/// Where the first interval starts.
pub(crate) fn start(series: &Series) -> f64 {
    let first = series.time_s.first().copied().unwrap_or(0.0);
    // A run shorter than its interval has one short interval, which starts at 0.
    (first - series.interval_s).max(0.0)
}

/// All columns of a series, thinned out.
pub(crate) fn columns(series: &Series) -> Columns {
    let n = series.time_s.len();
    let step = n.div_ceil(MAX_POINTS).max(1);
    let pieces: Vec<Range<usize>> =
        (0..n).step_by(step).map(|from| from..(from + step).min(n)).collect();
    let time = pieces.iter().map(|r| series.time_s[r.end - 1]);
    Columns {
        start: start(series),
        time: time.collect(),
        values: COLUMNS
            .iter()
            .map(|c| {
                let values = pieces.iter().map(|r| join(c, series, r.clone()));
                (c.name, values.map(|v| v.map(rounded)).collect())
            })
            .collect(),
        bands: if step < LEAST_FOR_BAND { BTreeMap::new() } else { bands(series, &pieces) },
    }
}

/// The bands of the columns that have one: a maximum has none, nor has a stack's layer.
fn bands(series: &Series, pieces: &[Range<usize>]) -> BTreeMap<&'static str, Band> {
    let banded = COLUMNS.iter().filter(|c| !matches!(c.join, Join::Max) && !c.name.contains('.'));
    let of = |column: &Column| {
        let mut band = Band::default();
        for piece in pieces {
            let mut values: Vec<f64> =
                present(column, series, piece.clone()).map(|(_, v)| v).collect();
            values.sort_by(f64::total_cmp);
            let at = |share: f64| {
                let rank = (values.len() as f64 * share).ceil() as usize;
                values.get(rank.max(1) - 1).copied().map(rounded)
            };
            band.low.push(at(0.05));
            band.high.push(at(0.95));
        }
        (column.name, band)
    };
    banded.map(of).collect()
}

/// The value of the named column over the intervals that end in `(after, until]`, for tables.
pub(crate) fn between(series: &Series, name: &str, after: f64, until: f64) -> Option<f64> {
    let from = series.time_s.partition_point(|&t| t <= after);
    let to = series.time_s.partition_point(|&t| t <= until);
    join(column(name)?, series, from..to)
}

/// One value for several intervals.
fn join(column: &Column, series: &Series, range: Range<usize>) -> Option<f64> {
    let values = present(column, series, range);
    match column.join {
        Join::Max => values.map(|(_, v)| v).reduce(f64::max),
        Join::Mean => mean(values.map(|(i, v)| (v, length(series, i)))),
        Join::MeanOver(weight) => {
            let weigh = |(i, v)| {
                let per_s = weight(series, i).filter(|w| w.is_finite());
                (v, per_s.unwrap_or(0.0) * length(series, i))
            };
            let weighed: Vec<(f64, f64)> = values.map(weigh).collect();
            let commands: f64 = weighed.iter().map(|(_, weight)| weight).sum();
            // Rates are rounded: 100 commands may come back as 99.99.
            (commands + 0.5 >= column.least).then(|| mean(weighed.into_iter())).flatten()
        }
    }
}

/// The values that there are, with their intervals.
fn present<'a>(
    column: &'a Column,
    series: &'a Series,
    range: Range<usize>,
) -> impl Iterator<Item = (usize, f64)> + 'a {
    range.filter_map(|i| {
        let value = (column.get)(series, i)?;
        let absent = !value.is_finite() || (column.zero_is_none && value <= 0.0);
        (!absent).then_some((i, value))
    })
}

/// Length of an interval; the last may be short.
fn length(series: &Series, i: usize) -> f64 {
    let before = if i == 0 { start(series) } else { series.time_s[i - 1] };
    series.time_s[i] - before
}

/// The weighted mean; the plain one if all weights are 0; none of nothing.
fn mean(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut sum, mut weights, mut plain, mut n) = (0.0, 0.0, 0.0, 0_u32);
    for (value, weight) in values {
        sum += value * weight;
        weights += weight;
        plain += value;
        n += 1;
    }
    match n {
        0 => None,
        _ if weights > 0.0 => Some(sum / weights),
        n => Some(plain / f64::from(n)),
    }
}

/// A cause of programs or reads, and where its numbers stand.
pub(crate) struct Cause<T: 'static> {
    /// Its name on the page.
    pub label: &'static str,
    /// Its column.
    pub column: &'static str,
    /// Index into the palette: reads are blue and writes orange everywhere.
    pub colour: usize,
    /// Its total.
    pub total: fn(&T) -> u64,
}

/// Why pages were programmed.
pub(crate) static PROGRAM_CAUSES: [Cause<Programs>; 5] = [
    Cause { label: "Host data", column: "programs.user", colour: 1, total: |p| p.user },
    Cause { label: "GC, data", column: "programs.gc_user", colour: 3, total: |p| p.gc_user },
    Cause { label: "Mapping table", column: "programs.map", colour: 4, total: |p| p.map },
    Cause { label: "GC, mapping", column: "programs.gc_map", colour: 6, total: |p| p.gc_map },
    Cause { label: "Power-loss dump", column: "programs.dump", colour: 7, total: |p| p.dump },
];

/// Why pages were read.
pub(crate) static READ_CAUSES: [Cause<Reads>; 4] = [
    Cause { label: "Host data", column: "reads.host", colour: 0, total: |r| r.host },
    Cause { label: "GC, data", column: "reads.gc_user", colour: 3, total: |r| r.gc_user },
    Cause { label: "Read-modify-write", column: "reads.rmw", colour: 2, total: |r| r.rmw },
    Cause { label: "Recovery", column: "reads.recovery", colour: 5, total: |r| r.recovery },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn long(n: usize) -> Series {
        Series {
            interval_s: 1.0,
            time_s: (1..=n).map(|i| i as f64).collect(),
            read_iops: (0..n).map(|i| (i % 2) as f64 * 100.0).collect(),
            read_mean_us: (0..n).map(|i| (i % 2) as f64 * 80.0).collect(),
            read_max_us: (0..n).map(|i| if i == 777 { 5000.0 } else { 100.0 }).collect(),
            write_mean_us: vec![0.0; n],
            ..Series::default()
        }
    }

    #[test]
    fn long_series_keep_their_maxima_and_their_ends() {
        let columns = columns(&long(6001));
        assert!(columns.time.len() <= MAX_POINTS);
        assert_eq!(columns.time.last(), Some(&6001.0));
        let max = &columns.values["read_max_us"];
        assert!(max.contains(&Some(5000.0)));
        let band = &columns.bands["read_iops"];
        assert_eq!((band.low[3], band.high[3]), (Some(0.0), Some(100.0)), "what the mean hides");
        assert!(!columns.bands.contains_key("read_max_us"));
    }

    #[test]
    fn means_weigh_what_they_are_means_of() {
        let columns = columns(&long(6000));
        // Half the intervals read nothing: they halve the rate, and leave the latency alone.
        assert_eq!(columns.values["read_iops"][3], Some(50.0));
        assert_eq!(columns.values["read_mean_us"][3], Some(80.0));
        assert!(columns.values["write_mean_us"].iter().all(Option::is_none));
    }

    #[test]
    fn a_99th_percentile_takes_100_commands() {
        // An interval of one second with so many reads.
        let p99 = |reads| {
            let series = Series {
                interval_s: 1.0,
                time_s: vec![1.0],
                read_iops: vec![reads],
                read_p99_us: vec![90.0],
                read_max_us: vec![95.0],
                ..Series::default()
            };
            let columns = columns(&series);
            assert_eq!(columns.values["read_max_us"], [Some(95.0)]);
            columns.values["read_p99_us"][0]
        };
        assert_eq!((p99(99.0), p99(100.0)), (None, Some(90.0)));
    }

    #[test]
    fn short_columns_and_strange_numbers_are_gaps() {
        let series = Series {
            interval_s: 1.0,
            time_s: vec![1.0, 2.0],
            read_iops: vec![f64::NAN],
            ..Series::default()
        };
        let columns = columns(&series);
        assert_eq!(columns.values["read_iops"], [None, None]);
        assert_eq!(columns.values["programs.user"], [None, None]);
    }

    #[test]
    fn every_cause_has_its_column() {
        let programs = PROGRAM_CAUSES.iter().map(|c| c.column);
        for name in programs.chain(READ_CAUSES.iter().map(|c| c.column)) {
            assert!(column(name).is_some(), "{name}");
        }
    }
}
