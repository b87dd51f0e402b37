//! Division by a number that is fixed for a run but not known when compiling.

use serde::{Deserialize, Serialize};

/// A divisor with its reciprocal: dividing by it is a multiplication. Address arithmetic divides
/// several times per flash page, by blocks, pages and units that need not be powers of two.
///
/// Exact for every 32-bit dividend (Lemire, Kaser, Kurz, "Faster remainder by direct computation",
/// 2019, section 3).
///
/// ```
/// use leyden_sim::Divisor;
/// assert_eq!(Divisor::new(7).divide(50), 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Divisor {
    divisor: u32,
    /// 2^64 / divisor, rounded up; 0 for a divisor of 1.
    reciprocal: u64,
}

impl Divisor {
    /// # Panics
    /// If `divisor` is zero.
    pub const fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "division by zero");
        Self { divisor, reciprocal: (u64::MAX / divisor as u64).wrapping_add(1) }
    }

    /// The number itself.
    #[inline]
    pub const fn get(self) -> u32 {
        self.divisor
    }

    /// `dividend / self`.
    #[inline]
    pub const fn divide(self, dividend: u32) -> u32 {
        // With m = floor((2^64 - 1) / d), the integer part of (n + 1) m / 2^64 is that of n / d for all 32-bit n and d:
        // 2^64 - d m is at most d, and (n + 1) d at most 2^64. So a divisor of 1 takes no branch.
        let rounded_down = self.reciprocal.wrapping_sub(1);
        ((rounded_down as u128 * (dividend as u128 + 1)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn divides_like_division(dividend: u32, divisor in 1_u32.., small in 1_u32..5_000) {
            proptest::prop_assert_eq!(Divisor::new(divisor).divide(dividend), dividend / divisor);
            proptest::prop_assert_eq!(Divisor::new(small).divide(dividend), dividend / small);
        }
    }

    #[test]
    fn the_edges() {
        for divisor in [1, 2, 3, u32::MAX - 1, u32::MAX] {
            for dividend in [0, 1, divisor - 1, divisor, u32::MAX] {
                assert_eq!(Divisor::new(divisor).divide(dividend), dividend / divisor);
            }
        }
    }
}
