//! Runs on zoned drives, verified.

use super::*;
use crate::driver::{Content, ZonePromise, ZonePromises};

/// A drive of 24 zones; one job appends and flushes, another writes what is to be protected.
pub(super) const ZONED: &str = "
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

/// Counters of the zones are of the measured part, like the host's.
#[test]
fn a_ramp_is_left_out_of_the_zones_counters() {
    let whole = record(&loaded(ZONED, &[]));
    let part = record(&loaded(ZONED, &["run.ramp.requests=2_000"]));
    let [all, measured] = [&whole, &part].map(|record| record.zones.as_ref().unwrap());
    let left_out = whole.host.writes - part.host.writes;
    assert_eq!((whole.host.writes, all.appends), (6_000, 3_000));
    let appends = 3_000 - measured.appends;
    assert!((1..=left_out).contains(&appends) && measured.resets < all.resets, "{measured:?}");
}

/// Appends are writes, over time as in total.
#[test]
fn the_series_of_a_zoned_run_has_its_appends() {
    let record = record(&loaded(ZONED, &["run.stamps=false"]));
    let series = &record.series;
    let starts = std::iter::once(&0.0).chain(&series.time_s);
    let lengths = series.time_s.iter().zip(starts).map(|(end, start)| end - start);
    let total =
        |rates: &[f64]| rates.iter().zip(lengths.clone()).map(|(rate, s)| rate * s).sum::<f64>();
    assert!((total(&series.write_iops) - record.host.writes as f64).abs() < 0.5);
    assert!((total(&series.flushes_per_s) - record.host.flushes as f64).abs() < 0.5);
    let mib = record.host.bytes_written as f64 / f64::from(1 << 20);
    assert!((total(&series.write_mib_per_s) - mib).abs() < 0.01);
    assert!(series.waf.iter().any(|waf| *waf > 0.0));
}

/// Cuts of the run above, one of them right after another.
const CUTS: &str = "
    [[run.cut]]
    at = \"20 ms\"
    off = \"1 ms\"

    [[run.cut]]
    at = \"22 ms\"
    off = \"20 ms\"

    [[run.cut]]
    at = \"70 ms\"

    [[run.cut]]
    at = \"100 s\"
";

