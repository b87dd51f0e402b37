//! What a trace is like: its sizes, footprint, locality, rates.
//!
//! **What lives here**: one pass over a stream of requests. **What doesn't**: what a device makes
//! of them.
//!
//! **Invariants**
//! - Exact but for the quantiles of overwrite distances, which are at most 1/64 too high.
//! - Memory grows with the number of distinct extents written and read, never with the trace's
//!   length or with one request's size.

mod extents;

use std::collections::BTreeMap;

use leyden_device::{Op, SECTOR_BYTES};
use leyden_sim::Time;
use serde::Serialize;

use crate::{Class, Request};

use super::error::TraceError;
use extents::{Cover, Extents};

/// What footprints and overwrites are counted in: the usual mapping unit.
const UNIT_BYTES: u64 = 4096;
const UNIT_SECTORS: u64 = UNIT_BYTES / SECTOR_BYTES;
/// Ends of requests that are remembered to call a request sequential.
const STREAMS: usize = 32;

/// What a trace is like. A 4 KiB unit counts as written or read when any sector of it is.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Profile {
    /// Requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub trims: u64,
    /// Commands to write zeroes.
    pub write_zeroes: u64,
    /// Requests with forced unit access.
    pub fua: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes discarded.
    pub bytes_trimmed: u64,
    /// Bytes of commands to write zeroes.
    pub bytes_zeroed: u64,
    /// Reads by size: up to so many bytes (a power of two), and more than half as many.
    pub read_sizes: BTreeMap<u64, u64>,
    /// Writes by size, likewise.
    pub write_sizes: BTreeMap<u64, u64>,
    /// Distinct 4 KiB units read, in bytes.
    pub footprint_read_bytes: u64,
    /// Distinct 4 KiB units written, in bytes.
    pub footprint_written_bytes: u64,
    /// Distinct 4 KiB units read or written, in bytes.
    pub footprint_bytes: u64,
    /// First byte that a request touches.
    pub first_byte: u64,
    /// First byte beyond all that requests touch: the smallest device that holds the trace.
    pub end_byte: u64,
    /// Time of the last request, in seconds.
    pub duration_s: f64,
    /// Requests a second, over that time; 0 if it is zero.
    pub mean_iops: f64,
    /// MiB read and written a second, over that time; 0 if it is zero.
    pub mean_mib_per_s: f64,
    /// Share of the units written that were written before in the trace.
    pub overwrite_share: f64,
    /// How much is written between two writes of the same unit.
    pub overwrite_distances: Distances,
    /// Share of requests with an address that begin where one of the last 32 such requests ended.
    pub sequential_share: f64,
    /// Share of the reads and writes that begin and end at multiples of 4 KiB.
    pub aligned_share: f64,
    /// Bytes written by class of their data.
    pub bytes_written_by_class: BTreeMap<&'static str, u64>,
}

/// How many bytes (of other units) are written between two writes of the same 4 KiB unit.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Distances {
    /// Units that were overwritten, counted each time.
    pub count: u64,
    /// 5 % of the distances are at most this, in bytes.
    pub p5_bytes: u64,
    /// Half of the distances are at most this, in bytes.
    pub p50_bytes: u64,
    /// 95 % of the distances are at most this, in bytes.
    pub p95_bytes: u64,
    /// The largest, in bytes; exact.
    pub max_bytes: u64,
    /// Distances by size: up to so many bytes (0, or a power of two), and more than half as many.
    pub histogram: BTreeMap<u64, u64>,
}

/// Profiles a trace, to its end.
pub fn profile(
    requests: impl Iterator<Item = Result<Request, TraceError>>,
) -> Result<Profile, TraceError> {
    let mut profiler = Profiler::default();
    for request in requests {
        profiler.take(&request?);
    }
    Ok(profiler.finish())
}

#[derive(Default)]
struct Profiler {
    profile: Profile,
    written: Extents,
    read: Cover,
    touched: Cover,
    /// Distances in units, by [`bucket`].
    distances: BTreeMap<u64, u64>,
    ends: [u64; STREAMS],
    next_end: usize,
    addressed: u64,
    sequential: u64,
    aligned: u64,
    units_written: u64,
    first: Option<u64>,
    last: Time,
}

