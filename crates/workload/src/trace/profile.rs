//! The profile of a trace: sizes, footprint, locality, rates.
//!
//! **What lives here**: one pass over a stream of requests. **What doesn't**: what a device makes
//! of them.
//!
//! **Invariants**
//! - Exact but for the quantiles of overwrite distances, which are at most 1/64 too high, and but for what goes by
//!   address (footprints, overwrites, announcements) where the trace has more than [`MOST_EXTENTS`]: that is then
//!   estimated from a sample of the addresses, which the profile says.
//! - Memory grows with the number of distinct extents written and read, up to [`MOST_EXTENTS`], never with the
//!   trace's length or with one request's size.

mod announced;
mod extents;
mod sample;

use std::collections::BTreeMap;

use leyden_device::{Op, SECTOR_BYTES};
use leyden_sim::Time;
use serde::Serialize;

use crate::{Class, ClassNames, Request};

use super::error::TraceError;
use announced::Announced;
pub(super) use extents::Cover;
use extents::Extents;
use sample::Sample;

/// The unit of footprints and overwrites: the usual mapping unit.
const UNIT_BYTES: u64 = 4096;
const UNIT_SECTORS: u64 = UNIT_BYTES / SECTOR_BYTES;
/// The most extents that are kept, some 40 bytes each.
const MOST_EXTENTS: usize = 4 << 20;
/// Ends of requests that are remembered to call a request sequential.
const STREAMS: usize = 32;

/// The profile of a trace. A 4 KiB unit counts as written, read or announced when any sector of it
/// is.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Profile {
    /// Requests, not counting hints.
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
    /// Hints: announcements that a range will be overwritten.
    pub hints: u64,
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
    /// Bytes that hints named.
    pub bytes_announced: u64,
    /// Reads by size: up to so many bytes (a power of two), and more than half as many.
    pub read_sizes: BTreeMap<u64, u64>,
    /// Writes by size, likewise.
    pub write_sizes: BTreeMap<u64, u64>,
    /// Footprints, overwrites and announcements are estimated from one address in so many; 1: exact, of all.
    pub one_address_in: u64,
    /// Distinct 4 KiB units read, in bytes.
    pub footprint_read_bytes: u64,
    /// Distinct 4 KiB units written, in bytes.
    pub footprint_written_bytes: u64,
    /// Distinct 4 KiB units read or written, in bytes.
    pub footprint_bytes: u64,
    /// Distinct 4 KiB units that requests or hints touch, in bytes: the smallest device that holds the trace packed
    /// ([`Packing`](super::Packing)).
    pub packed_bytes: u64,
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
    pub bytes_written_by_class: BTreeMap<String, u64>,
    /// Share of the units written that a hint had announced since they were last written.
    pub announced_share: f64,
    /// Likewise of the units that were written before in the trace.
    pub announced_overwrite_share: f64,
    /// The first of these shares by class of the data written, where there are hints.
    pub announced_share_by_class: BTreeMap<String, f64>,
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

/// Profiles a trace, to its end. `classes` has the names of its classes.
pub fn profile(
    requests: impl Iterator<Item = Result<Request, TraceError>>,
    classes: &ClassNames,
) -> Result<Profile, TraceError> {
    let mut profiler = Profiler::default();
    for request in requests {
        profiler.take(&request?);
    }
    Ok(profiler.finish(classes))
}

/// Counts by power of two: slot `n` counts those up to 2^n and above 2^(n-1).
type Octaves = [u64; 65];

/// Which requests begin where another ended.
#[derive(Default)]
struct Sequence {
    ends: [u64; STREAMS],
    next_end: usize,
    addressed: u64,
    sequential: u64,
}

impl Sequence {
    fn take(&mut self, begin: u64, end: u64) {
        // Sector 0 is where unused slots "ended": a request there follows nothing.
        self.sequential += u64::from(begin != 0 && self.ends.contains(&begin));
        self.addressed += 1;
        self.ends[self.next_end] = end;
        self.next_end = (self.next_end + 1) % STREAMS;
    }
}

struct Profiler {
    profile: Profile,
    written: Extents,
    read: Cover,
    /// By what neither reads nor writes.
    others: Cover,
    announced: Announced,
    /// The addresses that these sets are of.
    sample: Sample,
    most_extents: usize,
    /// Distances in units, by [`bucket`].
    distances: Vec<u64>,
    read_sizes: Octaves,
    write_sizes: Octaves,
    written_by_class: Vec<u64>,
    sequence: Sequence,
    aligned: u64,
    units_written: u64,
    first: Option<u64>,
    last: Time,
}