#[test]
fn listed_cuts_are_made_and_held_against_what_was_promised() {
    for (region, size, dump) in [
        ("selective", "256 KiB", "balanced"),
        ("selective", "256 KiB", "in_place"),
        ("full", "0 B", "balanced_slc"),
        ("none", "0 B", "balanced"),
    ] {
        let sets = [
            format!("device.buffer.region={region}"),
            format!("device.buffer.protected_size={size}"),
            format!("device.power.dump={dump}"),
            format!("workload.zone_job.1.plp={}", region != "none"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let scenario = loaded(&format!("{ZONED}{CUTS}"), &sets);
        let cut = record(&scenario);
        let power = cut.power.clone().unwrap();
        assert_eq!((power.cuts, power.made.len(), power.lost_promised_writes), (3, 3, 0));
        assert!(power.commands_cut_off > 0, "{region}");
        assert_eq!(power.made.iter().any(|cut| cut.promised_bytes > 0), region != "none");
        assert_eq!(cut.host.errors, 0, "streams go on where their zones end");
        assert_eq!(cut.warnings.len(), 1, "{:?}", cut.warnings);
        assert!(cut.warnings[0].contains("run.cut.3"), "{:?}", cut.warnings);
        assert_eq!(record(&scenario).sim.digest, cut.sim.digest);
    }
}

/// The same drive without a protected region, held to what one with it promises: the run must fail.
#[test]
fn a_drive_that_breaks_its_promise_fails_the_run() {
    let sets = ["device.buffer.region=none", "device.buffer.protected_size=0 B"];
    let scenario = loaded(
        &format!("{ZONED}{CUTS}"),
        &[&sets[..], &["workload.zone_job.1.plp=false"]].concat(),
    );
    let held_to = |keeps_all| {
        let promise = ZonePromise { keeps_all, keeps_flagged: false, may_forget: false };
        let content =
            |layout| Box::new(ZonePromises::new(layout, promise)) as Box<dyn Content<Stamp>>;
        let bounds = Bounds::default();
        subject::zoned::run_with::<Stamp>(&scenario, &mut Hooks::default(), &bounds, &content)
    };
    assert!(held_to(false).is_ok());
    let error = held_to(true).unwrap_err();
    assert!(matches!(error, RunError::Drive(DriveError::Zone(_))), "{error}");
}

/// A log of small records in a Zone Random Write Area, beside data.
const LOG: &str = "
    device.nand = { channels = 2, dies_per_channel = 2, blocks_per_plane = 64, pages_per_block = 16 }
    device.buffer = { region = \"selective\", size = \"1 MiB\", protected_size = \"512 KiB\" }
    device.power.dump = \"balanced\"

    [device.zoned]
    zone_size = \"512 KiB\"
    dies_per_zone = 2
    max_open = 6
    max_active = 8
    zrwa = { count = 2, size = \"32 KiB\", granularity = \"8 KiB\" }

    [[workload.zone_job]]
    pattern = \"log\"
    zones = 4
    block_size = \"925 B\"
    requests = 4000

    [[workload.zone_job]]
    streams = 2
    zones = 5
    block_size = \"16 KiB\"
    queue_depth = 2
    flush_every = 9
    requests = 800
";

#[test]
fn a_log_in_a_random_write_area_survives_cuts() {
    for (finish_at, dump) in [("100 %", "balanced"), ("70 %", "in_place"), ("33 %", "balanced_slc")]
    {
        let sets = [
            format!("device.power.dump={dump}"),
            format!("workload.zone_job.0.finish_at={finish_at}"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let cut = record(&loaded(&format!("{LOG}{CUTS}"), &sets));
        let power = cut.power.unwrap();
        assert_eq!(
            (power.made.len(), power.lost_promised_writes, cut.host.errors),
            (3, 0, 0),
            "{:?}",
            cut.warnings
        );
        assert!(power.made.iter().any(|cut| cut.promised_bytes > 0));
        let zones = cut.zones.unwrap();
        assert!(zones.resets > 3, "the log goes round");
        assert_eq!(zones.finishes > 0, finish_at != "100 %", "a full zone is not finished");
    }
}

/// The padding trap: what a log writes with a block for each record, and in an area.
#[test]
fn in_an_area_small_records_cost_no_block_each() {
    let alone = |sets: &[&str]| {
        let sets = [&["workload.zone_job.1.requests=1"], sets].concat();
        let record = record(&loaded(LOG, &sets));
        assert_eq!((record.host.errors, record.host.writes), (0, 4_001));
        record.flash.programs.total() * 4096
    };
    let block_each =
        alone(&["workload.zone_job.0.pattern=write", "workload.zone_job.0.block_size=4 KiB"]);
    let in_area = alone(&[]);
    assert!(block_each > 4 * in_area, "{block_each} {in_area}");
}

/// A store whose power is cut four times.
const STORE: &str = "
    device.nand = { channels = 4, dies_per_channel = 2, blocks_per_plane = 64, pages_per_block = 64 }
    device.zoned = { zone_size = \"1 MiB\", dies_per_zone = 1 }
    device.buffer = { region = \"selective\", size = \"4 MiB\", protected_size = \"1 MiB\" }
    device.power.dump = \"balanced\"

    [workload.lsm]
    puts = 60_000
    write_buffer = \"1 MiB\"
    table_io = \"256 KiB\"
    put_time = \"40 us\"

    [[run.cut]]
    at = \"200 ms\"
    [[run.cut]]
    at = \"500 ms\"
    [[run.cut]]
    at = \"805 ms\"
    [[run.cut]]
    at = \"1110 ms\"
";

#[test]
fn a_store_loses_what_its_drive_does_not_protect() {
    let store = |sets: &[&str]| {
        let record = record(&loaded(STORE, sets));
        assert_eq!((record.host.errors, record.power.unwrap().made.len()), (0, 4), "{sets:?}");
        record.zones.unwrap().store.unwrap()
    };
    let none = ["device.buffer.region=none", "device.buffer.protected_size=0 B"];
    let published = "workload.lsm.order=published";
    let selective = store(&[]);
    assert_eq!((selective.puts, selective.lost_puts, selective.lost_table_bytes), (60_000, 0, 0));
    let unprotected = store(&none);
    assert!(unprotected.lost_puts > 0, "its log was in the buffer");
    assert_eq!(unprotected.lost_table_bytes, 0, "tables are flushed before their logs are deleted");
    assert!(store(&[published]).lost_table_bytes > 0, "they are not");
}

/// Replays `trace` (lines of our text) on a drive with zones of 512 KiB.
fn replayed(trace: &str, sets: &[&str]) -> RunRecord {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zones.csv");
    std::fs::write(&path, format!("time_us,op,lba,len,flags,class\n{trace}")).unwrap();
    let path = format!("workload.trace={{ path = \"{}\", mode = \"closed\" }}", path.display());
    let text = "
        device.nand = { channels = 2, dies_per_channel = 2, blocks_per_plane = 64, pages_per_block = 16 }
        device.zoned = { zone_size = \"512 KiB\", dies_per_zone = 2 }
        device.buffer = { region = \"selective\", size = \"1 MiB\", protected_size = \"256 KiB\" }
        device.power.dump = \"balanced\"
    ";
    record(&loaded(text, &[&[path.as_str()], sets].concat()))
}

/// All of it within a microsecond: a drive that did not wait would mix up resets and writes.
#[test]
fn a_trace_of_a_zoned_drive_is_replayed_in_the_order_of_its_zones() {
    let round = |number: u32| {
        let reset = if number > 0 { "0,ZR,0,0,-,-\n0,ZR,1024,0,-,-\n" } else { "" };
        let writes = (0..1024).step_by(128);
        let writes: Vec<String> =
            writes.map(|at| format!("0,W,{at},128,W,wal\n0,ZA,1024,64,-,data\n")).collect();
        format!("{reset}{}0,F,0,0,FF,-\n0,ZF,1024,0,-,-\n0,R,0,256,-,data\n", writes.concat())
    };
    let trace: String = (0..20).map(round).collect::<Vec<_>>().concat();
    let closed = ["workload.trace.mode=closed", "workload.trace.queue_depth=16"];
    for sets in [&[][..], &closed] {
        let record = replayed(&trace, sets);
        assert_eq!((record.host.errors, record.host.writes), (0, 20 * 16), "{:?}", record.warnings);
        assert_eq!(record.inputs.len(), 1);
        let zones = record.zones.unwrap();
        assert_eq!((zones.resets, zones.finishes, zones.appends), (38, 20, 160));
        assert!(zones.protected_peak_bytes > 0, "the log is protected");
    }
    // A log's zone, opened with an area: records share blocks.
    let records: Vec<String> = (0..100).map(|at| format!("0,W,{},8,-,wal\n", at / 4 * 8)).collect();
    let log = format!("0,ZO,0,0,-,wal\n{}0,R,0,200,-,data\n", records.concat());
    let area =
        ["device.zoned.zrwa.size=32 KiB", "device.zoned.max_active=8", "device.zoned.max_open=8"];
    let record = replayed(&log, &area);
    assert_eq!((record.host.errors, record.host.writes), (0, 100), "{:?}", record.warnings);
    // Another zone size than that of the traced drive.
    let record = replayed(&trace, &["device.zoned.zone_size=1 MiB"]);
    assert!(record.host.errors > 0);
    assert!(record.warnings.iter().any(|it| it.contains("zone_size")), "{:?}", record.warnings);
}

/// Calls of a store with a memtable of 40 puts, a flush of its table, and 40 puts more.
fn recording() -> String {
    let calls = "0 0 1000 c 0 1 0 /db/000004.log\n\
                 1 0 1000 c 1 1 0 /db/MANIFEST-000005\n\
                 2 1 400000 a 0 40 37000\n\
                 3 1 500 c 2 1 0 /db/000006.log\n\
                 4 2 7000 c 3 1 0 /db/000007.sst\n\
                 5 2 90000 a 3 2 36000\n\
                 6 2 1000 s 3 1 0\n\
                 7 2 1000 a 1 1 90\n\
                 8 2 1000 s 1 1 0\n\
                 9 2 1000 d 0 1 0\n\
                 10 1 4000000 a 2 40 37000\n";
    format!("leyden-files 1\n{calls}end\n")
}

#[test]
fn a_recorded_store_is_replayed_on_drives_of_every_region() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (folder.path().join("a.files"), folder.path().join("b.files.zst"));
    std::fs::write(&plain, recording()).unwrap();
    std::fs::write(&packed, zstd_of(recording().as_bytes())).unwrap();
    let text = "
        device.nand = { channels = 2, dies_per_channel = 2, blocks_per_plane = 64, pages_per_block = 16 }
        device.zoned = { zone_size = \"512 KiB\", dies_per_zone = 2 }
        device.buffer = { size = \"1 MiB\", protected_size = \"256 KiB\" }
        device.power.dump = \"balanced\"
        workload.recorded.stop_at = 30
    ";
    let store = |path: &std::path::Path, sets: &[&str]| {
        let path = format!("workload.recorded.path={}", path.display());
        record(&loaded(text, &[&[path.as_str()], sets].concat()))
    };
    let selective = store(&plain, &["device.buffer.region=selective"]);
    assert_eq!(selective.host.errors, 0);
    let figures = selective.zones.unwrap().store.unwrap();
    assert_eq!((figures.puts, figures.flushed), (80, 1));
    let again = store(&packed, &["device.buffer.region=selective"]);
    assert_eq!(again.sim.digest, selective.sim.digest, "packed or not");
    for region in ["none", "full"] {
        let set = format!("device.buffer.region={region}");
        let other = store(&plain, &[&set, "workload.recorded.skip=40"]);
        assert_eq!((other.host.errors, other.zones.unwrap().store.unwrap().puts), (0, 40));
    }
    let refused = |path: &std::path::Path, set: &str| {
        let path = format!("workload.recorded.path={}", path.display());
        validate(&loaded(text, &[&path, set])).unwrap_err().to_string()
    };
    let missing = refused(&folder.path().join("none"), "seed=1");
    assert!(missing.contains("workload.recorded.path") && missing.contains("none"), "{missing}");
    let short = refused(&plain, "workload.recorded.skip=80");
    assert!(short.contains("the recording has 80"), "{short}");
    std::fs::write(&plain, recording().replace("end\n", "")).unwrap();
    assert!(refused(&plain, "seed=1").contains("no line `end`"));
}

/// As `zstd` packs it.
fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    // A frame of one raw block (RFC 8878, 3.1.1): this crate has no packer.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x60];
    frame.extend((bytes.len() as u16 - 256).to_le_bytes());
    frame.extend(&((bytes.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    frame.extend(bytes);
    frame
}
