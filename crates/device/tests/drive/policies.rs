//! The policies do what they are for: on skewed writes, keeping hot and cold apart pays, and so does
//! leaving hot blocks alone until they have cooled; if the host says what it will write, so does
//! knowing by when.

#![expect(clippy::print_stdout, reason = "shows what was measured, with --nocapture")]

use std::num::NonZeroU8;

use leyden_device::{BlockDevice, Command, Config, Hint, Lba, NoData, Ssd, Stats};
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::place::PlacementConfig;
use leyden_sim::{Bytes, Ratio, Rng};

fn config(victim: &str, placement: &str) -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 512;
    config.nand.pages_per_block = 32;
    config.ftl.over_provisioning = Ratio::from_percent(12);
    config.ftl.gc.victim = VictimConfig::by_name(victim).unwrap();
    config.ftl.placement = PlacementConfig::by_name(placement).unwrap();
    config.buffer.size = Bytes::new(512 << 10);
    config
}

/// Write amplification between two moments.
fn waf_between(before: &Stats, after: &Stats) -> f64 {
    let copied = after.ftl.gc.copied_units - before.ftl.gc.copied_units;
    1.0 + copied as f64 / (after.ftl.user_units - before.ftl.user_units) as f64
}

/// Write amplification when 90 % of the writes go to 10 % of the space.
fn waf(victim: &str, placement: &str) -> f64 {
    let config = config(victim, placement);
    let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
    ssd.set_untimed(true);
    let units = u64::from(ssd.mapping_units());
    let mut rng = Rng::new(1, "policies");
    let mut done = Vec::new();
    let mut before = ssd.stats();
    for i in 0..units * 10 {
        if i == units * 6 {
            before = ssd.stats();
        }
        let hot = rng.chance(Ratio::from_percent(90));
        let unit = if hot { rng.below(units / 10) } else { rng.below(units) };
        ssd.submit(ssd.now(), Command::write(Lba(unit * 8), 8, ()));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
        done.clear();
    }
    ssd.check();
    waf_between(&before, &ssd.stats())
}

/// The same when a database writes its checkpoints: pages become dirty and are announced, in any order,
/// half of them in a quarter of the space; by the next checkpoint they are written, in order.
fn waf_of_checkpoints(victim: &str) -> f64 {
    let mut config = config(victim, "dac");
    config.ftl.zombie_block = victim.starts_with('z');
    let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
    let units = u64::from(ssd.mapping_units());
    let mut rng = Rng::new(2, "policies");
    let mut done = Vec::new();
    let mut write = |ssd: &mut Ssd<NoData>, unit: u64, hint| {
        let command = Command::write(Lba(unit * 8), 8, ());
        ssd.submit(ssd.now(), command.hint(hint));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
        done.clear();
    };
    (0..units).for_each(|unit| write(&mut ssd, unit, None));
    let mut dirty: Vec<u64> = Vec::new();
    let mut before = ssd.stats();
    for checkpoint in 0..40 {
        if checkpoint == 20 {
            before = ssd.stats();
        }
        let mut next: Vec<u64> = Vec::new();
        dirty.sort_unstable();
        dirty.dedup();
        for n in 0..units / 4 {
            let unit = if rng.chance(Ratio::from_percent(50)) {
                rng.below(units / 4)
            } else {
                rng.below(units)
            };
            next.push(unit);
            let hint = Hint::new(unit as u32, NonZeroU8::MIN);
            match dirty.get(n as usize) {
                Some(&page) => write(&mut ssd, page, Some(hint)),
                None => ssd.announce(ssd.now(), hint),
            }
        }
        dirty = next;
    }
    ssd.check();
    waf_between(&before, &ssd.stats())
}

#[test]
fn knowing_by_when_the_host_writes_what_it_announced_pays() {
    let [blind, looking, knowing] =
        ["cost_benefit", "z_cost_benefit", "z_deadline"].map(waf_of_checkpoints);
    println!("cost-benefit {blind:.3}, z-cost-benefit {looking:.3}, z-deadline {knowing:.3}");
    assert!(knowing < looking * 0.99 && looking < blind * 0.9);
}

#[test]
fn hot_and_cold_apart_and_patience_with_the_hot() {
    let greedy = waf("greedy", "single");
    let cost_benefit = waf("cost_benefit", "single");
    let greedy_dac = waf("greedy", "dac");
    let both = waf("cost_benefit", "dac");
    println!(
        "greedy {greedy:.3}, cost-benefit {cost_benefit:.3}, with dac {greedy_dac:.3} {both:.3}"
    );
    assert!(cost_benefit < greedy * 0.95, "cost-benefit {cost_benefit} against greedy {greedy}");
    assert!(greedy_dac < greedy * 0.85, "dac {greedy_dac} against single {greedy}");
    assert!(both < cost_benefit, "dac {both} against single {cost_benefit}");
}
