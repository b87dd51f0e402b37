//! A coarse histogram of latencies, one for each interval of the series: what percentiles over time are
//! made of.
//!
//! Sixteen buckets to an octave, so a percentile is at most a sixteenth too high. A finished interval keeps
//! the buckets that hold anything, some tens of them.

/// Buckets to an octave.
const STEPS: u64 = 16;
/// Bits of a latency that tell its bucket within an octave.
const STEP_BITS: u32 = STEPS.ilog2();
/// Of all `u64`.
const BUCKETS: usize = (STEPS as usize) * (64 - STEP_BITS as usize + 1);

/// The bucket of `ns`.
#[inline]
const fn bucket_of(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let octave = ns.ilog2() - STEP_BITS;
    let step = (ns >> octave) - STEPS;
    ((octave as u64 + 1) * STEPS + step) as usize
}

/// The largest latency of `bucket`.
const fn top_of(bucket: usize) -> u64 {
    let (octave, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    if octave == 0 {
        return step;
    }
    ((STEPS + step + 1) as u128 * (1_u128 << (octave - 1)) - 1) as u64
}

/// Latencies of the interval that goes on.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    counts: Vec<u32>,
}

impl Default for Filling {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS] }
    }
}

impl Filling {
    #[inline]
    pub(super) fn record(&mut self, ns: u64) {
        let count = &mut self.counts[bucket_of(ns)];
        *count = count.saturating_add(1);
    }

    /// The values recorded since the last call.
    pub(super) fn take(&mut self) -> Filled {
        let filled = self.counts.iter_mut().enumerate().filter(|(_, count)| **count > 0);
        Filled(filled.map(|(bucket, count)| (bucket as u16, std::mem::take(count))).collect())
    }
}

/// Latencies of a finished interval: buckets that hold anything, ascending, with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filled(Vec<(u16, u32)>);

impl Filled {
    /// Adds those of `later`.
    pub(super) fn merge(&mut self, later: &Self) {
        let mut merged = Vec::with_capacity(self.0.len().max(later.0.len()));
        let mut theirs = later.0.iter().copied().peekable();
        for &(bucket, count) in &self.0 {
            while let Some(before) = theirs.next_if(|other| other.0 < bucket) {
                merged.push(before);
            }
            let same = theirs.next_if(|other| other.0 == bucket).map_or(0, |other| other.1);
            merged.push((bucket, count.saturating_add(same)));
        }
        merged.extend(theirs);
        self.0 = merged;
    }

    /// The latency that `percent` of 100 did not exceed, at most a sixteenth too high; 0 of none.
    pub(super) fn percentile_ns(&self, percent: u64) -> u64 {
        let all: u64 = self.0.iter().map(|(_, count)| u64::from(*count)).sum();
        let rank = (all * percent).div_ceil(100);
        let mut below = 0;
        let found = self.0.iter().find(|(_, count)| {
            below += u64::from(*count);
            below >= rank
        });
        found.map_or(0, |(bucket, _)| top_of(usize::from(*bucket)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_every_latency_once() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let top = top_of(bucket);
            assert_eq!((bucket_of(next), bucket_of(top)), (bucket, bucket));
            assert!(top - next <= next / STEPS, "{bucket}");
            next = top.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last ends with the largest number");
    }

    #[test]
    fn percentiles_and_merging_agree_with_a_sorted_list() {
        let (mut one, mut all) = (Filling::default(), Filling::default());
        let values: Vec<u64> = (1..=2000_u64).map(|i| i * i * 37 % 1_000_003).collect();
        let mut merged = Filled::default();
        for part in values.chunks(300) {
            for &ns in part {
                one.record(ns);
                all.record(ns);
            }
            merged.merge(&one.take());
        }
        assert_eq!(merged, all.take());
        let mut sorted = values;
        sorted.sort_unstable();
        for percent in [1, 50, 99, 100] {
            let exact = sorted[(sorted.len() * percent).div_ceil(100) - 1];
            let found = merged.percentile_ns(percent as u64);
            assert!(exact <= found && found <= exact + exact / STEPS, "{percent}: {exact} {found}");
        }
        assert_eq!(Filled::default().percentile_ns(99), 0);
    }
}
