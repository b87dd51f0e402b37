//! Journals of a block device on two drives that are found by superblocks, move, and lie; and metadata that does.

use std::ops::Range;

use leyden_device::{
    BlockDevice, Command, Completion, Config, Lba, SECTOR_BYTES, Ssd, Stamp, Status, ZnsSsd,
};
use leyden_host::zoned_block::superblock::{Journal, Why, find};
use leyden_host::zoned_block::victim::ReclaimConfig;
use leyden_host::zoned_block::{ChunkPlace, Pair, Recognise, Stored, StoredData, fuzz, superblock};
use leyden_host::{Powered, ZonedBlock, ZonedBlockConfig};
use leyden_sim::{Bytes, Ratio};
use proptest::prelude::*;

type Conventional = Ssd<Stored<Stamp>>;
type Zoned = ZnsSsd<Stored<Stamp>>;
type Device = ZonedBlock<Stamp, Conventional, Zoned>;

/// Sectors of a block.
const BLOCK: u32 = 8;
/// Blocks of a chunk.
const CHUNK: u64 = 32;

/// 12 random zones and some 40 sequential ones.
fn pair() -> Pair<Conventional, Zoned> {
    let mut config = Config::default();
    (config.nand.channels, config.nand.dies_per_channel) = (1, 2);
    (config.nand.pages_per_block, config.nand.page_size) = (8, Bytes::new(16 << 10));
    config.nand.blocks_per_plane = 64;
    config.buffer.size = Bytes::new(1 << 20);
    config.power.get_or_insert_default();
    let mut zoned = config.clone();
    config.ftl.capacity = Some(Bytes::new(12 * CHUNK * 4096));
    zoned.nand.blocks_per_plane = 40;
    let zones = zoned.zoned.get_or_insert_default();
    (zones.zone_size, zones.spare) = (Bytes::new(CHUNK * 4096), Ratio::from_percent(20));
    (zones.max_open, zones.max_active) = (4, 4);
    let (conventional, zoned) = (Ssd::new(&config, 1).unwrap(), ZnsSsd::new(&zoned, 2).unwrap());
    let shape = *zoned.zone_shape();
    Pair { conventional, zoned, shape }
}

fn config() -> ZonedBlockConfig {
    let mut config = ZonedBlockConfig { reserved_zones: 2, ..ZonedBlockConfig::default() };
    (config.journal.separate, config.journal.max_zones) = (true, 2);
    config.journal.recognise = Recognise::Superblock;
    config
}

/// The device, and the bytes that its stamps stand for.
struct Disk {
    device: Device,
    bytes: Vec<Vec<u8>>,
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

impl Disk {
    fn new() -> Self {
        Self::on(Device::format(&config(), pair(), 7).unwrap())
    }

    fn on(device: Device) -> Self {
        Self { device, bytes: vec![vec![0; 4096]] }
    }

    /// Ends `command`.
    fn end(&mut self, command: Command<Stamp>) -> Completion<Stamp> {
        let id = self.device.submit(Powered::now(&self.device), command);
        let mut done = Vec::new();
        loop {
            if let Some(at) = done.iter().position(|end: &Completion<Stamp>| end.id == id) {
                assert_eq!(done[at].status, Status::Success);
                return done.swap_remove(at);
            }
            self.step(&mut done);
        }
    }

    fn step(&mut self, done: &mut Vec<Completion<Stamp>>) {
        let time = self.device.next_event().expect("something is under way");
        self.device.advance(time.max(Powered::now(&self.device)), done);
    }

    fn write(&mut self, block: u64, stamp: u64) {
        self.end(Command::write(Lba(block * u64::from(BLOCK)), BLOCK, stamp));
    }

    fn read(&mut self, block: u64) -> u64 {
        let done = self.end(Command::read(Lba(block * u64::from(BLOCK)), BLOCK));
        done.data().unwrap()[0].0
    }

    fn flush(&mut self) {
        self.end(Command::flush());
    }

    /// Reads the superblocks, as the owner of the bytes must after a power cut, and when the device
    /// says so.
    fn look(&mut self) {
        let capacity = self.device.capacity_sectors() * SECTOR_BYTES;
        let (sources, journal) = find(capacity, |range| {
            assert!(range.start.is_multiple_of(4096) && range.end == range.start + 4096);
            let stamp = self.read(range.start / 4096) as usize;
            Some(self.bytes.get(stamp).unwrap_or(&self.bytes[0]).clone())
        });
        self.device.found_journal(Powered::now(&self.device), sources, journal);
    }

    /// Makes a file system.
    fn make(&mut self, superblock: Vec<u8>) {
        self.bytes.push(superblock);
        self.write(0, self.bytes.len() as u64 - 1);
        assert!(self.device.take_superblock_changed(), "the device sees that it has changed");
        self.look();
    }

    fn write_all(&mut self, blocks: Range<u64>, stamp: u64) {
        for block in blocks {
            self.write(block, stamp + block);
        }
        assert!(!self.device.take_superblock_changed(), "no superblock was written");
    }

