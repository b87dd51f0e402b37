//! Guided draws: options that have reached something new, and mutants of them.
//!
//! **Invariants**: what is drawn for a seed depends on the seed and on the first [`SCOUTS`] seeds, which are run
//! blind; not on what other guided seeds have found. So a guided campaign can be resumed, and has the same digest
//! with any number of threads.

use leyden_sim::{Ratio, Rng, Span};

use super::draw::rng;
use super::{Cut, Options};
use crate::coverage::Coverage;

/// Seeds that are run first to find options worth mutating.
pub(crate) const SCOUTS: u64 = 256;

/// Options that have each reached what those before had not.
#[derive(Clone, Debug, Default)]
pub struct Guide {
    found: Vec<Options>,
}

impl Guide {
    /// Runs the scouts, with `run`.
    #[must_use]
    pub fn new(run: impl Fn(&Options) -> Coverage) -> Self {
        let mut reached = Coverage::default();
        let mut found = Vec::new();
        for seed in 0..SCOUTS {
            let options = Options::draw(seed);
            let coverage = run(&options);
            if reached.lacks(&coverage) {
                reached.add(&coverage);
                found.push(options);
            }
        }
        Self { found }
    }

    /// The options of `seed`: a mutant of what was found, for half of the seeds.
    #[must_use]
    pub fn draw(&self, seed: u64) -> Options {
        let blind = Options::draw(seed);
        let mut rng = rng(seed, "guide");
        if self.found.is_empty() || rng.below(2) == 0 {
            return aimed(blind, &mut rng);
        }
        let mut mutant = self.found[rng.below(self.found.len() as u64) as usize].clone();
        mutant.seed = seed;
        // The flag is for drives with a protected region: its share stays with the drive.
        let plp = mutant.work.plp;
        // One or more parts are another seed's.
        match rng.below(4) {
            0 => mutant.work = blind.work,
            1 => mutant.rounds = blind.rounds,
            2 => (mutant.work, mutant.rounds) = (blind.work, blind.rounds),
            _ => mutant.device.nand.faults.program_failures = Ratio::from_ppm(rng.below(60_000)),
        }
        mutant.work.plp = plp;
        if !mutant.device.nand.faults.occasions.is_empty() {
            for round in &mut mutant.rounds {
                round.reload = false;
            }
        }
        aimed(mutant, &mut rng)
    }
}

/// Half of the cuts fall on an event, or on the program of a page of the mapping table.
fn aimed(mut options: Options, rng: &mut Rng) -> Options {
    for round in &mut options.rounds {
        match rng.below(4) {
            0 => {
                round.cut =
                    Cut::AtEvent { events: rng.below(12) as u32, before: rng.below(2) == 0 };
            }
            1 => round.cut = Cut::AtTablePage { pages: 1 + rng.below(6) as u32 },
            _ => continue,
        }
        if rng.below(4) == 0 {
            round.off = Span::from_ns(1);
            round.again = vec![Ratio::from_ppm(rng.below(1_000_001))];
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_ask_of_their_drives_what_a_host_may_ask() {
        let guide = Guide { found: (0..100).map(Options::draw).collect() };
        for seed in 1_000..3_000 {
            assert_eq!(guide.draw(seed).check(), Ok(()), "seed {seed}");
        }
    }
}