impl Default for Profiler {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            written: Extents::default(),
            read: Cover::default(),
            others: Cover::default(),
            announced: Announced::default(),
            sample: Sample::default(),
            most_extents: MOST_EXTENTS,
            distances: vec![0; bucket(u64::MAX) + 1],
            read_sizes: [0; 65],
            write_sizes: [0; 65],
            written_by_class: vec![0; Class::MOST],
            sequence: Sequence::default(),
            aligned: 0,
            units_written: 0,
            first: None,
            last: Time::ZERO,
        }
    }
}

impl Profiler {
    fn take(&mut self, request: &Request) {
        while self.extents() > self.most_extents {
            self.thin();
        }
        self.last = request.at;
        if request.op == Op::WritePrepare {
            self.hint(request);
            return;
        }
        self.profile.requests += 1;
        self.profile.fua += u64::from(request.fua);
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
                self.read_sizes[octave(bytes)] += 1;
            }
            Op::Write => {
                self.profile.writes += 1;
                self.profile.bytes_written += bytes;
                self.write_sizes[octave(bytes)] += 1;
                self.written_by_class[usize::from(request.class.number())] += bytes;
            }
            Op::Trim => {
                self.profile.trims += 1;
                self.profile.bytes_trimmed += bytes;
                self.announced.trim(begin.div_ceil(UNIT_SECTORS), end / UNIT_SECTORS);
            }
            Op::WriteZeroes => {
                self.profile.write_zeroes += 1;
                self.profile.bytes_zeroed += bytes;
            }
            Op::Flush
            | Op::WritePrepare
            | Op::ZoneAppend
            | Op::Copy
            | Op::Zone(_)
            | Op::ZoneReport => {}
        }
        if matches!(request.op, Op::Read | Op::Write) {
            self.aligned += u64::from(begin % UNIT_SECTORS == 0 && end % UNIT_SECTORS == 0);
            self.units(request, begin / UNIT_SECTORS, end.div_ceil(UNIT_SECTORS));
        } else if sectors > 0 {
            self.touch(begin / UNIT_SECTORS, end.div_ceil(UNIT_SECTORS));
        }
    }

    fn extents(&self) -> usize {
        self.written.len() + self.read.len() + self.others.len() + self.announced.len()
    }

    /// Goes on with half of the addresses.
    #[cold]
    fn thin(&mut self) {
        self.sample = self.sample.half();
        self.written.thin(self.sample);
        self.read.thin(self.sample);
        self.others.thin(self.sample);
        self.announced.thin(self.sample);
    }

    /// Something else than a read or a write names `begin..end`.
    fn touch(&mut self, begin: u64, end: u64) {
        let others = &mut self.others;
        self.sample.parts(begin, end, |begin, end| others.add(begin, end));
    }

    fn hint(&mut self, hint: &Request) {
        let end = hint.lba.0 + u64::from(hint.sectors);
        self.profile.hints += 1;
        self.profile.bytes_announced += u64::from(hint.sectors) * SECTOR_BYTES;
        let (first, beyond) = (hint.lba.0 / UNIT_SECTORS, end.div_ceil(UNIT_SECTORS));
        let announced = &mut self.announced;
        self.sample.parts(first, beyond, |first, beyond| announced.hint(first, beyond));
        if hint.sectors > 0 {
            self.touch(first, beyond);
        }
    }

    fn sequence(&mut self, begin: u64, end: u64) {
        self.first = Some(self.first.map_or(begin, |first| first.min(begin)));
        self.profile.end_byte = self.profile.end_byte.max(end.saturating_mul(SECTOR_BYTES));
        self.sequence.take(begin, end);
    }

    fn units(&mut self, request: &Request, begin: u64, end: u64) {
        if request.op == Op::Read {
            let read = &mut self.read;
            return self.sample.parts(begin, end, |begin, end| read.add(begin, end));
        }
        let (sample, weight) = (self.sample, self.sample.weight());
        let (written, stamp) = (&mut self.written, self.units_written);
        let distances = &mut self.distances;
        let announced = &mut self.announced;
        let overwritten = &mut self.profile.overwrite_distances;
        sample.parts(begin, end, |part, beyond| {
            written.write(part, beyond, stamp + (part - begin), |from, to, distance| {
                announced.overwrite(from, to, weight);
                let units = (to - from) * weight;
                overwritten.count += units;
                overwritten.max_bytes = overwritten.max_bytes.max(distance * UNIT_BYTES);
                distances[bucket(distance)] += units;
            });
        });
        announced.write(request.class.number(), begin, end, weight);
        self.units_written += end - begin;
    }

    fn finish(mut self, classes: &ClassNames) -> Profile {
        let mut profile = std::mem::take(&mut self.profile);
        let weight = self.sample.weight();
        profile.one_address_in = weight;
        profile.footprint_read_bytes = self.read.units() * weight * UNIT_BYTES;
        profile.footprint_written_bytes = self.written.units() * weight * UNIT_BYTES;
        for (begin, end) in self.written.iter() {
            self.read.add(begin, end);
        }
        profile.footprint_bytes = self.read.units() * weight * UNIT_BYTES;
        for (begin, end) in self.others.iter() {
            self.read.add(begin, end);
        }
        profile.packed_bytes = self.read.units() * weight * UNIT_BYTES;
        profile.read_sizes = octaves(&self.read_sizes);
        profile.write_sizes = octaves(&self.write_sizes);
        let by_class = classes.all().map(str::to_owned).zip(self.written_by_class.iter().copied());
        profile.bytes_written_by_class = by_class.filter(|&(_, bytes)| bytes > 0).collect();
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
        self.announced(classes, &mut profile);
        profile.sequential_share = share(self.sequence.sequential, self.sequence.addressed);
        profile.aligned_share = share(self.aligned, profile.reads + profile.writes);
        summarize(&self.distances, &mut profile.overwrite_distances);
        profile
    }
}

