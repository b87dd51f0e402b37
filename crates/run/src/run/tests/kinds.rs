//! Features that every kind of drive has.

use super::*;
use crate::run::{Follow, Wanted, follow};
use leyden_record::Lifetime;
use leyden_sim::Span;

/// A zoned drive of 24 zones.
const ZONED: &str = "
    device.nand = { channels = 2, dies_per_channel = 2, blocks_per_plane = 64, pages_per_block = 16 }
    device.zoned = { zone_size = \"512 KiB\", dies_per_zone = 2, max_open = 6, max_active = 8 }
    device.buffer = { region = \"selective\", size = \"1 MiB\", protected_size = \"256 KiB\" }
    device.power.dump = \"balanced\"

    [[workload.zone_job]]
    streams = 3
    zones = 8
    block_size = \"16 KiB\"
    queue_depth = 4
    flush_every = 7
    requests = 1500
";

fn of_each_kind() -> [(&'static str, String); 3] {
    let job = "
    [[workload.job]]
    read_share = \"30 %\"
    queue_depth = 4
    requests = 1500
";
    [
        ("conventional", format!("{DRIVE}{job}")),
        ("zoned", ZONED.to_owned()),
        ("zoned block", zoned_block::LAYERED.to_owned()),
    ]
}

/// Drives on their own have nothing to do, and can be looked at.
#[test]
fn every_bundled_scenario_and_drive_can_be_checked() {
    for (path, _) in leyden_config::bundled::SCENARIOS {
        let name = leyden_config::bundled::name(path);
        // These take gigabytes of memory.
        if name.ends_with("1tib") {
            continue;
        }
        let scenario = Loaded::new(name, &[]).unwrap().scenario;
        if let Err(error) = validate(&scenario) {
            panic!("{name}: {error}");
        }
    }
}

/// Keys that a drive of some kind has no use for, one of each layer.
#[test]
fn settings_without_effect_are_refused_with_their_key() {
    let refused = |file: &str, set: &str| {
        let error = Loaded::new(file, &[set.parse().unwrap()]).map(|_| set.to_owned());
        error.unwrap_err().to_string()
    };
    for set in [
        "device.ftl.gc.victim=fifo",
        "device.ftl.over_provisioning=28 %",
        "device.ftl.zombie_block=true",
        "device.ftl.placement=dac",
        "device.ftl.map.protection=none",
        "device.ftl.log_stream=hinted",
        "device.buffer.schedule=hexa",
    ] {
        let key = set.split('=').next().unwrap();
        for file in ["selective-plp/fillseq", "journal-zones/once-xfs"] {
            let error = refused(file, set);
            assert!(error.contains(key) && error.contains("no effect"), "{file}: {error}");
        }
    }
    for set in [
        "precondition.distribution=workload",
        "precondition.rest=unwritten",
        "precondition.tolerance=2 %",
        "precondition.max_passes=10",
        "precondition.settle=3 %",
    ] {
        let error = refused("selective-plp/fillseq", set);
        let key = set.split('=').next().unwrap();
        assert!(error.contains(key) && error.contains("no effect"), "{error}");
    }
    for store in ["selective-plp/fillseq", "selective-plp/fillseq-recorded"] {
        let error = refused(store, "run.ramp.requests=5");
        assert!(error.contains("run.ramp") && error.contains("first put"), "{error}");
    }
    let error = refused("tpcc", "device.buffer.zones.schedule=fullest");
    assert!(error.contains("device.buffer.zones.schedule"), "{error}");
}

#[test]
fn a_timeline_is_drawn_of_every_kind() {
    for (kind, text) in of_each_kind() {
        let scenario = loaded(&text, &[]);
        let ask = Follow { wanted: Wanted::Any, before: Span::from_us(50), after: Span::ZERO };
        let followed = follow(&scenario, ask, &mut Hooks::default()).unwrap();
        let timeline = followed.timeline;
        assert!(timeline.slow.is_some() && !timeline.commands.is_empty(), "{kind}");
        assert!(!timeline.operations.is_empty() && !timeline.levels.is_empty(), "{kind}");
        let drive = followed.record.drive.unwrap();
        let beyond = timeline.operations.iter().find(|it| it.die >= drive.dies);
        assert_eq!(beyond, None, "{kind}");
        assert!(timeline.operations.iter().all(|it| it.channel < drive.channels), "{kind}");
    }
}

#[test]
fn missing_measurements_are_named() {
    let scenario = loaded(ZONED, &["workload.zone_job.0.flush_every=0"]);
    let ask = |wanted| {
        let ask = Follow { wanted, before: Span::ZERO, after: Span::ZERO };
        follow(&scenario, ask, &mut Hooks::default()).unwrap_err().to_string()
    };
    let error = ask(Wanted::Flush);
    assert!(error.contains("no flush was measured"), "{error}");
    let error = ask(Wanted::Read);
    assert!(error.contains("no read was measured"), "{error}");
}

#[test]
fn every_kind_has_a_lifetime() {
    for (kind, text) in of_each_kind() {
        let record = record(&loaded(&text, &[]));
        let drive = record.drive.as_ref().unwrap();
        assert!(drive.flash_bytes > drive.capacity_bytes, "{kind}: {drive:?}");
        let life = Lifetime::of(&record, 3_000, 5.0).unwrap();
        assert!(life.years > 0.0 && life.waf > 0.0, "{kind}: {life:?}");
    }
}

#[test]
fn work_is_repeated_on_every_kind_and_the_last_time_is_measured() {
    for (kind, text) in of_each_kind() {
        // A steady drive has a ramp, unless it is used over and over.
        let no_ramp: &[&str] = if text.contains("steady") { &["run.ramp.settle=0 %"] } else { &[] };
        let once = record(&loaded(&text, no_ramp));
        let record = record(&loaded(&text, &["run.repeat=3"]));
        let repetitions = &record.steadiness.repetitions;
        assert_eq!(repetitions.len(), 3, "{kind}");
        assert_eq!(record.host.errors, 0, "{kind}");
        let host = |record: &RunRecord| record.host.writes + record.host.reads;
        assert_eq!(host(&record), host(&once), "{kind}");
        let same = (repetitions[0].iops - once.host.iops).abs() < 1e-6;
        assert!(same, "{kind}: the first is the run alone");
        assert_ne!(record.sim.digest, once.sim.digest, "{kind}: the drive is used");
    }
}

/// Each run counts what it did, and not what was before it.
#[test]
fn zones_of_a_repetition_are_counted_from_its_beginning() {
    let resets = |sets: &[&str]| record(&loaded(ZONED, sets)).zones.unwrap().resets;
    assert_eq!(resets(&["run.repeat=3"]), resets(&[]));
    assert_eq!(resets(&["precondition.kind=fill"]), resets(&[]));
}

#[test]
fn filling_a_zoned_drive_wears_every_block_once() {
    let wear = |sets: &[&str]| record(&loaded(ZONED, sets)).wear;
    let (used, new) = (wear(&["precondition.kind=fill"]), wear(&[]));
    // Blocks that are kept back for dumps apart.
    assert!(used.mean > new.mean + 0.8 && used.max <= new.max + 2, "{used:?} {new:?}");
    let error = Loaded::new("devices/zns", &["precondition.kind=steady".parse::<Set>().unwrap()]);
    assert!(error.unwrap_err().to_string().contains("has none"));
}

#[test]
fn a_zoned_drive_is_kept_in_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("aged");
    let with = |more: &[&str]| {
        let mut scenario = loaded(ZONED, &[&["precondition.kind=fill"], more].concat());
        scenario.precondition.snapshot_file = Some(path.clone());
        record(&scenario)
    };
    let made = with(&[]);
    assert!(path.is_file());
    let kept = std::fs::read(&path).unwrap();
    assert_eq!(with(&[]).sim.digest, made.sim.digest);
    assert_eq!(std::fs::read(&path).unwrap(), kept, "it was loaded, and not made again");
    let other = with(&["seed=2"]);
    assert_ne!(std::fs::read(&path).unwrap(), kept);
    assert_eq!(
        record(&loaded(ZONED, &["precondition.kind=fill", "seed=2"])).sim.digest,
        other.sim.digest
    );
}
