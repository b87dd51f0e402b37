//! The device on two drives of ours, and its tables against a slow twin.

use std::collections::BTreeMap;

use leyden_device::{Config, Lba, Ssd, Stamp, ZnsSsd};
use leyden_sim::{Bytes, Counted as _, Ratio, Rng, Span};
use proptest::prelude::*;

use super::layout::ZoneNo;
use super::map::Entry as ChunkZones;
use super::metadata::{Damage, decode_blocks, digest, encode_block};
use super::zones::RandomZones;
use super::*;

type Conventional = Ssd<Stored<Stamp>>;
type ZonedDrive = ZnsSsd<Stored<Stamp>>;
type Device = ZonedBlock<Stamp, Conventional, ZonedDrive>;

/// Sectors of a block.
const BLOCK: u64 = 8;

/// 12 random zones and some 40 sequential ones, of 32 blocks each.
fn pair() -> Pair<Conventional, ZonedDrive> {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 2;
    config.nand.pages_per_block = 8;
    config.nand.page_size = Bytes::new(16 << 10);
    config.nand.blocks_per_plane = 64;
    config.buffer.size = Bytes::new(1 << 20);
    config.power.get_or_insert_default();
    let mut zoned = config.clone();
    config.ftl.capacity = Some(Bytes::new(12 * 32 * 4096));
    zoned.nand.blocks_per_plane = 40;
    zoned.zoned.get_or_insert_default().zone_size = Bytes::new(32 * 4096);
    zoned.zoned.get_or_insert_default().spare = Ratio::from_percent(20);
    zoned.zoned.get_or_insert_default().max_open = 4;
    zoned.zoned.get_or_insert_default().max_active = 4;
    let conventional = Conventional::new(&config, 1).unwrap();
    let zoned = ZonedDrive::new(&zoned, 2).unwrap();
    let shape = *zoned.zone_shape();
    Pair { conventional, zoned, shape }
}

fn config() -> ZonedBlockConfig {
    ZonedBlockConfig { reserved_zones: 2, ..ZonedBlockConfig::default() }
}

/// Lets the device come to rest, and takes it apart.
fn again(mut device: Device) -> Pair<Conventional, ZonedDrive> {
    while let Some(time) = device.next_event() {
        device.advance(time, &mut Vec::new());
    }
    let (conventional, zoned) = device.into_members();
    let shape = *zoned.zone_shape();
    Pair { conventional, zoned, shape }
}

/// Ends `command` and everything before it.
fn end(device: &mut Device, command: Command<Stamp>) -> Completion<Stamp> {
    let id = device.submit(Powered::now(device), command);
    let mut done = Vec::new();
    loop {
        let time = device.next_event().expect("the command ends");
        device.advance(time.max(Powered::now(device)), &mut done);
        if let Some(at) = done.iter().position(|end| end.id == id) {
            return done.swap_remove(at);
        }
    }
}

fn write(device: &mut Device, block: u64, stamp: u64) {
    let done = end(device, Command::write(Lba(block * BLOCK), BLOCK as u32, stamp));
    assert_eq!(done.status, Status::Success, "block {block}");
}

fn read(device: &mut Device, block: u64) -> u64 {
    let done = end(device, Command::read(Lba(block * BLOCK), BLOCK as u32));
    assert_eq!(done.status, Status::Success, "block {block}");
    done.data().unwrap()[0].0
}

fn flush(device: &mut Device) {
    assert_eq!(end(device, Command::flush()).status, Status::Success);
}

/// Writes all of it, and so through every kind of zone.
fn fill(device: &mut Device) -> u64 {
    let blocks = device.capacity_sectors() / BLOCK;
    for block in 0..blocks {
        write(device, block, 1 + block);
    }
    blocks
}

#[test]
fn written_data_is_read_after_a_move() {
    let mut device = Device::format(&config(), pair(), 7).unwrap();
    let blocks = fill(&mut device);
    for block in (0..blocks).step_by(5) {
        write(&mut device, block, 10_000 + block);
    }
    device.check();
    let stats = device.stats();
    assert!(stats.reclaimed > 8 && stats.copied_data_blocks > 200, "{stats:?}");
    for block in 0..blocks {
        let expected = if block % 5 == 0 { 10_000 + block } else { 1 + block };
        assert_eq!(read(&mut device, block), expected, "block {block}");
    }
    let trim = Command::trim(Lba(0), (blocks * BLOCK) as u32);
    assert_eq!(end(&mut device, trim).status, Status::Success);
    assert!((0..blocks).all(|block| read(&mut device, block) == 0));
    device.check();
}

