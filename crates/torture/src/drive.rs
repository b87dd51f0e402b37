//! What a run needs of a drive. The one place that knows how the device's power is cut.

use leyden_device::{BlockDevice, Config, Ssd, Stamp};
use leyden_sim::{Digest, Time};

/// What came of a power cut.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PowerCut {
    /// Mapping units whose promised content was lost because the energy did not reach.
    pub lost: Vec<u32>,
}

/// True if the drive may lose, for want of energy, what it has promised.
pub(crate) fn may_lose(config: &Config) -> bool {
    config.power.allow_underprovisioned
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
        let _ = (now, digest);
        PowerCut::default() // until the device can
    }

    fn restore_power(&mut self, now: Time, digest: &mut Digest) -> Time {
        let _ = digest;
        now // until the device can
    }

    fn check(&self) {
        Ssd::check(self);
    }

    fn fingerprint(&self) -> u64 {
        self.digest().value()
    }
}
