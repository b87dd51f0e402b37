//! The file system that an image lies in is full: commands that find no room are refused, all others go on, and a
//! kill loses nothing that was promised.
//!
//! The test runs itself again in a mount namespace of its own, with a small tmpfs.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a child is told where to work, and tells what it has found; what a machine lacks is said"
)]

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use leyden_buffer::Region;
use leyden_device::{Config, Lba, Status};
use leyden_image::{Done, Drive, ImageConfig, ImageError, WriteFlags};
use leyden_sim::{Bytes, Ratio, Rng};

const UNITS: u64 = 400;
const UNIT_SECTORS: u64 = 8;

fn config() -> ImageConfig {
    let mut device = Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (2, 1);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (96, 16);
    device.ftl.over_provisioning = Ratio::from_percent(60);
    device.buffer.region = Region::Full;
    device.buffer.size = Bytes::new(128 << 10);
    device.power = Some(leyden_power::Config::default());
    ImageConfig {
        name: "test".to_owned(),
        seed: 3,
        device,
        stack: None,
        made_by: "test".to_owned(),
    }
}

fn bytes_of(unit: u64, number: u64) -> Vec<u8> {
    [unit, number].map(u64::to_le_bytes).concat().into_iter().cycle().take(4_096).collect()
}

fn wait(drive: &mut Drive) -> Done {
    let mut done = Vec::new();
    while done.is_empty() {
        let next = drive.next_event().expect("a drive that owes an answer has something to do");
        drive.advance(next, &mut done).unwrap();
    }
    done.remove(0)
}

/// Writes random units until `enough` of them were written, or refused. Returns how many were which.
fn write(
    drive: &mut Drive,
    rng: &mut Rng,
    kept: &mut BTreeMap<u64, u64>,
    enough: impl Fn(u64, u64) -> bool,
) -> (u64, u64) {
    let (mut written, mut refused) = (0, 0);
    while !enough(written, refused) {
        let (unit, number) = (rng.below(UNITS), rng.below(u64::MAX));
        let data = bytes_of(unit, number);
        match drive.write(drive.now(), 0, Lba(unit * UNIT_SECTORS), &data, WriteFlags::default()) {
            Ok(()) => {
                assert_eq!(wait(drive).status, Status::Success);
                kept.insert(unit, number);
                written += 1;
            }
            Err(ImageError::Io(error)) if error.kind() == ErrorKind::StorageFull => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    (written, refused)
}

fn check(drive: &mut Drive, kept: &BTreeMap<u64, u64>) {
    for (&unit, &number) in kept {
        drive.read(drive.now(), 0, Lba(unit * UNIT_SECTORS), UNIT_SECTORS as u32).unwrap();
        let read = wait(drive);
        assert_eq!(read.status, Status::Success, "unit {unit}");
        assert!(read.data == bytes_of(unit, number), "unit {unit} is not what was promised");
    }
}

/// Does nothing unless it is run as the other test's child.
#[test]
fn child() {
    let Ok(folder) = std::env::var("LEYDEN_TEST_SMALL_DISK") else { return };
    let (image, filler) =
        (Path::new(&folder).join("disk.leyden"), Path::new(&folder).join("filler"));
    std::fs::write(&filler, vec![1; 2 << 20]).unwrap();
    let (mut rng, mut kept) = (Rng::new(1, "image.full"), BTreeMap::new());
    let mut drive = Drive::create(&image, config()).unwrap();
    let mut given_back = 0;
    for round in 0..3 {
        let (written, _) = write(&mut drive, &mut rng, &mut kept, |_, refused| refused == 20);
        assert!(round > 0 || written > 100, "{written} writes were all that it had room for");
        check(&mut drive, &kept); // reads go on
        drive.rest().unwrap();
        // Its room was kept: it gives back what the log has.
        drive.checkpoint(false).unwrap();
        given_back += write(&mut drive, &mut rng, &mut kept, |_, refused| refused == 1).0;
        std::fs::remove_file(&filler).unwrap();
        write(&mut drive, &mut rng, &mut kept, |written, _| written == 50);
        drop(drive); // to the image the same as a kill
        let (reopened, opened) = Drive::open(&image).unwrap();
        assert!(opened.cut.is_some());
        drive = reopened;
        drive.restore(drive.now(), None).unwrap();
        check(&mut drive, &kept);
        drive.rest().unwrap();
        drive.checkpoint(false).unwrap(); // gives back what the drive has no use for
        let _ = std::fs::write(&filler, vec![1; 2 << 20]); // as far as there is room
    }
    assert!(given_back > 0, "a checkpoint gave nothing back");
    // On a full file system it is closed as elsewhere.
    write(&mut drive, &mut rng, &mut kept, |_, refused| refused == 20);
    drive.rest().unwrap();
    drive.close().unwrap();
    let (mut drive, opened) = Drive::open(&image).unwrap();
    assert!(opened.cut.is_none(), "it was closed");
    check(&mut drive, &kept);
    println!("{} units are there", kept.len());
}

#[test]
fn a_full_file_system_refuses_commands_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = r#"mount -t tmpfs -o size=8m tmpfs "$1" || exit 77; shift; exec "$@""#;
    let test = std::env::current_exe().unwrap();
    let child = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", run, "sh"])
        .arg(folder.path())
        .arg(test)
        .args(["--exact", "child", "--nocapture"])
        .env("LEYDEN_TEST_SMALL_DISK", folder.path())
        .output();
    match child {
        Ok(child) if child.status.success() => {
            let said = String::from_utf8_lossy(&child.stdout);
            assert!(said.contains("units are there"), "{said}");
        }
        Ok(child) if child.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&child.stderr));
        }
        other => eprintln!("SKIPPED: no small file system to fill: {other:?}"),
    }
}
