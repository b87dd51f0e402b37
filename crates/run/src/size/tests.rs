//! Sizing a small drive.

use super::*;
use leyden_config::{Loaded, Set};

fn small(sets: &[&str]) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    let text = "
        device.nand = { channels = 2, dies_per_channel = 2, blocks_per_plane = 48, pages_per_block = 64 }
        device.buffer.size = \"1 MiB\"
        device.ftl.over_provisioning = \"30 %\"
        device.ftl.map.entries_per_page = 64
        precondition.kind = \"fill\"
        [[workload.job]]
        queue_depth = 8
        requests = 100000
    ";
    std::fs::write(&file, text).unwrap();
    let sets: Vec<Set> = sets.iter().map(|set| set.parse().unwrap()).collect();
    match Loaded::new(file.to_str().unwrap(), &sets) {
        Ok(loaded) => loaded.scenario,
        Err(error) => panic!("{error}"),
    }
}

fn sized(scenario: &Scenario) -> Sizing {
    let (sizing, cancelled) = sized_on(scenario, 1).unwrap_or_else(|error| panic!("{error}"));
    assert!(!cancelled);
    sizing
}

fn sized_on(scenario: &Scenario, jobs: usize) -> Result<(Sizing, bool), RunError> {
    let cancel = AtomicBool::new(false);
    size(scenario, 5_000, &LESS, &Watched { jobs, cancel: &cancel, progress: &|_, _| {} })
}

#[test]
fn threads_change_nothing() {
    let scenario = small(&[]);
    assert_eq!(sized(&scenario), sized_on(&scenario, 3).unwrap().0);
}

#[test]
fn cancelled_before_it_begins_it_has_no_variant_that_runs() {
    let cancel = AtomicBool::new(true);
    let watched = Watched { jobs: 2, cancel: &cancel, progress: &|_, _| {} };
    let (sizing, cancelled) = size(&small(&[]), 5_000, &LESS, &watched).unwrap();
    assert!(cancelled && sizing.variants.iter().all(|variant| variant.measured.is_none()));
}

/// Blocks kept back for dumps, mapping pages and their journal are added to the flash, however
/// little is spare.
#[test]
fn every_variant_has_room_for_what_it_keeps_back() {
    let sets = ["device.ftl.map.entries_per_page=2048", "device.ftl.over_provisioning=12 %"];
    let sizing = sized(&small(&sets));
    let impossible = sizing.variants.iter().filter(|variant| variant.problem.is_some());
    assert_eq!(impossible.collect::<Vec<_>>(), Vec::<&SizedDrive>::new());
}

#[test]
fn protecting_less_needs_less_and_recovers_later() {
    let sizing = sized(&small(&[]));
    assert_eq!(sizing.variants.len(), 3 * 8);
    let measured = || sizing.variants.iter().filter(|variant| variant.measured.is_some());
    assert_eq!(measured().count(), 8 + 2, "{:?}", sizing.variants);
    let of = |protection: &str, dump: &str| {
        let is = |v: &&SizedDrive| v.protection == protection && v.dump == dump;
        sizing.variants.iter().find(is).unwrap()
    };
    let (full, none) = (of("full", "balanced"), of("none", "balanced"));
    assert!(full.own && !none.own);
    let worst = |sized: &SizedDrive| sized.worst.unwrap().energy_mj;
    assert!(worst(none) < worst(full) && worst(full) < worst(of("full", "in_place")));
    let (full, none) = (full.measured.unwrap(), none.measured.unwrap());
    assert!(none.energy_mj.max < full.energy_mj.max);
    assert!(none.recovery_ms > full.recovery_ms && full.recovery_ms > 0.0);
    for variant in measured() {
        let (shown, worst) = (variant.measured.unwrap(), variant.worst.unwrap());
        assert!(shown.energy_mj.max <= worst.energy_mj, "{variant:?}");
        assert!(shown.dump_ms.max <= worst.dump_ms && shown.parts <= worst.parts, "{variant:?}");
        assert!(shown.iops > 0.0 && shown.protected_bytes_peak > 0);
    }
}

#[test]
fn less_capacitance_loses_more() {
    let sizing = sized(&small(&[]));
    let shares: Vec<f64> =
        sizing.with_less.iter().map(|less| (less.share * 100.0).round()).collect();
    assert_eq!(shares, [100.0, 75.0, 50.0, 25.0, 10.0]);
    assert_eq!((sizing.with_less[0].losing, sizing.with_less[0].lost_bytes_max), (0.0, 0));
    let lost = |less: &WithLess| less.lost_bytes_mean;
    assert!(sizing.with_less.is_sorted_by(|a, b| lost(a) <= lost(b)));
    assert!(sizing.with_less[4].losing > 0.5, "{:?}", sizing.with_less);
}

#[test]
fn a_bank_that_is_too_small_is_refused_or_shown() {
    let sets = ["device.power.bank.capacitance=500 uF"];
    let error = sized_on(&small(&sets), 1).unwrap_err();
    let RunError::Config { key, problem } = error else { panic!("{error}") };
    assert!(key == "device.power.bank" && problem.contains("uF more"), "{key}: {problem}");

    let allowed = [sets[0], "device.power.allow_underprovisioned=true"];
    let sizing = sized(&small(&allowed));
    assert_eq!(sizing.with_less.len(), 6);
    assert!(sizing.bank.shortfall_mj > 0.0);
    assert!(
        sizing.with_less.iter().any(|less| (less.energy_mj - sizing.bank.energy_mj).abs() < 1e-9)
    );
}

