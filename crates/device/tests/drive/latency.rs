//! Unloaded, every command takes exactly the sum of its parts.

use leyden_buffer::Region;
use leyden_device::{
    BlockDevice, Command, Config, FrontendConfig, Hint, Lba, NoData, Op, Ssd, Status,
};
use leyden_sim::{BytesPerSec, Span, Time};

const COMMAND: u64 = 1_000;
/// 4 KiB at 4.096 GB/s.
const LINK: u64 = 1_000;
const READ: u64 = 60_000;
const PROGRAM: u64 = 700_000;
/// 4 KiB at 819.2 MB/s.
const TRANSFER: u64 = 5_000;

fn config(region: Region) -> Config {
    let frontend = FrontendConfig {
        command: Span::from_ns(COMMAND),
        link_rate: BytesPerSec::new(4_096_000_000),
        ..FrontendConfig::default()
    };
    let mut config = Config { frontend, ..Config::default() };
    config.nand.channel_rate = BytesPerSec::new(819_200_000);
    config.buffer.region = region;
    config
}

/// Submits `command` to an idle drive and returns how long it took, in nanoseconds.
fn latency(ssd: &mut Ssd<NoData>, command: Command<NoData>) -> u64 {
    let mut done = Vec::new();
    ssd.submit(ssd.now(), command);
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    assert_eq!((done.len(), done[0].status), (1, Status::Success));
    (done[0].time - done[0].submitted).as_ns()
}

fn command(op: Op, unit: u64, units: u32) -> Command<NoData> {
    Command::new(op, Lba(unit * 8), units * 8, ())
}

#[test]
fn protected_writes_end_in_the_buffer() {
    let mut ssd = Ssd::new(&config(Region::Full), 1).unwrap();
    assert_eq!(latency(&mut ssd, command(Op::Write, 0, 1)), COMMAND + LINK);
    assert_eq!(latency(&mut ssd, command(Op::Write, 0, 16)), COMMAND + 16 * LINK);
    let fua = command(Op::Write, 5, 1).fua(true);
    assert_eq!(latency(&mut ssd, fua), COMMAND + LINK);
    assert_eq!(latency(&mut ssd, command(Op::Flush, 0, 0)), COMMAND);
    assert_eq!(latency(&mut ssd, command(Op::Trim, 0, 16)), COMMAND);
}

#[test]
fn unprotected_writes_are_durable_when_programmed() {
    let mut ssd = Ssd::new(&config(Region::None), 1).unwrap();
    // A page is 8 KiB: both halves are transferred, one is padding.
    let program = 2 * TRANSFER + PROGRAM;
    assert_eq!(latency(&mut ssd, command(Op::Write, 0, 1)), COMMAND + LINK);
    assert_eq!(latency(&mut ssd, command(Op::Flush, 0, 0)), COMMAND + program);
    assert_eq!(latency(&mut ssd, command(Op::Flush, 0, 0)), COMMAND, "nothing left to flush");
    let fua = command(Op::Write, 9, 1).fua(true);
    assert_eq!(latency(&mut ssd, fua), COMMAND + LINK + program);
    assert_eq!(ssd.stats().ftl.padded_units, 2);
}

#[test]
fn reads_take_array_channel_and_link() {
    let mut ssd = Ssd::new(&config(Region::None), 1).unwrap();
    latency(&mut ssd, command(Op::Write, 0, 4));
    assert_eq!(latency(&mut ssd, command(Op::Read, 0, 1)), COMMAND + LINK, "from the buffer");
    latency(&mut ssd, command(Op::Flush, 0, 0));
    assert_eq!(latency(&mut ssd, command(Op::Read, 0, 1)), COMMAND + READ + TRANSFER + LINK);
    // Both units of a page in one operation; the second page is read on another die, and its
    // channel is another one too.
    let whole_page = COMMAND + READ + 2 * TRANSFER;
    assert_eq!(latency(&mut ssd, command(Op::Read, 0, 2)), whole_page + 2 * LINK);
    assert_eq!(latency(&mut ssd, command(Op::Read, 0, 4)), whole_page + 4 * LINK);
    assert_eq!(latency(&mut ssd, command(Op::Read, 100, 4)), COMMAND + 4 * LINK, "zeroes");
    assert_eq!(ssd.stats().ftl.reads.host, 1 + 1 + 2);
}

#[test]
fn part_of_a_unit_is_read_modify_write() {
    let mut ssd = Ssd::new(&config(Region::None), 1).unwrap();
    latency(&mut ssd, command(Op::Write, 0, 2));
    latency(&mut ssd, command(Op::Flush, 0, 0));
    let half_link = LINK / 2;
    let part = Command::write(Lba(4), 4, ());
    assert_eq!(latency(&mut ssd, part.clone()), COMMAND + half_link + READ + TRANSFER);
    assert_eq!(latency(&mut ssd, part), COMMAND + half_link, "merged in the buffer");
    let unwritten = Command::write(Lba(804), 4, ());
    assert_eq!(latency(&mut ssd, unwritten), COMMAND + half_link, "nothing to merge with");
    assert_eq!((ssd.stats().ftl.reads.rmw, ssd.stats().ftl.reads.host), (1, 0));
}

#[test]
fn commands_queue_at_the_controller_and_for_a_slot() {
    let mut config = config(Region::Full);
    (config.frontend.queues, config.frontend.queue_depth) = (1, 2);
    let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
    for _ in 0..4 {
        ssd.submit(Time::ZERO, command(Op::Write, 0, 1));
    }
    let mut done = Vec::new();
    ssd.advance(Time::from_ns(1_000_000), &mut done);
    let times: Vec<u64> = done.iter().map(|completion| completion.time.as_ns()).collect();
    // Two are in the controller at once; the third enters when the first has ended.
    assert_eq!(times, [2_000, 3_000, 4_000, 5_000]);
}

#[test]
fn bad_commands_end_with_their_status() {
    let mut ssd = Ssd::<NoData>::new(&config(Region::Full), 1).unwrap();
    let end = ssd.capacity_sectors();
    let cases = [
        (Command::read(Lba(end), 1), Status::LbaOutOfRange),
        (Command::write(Lba(end - 1), 2, ()), Status::LbaOutOfRange),
        (Command::trim(Lba(u64::MAX), 8), Status::LbaOutOfRange),
        (Command::write(Lba(0), 0, ()), Status::InvalidField),
        (Command::write(Lba(0), u32::MAX, ()), Status::LbaOutOfRange),
        (Command::write_zeroes(Lba(u64::MAX), u32::MAX, ()).fua(true), Status::LbaOutOfRange),
        (Command::write_prepare([]), Status::InvalidField),
        (Command::write_prepare(Hint::covering(Lba(0), u32::MAX)), Status::InvalidField),
        (Command::read(Lba(0), 8).hint(Hint::covering(Lba(end), 1).next()), Status::Success),
    ];
    for (command, status) in cases {
        let mut done = Vec::new();
        ssd.submit(ssd.now(), command);
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
        assert_eq!(done[0].status, status);
    }
    ssd.check();
}
