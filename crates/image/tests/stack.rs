//! Block devices on two drives in images: killed, cut and closed at random moments, against a list of what was written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use leyden_device::{Hint, Lba, Status};
use leyden_host::ZonedBlockConfig;
use leyden_host::zoned_block::Recognise;
use leyden_image::{Drive, ImageConfig, WriteFlags};
use leyden_sim::{Bytes, Capacitance, Ratio, Rng, Span};

/// Sectors of a block.
const BLOCK: u32 = 8;
/// Blocks of a zone.
const ZONE: u64 = 32;
/// Blocks that are written.
const SPAN: u64 = 20 * ZONE;

/// 12 random zones and some 40 sequential ones: 20 chunks do not fit into the random zones.
fn config() -> ImageConfig {
    let mut zoned = leyden_device::Config::default();
    (zoned.nand.channels, zoned.nand.dies_per_channel) = (1, 2);
    (zoned.nand.pages_per_block, zoned.nand.page_size) = (8, Bytes::new(16 << 10));
    zoned.nand.blocks_per_plane = 64;
    zoned.buffer.size = Bytes::new(1 << 20);
    let mut conventional = zoned.clone();
    conventional.ftl.capacity = Some(Bytes::new(12 * ZONE * 4096));
    zoned.nand.blocks_per_plane = 40;
    let zones = zoned.zoned.get_or_insert_default();
    (zones.zone_size, zones.spare) = (Bytes::new(ZONE * 4096), Ratio::from_percent(20));
    (zones.max_open, zones.max_active) = (4, 4);
    let mut layer = ZonedBlockConfig { reserved_zones: 2, ..ZonedBlockConfig::default() };
    (layer.journal.separate, layer.journal.max_zones) = (true, 2);
    layer.journal.recognise = Recognise::Superblock;
    layer.idle = Span::from_us(20_000);
    ImageConfig::new("stack".to_owned(), 5, zoned).stacked(conventional, layer)
}

/// The contents that each block may have: the last certain one, and those written since. A block is
/// named by a number that fills it.
#[derive(Default)]
struct Twin {
    may: BTreeMap<u64, Vec<u64>>,
}

impl Twin {
    fn wrote(&mut self, block: u64, value: u64, is_sure: bool) {
        let may = self.may.entry(block).or_insert_with(|| vec![0]);
        if is_sure {
            may.clear();
        }
        may.push(value);
    }

    fn flushed(&mut self) {
        for may in self.may.values_mut() {
            may.drain(..may.len() - 1);
        }
    }

    fn newest(&self, block: u64) -> u64 {
        self.may.get(&block).map_or(0, |may| *may.last().expect("one at least"))
    }
}

struct Disk {
    path: PathBuf,
    drive: Option<Drive>,
    twin: Twin,
    next: u64,
    rng: Rng,
}

fn filled(value: u64) -> Vec<u8> {
    value.to_le_bytes().repeat(512)
}

impl Disk {
    fn new(folder: &tempfile::TempDir, seed: u64) -> Self {
        let path = folder.path().join("disk.leyden");
        let drive = Some(Drive::create(&path, config()).unwrap());
        Self { path, drive, twin: Twin::default(), next: 1, rng: Rng::new(seed, "stack") }
    }

    fn drive(&mut self) -> &mut Drive {
        self.drive.as_mut().unwrap()
    }

    fn write(&mut self, block: u64, fua: bool) {
        let value = self.next;
        self.next += 1;
        let drive = self.drive();
        let lba = Lba(block * u64::from(BLOCK));
        drive.write(drive.now(), 0, lba, &filled(value), WriteFlags::fua(fua)).unwrap();
        drive.finish_one().unwrap();
        self.twin.wrote(block, value, fua);
    }

    fn flush(&mut self) {
        let drive = self.drive();
        drive.flush(drive.now(), 0).unwrap();
        drive.finish_one().unwrap();
        self.twin.flushed();
    }

    fn read(&mut self, block: u64) -> u64 {
        let drive = self.drive();
        drive.read(drive.now(), 0, Lba(block * u64::from(BLOCK)), BLOCK).unwrap();
        drive.finish(1).unwrap();
        let mut done = Vec::new();
        drive.advance(drive.now(), &mut done).unwrap();
        assert_eq!(done[0].status, Status::Success);
        let value = u64::from_le_bytes(done[0].data[..8].try_into().unwrap());
        assert_eq!(done[0].data, filled(value), "a whole block");
        let peeked = drive.peek(Lba(block * u64::from(BLOCK)), BLOCK).unwrap().unwrap();
        assert_eq!(peeked, done[0].data);
        value
    }

    fn work(&mut self, commands: u64) {
        for _ in 0..commands {
            let block = 1 + self.rng.below(SPAN - 1);
            match self.rng.below(20) {
                0 => self.flush(),
                1 => self.write(block, true),
                2 => assert_eq!(self.read(block), self.twin.newest(block)),
                3 => {
                    // The device is left alone for some time.
                    let (drive, mut done) = (self.drive.as_mut().unwrap(), Vec::new());
                    let later = drive.now() + Span::from_us(self.rng.below(60_000));
                    drive.advance(later, &mut done).unwrap();
                }
                _ => self.write(block, false),
            }
        }
    }

