//! A running fingerprint of what a run did, to compare runs by.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Folds a sequence of numbers into 64 bits. Order matters; two runs that did the same things in
/// the same order have the same digest. Not for adversaries.
///
/// ```
/// use leyden_sim::Digest;
/// let (mut a, mut b) = (Digest::default(), Digest::default());
/// a.add(1).add(2);
/// b.add(2).add(1);
/// assert_ne!(a.value(), b.value());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Digest {
    /// Folds `word` in.
    #[inline]
    pub fn add(&mut self, word: u64) -> &mut Self {
        // One multiply-xorshift round: cheap enough for every event, and a bijection of the state.
        let mixed = (self.0 ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        self.0 = mixed ^ (mixed >> 32);
        self
    }

    /// The fingerprint so far.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_value_and_sensitivity() {
        let mut digest = Digest::default();
        for word in 0..100 {
            digest.add(word);
        }
        assert_eq!(digest.to_string(), "54e821547d3af5ab");
        let mut other = Digest::default();
        for word in 0..100 {
            other.add(word ^ u64::from(word == 57));
        }
        assert_ne!(digest, other);
    }
}
