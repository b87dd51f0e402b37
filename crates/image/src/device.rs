//! The device of an image: of one kind or of the other.

use std::io;

use leyden_device::{
    BlockDevice, Command, Completion, Config, Geometry, Lba, PowerLoss, Recovery, SnapshotError,
    Ssd, Stats, Status, ZnsSsd,
};
use leyden_nand::Medium;
use leyden_sim::{ConfigError, Digest, Time};

use crate::Places;

/// A device that moves places. What it is follows from its configuration.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "an image has one, which is not moved about")]
pub enum Device {
    /// A conventional drive.
    Conventional(Ssd<Places>),
    /// A zoned one.
    Zoned(ZnsSsd<Places>),
}

/// The same of whichever it is.
macro_rules! of {
    ($device:expr, $ssd:ident => $what:expr) => {
        match $device {
            Device::Conventional($ssd) => $what,
            Device::Zoned($ssd) => $what,
        }
    };
}

impl Device {
    /// An empty device.
    pub(crate) fn new(config: &Config, seed: u64) -> Result<Self, ConfigError> {
        Ok(match config.zoned {
            None => Self::Conventional(Ssd::new(config, seed)?),
            Some(_) => Self::Zoned(ZnsSsd::new(config, seed)?),
        })
    }

    /// A device at rest, from its snapshot.
    pub(crate) fn load(
        config: &Config,
        seed: u64,
        snapshot: &mut impl io::Read,
    ) -> Result<Self, SnapshotError> {
        Ok(match config.zoned {
            None => Self::Conventional(Ssd::load(config, seed, snapshot)?),
            Some(_) => Self::Zoned(ZnsSsd::load(config, seed, snapshot)?),
        })
    }

    /// Saves a device at rest.
    pub(crate) fn save(&self, to: &mut impl io::Write) -> Result<(), SnapshotError> {
        of!(self, ssd => ssd.save(to))
    }

    /// Whether there can be such a device, and with its medium.
    pub(crate) fn check(config: &Config, seed: u64) -> Result<(), ConfigError> {
        match config.zoned {
            None => Ssd::<Places>::blank_medium(config, seed).map(drop),
            Some(_) => ZnsSsd::<Places>::blank_medium(config, seed).map(drop),
        }
    }

    /// A device without power on a medium that holds data.
    pub(crate) fn on_medium(config: &Config, medium: Medium<Places>) -> Result<Self, ConfigError> {
        Ok(match config.zoned {
            None => Self::Conventional(Ssd::on_medium(config, medium)?),
            Some(_) => Self::Zoned(ZnsSsd::on_medium(config, medium)?),
        })
    }

    /// What a power cut leaves.
    pub(crate) fn into_medium(self) -> Medium<Places> {
        of!(self, ssd => ssd.into_medium())
    }

    pub(crate) fn submit(&mut self, now: Time, command: Command<Places>) {
        of!(self, ssd => ssd.submit(now, command));
    }

    pub(crate) fn advance(&mut self, now: Time, completions: &mut Vec<Completion<Places>>) {
        of!(self, ssd => ssd.advance(now, completions));
    }

    pub(crate) fn cut_power(&mut self, now: Time) -> PowerLoss {
        of!(self, ssd => ssd.cut_power(now))
    }

    pub(crate) fn restore_power(&mut self, now: Time) -> Recovery {
        of!(self, ssd => ssd.restore_power(now))
    }

    /// The zoned drive; `None` if it is a conventional one.
    pub const fn zoned(&self) -> Option<&ZnsSsd<Places>> {
        match self {
            Self::Conventional(_) => None,
            Self::Zoned(ssd) => Some(ssd),
        }
    }

    /// The latest time it has been told.
    pub const fn now(&self) -> Time {
        of!(self, ssd => ssd.now())
    }
    /// The flash's shape.
    pub fn geometry(&self) -> &Geometry {
        of!(self, ssd => ssd.geometry())
    }
    /// Sectors that can be addressed.
    pub fn capacity_sectors(&self) -> u64 {
        of!(self, ssd => ssd.capacity_sectors())
    }
    /// Fingerprint of everything it has done.
    pub const fn digest(&self) -> Digest {
        of!(self, ssd => ssd.digest())
    }
    /// Power cuts so far.
    pub const fn cuts(&self) -> u64 {
        of!(self, ssd => ssd.cuts())
    }
    /// Its counters.
    pub fn stats(&self) -> Stats {
        of!(self, ssd => ssd.stats())
    }
    /// True if nothing is under way.
    pub fn is_idle(&self) -> bool {
        of!(self, ssd => ssd.is_idle())
    }
    /// When it next does something by itself.
    pub fn next_event(&self) -> Option<Time> {
        of!(self, ssd => ssd.next_event())
    }
    /// Commands under way.
    pub fn pending(&self) -> usize {
        of!(self, ssd => ssd.pending())
    }

    /// What a read of the mapping unit that holds `lba` would return if it took no time.
    ///
    /// # Panics
    /// If `lba` is beyond the drive's capacity.
    pub fn newest(&self, lba: Lba) -> Places {
        of!(self, ssd => ssd.newest(lba))
    }

    /// Whether a read of these sectors, which are the drive's, would be carried out.
    pub(crate) fn may_read(&self, lba: Lba, sectors: u32) -> Result<(), Status> {
        self.zoned().map_or(Ok(()), |ssd| ssd.may_read(lba, sectors))
    }

    /// Calls `note` for every place that it has a use for: on the medium, in the buffer, in commands under way.
    pub(crate) fn each_place(&self, mut note: impl FnMut(u64)) {
        of!(self, ssd => {
            ssd.contents().for_each(|places| places.each_place(&mut note));
            for (written, read) in ssd.in_flight() {
                let written = written.into_iter().flat_map(|places| places.iter());
                written.chain(read).copied().filter(|&place| place > 0).for_each(&mut note);
            }
        });
    }
}