    /// The power is back; every block holds what it may, and that is what it surely holds from now on.
    fn judge(&mut self) {
        for block in 0..SPAN {
            let value = self.read(block);
            let may = self.twin.may.get(&block).cloned().unwrap_or_else(|| vec![0]);
            assert!(may.contains(&value), "block {block} holds {value}, and may hold {may:?}");
            self.twin.may.insert(block, vec![value]);
        }
    }

    /// The process that has the image is killed, and another opens it.
    fn kill(&mut self) {
        self.drive = None;
        let (mut drive, opened) = Drive::open(&self.path).unwrap();
        assert!(opened.cut.is_some());
        drive.restore(drive.now(), None).unwrap();
        self.drive = Some(drive);
    }
}

#[test]
fn nothing_promised_is_lost() {
    for seed in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::new(&folder, seed);
        let mut reclaimed = 0;
        for _ in 0..12 {
            let commands = disk.rng.below(300);
            disk.work(commands);
            reclaimed += disk.drive().device().stack().unwrap().layer_stats().reclaimed;
            match disk.rng.below(4) {
                0 => disk.kill(),
                1 => {
                    let drive = disk.drive();
                    drive.cut(drive.now()).unwrap();
                    assert!(drive.restore(drive.now(), Some(Capacitance::from_nf(1))).is_err());
                    drive.restore(drive.now(), None).unwrap();
                }
                2 => {
                    // The rest runs on the device that the checkpoint gives.
                    let drive = disk.drive();
                    drive.rest().unwrap();
                    drive.checkpoint(false).unwrap();
                    disk.twin.flushed();
                    disk.work(40);
                    disk.kill();
                }
                _ => {
                    let mut drive = disk.drive.take().unwrap();
                    drive.rest().unwrap();
                    drive.close().unwrap();
                    let checked = Drive::check(&disk.path).unwrap();
                    assert_eq!((checked.is_closed, checked.damaged_units), (true, 0));
                    let (drive, opened) = Drive::open(&disk.path).unwrap();
                    assert!(opened.cut.is_none());
                    disk.drive = Some(drive);
                    disk.twin.flushed();
                }
            }
            disk.judge();
        }
        assert!(reclaimed > 0, "chunks were moved meanwhile");
    }
}

/// A superblock of XFS with its log in `blocks` blocks from `first` on.
fn xfs(first: u64, blocks: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, b"XFSB");
    put(4, &4096_u32.to_be_bytes());
    put(48, &first.to_be_bytes());
    put(84, &(1_u32 << 20).to_be_bytes());
    put(88, &1_u32.to_be_bytes());
    put(96, &blocks.to_be_bytes());
    put(124, &[31]);
    bytes
}

#[test]
fn a_journal_is_found_and_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::new(&folder, 1);
    let of = |disk: &Disk| disk.drive.as_ref().unwrap().device().stack().unwrap().journal_bytes();
    let separated = |disk: &Disk| {
        let stack = disk.drive.as_ref().unwrap().device().stack().unwrap();
        stack.layer_stats().separated_blocks
    };
    assert_eq!(of(&disk), 0);
    let drive = disk.drive();
    drive.write(drive.now(), 0, Lba(0), &xfs(40, 16), WriteFlags::fua(true)).unwrap();
    drive.finish_one().unwrap();
    assert_eq!(of(&disk), 16 * 4096);
    for block in 30..60 {
        disk.write(block, false);
    }
    assert_eq!(separated(&disk), 16);
    // It is found again after a kill, a checkpoint, and when the image is opened.
    disk.kill();
    assert_eq!(of(&disk), 16 * 4096);
    disk.write(41, true);
    assert_eq!(separated(&disk), 1, "counted since the image was opened");
    let drive = disk.drive();
    drive.rest().unwrap();
    drive.checkpoint(false).unwrap();
    assert_eq!(of(&disk), 16 * 4096);
    disk.write(42, false);
    disk.kill();
    assert_eq!(of(&disk), 16 * 4096);
    let mut drive = disk.drive.take().unwrap();
    drive.rest().unwrap();
    drive.close().unwrap();
    disk.drive = Some(Drive::open(&disk.path).unwrap().0);
    assert_eq!(of(&disk), 16 * 4096);
    // The file system is made anew: the journal is elsewhere.
    let drive = disk.drive();
    drive.write(drive.now(), 0, Lba(0), &xfs(100, 8), WriteFlags::fua(true)).unwrap();
    drive.finish_one().unwrap();
    assert_eq!(of(&disk), 8 * 4096);
    disk.kill();
    assert_eq!(disk.read(41), disk.twin.newest(41));
}

#[test]
fn announced_writes_mean_nothing_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = Drive::create(&folder.path().join("disk.leyden"), config()).unwrap();
    let digest = drive.device().digest();
    let ended = |drive: &mut Drive| {
        let hints = Hint::covering(Lba(0), 64).collect();
        drive.write_prepare(drive.now(), 7, hints).unwrap();
        let mut done = Vec::new();
        while done.is_empty() {
            drive.advance(drive.next_event().unwrap(), &mut done).unwrap();
        }
        (done[0].tag, done[0].status)
    };
    assert_eq!(ended(&mut drive), (7, Status::Success));
    assert_eq!(drive.device().digest(), digest);
    drive.cut(drive.now()).unwrap();
    assert_eq!(ended(&mut drive), (7, Status::NotReady));
}

#[test]
fn it_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::new(&folder, 1);
    let path = folder.path().join("recording");
    let drive = disk.drive();
    drive.rest().unwrap();
    assert!(drive.record(&path).unwrap_err().to_string().contains("cannot be recorded"));
}
