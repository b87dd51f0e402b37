//! How fast each schedule is by share of the mapping table protected: 4 KiB uniform random writes
//! into 4 GiB of Hexa's drive, with 12 GiB for the host (`scenarios/hexa/random-write.toml`).
//!
//!     schedules [DIES [BUFFER_MIB [PASSES [SCHEDULE,... [PERCENT,... [AREA]]]]]]
//!
//! DIES is how many dies each channel has: 8 is Hexa's drive; fewer scale everything down with
//! them, also the buffer, which is given as that of the whole drive. PASSES is how often the area is
//! written, AREA how large a part of what the host can address it is, in percent, if not a third.
#![expect(clippy::print_stdout, reason = "an example reports on standard output")]

use leyden_buffer::schedule::ScheduleConfig;
use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Ssd};
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::map::partial::Partial;
use leyden_sim::{Bytes, Counted, Ratio, Rng};

/// Writes outstanding: 4 threads of 64.
const DEPTH: u64 = 256;

/// Writes what `next` yields `count` times, [`DEPTH`] at a time.
fn run(ssd: &mut Ssd<NoData>, count: u64, mut next: impl FnMut() -> u64) {
    let mut write = || Command::write(Lba(next() * 8), 8, ());
    let mut done = Vec::new();
    for _ in 0..DEPTH {
        ssd.submit(ssd.now(), write());
    }
    let mut left = count - DEPTH;
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
        for completion in done.drain(..) {
            if left > 0 {
                left -= 1;
                ssd.submit(completion.time, write());
            }
        }
    }
}

/// Seconds of processor time this process has used.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, default: &str| args.get(at).map_or(default, |text| text).to_owned();
    let number = |at, default| arg(at, default).parse::<u64>().expect("a number");
    let (dies, buffer_mib, passes) = (number(0, "2"), number(1, "64"), number(2, "2"));
    let area = number(5, "33");
    let names = ScheduleConfig::POLICIES.iter().map(|policy| policy.name).collect::<Vec<_>>();
    let schedules = arg(3, &names.join(","));
    println!("protected schedule     IOPS   user  gc     map    gc_map (programs/write)  hits");
    for percent in arg(4, "1,5,10,25,50,75,100").split(',') {
        for name in schedules.split(',') {
            let percent: u64 = percent.parse().expect("a percentage");
            let mut config = Config::default();
            config.nand.dies_per_channel = dies as u32;
            config.ftl.capacity = Some(Bytes::new((12 << 30) * dies / 8));
            config.buffer.size = Bytes::new((buffer_mib << 20) * dies / 8);
            config.buffer.schedule = ScheduleConfig::by_name(name).expect("a schedule");
            let protected = Ratio::from_percent(percent);
            config.ftl.map.protection = ProtectionConfig::Partial(Partial { protected });
            measure(&config, percent, name, passes, area);
        }
    }
}

fn measure(config: &Config, percent: u64, name: &str, passes: u64, area: u64) {
    let mut ssd = Ssd::<NoData>::new(config, 1).expect("a good configuration");
    let units = u64::from(ssd.mapping_units());
    let area = if area == 33 { units / 3 } else { units * area / 100 };
    let mut rng = Rng::new(1, "schedules");
    ssd.set_untimed(true);
    let mut at = 0;
    run(&mut ssd, units, || {
        at += 1;
        at - 1
    });
    run(&mut ssd, area, || rng.below(area));
    ssd.set_untimed(false);
    let (before, began, cpu) = (ssd.stats(), ssd.now(), cpu_s());
    let count = area * passes;
    run(&mut ssd, count, || rng.below(area));
    let grown = ssd.stats().since(&before);
    let per = |grown: u64| grown as f64 / count as f64;
    let programs = &grown.ftl.programs;
    println!(
        "{percent:>7} % {name:<9} {:>8.0}  {:.3}  {:.3}  {:.3}  {:.3}  {:.3}  {} {:.0} k/s",
        count as f64 / (ssd.now() - began).as_secs_f64(),
        per(programs.user),
        per(programs.gc_user),
        per(programs.map),
        per(programs.gc_map),
        per(grown.map.hits),
        &ssd.digest().to_string()[..8],
        count as f64 / (cpu_s() - cpu) / 1e3,
    );
    ssd.check();
}
