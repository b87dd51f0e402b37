//! Selective protection of a conventional drive's buffer: what asks for it is kept and waits for no flash.

use leyden_buffer::Region;
use leyden_device::{
    BlockDevice, Command, CommandId, Completion, Config, Lba, Op, Ssd, Stamp, Status, provision_of,
};
use leyden_ftl::map::ProtectionConfig;
use leyden_sim::{Bytes, Ratio};

const UNIT: u64 = 4096;
const PROTECTED_UNITS: u64 = 8;
const PLAIN_UNITS: u64 = 8;

/// One die with pages of two units: flash is slow beside the buffer.
fn config() -> Config {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 32;
    config.nand.pages_per_block = 8;
    config.ftl.over_provisioning = Ratio::from_percent(250);
    config.ftl.map.entries_per_page = Some(16);
    config.buffer.region = Region::Selective;
    config.buffer.size = Bytes::new((PROTECTED_UNITS + PLAIN_UNITS) * UNIT);
    config.buffer.protected_size = Bytes::new(PROTECTED_UNITS * UNIT);
    config.power.get_or_insert_default();
    config
}

fn drive() -> Ssd<Stamp> {
    Ssd::new(&config(), 1).unwrap()
}

fn write(unit: u64, stamp: u64) -> Command<Stamp> {
    Command::write(Lba(unit * 8), 8, stamp)
}

fn finish(ssd: &mut Ssd<Stamp>) -> Vec<Completion<Stamp>> {
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    done
}

/// Runs one command alone; yields how long it took.
fn run(ssd: &mut Ssd<Stamp>, command: Command<Stamp>) -> u64 {
    let begun = ssd.now();
    let op = command.op();
    ssd.submit(begun, command);
    let mut done = Vec::new();
    while !done.iter().any(|completion: &Completion<Stamp>| completion.op == op) {
        let next = ssd.next_event().expect("the command ends");
        ssd.advance(next, &mut done);
    }
    assert!(done.iter().all(|completion| completion.status == Status::Success), "{done:?}");
    ssd.now().since(begun).as_ns()
}

fn cut_and_restore(ssd: &mut Ssd<Stamp>) {
    let now = ssd.now();
    assert!(ssd.cut_power(now).lost.is_empty());
    let ready = ssd.restore_power(now).ready_at;
    ssd.advance(ready, &mut Vec::new());
}

fn read(ssd: &mut Ssd<Stamp>, unit: u64) -> u64 {
    ssd.submit(ssd.now(), Command::read(Lba(unit * 8), 8));
    let done = finish(ssd);
    done.iter().find(|done| done.op == Op::Read).unwrap().data().unwrap()[0].0
}

fn program_ns() -> u64 {
    config().nand.program.as_ns()
}

#[test]
fn what_asks_for_protection_is_kept_and_the_rest_is_not() {
    let mut ssd = drive();
    assert!(run(&mut ssd, write(0, 1)) < program_ns());
    assert!(run(&mut ssd, write(1, 2).fua(true)) < program_ns());
    assert!(run(&mut ssd, write(2, 3).plp(true)) < program_ns());
    cut_and_restore(&mut ssd);
    assert_eq!([read(&mut ssd, 0), read(&mut ssd, 1), read(&mut ssd, 2)], [0, 2, 3]);
}

#[test]
fn without_a_protected_region_fua_waits_for_flash_and_the_flag_is_refused() {
    let mut config = config();
    (config.buffer.region, config.buffer.protected_size) = (Region::None, Bytes::new(0));
    let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
    assert!(run(&mut ssd, write(1, 2).fua(true)) >= program_ns());
    ssd.submit(ssd.now(), write(2, 3).plp(true));
    assert_eq!(finish(&mut ssd)[0].status, Status::InvalidField);
}

#[test]
fn a_flush_waits_for_what_is_plain_alone() {
    let mut ssd = drive();
    run(&mut ssd, write(0, 1).plp(true));
    assert!(run(&mut ssd, Command::flush()) < program_ns());
    run(&mut ssd, write(1, 2));
    assert!(run(&mut ssd, Command::flush()) >= program_ns());
    cut_and_restore(&mut ssd);
    assert_eq!([read(&mut ssd, 0), read(&mut ssd, 1)], [1, 2]);
}

/// A protected write of a unit that is buffered unprotected takes its place along, and no FLUSH waits for it.
#[test]
fn a_protected_overwrite_promotes_the_unit() {
    let mut ssd = drive();
    run(&mut ssd, write(0, 1));
    run(&mut ssd, write(0, 2).plp(true));
    assert_eq!(ssd.stats().buffer.promoted_units, 1);
    assert!(run(&mut ssd, Command::flush()) < program_ns());
    // Protected data stays so under an unprotected write: the newer data is kept, which is allowed.
    run(&mut ssd, write(0, 3));
    cut_and_restore(&mut ssd);
    assert_eq!(read(&mut ssd, 0), 3);
}

/// Torture found this: the room that a promotion leaves behind was given to nobody, if no program was under way.
#[test]
fn who_waits_for_plain_room_gets_what_a_promotion_leaves() {
    let mut config = config();
    config.buffer.flush_threshold = Ratio::ONE; // nothing is written out before a pool is full
    config.ftl.map.protection = ProtectionConfig::by_name("none").unwrap();
    let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
    run(&mut ssd, write(50, 1));
    run(&mut ssd, Command::flush());
    let now = ssd.now();
    // The die is busy with a page of the mapping table, and no room comes of that.
    ssd.submit(now, Command::new(Op::Trim, Lba(50 * 8), 8, 0));
    for unit in 0..=PLAIN_UNITS {
        ssd.submit(now, write(unit, unit + 1));
    }
    ssd.submit(now, write(0, 99).plp(true));
    let done = finish(&mut ssd);
    assert_eq!(done.len() as u64, PLAIN_UNITS + 3);
    assert!(done.iter().all(|done| done.status == Status::Success), "{done:?}");
}