#[test]
fn parts_of_blocks_are_put_together() {
    let mut device = Device::format(&config(), pair(), 7).unwrap();
    write(&mut device, 3, 5);
    let part = Command::write(Lba(3 * BLOCK + 2), 3, 6);
    assert_eq!(end(&mut device, part).status, Status::Success);
    assert_eq!(read(&mut device, 3), 6);
    let zeroes = Command::write_zeroes(Lba(2 * BLOCK), 2 * BLOCK as u32, 7);
    assert_eq!(end(&mut device, zeroes).status, Status::Success);
    assert_eq!(read(&mut device, 3), 0);
}

#[test]
fn a_device_is_opened_again() {
    let mut device = Device::format(&config(), pair(), 7).unwrap();
    let blocks = fill(&mut device);
    flush(&mut device);
    let mut device = Device::open(&config(), again(device)).unwrap();
    assert!((0..blocks).all(|block| read(&mut device, block) == 1 + block));
    // And goes on where it was.
    write(&mut device, 3, 77);
    flush(&mut device);
    let now = Powered::now(&device);
    device.cut_power(now);
    assert_eq!(end(&mut device, Command::flush()).status, Status::NotReady);
    device.restore_power(now);
    assert_eq!(read(&mut device, 3), 77);
}

#[test]
fn members_that_do_not_belong_together_are_refused() {
    let device = Device::format(&config(), pair(), 7).unwrap();
    let other = Device::format(&config(), pair(), 8).unwrap();
    let (mut ours, theirs) = (again(device), again(other));
    ours.zoned = theirs.zoned;
    let error = Device::open(&config(), ours).unwrap_err();
    assert!(error.problem.contains("belongs to another device"), "{error}");
    let error = Device::open(&config(), pair()).unwrap_err();
    assert!(error.problem.contains("no metadata set can be read"), "{error}");
}

/// Overwrites the first blocks of these metadata sets.
fn damage(pair: &mut Pair<Conventional, ZonedDrive>, sets: &[usize], block: u32) {
    let layout = Layout::new(&config(), 4096, pair.conventional.capacity_sectors(), &pair.shape);
    let layout = layout.unwrap();
    for &set in sets {
        let place = layout.meta_place(set, block);
        let lba = layout.lba(place.zone, place.at);
        let junk = Stored::Meta(vec![0x5a; 4096].into());
        let now = pair.conventional.now();
        let data = StoredData::Units([junk].into());
        pair.conventional.submit(now, Command::write(lba, BLOCK as u32, data));
        while let Some(time) = pair.conventional.next_event() {
            pair.conventional.advance(time, &mut Vec::new());
        }
    }
}

#[test]
fn one_damaged_set_is_repaired_and_two_are_an_error() {
    for block in [0, 1] {
        for set in 0..2 {
            let mut device = Device::format(&config(), pair(), 7).unwrap();
            write(&mut device, 9, 9);
            flush(&mut device);
            let mut members = again(device);
            damage(&mut members, &[set], block);
            let mut device = Device::open(&config(), members).unwrap();
            assert_eq!(read(&mut device, 9), 9);
            flush(&mut device);
            // The other one may be damaged now.
            let mut members = again(device);
            damage(&mut members, &[1 - set], block);
            assert_eq!(read(&mut Device::open(&config(), members).unwrap(), 9), 9);
        }
        let mut members = again(Device::format(&config(), pair(), 7).unwrap());
        damage(&mut members, &[0, 1], block);
        let error = Device::open(&config(), members).unwrap_err();
        let expected =
            if block == 0 { "no metadata set can be read" } else { "the tables is damaged" };
        assert!(error.problem.contains(expected), "{error}");
    }
}

