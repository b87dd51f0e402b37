//! A device, its power switch, and the bank of capacitors that it has now.

use std::io;

use leyden_device::{Command, Completion, PowerLoss, Recovery};
use leyden_sim::{Capacitance, ConfigError, Time};

use crate::device::Device;
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

/// The drive's configuration, with another bank if one is named.
fn device_of(config: &ImageConfig, bank: Option<Capacitance>) -> leyden_device::Config {
    let mut device = config.device.clone();
    if let Some(power) = &mut device.power {
        // Its bank may be made smaller one day: the medium must hold what it takes to find the way back
        // without a whole dump, from the first page on.
        power.allow_underprovisioned = true;
        if bank.is_some() {
            (power.bank.capacitance, power.bank.parts) = (bank, None);
        }
    }
    device
}

impl Powered {
    /// A new device, as its maker describes it, and so with the bank that it asks for.
    pub(crate) fn new(config: ImageConfig) -> Result<Self, ConfigError> {
        Device::check(&config.device, config.seed)?;
        let device = Device::new(&device_of(&config, None), config.seed)?;
        Ok(Self { config, bank: None, device, is_off: false })
    }

    /// A device at rest, from its snapshot.
    pub(crate) fn load(
        config: ImageConfig,
        bank: Option<Capacitance>,
        snapshot: &mut impl io::Read,
    ) -> Result<Self, ImageError> {
        let device = Device::load(&device_of(&config, bank), config.seed, snapshot)?;
        Ok(Self { config, bank, device, is_off: false })
    }

    /// What the drive is.
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

    /// The power fails.
    pub(crate) fn cut(&mut self, time: Time) -> PowerLoss {
        self.is_off = true;
        self.device.cut_power(time)
    }

    /// Whether there can be such a drive with this bank.
    pub(crate) fn check_bank(&self, bank: Option<Capacitance>) -> Result<(), ConfigError> {
        if bank.is_some() {
            Device::check(&device_of(&self.config, bank), self.config.seed)?;
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
            let config = device_of(&self.config, bank);
            self.bank = bank;
            let empty = Device::new(&config, self.config.seed)?;
            let medium = std::mem::replace(&mut self.device, empty).into_medium();
            self.device = Device::on_medium(&config, medium)?;
        }
        self.is_off = false;
        Ok(self.device.restore_power(time))
    }
}
