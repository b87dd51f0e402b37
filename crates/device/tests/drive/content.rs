//! The drive against its slow twin: a list of every write to every unit.
//!
//! For all geometries, policies and faults, a read returns a version that was current at some
//! moment between its submission and its completion, and the drive's structures agree.

use std::num::NonZeroU32;

use leyden_buffer::Region;
use leyden_buffer::schedule::ScheduleConfig;
use leyden_device::{
    Action, BlockDevice, Command, Completion, Config, DataKind, Hint, Lba, Op, Ssd, Stamp, Status,
};
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::gc::level::LevelConfig;
use leyden_ftl::logs::LogConfig;
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::place::PlacementConfig;
use leyden_sim::{Bytes, Ratio, Rng, Span, Time};
use proptest::prelude::*;

const UNIT_SECTORS: u64 = 8;

/// A write, or a trim (stamp 0), of one unit.
#[derive(Clone, Copy, Debug)]
struct Version {
    stamp: u64,
    submitted: Time,
    completed: Option<Time>,
}

/// The host's changes of every unit, in the order of submission.
struct Twin {
    history: Vec<Vec<Version>>,
}

impl Twin {
    fn submitted(&mut self, command: &Command<Stamp>, now: Time) {
        for (unit, stamp) in touched(command) {
            self.history[unit].push(Version { stamp, submitted: now, completed: None });
        }
    }

    fn completed(&mut self, command: &Command<Stamp>, submitted: Time, now: Time) {
        for (unit, stamp) in touched(command) {
            let version = self.history[unit]
                .iter_mut()
                .find(|v| v.stamp == stamp && v.submitted == submitted && v.completed.is_none())
                .expect("completed what was submitted");
            version.completed = Some(now);
        }
    }

    /// A read from `submitted` to `completed` may return a version unless another one was submitted
    /// after it was completed, and completed before the read was submitted.
    fn allows(&self, unit: usize, stamp: u64, submitted: Time, completed: Time) -> bool {
        let history = &self.history[unit];
        let overtaken = |version: &Version| {
            history.iter().any(|later| {
                version.completed.is_some_and(|at| later.submitted > at)
                    && later.completed.is_some_and(|at| at < submitted)
            })
        };
        let first = Version { stamp: 0, submitted: Time::ZERO, completed: Some(Time::ZERO) };
        std::iter::once(&first)
            .chain(history)
            .any(|v| v.stamp == stamp && v.submitted <= completed && !overtaken(v))
    }
}

/// The units whose content a command changes, and to what.
fn touched(command: &Command<Stamp>) -> Vec<(usize, u64)> {
    let (lba, sectors) = command.extent().unwrap_or_default();
    let (from, to) = (lba.0, lba.0 + u64::from(sectors));
    let units = from / UNIT_SECTORS..to.div_ceil(UNIT_SECTORS);
    units
        .filter_map(|unit| {
            let whole = from <= unit * UNIT_SECTORS && (unit + 1) * UNIT_SECTORS <= to;
            let stamp = match command.action {
                Action::Trim { .. } | Action::WriteZeroes { .. } if whole => 0,
                // Zeroes in part of a unit: the unit is what that write made of it.
                Action::Write { data, .. } | Action::WriteZeroes { data, .. } => data,
                _ => return None,
            };
            Some((unit as usize, stamp))
        })
        .collect()
}

#[derive(Clone, Debug)]
struct Setup {
    config: Config,
    seed: u64,
    depth: u64,
    commands: u64,
}

/// Half of the drives level their wear, as soon as two blocks differ.
fn levelling(seed: u64) -> LevelConfig {
    let mut config = LevelConfig::drawn(seed);
    if let LevelConfig::LeastWorn(least_worn) = &mut config {
        least_worn.spread = NonZeroU32::MIN;
    }
    config
}

fn setups() -> impl Strategy<Value = Setup> {
    let shape = (1_u32..3, 1_u32..3, 8_u32..14, 2_u32..6, 0_u32..3);
    // By name, so that a policy in any place of its registry leaves the other cases what they are.
    let policies = (
        any::<u64>().prop_map(VictimConfig::drawn),
        any::<u64>().prop_map(PlacementConfig::drawn),
        any::<u64>().prop_map(LogConfig::drawn),
        any::<u64>().prop_map(ProtectionConfig::drawn),
        any::<u64>().prop_map(ScheduleConfig::drawn),
    );
    let sizes = (any::<bool>(), 4_u64..40, 1_u32..9);
    let faults = prop_oneof![3 => Just(0_u64), 1 => Just(5_000), 1 => Just(50_000)];
    let collection = (faults, 0_u32..3, any::<bool>());
    (shape, policies, sizes, collection, any::<u64>(), 1_u64..24, 50_u64..900).prop_map(
        |(
            (channels, dies, blocks, pages, page),
            (victim, placement, log_stream, protection, schedule),
            (protected, slots, entries),
            (faults, hard_free_blocks, zombie_block),
            seed,
            depth,
            commands,
        )| {
            let mut config = Config::default();
            config.nand.channels = channels;
            config.nand.dies_per_channel = dies;
            // Mapping pages have blocks of their own.
            config.nand.blocks_per_plane =
                blocks + if matches!(protection, ProtectionConfig::Full(_)) { 0 } else { 10 };
            config.nand.pages_per_block = pages;
            config.nand.page_size = Bytes::new(4096 << page);
            config.nand.faults.program_failures = Ratio::from_ppm(faults);
            config.nand.faults.erase_failures = Ratio::from_ppm(faults / 10);
            config.ftl.gc.victim = victim;
            config.ftl.gc.levelling = levelling(seed);
            // Data moved for wear has an open block of its own.
            config.nand.blocks_per_plane += u32::from(config.ftl.streams().level().is_some());
            config.ftl.gc.hard_free_blocks = hard_free_blocks;
            config.ftl.gc.soft_free_blocks = 2 * hard_free_blocks;
            config.ftl.zombie_block = zombie_block;
            config.ftl.log_stream = log_stream;
            config.ftl.placement = placement;
            // Several mapping pages, and few of them protected.
            config.ftl.map.protection = protection;
            config.ftl.map.entries_per_page = Some(4 * entries);
            config.buffer.schedule = schedule;
            config.buffer.region = if protected { Region::Full } else { Region::None };
            config.buffer.size = Bytes::new(((4096 << page) * 8).max(4096 * slots));
            config.ftl.capacity = Some(Bytes::new(1 << 40));
            // As much as the drive would promise: the message of the refusal says how much.
            let most = most_capacity(&config);
            config.ftl.capacity = Some(Bytes::new(most * 4096));
            Setup { config, seed, depth, commands }
        },
    )
}