#[test]
fn a_separated_journal_is_never_copied() {
    let copied = |separate: bool| {
        let mut config = config();
        config.journal.separate = separate;
        config.journal.max_zones = 1;
        let mut device = Device::format(&config, pair(), 7).unwrap();
        let blocks = device.capacity_sectors() / BLOCK;
        for round in 0..3 {
            // The last 16 blocks of the first chunk are the journal, and share it with data.
            for block in 16..32 {
                let command = Command::write(Lba(block * BLOCK), BLOCK as u32, 1_000 + round);
                let command = command.kind(leyden_device::DataKind::Log);
                assert_eq!(end(&mut device, command).status, Status::Success);
            }
            for block in (0..blocks).filter(|block| !(16..32).contains(block)) {
                write(&mut device, block, 1 + block + round);
            }
        }
        assert_eq!(read(&mut device, 31), 1_002);
        assert_eq!(read(&mut device, 15), 18);
        device.check();
        device.stats()
    };
    let (mixed, apart) = (copied(false), copied(true));
    assert!(mixed.copied_journal_blocks >= 32, "{mixed:?}");
    assert_eq!((apart.copied_journal_blocks, mixed.separated_blocks), (0, 0));
    assert_eq!(apart.separated_blocks, apart.host_journal_blocks);
    assert!(apart.copied_data_blocks > 50, "{apart:?}");
}

#[test]
fn writes_on_their_way_to_a_journal_zone_are_not_counted_there() {
    let mut config = config();
    (config.journal.separate, config.journal.max_zones) = (true, 1);
    let mut device = Device::format(&config, pair(), 7).unwrap();
    let log = |block: u64| {
        let command = Command::write(Lba(block * BLOCK), BLOCK as u32, 5);
        command.kind(leyden_device::DataKind::Log)
    };
    end(&mut device, log(16));
    let now = Powered::now(&device);
    device.submit(now, log(17));
    device.cut_power(now);
    device.restore_power(now);
    read(&mut device, 16);
    let stats = device.stats();
    assert_eq!((stats.separated_blocks, stats.host_journal_blocks), (1, 1));
}

#[test]
fn impossible_devices_are_refused_with_the_key() {
    let refused = |change: &dyn Fn(&mut ZonedBlockConfig)| {
        let mut config = config();
        change(&mut config);
        Device::format(&config, pair(), 7).unwrap_err().key
    };
    assert_eq!(refused(&|it| it.reserved_zones = 1), "reserved_zones");
    assert_eq!(refused(&|it| it.reserved_zones = 500), "reserved_zones");
    assert_eq!(refused(&|it| it.low_free = Ratio::from_percent(60)), "low_free");
    assert_eq!(refused(&|it| it.writers_first = Ratio::from_ppm(1_000_001)), "writers_first");
    assert_eq!(refused(&|it| it.reclaims = 0), "reclaims");
    assert_eq!(refused(&|it| it.copy_size = Bytes::new(512)), "copy_size");
    assert_eq!(refused(&|it| it.journal.size = Bytes::new(4096)), "journal.size");
    assert_eq!(refused(&|it| it.journal.recognise = Recognise::Range), "journal.size");
    // A journal larger than the random zones.
    let too_large = |it: &mut ZonedBlockConfig| {
        (it.journal.separate, it.journal.max_zones) = (true, 12);
    };
    assert_eq!(refused(&too_large), "conventional");
}

/// Writes these blocks of the first chunk at once, lets reclaim move it, and wants a block as soon as one is copied.
fn wanted_amid_a_move(give_up: GiveUp, before: u32, runs: &[(u64, u32)]) -> ZonedBlockStats {
    let all = Ratio::ONE;
    // Reclaim begins whenever a chunk is quiet, and copies block by block.
    let copy_size = Bytes::new(4096);
    let config = ZonedBlockConfig { low_free: all, high_free: all, copy_size, give_up, ..config() };
    let mut device = Device::format(&config, pair(), 7).unwrap();
    let mut done = Vec::new();
    let mut run_until = |device: &mut Device, is_there: &dyn Fn(&ZonedBlockStats) -> bool| {
        while !is_there(&device.stats()) {
            let time = device.next_event().expect("it is moved");
            device.advance(time, &mut done);
        }
    };
    if before > 0 {
        device.submit(Powered::now(&device), Command::write(Lba(0), before * BLOCK as u32, 1));
        run_until(&mut device, &|stats| stats.reclaimed == 1);
    }
    for &(block, blocks) in runs {
        let command = Command::write(Lba(block * BLOCK), blocks * BLOCK as u32, 2);
        device.submit(Powered::now(&device), command);
    }
    run_until(&mut device, &|stats| stats.copied_data_blocks > u64::from(before));
    let moved = device.stats();
    assert_eq!(read(&mut device, runs[0].0), 2);
    device.check();
    let stats = device.stats().since(&moved);
    ZonedBlockStats { copied_data_blocks: stats.copied_data_blocks + 1, ..stats }
}

