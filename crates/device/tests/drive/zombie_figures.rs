//! Zombie Chasing, figures 2 and 3, on a whole drive: what greedy and z-greedy copy over the same two
//! collections.
//!
//! Four blocks of ten pages; live, zombie and dead pages are (5, 0, 5), (1, 3, 6) and (6, 4, 0), and
//! the fourth block is empty. Units and pages of flash are both 4 KiB, and the host addresses 19 of
//! them: all that a drive of four such blocks can promise to collect. A die collects on demand, as
//! the paper's does (section 4.1). The buffer holds nothing back: a FLUSH follows the writes.

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Config, Hint, Lba, Ssd, Stamp, Status};
use leyden_ftl::gc::VictimConfig;
use leyden_sim::Bytes;

/// The host's announcements: the units that it will overwrite, in that order.
const ZOMBIES: [u64; 7] = [11, 12, 13, 15, 16, 17, 18];

fn drive(policy: &str) -> Ssd<Stamp> {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 4;
    config.nand.pages_per_block = 10;
    config.nand.page_size = Bytes::new(4096);
    config.ftl.capacity = Some(Bytes::new(19 * 4096));
    config.ftl.gc.victim = VictimConfig::by_name(policy).expect("a policy");
    (config.ftl.gc.soft_free_blocks, config.ftl.gc.hard_free_blocks) = (0, 0);
    config.buffer.region = Region::None;
    Ssd::new(&config, 1).expect("a good configuration")
}

fn run(ssd: &mut Ssd<Stamp>) {
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    assert!(done.iter().all(|completion| completion.status == Status::Success), "{done:?}");
    ssd.check();
}

fn write(ssd: &mut Ssd<Stamp>, units: impl IntoIterator<Item = u64>) {
    for unit in units {
        ssd.submit(ssd.now(), Command::write(Lba(unit * 8), 8, unit));
    }
    run(ssd);
    ssd.submit(ssd.now(), Command::flush());
    run(ssd);
}

/// The state of figures 2 (a) and 3 (a), but for the last page of the third block: with it, the die
/// has run out of pages, and the first collection begins.
fn initial(ssd: &mut Ssd<Stamp>) {
    write(ssd, 0..10);
    write(ssd, (10..14).chain(5..10).chain([14])); // five of the first block's die
    write(ssd, (5..10).chain(14..18)); // and six of the second's
    assert_eq!(ssd.stats().ftl.gc.collections, 0);
}

fn announce(ssd: &mut Ssd<Stamp>, units: &[u64]) {
    let ranges = units.iter().flat_map(|&unit| Hint::covering(Lba(unit * 8), 8));
    let prepare = Command::write_prepare(ranges);
    ssd.submit(ssd.now(), prepare);
    run(ssd);
}

/// Units copied by the two collections.
fn copies(policy: &str) -> [u64; 2] {
    let mut ssd = drive(policy);
    initial(&mut ssd);
    announce(&mut ssd, &ZOMBIES[..6]);
    let write_18 = Command::write(Lba(18 * 8), 8, 18);
    ssd.submit(ssd.now(), write_18);
    run(&mut ssd);
    announce(&mut ssd, &ZOMBIES[6..]); // while it is in the buffer
    ssd.submit(ssd.now(), Command::flush());
    run(&mut ssd);
    let first = ssd.stats();
    assert_eq!((first.ftl.gc.collections, first.ssd.hints.units), (1, 7));
    write(&mut ssd, ZOMBIES);
    let second = ssd.stats();
    assert_eq!((second.ftl.gc.collections, ssd.zombie_units()), (2, 0));
    [first.ftl.gc.copied_units, second.ftl.gc.copied_units - first.ftl.gc.copied_units]
}

#[test]
fn greedy_copies_nine_pages() {
    assert_eq!(copies("greedy"), [4, 5]);
}

#[test]
fn z_greedy_copies_six() {
    assert_eq!(copies("z_greedy"), [5, 1]);
}
