//! How a collection and the host's writes share a die's time, and what comes of it (docs/decisions/0016).

#![expect(clippy::print_stdout, reason = "shows what was measured, with --nocapture")]

use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Ssd};
use leyden_ftl::Pace;
use leyden_sim::{Bytes, Ratio, Rng, Time};

const DIES: u64 = 16;

/// Uniform random writes on a drive in steady state, whose dies have collected in step since it was new.
struct Measured {
    waf: f64,
    /// Writes a second.
    rate: f64,
    p99_us: f64,
    /// How much the share of copies among all programs differs from interval to interval: the standard
    /// deviation.
    spread: f64,
}

fn measure(pace: Pace, seed: u64) -> Measured {
    let mut config = Config::default();
    config.nand.channels = 4;
    config.nand.dies_per_channel = DIES as u32 / 4;
    config.nand.blocks_per_plane = 64;
    config.nand.pages_per_block = 64;
    config.ftl.over_provisioning = Ratio::from_percent(28);
    config.ftl.gc.pace = pace;
    config.buffer.size = Bytes::new(1 << 20);
    let mut ssd = Ssd::<NoData>::new(&config, seed).unwrap();
    let units = u64::from(ssd.mapping_units());
    let mut rng = Rng::new(seed, "pace");
    let mut done = Vec::new();
    ssd.set_untimed(true);
    for i in 0..5 * units {
        let unit = if i < units { i } else { rng.below(units) };
        ssd.submit(ssd.now(), Command::write(Lba(unit * 8), 8, ()));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
        done.clear();
    }
    ssd.set_untimed(false);
    let mut submit = |ssd: &mut Ssd<NoData>, at: Time| {
        ssd.submit(at, Command::write(Lba(rng.below(units) * 8), 8, ()));
    };
    // The buffer takes what comes before dies are busy: that is not measured.
    let ramp = 2 * units / 10;
    let (mut latencies, mut shares) = (Vec::new(), Vec::new());
    for _ in 0..16 {
        let now = ssd.now();
        submit(&mut ssd, now);
    }
    let (mut first, mut last) = (ssd.stats(), ssd.stats());
    let (mut begin, mut completed) = (ssd.now(), 0);
    while completed < ramp + units {
        let time = ssd.next_event().expect("work is under way");
        ssd.advance(time, &mut done);
        for completion in done.drain(..) {
            completed += 1;
            if completed == ramp {
                (first, last, begin) = (ssd.stats(), ssd.stats(), completion.time);
                (latencies, shares) = (Vec::new(), Vec::new());
            }
            latencies.push(completion.time.since(completion.submitted).as_ns());
            submit(&mut ssd, completion.time);
        }
        // An eighth of a block on each die.
        let stats = ssd.stats();
        let copied = stats.ftl.gc.copied_units - last.ftl.gc.copied_units;
        let all = copied + stats.ftl.user_units - last.ftl.user_units;
        if all >= DIES * 8 * 2 {
            shares.push(copied as f64 / all as f64);
            last = stats;
        }
    }
    ssd.check();
    let after = ssd.stats();
    let copied = after.ftl.gc.copied_units - first.ftl.gc.copied_units;
    let waf = 1.0 + copied as f64 / (after.ftl.user_units - first.ftl.user_units) as f64;
    latencies.sort_unstable();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>();
    Measured {
        waf,
        rate: units as f64 / (ssd.now().since(begin).as_ns() as f64 / 1e9),
        p99_us: latencies[latencies.len() * 99 / 100] as f64 / 1e3,
        spread: (variance / shares.len() as f64).sqrt(),
    }
}

/// At an even pace, copies are as large a part of the work at any time, although all dies collect in step. The
/// tail of latency is what that is for; as much is copied, and as much is written.
#[test]
fn an_even_pace_evens_out_what_dies_in_step_do() {
    for seed in 1..=3 {
        let [at_once, even] = [Pace::AtOnce, Pace::Even].map(|pace| measure(pace, seed));
        for (name, it) in [("at once", &at_once), ("even", &even)] {
            println!(
                "seed {seed}, {name}: WAF {:.3}, {:.0} writes/s, 99 % {:.0} us, spread {:.3}",
                it.waf, it.rate, it.p99_us, it.spread
            );
        }
        assert!(even.spread < at_once.spread / 2.0);
        assert!(even.p99_us < 0.8 * at_once.p99_us);
        assert!((even.waf / at_once.waf - 1.0).abs() < 0.03);
        assert!((even.rate / at_once.rate - 1.0).abs() < 0.03);
    }
}
