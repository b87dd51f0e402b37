//! A permutation of `0..n`, computed rather than stored.

use leyden_sim::Rng;

const ROUNDS: usize = 3;

/// A keyed permutation of `0..n`.
///
/// Rounds of "xor the high half into the low half, multiply by an odd number, add" permute the
/// smallest power of two that holds `n`: each step can be undone, so each is one-to-one. Results
/// beyond `n` are fed in again (cycle walking), which keeps it one-to-one on `0..n` and takes two
/// turns at most on average.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    len: u64,
    mask: u64,
    shift: u32,
    keys: [(u64, u64); ROUNDS],
}

impl Permutation {
    /// A permutation of `0..len` drawn from `rng`; `len` is not zero.
    pub(super) fn new(len: u64, rng: &mut Rng) -> Self {
        let bits = (u64::BITS - (len - 1).leading_zeros()).max(2);
        Self {
            len,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits.div_ceil(2),
            keys: [(); ROUNDS].map(|()| (rng.next_u64() | 1, rng.next_u64())),
        }
    }

    /// Where `index` goes.
    #[inline]
    pub(super) fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.len, "{index} of {}", self.len);
        let mut at = index;
        loop {
            for (factor, offset) in self.keys {
                at ^= at >> self.shift;
                at = at.wrapping_mul(factor).wrapping_add(offset) & self.mask;
            }
            if at < self.len {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn is_one_to_one(len in 1_u64..3_000, seed: u64) {
            let permutation = Permutation::new(len, &mut Rng::new(seed, "permute"));
            let mut seen = vec![false; len as usize];
            for index in 0..len {
                let at = permutation.apply(index) as usize;
                proptest::prop_assert!(!std::mem::replace(&mut seen[at], true));
            }
        }
    }

    /// The hottest hundred of a million: at most a few fall into any of a hundred equal parts.
    #[test]
    fn spreads_neighbours() {
        for seed in 0..20 {
            let permutation = Permutation::new(1_000_000, &mut Rng::new(seed, "permute"));
            let mut parts = [0_u32; 100];
            for index in 0..100 {
                parts[(permutation.apply(index) / 10_000) as usize] += 1;
            }
            let most = parts.iter().max().copied();
            assert!(most <= Some(12), "seed {seed}: {parts:?}");
        }
    }
}
