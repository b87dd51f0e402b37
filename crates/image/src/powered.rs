//! A device, its power switch, and the bank of capacitors that it has now.

use std::io;

use leyden_device::{Command, Completion, PowerLoss, Recovery};
use leyden_host::zoned_block::superblock::Journal;
use leyden_sim::{Capacitance, ConfigError, Time};

use crate::device::{Device, no_bank};
use crate::stack::Stack;
use crate::{ImageConfig, ImageError, Places};

/// A device whose power may be off, and whose bank may have been changed since it was configured.
#[derive(Clone, Debug)]
pub(crate) struct Powered {
    config: ImageConfig,
    /// Another capacitance than the configuration's, since the power returned.
    bank: Option<Capacitance>,
    device: Device,
    is_off: bool,
}

/// The configuration, with another bank if one is named.
fn made(config: &ImageConfig, bank: Option<Capacitance>) -> ImageConfig {
    let mut config = config.clone();
    let conventional = config.stack.as_mut().map(|stack| &mut stack.conventional);
    for device in [Some(&mut config.device), conventional].into_iter().flatten() {
        if let Some(power) = &mut device.power {
            // Its bank may be made smaller one day: the medium must hold what it takes to find the way back
            // without a whole dump, from the first page on.
            power.allow_underprovisioned = true;
            if bank.is_some() {
                (power.bank.capacitance, power.bank.parts) = (bank, None);
            }
        }
    }
    config
}

impl Powered {
    /// A new device, as its maker describes it, and so with the bank that it asks for.
    pub(crate) fn new(config: ImageConfig) -> Result<Self, ConfigError> {
        Device::check(&config)?;
        let device = Device::new(&made(&config, None))?;
        Ok(Self { config, bank: None, device, is_off: false })
    }

    /// A device at rest, from its snapshot.
    pub(crate) fn load(
        config: ImageConfig,
        bank: Option<Capacitance>,
        snapshot: &mut impl io::Read,
    ) -> Result<Self, ImageError> {
        let device = Device::load(&made(&config, bank), snapshot)?;
        Ok(Self { config, bank, device, is_off: false })
    }

    /// The drive's configuration.
    pub(crate) const fn config(&self) -> &ImageConfig {
        &self.config
    }
    /// Another capacitance than the configuration's.
    pub(crate) const fn bank(&self) -> Option<Capacitance> {
        self.bank
    }
    pub(crate) const fn device(&self) -> &Device {
        &self.device
    }
    pub(crate) const fn is_off(&self) -> bool {
        self.is_off
    }

    pub(crate) fn submit(&mut self, time: Time, command: Command<Places>) {
        self.device.submit(time, command);
    }

    /// Lets the device do everything up to `time`, or what it has done already.
    pub(crate) fn advance(&mut self, time: Time, ended: &mut Vec<Completion<Places>>) {
        self.device.advance(time.max(self.device.now()), ended);
    }

    /// A block device on two drives writes its tables: it can be saved then.
    pub(crate) fn settle(&mut self, time: Time) {
        if let Some(stack) = self.device.stack_mut() {
            stack.settle(time);
        }
    }

    /// Writes the buffer of a conventional drive to flash.
    pub(crate) fn write_out(&mut self) {
        self.device.write_out();
    }

    /// It is taken down and up again, as opening what was saved does.
    pub(crate) fn remount(&mut self) {
        if let Some(stack) = self.device.stack_mut() {
            stack.remount();
        }
    }

    /// The journal on a block device on two drives was found.
    pub(crate) fn found_journal(
        &mut self,
        time: Time,
        sources: Vec<std::ops::Range<u64>>,
        journal: Journal,
    ) {
        if let Some(stack) = self.device.stack_mut() {
            stack.found_journal(time, sources, journal);
        }
    }

    /// The block device on two drives; `None` if it is one drive.
    pub(crate) const fn stack_mut(&mut self) -> Option<&mut Stack> {
        self.device.stack_mut()
    }

    /// The power fails.
    pub(crate) fn cut(&mut self, time: Time) -> PowerLoss {
        self.is_off = true;
        self.device.cut_power(time)
    }

    /// Whether there can be such a drive with this bank.
    pub(crate) fn check_bank(&self, bank: Option<Capacitance>) -> Result<(), ConfigError> {
        if bank.is_some() {
            if self.config.stack.is_some() {
                return Err(no_bank());
            }
            Device::check(&made(&self.config, bank))?;
        }
        Ok(())
    }

    /// The power returns, with another bank if one is named.
    pub(crate) fn restore(
        &mut self,
        time: Time,
        bank: Option<Capacitance>,
    ) -> Result<Recovery, ImageError> {
        if bank.is_some() {
            self.check_bank(bank)?;
            let config = made(&self.config, bank);
            self.bank = bank;
            let empty = Device::new(&config)?;
            let device = std::mem::replace(&mut self.device, empty);
            self.device = device.on_medium_of(&config.device)?;
        }
        self.is_off = false;
        Ok(self.device.restore_power(time))
    }
}
