//! Zombie hints, one by one: what they mark, what they count, and what ends them.

use std::num::NonZeroU8;

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Config, Hint, HintStats, Lba, Ssd, Stamp, Status};
use leyden_sim::{Bytes, Span};

const UNITS: u64 = 256;

fn drive() -> Ssd<Stamp> {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 32;
    config.nand.pages_per_block = 16;
    config.nand.page_size = Bytes::new(4096);
    config.ftl.capacity = Some(Bytes::new(UNITS * 4096));
    config.buffer.region = Region::None;
    config.power = Some(leyden_power::Config::default());
    Ssd::new(&config, 1).expect("a good configuration")
}

/// Lets everything end; the statuses in order.
fn run(ssd: &mut Ssd<Stamp>) -> Vec<Status> {
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    ssd.check();
    done.iter().map(|completion| completion.status).collect()
}

fn hint(first: u32, units: u8) -> Hint {
    Hint::new(first, NonZeroU8::new(units).expect("some units"))
}

fn write(ssd: &mut Ssd<Stamp>, unit: u64, hint: Option<Hint>) {
    ssd.submit(ssd.now(), Command::write(Lba(unit * 8), 8, 1 + unit).hint(hint));
    run(ssd);
}

fn flush(ssd: &mut Ssd<Stamp>) {
    ssd.submit(ssd.now(), Command::flush());
    run(ssd);
}

fn prepare(ssd: &mut Ssd<Stamp>, ranges: Vec<Hint>) -> Status {
    ssd.submit(ssd.now(), Command::write_prepare(ranges));
    run(ssd)[0]
}

/// A drive whose units 0 to 9 are on flash.
fn written() -> Ssd<Stamp> {
    let mut ssd = drive();
    (0..10).for_each(|unit| write(&mut ssd, unit, None));
    flush(&mut ssd);
    ssd
}

#[test]
fn what_is_named_is_a_zombie_until_it_is_overwritten_or_trimmed() {
    let mut ssd = written();
    assert_eq!(prepare(&mut ssd, vec![hint(2, 4), hint(4, 4)]), Status::Success);
    assert_eq!(ssd.zombie_units(), 6);
    write(&mut ssd, 3, None);
    flush(&mut ssd);
    assert_eq!(ssd.zombie_units(), 5);
    ssd.submit(ssd.now(), Command::trim(Lba(4 * 8), 2 * 8));
    run(&mut ssd);
    assert_eq!(ssd.zombie_units(), 3);
    let HintStats { commands, ranges, units, repeated_units, .. } = ssd.stats().ssd.hints;
    assert_eq!((commands, ranges, units, repeated_units), (1, 2, 6, 2));
}

#[test]
fn hints_of_nothing_are_counted_and_do_no_harm() {
    let mut ssd = written();
    write(&mut ssd, 0, Some(hint(100, 3))); // never written
    write(&mut ssd, 0, Some(hint(u32::MAX, 255))); // beyond 16 TiB
    write(&mut ssd, 0, Some(hint(UNITS as u32 - 1, 2))); // ends beyond the drive: ignored whole
    let HintStats { piggybacked, units, empty_units, beyond_end, .. } = ssd.stats().ssd.hints;
    assert_eq!((piggybacked, units, empty_units, beyond_end), (3, 0, 3, 2));
    assert_eq!(ssd.zombie_units(), 0);
}

#[test]
fn commands_that_name_what_is_not_the_drives_are_refused_whole() {
    let mut ssd = written();
    assert_eq!(prepare(&mut ssd, vec![hint(0, 1), hint(UNITS as u32, 1)]), Status::LbaOutOfRange);
    assert_eq!(prepare(&mut ssd, Vec::new()), Status::InvalidField);
    assert_eq!(prepare(&mut ssd, vec![hint(0, 1); 257]), Status::InvalidField);
    assert_eq!(ssd.zombie_units(), 0);
    assert_eq!(prepare(&mut ssd, vec![hint(0, 1); 256]), Status::Success);
    assert_eq!(ssd.zombie_units(), 1);
}

/// A hint that comes while an older write waits in the buffer speaks of the write after that one.
#[test]
fn what_a_buffered_write_leaves_on_flash_is_a_zombie_if_it_was_named_meanwhile() {
    let mut ssd = written();
    prepare(&mut ssd, vec![hint(5, 1)]);
    write(&mut ssd, 5, None); // the write that was announced, in the buffer
    assert_eq!(ssd.zombie_units(), 1, "the old version is doomed all the same");
    prepare(&mut ssd, vec![hint(5, 1)]); // and the next one
    flush(&mut ssd);
    assert_eq!(ssd.zombie_units(), 1, "the new version");
    write(&mut ssd, 5, None);
    flush(&mut ssd);
    assert_eq!(ssd.zombie_units(), 0);
}

#[test]
fn a_power_cut_makes_zombies_live_again() {
    let mut ssd = written();
    prepare(&mut ssd, vec![hint(0, 10)]);
    assert_eq!(ssd.zombie_units(), 10);
    let now = ssd.now() + Span::from_ms(1);
    ssd.cut_power(now);
    ssd.restore_power(now + Span::from_ms(1));
    run(&mut ssd);
    assert_eq!(ssd.zombie_units(), 0);
    ssd.submit(ssd.now(), Command::read(Lba(0), 80));
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    let stamps: Vec<u64> = done[0].data().unwrap().iter().map(|stamp| stamp.0).collect();
    assert_eq!(stamps, (1..=10).collect::<Vec<u64>>());
}
