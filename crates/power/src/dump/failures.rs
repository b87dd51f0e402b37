//! Which programs of a dump fail.

use leyden_sim::{Ratio, Rng, Time};

/// Programs of one dump that fail: by chance, and never more than the drive is made for.
#[derive(Clone, Debug)]
pub struct Failures {
    share: Ratio,
    left: u32,
    rng: Rng,
}

impl Failures {
    /// Of a dump that begins at `at`: each program fails with the chance `share`, until `most` have.
    pub fn new(share: Ratio, most: u32, at: Time) -> Self {
        // Nothing but the moment decides, so that a look at what a cut would cost sees what the cut does.
        Self { share, left: most, rng: Rng::new(at.as_ns(), "dump failures") }
    }

    /// No program fails.
    pub fn none() -> Self {
        Self::new(Ratio::ZERO, 0, Time::ZERO)
    }

    /// True if the next program fails.
    pub(super) fn next(&mut self) -> bool {
        let fails = self.left > 0 && self.rng.chance(self.share);
        self.left -= u32::from(fails);
        fails
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_fail_than_the_drive_is_made_for() {
        let count = |share, most| {
            let mut failures = Failures::new(Ratio::from_percent(share), most, Time::from_ns(7));
            (0..10_000).filter(|_| failures.next()).count()
        };
        assert_eq!((count(50, 3), count(0, 3), count(50, 0)), (3, 0, 0));
        assert!((800..1_200).contains(&count(10, u32::MAX)));
        assert!(!Failures::none().next());
    }
}