impl Profiler {
    /// Says what hints were worth, if there are any.
    fn announced(&self, classes: &ClassNames, profile: &mut Profile) {
        if profile.hints == 0 {
            return;
        }
        let announced = &self.announced;
        profile.announced_share = share(announced.units(), self.units_written);
        let overwritten = profile.overwrite_distances.count;
        profile.announced_overwrite_share = share(announced.overwritten_units(), overwritten);
        let by_class = classes.all().zip(announced.by_class());
        profile.announced_share_by_class = by_class
            .filter(|&(_, (written, _))| written > 0)
            .map(|(class, (written, announced))| (class.to_owned(), share(announced, written)))
            .collect();
    }
}

/// An estimate of a part may be larger than the whole.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

/// The slot of [`Octaves`] that counts `value`: its logarithm to base 2, rounded up.
const fn octave(value: u64) -> usize {
    (u64::BITS - value.saturating_sub(1).leading_zeros()) as usize
}

fn octaves(counts: &Octaves) -> BTreeMap<u64, u64> {
    let counted = counts.iter().zip(0u32..).filter(|&(&count, _)| count > 0);
    counted.map(|(&count, octave)| (1 << octave, count)).collect()
}

/// Parts of an octave that distances are told apart by, as a power of two.
const PART_BITS: u32 = 6;

/// Which slot counts a distance of `units`: one for each up to 128, and above, one for each of 64
/// equal parts of an octave.
const fn bucket(units: u64) -> usize {
    let bits = u64::BITS - units.leading_zeros();
    if bits <= PART_BITS + 1 {
        return units as usize;
    }
    let shift = bits - PART_BITS - 1;
    ((shift as usize) << PART_BITS) + (units >> shift) as usize
}

/// The largest distance that `bucket` counts, in units.
const fn bucket_end(bucket: usize) -> u64 {
    if bucket < 2 << PART_BITS {
        return bucket as u64;
    }
    let shift = (bucket >> PART_BITS) as u32 - 1;
    let part = bucket as u64 - ((shift as u64) << PART_BITS);
    (part << shift) | ((1 << shift) - 1)
}

fn summarize(buckets: &[u64], distances: &mut Distances) {
    let quantile = |percent: u64| {
        let rank = (u128::from(distances.count) * u128::from(percent)).div_ceil(100);
        let mut seen = 0u128;
        let found = buckets.iter().position(|&count| {
            seen += u128::from(count);
            seen >= rank.max(1)
        });
        found.map_or(0, |bucket| bucket_end(bucket) * UNIT_BYTES)
    };
    let (p5, p50, p95) = (quantile(5), quantile(50), quantile(95));
    for (bucket, &count) in buckets.iter().enumerate().filter(|&(_, &count)| count > 0) {
        let units = bucket_end(bucket);
        let upper = if units == 0 { 0 } else { units.next_power_of_two() };
        *distances.histogram.entry(upper * UNIT_BYTES).or_default() += count;
    }
    let max = distances.max_bytes;
    (distances.p5_bytes, distances.p50_bytes, distances.p95_bytes) =
        (p5.min(max), p50.min(max), p95.min(max));
}

#[cfg(test)]
mod tests;
