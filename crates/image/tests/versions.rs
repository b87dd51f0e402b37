//! Images of older format versions are opened with all that they hold, and keep their version.
//!
//! `version-1/*.zst` were written at commit c84dc76, before there were zones in images, with the drive of `damage.rs`;
//! `version-2/*.zst` at bdf190b, before there were two places for the clock, by the C interface: the file's length, then for
//! each piece that is no hole its offset, its length and its bytes, packed with Zstandard.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use leyden_device::{Lba, SECTOR_BYTES};
use leyden_image::{Drive, WriteFlags};

const UNIT: usize = 4_096;
const SECTORS: u32 = (UNIT as u64 / SECTOR_BYTES) as u32;

/// The image that `packed` holds, in `folder`.
fn unpacked(packed: &[u8], folder: &Path) -> PathBuf {
    let bytes = zstd::decode_all(packed).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let path = folder.join("disk.leyden");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(number(0)).unwrap();
    let mut at = 8;
    while at < bytes.len() {
        let (begin, length) = (number(at), number(at + 8) as usize);
        file.write_all_at(&bytes[at + 16..][..length], begin).unwrap();
        at += 16 + length;
    }
    path
}

fn version_of(path: &Path) -> u32 {
    let mut version = [0; 4];
    std::fs::File::open(path).unwrap().read_exact_at(&mut version, 8).unwrap();
    u32::from_le_bytes(version)
}

fn first_byte(drive: &Drive, unit: u64) -> u8 {
    let bytes = drive.peek(Lba(unit * u64::from(SECTORS)), SECTORS).unwrap().expect("whole bytes");
    assert!(bytes.iter().all(|&byte| byte == bytes[0]), "unit {unit}");
    bytes[0]
}

/// Closed images of both versions, and such whose process was killed.
const CLOSED: [(u32, &[u8]); 2] =
    [(1, include_bytes!("version-1/closed.zst")), (2, include_bytes!("version-2/closed.zst"))];
const KILLED: [(u32, &[u8]); 2] =
    [(1, include_bytes!("version-1/killed.zst")), (2, include_bytes!("version-2/killed.zst"))];

#[test]
fn a_closed_one_holds_what_was_written_and_takes_more() {
    for (version, packed) in CLOSED {
        closed(version, packed);
    }
}

fn closed(version: u32, packed: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = unpacked(packed, folder.path());
    assert_eq!(version_of(&path), version);
    let (mut drive, opened) = Drive::open(&path).unwrap();
    assert!(opened.cut.is_none());
    for unit in 0..40 {
        assert_eq!(first_byte(&drive, unit), unit as u8 + 1);
    }
    let flags = WriteFlags::fua(true);
    drive.write(drive.now(), 0, Lba(0), &[200; UNIT], flags).unwrap();
    drive.rest().unwrap();
    drive.close().unwrap();
    let (drive, _) = Drive::open(&path).unwrap();
    assert_eq!((first_byte(&drive, 0), first_byte(&drive, 1)), (200, 2));
    assert_eq!(version_of(&path), version);
}

#[test]
fn a_killed_one_is_run_again_and_has_lost_nothing_that_was_promised() {
    for (version, packed) in KILLED {
        killed(version, packed);
    }
}

fn killed(version: u32, packed: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = unpacked(packed, folder.path());
    let (mut drive, opened) = Drive::open(&path).unwrap();
    // 40 writes after the checkpoint, their ends not all told of.
    assert!(opened.cut.is_some());
    assert_eq!(opened.replayed, 40);
    drive.restore(drive.now(), None).unwrap();
    drive.rest().unwrap();
    for unit in 0..40 {
        let byte = first_byte(&drive, unit);
        assert!(byte == unit as u8 || byte == unit as u8 + 1, "unit {unit}: {byte}");
    }
    assert_eq!(first_byte(&drive, 0), 1);
    drive.close().unwrap();
    assert_eq!(version_of(&path), version);
}
