//! Runs of conventional drives as torture has them of any kind.

use leyden_host::{Channel, HintChannelConfig};
use leyden_sim::{Ratio, Rng, Span};

use crate::options::plain_device;
use crate::subject::{Run, Subject};
use crate::{Cut, Grain, Mix, Options, Outcome, Round, Work, coverage, run};

impl Run for Options {
    const SUBJECT: Subject = Subject::Conventional;

    fn drawn(seed: u64) -> Self {
        Self::draw(seed)
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn checked(&self) -> Result<(), String> {
        self.check()
    }

    fn play(&self, tells: bool) -> (Outcome, Vec<String>) {
        run::tell(self, tells)
    }

    fn plain(&self) -> Self {
        let work = Work {
            fill: Ratio::ZERO,
            queue_depth: 1,
            mix: Mix { reads: 0, trims: 0, write_zeroes: 0, flushes: 0 },
            fua: Ratio::ZERO,
            unaligned: Ratio::ZERO,
            hot: Ratio::ZERO,
            hot_part: self.work.hot_part,
            sequential: Ratio::ZERO,
            largest_units: 1,
            hints: Ratio::ZERO,
            tenants: 1,
            trace: false,
            late: Ratio::ZERO,
            plp: Ratio::ZERO,
        };
        let (device, rounds) = (plain_device(&self.device), self.rounds.clone());
        Self { seed: self.seed, grain: Grain::Unit, device, host: None, work, rounds }
    }

    fn reductions() -> &'static [fn(&mut Self)] {
        &[
            |options| options.host = None,
            // A way for hints that leads nowhere.
            |options| {
                let quiet =
                    || HintChannelConfig { channel: Channel::Off, ..HintChannelConfig::default() };
                options.host.iter_mut().for_each(|host| host.hints = quiet());
            },
        ]
    }

    fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    fn rounds_mut(&mut self) -> Option<&mut Vec<Round>> {
        Some(&mut self.rounds)
    }

    fn end_after(&mut self, cuts: u64) {
        self.rounds.truncate(usize::try_from(cuts).unwrap_or(usize::MAX).saturating_add(1));
    }

    fn extent(&self) -> String {
        let commands: u32 = self.rounds.iter().map(Round::kept).sum();
        format!("{commands} commands in {} rounds", self.rounds.len())
    }

    fn cross(&mut self, blind: Self, rng: &mut Rng) {
        self.seed = blind.seed;
        // The flag is for drives with a protected region: its share stays with the drive.
        let plp = self.work.plp;
        // One or more parts are another seed's.
        match rng.below(4) {
            0 => self.work = blind.work,
            1 => self.rounds = blind.rounds,
            2 => (self.work, self.rounds) = (blind.work, blind.rounds),
            _ => self.device.nand.faults.program_failures = Ratio::from_ppm(rng.below(60_000)),
        }
        self.work.plp = plp;
        if !self.device.nand.faults.occasions.is_empty() {
            for round in &mut self.rounds {
                round.reload = false;
            }
        }
    }

    /// Half of the cuts fall on an event, or on the program of a page of the mapping table.
    fn aim(&mut self, rng: &mut Rng) {
        for round in &mut self.rounds {
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
    }

    fn names() -> Vec<String> {
        coverage::names()
    }
}
