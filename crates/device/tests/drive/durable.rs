//! Without a protected buffer, what a FLUSH or a FUA write has promised is on flash.
//!
//! After each of them has ended, every unit that was acknowledged before the flush was submitted
//! (or was written by the FUA write) must be mapped to the newest version acknowledged then, or to
//! one submitted later; or be unmapped, if a trim may have come last.

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Config, Lba, Op, Ssd, Stamp, Status};
use leyden_sim::{Bytes, Ratio, Rng, Span, Time};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
struct Version {
    /// 0 for a trim.
    stamp: u64,
    submitted: Time,
    ended: Option<Time>,
}

fn config(faults: u64, slots: u64, placement: &str) -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 2;
    config.nand.blocks_per_plane = 32;
    config.nand.pages_per_block = 8;
    config.nand.faults.program_failures = Ratio::from_ppm(faults);
    config.ftl.over_provisioning = Ratio::from_percent(150);
    config.ftl.placement = leyden_ftl::place::PlacementConfig::by_name(placement).unwrap();
    config.buffer.region = Region::None;
    config.buffer.size = Bytes::new(4096 * slots);
    config
}

/// Commands on few units, so that several versions of one are often on their way at once.
fn command(rng: &mut Rng, units: u64, tag: u32) -> Command<Stamp> {
    let op = match rng.below(20) {
        0..15 => Op::Write,
        15 => Op::Trim,
        _ => Op::Flush,
    };
    let unit = rng.below(units);
    let length = 1 + rng.below((units - unit).min(3));
    let command = Command::new(op, Lba(unit * 8), length as u32 * 8, u64::from(tag) + 1);
    command.fua(rng.below(4) == 0).tag(tag)
}

fn units_of(command: &Command<Stamp>) -> std::ops::Range<usize> {
    let (lba, sectors) = command.extent().unwrap_or_default();
    let first = lba.0 as usize / 8;
    first..first + sectors as usize / 8
}

/// The promise of a command that has ended, for the units it covers.
#[derive(Clone, Copy, Debug)]
enum Promise {
    /// A flush, submitted then: the newest version that had ended, or a later one.
    Flush(Time),
    /// A FUA write, submitted then: its own version, or a later one.
    Fua(Time),
}

/// True if flash may hold `stamp` of a unit with this history.
fn keeps(history: &[Version], stamp: u64, promise: Promise) -> bool {
    let superseded = |end: Time| match promise {
        Promise::Fua(submitted) => submitted > end,
        Promise::Flush(submitted) => history
            .iter()
            .any(|later| later.submitted > end && later.ended.is_some_and(|end| end <= submitted)),
    };
    let never = Version { stamp: 0, submitted: Time::ZERO, ended: Some(Time::ZERO) };
    std::iter::once(&never)
        .chain(history)
        .any(|version| version.stamp == stamp && !version.ended.is_some_and(superseded))
}

fn run(seed: u64, config: &Config, depth: u32, units: u64) {
    let mut ssd = Ssd::<Stamp>::new(config, seed).unwrap();
    let mut rng = Rng::new(seed, "durable");
    let mut history: Vec<Vec<Version>> = vec![Vec::new(); units as usize];
    let mut commands: Vec<Command<Stamp>> = Vec::new();
    let (mut running, mut done) = (0, Vec::new());
    loop {
        while running < depth && commands.len() < 400 {
            let command = command(&mut rng, units, commands.len() as u32);
            if command.op() != Op::Flush {
                let stamp = command.data().copied().unwrap_or(0);
                for unit in units_of(&command) {
                    let version = Version { stamp, submitted: ssd.now(), ended: None };
                    history[unit].push(version);
                }
            }
            commands.push(command.clone());
            ssd.submit(ssd.now(), command);
            running += 1;
        }
        // Never the same instant twice, so that before and after are never in doubt.
        let Some(time) = ssd.next_event() else { break };
        ssd.advance(time, &mut done);
        let mut promises = Vec::new();
        for completion in done.drain(..) {
            assert_eq!(completion.status, Status::Success);
            running -= 1;
            let command = &commands[completion.tag as usize];
            if command.op() == Op::Flush {
                promises.push((0..units as usize, Promise::Flush(completion.submitted)));
                continue;
            }
            for unit in units_of(command) {
                let stamp = command.data().copied().unwrap_or(0);
                let version = history[unit]
                    .iter_mut()
                    .find(|v| {
                        v.stamp == stamp && v.submitted == completion.submitted && v.ended.is_none()
                    })
                    .unwrap();
                version.ended = Some(completion.time);
            }
            if command.is_fua() {
                promises.push((units_of(command), Promise::Fua(completion.submitted)));
            }
        }
        for (units, promise) in promises {
            for unit in units {
                let stamp = ssd.stored(Lba(unit as u64 * 8)).map_or(0, |stamp| stamp.0);
                let history = &history[unit];
                assert!(
                    keeps(history, stamp, promise),
                    "unit {unit}: {stamp} on flash after {promise:?}, {history:?}"
                );
            }
        }
        let later = ssd.now() + Span::from_ns(1);
        if ssd.next_event().is_none_or(|next| next > later) {
            ssd.advance(later, &mut done);
        }
    }
    assert_eq!(running, 0, "every command ends");
    ssd.check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn promises_are_kept(
        seed: u64,
        faults in prop_oneof![Just(0_u64), Just(20_000), Just(60_000)],
        depth in 1_u32..24,
        units in 4_u64..40,
        slots in 16_u64..64,
        dac: bool,
    ) {
        run(seed, &config(faults, slots, if dac { "dac" } else { "single" }), depth, units);
    }
}
