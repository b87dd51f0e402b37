//! What a run needs of a drive and its host layers. How their power is cut, from the top down, is known
//! only here.

use std::ops::Range;

use leyden_device::{BlockDevice, Config, Ssd, Stamp};
use leyden_host::{HintChannel, PageCache};
use leyden_sim::{Digest, Time};

/// The outcome of a power cut.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PowerCut {
    /// Mapping units whose promised content was lost because the energy did not reach.
    pub lost: Vec<u32>,
    /// Units whose place the drive forgot for the same reason: it found some version of them.
    pub uncertain: Vec<Range<u32>>,
    /// Units that were dirty, or being written out, in a page cache.
    pub dirty: u64,
}

/// True if the drive may lack the energy to keep what it has promised.
pub(crate) fn may_lose(config: &Config) -> bool {
    config.power.as_ref().is_some_and(|power| power.allow_underprovisioned)
}

/// A drive whose power can be cut.
pub trait Drive: BlockDevice<Stamp> {
    /// The drive's time.
    fn now(&self) -> Time;
    /// Mapping units that can be addressed.
    fn mapping_units(&self) -> u32;
    /// The power fails. Events of that very moment have happened only if the drive was advanced to it
    /// before. `digest` takes in the outcome.
    fn cut_power(&mut self, now: Time, digest: &mut Digest) -> PowerCut;
    /// Power returns; yields when the drive is ready.
    fn restore_power(&mut self, now: Time, digest: &mut Digest) -> Time;
    /// True if what stands on it acknowledges writes that it has not got: whatever it promises, they may
    /// be lost unless flushed.
    fn is_cached(&self) -> bool {
        false
    }
    /// Units that a cache could not write out, since this was last asked: the next flush must fail.
    fn take_lost_units(&mut self) -> Vec<u32> {
        Vec::new()
    }
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
            dirty: 0,
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

impl<D: Drive> Drive for HintChannel<D> {
    fn now(&self) -> Time {
        self.device().now()
    }

    fn mapping_units(&self) -> u32 {
        self.device().mapping_units()
    }

    fn cut_power(&mut self, now: Time, digest: &mut Digest) -> PowerCut {
        digest.add(self.waiting_units());
        self.lose_power();
        self.device_mut().cut_power(now, digest)
    }

    fn restore_power(&mut self, now: Time, digest: &mut Digest) -> Time {
        self.device_mut().restore_power(now, digest)
    }

    fn is_cached(&self) -> bool {
        self.device().is_cached()
    }

    fn take_lost_units(&mut self) -> Vec<u32> {
        self.device_mut().take_lost_units()
    }

    fn check(&self) {
        self.device().check();
        let stats = self.stats();
        let known = stats.sent_units
            + stats.withdrawn_units
            + stats.repeated_units
            + stats.dropped_units
            + stats.missing_units
            + stats.beyond_end_units
            + stats.lost_units
            + self.waiting_units();
        assert_eq!(stats.announced_units + stats.false_units, known, "hints got lost: {stats:?}");
    }

    fn fingerprint(&self) -> u64 {
        let stats = self.stats();
        let mut digest = Digest::default();
        digest.add(self.device().fingerprint()).add(stats.sent_units).add(stats.withdrawn_units);
        digest.value()
    }
}

impl<D: Drive> Drive for PageCache<Stamp, D> {
    fn now(&self) -> Time {
        // A drive that has nothing to do is not told the time.
        PageCache::now(self).max(self.device().now())
    }

    fn mapping_units(&self) -> u32 {
        self.device().mapping_units()
    }

    fn cut_power(&mut self, now: Time, digest: &mut Digest) -> PowerCut {
        let dirty = self.lose_power();
        digest.add(dirty);
        PowerCut { dirty, ..self.device_mut().cut_power(now, digest) }
    }

    fn restore_power(&mut self, now: Time, digest: &mut Digest) -> Time {
        self.device_mut().restore_power(now, digest)
    }

    fn is_cached(&self) -> bool {
        true
    }

    fn take_lost_units(&mut self) -> Vec<u32> {
        PageCache::take_lost_units(self)
    }

    fn check(&self) {
        self.device().check();
    }

    fn fingerprint(&self) -> u64 {
        let stats = self.stats();
        let mut digest = Digest::default();
        digest.add(self.device().fingerprint()).add(self.dirty_units()).add(self.cached_units());
        digest.add(stats.hits).add(stats.written_back_pages).add(stats.evictions);
        digest.value()
    }
}
