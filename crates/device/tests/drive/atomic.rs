//! Atomic writes: what the configuration refuses, and that reads and power cuts find them whole.

use leyden_device::{
    AtomicConfig, BlockDevice, Command, Completion, Config, Lba, Region, Ssd, Stamp, ZnsSsd,
};
use leyden_sim::{Bytes, ConfigError, Ratio, Time};

const UNIT: u64 = 8;

/// Two dies of pages of four units, and a buffer for 32 units.
fn config(region: Region, table: AtomicConfig) -> Config {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 2;
    config.nand.blocks_per_plane = 48;
    config.nand.pages_per_block = 8;
    config.nand.page_size = kib(16);
    config.ftl.over_provisioning = Ratio::from_percent(70);
    config.buffer.region = region;
    config.buffer.size = Bytes::new(128 << 10);
    config.power = Some(leyden_power::Config::default());
    config.atomic = Some(table);
    config
}

const fn kib(size: u64) -> Bytes {
    Bytes::new(size << 10)
}

fn table(nawupf: u64) -> AtomicConfig {
    AtomicConfig { nawupf: kib(nawupf), ..AtomicConfig::default() }
}

fn refused(region: Region, table: AtomicConfig) -> ConfigError {
    Ssd::<Stamp>::new(&config(region, table), 1).expect_err("it is refused")
}

#[test]
fn what_cannot_be_is_refused_with_its_key() {
    let none = Region::None;
    for (region, table, key, words) in [
        (none, table(0), "atomic.nawupf", "multiple of the logical block, 4 KiB"),
        (none, table(6), "atomic.nawupf", "multiple of the logical block, 4 KiB"),
        (none, table(20), "atomic.nawupf", "set it to \"16 KiB\" at most, or buffer.region"),
        (Region::Full, table(132), "atomic.nawun", "buffer.size"),
        (
            none,
            AtomicConfig { nawun: Some(kib(8)), ..table(16) },
            "atomic.nawun",
            "less than nawupf, 16 KiB",
        ),
        (
            none,
            AtomicConfig { nabspf: Some(kib(8)), ..table(16) },
            "atomic.nabspf",
            "less than nawupf, 16 KiB",
        ),
        (
            none,
            AtomicConfig { nabsn: Some(kib(16)), nawun: Some(kib(32)), ..table(16) },
            "atomic.nabsn",
            "less than nawun, 32 KiB",
        ),
        (none, AtomicConfig { nabo: Some(kib(4)), ..table(16) }, "atomic.nabo", "give nabspf"),
        (
            none,
            AtomicConfig { nabo: Some(kib(32)), nabspf: Some(kib(16)), ..table(16) },
            "atomic.nabo",
            "beyond the first boundary",
        ),
    ] {
        let error = refused(region, table);
        assert_eq!(error.key, key, "{error}");
        assert!(error.problem.contains(words), "{error}");
    }
    let mut apart = config(none, table(16));
    apart.buffer.coalesce = false;
    let error = Ssd::<Stamp>::new(&apart, 1).err().unwrap();
    assert!(error.problem.contains("buffer.coalesce"), "{error}");
    let mut zoned = Config { atomic: Some(table(16)), ..Config::default() };
    zoned.zoned = Some(leyden_ftl::zoned::Config::default());
    assert_eq!(ZnsSsd::<Stamp>::new(&zoned, 1).err().unwrap().key, "atomic");
}

fn run(ssd: &mut Ssd<Stamp>, until: Option<Time>) -> Vec<Completion<Stamp>> {
    let mut done = Vec::new();
    while let Some(next) = ssd.next_event().filter(|&next| until.is_none_or(|end| next <= end)) {
        ssd.advance(next, &mut done);
    }
    if let Some(end) = until {
        ssd.advance(end, &mut done);
    }
    done
}

fn write(ssd: &mut Ssd<Stamp>, unit: u64, units: u32, stamp: u64) {
    ssd.submit(ssd.now(), Command::write(Lba(unit * UNIT), units * UNIT as u32, stamp));
}

/// The first `units` units as a cut now leaves them.
fn left(ssd: &Ssd<Stamp>, units: u64) -> Vec<u64> {
    let mut ssd = ssd.clone();
    ssd.cut_power(ssd.now());
    ssd.restore_power(ssd.now());
    run(&mut ssd, None);
    (0..units).map(|unit| ssd.stored(Lba(unit * UNIT)).map_or(0, |it| it.0)).collect()
}

