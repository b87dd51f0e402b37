//! Steady states that are drawn, against those that are reached.

use leyden_device::{BlockDevice, Command, Config, Lba, Status};
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::map::ProtectionConfig;
use leyden_sim::{Bytes, Ratio, Rng};
use proptest::prelude::*;

use super::super::sampled::draw;
use super::*;

/// The victim policies whose steady state is known.
const KNOWN: [&str; 3] = ["greedy", "fifo", "d_choices"];

/// A drive of 1 GiB on four dies, which is written over twice.
fn large(kind: &str, victim: &str, over_provisioning: &str) -> Scenario {
    let job = "
        [[workload.job]]
        queue_depth = 32
        requests = 500000
    ";
    let sets = [
        &format!("precondition.kind={kind}"),
        &format!("device.ftl.gc.victim={victim}"),
        &format!("device.ftl.over_provisioning={over_provisioning} %"),
        "device.nand.blocks_per_plane=512",
        "run.stamps=false",
        "run.ramp.requests=100000",
    ];
    loaded(&format!("{DRIVE}{job}"), &sets)
}

/// The drive as its run begins.
fn prepared(scenario: &Scenario) -> Ssd<NoData> {
    prepare(scenario, &mut Hooks::default()).unwrap().0
}

#[test]
fn the_write_amplification_is_that_of_a_state_that_was_reached() {
    for victim in KNOWN {
        for over_provisioning in ["7", "12", "28", "50"] {
            let waf = |kind| record(&large(kind, victim, over_provisioning)).flash.waf;
            let (drawn, reached) = (waf("sampled"), waf("steady"));
            let error = drawn / reached - 1.0;
            assert!(error.abs() < 0.015, "{victim} at {over_provisioning} %: {drawn}, {reached}");
        }
    }
}

/// The distance between the two distributions of valid units: how many units the blocks of the one would
/// have to gain or lose, on average, to be those of the other.
#[test]
fn blocks_hold_what_those_of_a_state_that_was_reached_do() {
    for victim in KNOWN {
        let sorted = |kind| {
            let ssd = prepared(&large(kind, victim, "28"));
            let mut valid: Vec<u32> = ssd.closed_blocks().collect();
            valid.sort_unstable();
            valid
        };
        let (drawn, reached) = (sorted("sampled"), sorted("steady"));
        let blocks = drawn.len().min(reached.len());
        let at = |valid: &[u32], block: usize| f64::from(valid[block * valid.len() / blocks]);
        let distance = (0..blocks).map(|block| (at(&drawn, block) - at(&reached, block)).abs());
        let distance = distance.sum::<f64>() / blocks as f64;
        assert!(distance < 1.5, "{victim}: {distance} of 128 units");
    }
}

#[test]
fn the_same_seed_draws_the_same_drive() {
    let digest = |sets: &[&str]| {
        let sets = [&["precondition.kind=sampled"], sets].concat();
        record(&small(&sets)).sim.digest
    };
    let first = digest(&[]);
    assert_eq!(digest(&[]), first);
    assert_ne!(digest(&["seed=2"]), first);
    assert_eq!(digest(&["run.stamps=false"]), first, "what was drawn reads as never written");
    let folder = tempfile::tempdir().unwrap();
    let set = format!("precondition.snapshot={}", folder.path().join("drive").display());
    assert_eq!((digest(&[&set]), digest(&[&set])), (first.clone(), first));
}

#[test]
fn drawn_drives_survive_power_cuts() {
    for protection in ["full", "partial", "journal", "none"] {
        let protection = format!("device.ftl.map.protection={protection}");
        let sets = ["precondition.kind=sampled", "device.nand.blocks_per_plane=48", &protection];
        let scenario = small(&[&POWER[..], &sets, &[CUTS]].concat());
        let power = record(&scenario).power.unwrap();
        assert_eq!((power.cuts, power.lost_promised_writes), (3, 0), "{protection}");
    }
}

