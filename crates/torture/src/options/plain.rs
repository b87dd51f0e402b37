//! A drive with every feature off: where shrinking leads to.

use leyden_device::Config;

/// `device` with the first policies and without faults. It has power as long as `device` has.
pub(crate) fn plain_device(device: &Config) -> Config {
    let plain = Config::default();
    let power = device.power.as_ref().map(|_| leyden_power::Config::default());
    let mut buffer = plain.buffer;
    buffer.region = device.buffer.region; // what it promises decides what is a failure
    Config { power, buffer, ..plain }
}
