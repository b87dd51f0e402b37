//! The function of the fuzz target and of the short fuzz test: any bytes as a snapshot.
//!
//! **Invariants**: none may panic but for a broken promise.

use leyden_sim::{Bytes, Ratio};

use crate::snapshot::reseal;
use crate::{BlockDevice, Command, Config, Lba, Op, SnapshotError, Ssd, Stamp};

/// The drive whose snapshots are read: small, so that hardly a byte is without meaning, and with capacitors.
pub fn config() -> Config {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 2;
    config.nand.blocks_per_plane = 24;
    config.nand.pages_per_block = 8;
    config.ftl.over_provisioning = Ratio::from_percent(70);
    config.buffer.size = Bytes::new(128 << 10);
    config.power = Some(leyden_power::Config::default());
    config
}

/// A snapshot of that drive after some work.
///
/// # Panics
/// If the drive cannot be built, or not saved.
pub fn seed() -> Vec<u8> {
    let mut ssd = Ssd::<Stamp>::new(&config(), 1).expect("a drive that can be built");
    let units = u64::from(ssd.mapping_units());
    let mut done = Vec::new();
    for number in 0..3 * units {
        let op = if number % 17 == 0 { Op::Trim } else { Op::Write };
        let lba = Lba(number * 7 % units * 8);
        ssd.submit(ssd.now(), Command::new(op, lba, 8, number + 1));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
    }
    let mut bytes = Vec::new();
    ssd.save(&mut bytes).expect("an idle drive is saved");
    bytes
}

/// Reads `data` as a snapshot of that drive, and works with what was loaded. With `resealed`, as if its
/// length and checksum were right: then what was loaded is not used, for a state that no drive was in is
/// refused only as far as loading notices.
///
/// # Panics
/// If a drive that was loaded does not hold together, or cannot be read and written.
pub fn snapshot(data: &[u8], resealed: bool) -> Result<(), SnapshotError> {
    let mut data = data.to_vec();
    if resealed {
        reseal(&mut data);
    }
    let mut ssd = Ssd::<Stamp>::load(&config(), 1, &mut &data[..])?;
    if resealed {
        return Ok(());
    }
    ssd.check();
    let mut done = Vec::new();
    for unit in 0..u64::from(ssd.mapping_units()) {
        let op = if unit % 3 == 0 { Op::Write } else { Op::Read };
        ssd.submit(ssd.now(), Command::new(op, Lba(unit * 8), 8, 0));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
    }
    ssd.check();
    Ok(())
}