/// Writes of four units over each other, cut at every event: what is left of each is whole, and some cut leaves each of them.
/// Without the table some cut tears one.
fn torn_cuts(config: &Config) -> (u32, u32) {
    let mut ssd = Ssd::<Stamp>::new(config, 1).unwrap();
    // Three units beside, so that pages do not begin where the writes do.
    write(&mut ssd, 40, 3, 1);
    let (mut cuts, mut torn) = (0, 0);
    for round in 0..40 {
        write(&mut ssd, round % 3 * 4, 4, 10 + round);
        write(&mut ssd, 20 + round % 7, 1, 100 + round);
        if round % 2 == 1 {
            ssd.submit(ssd.now(), Command::flush());
        }
        for _ in 0..12 {
            let Some(next) = ssd.next_event() else { break };
            ssd.advance(next, &mut Vec::new());
            cuts += 1;
            let found = left(&ssd, 12);
            torn +=
                found.chunks(4).filter(|them| them.iter().any(|it| *it != them[0])).count() as u32;
        }
    }
    (cuts, torn)
}

#[test]
fn a_cut_at_any_event_tears_no_atomic_write_and_some_others() {
    for protection in ["full", "none", "journal", "partial"] {
        let mut atomic = config(Region::None, table(16));
        atomic.ftl.map.protection = leyden_ftl::map::ProtectionConfig::by_name(protection).unwrap();
        let (cuts, torn) = torn_cuts(&atomic);
        assert!(cuts > 150, "{protection}: {cuts} cuts");
        assert_eq!(torn, 0, "{protection}");
        let (_, torn) = torn_cuts(&Config { atomic: None, ..atomic });
        assert!(torn > 0, "{protection}: a drive without the table tears some");
    }
}

/// Of two pools of writes that are taken in as there is room, a read sees parts; of atomic ones it does not.
#[test]
fn a_read_sees_all_or_nothing() {
    let seen = |atomic: bool, coalesce: bool| {
        let mut config = config(Region::Full, table(64));
        config.buffer.flush_threshold = Ratio::from_percent(100);
        config.buffer.coalesce = coalesce;
        config.atomic = config.atomic.filter(|_| atomic);
        let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
        let mut done = Vec::new();
        for round in 0..60 {
            // Without coalescing each version takes a slot: a write of the same units waits for room, though all are buffered.
            let first = if coalesce { round % 5 * 16 } else { 0 };
            write(&mut ssd, first, 16, 1 + round);
            for _ in 0..20 {
                ssd.submit(ssd.now(), Command::read(Lba(first * UNIT), 16 * UNIT as u32));
                let Some(next) = ssd.next_event() else { break };
                ssd.advance(next, &mut done);
            }
        }
        done.extend(run(&mut ssd, None));
        ssd.check();
        let reads = done.iter().filter_map(Completion::data);
        reads.filter(|data| data.iter().any(|it| *it != data[0])).count()
    };
    for coalesce in [true, false] {
        assert_eq!(seen(true, coalesce), 0);
        assert!(seen(false, coalesce) > 0, "without the table some reads see parts");
    }
}

/// Groups outlive a save: what is buffered of one goes to flash in one page afterwards, too.
#[test]
fn a_drive_that_is_saved_keeps_its_promise() {
    let config = config(Region::None, table(16));
    let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
    write(&mut ssd, 40, 3, 1);
    write(&mut ssd, 0, 4, 2);
    run(&mut ssd, None);
    assert!(ssd.stats().buffered_units.get() == 7, "all is buffered");
    let mut bytes = Vec::new();
    ssd.save(&mut bytes).unwrap();
    let mut loaded = Ssd::<Stamp>::load(&config, 1, &mut &bytes[..]).unwrap();
    loaded.submit(loaded.now(), Command::flush());
    let mut whole = 0;
    while let Some(next) = loaded.next_event() {
        loaded.advance(next, &mut Vec::new());
        let found = left(&loaded, 4);
        assert!(found.iter().all(|it| *it == found[0]), "{found:?}");
        whole += u32::from(found[0] == 2);
    }
    assert!(whole > 0, "some cut leaves it");
}