#[test]
fn a_run_that_is_moved_is_moved_to_its_end() {
    let whole = wanted_amid_a_move(GiveUp::AfterRun, 0, &[(0, 32)]);
    assert_eq!((whole.aborted, whole.reclaimed, whole.copied_data_blocks), (0, 1, 32));
    let at_once = wanted_amid_a_move(GiveUp::AfterCopy, 0, &[(0, 32)]);
    assert_eq!((at_once.aborted, at_once.reclaimed), (1, 0));
    assert!(at_once.copied_data_blocks < 3, "{at_once:?}");
}

#[test]
fn a_chunk_of_several_runs_is_given_up_between_them() {
    let runs = [(0, 6), (20, 8)];
    let several = wanted_amid_a_move(GiveUp::AfterRun, 0, &runs);
    assert_eq!((several.aborted, several.reclaimed), (1, 0));
    assert_eq!((several.copied_data_blocks, several.filled_blocks), (6, 0));
}

#[test]
fn a_buffer_is_appended_though_the_chunk_is_wanted() {
    let runs = [(18, 2), (24, 4)];
    let appended = wanted_amid_a_move(GiveUp::AfterRun, 16, &runs);
    assert_eq!((appended.aborted, appended.reclaimed, appended.copied_data_blocks), (0, 1, 6));
    let at_once = wanted_amid_a_move(GiveUp::AfterCopy, 16, &runs);
    assert_eq!((at_once.aborted, at_once.reclaimed), (1, 0));
}

/// Both hear so: the second has waited for the first, and is stuck when that has given up.
#[test]
fn writers_of_the_same_blocks_that_can_get_no_zone_end_one_after_the_other() {
    // Nothing is due by itself.
    let config = ZonedBlockConfig { idle: Span::ZERO, commit_interval: Span::ZERO, ..config() };
    let mut device = Device::format(&config, pair(), 7).unwrap();
    for _ in 0..16 {
        device.reclaim.failed();
    }
    let mut chunk = 0;
    while device.zones.random().free > 0 {
        write(&mut device, chunk * 32, 1);
        chunk += 1;
    }
    flush(&mut device);
    device.run_until(|_| false);
    // While something is under way, a zone may become free.
    let first = device.submit(Powered::now(&device), Command::read(Lba(0), BLOCK as u32));
    let stuck = |device: &mut Device| {
        let command = Command::write(Lba(chunk * 32 * BLOCK), BLOCK as u32, 2);
        device.submit(Powered::now(device), command)
    };
    let writes = [stuck(&mut device), stuck(&mut device)];
    let mut done = Vec::new();
    while let Some(time) = device.next_event().filter(|_| !device.requests.is_empty()) {
        device.advance(time, &mut done);
    }
    let status = |id| done.iter().find(|end| end.id == id).map(|end| end.status);
    assert_eq!(status(first), Some(Status::Success));
    assert_eq!(writes.map(status), [Some(Status::WriteFault); 2]);
}

