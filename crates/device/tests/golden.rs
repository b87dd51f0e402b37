//! Same inputs, same bytes: on every machine, in every build profile.
//!
//! The digests below were recorded once. A change here is a change of behaviour: say in the commit
//! what changed and why.

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Config, Lba, Op, Ssd, Stamp};
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::place::PlacementConfig;
use leyden_sim::{Bytes, Ratio, Rng};

fn digest(victim: &str, placement: &str, region: Region) -> String {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 4;
    config.nand.blocks_per_plane = 24;
    config.nand.pages_per_block = 16;
    config.nand.faults.program_failures = Ratio::from_ppm(200);
    config.ftl.over_provisioning = Ratio::from_percent(35);
    config.ftl.gc.victim = VictimConfig::by_name(victim).unwrap();
    config.ftl.placement = PlacementConfig::by_name(placement).unwrap();
    config.buffer.region = region;
    config.buffer.size = Bytes::new(1 << 20);
    let mut ssd = Ssd::<Stamp>::new(&config, 3).unwrap();
    let units = u64::from(ssd.mapping_units());
    let mut rng = Rng::new(3, "golden");
    let mut done = Vec::new();
    let mut next = |tag: u64| {
        let op =
            [Op::Read, Op::Write, Op::Write, Op::Write, Op::Trim, Op::Flush][rng.below(6) as usize];
        let lba = Lba(rng.below(units - 4) * 8 + rng.below(2) * 3);
        let fua = rng.below(9) == 0;
        Command::new(op, lba, 1 + rng.below(20) as u32, tag).fua(fua)
    };
    for tag in 0..8 {
        ssd.submit(ssd.now(), next(tag));
    }
    let mut tag = 8;
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
        for completion in done.drain(..) {
            if tag < 40_000 {
                ssd.submit(completion.time, next(tag));
                tag += 1;
            }
        }
    }
    ssd.check();
    ssd.digest().to_string()
}

#[test]
fn digests_are_those_recorded() {
    let cases = [
        ("greedy", "single", Region::Full, "de473c20e20506d1"),
        ("greedy", "dac", Region::None, "6bc68ecdb2f96fe5"),
        ("cost_benefit", "dac", Region::Full, "7ca170a4c65dcff1"),
        ("fifo", "single", Region::None, "0b8d7cf7ad7637b3"),
    ];
    let measured: Vec<_> = cases.iter().map(|&(v, p, r, _)| digest(v, p, r)).collect();
    let recorded: Vec<_> = cases.iter().map(|&(.., digest)| digest).collect();
    assert_eq!(measured, recorded);
}
