//! Whole runs with something between workload and drive.

use std::fmt::Write as _;

use leyden_sim::Rng;
use tempfile::TempDir;

use super::*;

/// 8 KiB pages that the trace writes; the drive holds about 6,000.
const PAGES: u64 = 4_000;

/// A trace of page writes, nine in ten of them announced a while before, and a log: its folder.
fn database() -> TempDir {
    let mut rng = Rng::new(7, "database");
    let (mut hints, mut trace) = (Vec::new(), Vec::new());
    for us in (0..160_000_u64).step_by(10) {
        if us % 40 == 0 {
            trace.push((us, format!("W,{},8,WS,wal", 16 * PAGES + us / 5 % 8_000)));
            continue;
        }
        let lba = 16 * rng.below(PAGES);
        if rng.below(10) > 0 {
            hints.push((us, format!("H,{lba},16,-,heap")));
        }
        trace.push((us + 30_000, format!("W,{lba},16,W,data")));
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, mut lines) in [("trace.csv", trace), ("hints.csv", hints)] {
        lines.sort_by_key(|(us, _)| *us);
        let mut text = "time_us,op,lba,len,flags,class\n".to_owned();
        for (us, line) in lines {
            writeln!(text, "{us},{line}").unwrap();
        }
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The trace with its hints on the small drive.
fn with_hints(folder: &TempDir, sets: &[&str]) -> Scenario {
    let at = folder.path().display();
    let trace = format!(
        "[workload.trace]\npath = \"{at}/trace.csv\"\nhints = \"{at}/hints.csv\"\nmode = \"closed\"\n"
    );
    loaded(&format!("device.ftl.gc.victim = \"z_greedy\"\n{DRIVE}{trace}"), sets)
}

#[test]
fn hints_without_a_way_to_the_drive_change_nothing_but_a_warning() {
    let folder = database();
    let alone = with_hints(&folder, &[]);
    let record_of = |sets: &[&str]| record(&with_hints(&folder, sets));
    let (unheard, off) = (record_of(&[]), record_of(&["host.hints.channel=off"]));
    assert!(unheard.hints.is_none() && off.hints.is_none());
    assert_eq!(off.sim.digest, unheard.sim.digest);
    assert!(unheard.warnings[0].contains("hints of the trace were ignored"));
    let mut without = alone;
    let path = format!("{}/trace.csv", folder.path().display());
    let set = [format!("workload.trace={{ path = \"{path}\", mode = \"closed\" }}")];
    without.workload = loaded("", &[&set[0]]).workload;
    let without = record(&without);
    assert_eq!(without.sim.digest, unheard.sim.digest);
    assert_eq!(warned(&without), [""; 0]);
}

#[test]
fn a_key_of_the_other_way_to_replay_is_warned_of() {
    let folder = database();
    let sets = ["host.hints.channel=piggyback", "workload.trace.speed=2"];
    let record = record(&with_hints(&folder, &sets));
    let [warning] = warned(&record)[..] else { panic!("{:?}", record.warnings) };
    assert!(warning.starts_with("workload.trace.speed does nothing in closed-loop"), "{warning}");
}

#[test]
fn both_ways_bring_hints_to_the_drive() {
    let folder = database();
    for way in ["piggyback", "command"] {
        let set = format!("host.hints.channel={way}");
        let scenario = with_hints(&folder, &[&set]);
        let record = record(&scenario);
        assert_eq!(warned(&record), [""; 0]);
        let hints = record.hints.unwrap();
        assert_eq!(hints.channel, way);
        assert_eq!(hints.commands > 0, way == "command");
        let gone = hints.sent + hints.withdrawn + hints.repeated + hints.dropped;
        assert!(gone <= hints.announced && hints.sent > hints.announced / 2, "{hints:?}");
        assert_eq!(hints.heard_units, hints.sent, "mapping units have 4 KiB too");
        // Three writes in four are of data, twice as long, and nine in ten of them announced.
        assert!((0.55..0.85).contains(&hints.known_overwrite_share.unwrap()), "{hints:?}");
        assert_eq!(hints.known_dirty_share, None, "there is no page cache");
        assert!(hints.zombie_bytes_mean > 1e5 && record.gc.copied_zombie_pages > 0.0);
        assert_eq!(record.host.writes, 16_000, "hints are no I/O");
        assert_eq!(self::record(&scenario).sim.digest, record.sim.digest);
    }
}

#[test]
fn a_ramp_leaves_its_hints_out() {
    let folder = database();
    let sets = ["host.hints.channel=piggyback", "run.ramp.requests=8000"];
    let hints = record(&with_hints(&folder, &sets)).hints.unwrap();
    let whole = record(&with_hints(&folder, &sets[..1])).hints.unwrap();
    assert!(hints.announced < whole.announced * 3 / 4 && hints.announced > whole.announced / 8);
    assert!(hints.heard_units < whole.heard_units);
}

/// Random writes through a cache that fills up and has to be written out.
const CACHED: [&str; 5] = [
    "host.page_cache.size=8 MiB",
    "host.page_cache.writeback_interval=10 ms",
    "host.page_cache.expire=50 ms",
    "device.ftl.gc.victim=z_greedy",
    "workload.job.0.requests=60000",
];

#[test]
fn a_page_cache_absorbs_writes_and_announces_what_is_dirty() {
    let plain = record(&small(&CACHED[3..]));
    let cached = record(&small(&CACHED));
    assert!(cached.hints.is_none() && plain.cache.is_none());
    let cache = cached.cache.unwrap();
    assert!(cache.hits > 0 && cache.misses > 0 && cache.rewritten > 0, "{cache:?}");
    assert!(cache.written_back + cache.dirty_bytes_left / 4096 <= cache.dirtied);
    assert!(cache.throttled_writes > 0 && cache.throttled_s > 0.0, "{cache:?}");
    assert!(cache.dirty_bytes_mean > 0.0 && cache.dirty_bytes_peak <= 8 << 20);
    assert!(cached.flash.programs.user < plain.flash.programs.user, "rewrites are absorbed");
    assert_eq!(cached.host.reads + cached.host.writes, 60_000);

    let hinted = record(&small(&[&CACHED[..], &["host.hints.channel=piggyback"]].concat()));
    assert_eq!(warned(&hinted), [""; 0]);
    let hints = hinted.hints.unwrap();
    assert_eq!(hints.announced, hinted.cache.unwrap().dirtied);
    let (dirty, overwritten) = (hints.known_dirty_share, hints.known_overwrite_share);
    assert!((0.3..=1.0).contains(&dirty.unwrap()), "{hints:?}");
    // Overwritten data was written back before; it is other data than the dirty data of one moment.
    let of_counts = hints.overwritten_zombie_units as f64
        / (hints.overwritten_zombie_units + hints.overwritten_live_units) as f64;
    assert!(overwritten == Some(of_counts) && overwritten != dirty, "{hints:?}");
}

#[test]
fn layers_that_cannot_be_are_refused_with_key_and_remedy() {
    let refused = |sets: &[&str]| validate(&small(sets)).unwrap_err().to_string();
    let text = refused(&["host.page_cache.size=1 GiB"]);
    assert!(text.starts_with("`host.page_cache.size`: 1 GiB is more than the drive has"), "{text}");
    let text = refused(&["host.page_cache.dirty_ratio=5 %", "host.page_cache.size=8 MiB"]);
    assert!(text.starts_with("`host.page_cache.background_ratio`: 10 % is not less"), "{text}");
}

#[test]
fn a_channel_that_nobody_uses_is_named() {
    let record = record(&small(&["host.hints.channel=piggyback"]));
    assert!(record.warnings[0].starts_with("host.hints did nothing"), "{:?}", record.warnings);
    assert_eq!(record.sim.digest, self::record(&small(&[])).sim.digest);
}

/// Cuts in a run through a page cache that has something dirty at each.
const CACHED_CUTS: [&str; 7] = [
    "host.page_cache.size=8 MiB",
    "host.page_cache.writeback_interval=10 ms",
    "host.page_cache.expire=50 ms",
    "workload.job.0.fsync_every=500",
    r#"run.cut=[{at="5 ms"}, {at="200 ms", off="1 ms"}, {at="201.1 ms"}]"#,
    "device.power.base_power=2 W",
    "device.ftl.over_provisioning=40 %",
];

#[test]
fn a_cut_loses_what_the_cache_holds_and_nothing_that_was_flushed() {
    for way in ["off", "piggyback", "command"] {
        let hints = format!("host.hints.channel={way}");
        let scenario = small(&[&CACHED_CUTS[..], &[&hints]].concat());
        let record = record(&scenario);
        assert!(record.host.flushes > 0 && record.host.errors == 0);
        let power = record.power.unwrap();
        // The buffer is protected, and what was flushed is in it or on flash: nothing promised is lost,
        // though the cache has lost much that was acknowledged.
        assert_eq!((power.cuts, power.lost_promised_writes), (3, 0));
        let dirty: Vec<_> = power.made.iter().map(|cut| cut.dirty_units.unwrap()).collect();
        assert!(dirty[0] > 50 && dirty[1] > 50 && dirty.iter().all(|&n| n <= 2048), "{dirty:?}");
        assert_eq!(self::record(&scenario).sim.digest, record.sim.digest);
        let unchecked = small(&[&CACHED_CUTS[..], &[&hints, "run.stamps=false"]].concat());
        assert_eq!(self::record(&unchecked).sim.digest, record.sim.digest);
    }
}

#[test]
fn an_unprotected_drive_below_a_cache_keeps_what_was_flushed() {
    let sets = [&CACHED_CUTS[..], &["device.buffer.region=none"]].concat();
    let power = record(&small(&sets)).power.unwrap();
    assert_eq!((power.cuts, power.lost_promised_writes), (3, 0));
    let bare = record(&small(&CACHED_CUTS[4..])).power.unwrap();
    assert!(bare.made.iter().all(|cut| cut.dirty_units.is_none()));
}

/// A drive that wears out within the run, below a cache.
const WORN: [&str; 6] = [
    "precondition.kind=none",
    "device.nand.endurance_cycles=3",
    "host.page_cache.size=4 MiB",
    "workload.job.0.fsync_every=200",
    "workload.job.0.read_share=50 %",
    "workload.job.0.requests=80000",
];

#[test]
fn reads_of_what_a_cache_could_not_write_out_are_no_violations() {
    for seed in 1..4 {
        let seed = format!("seed={seed}");
        let scenario = small(&[&WORN[..], &[&seed]].concat());
        let record = record(&scenario);
        let cache = record.cache.unwrap();
        assert!(cache.failed > 1_000 && record.host.errors > 0, "{cache:?}");
        let unchecked = small(&[&WORN[..], &[&seed, "run.stamps=false"]].concat());
        assert_eq!(self::record(&unchecked).sim.digest, record.sim.digest);
    }
}

/// Two jobs, each with a part of the drive.
const FILES: [&str; 2] = [
    "host.page_cache.size=8 MiB",
    r#"workload.job=[
        {name="log", span="4 MiB", pattern="sequential", requests=4_000, fsync_every=100},
        {name="data", offset="8 MiB", span="16 MiB", requests=4_000},
    ]"#,
];

#[test]
fn a_flush_of_a_jobs_region_leaves_the_others_pages_dirty() {
    let of_device = record(&small(&FILES));
    let of_region =
        record(&small(&[&FILES[..], &[r#"workload.job.0.fsync_of="region""#]].concat()));
    assert_eq!((of_device.host.flushes, of_region.host.flushes), (40, 40));
    let written = |record: &RunRecord| record.cache.as_ref().unwrap().written_back;
    assert!(written(&of_region) < written(&of_device), "the other's are overwritten in the cache");
}

#[test]
fn direct_requests_leave_the_cache_empty() {
    for stamps in ["run.stamps=true", "run.stamps=false"] {
        let sets = ["workload.job.0.direct=true", "workload.job.1.direct=true", stamps];
        let record = record(&small(&[&FILES[..], &sets].concat()));
        let cache = record.cache.unwrap();
        assert_eq!((cache.dirtied, cache.written_back, record.host.errors), (0, 0, 0));
        assert_eq!(cache.direct, 8_000);
    }
}
