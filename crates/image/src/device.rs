//! The device of an image: a drive of one kind or of the other, or a block device on both.

use std::io;

use leyden_device::{
    BlockDevice, Command, Completion, Config, Lba, PowerLoss, Recovery, SnapshotError, Ssd, Stats,
    Status, ZnsSsd,
};
use leyden_sim::{ConfigError, Digest, Time};

use crate::stack::Stack;
use crate::{ImageConfig, ImageError, Places};

/// A device that moves places. What it is follows from its configuration.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "an image has one, which is not moved about")]
pub enum Device {
    /// A conventional drive.
    Conventional(Ssd<Places>),
    /// A zoned one.
    Zoned(ZnsSsd<Places>),
    /// A block device on one of each.
    Stack(Box<Stack>),
}

/// The same of whichever it is.
macro_rules! of {
    ($device:expr, $ssd:ident => $what:expr) => {
        of!($device, $ssd => $what, $ssd => $what)
    };
    ($device:expr, $ssd:ident => $what:expr, $stack:ident => $other:expr) => {
        match $device {
            Device::Conventional($ssd) => $what,
            Device::Zoned($ssd) => $what,
            Device::Stack($stack) => $other,
        }
    };
}

impl Device {
    /// An empty device.
    pub(crate) fn new(config: &ImageConfig) -> Result<Self, ConfigError> {
        let ImageConfig { device, seed, .. } = config;
        Ok(match (&config.stack, &device.zoned) {
            (Some(_), _) => Self::Stack(Box::new(Stack::new(config)?)),
            (None, None) => Self::Conventional(Ssd::new(device, *seed)?),
            (None, Some(_)) => Self::Zoned(ZnsSsd::new(device, *seed)?),
        })
    }

    /// A device at rest, from its snapshot.
    pub(crate) fn load(
        config: &ImageConfig,
        snapshot: &mut impl io::Read,
    ) -> Result<Self, ImageError> {
        let ImageConfig { device, seed, .. } = config;
        Ok(match (&config.stack, &device.zoned) {
            (Some(_), _) => Self::Stack(Box::new(Stack::load(config, snapshot)?)),
            (None, None) => Self::Conventional(Ssd::load(device, *seed, snapshot)?),
            (None, Some(_)) => Self::Zoned(ZnsSsd::load(device, *seed, snapshot)?),
        })
    }

    /// Saves a device at rest.
    pub(crate) fn save(&self, to: &mut impl io::Write) -> Result<(), SnapshotError> {
        of!(self, ssd => ssd.save(to))
    }

    /// Whether there can be such a device, and with its medium.
    pub(crate) fn check(config: &ImageConfig) -> Result<(), ConfigError> {
        let ImageConfig { device, seed, .. } = config;
        match (&config.stack, &device.zoned) {
            (Some(_), _) => Stack::new(config).map(drop),
            (None, None) => Ssd::<Places>::blank_medium(device, *seed).map(drop),
            (None, Some(_)) => ZnsSsd::<Places>::blank_medium(device, *seed).map(drop),
        }
    }

    /// The device of this configuration, without power, on the medium of this one.
    pub(crate) fn on_medium_of(self, config: &Config) -> Result<Self, ConfigError> {
        Ok(match self {
            Self::Conventional(ssd) => {
                Self::Conventional(Ssd::on_medium(config, ssd.into_medium())?)
            }
            Self::Zoned(ssd) => Self::Zoned(ZnsSsd::on_medium(config, ssd.into_medium())?),
            Self::Stack(_) => return Err(no_bank()),
        })
    }

    pub(crate) fn submit(&mut self, now: Time, command: Command<Places>) {
        of!(self, ssd => { ssd.submit(now, command); });
    }

    pub(crate) fn advance(&mut self, now: Time, completions: &mut Vec<Completion<Places>>) {
        of!(self, ssd => ssd.advance(now, completions));
    }

    /// All that a conventional drive buffers goes to flash; what others buffer stays.
    pub(crate) fn write_out(&mut self) {
        if let Self::Conventional(ssd) = self {
            ssd.write_out();
        }
    }

    pub(crate) fn cut_power(&mut self, now: Time) -> PowerLoss {
        of!(self, ssd => ssd.cut_power(now))
    }

    pub(crate) fn restore_power(&mut self, now: Time) -> Recovery {
        of!(self, ssd => ssd.restore_power(now))
    }

    /// The zoned drive; `None` if it is something else.
    pub const fn zoned(&self) -> Option<&ZnsSsd<Places>> {
        if let Self::Zoned(ssd) = self { Some(ssd) } else { None }
    }
    /// The block device on two drives; `None` if it is one drive.
    pub const fn stack(&self) -> Option<&Stack> {
        if let Self::Stack(stack) = self { Some(stack) } else { None }
    }
    /// The same, to change it.
    pub(crate) const fn stack_mut(&mut self) -> Option<&mut Stack> {
        if let Self::Stack(stack) = self { Some(stack) } else { None }
    }

    /// The latest time it has been told.
    pub fn now(&self) -> Time {
        of!(self, ssd => ssd.now())
    }
    /// Physical units of flash.
    pub(crate) fn units(&self) -> u64 {
        of!(self, ssd => u64::from(ssd.geometry().units()), stack => stack.units())
    }
    /// Bytes of a mapping unit.
    pub fn unit_bytes(&self) -> u32 {
        of!(self, ssd => ssd.geometry().unit_bytes(), stack => stack.unit_bytes())
    }
    /// Bytes of flash.
    pub fn flash_bytes(&self) -> u64 {
        of!(self, ssd => ssd.geometry().flash_bytes(), stack => stack.flash_bytes())
    }
    /// Sectors that can be addressed.
    pub fn capacity_sectors(&self) -> u64 {
        of!(self, ssd => ssd.capacity_sectors())
    }
    /// Fingerprint of everything it has done.
    pub fn digest(&self) -> Digest {
        of!(self, ssd => ssd.digest(), stack => stack.digest())
    }
    /// Power cuts so far.
    pub fn cuts(&self) -> u64 {
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

    /// The place that a read of the mapping unit of `lba` would return if it took no time.
    ///
    /// # Panics
    /// If `lba` is beyond the drive's capacity.
    pub fn newest(&self, lba: Lba) -> Places {
        of!(self, ssd => ssd.newest(lba))
    }

    /// Whether a read of these sectors, which are the drive's, would be carried out.
    pub(crate) fn may_read(&self, lba: Lba, sectors: u32) -> Result<(), Status> {
        match self {
            Self::Conventional(_) => Ok(()),
            Self::Zoned(ssd) => ssd.may_read(lba, sectors),
            Self::Stack(stack) => stack.may_read(),
        }
    }

    /// Calls `note` for every place that it has a use for: on the medium, in the buffer, in commands under way.
    pub(crate) fn each_place(&self, mut note: impl FnMut(u64)) {
        of!(self, ssd => {
            ssd.contents().for_each(|places| places.each_place(&mut note));
            for (written, read) in ssd.in_flight() {
                let written = written.into_iter().flat_map(|places| places.iter());
                written.chain(read).copied().filter(|&place| place > 0).for_each(&mut note);
            }
        }, stack => stack.each_place(note));
    }
}

/// A stack's banks stay as they are.
pub(crate) fn no_bank() -> ConfigError {
    let problem = "a block device on two drives keeps the capacitors that both were made with: restore it without a \
                   capacitance";
    ConfigError::new("power.bank.capacitance", problem)
}
