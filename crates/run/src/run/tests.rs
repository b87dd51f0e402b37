//! Whole runs on small drives.

use std::sync::atomic::Ordering;

use leyden_device::{NoData, Ssd, Stamp};

use super::*;
use leyden_config::{Loaded, Set};

mod cyclic;
mod faults;
mod kinds;
mod load;
mod many;
mod sampled;
mod scale;
mod stacks;
mod steady;
mod wear;
mod zoned_block;
mod zones;

/// A drive of 64 MiB in two channels.
const DRIVE: &str = "
    device.nand = { channels = 2, dies_per_channel = 2, blocks_per_plane = 32, pages_per_block = 64 }
    device.buffer.size = \"1 MiB\"
    device.ftl.over_provisioning = \"28 %\"
    precondition.kind = \"steady\"
";

/// It, under random writes.
fn small(sets: &[&str]) -> Scenario {
    let job = "
        [[workload.job]]
        queue_depth = 8
        requests = 20000
        read_share = \"30 %\"
    ";
    loaded(&format!("{DRIVE}{job}"), sets)
}

fn loaded(text: &str, sets: &[&str]) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    std::fs::write(&file, text).unwrap();
    let sets: Vec<Set> = sets.iter().map(|set| set.parse().unwrap()).collect();
    match Loaded::new(file.to_str().unwrap(), &sets) {
        Ok(loaded) => loaded.scenario,
        Err(error) => panic!("{error}"),
    }
}

/// Its warnings, but for that of few blocks, which holds for all of these drives.
fn warned(record: &RunRecord) -> Vec<&str> {
    let told = record.warnings.iter().map(String::as_str);
    told.filter(|warning| !warning.contains("spare blocks of each die")).collect()
}

fn record(scenario: &Scenario) -> RunRecord {
    let record = run(scenario, &mut Hooks::default()).unwrap().record;
    let mut warnings = record.warnings.clone();
    warnings.sort_unstable();
    warnings.dedup();
    assert_eq!(warnings.len(), record.warnings.len(), "a warning twice: {:?}", record.warnings);
    record
}

#[test]
fn a_run_fills_its_record() {
    let record = record(&small(&[]));
    // Those that were outstanding when the drive had settled complete in the measured part.
    assert!((20_000..=20_008).contains(&(record.host.reads + record.host.writes)));
    assert_eq!(record.host.errors, 0);
    assert!(record.flash.waf > 1.2, "collection is at work: {}", record.flash.waf);
    assert!(record.gc.collections > 0 && record.gc.policy == "greedy");
    assert_eq!(record.wear.histogram.iter().map(|(_, blocks)| blocks).sum::<u64>(), 128);
    assert!(record.wear.min > 0 && record.wear.mean <= record.wear.max as f64);
    assert!(record.sim.peak_rss_mib > 0.0 && record.sim.bytes_per_mapping_unit > 0.0);
    assert_eq!((record.name.as_str(), record.seed), ("small", 1));
    assert_eq!(warned(&record), [""; 0]);
    assert_eq!(record.warnings.len(), 1, "the drive has few blocks: {:?}", record.warnings);
}

#[test]
fn the_digest_depends_on_the_scenario_and_on_nothing_else() {
    let scenario = small(&[]);
    let digest = record(&scenario).sim.digest;
    assert_eq!(record(&scenario).sim.digest, digest);
    assert_ne!(record(&small(&["seed=2"])).sim.digest, digest);
    // Verifying content changes nothing of what happens; neither does being watched.
    assert_eq!(record(&small(&["run.stamps=false"])).sim.digest, digest);
    let mut calls = 0;
    let mut progress = |_, _| calls += 1;
    let mut hooks = Hooks { progress: Some(&mut progress), ..Hooks::default() };
    assert_eq!(run(&scenario, &mut hooks).unwrap().record.sim.digest, digest);
    assert!(calls > 2);
}

#[test]
fn preconditioning_leaves_the_state_it_names() {
    let fresh = record(&small(&["precondition.kind=none"]));
    let filled = record(&small(&["precondition.kind=fill"]));
    let steady = record(&small(&[]));
    let own = record(&small(&["precondition.distribution=workload"]));
    assert!(fresh.flash.reads.host < filled.flash.reads.host, "reads of nothing cost nothing");
    assert!(filled.flash.waf < steady.flash.waf);
    assert!((own.flash.waf / steady.flash.waf - 1.0).abs() < 0.05);
}