/// The largest capacity, in units, that the configuration accepts; by bisection, so that this does
/// not repeat the rule.
fn most_capacity(config: &Config) -> u64 {
    let accepts = |units: u64| {
        let mut config = config.clone();
        config.ftl.capacity = Some(Bytes::new(units * 4096));
        Ssd::<Stamp>::new(&config, 0).is_ok()
    };
    let (mut low, mut high) = (1_u64, 1_u64 << 16);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if accepts(middle) { low = middle } else { high = middle }
    }
    low
}

fn command(rng: &mut Rng, units: u64, stamp: u64) -> Command<Stamp> {
    let op = match rng.below(100) {
        0..55 => Op::Write,
        55..85 => Op::Read,
        85..92 => Op::Trim,
        92..95 => Op::WriteZeroes,
        _ => Op::Flush,
    };
    let sectors = units * UNIT_SECTORS;
    let (lba, length) = if rng.below(4) == 0 {
        let lba = rng.below(sectors); // unaligned
        (lba, 1 + rng.below((sectors - lba).min(40)))
    } else {
        let unit = rng.below(units);
        (unit * UNIT_SECTORS, (1 + rng.below((units - unit).min(6))) * UNIT_SECTORS)
    };
    let fua = rng.below(8) == 0;
    // Says which data it will overwrite; it may or may not.
    let unit = (rng.below(units) * UNIT_SECTORS, (1 + rng.below(6) * UNIT_SECTORS) as u32);
    let hint = Hint::covering(Lba(unit.0), unit.1).next().filter(|_| rng.below(3) > 0);
    let command = Command::new(op, Lba(lba), length as u32, stamp).fua(fua).hint(hint);
    let kind = if rng.below(4) == 0 { DataKind::Log } else { DataKind::Data };
    command.kind(kind)
}

/// Runs the setup; every completion is checked against the twin.
fn run(setup: &Setup) -> String {
    let mut ssd = Ssd::<Stamp>::new(&setup.config, setup.seed).unwrap();
    let units = u64::from(ssd.mapping_units());
    let mut twin = Twin { history: vec![Vec::new(); units as usize] };
    let mut rng = Rng::new(setup.seed, "commands");
    let mut under_way: Vec<Option<Command<Stamp>>> = Vec::new();
    let mut done: Vec<Completion<Stamp>> = Vec::new();
    let (mut running, mut last) = (0, Time::ZERO);
    let mut steps = 0_u64;

    loop {
        while running < setup.depth && (under_way.len() as u64) < setup.commands {
            let tag = under_way.len() as u32;
            let command = command(&mut rng, units, u64::from(tag) + 1).tag(tag);
            twin.submitted(&command, ssd.now());
            under_way.push(Some(command.clone()));
            ssd.submit(ssd.now(), command);
            running += 1;
        }
        let Some(mut time) = ssd.next_event() else { break };
        steps += 1;
        assert!(steps < 1_000_000, "the drive never comes to rest");
        if rng.below(3) == 0 {
            time += Span::from_us(rng.below(2_000)); // a late driver
        }
        ssd.advance(time, &mut done);
        for completion in done.drain(..) {
            assert!(completion.time >= last, "completions in order");
            last = completion.time;
            running -= 1;
            let command = under_way[completion.tag as usize].take().expect("ends once");
            if completion.status == Status::WriteFault {
                assert!(setup.config.nand.faults.program_failures > Ratio::ZERO, "out of space");
                return "out of space".to_owned();
            }
            assert_eq!(completion.status, Status::Success);
            twin.completed(&command, completion.submitted, completion.time);
            if let (Some(data), Some((lba, _))) = (completion.data(), command.extent()) {
                let first = lba.0 / UNIT_SECTORS;
                for (i, stamp) in data.iter().enumerate() {
                    let unit = first as usize + i;
                    assert!(
                        twin.allows(unit, stamp.0, completion.submitted, completion.time),
                        "unit {unit} read {stamp:?}, history {:?}",
                        twin.history[unit]
                    );
                }
            }
        }
    }
    assert_eq!(running, 0, "every command ends");
    ssd.check();
    ssd.digest().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn reads_return_what_was_written(setup in setups()) {
        let digest = run(&setup);
        prop_assert_eq!(run(&setup), digest, "the same inputs, the same bytes");
    }
}
