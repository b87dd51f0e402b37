//! Guided draws: options that have reached something new, and mutants of them.
//!
//! **Invariants**: what is drawn for a seed depends on the seed and on the first [`SCOUTS`] seeds, which are run
//! blind; not on what other guided seeds have found. So a guided campaign can be resumed, and has the same digest
//! with any number of threads.

use crate::coverage::Coverage;
use crate::subject::Run;

use crate::options::rng;

/// Seeds that are run first to find options worth mutating.
pub(crate) const SCOUTS: u64 = 256;

/// Options that have each reached what those before had not.
#[derive(Clone, Debug, Default)]
pub struct Guide<R> {
    found: Vec<R>,
}

impl<R: Run> Guide<R> {
    /// Runs the scouts.
    #[must_use]
    pub fn new() -> Self {
        let mut reached = Coverage::default();
        let mut found = Vec::new();
        for seed in 0..SCOUTS {
            let options = R::drawn(seed);
            let coverage = options.play(false).0.coverage;
            if reached.lacks(&coverage) {
                reached.add(&coverage);
                found.push(options);
            }
        }
        Self { found }
    }

    /// The options of `seed`: a mutant of what was found, for half of the seeds. Cuts are aimed.
    #[must_use]
    pub fn draw(&self, seed: u64) -> R {
        let blind = R::drawn(seed);
        let mut rng = rng(seed, "guide");
        let mut options = if self.found.is_empty() || rng.below(2) == 0 {
            blind
        } else {
            let mut mutant = self.found[rng.below(self.found.len() as u64) as usize].clone();
            mutant.cross(blind, &mut rng);
            mutant
        };
        options.aim(&mut rng);
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::zoned::ZonedOptions;

    #[test]
    fn mutants_ask_of_their_drives_what_a_host_may_ask() {
        let guide = Guide { found: (0..100).map(Options::draw).collect() };
        for seed in 1_000..3_000 {
            assert_eq!(guide.draw(seed).checked(), Ok(()), "seed {seed}");
        }
        let guide = Guide { found: (0..30).map(ZonedOptions::draw).collect() };
        for seed in 1_000..1_200 {
            assert_eq!(guide.draw(seed).checked(), Ok(()), "seed {seed}");
        }
    }
}