/// With the bank of the weakest, a drive is accepted with the buffer that they hold, and refused with a step more.
#[test]
fn the_weakest_of_a_fleet_hold_what_is_told() {
    // All of it, a part, nothing beside the table, and not even the table.
    let mut met = [0; 4];
    for parts in 1..=120 {
        let parts = format!("device.power.bank.parts={parts}");
        let larger = ["device.nand.blocks_per_plane=96", "device.buffer.size=8 MiB", &parts];
        held_as_told(&small(&larger), &mut met);
    }
    assert!(met.iter().all(|&ages| ages > 0), "{met:?}");
}

/// Counts the ages at which the weakest of a fleet hold the whole buffer, a part of it, nothing of it, and not even the table.
fn held_as_told(scenario: &Scenario, met: &mut [u32; 4]) {
    let fleet = fleet(scenario, 1_000).unwrap();
    let whole = scenario.device.buffer.size.get();
    for age in &fleet.ages {
        let weakest_mj = age.mean_mj - 3.719 * age.deviation_mj;
        // 1/2 C (V^2 - v^2) x efficiency x (1 - ageing), of the sheet's 12.8 V down to 5.5 V.
        let per_uf_mj = 0.5e-3 * (12.8 * 12.8 - 5.5 * 5.5) * 0.9 * 0.8;
        let accepts = |bytes: u64| {
            let mut device = scenario.device.clone();
            match bytes {
                0 => device.buffer.region = leyden_device::Region::None,
                bytes => device.buffer.size = Bytes::new(bytes),
            }
            let bank = &mut device.power.as_mut().unwrap().bank;
            bank.parts = None;
            bank.capacitance =
                Some(leyden_sim::Capacitance::from_uf((weakest_mj / per_uf_mj).ceil() as u64));
            leyden_device::provision_of(&device).is_ok()
        };
        if let Some(held) = age.buffer_bytes {
            assert!(accepts(held), "{held}: {age:?}");
            assert!(held == whole || !accepts(held + whole / 16), "{held}: {age:?}");
            met[if held == whole { 0 } else { 1 + usize::from(held == 0) }] += 1;
        } else {
            assert!(!accepts(0), "{age:?}");
            met[3] += 1;
        }
    }
}

/// A zoned drive with pages of two units, and a job on it.
fn zoned(sets: &[&str]) -> Result<ZoneSizing, RunError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zoned.toml");
    let text = "
        device.nand = { channels = 2, dies_per_channel = 2, blocks_per_plane = 64, pages_per_block = 16, page_size = \"8 KiB\" }
        device.zoned = { zone_size = \"512 KiB\", dies_per_zone = 2, max_open = 4, max_active = 8 }
        device.buffer = { region = \"selective\", size = \"1 MiB\", protected_size = \"256 KiB\" }
        device.power.dump = \"balanced\"
        [[workload.zone_job]]
        plp = true
        requests = 100000
    ";
    std::fs::write(&file, text).unwrap();
    let sets: Vec<Set> = sets.iter().map(|set| set.parse().unwrap()).collect();
    let scenario = Loaded::new(file.to_str().unwrap(), &sets).unwrap().scenario;
    let cancel = AtomicBool::new(false);
    let watched = Watched { jobs: 1, cancel: &cancel, progress: &|_, _| {} };
    let (sizing, cancelled) = size_zones(&scenario, 5_000, &watched)?;
    assert!(!cancelled);
    Ok(sizing)
}

#[test]
fn a_zoned_drive_is_sized_region_by_region() {
    let sizing = zoned(&[]).unwrap();
    let own: Vec<_> = sizing.regions.iter().filter(|region| region.own).collect();
    assert_eq!(own.len(), 1);
    assert_eq!((own[0].protected_bytes, own[0].dump.as_str()), (256 << 10, "balanced"));
    let worst = own[0].worst.unwrap();
    assert!((worst.energy_mj - sizing.bank.energy_mj).abs() < sizing.bank.energy_mj);
    let balanced = || sizing.regions.iter().filter(|region| region.dump == "balanced");
    // Without protection the flag is refused; all others run, and more of a region costs more.
    assert_eq!(balanced().next().unwrap().protected_bytes, 0);
    let prices: Vec<f64> = balanced().filter_map(|it| Some(it.worst?.energy_mj)).collect();
    assert!(prices.len() >= 4 && prices.is_sorted(), "{prices:?}");
    assert!(balanced().skip(1).all(|it| it.problem.is_some() || it.iops > Some(0.0)));
    let slc = sizing.regions.iter().find(|region| region.dump == "balanced_slc").unwrap();
    assert_eq!(slc.protected_bytes, 256 << 10);
    assert!(
        (slc.worst.unwrap().energy_mj - worst.energy_mj).abs() > 0.01,
        "another dump, another price"
    );
}

#[test]
fn less_capacitance_does_for_fewer_zones() {
    let sizing = zoned(&[]).unwrap();
    let whole = sizing.with_less[0];
    assert_eq!((whole.protected_bytes, whole.open_zones), (256 << 10, 8), "as many as it has");
    assert!(sizing.with_less.is_sorted_by(|a, b| {
        a.protected_bytes >= b.protected_bytes
            && a.open_zones >= b.open_zones
            && a.active_zones >= b.active_zones
            && a.areas >= b.areas
    }));
    let half = sizing.with_less[2];
    assert!((3..=4).contains(&half.open_zones), "{half:?}");
    // A region of n units holds a page less a unit of each zone, and a page.
    assert_eq!(half.active_zones, (half.protected_bytes / 4096).saturating_sub(2));
}

#[test]
fn a_zoned_drive_that_is_impossible_is_refused_by_its_key() {
    let error = zoned(&["device.zoned.max_open=9"]).unwrap_err();
    assert!(error.to_string().starts_with("`device.zoned.max_open`"), "{error}");
}