#[test]
fn a_workload_that_cannot_be_repeated_is_refused() {
    let scenario = small(&["precondition.distribution=workload", "workload.job.0.read_share=1"]);
    let error = run(&scenario, &mut Hooks::default()).unwrap_err();
    assert!(error.to_string().contains("`precondition.distribution`"), "{error}");
    let mut empty = small(&[]);
    empty.workload.job.clear();
    let error = run(&empty, &mut Hooks::default()).unwrap_err();
    assert!(error.to_string().contains("nothing to do"), "{error}");
    let scenario = small(&["workload.job.0.queue_depth=0"]);
    let error = run(&scenario, &mut Hooks::default()).unwrap_err();
    assert!(error.to_string().contains("`workload.job.0.queue_depth`"), "{error}");
}

#[test]
fn cancelling_keeps_what_was_measured() {
    let cancel = AtomicBool::new(false);
    let mut progress = |phase, _| {
        if phase == Phase::Running {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let mut hooks =
        Hooks { cancel: Some(&cancel), progress: Some(&mut progress), ..Hooks::default() };
    let scenario = small(&["workload.job.0.requests=1000000"]);
    let outcome = run(&scenario, &mut hooks).unwrap();
    assert!(outcome.interrupted);
    assert!(outcome.record.host.writes < 1_000_000);
    let cancelled = AtomicBool::new(true);
    let mut hooks = Hooks { cancel: Some(&cancelled), ..Hooks::default() };
    assert!(matches!(run(&scenario, &mut hooks), Err(RunError::Interrupted)));
}

#[test]
fn a_snapshot_stands_for_the_preconditioning_that_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.snapshot");
    let set = format!("precondition.snapshot={}", path.display());
    let digest = record(&small(&[])).sim.digest;
    for _ in 0..2 {
        assert_eq!(record(&small(&[&set])).sim.digest, digest);
    }
    let made = std::fs::read(&path).unwrap();
    // Another drive's snapshot is of no use: it is made again.
    let other = ["device.nand.read=61us", set.as_str()];
    assert_eq!(record(&small(&other)).sim.digest, record(&small(&other[..1])).sim.digest);
    assert_ne!(std::fs::read(&path).unwrap(), made);

    std::fs::write(&path, &made[..made.len() - 9]).unwrap();
    let error = run(&small(&[&set]), &mut Hooks::default()).unwrap_err();
    assert!(error.to_string().contains("made again"), "{error}");
    // A file that is not a snapshot is never replaced.
    std::fs::write(&path, "thesis").unwrap();
    let error = run(&small(&[&set]), &mut Hooks::default()).unwrap_err();
    assert!(error.to_string().contains("no snapshot"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"thesis");
}

#[test]
fn a_drive_with_capacitors_says_what_cuts_cost_and_comes_back_from_one() {
    let plain = record(&small(&[]));
    assert!(plain.power.is_none() && plain.recovery.is_none());
    let full =
        record(&small(&["device.power.base_power=2 W", "device.ftl.over_provisioning=40 %"]));
    let (power, recovery) = (full.power.unwrap(), full.recovery.unwrap());
    assert_eq!((power.cuts, power.lost_promised_writes), (1, 0));
    assert!(power.moments > 100, "{power:?}");
    assert!(power.promised_bytes_peak > 0 && power.promised_bytes_peak <= 1 << 20);
    assert!(power.energy_mj.p50 > 0.0 && power.energy_mj.max <= power.worst.energy_mj);
    assert!(power.dump_ms.max <= power.worst.dump_ms && power.parts <= power.worst.parts);
    assert_eq!((power.bank.parts, power.bank.shortfall_mj), (power.worst.parts, 0.0));
    assert!(full.flash.programs.dump > 0);
    assert_eq!(full.flash.reads.recovery, recovery.pages_scanned);
    assert_eq!(recovery.steps.iter().map(|step| step.pages).sum::<u64>(), recovery.pages_scanned);
    assert!(recovery.time_ms.max >= recovery.scan_ms.max && recovery.scan_ms.max > 0.0);
    assert!(power.with_less.is_empty());
}

#[test]
fn looking_at_cuts_changes_nothing_of_what_happens() {
    // Twice as much energy moves no moment, but asks of each what a smaller bank would lose.
    let scenario = small(&["device.power.base_power=2 W", "device.ftl.over_provisioning=40 %"]);
    let banks = [Energy::from_uj(20_000)];
    let bounds = Bounds { banks: &banks, ..Bounds::default() };
    let asked = run_within(&scenario, &mut Hooks::default(), bounds).unwrap().record;
    assert_eq!(asked.sim.digest, record(&scenario).sim.digest);
    let less = asked.power.unwrap().with_less;
    assert!(less[0].lost_bytes_max > 0 && less[0].losing > 0.0, "{less:?}");
}

#[test]
fn a_limit_ends_a_run_with_commands_outstanding() {
    let scenario = small(&["device.power.base_power=2 W", "device.ftl.over_provisioning=40 %"]);
    let bounds = Bounds { limit: Some(3_000), ..Bounds::default() };
    let outcome = run_within(&scenario, &mut Hooks::default(), bounds).unwrap();
    let commands = outcome.record.host.reads + outcome.record.host.writes;
    assert!((3_000..10_000).contains(&commands) && !outcome.interrupted, "{commands}");
    assert_eq!(outcome.record.power.unwrap().lost_promised_writes, 0);
}

/// Three cuts, the last of them while the drive recovers from the one before.
const CUTS: &str = r#"run.cut=[{at="5 ms"}, {at="400 ms", off="1 ms"}, {at="401.1 ms"}]"#;
const POWER: [&str; 2] = ["device.power.base_power=2 W", "device.ftl.over_provisioning=40 %"];

#[test]
fn cuts_are_made_when_they_are_listed() {
    let scenario = small(&[POWER[0], POWER[1], CUTS]);
    let record = record(&scenario);
    let (power, recovery) = (record.power.unwrap(), record.recovery.unwrap());
    assert_eq!((power.cuts, power.made.len(), power.lost_promised_writes), (3, 3, 0));
    // A command that was cut off never completes, and none is submitted twice.
    assert!(power.commands_cut_off > 0 && power.commands_cut_off <= 3 * 8);
    let ended = record.host.reads + record.host.writes;
    assert_eq!(ended + power.commands_cut_off, 20_000);
    assert_eq!(record.host.errors, 0);
    let at: Vec<f64> = power.made.iter().map(|cut| cut.at_s).collect();
    assert_eq!(at, [0.005, 0.4, 0.4011]);
    let [first, second, third] = &power.made[..] else { panic!("three cuts") };
    assert!(first.promised_bytes > 0 && first.map_pages > 0 && first.dump_ms > 0.0);
    assert!(!second.during_recovery && second.ready_ms.is_none(), "{second:?}");
    assert!(third.during_recovery && third.dump_ms == 0.0 && third.ready_ms.is_some(), "{third:?}");
    // The figures are of the two dumps; those of the moments stand beside them.
    let figures = vec![power.energy_mj.max, power.dump_ms.p50, recovery.time_ms.max];
    let longest = first.ready_ms.unwrap().max(third.ready_ms.unwrap());
    let costliest = first.energy_mj.max(second.energy_mj);
    assert_eq!(figures, [costliest, first.dump_ms.min(second.dump_ms), longest]);
    assert!(power.sampled.unwrap().energy_mj.max > 0.0 && power.moments > 0);
    let pages: u64 = power.made.iter().map(|cut| cut.pages_scanned).sum();
    assert_eq!((recovery.pages_scanned, record.flash.reads.recovery), (pages, pages));
    assert!(record.flash.programs.dump > 0);
}

#[test]
fn verifying_over_cuts_changes_nothing_of_what_happens() {
    let digest = |sets: &[&str]| record(&small(&[&POWER[..], &[CUTS], sets].concat())).sim.digest;
    assert_eq!(digest(&[]), digest(&["run.stamps=false"]));
    assert_eq!(digest(&[]), digest(&[]));
    assert_ne!(digest(&[]), record(&small(&POWER)).sim.digest);
}

#[test]
fn losses_with_a_small_bank_are_found() {
    let less =
        [CUTS, "device.power.bank.capacitance=100 uF", "device.power.allow_underprovisioned=true"];
    let sets = [&POWER[..], &less].concat();
    let found = record(&small(&sets)).power.unwrap();
    let said = record(&small(&[&sets[..], &["run.stamps=false"]].concat())).power.unwrap();
    assert!(found.lost_promised_writes > 0, "{found:?}");
    // At the first cut, the buffer still holds units of preconditioning, which read like zeroes. And the
    // drive also names what was not promised yet: the data of commands that were outstanding.
    let lost = |power: &leyden_record::Power| -> Vec<u64> {
        power.made.iter().map(|cut| cut.lost_promised_writes).collect()
    };
    let (found_at, said_at) = (lost(&found), lost(&said));
    assert!(0 < found_at[0] && found_at[0] < said_at[0], "{found_at:?} {said_at:?}");
    assert!((said_at[1] - 8..=said_at[1]).contains(&found_at[1]), "{found_at:?} {said_at:?}");
    assert_eq!((found_at[2], said_at[2]), (0, 0), "nothing was left to lose");
    assert_eq!(found.dump_ms, said.dump_ms);
}

#[test]
fn an_unprotected_buffer_keeps_what_was_flushed() {
    let sets = ["device.buffer.region=none", "workload.job.0.fsync_every=50", CUTS];
    let record = record(&small(&[&POWER[..], &sets].concat()));
    assert!(record.host.flushes > 0);
    assert_eq!(record.power.unwrap().lost_promised_writes, 0);
}

#[test]
fn a_cut_after_the_end_costs_no_results() {
    let with = |cuts: &'static str| record(&small(&[POWER[0], POWER[1], cuts]));
    let late = with(r#"run.cut=[{at="5 ms"}, {at="1 h"}, {at="2 h"}]"#);
    let warned = &late.warnings[0];
    for part in ["2 power cuts were not made, from run.cut.1 on", "work was done", "cut earlier"] {
        assert!(warned.contains(part), "{warned}");
    }
    let made = with(r#"run.cut=[{at="5 ms"}]"#);
    assert_eq!((late.sim.digest, late.power), (made.sim.digest, made.power));
    let none = with(r#"run.cut=[{at="1 h"}]"#);
    let power = none.power.unwrap();
    assert_eq!((power.cuts, power.made.len()), (0, 0));
    assert!(power.energy_mj.max > 0.0 && power.moments > 0, "{power:?}");
}

/// The memory of a large drive is estimated from small ones, for each kind of mapping table, and
/// equals that of a drive that is built.
#[test]
fn memory_is_reckoned_without_building_the_drive() {
    for sets in [
        &[][..],
        &["run.stamps=false"],
        &["device.ftl.over_provisioning=7%"],
        &["device.ftl.over_provisioning=0%", "device.ftl.capacity=2 GiB"],
        &["device.ftl.map.protection=journal", "device.power={}"],
    ] {
        let sets = [&["device.nand.blocks_per_plane=1500"][..], sets].concat();
        let scenario = small(&sets);
        let built = if scenario.run.stamps {
            let ssd = Ssd::<Stamp>::new(&scenario.device, 1).unwrap();
            ssd.memory_bytes() + 8 * u64::from(ssd.mapping_units())
        } else {
            Ssd::<NoData>::new(&scenario.device, 1).unwrap().memory_bytes()
        };
        let reckoned = memory::needs_bytes(&scenario);
        let error = reckoned.abs_diff(built) as f64 / built as f64;
        assert!(error < 0.03, "{sets:?}: {reckoned} for {built}");
    }
    // 4 TiB: at once, and in little memory.
    let huge = small(&[
        "device.nand.blocks_per_plane=1048576",
        "device.nand.pages_per_block=256",
        "device.ftl.mapping_unit=16 KiB",
        "device.nand.page_size=16 KiB",
    ]);
    assert!(memory::needs_bytes(&huge) > 2 << 30);
}

#[test]
fn a_buffer_larger_than_the_flash_is_refused() {
    let wrong = |set: &str| run(&small(&[set]), &mut Hooks::default()).unwrap_err().to_string();
    let found = wrong("device.buffer.size=64 GiB");
    assert!(
        found.contains("device.buffer.size") && found.contains("more than the drive's flash"),
        "{found}"
    );
    assert!(validate(&small(&["device.buffer.size=64 GiB"])).is_err());
}