/// Fills chunks from the first on, each whole, until few random zones are free, and one more; lets reclaim go on until it stops.
/// With `is_wanted` a writer waits for the second chunk that is moved. How many were moved.
fn moved_when_few_are_free(writers_first: Ratio, is_wanted: bool) -> u64 {
    let config = ZonedBlockConfig { idle: Span::ZERO, writers_first, ..config() };
    let mut device = Device::format(&config, pair(), 7).unwrap();
    let rest = |device: &mut Device| {
        device.run_until(|device| {
            assert!(device.stats().reclaimed < 10, "reclaim stops");
            device.reclaim.is_idle() && device.committer.is_idle()
        });
    };
    let is_few = |device: &Device| {
        let RandomZones { free, all } = device.zones.random();
        free * 100 <= 30 * all
    };
    let whole = |chunk: u64| Command::write(Lba(chunk * 32 * BLOCK), 32 * BLOCK as u32, 1);
    let mut chunk = 0;
    while !is_few(&device) {
        end(&mut device, whole(chunk));
        chunk += 1;
        rest(&mut device);
        assert_eq!(device.stats().reclaimed, 0, "{:?}", device.zones.random());
    }
    device.submit(Powered::now(&device), whole(chunk));
    if is_wanted {
        device.run_until(|device| device.stats().copied_data_blocks > 32);
        device.submit(Powered::now(&device), Command::write(Lba(33 * BLOCK), BLOCK as u32, 2));
    }
    device.run_until(|device| device.requests.is_empty());
    rest(&mut device);
    device.check();
    device.stats().reclaimed
}

#[test]
fn reclaim_is_asked_before_a_zone_is_taken() {
    // The last chunk's writer asks, and so does the end of each move.
    assert_eq!(moved_when_few_are_free(Ratio::ZERO, false), 2);
    assert_eq!(moved_when_few_are_free(Ratio::ONE, false), 2);
}

#[test]
fn reclaim_goes_on_where_writers_who_have_waited_take_zones_first() {
    assert_eq!(moved_when_few_are_free(Ratio::ZERO, true), 2);
    assert_eq!(moved_when_few_are_free(Ratio::ONE, true), 3);
}

/// A device that is idle after 10 ms, with a chunk written.
fn idle_after_10_ms(idle_of: IdleOf) -> Device {
    let config = ZonedBlockConfig { idle: Span::from_ms(10), idle_of, ..config() };
    let mut device = Device::format(&config, pair(), 7).unwrap();
    write(&mut device, 0, 1);
    device
}

/// Lets so many ms pass, with a read of `block` in each; returns how many chunks have been moved.
fn pass(device: &mut Device, ms: u64, block: Option<u64>) -> u64 {
    for _ in 0..ms {
        let now = Powered::now(device) + Span::from_ms(1);
        device.advance(now, &mut Vec::new());
        if let Some(block) = block {
            read(device, block);
        }
    }
    device.check();
    device.stats().reclaimed
}

#[test]
fn only_requests_for_chunks_on_the_zoned_member_keep_it_from_being_idle() {
    let mut device = idle_after_10_ms(IdleOf::Both);
    assert_eq!(pass(&mut device, 100, Some(0)), 0);
    let mut device = idle_after_10_ms(IdleOf::Zoned);
    assert_eq!(pass(&mut device, 8, Some(0)), 0);
    assert_eq!(pass(&mut device, 12, Some(0)), 1);
    // The chunk is there now, and what is written anew stays where it is while that is used.
    assert_eq!(pass(&mut device, 12, Some(0)), 1);
    write(&mut device, 40, 2);
    assert_eq!(pass(&mut device, 100, Some(0)), 1);
    assert_eq!(read(&mut device, 40), 2);
}

#[test]
fn reclaim_looks_until_it_finds_something_and_then_when_a_zone_is_taken() {
    let mut device = idle_after_10_ms(IdleOf::Both);
    assert_eq!(pass(&mut device, 9, None), 0);
    // Not idle when it looks: it looks again.
    read(&mut device, 0);
    assert_eq!(pass(&mut device, 8, None), 0);
    assert_eq!(pass(&mut device, 30, None), 1);
    // The next chunk's write is a use, and nobody looks again.
    write(&mut device, 40, 2);
    assert_eq!(pass(&mut device, 100, None), 1);
    // Which it is not where only the zoned member counts.
    let mut device = idle_after_10_ms(IdleOf::Zoned);
    assert_eq!(pass(&mut device, 30, None), 1);
    write(&mut device, 40, 2);
    assert_eq!(pass(&mut device, 1, None), 2);
    assert_eq!((read(&mut device, 0), read(&mut device, 40)), (1, 2));
}

