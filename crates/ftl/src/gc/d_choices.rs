//! `d_choices`: the least utilised of a few blocks drawn at random.
//!
//! B. Van Houdt, "A mean field model for a class of garbage collection algorithms in flash-based solid
//! state drives" (SIGMETRICS 2013): a handful of choices comes close to `greedy` without an order of all
//! blocks, and one choice is collection at random.

use std::num::NonZeroU32;

use leyden_nand::BlockId;
use leyden_sim::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DieView, VictimPolicy};

/// The least utilised of `d` blocks drawn at random.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DChoices {
    /// How many blocks are drawn; one may be drawn again.
    pub d: NonZeroU32,
}

impl Default for DChoices {
    fn default() -> Self {
        Self { d: NonZeroU32::new(10).expect("is not zero") }
    }
}

impl VictimPolicy for DChoices {
    /// Of equals the one drawn first.
    fn victim(&self, blocks: &DieView<'_>, rng: &mut Rng) -> Option<BlockId> {
        let count = blocks.len();
        let draws = if count == 0 { 0 } else { self.d.get() };
        let drawn = (0..draws).map(|_| blocks.nth(rng.below(count.into()) as u32));
        drawn.min_by_key(|block| block.valid).map(|block| block.block)
    }
}

#[cfg(test)]
mod tests {
    use leyden_nand::DieId;
    use leyden_sim::Time;

    use super::super::tests::{BLOCKS_PER_DIE, geometry};
    use super::super::{AgeOf, VictimIndex};
    use super::*;

    /// How often each block is chosen of a die whose block n has n valid units, of 10,000 times.
    fn times_chosen(d: u32) -> Vec<u32> {
        let policy = DChoices { d: NonZeroU32::new(d).unwrap() };
        let mut index = VictimIndex::new(&geometry(), policy.order());
        // From the fullest on, so that the order in which they came is not that of the choice.
        for n in (0..BLOCKS_PER_DIE).rev() {
            index.insert(BlockId(n), n, 0, Time::ZERO);
        }
        let (mut times, mut rng) = (vec![0; BLOCKS_PER_DIE as usize], Rng::new(1, "d_choices"));
        for _ in 0..10_000 {
            let blocks = DieView::new(&mut index, DieId(0), Time::ZERO, AgeOf::default());
            times[policy.victim(&blocks, &mut rng).unwrap().index()] += 1;
        }
        assert_eq!(
            policy.victim(
                &DieView::new(&mut index, DieId(1), Time::ZERO, AgeOf::default()),
                &mut rng
            ),
            None
        );
        times
    }

    /// All of d draws are of n or above with the probability ((6 - n) / 6)^d.
    #[test]
    fn the_least_of_d_is_chosen() {
        for d in [1, 2, 3, 10] {
            let times = times_chosen(d);
            let all_from =
                |n: u32| (f64::from(BLOCKS_PER_DIE - n) / f64::from(BLOCKS_PER_DIE)).powi(d as i32);
            for (n, &times) in (0..).zip(&times) {
                let expected = 10_000.0 * (all_from(n) - all_from(n + 1));
                assert!((f64::from(times) - expected).abs() < 200.0, "{d}: {times} of {n}");
            }
        }
        assert_eq!(times_chosen(1_000)[0], 10_000);
    }
}
