//! What a run needs of a drive. The one place that knows how the device's power is cut.

use std::ops::Range;

use leyden_device::{BlockDevice, Config, Ssd, Stamp};
use leyden_sim::{Digest, Time};

/// What came of a power cut.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PowerCut {
    /// Mapping units whose promised content was lost because the energy did not reach.
    pub lost: Vec<u32>,
    /// Units whose place the drive forgot for the same reason: it found some version of them.
    pub uncertain: Vec<Range<u32>>,
}

/// True if the drive may lose, for want of energy, what it has promised.
pub(crate) fn may_lose(config: &Config) -> bool {
    config.power.as_ref().is_some_and(|power| power.allow_underprovisioned)
}

/// A drive whose power can be cut.
pub trait Drive: BlockDevice<Stamp> {
    /// The drive's time.
    fn now(&self) -> Time;
    /// Mapping units that can be addressed.
    fn mapping_units(&self) -> u32;
    /// The power fails. What was to happen at that very moment has happened only if the drive was
    /// advanced to it before. `digest` takes in what came of it.
    fn cut_power(&mut self, now: Time, digest: &mut Digest) -> PowerCut;
    /// Power returns; yields when the drive is ready.
    fn restore_power(&mut self, now: Time, digest: &mut Digest) -> Time;
    /// Asserts what must hold inside.
    fn check(&self);
    /// Fingerprint of what it did.
    fn fingerprint(&self) -> u64;
}

impl Drive for Ssd<Stamp> {
    fn now(&self) -> Time {
        Ssd::now(self)
    }

    fn mapping_units(&self) -> u32 {
        Ssd::mapping_units(self)
    }

    fn cut_power(&mut self, now: Time, digest: &mut Digest) -> PowerCut {
        let loss = Ssd::cut_power(self, now);
        let cost = &loss.cost;
        digest.add(cost.promised.get()).add(cost.pages).add(cost.time.as_ns());
        digest.add(cost.energy.as_pj()).add(loss.energy_left.as_pj()).add(loss.torn_pages);
        digest.add(loss.lost.len() as u64).add(loss.lost_map_pages);
        PowerCut {
            lost: loss.lost.iter().map(|lpn| lpn.0).collect(),
            uncertain: loss.uncertain.iter().map(|&(first, end)| first.0..end.0).collect(),
        }
    }

    fn restore_power(&mut self, now: Time, digest: &mut Digest) -> Time {
        let recovery = Ssd::restore_power(self, now);
        digest.add(recovery.scan.as_ns()).add(recovery.pages_scanned);
        digest.add(recovery.pages_restored).add(recovery.scanned_map_pages);
        recovery.ready_at
    }

    fn check(&self) {
        Ssd::check(self);
    }

    fn fingerprint(&self) -> u64 {
        self.digest().value()
    }
}