/// A new write whose units lie in two mapping pages, one of which a dump saves for a trim of another unit. The page of data that
/// is under way at the cut comes to its end: the mapping page must know of it, or it would hide half, as if it were trimmed.
#[test]
fn a_dumped_mapping_page_hides_no_part() {
    let mut config = config(Region::None, table(16));
    config.ftl.map.protection = leyden_ftl::map::ProtectionConfig::by_name("none").unwrap();
    config.ftl.map.entries_per_page = Some(16);
    let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
    let (mut lost, mut kept) = (0, 0);
    for round in 0..12 {
        let first = 32 * round;
        write(&mut ssd, first, 1, 1);
        ssd.submit(ssd.now(), Command::flush());
        run(&mut ssd, None);
        write(&mut ssd, first + 14, 4, 2);
        run(&mut ssd, None);
        // Its page is under way when the trim makes the first mapping page dirty.
        ssd.submit(ssd.now(), Command::flush());
        ssd.submit(ssd.now(), Command::trim(Lba(first * UNIT), UNIT as u32));
        loop {
            let found = &left(&ssd, first + 18)[first as usize + 14..];
            assert!(found.iter().all(|it| *it == found[0]), "round {round}: {found:?}");
            *if found[0] == 2 { &mut kept } else { &mut lost } += 1;
            let Some(next) = ssd.next_event() else { break };
            ssd.advance(next, &mut Vec::new());
        }
    }
    assert!(lost > 10 && kept > 10, "{lost} cuts lose it, {kept} leave it");
}

/// A program fails while a unit of its group is written again: none of the group is left to the newer write, or a cut would find
/// the others beside something older.
#[test]
fn a_write_over_a_group_under_way_takes_no_part_of_it() {
    let mut config = config(Region::None, table(16));
    config.nand.faults.program_failures = Ratio::from_percent(30);
    let mut failures = 0;
    for seed in 0..24 {
        let mut ssd = Ssd::<Stamp>::new(&config, seed).unwrap();
        for round in 0..6 {
            let stamp = 2 * round + 1;
            write(&mut ssd, 0, 4, stamp);
            ssd.submit(ssd.now(), Command::flush());
            for step in 0.. {
                if step == 1 + round % 3 {
                    write(&mut ssd, seed % 4, 1, stamp + 1);
                }
                let found = left(&ssd, 4);
                let others: Vec<u64> =
                    (0..4).filter(|&at| at != seed % 4).map(|at| found[at as usize]).collect();
                let again = found[(seed % 4) as usize];
                assert!(others.iter().all(|it| *it == others[0]), "seed {seed}: {found:?}");
                assert!(again >= others[0], "seed {seed}, round {round}: {found:?}");
                let Some(next) = ssd.next_event() else { break };
                ssd.advance(next, &mut Vec::new());
            }
        }
        failures += ssd.stats().ftl.program_failures;
    }
    assert!(failures > 20, "{failures} programs failed");
}

/// A trim takes a unit out of a write that waits, or is on its way: a cut then leaves the others together, and of that unit
/// zeroes or the write itself, and nothing older.
#[test]
fn a_trim_of_a_part_brings_nothing_older_back() {
    for protection in ["full", "none", "journal", "partial"] {
        let mut config = config(Region::None, table(16));
        config.ftl.map.protection = leyden_ftl::map::ProtectionConfig::by_name(protection).unwrap();
        let mut zeroes = 0;
        for at in 0..6 {
            let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
            for stamp in [1, 2] {
                write(&mut ssd, 0, 4, stamp);
                run(&mut ssd, None);
                ssd.submit(ssd.now(), Command::flush());
                if stamp == 1 {
                    run(&mut ssd, None);
                    assert_eq!(left(&ssd, 4), [1; 4]);
                }
            }
            for step in 0.. {
                if step == at {
                    ssd.submit(ssd.now(), Command::trim(Lba(UNIT), UNIT as u32));
                }
                let Some(next) = ssd.next_event() else { break };
                ssd.advance(next, &mut Vec::new());
                let found = left(&ssd, 4);
                let (trimmed, others) = (found[1], [found[0], found[2], found[3]]);
                assert!(others.iter().all(|it| *it == others[0]), "{protection}: {found:?}");
                assert!(trimmed == others[0] || trimmed == 0, "{protection}: {found:?}");
                zeroes += u32::from(trimmed == 0);
            }
        }
        assert!(zeroes > 0, "{protection}: the trim takes effect");
    }
}
