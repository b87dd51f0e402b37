//! Devices whose power can be cut: the drive, and every layer on top of it.
//!
//! **What lives here**: [`Powered`], what each of them loses ([`Cut`]) and counts ([`Layers`]). **What
//! doesn't**: when the power is cut, and what a cut may lose.
//!
//! **Invariants**: power is cut and restored through the top of a stack only. A layer loses what it holds
//! before the layer below does.

use std::ops::Range;

use leyden_device::{BlockDevice, Controller, Namespace, Payload, PowerLoss, Recovery, Region};
use leyden_sim::{Digest, Time};

use crate::{HintChannel, HintChannelStats, PageCache, PageCacheStats, ZonedBlockStats};

/// Losses of a power cut, layer by layer. `None` for a layer that isn't there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Mapping units that were dirty in a page cache, or being written out of it.
    pub dirty_units: Option<u64>,
    /// Units of 4 KiB whose hints waited for their way to the drive.
    pub waiting_hint_units: Option<u64>,
    /// The drive's dump and its losses.
    pub drive: PowerLoss,
}

impl Cut {
    /// Mapping units that lost what the drive had promised to keep.
    pub fn lost_units(&self) -> Vec<u32> {
        self.drive.lost.iter().map(|lpn| lpn.0).collect()
    }

    /// Mapping units of which the drive may not know the newest version.
    pub fn uncertain_units(&self) -> Vec<Range<u32>> {
        self.drive.uncertain.iter().map(|&(first, end)| first.0..end.0).collect()
    }
}

/// Counters of the layers on top of a drive. `None` for a layer that isn't there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers {
    /// The way of hints to the drive.
    pub hints: Option<HintChannelStats>,
    /// The page cache.
    pub cache: Option<PageCacheStats>,
    /// Mapping units that are dirty in the cache.
    pub dirty_units: u64,
    /// Mapping units that are being written out of it.
    pub writeback_units: u64,
    /// The block device on a conventional and a zoned drive.
    pub zoned_block: Option<ZonedBlockStats>,
}

/// A device whose power can be cut: a drive, or a stack of layers on top of one.
pub trait Powered<P: Payload>: BlockDevice<P> {
    /// The drive at the bottom.
    type Drive;

    /// The drive at the bottom.
    fn drive(&self) -> &Self::Drive;

    /// The drive at the bottom. Commands belong to the layers above it.
    fn drive_mut(&mut self) -> &mut Self::Drive;

    /// The device's time.
    fn now(&self) -> Time;

    /// Mapping units that can be addressed.
    fn mapping_units(&self) -> u32;

    /// Which writes survive a power cut once they are acknowledged, flushed or not, as if all that stands on
    /// the drive were its buffer.
    fn region(&self) -> Region;

    /// The power fails. What was due at `now` has happened only if the device was advanced to it before.
    fn cut_power(&mut self, now: Time) -> Cut;

    /// The power returns.
    fn restore_power(&mut self, now: Time) -> Recovery;

    /// Mapping units that a cache could not write out since the last call: the next flush fails.
    fn take_lost_units(&mut self) -> Vec<u32> {
        Vec::new()
    }

    /// Counters of the layers.
    fn layers(&self) -> Layers {
        Layers::default()
    }

    /// Asserts the invariants.
    fn check(&self);

    /// Fingerprint of what it did.
    fn fingerprint(&self) -> u64;
}

/// A drive of any kind.
impl<P: Payload, N: Namespace<P>> Powered<P> for Controller<P, N> {
    type Drive = Self;

    fn drive(&self) -> &Self {
        self
    }

    fn drive_mut(&mut self) -> &mut Self {
        self
    }

    fn now(&self) -> Time {
        Self::now(self)
    }

    fn mapping_units(&self) -> u32 {
        Self::mapping_units(self)
    }

    fn region(&self) -> Region {
        Self::region(self)
    }

    fn cut_power(&mut self, now: Time) -> Cut {
        Cut { drive: Self::cut_power(self, now), ..Cut::default() }
    }

    fn restore_power(&mut self, now: Time) -> Recovery {
        Self::restore_power(self, now)
    }

    fn check(&self) {
        Self::check(self);
    }

    fn fingerprint(&self) -> u64 {
        self.digest().value()
    }
}

impl<P: Payload, D: Powered<P>> Powered<P> for HintChannel<D> {
    type Drive = D::Drive;

    fn drive(&self) -> &D::Drive {
        self.device().drive()
    }

    fn drive_mut(&mut self) -> &mut D::Drive {
        self.device_mut().drive_mut()
    }

    fn now(&self) -> Time {
        self.device().now()
    }

    fn mapping_units(&self) -> u32 {
        self.device().mapping_units()
    }

    fn region(&self) -> Region {
        self.device().region()
    }

    fn cut_power(&mut self, now: Time) -> Cut {
        let waiting = self.lose_power();
        Cut { waiting_hint_units: Some(waiting), ..self.device_mut().cut_power(now) }
    }

    fn restore_power(&mut self, now: Time) -> Recovery {
        self.device_mut().restore_power(now)
    }

    fn take_lost_units(&mut self) -> Vec<u32> {
        self.device_mut().take_lost_units()
    }

    fn layers(&self) -> Layers {
        Layers { hints: Some(*self.stats()), ..self.device().layers() }
    }

    fn check(&self) {
        self.device().check();
        self.check_units();
    }

    fn fingerprint(&self) -> u64 {
        let stats = self.stats();
        let mut digest = Digest::default();
        digest.add(self.device().fingerprint()).add(stats.sent_units).add(stats.withdrawn_units);
        digest.value()
    }
}

impl<P: Payload, D: Powered<P>> Powered<P> for PageCache<P, D> {
    type Drive = D::Drive;

    fn drive(&self) -> &D::Drive {
        self.device().drive()
    }

    fn drive_mut(&mut self) -> &mut D::Drive {
        self.device_mut().drive_mut()
    }

    fn now(&self) -> Time {
        // A drive that has nothing to do is not told the time.
        Self::now(self).max(self.device().now())
    }

    fn mapping_units(&self) -> u32 {
        self.device().mapping_units()
    }

    /// None, for any drive below: it has not got all that the cache acknowledged.
    fn region(&self) -> Region {
        Region::None
    }

    fn cut_power(&mut self, now: Time) -> Cut {
        let dirty = self.lose_power();
        Cut { dirty_units: Some(dirty), ..self.device_mut().cut_power(now) }
    }

    fn restore_power(&mut self, now: Time) -> Recovery {
        self.device_mut().restore_power(now)
    }

    fn take_lost_units(&mut self) -> Vec<u32> {
        Self::take_lost_units(self)
    }

    fn layers(&self) -> Layers {
        Layers {
            cache: Some(self.stats()),
            dirty_units: self.dirty_units(),
            writeback_units: self.writeback_units(),
            ..self.device().layers()
        }
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