impl Profiler {
    fn take(&mut self, request: &Request) {
        self.profile.requests += 1;
        self.profile.fua += u64::from(request.fua);
        self.last = request.at;
        if request.op == Op::Flush {
            self.profile.flushes += 1;
            return;
        }
        let (begin, sectors) = (request.lba.0, u64::from(request.sectors));
        let (end, bytes) = (begin + sectors, sectors * SECTOR_BYTES);
        self.sequence(begin, end);
        match request.op {
            Op::Read => {
                self.profile.reads += 1;
                self.profile.bytes_read += bytes;
                *self
                    .profile
                    .read_sizes
                    .entry(bytes.next_power_of_two())
                    .or_default() += 1;
            }
            Op::Write => {
                self.profile.writes += 1;
                self.profile.bytes_written += bytes;
                *self
                    .profile
                    .write_sizes
                    .entry(bytes.next_power_of_two())
                    .or_default() += 1;
                let class = class_name(request.class);
                *self
                    .profile
                    .bytes_written_by_class
                    .entry(class)
                    .or_default() += bytes;
            }
            Op::Trim => {
                self.profile.trims += 1;
                self.profile.bytes_trimmed += bytes;
            }
            Op::WriteZeroes => {
                self.profile.write_zeroes += 1;
                self.profile.bytes_zeroed += bytes;
            }
            Op::Flush => {}
        }
        if matches!(request.op, Op::Read | Op::Write) {
            self.aligned += u64::from(begin % UNIT_SECTORS == 0 && end % UNIT_SECTORS == 0);
            self.units(request.op, begin / UNIT_SECTORS, end.div_ceil(UNIT_SECTORS));
        }
    }

    fn sequence(&mut self, begin: u64, end: u64) {
        self.first = Some(self.first.map_or(begin, |first| first.min(begin)));
        self.profile.end_byte = self.profile.end_byte.max(end.saturating_mul(SECTOR_BYTES));
        // Sector 0 is where unused slots "ended": a request there follows nothing.
        self.sequential += u64::from(begin != 0 && self.ends.contains(&begin));
        self.addressed += 1;
        self.ends[self.next_end] = end;
        self.next_end = (self.next_end + 1) % STREAMS;
    }

    fn units(&mut self, op: Op, begin: u64, end: u64) {
        self.touched.add(begin, end);
        if op == Op::Read {
            self.read.add(begin, end);
            return;
        }
        let distances = &mut self.distances;
        let overwritten = &mut self.profile.overwrite_distances;
        self.written
            .write(begin, end, self.units_written, |units, distance| {
                overwritten.count += units;
                overwritten.max_bytes = overwritten.max_bytes.max(distance * UNIT_BYTES);
                *distances.entry(bucket(distance)).or_default() += units;
            });
        self.units_written += end - begin;
    }

    fn finish(mut self) -> Profile {
        let mut profile = std::mem::take(&mut self.profile);
        profile.footprint_read_bytes = self.read.units() * UNIT_BYTES;
        profile.footprint_written_bytes = self.written.units() * UNIT_BYTES;
        profile.footprint_bytes = self.touched.units() * UNIT_BYTES;
        profile.first_byte = self.first.unwrap_or(0) * SECTOR_BYTES;
        let ns = self.last.as_ns();
        profile.duration_s = ns as f64 / 1e9;
        if ns > 0 {
            let bytes = profile.bytes_read + profile.bytes_written;
            profile.mean_iops = profile.requests as f64 / profile.duration_s;
            profile.mean_mib_per_s = bytes as f64 / f64::from(1 << 20) / profile.duration_s;
        }
        let overwritten = profile.overwrite_distances.count;
        profile.overwrite_share = share(overwritten, self.units_written);
        profile.sequential_share = share(self.sequential, self.addressed);
        profile.aligned_share = share(self.aligned, profile.reads + profile.writes);
        summarize(&self.distances, &mut profile.overwrite_distances);
        profile
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

const fn class_name(class: Class) -> &'static str {
    match class {
        Class::Unknown => "unknown",
        Class::Data => "data",
        Class::Wal => "wal",
        Class::Journal => "journal",
        Class::FsMeta => "fs-meta",
    }
}

/// The distance that stands for `units`: itself up to 128, and above, the upper end of one of 64
/// equal parts of its octave.
const fn bucket(units: u64) -> u64 {
    let bits = u64::BITS - units.leading_zeros();
    if bits <= 7 {
        return units;
    }
    let part = 1u64 << (bits - 7);
    units | (part - 1)
}

fn summarize(buckets: &BTreeMap<u64, u64>, distances: &mut Distances) {
    let quantile = |percent: u64| {
        let rank = (u128::from(distances.count) * u128::from(percent))
            .div_ceil(100)
            .max(1);
        let mut seen = 0u128;
        buckets
            .iter()
            .find(|&(_, &count)| {
                seen += u128::from(count);
                seen >= rank
            })
            .map_or(0, |(&units, _)| units * UNIT_BYTES)
    };
    let (p5, p50, p95) = (quantile(5), quantile(50), quantile(95));
    for (&units, &count) in buckets {
        let upper = if units == 0 {
            0
        } else {
            units.next_power_of_two()
        };
        *distances.histogram.entry(upper * UNIT_BYTES).or_default() += count;
    }
    let max = distances.max_bytes;
    (distances.p5_bytes, distances.p50_bytes, distances.p95_bytes) =
        (p5.min(max), p50.min(max), p95.min(max));
}

#[cfg(test)]
mod tests;
