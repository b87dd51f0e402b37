//! The worth of collecting a block, by its age: `cost_benefit` and policies like it compare it.

use leyden_nand::BlockId;
use leyden_sim::{Span, Time};

use super::{Candidate, DieView, score_in_halves};

/// Costs are in this part of a unit's copy.
const COST_SHIFT: u32 = 8;

/// A benefit over its cost, to be compared without rounding.
#[derive(Clone, Copy)]
pub(super) struct Worth {
    benefit: u64,
    cost: u64,
}

impl Worth {
    /// age x score / 2v of a block of `units` units that holds what `candidate` does, but `zombies`
    /// zombies; without any, the score is that of all its invalid units. Plus one, so that utilisation
    /// decides among blocks that all changed just now.
    #[inline]
    pub(super) fn of(candidate: Candidate, zombies: u32, units: u32, now: Time) -> Self {
        let score = score_in_halves(units - candidate.valid, zombies);
        Self {
            benefit: age_ns(candidate, now).saturating_mul(u64::from(score)),
            cost: u64::from(candidate.valid) << COST_SHIFT,
        }
    }

    /// i / (i + z x age / lead) of it: the cost grows instead, to 1 / 256 of a unit for each valid one.
    #[inline]
    pub(super) fn less_what_dies_anyway(
        self,
        candidate: Candidate,
        zombies: u32,
        units: u32,
        lead: Span,
        now: Time,
    ) -> Self {
        let invalid = u64::from(units - candidate.valid).max(1);
        let parts = u64::from(zombies) << COST_SHIFT;
        let share = quotient([parts, age_ns(candidate, now)], [lead.as_ns().max(1), invalid]);
        let share = share.min(u32::MAX.into());
        Self { cost: self.cost + u64::from(candidate.valid) * share, ..self }
    }

    #[inline]
    fn is_more_than(self, other: Self) -> bool {
        u128::from(self.benefit) * u128::from(other.cost)
            > u128::from(other.benefit) * u128::from(self.cost)
    }
}

/// The product of `above` over that of `below`, rounded down. Narrow numbers are divided much faster, and
/// only days make wide ones.
#[inline]
fn quotient(above: [u64; 2], below: [u64; 2]) -> u64 {
    let narrow = |[a, b]: [u64; 2]| a.checked_mul(b);
    if let (Some(above), Some(below)) = (narrow(above), narrow(below)) {
        return above / below;
    }
    let wide = |[a, b]: [u64; 2]| u128::from(a) * u128::from(b);
    u64::try_from(wide(above) / wide(below)).unwrap_or(u64::MAX)
}

#[inline]
fn age_ns(candidate: Candidate, now: Time) -> u64 {
    now.since(candidate.changed).as_ns() + 1
}

/// The one of `blocks` that is worth most, by what `of` says of it if it held so many zombies. A block
/// must be worth no more for being younger, or for holding more of them.
///
/// Exact. Of a utilisation, only blocks that would beat the best one so far without any zombies are looked at: where the
/// lists are ordered by age, that is a beginning of each; else nothing of a list of which not even the die's oldest
/// block would.
#[inline]
pub(super) fn most_worth(
    blocks: &DieView<'_>,
    of: impl Fn(Candidate, u32) -> Worth,
) -> Option<BlockId> {
    let mut best: Option<(Worth, BlockId)> = None;
    let oldest = blocks.oldest_of_any_rank();
    for first in blocks.by_rank() {
        if first.valid == 0 {
            return Some(first.block); // free space for an erase: an infinite benefit
        }
        let is_less = |candidate: Candidate, best: Option<(Worth, BlockId)>| {
            best.is_some_and(|(best, _)| !of(candidate, 0).is_more_than(best))
        };
        if oldest.is_some_and(|changed| is_less(Candidate { changed, ..first }, best)) {
            break; // further ranks have more valid units
        }
        for candidate in std::iter::once(first).chain(blocks.after(first)) {
            if oldest.is_none() && is_less(candidate, best) {
                break;
            }
            let worth = of(candidate, candidate.zombies);
            if best.is_none_or(|(best, _)| worth.is_more_than(best)) {
                best = Some((worth, candidate.block));
            }
        }
    }
    best.map(|(_, block)| block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quotients_are_exact(numbers: [u64; 4], shifts in prop::array::uniform4(0..64_u32)) {
            let [a, b, c, d] = std::array::from_fn(|i| numbers[i] >> shifts[i]);
            let (c, d) = (c.max(1), d.max(1));
            let exact = u128::from(a) * u128::from(b) / (u128::from(c) * u128::from(d));
            prop_assert_eq!(quotient([a, b], [c, d]), u64::try_from(exact).unwrap_or(u64::MAX));
        }
    }
}
