//! Runs on zoned drives, verified.

use super::*;

/// A drive of 24 zones; one job appends and flushes, another writes what is to be protected.
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
    requests = 3000

    [[workload.zone_job]]
    pattern = \"write\"
    plp = true
    streams = 2
    zones = 5
    block_size = \"4 KiB\"
    queue_depth = 2
    finish_at = \"80 %\"
    requests = 3000
";

#[test]
fn verifying_a_zoned_run_changes_nothing_of_what_happens() {
    let verified = record(&loaded(ZONED, &[]));
    let other = record(&loaded(ZONED, &["run.stamps=false"]));
    assert_eq!(verified.sim.digest, other.sim.digest);
    assert_eq!((verified.host.errors, verified.host.writes), (0, 6_000));
    assert!(verified.zones.unwrap().resets > 10);
    assert_eq!(verified.power.unwrap().cuts, 1, "the one that ends it");
    assert!(verified.recovery.is_some());
}

#[test]
fn listed_cuts_are_refused() {
    let cuts = "
    [[run.cut]]
    at = \"20 ms\"
    ";
    let error = run(&loaded(&format!("{ZONED}{cuts}"), &[]), &mut Hooks::default()).unwrap_err();
    assert!(error.to_string().starts_with("`run.cut`"), "{error}");
}
