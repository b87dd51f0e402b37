//! Runs on a block device that a conventional and a zoned drive make up, verified.

use super::*;

/// Some 20 chunks on 11 random zones, written over at random: reclaim has work.
pub(super) const LAYERED: &str = "
    device.nand = { channels = 1, dies_per_channel = 2, blocks_per_plane = 80, pages_per_block = 16 }
    device.zoned = { zone_size = \"512 KiB\", dies_per_zone = 2, max_open = 6, max_active = 8 }
    host.conventional.nand = { channels = 1, dies_per_channel = 2, blocks_per_plane = 40, pages_per_block = 16 }
    device.buffer = { region = \"none\", size = \"512 KiB\" }
    host.conventional.buffer = { region = \"none\", size = \"512 KiB\" }
    host.conventional.ftl.capacity = \"6 MiB\"
    host.zoned_block = { reserved_zones = 4, journal.max_zones = 2 }

    [[workload.job]]
    requests = 1500
";

fn refused(sets: &[&str]) -> String {
    let error = run(&loaded(LAYERED, sets), &mut Hooks::default()).unwrap_err();
    error.to_string()
}

#[test]
fn verifying_changes_nothing_and_bytes_add_up() {
    let verified = record(&loaded(LAYERED, &[]));
    let other = record(&loaded(LAYERED, &["run.stamps=false"]));
    assert_eq!(verified.sim.digest, other.sim.digest);
    assert_eq!((verified.host.errors, verified.host.writes), (0, 1_500));
    let layer = verified.zoned_block.unwrap();
    assert_eq!(layer.host_bytes, 1_500 * 4_096);
    assert!(layer.reclaimed > 10 && layer.copied_bytes > 0, "{layer:?}");
    let kinds = layer.copied_journal_bytes + layer.copied_meta_bytes + layer.copied_data_bytes;
    assert_eq!(kinds, layer.copied_bytes);
    // The bytes that the layer sent to the drives, and their amplification on flash.
    let sent = layer.host_bytes + layer.copied_bytes + layer.filled_bytes + layer.metadata_bytes;
    let waf = sent as f64 / layer.host_bytes as f64;
    assert!((layer.layer_waf - waf).abs() < 1e-9, "{layer:?}");
    assert!(layer.waf > 1.0 && layer.conventional_waf >= 1.0, "{layer:?}");
    assert_eq!(record(&loaded(LAYERED, &["seed=1"])).sim.digest, other.sim.digest);
    assert_ne!(record(&loaded(LAYERED, &["seed=2"])).sim.digest, other.sim.digest);
}

#[test]
fn a_range_that_is_a_journal_goes_to_zones_of_its_own() {
    let range = [
        "host.zoned_block.journal.separate=true",
        "host.zoned_block.journal.recognise=range",
        "host.zoned_block.journal.offset=256 KiB",
        "host.zoned_block.journal.size=1 MiB",
    ];
    let apart = record(&loaded(LAYERED, &range)).zoned_block.unwrap();
    assert!(apart.host_journal_bytes > 0);
    assert_eq!(apart.separated_bytes, apart.host_journal_bytes);
    assert_eq!(apart.copied_journal_bytes, 0);
    let counted = ["host.zoned_block.journal.separate=false"];
    let sets: Vec<&str> = range.into_iter().skip(1).chain(counted).collect();
    let together = record(&loaded(LAYERED, &sets)).zoned_block.unwrap();
    assert_eq!(together.separated_bytes, 0);
    assert!(together.copied_journal_bytes > 0, "{together:?}");
}

#[test]
fn a_journal_larger_than_its_zones_is_treated_as_data_where_it_does_not_fit() {
    let large = record(&loaded(
        LAYERED,
        &[
            "host.zoned_block.journal.separate=true",
            "host.zoned_block.journal.recognise=range",
            "host.zoned_block.journal.size=4 MiB",
        ],
    ));
    let layer = large.zoned_block.unwrap();
    assert_eq!(large.host.errors, 0);
    assert!(0 < layer.separated_bytes && layer.separated_bytes < layer.host_journal_bytes);
}

#[test]
fn impossible_settings_are_refused_with_their_key() {
    let other = refused(&["host.conventional.ftl.mapping_unit=8 KiB"]);
    assert!(other.contains("`host.zoned_block.conventional.ftl.mapping_unit`"), "{other}");
    let small = refused(&["host.conventional.ftl.capacity=1 MiB"]);
    assert!(small.contains("`host.zoned_block.conventional`"), "{small}");
    let reserved = refused(&["host.zoned_block.reserved_zones=1"]);
    assert!(reserved.contains("`host.zoned_block.reserved_zones`"), "{reserved}");
    let filled = refused(&["precondition.kind=fill"]);
    assert!(filled.contains("`precondition`") && filled.contains("leave it out"), "{filled}");
    let alone = LAYERED.lines().filter(|line| !line.contains("host.zoned_block"));
    let alone: Vec<&str> = alone.collect();
    let error = run(&loaded(&alone.join("\n"), &[]), &mut Hooks::default()).unwrap_err();
    assert!(error.to_string().contains("add [host.zoned_block]"), "{error}");
    let lonely = LAYERED.lines().filter(|line| !line.contains("host.conventional"));
    let lonely: Vec<&str> = lonely.collect();
    let error = run(&loaded(&lonely.join("\n"), &[]), &mut Hooks::default()).unwrap_err();
    assert!(error.to_string().contains("`host.conventional`"), "{error}");
}