    /// Lets time pass until no block is on its way out of the journal's zones.
    fn let_go(&mut self) {
        while self.device.is_releasing() {
            self.step(&mut Vec::new());
        }
        Powered::check(&self.device);
    }

    fn holds(&mut self, blocks: Range<u64>, stamp: u64) {
        for block in blocks {
            assert_eq!(self.read(block), stamp + block, "block {block}");
        }
    }
}

#[test]
fn a_journal_is_found_by_its_superblock_and_let_go_when_it_moves() {
    let mut disk = Disk::new();
    disk.write_all(40..60, 1_000);
    assert_eq!(disk.device.stats().separated_blocks, 0, "nobody has said where a journal is");
    disk.make(xfs(40, 20));
    assert_eq!(disk.device.journal().unwrap().bytes(), 20 * 4096);
    disk.write_all(36..60, 2_000);
    assert_eq!(disk.device.stats().separated_blocks, 20, "and 4 are not its");
    // It grows where it is: nothing moves.
    disk.make(xfs(40, 40));
    disk.write_all(60..80, 3_000);
    assert_eq!(disk.device.stats().separated_blocks, 40);
    assert!(!disk.device.is_releasing());
    // A file system is made anew, with its log elsewhere.
    disk.make(xfs(5 * CHUNK, 20));
    assert!(disk.device.is_releasing());
    disk.write_all(44..46, 4_000);
    disk.let_go();
    let stats = disk.device.stats();
    assert_eq!(stats.released_blocks, 40, "the two were moved before they were written: {stats:?}");
    disk.write_all(5 * CHUNK..5 * CHUNK + 20, 5_000);
    assert_eq!(disk.device.stats().separated_blocks, 60);
    disk.holds(36..44, 2_000);
    disk.holds(44..46, 4_000);
    disk.holds(46..60, 2_000);
    disk.holds(60..80, 3_000);
    // The device is wiped.
    disk.make(vec![0; 4096]);
    assert_eq!(disk.device.journal(), Some(&Journal::Nowhere(Why::NoFileSystem)));
    disk.let_go();
    disk.holds(5 * CHUNK..5 * CHUNK + 20, 5_000);
}

/// If a zone that a journal has left were lost, there would soon be none: the drive has ten.
#[test]
fn zones_that_journals_have_left_are_used_again() {
    let mut disk = Disk::new();
    for round in 0..30 {
        let first = CHUNK * (1 + round % 3);
        disk.make(xfs(first, 20));
        disk.let_go();
        disk.write_all(first..first + 20, 1_000 * round);
        disk.flush();
    }
    assert_eq!(disk.device.stats().separated_blocks, 30 * 20);
    for (round, first) in [(27, CHUNK), (28, 2 * CHUNK), (29, 3 * CHUNK)] {
        disk.holds(first..first + 20, 1_000 * round);
    }
}

#[test]
fn superblocks_that_lie_end_separation_and_lose_nothing() {
    let capacity = Disk::new().device.capacity_sectors() / u64::from(BLOCK);
    let lies = [
        ("beyond the device", xfs(capacity - 4, 20)),
        ("of an absurd size", xfs(40, 1 << 21)),
        ("of no size", xfs(40, 0)),
        ("in no allocation group", xfs(1 << 40, 20)),
    ];
    for (what, lie) in lies {
        let mut disk = Disk::new();
        disk.make(xfs(40, 20));
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
    disk.make(xfs(CHUNK, 4 * CHUNK as u32));
    for round in 0..3 {
        disk.write_all(CHUNK..5 * CHUNK, 1_000 * round);
    }
    assert_eq!(disk.device.stats().separated_blocks, 3 * 2 * CHUNK, "two zones");
    disk.holds(CHUNK..5 * CHUNK, 2_000);
    Powered::check(&disk.device);
}

/// The power fails at any moment after a journal has moved.
#[test]
fn power_cuts_while_a_journal_is_let_go_lose_nothing() {
    let mut moments_within = 0;
    for events in 0..120 {
        let mut disk = Disk::new();
        disk.make(xfs(40, 30));
        disk.write_all(30..70, 1_000);
        disk.flush();
        disk.make(xfs(5 * CHUNK, 20));
        for _ in 0..events {
            // At rest, the power fails all the same.
            let Some(time) = disk.device.next_event() else { break };
            disk.device.advance(time, &mut Vec::new());
        }
        moments_within += u32::from(disk.device.is_releasing());
        let now = Powered::now(&disk.device);
        disk.device.cut_power(now);
        assert_eq!(disk.device.journal(), None, "nothing is known but what is read");
        disk.device.restore_power(now);
        disk.holds(30..70, 1_000);
        disk.look();
        disk.let_go();
        disk.holds(30..70, 1_000);
        disk.flush();
        disk.write_all(5 * CHUNK..5 * CHUNK + 20, 5_000);
        disk.holds(30..70, 1_000);
    }
    assert!((2..120).contains(&moments_within), "{moments_within}");
}

#[test]
fn without_a_superblock_to_look_for_nothing_is_looked_for() {
    let config = ZonedBlockConfig { reserved_zones: 2, ..ZonedBlockConfig::default() };
    let mut disk = Disk::on(Device::format(&config, pair(), 7).unwrap());
    disk.write(0, 1);
    assert!(!disk.device.needs_superblocks() && !disk.device.take_superblock_changed());
}

proptest! {
    /// The fuzz target's inputs: metadata in use, changed anywhere.
    #[test]
    fn any_metadata_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = fuzz::seed();
        fuzz::tables(&bytes).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let _ = fuzz::tables(&bytes);
    }

    /// The same of superblocks.
    #[test]
    fn any_superblock_ends_the_search(
        data in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        superblock::fuzz::search(&data);
        for mut seed in superblock::fuzz::seeds() {
            for &(at, byte) in &changes {
                let at = at.index(seed.len());
                seed[at] = byte;
            }
            superblock::fuzz::search(&seed);
        }
    }
}

/// Sends a command to the conventional drive for a block of its first zone, where the tables are; yields what was read.
fn to_tables(
    pair: &mut Pair<Conventional, Zoned>,
    block: u64,
    command: impl Fn(Lba) -> Command<Stored<Stamp>>,
) -> Vec<Stored<Stamp>> {
    let now = pair.conventional.now();
    pair.conventional.submit(now, command(Lba(block * u64::from(BLOCK))));
    let mut done = Vec::new();
    while let Some(time) = pair.conventional.next_event() {
        pair.conventional.advance(time, &mut done);
    }
    done.pop().unwrap().data().cloned().unwrap_or_default()
}

/// Lets the device come to rest, and takes it apart.
fn apart(mut disk: Disk) -> Pair<Conventional, Zoned> {
    while let Some(time) = disk.device.next_event() {
        disk.device.advance(time, &mut Vec::new());
    }
    let (conventional, zoned) = disk.device.into_members();
    let shape = *zoned.zone_shape();
    Pair { conventional, zoned, shape }
}

#[test]
fn a_stale_set_is_never_taken_for_the_newer_one() {
    let config = ZonedBlockConfig { reserved_zones: 2, ..ZonedBlockConfig::default() };
    let put = |pair: &mut Pair<_, _>, block: u64, unit: &Stored<Stamp>| {
        let data = || StoredData::Units([unit.clone()].into());
        to_tables(pair, block, |lba| Command::write(lba, BLOCK, data()));
    };
    // A superblock and a block of tables each.
    for (stale, newer) in [(0..2, 2..4), (2..4, 0..2)] {
        let mut disk = Disk::on(Device::format(&config, pair(), 7).unwrap());
        disk.write(9, 1);
        disk.flush();
        let mut members = apart(disk);
        let mut read = |block| to_tables(&mut members, block, |lba| Command::read(lba, BLOCK));
        let old: Vec<_> = stale.clone().map(|block| read(block).remove(0)).collect();
        let mut disk = Disk::on(Device::open(&config, members).unwrap());
        disk.write(9, 2);
        disk.write(300, 3);
        disk.flush();
        let mut members = apart(disk);
        for (block, unit) in stale.clone().zip(&old) {
            put(&mut members, block, unit);
        }
        let mut disk = Disk::on(Device::open(&config, members).unwrap());
        assert_eq!((disk.read(9), disk.read(300)), (2, 3));
        // The newer one's tables are damaged and its superblock is not: an error, and no step back.
        let mut members = apart(disk);
        for (block, unit) in stale.zip(&old) {
            put(&mut members, block, unit);
        }
        put(&mut members, newer.start + 1, &Stored::Meta(vec![0x5a; 4096].into()));
        let error = Device::open(&config, members).unwrap_err();
        assert!(error.problem.contains("the tables is damaged"), "{error}");
    }
}

/// The chunk that `policy` moves first: chunk 0 was used longest ago, and most is written to it.
fn first_moved(policy: &str) -> usize {
    let victim = ReclaimConfig::by_name(policy).unwrap();
    let config = ZonedBlockConfig { reserved_zones: 2, victim, ..ZonedBlockConfig::default() };
    let mut disk = Disk::on(Device::format(&config, pair(), 7).unwrap());
    for round in 0..60 {
        disk.write(round % 3, 1);
    }
    for chunk in 1..=8 {
        disk.write(chunk * CHUNK, 1);
    }
    while disk.device.stats().reclaimed == 0 {
        disk.step(&mut Vec::new());
    }
    disk.device.chunks().position(|it| it.place == ChunkPlace::Sequential).unwrap()
}

#[test]
fn hot_chunks_stay_in_random_zones() {
    assert_eq!(first_moved("lru"), 0);
    assert_eq!(first_moved("coldest"), 1);
}
