//! Entry points of the fuzz targets and of the short fuzz test: any bytes as a recording, and as the log of an image.
//!
//! Checksums are made right, so that what is in them is reached. **Invariants**: nothing may panic.

use std::os::unix::fs::FileExt;
use std::path::Path;

use leyden_device::{Config, Lba, Region, SECTOR_BYTES, Status, ZoneAction};
use leyden_sim::{Bytes, Ratio};

use crate::layout::seal;
use crate::recording::{Recording, RecordingError, Replay, pack_all, unpack_all};
use crate::{Drive, ImageConfig, ImageError, WriteFlags, ZoneAsk};

fn config() -> ImageConfig {
    let mut device = Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (1, 2);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (24, 8);
    device.ftl.over_provisioning = Ratio::from_percent(70);
    device.buffer.size = Bytes::new(128 << 10);
    device.power = Some(leyden_power::Config::default());
    ImageConfig {
        name: "fuzz".to_owned(),
        seed: 1,
        device,
        stack: None,
        made_by: "fuzz".to_owned(),
    }
}

/// A new small drive in an image.
///
/// # Errors
/// If the image cannot be made.
pub fn drive(image: &Path) -> Result<Drive, ImageError> {
    Drive::create(image, config())
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
    recorded("recording", write_seed)
}

/// The same of a zoned drive: appends, flags, an area, actions, a report and a power cut.
///
/// # Panics
/// If there is no temporary folder, or the drive refuses one of these: a seed of refusals would show little.
pub fn zoned_recording_seed() -> Vec<u8> {
    recorded("zoned-recording", write_zoned_seed)
}

/// The records of what `write` does, given the paths of an image and of its recording.
fn recorded(name: &str, write: fn(&Path, &Path) -> Result<(), ImageError>) -> Vec<u8> {
    let folder = std::env::temp_dir().join(format!("leyden-fuzz-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (image, path) = (folder.join("image"), folder.join("recording"));
    let written = write(&image, &path);
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
        drive.write(drive.now(), 0, Lba(number * 5), &data, WriteFlags::fua(number % 2 == 0))?;
        drive.rest()?;
    }
    drive.flush(drive.now(), 0)?;
    drive.trim(drive.now(), 0, Lba(3), 9)?;
    drive.mark(b"promised");
    drive.rest()?;
    drive.cut(drive.now())?;
    drive.restore(drive.now(), None)?;
    drive.rest()?;
    drive.close()
}

/// Four dies; zones of 32 blocks on one die each, of which two may have an area of eight blocks.
fn zoned_config() -> ImageConfig {
    let mut config = config();
    let device = &mut config.device;
    device.nand.channels = 2;
    device.buffer.size = Bytes::new(512 << 10);
    device.buffer.region = Region::Selective;
    device.buffer.protected_size = Bytes::new(256 << 10);
    let zoned = device.zoned.get_or_insert_default();
    zoned.zone_size = Bytes::new(128 << 10);
    zoned.dies_per_zone = 1;
    (zoned.max_open, zoned.max_active) = (3, 4);
    let area = zoned.zrwa.get_or_insert_default();
    (area.size, area.count) = (Bytes::new(32 << 10), 2);
    config
}

fn write_zoned_seed(image: &Path, path: &Path) -> Result<(), ImageError> {
    let block = (4_096 / SECTOR_BYTES) as u32;
    let mut drive = Drive::create(image, zoned_config())?;
    drive.record(path)?;
    let lba = |zone: u64, at: u64| Lba(zone * (128 << 10) / SECTOR_BYTES + at * u64::from(block));
    let mut rested =
        |ask: &dyn Fn(&mut Drive) -> Result<(), ImageError>| -> Result<(), ImageError> {
            ask(&mut drive)?;
            let mut done = Vec::new();
            while let (false, Some(next)) = (drive.is_idle(), drive.next_event()) {
                drive.advance(next, &mut done)?;
            }
            assert!(done.iter().all(|done| done.status == Status::Success), "{done:?}");
            Ok(())
        };
    let act = |drive: &mut Drive, action, zone| {
        drive.zone(drive.now(), 0, ZoneAsk::new(action, lba(zone, 0)))
    };
    for number in 0..4_u8 {
        let flags = WriteFlags { fua: number == 1, plp: number == 2 };
        rested(&|drive| drive.append(drive.now(), 0, lba(0, 0), &[number; 4_096], flags))?;
    }
    let area = ZoneAsk { zrwa: true, ..ZoneAsk::new(ZoneAction::Open, lba(1, 0)) };
    rested(&|drive| drive.zone(drive.now(), 0, area))?;
    for at in [0, 2, 0] {
        let flags = WriteFlags::default();
        rested(&|drive| drive.write(drive.now(), 0, lba(1, at), &[7; 4_096], flags))?;
    }
    let commit = ZoneAsk::new(ZoneAction::FlushZrwa, lba(1, 3));
    rested(&|drive| drive.zone(drive.now(), 0, commit))?;
    rested(&|drive| drive.write(drive.now(), 0, lba(2, 0), &[9; 8_192], WriteFlags::default()))?;
    rested(&|drive| act(drive, ZoneAction::Close, 2))?;
    rested(&|drive| act(drive, ZoneAction::Finish, 2))?;
    rested(&|drive| drive.flush(drive.now(), 0))?;
    rested(&|drive| drive.zone_report(drive.now(), 0, lba(0, 0), 3))?;
    rested(&|drive| drive.read(drive.now(), 0, lba(1, 0), block))?;
    rested(&|drive| act(drive, ZoneAction::Reset, 0))?;
    drive.mark(b"promised");
    drive.cut(drive.now())?;
    drive.restore(drive.now(), None)?;
    drive.rest()?;
    drive.close()
}

/// The log of a write, a flush, a trim, a power cut and the power's return.
pub fn log_seed() -> Vec<u8> {
    // Time, kind, FUA, sectors, LBA.
    let entry = |(ns, kind, sectors, lba): (u64, u8, u32, u64)| {
        let mut entry = ns.to_le_bytes().to_vec();
        entry.extend([kind, 0]);
        entry.extend(sectors.to_le_bytes());
        entry.extend(lba.to_le_bytes());
        entry.resize(64, 0);
        entry
    };
    [(1, 1, 8, 0), (2, 3, 0, 0), (3, 4, 8, 8), (4, 6, 0, 0), (5, 7, 0, 0)]
        .into_iter()
        .flat_map(entry)
        .collect()
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
    let _ = drive.peek(Lba(0), (4_096 / SECTOR_BYTES) as u32)?;
    drive.close()
}
