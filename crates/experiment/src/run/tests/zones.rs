//! Runs on zoned drives, verified, with power cuts in them.

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

const CUTS: &str = "
    [[run.cut]]
    at = \"20 ms\"
    off = \"1 ms\"

    [[run.cut]]
    at = \"70 ms\"
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
fn a_zoned_run_goes_on_after_its_cuts() {
    let record = record(&loaded(&format!("{ZONED}{CUTS}"), &[]));
    let power = record.power.unwrap();
    assert_eq!((power.cuts, power.made.len(), power.lost_promised_writes), (2, 2, 0));
    assert!(power.commands_cut_off > 0 && power.made[0].ready_ms.is_some());
    let ended = record.host.writes + power.commands_cut_off;
    assert!(record.host.errors == 0 && ended >= 6_000, "{ended}");
}

#[test]
fn a_small_bank_loses_what_it_says_and_no_more() {
    let set = |set: &str| set.to_owned();
    let sets = [
        set("device.power.allow_underprovisioned=true"),
        set("device.power.bank.capacitance=150 uF"),
    ];
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let record = record(&loaded(&format!("{ZONED}{CUTS}"), &sets));
    assert!(record.power.unwrap().lost_promised_writes > 0);
}

#[test]
fn a_store_lists_no_cuts() {
    let store = ZONED.split("[[workload").next().unwrap();
    let scenario = loaded(&format!("{store}\n[workload.lsm]\nputs = 100\n{CUTS}"), &[]);
    let error = run(&scenario, &mut Hooks::default()).unwrap_err();
    assert!(error.to_string().starts_with("`run.cut`"), "{error}");
}

#[test]
fn a_trace_of_zone_operations_is_replayed() {
    let drive = ZONED.split("[[workload").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    // Zones of 1024 sectors: a log and an append, a zone that is finished and reset, and a misplaced write.
    let trace = "time_us,op,lba,len,flags,class\n\
                 0,W,0,8,W,wal\n\
                 1,ZA,1024,16,ZA,data\n\
                 2000,ZF,1024,0,ZF,-\n\
                 3000,ZR,1024,0,ZR,-\n\
                 4000,R,0,8,R,wal\n\
                 5000,W,64,8,W,data\n";
    let file = folder.path().join("zones.csv");
    std::fs::write(&file, trace).unwrap();
    let text = format!("{drive}\n[workload.trace]\npath = \"{}\"\n", file.display());
    let record = record(&loaded(&text, &[]));
    assert_eq!((record.host.reads, record.host.writes, record.host.errors), (1, 2, 1));
    let zones = record.zones.unwrap();
    assert_eq!((zones.appends, zones.finishes, zones.resets), (1, 1, 1));
    assert_eq!((zones.protected_peak_bytes, zones.plain_peak_bytes), (4096, 8192));
}
