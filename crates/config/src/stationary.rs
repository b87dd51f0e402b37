//! Steady states in theory: how many units are valid in the blocks of a die under uniform random writes.
//!
//! **What lives here**: one distribution for each victim policy that has one, and how blocks share it out.
//! **What doesn't**: which blocks, and which units of them ([`leyden_device::Ssd::fill_sampled`]).
//!
//! Under uniform random writes it does not matter which units of a block are valid, only how many: between
//! two collections each valid unit is overwritten with the same probability. Which block is collected decides
//! how the number of blocks with `k` valid units stays the same. `n` is the units of a block.
//!
//! - `greedy`: Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012. A block with `k` valid
//!   units loses the next at a rate proportional to `k`, so it stays at `k` for a time proportional to
//!   `1 / k`; it begins with `n` and is collected when it gets to `x0`, which the drive's utilisation
//!   determines.
//! - `fifo`: Desnoyers 2012, LRU cleaning; Bux and Iliadis, "Performance of greedy garbage collection in
//!   flash-based solid-state drives", Performance Evaluation 67, 2010, whose window is one block here. The
//!   age of a block says with which probability a unit of it is still valid: the share `y^a` of them at age
//!   `a`, 1 being the age of the victim.
//! - `d_choices`: Van Houdt, "A mean field model for a class of garbage collection algorithms in flash-based
//!   solid state drives", SIGMETRICS 2013: the fixed point of the equations for the shares of blocks with
//!   `k` valid units, or fewer.

use leyden_device::DieShare;
use leyden_ftl::gc::VictimConfig;
use leyden_sim::Rng;

/// Halvings of an interval: more than a float has bits.
const HALVINGS: u32 = 60;

/// True if the steady state of `victim` is known.
pub const fn is_known(victim: &VictimConfig) -> bool {
    matches!(victim, VictimConfig::Greedy(_) | VictimConfig::Fifo(_) | VictimConfig::DChoices(_))
}

/// The steady state of one drive.
#[derive(Debug)]
pub struct Stationary<'a> {
    victim: &'a VictimConfig,
    rng: Rng,
    /// The last result, and its arguments: dies are mostly alike.
    weights: Option<(DieShare, Vec<f64>)>,
}

impl<'a> Stationary<'a> {
    /// That of `victim`, which must be known.
    pub fn new(victim: &'a VictimConfig, seed: u64) -> Self {
        Self { victim, rng: Rng::new(seed, "precondition.sampled"), weights: None }
    }

    /// The valid units of each of a die's closed blocks, in the order in which those were filled.
    pub fn valid_units(&mut self, share: &DieShare) -> Vec<u32> {
        if share.blocks == 0 {
            return Vec::new();
        }
        let mut valid = if let VictimConfig::Fifo(_) = self.victim {
            fifo(share, &mut self.rng)
        } else {
            by_weight(self.weights(share), share.blocks)
        };
        if let VictimConfig::DChoices(_) = self.victim {
            shuffle(&mut valid, &mut self.rng); // of the age of a block its valid units say little
        }
        make_exact(&mut valid, share);
        valid
    }

    /// By valid units: how many of the blocks of a die with this share have so many, not scaled.
    fn weights(&mut self, share: &DieShare) -> &[f64] {
        let alike = |known: &DieShare| {
            let same = DieShare { valid_units: share.valid_units, ..*known } == *share;
            same && known.valid_units.abs_diff(share.valid_units) <= 1
        };
        if self.weights.as_ref().is_none_or(|(known, _)| !alike(known)) {
            let n = share.units_per_block;
            let mean = share.valid_units as f64 / f64::from(share.blocks);
            let weights = match self.victim {
                VictimConfig::Greedy(_) => greedy(n, mean),
                VictimConfig::DChoices(choices) => d_choices(choices.d.get(), n, mean),
                other => panic!("the steady state of {other:?} is not known"),
            };
            self.weights = Some((*share, weights));
        }
        self.weights.as_ref().map_or(&[], |(_, weights)| weights)
    }
}

/// By valid units: the share of blocks that `greedy` leaves with so many, not scaled.
fn greedy(n: u32, mean: f64) -> Vec<f64> {
    // The part of the step from `k` to `k - 1` above `x0`, and the time it takes.
    let weight = |x0: f64, k: u32| (f64::from(k) - x0).clamp(0.0, 1.0) / f64::from(k);
    let total = |x0: f64| (1..=n).map(|k| weight(x0, k)).sum::<f64>();
    let x0 = root(0.0, f64::from(n), |x0| (f64::from(n) - x0) - mean * total(x0));
    let mut weights: Vec<f64> = (0..=n).map(|k| if k == 0 { 0.0 } else { weight(x0, k) }).collect();
    // So little is valid that victims are empty, and wait for their turn.
    weights[0] = (f64::from(n) / mean - total(0.0)).max(0.0);
    weights
}