/// Random commands, four at once; yields what ended when. `is_restless`: the layer looks for something to do at every instant
/// at which anything happens below it.
fn work(config: &ZonedBlockConfig, is_restless: bool) -> (Vec<(CommandId, Time)>, u64) {
    let mut device = Device::format(config, pair(), 7).unwrap();
    let blocks = device.capacity_sectors() / BLOCK;
    let mut rng = Rng::new(5, "work");
    let (mut done, mut ended, mut in_flight) = (Vec::new(), Vec::new(), 0);
    for number in 0..3_000 {
        let lba = Lba(rng.below(blocks - 8) * BLOCK);
        let sectors = ((1 + rng.below(8)) * BLOCK) as u32;
        let command = match rng.below(16) {
            0 => Command::flush(),
            1 => Command::trim(lba, sectors),
            2 | 3 => Command::read(lba, sectors),
            kind => Command::write(lba, sectors, number).fua(kind == 4),
        };
        device.submit(Powered::now(&device), command);
        in_flight += 1;
        while in_flight >= 4 {
            let mut now = Powered::now(&device);
            if is_restless {
                while let Some(event) = device.next_event()
                    && (done.is_empty() || event <= now)
                {
                    now = now.max(event);
                    device.upkeep.due.quiet = None;
                    device.step(now, now, &mut done);
                }
            } else {
                device.advance_until_completion(now, Time::MAX, &mut done);
            }
            in_flight -= done.len();
            ended.extend(done.drain(..).map(|end: Completion<Stamp>| (end.id, end.time)));
        }
    }
    device.check();
    (ended, device.fingerprint())
}

#[test]
fn a_layer_that_lets_its_members_run_on_had_nothing_to_do() {
    let plain = ZonedBlockConfig { reclaims: 2, ..config() };
    let idle = ZonedBlockConfig {
        idle: Span::from_us(300),
        idle_of: IdleOf::Both,
        commit_interval: Span::from_us(500),
        high_free: Ratio::from_percent(90),
        ..plain.clone()
    };
    let journal = ZonedBlockConfig {
        journal: JournalConfig { separate: true, ..JournalConfig::default() },
        give_up: GiveUp::AfterCopy,
        ..idle.clone()
    };
    for config in [plain, idle, journal] {
        assert!(work(&config, false) == work(&config, true), "{config:?}");
    }
}

#[test]
fn the_members_got_what_the_layer_counts() {
    let got = |device: Device| {
        let (conventional, zoned) = device.into_members();
        conventional.stats().ssd.units_written + zoned.stats().ssd.units_written
    };
    let mut device = Device::format(&config(), pair(), 7).unwrap();
    let blocks = device.capacity_sectors() / BLOCK;
    for step in [3, 5] {
        for block in (0..blocks).step_by(step) {
            write(&mut device, block, 10_000 + block);
        }
    }
    while let Some(time) = device.next_event() {
        device.advance(time, &mut Vec::new());
    }
    let stats = device.stats();
    let copied = stats.copied_journal_blocks + stats.copied_meta_blocks + stats.copied_data_blocks;
    assert!(copied > 200 && stats.filled_blocks > 200, "{stats:?}");
    let sent = stats.host_blocks + copied + stats.filled_blocks + stats.metadata_blocks;
    let label = 1;
    assert_eq!(got(device), label + sent, "{stats:?}");
}

fn layout() -> Layout {
    let mut config = config();
    (config.journal.separate, config.journal.max_zones) = (true, 2);
    let pair = pair();
    Layout::new(&config, 4096, pair.conventional.capacity_sectors(), &pair.shape).unwrap()
}

#[test]
fn superblocks_say_what_is_wrong_with_them() {
    let layout = layout();
    let superblock = Superblock { role: 1, generation: 1 << 40, identity: 99, digest: 7 };
    let bytes = superblock.encode(&layout);
    assert_eq!(Superblock::decode(&layout, &bytes), Ok(superblock));
    assert_eq!(Superblock::decode(&layout, &[]), Err(Damage::Blank));
    assert_eq!(Superblock::decode(&layout, &[0; 4096]), Err(Damage::Blank));
    for at in 0..72 {
        let mut torn = bytes.clone();
        torn[at] ^= 1;
        assert!(Superblock::decode(&layout, &torn).is_err(), "byte {at}");
    }
    let other = Layout { chunks: layout.chunks - 1, ..layout };
    let Err(Damage::Bad(problem)) = Superblock::decode(&other, &bytes) else { panic!() };
    assert!(problem.contains("chunks"), "{problem}");
}

