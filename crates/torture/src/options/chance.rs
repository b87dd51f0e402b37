//! Draws that more than one part of the options is made of.

use leyden_sim::Rng;

/// Heads or tails.
pub(crate) fn coin(rng: &mut Rng) -> bool {
    rng.below(2) == 0
}

/// A number in `1..=most`, each order of magnitude about as likely.
pub(crate) fn spread(rng: &mut Rng, most: u64) -> u64 {
    let bits = u64::from(most.ilog2()) + 1;
    let bit = rng.below(bits);
    let low = 1 << bit;
    (low + rng.below(low)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_reaches_both_ends() {
        let mut rng = Rng::new(1, "spread");
        let drawn: Vec<u64> = (0..2_000).map(|_| spread(&mut rng, 24)).collect();
        assert!((1..=24).all(|n| drawn.contains(&n)));
        assert!(drawn.iter().all(|n| (1..=24).contains(n)));
    }
}