#[test]
fn without_theory_there_is_nothing_to_draw() {
    let refused = [
        "device.ftl.gc.victim=cost_benefit",
        "device.ftl.placement=dac",
        "device.ftl.zombie_block=true",
        "precondition.distribution=workload",
    ];
    for set in refused {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("small.toml");
        std::fs::write(&file, format!("{DRIVE}\n[[workload.job]]\nrequests = 1")).unwrap();
        let sets: Vec<Set> =
            ["precondition.kind=sampled", set].iter().map(|set| set.parse().unwrap()).collect();
        let error = Loaded::new(file.to_str().unwrap(), &sets).unwrap_err().to_string();
        let (key, _) = set.split_once('=').unwrap();
        let names_both = error.contains("`precondition.kind`") && error.contains(key);
        assert!(names_both && error.contains("set precondition.kind = \"steady\""), "{error}");
    }
}

#[test]
fn too_many_bad_blocks_leave_no_room() {
    let set = "device.nand.faults.factory_bad_blocks=30 %";
    let scenario = small(&["precondition.kind=sampled", set]);
    let error = run(&scenario, &mut Hooks::default()).unwrap_err();
    assert!(matches!(&error, RunError::Precondition(_)), "{error}");
}

/// Any drive, and how many of its units can be addressed, of a thousand.
fn setups() -> impl Strategy<Value = (Config, u64)> {
    let shape = (1_u32..4, 1_u32..3, 8_u32..40, 2_u32..20, 0_u32..3);
    let policies = (0..KNOWN.len(), any::<u64>().prop_map(ProtectionConfig::drawn));
    let rest = (1_u32..9, 0_u32..3, 0_u32..4, prop_oneof![Just(0_u64), Just(50_000)]);
    (shape, policies, rest, 1_u64..1000).prop_map(
        |(
            (channels, dies, blocks, pages, page),
            (victim, protection),
            (entries, hard, more, bad),
            share,
        )| {
            let mut config = Config::default();
            config.nand.channels = channels;
            config.nand.dies_per_channel = dies;
            config.nand.blocks_per_plane =
                blocks + if matches!(protection, ProtectionConfig::Full(_)) { 0 } else { 10 };
            config.nand.pages_per_block = pages;
            config.nand.page_size = Bytes::new(4096 << page);
            config.nand.faults.factory_bad_blocks = Ratio::from_ppm(bad);
            config.ftl.gc.victim = VictimConfig::by_name(KNOWN[victim]).unwrap();
            config.ftl.gc.hard_free_blocks = hard;
            config.ftl.gc.soft_free_blocks = hard + more;
            config.ftl.map.protection = protection;
            config.ftl.map.entries_per_page = Some(4 * entries);
            config.buffer.size = Bytes::new((4096 << page) * 8);
            let units = u64::from(channels * dies * blocks * pages) << page;
            config.ftl.capacity = Some(Bytes::new((units * share / 1000).max(1) * 4096));
            (config, bad)
        },
    )
}

/// Writes `count` units anywhere; false if the drive has no room left.
fn write(ssd: &mut Ssd<NoData>, count: u64) -> bool {
    let (mut rng, mut done) = (Rng::new(1, "write"), Vec::new());
    for _ in 0..count {
        let unit = rng.below(u64::from(ssd.mapping_units()));
        let command = Command::write(Lba(unit * 8), 8, ());
        ssd.submit(ssd.now(), command);
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
    }
    done.iter().all(|completion| completion.status == Status::Success)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each drawn drive is consistent, and works like one that was written.
    #[test]
    fn drawn_states_are_drives((device, bad) in setups(), seed: u64) {
        let Ok(mut ssd) = Ssd::<NoData>::new(&device, seed) else { return Ok(()) };
        let drawn = draw(&mut ssd, &Scenario { seed, device, ..Scenario::default() });
        // A drive with hardly any spare has no such state, and says so.
        prop_assume!(drawn.is_ok());
        ssd.check();
        ssd.set_untimed(true);
        let count = 2 * u64::from(ssd.mapping_units()).min(4_000);
        prop_assert!(write(&mut ssd, count) || bad > 0);
        ssd.check();
    }
}
