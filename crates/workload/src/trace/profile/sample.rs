//! Which addresses a profile looks at, so that its memory has a bound.
//!
//! **What lives here**: all addresses, or of each so many regions one, chosen by a hash of where it lies
//! (Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015). **What doesn't**: what is counted.
//!
//! **Invariants**: a region that a sample leaves out is in no thinner sample.

/// Units of a region: 1 MiB. What is kept or left out together.
const REGION_UNITS: u64 = 256;

/// One region in 2^shift.
#[derive(Clone, Copy, Default)]
pub(super) struct Sample {
    shift: u32,
}

impl Sample {
    /// How many units each of the sample stands for.
    pub(super) const fn weight(self) -> u64 {
        1 << self.shift
    }

    /// Half of this sample.
    pub(super) const fn half(self) -> Self {
        Self { shift: self.shift + 1 }
    }

    /// Calls `each` with the parts of `begin..end` that are in the sample.
    pub(super) fn parts(self, begin: u64, end: u64, mut each: impl FnMut(u64, u64)) {
        if self.shift == 0 {
            return each(begin, end);
        }
        let mask = self.weight() - 1;
        for region in begin / REGION_UNITS..end.div_ceil(REGION_UNITS) {
            if mixed(region) & mask == 0 {
                let first = region * REGION_UNITS;
                each(begin.max(first), end.min(first + REGION_UNITS));
            }
        }
    }
}

/// The finalizer of splitmix64.
const fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
