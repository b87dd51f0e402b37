//! Journals that are found by superblocks, move, and lie.

use super::superblock::{Journal, Why, find};
use super::*;

/// Blocks of a chunk.
const CHUNK: u64 = 32;

/// The device, and the bytes that its stamps stand for.
struct Disk {
    device: Device,
    bytes: Vec<Vec<u8>>,
}

fn by_superblock() -> ZonedBlockConfig {
    let mut config = config();
    (config.journal.separate, config.journal.max_zones) = (true, 2);
    config.journal.recognise = Recognise::Superblock;
    config
}

/// A superblock of XFS with its log in `blocks` blocks from `first` on.
fn superblock(first: u64, blocks: u32) -> Vec<u8> {
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

impl Disk {
    fn new() -> Self {
        let device = Device::format(&by_superblock(), pair(), 7).unwrap();
        Self { device, bytes: vec![vec![0; 4096]] }
    }

    /// What whoever has the bytes must do.
    fn look(&mut self) {
        if !self.device.take_superblock_changed() {
            return;
        }
        let (device, bytes) = (&mut self.device, &self.bytes);
        let capacity = device.capacity_sectors() * SECTOR_BYTES;
        let (sources, journal) = find(capacity, |range| {
            assert!(range.start.is_multiple_of(4096) && range.end == range.start + 4096);
            let stamp = read(device, range.start / 4096) as usize;
            Some(bytes.get(stamp).unwrap_or(&bytes[0]).clone())
        });
        let now = Powered::now(&self.device);
        self.device.found_journal(now, sources, journal);
    }

    fn make(&mut self, superblock: Vec<u8>) {
        self.bytes.push(superblock);
        write(&mut self.device, 0, self.bytes.len() as u64 - 1);
        self.look();
    }

    fn write_all(&mut self, blocks: std::ops::Range<u64>, stamp: u64) {
        for block in blocks {
            write(&mut self.device, block, stamp + block);
            self.look();
        }
    }

    /// Lets time pass until no block is on its way out of the journal's zones.
    fn let_go(&mut self) {
        while self.device.recognition.is_releasing() {
            let time = self.device.next_event().expect("blocks are being moved");
            self.device.advance(time, &mut Vec::new());
        }
        self.device.check();
    }

    /// Lets what was given up become free.
    fn rest(&mut self) {
        flush(&mut self.device);
        while self.device.zones.is_freeing() || !self.device.committer.is_idle() {
            let time = self.device.next_event().expect("a commit is under way");
            self.device.advance(time, &mut Vec::new());
        }
    }

    fn holds(&mut self, blocks: std::ops::Range<u64>, stamp: u64) {
        for block in blocks {
            assert_eq!(read(&mut self.device, block), stamp + block, "block {block}");
        }
    }
}

#[test]
fn a_journal_is_found_by_its_superblock_and_let_go_when_it_moves() {
    let mut disk = Disk::new();
    disk.write_all(40..60, 1_000);
    assert_eq!(disk.device.stats().separated_blocks, 0, "nobody has said where a journal is");
    disk.make(superblock(40, 20));
    assert_eq!(disk.device.journal().unwrap().bytes(), 20 * 4096);
    disk.write_all(36..60, 2_000);
    assert_eq!(disk.device.stats().separated_blocks, 20, "and 4 are not its");
    // It grows where it is: nothing moves.
    disk.make(superblock(40, 40));
    disk.write_all(60..80, 3_000);
    assert_eq!(disk.device.stats().separated_blocks, 40);
    assert!(!disk.device.recognition.is_releasing());
    // A file system is made anew, with its log elsewhere.
    disk.make(superblock(5 * CHUNK, 20));
    assert!(disk.device.recognition.is_releasing());
    disk.write_all(44..46, 4_000);
    disk.let_go();
    let stats = disk.device.stats();
    assert_eq!(stats.released_blocks, 40, "the two were moved before they were written: {stats:?}");
    assert_eq!(disk.device.map.journal().zones().count(), 0);
    disk.write_all(5 * CHUNK..5 * CHUNK + 20, 5_000);
    assert_eq!(disk.device.stats().separated_blocks, 60);
    disk.holds(36..44, 2_000);
    disk.holds(44..46, 4_000);
    disk.holds(46..60, 2_000);
    disk.holds(60..80, 3_000);
    // The zone that it left is free in the end.
    disk.rest();
    let all = disk.device.zones.random_room();
    disk.make(vec![0; 4096]);
    assert_eq!(disk.device.journal(), Some(&Journal::Nowhere(Why::NoFileSystem)));
    disk.let_go();
    disk.rest();
    let room = disk.device.zones.random_room();
    assert!(room.0 >= all.0, "{room:?} after {all:?}");
    assert!(!disk.device.zones.all().any(|(_, usage)| usage == Use::Journal));
    disk.holds(5 * CHUNK..5 * CHUNK + 20, 5_000);
}

#[test]
fn superblocks_that_lie_end_separation_and_lose_nothing() {
    let capacity = Disk::new().device.capacity_sectors() / BLOCK;
    let lies = [
        ("beyond the device", superblock(capacity - 4, 20)),
        ("of an absurd size", superblock(40, 1 << 21)),
        ("of no size", superblock(40, 0)),
        ("in no allocation group", superblock(1 << 40, 20)),
    ];
    for (what, lie) in lies {
        let mut disk = Disk::new();
        disk.make(superblock(40, 20));
        disk.write_all(40..60, 1_000);
        disk.make(lie);
        let journal = disk.device.journal().unwrap().clone();
        assert!(matches!(journal, Journal::Nowhere(Why::Unbelievable(_))), "{what}: {journal:?}");
        disk.let_go();
        disk.write_all(40..50, 2_000);
        disk.holds(40..50, 2_000);
        disk.holds(50..60, 1_000);
        let stats = disk.device.stats();
        assert_eq!((stats.separated_blocks, stats.released_blocks), (20, 20), "{what}");
    }
}

#[test]
fn a_journal_larger_than_its_zones_is_apart_as_far_as_they_go() {
    let mut disk = Disk::new();
    disk.make(superblock(CHUNK, 4 * CHUNK as u32));
    for round in 0..3 {
        disk.write_all(CHUNK..5 * CHUNK, 1_000 * round);
    }
    assert_eq!(disk.device.stats().separated_blocks, 3 * 2 * CHUNK, "two zones");
    disk.holds(CHUNK..5 * CHUNK, 2_000);
    disk.device.check();
}

/// The power fails at any moment after a journal has moved.
#[test]
fn power_cuts_while_a_journal_is_let_go_lose_nothing() {
    let mut moments_within = 0;
    for events in 0..150 {
        let mut disk = Disk::new();
        disk.make(superblock(40, 30));
        disk.write_all(30..70, 1_000);
        flush(&mut disk.device);
        disk.make(superblock(5 * CHUNK, 20));
        for _ in 0..events {
            let Some(time) = disk.device.next_event() else { break };
            disk.device.advance(time, &mut Vec::new());
        }
        moments_within += u32::from(disk.device.recognition.is_releasing());
        let now = Powered::now(&disk.device);
        disk.device.cut_power(now);
        assert_eq!(disk.device.journal(), None, "nothing is known but what is read");
        disk.device.restore_power(now);
        disk.holds(30..70, 1_000);
        disk.device.recognition.wrote(0..1); // as whoever looks does after a power cut
        disk.look();
        disk.let_go();
        disk.holds(30..70, 1_000);
        flush(&mut disk.device);
        disk.write_all(5 * CHUNK..5 * CHUNK + 20, 5_000);
        disk.holds(30..70, 1_000);
    }
    assert!((5..150).contains(&moments_within), "{moments_within}");
}

#[test]
fn without_a_superblock_to_look_for_nothing_is_looked_for() {
    let mut device = Device::format(&config(), pair(), 7).unwrap();
    write(&mut device, 0, 1);
    assert!(!device.needs_superblocks() && !device.take_superblock_changed());
}
