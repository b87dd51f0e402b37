//! Zipf-distributed ranks without a table.

use leyden_sim::Rng;

/// Draws ranks `1..=n` with probability in proportion to `rank^-theta`.
///
/// Rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", ACM TOMACS 6(3), 1996. With `h(x) = x^-theta` and
/// `H(x) = (x^q - 1) / q`, `q = 1 - theta` (its limit `ln x` for `q = 0`), a uniform `u` between
/// `H(3/2) - h(1)` and `H(n + 1/2)` is inverted and rounded to a rank `k`, which is kept if `u`
/// lies in the last `h(k)` below `H(k + 1/2)`. Fewer than two draws are needed on average, mostly
/// one, whatever `n` and `theta`.
#[derive(Clone, Debug)]
pub(super) struct ZipfRanks {
    n: f64,
    theta: f64,
    q: f64,
    low: f64,
    high: f64,
    /// A rank at most this far above the inverted value is kept without further computation.
    squeeze: f64,
}

impl ZipfRanks {
    /// Ranks up to `n >= 1` with the exponent `theta > 0`.
    pub(super) fn new(n: u64, theta: f64) -> Self {
        let mut ranks =
            Self { n: n as f64, theta, q: 1.0 - theta, low: 0.0, high: 0.0, squeeze: 0.0 };
        ranks.low = ranks.integral(1.5) - 1.0;
        ranks.high = ranks.integral(ranks.n + 0.5);
        ranks.squeeze = 2.0 - ranks.inverse(ranks.integral(2.5) - ranks.density(2.0));
        ranks
    }

    /// A rank, from 0 (the most frequent) to `n - 1`.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.high + rng.unit_f64() * (self.low - self.high);
            let x = self.inverse(u);
            // Truncation of a positive number is its floor, without a call.
            let k = ((x + 0.5) as u64 as f64).clamp(1.0, self.n);
            if k - x <= self.squeeze || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
        }
    }

    /// `h(x)`.
    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// `H(x)`, the integral of `h` from 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        if self.q == 0.0 {
            log
        } else {
            // expm1 keeps the digits that x^q - 1 would lose for theta near 1.
            libm::expm1(self.q * log) / self.q
        }
    }

    /// The `x` with `H(x) = y`.
    #[inline]
    fn inverse(&self, y: f64) -> f64 {
        if self.q == 0.0 {
            libm::exp(y)
        } else {
            // Rounding may push the argument to the pole, where x is simply very large.
            let scaled = (self.q * y).max(-1.0);
            libm::exp(libm::log1p(scaled) / self.q)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frequencies of the ranks against the formula, within five standard deviations.
    #[test]
    fn ranks_are_as_frequent_as_the_formula_says() {
        for (n, theta) in [(10, 0.5), (1_000, 0.99), (1_000, 1.0), (100_000, 1.2), (1_000, 2.5)] {
            let ranks = ZipfRanks::new(n, theta);
            let mut rng = Rng::new(5, "zipf");
            let mut counts = vec![0_u32; n as usize];
            let draws = 400_000;
            for _ in 0..draws {
                counts[ranks.draw(&mut rng) as usize] += 1;
            }
            let norm: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
            for k in 1..=10_u64 {
                let p = (k as f64).powf(-theta) / norm;
                let expected = p * f64::from(draws);
                let bound = 5.0 * (expected * (1.0 - p)).sqrt() + 1.0;
                let found = f64::from(counts[k as usize - 1]);
                assert!(
                    (found - expected).abs() < bound,
                    "theta {theta}: rank {k} came {found} times, expected {expected:.0} +- {bound:.0}"
                );
            }
        }
    }

    #[test]
    fn extremes_stay_in_range() {
        for (n, theta) in
            [(1, 0.9), (2, 1.0), (1 << 40, 0.01), (1 << 40, 1.0 + 1e-12), (1 << 40, 10.0)]
        {
            let ranks = ZipfRanks::new(n, theta);
            let mut rng = Rng::new(6, "zipf");
            for _ in 0..10_000 {
                assert!(ranks.draw(&mut rng) < n);
            }
        }
    }
}