/// A drive with larger pools, each of which is to be written out as soon as anything is in it.
fn eager_drive() -> Ssd<Stamp> {
    let mut config = config();
    config.buffer.flush_threshold = Ratio::from_percent(1);
    config.buffer.size = Bytes::new(64 * UNIT);
    config.buffer.protected_size = Bytes::new(32 * UNIT);
    Ssd::new(&config, 1).unwrap()
}

/// Keeps as many of a host's commands outstanding until `watched` has ended; yields how many ended before it.
fn ended_before(
    ssd: &mut Ssd<Stamp>,
    watched: CommandId,
    outstanding: usize,
    mut next: impl FnMut(u64) -> Command<Stamp>,
) -> u64 {
    const TOO_MANY: u64 = 1_000;
    let (mut ended, mut sent, mut done) = (0, 0, Vec::new());
    while ended < TOO_MANY {
        while sent < ended + outstanding as u64 {
            ssd.submit(ssd.now(), next(sent));
            sent += 1;
        }
        let time = ssd.next_event().expect("commands are outstanding");
        ssd.advance(time, &mut done);
        if done.iter().any(|completion| completion.id == watched) {
            return ended;
        }
        assert!(done.iter().all(|completion| completion.status == Status::Success), "{done:?}");
        ended += done.drain(..).count() as u64;
    }
    panic!("{TOO_MANY} commands ended before it");
}

#[test]
fn a_flush_ends_while_protected_writes_keep_coming() {
    let mut ssd = eager_drive();
    for unit in 0..4 {
        ssd.submit(ssd.now(), write(unit, unit + 1));
    }
    let protected = |n: u64| write(16 + n % 64, 100 + n).fua(true);
    for n in 0..64 {
        ssd.submit(ssd.now(), protected(n));
    }
    let flush = ssd.submit(ssd.now(), Command::flush());
    let ended = ended_before(&mut ssd, flush, 64, protected);
    assert!(ended < 200, "{ended}");
}

#[test]
fn a_protected_write_gets_room_while_plain_ones_are_flushed_without_pause() {
    let mut ssd = eager_drive();
    let plain = |n: u64| match n % 8 {
        0 => Command::flush(),
        _ => write(16 + n % 64, 100 + n),
    };
    for n in 0..64 {
        ssd.submit(ssd.now(), plain(n));
    }
    // More than the pool holds: the last one waits until it has room.
    let protected = (0..48).map(|n| write(80 + n, n).fua(true));
    let watched = protected.map(|command| ssd.submit(ssd.now(), command)).last();
    let ended = ended_before(&mut ssd, watched.unwrap(), 64, plain);
    assert!(ended < 200, "{ended}");
}

#[test]
fn the_bank_pays_for_the_protected_part_alone() {
    let needed = |region, protected| {
        let mut config = config();
        config.buffer.region = region;
        config.buffer.protected_size = Bytes::new(protected * UNIT);
        provision_of(&config).unwrap().supply.unwrap().capacitance
    };
    let (none, all) = (needed(Region::None, 0), needed(Region::Full, 0));
    let (some, half) = (needed(Region::Selective, 4), needed(Region::Selective, PROTECTED_UNITS));
    assert!(none < some && some < half && half < all, "{none} {some} {half} {all}");
}

#[test]
fn pools_that_are_too_small_are_refused_by_name() {
    let refused = |size: u64, protected: u64| {
        let mut config = config();
        config.buffer.size = Bytes::new(size * UNIT);
        config.buffer.protected_size = Bytes::new(protected * UNIT);
        Ssd::<Stamp>::new(&config, 1).map(|_| ()).unwrap_err().key
    };
    assert_eq!(refused(16, 0), "buffer.protected_size");
    assert_eq!(refused(16, 3), "buffer.protected_size");
    assert_eq!(refused(16, 16), "buffer.size");
    assert_eq!(refused(16, 13), "buffer.size");
}

/// The die goes idle when a write waits in the plain pool for a flush, and a newer version of it enters the protected one.
#[test]
fn a_flush_ends_when_what_it_waits_for_becomes_protected() {
    for threshold in [1, 50, 100] {
        for before in 1..3 * PROTECTED_UNITS {
            let mut config = config();
            config.buffer.flush_threshold = Ratio::from_percent(threshold);
            let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
            for unit in 0..before {
                ssd.submit(ssd.now(), write(40 + unit, 1).plp(true));
            }
            ssd.submit(ssd.now(), write(0, 2).tag(7));
            let mut done: Vec<Completion<Stamp>> = Vec::new();
            while !done.iter().any(|done| done.tag == 7) {
                let next = ssd.next_event().expect("the write ends");
                ssd.advance(next, &mut done);
            }
            ssd.submit(ssd.now(), Command::flush());
            ssd.submit(ssd.now(), write(0, 3).plp(true));
            let failed = finish(&mut ssd).into_iter().find(|done| done.status != Status::Success);
            assert_eq!(failed.map(|done| done.op), None, "{threshold} %, after {before}");
        }
    }
}