/// The same for `d_choices`.
///
/// Let `M_k` be the share of blocks with `k` valid units or fewer. A collection takes such a block with
/// probability `1 - (1 - M_k)^d`, and it comes back full; `v (k + 1) (M_(k+1) - M_k)` blocks go from `k + 1`
/// down to `k` meanwhile. At the fixed point both are equal for each `k` below `n`; the mean determines `v`.
fn d_choices(d: u32, n: u32, mean: f64) -> Vec<f64> {
    let collected = |share: f64| 1.0 - (1.0 - share).powf(f64::from(d));
    let fixed_point = |v: f64| {
        let mut shares = vec![0.0; n as usize + 1];
        let mut above = 1.0;
        for k in (1..=n).rev() {
            let come = |below: f64| v * f64::from(k) * (above - below);
            let below = root(0.0, above, |below| collected(below) - come(below));
            shares[k as usize] = above - below;
            above = below;
        }
        shares[0] = above;
        shares
    };
    let mean_of =
        |shares: &[f64]| (0..).zip(shares).map(|(k, share)| f64::from(k) * share).sum::<f64>();
    // The more often units are overwritten, the fewer are valid.
    let log_v = root(-20.0, 20.0, |log_v: f64| mean - mean_of(&fixed_point(log_v.exp())));
    fixed_point(log_v.exp())
}

/// The valid units of `blocks` blocks that share out `weights`, those with the fewest first.
fn by_weight(weights: &[f64], blocks: u32) -> Vec<u32> {
    let step = weights.iter().sum::<f64>() / f64::from(blocks);
    let (mut units, mut below) = (0, weights[0]);
    let mut valid = Vec::with_capacity(blocks as usize);
    for block in 0..blocks {
        while below < (f64::from(block) + 0.5) * step && units + 1 < weights.len() {
            units += 1;
            below += weights[units];
        }
        valid.push(units as u32);
    }
    valid
}

/// The valid units of blocks from the oldest to the youngest: of each unit it is drawn whether it is still
/// valid.
fn fifo(share: &DieShare, rng: &mut Rng) -> Vec<u32> {
    let (n, blocks) = (share.units_per_block, share.blocks);
    let (count, units) = (f64::from(blocks), f64::from(blocks) * f64::from(n));
    let still_valid =
        |log_y: f64, block: u32| (log_y * (count - 0.5 - f64::from(block)) / count).exp();
    let total = |log_y: f64| (0..blocks).map(|block| still_valid(log_y, block)).sum::<f64>();
    let log_y = root(-700.0, 0.0, |log_y| total(log_y) / count - share.valid_units as f64 / units);
    let draw = |block: u32| {
        let probability = still_valid(log_y, block);
        (0..n).map(|_| u32::from(rng.unit_f64() < probability)).sum()
    };
    (0..blocks).map(draw).collect()
}

/// Makes the sum what the share says, by a unit here and there.
fn make_exact(valid: &mut [u32], share: &DieShare) {
    let sum: u64 = valid.iter().copied().map(u64::from).sum();
    let mut missing = share.valid_units as i64 - sum as i64;
    let mut stride = (valid.len() as u64 / missing.unsigned_abs().max(1)).max(1);
    while missing != 0 {
        for units in valid.iter_mut().step_by(stride as usize) {
            if missing > 0 && *units < share.units_per_block {
                *units += 1;
                missing -= 1;
            } else if missing < 0 && *units > 0 {
                *units -= 1;
                missing += 1;
            }
        }
        stride = 1; // some of those were full, or empty
    }
}

fn shuffle(items: &mut [u32], rng: &mut Rng) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at as u64 + 1) as usize);
    }
}

/// Where `f`, which ascends from below zero, is zero; the end where it comes closest if it is nowhere.
fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However much is valid, it is shared out, and no block holds more than it has room for.
        #[test]
        fn shares_are_exact(blocks in 0_u32..60, n in 1_u32..80, filled in 0.0..1.0_f64, name in 0_usize..3) {
            let all = u64::from(blocks) * u64::from(n);
            let valid_units = (all as f64 * filled) as u64;
            let share = DieShare { blocks, units_per_block: n, valid_units };
            let victim = VictimConfig::by_name(["greedy", "fifo", "d_choices"][name]).unwrap();
            let valid = Stationary::new(&victim, 1).valid_units(&share);
            prop_assert_eq!(valid.len(), blocks as usize);
            prop_assert_eq!(valid.iter().copied().map(u64::from).sum::<u64>(), valid_units);
            prop_assert!(valid.iter().all(|&units| units <= n));
        }
    }

    #[test]
    fn a_unit_is_found_room_for_where_most_blocks_are_full() {
        let share = DieShare { blocks: 4, units_per_block: 8, valid_units: 30 };
        let mut valid = [8, 5, 8, 8];
        make_exact(&mut valid, &share);
        assert_eq!(valid, [8, 6, 8, 8]);
        let share = DieShare { valid_units: 2, ..share };
        let mut valid = [0, 3, 0, 0];
        make_exact(&mut valid, &share);
        assert_eq!(valid, [0, 2, 0, 0]);
    }
}
