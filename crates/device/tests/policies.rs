//! The policies do what they are for: on skewed writes, keeping hot and cold apart pays, and so does
//! leaving hot blocks alone until they have cooled.

#![expect(clippy::print_stdout, reason = "shows what was measured, with --nocapture")]

use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Op, Ssd};
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::place::PlacementConfig;
use leyden_sim::{Bytes, Ratio, Rng};

/// Write amplification when 90 % of the writes go to 10 % of the space.
fn waf(victim: &str, placement: &str) -> f64 {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 512;
    config.nand.pages_per_block = 32;
    config.ftl.over_provisioning = Ratio::from_percent(12);
    config.ftl.gc.victim = VictimConfig::by_name(victim).unwrap();
    config.ftl.placement = PlacementConfig::by_name(placement).unwrap();
    config.buffer.size = Bytes::new(512 << 10);
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
        ssd.submit(ssd.now(), Command::new(Op::Write, Lba(unit * 8), 8));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
        done.clear();
    }
    ssd.check();
    let after = ssd.stats();
    let copied = after.gc_copied_units - before.gc_copied_units;
    1.0 + copied as f64 / (after.user_units - before.user_units) as f64
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
