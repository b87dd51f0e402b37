//! How fast the bare drive is: 4 KiB uniform random writes at queue depth 32, then reads, then sequential writes of
//! 64 KiB, per second of processor time.
//!
//!     speed [OVER_PROVISIONING_PERCENT] [PASSES] [SHARE]
//!
//! `PASSES` is how often the drive is written before it is measured, `SHARE` the percentage of the commands that are given
//! then. `bench/limits/compare` runs this beside
//! the same model in bare C.
#![expect(clippy::print_stdout, reason = "an example reports on standard output")]

use std::collections::VecDeque;

use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Op, Ssd};
use leyden_sim::{Counted, Ratio, Rng, Time};

/// How many commands are known before they are submitted, as a driver's are.
const AHEAD: usize = 16;

/// Commands of `units` mapping units each.
#[derive(Clone, Copy)]
struct Work {
    op: Op,
    units: u64,
    sequential: bool,
}

const WRITES: Work = Work { op: Op::Write, units: 1, sequential: false };
const READS: Work = Work { op: Op::Read, units: 1, sequential: false };
const SEQUENTIAL: Work = Work { op: Op::Write, units: 16, sequential: true };

fn run(ssd: &mut Ssd<NoData>, work: Work, count: u64, depth: u64, rng: &mut Rng) {
    let places = u64::from(ssd.mapping_units()) / work.units;
    let mut last = 0;
    let mut draw = || {
        last = if work.sequential { (last + 1) % places } else { rng.below(places) };
        Lba(last * work.units * 8)
    };
    let mut upcoming: VecDeque<Lba> = (0..AHEAD).map(|_| draw()).collect();
    let mut submit = |ssd: &mut Ssd<NoData>, now| {
        let (lba, later) = (upcoming.pop_front().expect("there are always some"), draw());
        upcoming.push_back(later);
        if work.op == Op::Read {
            ssd.expect(std::iter::once(later));
        }
        ssd.submit(now, Command::new(work.op, lba, 8 * work.units as u32, ()));
    };
    let mut done = Vec::new();
    for _ in 0..depth {
        submit(ssd, ssd.now());
    }
    let mut left = count - depth;
    while ssd.next_event().is_some() {
        ssd.advance_until_completion(ssd.now(), Time::MAX, &mut done);
        for completion in done.drain(..) {
            if left > 0 {
                left -= 1;
                submit(ssd, completion.time);
            }
        }
    }
}

/// Seconds of processor time this process has used: steadier than the wall clock on a busy machine.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}

fn main() {
    let op: u64 = std::env::args().nth(1).map_or(28, |text| text.parse().expect("a percentage"));
    let passes: u64 = std::env::args().nth(2).map_or(4, |text| text.parse().expect("a number"));
    let share: u64 =
        std::env::args().nth(3).map_or(100, |text| text.parse().expect("a percentage"));
    let mut config = Config::default();
    config.ftl.over_provisioning = Ratio::from_percent(op);
    let mut ssd = Ssd::<NoData>::new(&config, 1).expect("a good configuration");
    let units = u64::from(ssd.mapping_units());
    let mut rng = Rng::new(1, "speed");

    let start = cpu_s();
    ssd.set_untimed(true);
    run(&mut ssd, WRITES, units * passes, 32, &mut rng);
    ssd.set_untimed(false);
    println!("precondition: {:.2} s for {} writes", cpu_s() - start, units * passes);
    ssd.check();

    let parts = [
        ("write", WRITES, 5_000_000),
        ("read", READS, 5_000_000),
        ("sequential", SEQUENTIAL, 700_000),
    ];
    for (name, work, count) in parts {
        let count = count / 100 * share;
        let before = ssd.stats();
        let (start, began) = (cpu_s(), ssd.now());
        run(&mut ssd, work, count, 32, &mut rng);
        let wall = cpu_s() - start;
        let grown = ssd.stats().since(&before);
        let programs = grown.ftl.programs.user + grown.ftl.programs.gc_user;
        let reads = grown.ftl.reads.host + grown.ftl.reads.gc_user;
        let ops = programs + reads + grown.ftl.erases;
        let written = grown.ssd.units_written;
        println!(
            "{name}: {:.2} M I/Os/s, {:.2} M flash ops/s, waf {:.3}, simulated {:.0} IOPS",
            count as f64 / wall / 1e6,
            ops as f64 / wall / 1e6,
            programs as f64 * 2.0 / written.max(1) as f64,
            count as f64 / (ssd.now() - began).as_secs_f64(),
        );
    }
    ssd.check();
    println!("digest {}", ssd.digest());
}
