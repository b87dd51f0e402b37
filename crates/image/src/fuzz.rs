//! What the fuzz targets and the short fuzz test call: any bytes as a recording, and as the log of an image.
//!
//! Checksums are made right, so that what is in them is reached. **Invariants**: nothing may panic.

use std::os::unix::fs::FileExt;
use std::path::Path;

use leyden_device::{Config, SECTOR_BYTES};
use leyden_sim::{Bytes, Ratio};

use crate::layout::seal;
use crate::recording::{Recording, RecordingError, Replay, pack_all, unpack_all};
use crate::{Drive, ImageConfig, ImageError, WriteFlags};

fn config() -> ImageConfig {
    let mut device = Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (1, 2);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (24, 8);
    device.ftl.over_provisioning = Ratio::from_percent(70);
    device.buffer.size = Bytes::new(128 << 10);
    device.power = Some(leyden_power::Config::default());
    ImageConfig { name: "fuzz".to_owned(), seed: 1, device, made_by: "fuzz".to_owned() }
}

/// Reads `records`, unpacked, as a recording and runs it.
///
/// # Errors
/// If it is none.
pub fn recording(records: &[u8]) -> Result<(), RecordingError> {
    let recording = Recording::read(&mut &pack_all(records)[..])?;
    let mut replay = Replay::new(&recording)?;
    if replay.run().is_ok() {
        let _ = replay.read_unit(0);
    }
    Ok(())
}

/// The records of a recording of some writes, unpacked.
///
/// # Panics
/// If there is no temporary folder.
pub fn recording_seed() -> Vec<u8> {
    let folder = std::env::temp_dir().join(format!("leyden-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (image, path) = (folder.join("image"), folder.join("recording"));
    let written = write_seed(&image, &path);
    let bytes = std::fs::read(&path);
    let _ = std::fs::remove_dir_all(&folder);
    written.expect("a drive that can be recorded");
    unpack_all(&bytes.expect("a recording"))
}

fn write_seed(image: &Path, path: &Path) -> Result<(), ImageError> {
    let mut drive = Drive::create(image, config())?;
    drive.record(path)?;
    for number in 0..6 {
        let data = vec![number as u8; 4_096];
        drive.write(
            drive.now(),
            0,
            leyden_device::Lba(number * 5),
            &data,
            WriteFlags::fua(number % 2 == 0),
        )?;
        drive.rest()?;
    }
    drive.flush(drive.now(), 0)?;
    drive.trim(drive.now(), 0, leyden_device::Lba(3), 9)?;
    drive.mark(b"promised");
    drive.rest()?;
    drive.cut(drive.now())?;
    drive.restore(drive.now(), None)?;
    drive.rest()?;
    drive.close()
}

/// Opens an image, at `path`, whose log has the entries that `bytes` are cut into.
///
/// # Errors
/// If the image is refused.
pub fn log(path: &Path, bytes: &[u8]) -> Result<(), ImageError> {
    let _ = std::fs::remove_file(path);
    let made = Drive::create(path, config())?;
    let (begin, first) = made.log_begin();
    made.close()?;
    let mut entries = Vec::new();
    for (at, body) in bytes.chunks(64).enumerate() {
        // Length and sequence as they must be; the rest is the fuzzer's.
        let mut entry = (4 + 8 + body.len() as u32 + 4).to_le_bytes().to_vec();
        entry.extend((first + at as u64).to_le_bytes());
        entry.extend(body);
        seal(&mut entry);
        entries.extend(entry);
    }
    let file = std::fs::OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&entries, begin)?;
    drop(file);
    let (mut drive, _) = Drive::open(path)?;
    if drive.is_off() {
        drive.restore(drive.now(), None)?;
    }
    drive.rest()?;
    let _ = drive.peek(leyden_device::Lba(0), (4_096 / SECTOR_BYTES) as u32)?;
    drive.close()
}
