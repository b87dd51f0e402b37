//! The ledger against the durability model, at every step of random hosts.

use leyden_sim::Rng;

use super::*;

const UNITS: u32 = 6;

/// A command in flight.
enum Pending {
    Write(Range<u32>, u64, bool),
    Flush(Tick, u64),
}

/// A host, and every version that it has written, by unit.
struct Host {
    ledger: Ledger,
    rng: Rng,
    stamp: u64,
    pending: Vec<Pending>,
    versions: Vec<Vec<u64>>,
}

impl Host {
    fn new(region: Region, seed: u64) -> Self {
        Self {
            ledger: Ledger::new(UNITS, region),
            rng: Rng::new(seed, "ledger"),
            stamp: 0,
            pending: Vec::new(),
            versions: vec![vec![0]; UNITS as usize],
        }
    }

    fn step(&mut self) {
        let index = self.rng.below(8) as usize;
        if index < self.pending.len() {
            self.end(index);
            return;
        }
        self.stamp += 1;
        let stamp = self.stamp;
        if self.rng.below(4) == 0 {
            self.pending.push(Pending::Flush(self.ledger.begin_flush(stamp), stamp));
            return;
        }
        let first = self.rng.below(UNITS.into()) as u32;
        let units = first..(first + 1 + self.rng.below(2) as u32).min(UNITS);
        if self.ledger.is_being_written(&units) {
            return;
        }
        let is_forced = self.rng.below(6) == 0;
        self.ledger.begin_write(units.clone(), stamp, is_forced);
        units.clone().for_each(|unit| self.versions[unit as usize].push(stamp));
        self.pending.push(Pending::Write(units, stamp, is_forced));
    }

    fn end(&mut self, index: usize) {
        let is_done = self.rng.below(10) > 0;
        match self.pending.swap_remove(index) {
            Pending::Write(units, stamp, is_forced) => {
                self.ledger.end_write(units, stamp, is_forced, is_done);
            }
            Pending::Flush(tick, stamp) => self.ledger.end_flush(tick, stamp, is_done),
        }
    }

    /// Every version of every unit is as lost to the ledger as to the oracle.
    fn check(&self) {
        for (number, versions) in (0..).zip(&self.versions) {
            let promised = self.ledger.promised(&self.ledger.units[number as usize]);
            for &stamp in versions {
                let may_survive = self.ledger.observer.may_survive(number, stamp);
                assert_eq!(stamp >= promised, may_survive, "unit {number}, version {stamp}");
            }
        }
    }
}

#[test]
fn a_version_is_promised_if_the_durability_model_says_so() {
    for region in [Region::None, Region::Full, Region::Selective] {
        for seed in 0..60 {
            let mut host = Host::new(region, seed);
            for _ in 0..150 {
                host.step();
                host.check();
            }
        }
    }
}
