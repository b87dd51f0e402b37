//! Images that are not as they were written: each is opened, or refused with a reason.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use leyden_device::{Config, Lba, Status};
use leyden_image::{Drive, ImageConfig, ImageError, WriteFlags};
use leyden_sim::{Bytes, Ratio, Rng};

fn config() -> ImageConfig {
    let mut device = Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (1, 2);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (64, 16);
    device.ftl.over_provisioning = Ratio::from_percent(60);
    device.buffer.size = Bytes::new(128 << 10);
    device.power = Some(leyden_power::Config::default());
    ImageConfig {
        name: "test".to_owned(),
        seed: 1,
        device,
        stack: None,
        made_by: "test".to_owned(),
    }
}

/// An image with data in its checkpoint and in its log, left in the midst of work.
fn image(folder: &Path) -> PathBuf {
    let path = folder.join("disk.leyden");
    let mut drive = Drive::create(&path, config()).unwrap();
    for round in 0..2_u8 {
        for lba in 0..40 {
            drive
                .write(
                    drive.now(),
                    0,
                    Lba(lba * 8),
                    &[lba as u8 + round; 4_096],
                    WriteFlags::default(),
                )
                .unwrap();
        }
        while !drive.is_idle() && round == 0 {
            let next = drive.next_event().unwrap();
            drive.advance(next, &mut Vec::new()).unwrap();
        }
        if round == 0 {
            drive.checkpoint(false).unwrap();
        }
    }
    drive.advance(drive.next_event().unwrap(), &mut Vec::new()).unwrap();
    path
}

/// Reads all of an image that can be opened; how many units could not be read.
fn read_all(path: &Path) -> Result<usize, ImageError> {
    let (mut drive, _) = Drive::open(path)?;
    drive.restore(drive.now(), None)?;
    let mut failed = 0;
    for lba in 0..40 {
        drive.read(drive.now(), 0, Lba(lba * 8), 8)?;
        let mut done = Vec::new();
        while done.is_empty() {
            let next = drive.next_event().expect("a read is under way");
            drive.advance(next, &mut done)?;
        }
        assert!(matches!(done[0].status, Status::Success | Status::UnrecoveredRead));
        failed += usize::from(done[0].status != Status::Success);
    }
    Ok(failed)
}

/// The pieces of the file that are not holes.
fn data_of(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let file = std::fs::File::open(path).unwrap();
    let length = file.metadata().unwrap().len();
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Ok(begin) = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(at)) {
        let end = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(begin)).unwrap().min(length);
        let mut bytes = vec![0; (end - begin) as usize];
        file.read_exact_at(&mut bytes, begin).unwrap();
        pieces.push((begin, bytes));
        at = end;
    }
    pieces
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(folder.path());
    let pieces = data_of(&path);
    let mut rng = Rng::new(1, "image.damage");
    let (mut refused, mut failed, mut whole) = (0, 0, 0);
    for (begin, bytes) in &pieces {
        // Not where there is only room that is set aside, and zeroes because blocks are that large.
        let written: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
        for _ in 0..24.min(written.len()) {
            let at = written[rng.below(written.len() as u64) as usize];
            let copy = folder.path().join("copy");
            Drive::copy(&path, &copy).unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
            file.write_all_at(&[bytes[at] ^ 1 << rng.below(8)], begin + at as u64).unwrap();
            drop(file);
            match read_all(&copy) {
                Ok(0) => whole += 1,
                Ok(_) => failed += 1,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
            std::fs::remove_file(&copy).unwrap();
        }
    }
    assert!(
        refused > 20 && failed > 0,
        "{refused} refused, {failed} reads failed, {whole} unharmed"
    );
    assert_eq!(read_all(&path).unwrap(), 0, "the image itself is whole");
}

#[test]
fn files_that_are_no_images_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for bytes in [&b""[..], b"LEYDIMG", b"LEYDIMG\0", &[0xff; 9_000], b"LEYDSNAP and more"] {
        std::fs::write(&path, bytes).unwrap();
        let error = Drive::open(&path).unwrap_err();
        assert!(
            matches!(error, ImageError::Foreign(_) | ImageError::Damaged(_)),
            "{bytes:?}: {error}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "and left as they are");
    }
}

#[test]
fn an_image_has_one_opener_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.leyden");
    let drive = Drive::create(&path, config()).unwrap();
    assert!(matches!(Drive::open(&path), Err(ImageError::InUse)));
    assert!(matches!(Drive::check(&path), Err(ImageError::InUse)));
    drive.close().unwrap();
    let error = Drive::create(&path, config()).unwrap_err();
    assert!(
        matches!(&error, ImageError::Io(error) if error.kind() == std::io::ErrorKind::AlreadyExists)
    );
    assert!(Drive::copy(&path, &path).is_err());
    assert_eq!(Drive::check(&path).unwrap().damaged_units, 0);
    let mut without = config();
    without.device.power = None;
    let other = folder.path().join("other");
    assert!(
        matches!(Drive::create(&other, without), Err(ImageError::Config(error)) if error.key == "power")
    );
    assert!(!other.exists());
}