#[test]
fn an_older_block_is_found() {
    let layout = layout();
    let words = vec![5; layout.words_per_block() as usize];
    let blocks: Vec<_> =
        (0..layout.table_blocks()).map(|number| encode_block(&layout, number, &words)).collect();
    let crcs: Vec<u32> = blocks.iter().map(|&(_, crc)| crc).collect();
    let superblock = Superblock { role: 0, generation: 1, identity: 1, digest: digest(&crcs) };
    let all = || blocks.iter().map(|(bytes, _)| &bytes[..]);
    assert_eq!(decode_blocks(&layout, &superblock, all()).unwrap().1, crcs);
    let (older, _) = encode_block(&layout, 0, &words[1..]);
    let one_older = [&older[..]].into_iter().chain(all().skip(1));
    let error = decode_blocks(&layout, &superblock, one_older).unwrap_err();
    assert!(error.contains("older"), "{error}");
}

proptest! {
    /// Where blocks lie, against a map of blocks to what was last said of them.
    #[test]
    fn tables_agree_with_a_slow_twin(
        steps in prop::collection::vec((0_u32..4, 0_u32..32, 1_u32..9, 0_u8..6), 1..120),
    ) {
        let layout = layout();
        let mut map = Map::new(layout);
        let mut zones = Zones::new(layout);
        let mut twin: BTreeMap<(u32, u32), (ZoneNo, u32)> = BTreeMap::new();
        for chunk in 0..4 {
            let data = zones.take_sequential();
            let buffer = zones.take_random(Use::Buffer(chunk));
            map.set_chunk(chunk, ChunkZones { data, buffer });
        }
        map.add_journal_zone(zones.take_random(Use::Journal).unwrap());
        for (chunk, at, blocks, what) in steps {
            let blocks = blocks.min(32 - at);
            let ChunkZones { data, buffer } = map.chunk(chunk);
            let place = |zone: Option<ZoneNo>| zone.map(|zone| Place { zone, at, blocks });
            let place = match what {
                0 | 1 => place(data),
                2 | 3 => place(buffer),
                4 => None,
                _ => {
                    let slot = map.slot(chunk, at).or_else(|| map.add_slot(chunk, at));
                    let Some(slot) = slot else { continue };
                    let place = Place { zone: slot.zone, at: slot.at, blocks: 1 };
                    map.settle(chunk, at, 1, Some(place));
                    twin.insert((chunk, at), (slot.zone, slot.at));
                    continue;
                }
            };
            map.settle(chunk, at, blocks, place);
            for block in at..at + blocks {
                match place {
                    Some(place) => twin.insert((chunk, block), (place.zone, block)),
                    None => twin.remove(&(chunk, block)),
                };
            }
        }
        for chunk in 0..4 {
            for at in 0..32 {
                prop_assert_eq!(map.find(chunk, at), twin.get(&(chunk, at)).copied());
            }
        }
        map.check().unwrap();
        // And what a recovery makes of them.
        let snapshot = map.snapshot();
        let words: Vec<u64> = snapshot.blocks.iter().flat_map(|(_, words)| words.clone()).collect();
        prop_assert!(!map.is_dirty());
        prop_assert!(!map.is_durable(0, 0, 32), "its zones are not on the drive yet");
        map.committed(&snapshot);
        prop_assert!(map.is_durable(0, 0, 32));
        let found = Map::decode(layout, words).unwrap();
        for (&(chunk, at), &place) in &twin {
            prop_assert_eq!(found.find(chunk, at), Some(place));
        }
    }

    /// Any words give tables that keep their invariants, or an error.
    #[test]
    fn any_words_are_tables_or_an_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..12),
    ) {
        let layout = layout();
        let mut map = Map::new(layout);
        let snapshot = map.snapshot();
        let mut words: Vec<u64> =
            snapshot.blocks.iter().flat_map(|(_, words)| words.clone()).collect();
        for (at, word) in changes {
            let at = at.index(words.len());
            words[at] = word;
        }
        if let Ok(map) = Map::decode(layout, words) {
            map.check().unwrap();
            for at in 0..layout.zone_blocks {
                map.find(0, at);
            }
        }
    }
}
