//! Errors that users make, and their messages.

use std::path::Path;

use leyden_sim::Span;

use super::Pace;
use super::*;

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The message for `text` with `sets`, with the folder's name taken out.
fn refused(text: &str, sets: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a.toml", text);
    let sets: Vec<Set> = sets.iter().map(|set| set.parse().unwrap()).collect();
    let error = Loaded::new(&file, &sets).expect_err("this must be refused");
    error.to_string().replace(&format!("{}/", folder.path().display()), "")
}

fn accepted(text: &str, sets: &[&str]) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a.toml", text);
    let sets: Vec<Set> = sets.iter().map(|set| set.parse().unwrap()).collect();
    match Loaded::new(&file, &sets) {
        Ok(loaded) => loaded.scenario,
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no `{part}` in:\n{message}");
    }
}

#[test]
fn an_empty_file_is_all_defaults_and_named_after_itself() {
    let scenario = accepted("", &[]);
    assert_eq!(scenario.name, "a");
    let expected = Scenario { name: "a".into(), ..Scenario::default() };
    assert_eq!(scenario, expected);
}

#[test]
fn unknown_keys_name_the_nearest_and_the_place() {
    let message = refused("seed = 1\n[device.nand]\npage_siz = \"8 KiB\"\n", &[]);
    says(
        &message,
        &[
            "unknown key `device.nand.page_siz`",
            "--> a.toml:3:1",
            "3 | page_siz = \"8 KiB\"",
            "  | ^^^^^^^^",
            "help: the nearest key is `page_size`",
        ],
    );
    let message = refused("over_provisioning = \"7 %\"", &[]);
    says(&message, &["there is a `device.ftl.over_provisioning`"]);
    let message = refused("[device.ftl.gc]\ntemperature = 3", &[]);
    says(&message, &["the keys here are `victim`, `levelling`, `soft_free_blocks`"]);
}

#[test]
fn policies_are_named_exactly() {
    let message = refused("[device.ftl.gc]\nvictim = \"gredy\"", &[]);
    says(
        &message,
        &["`device.ftl.gc.victim` knows no `gredy`", "a.toml:2:10", "nearest is `greedy`"],
    );
    let message = refused("[device.ftl.placement]\npolicy = \"dac\"\nregion = 4", &[]);
    says(&message, &["unknown key `device.ftl.placement.region`", "a.toml:3:1", "`regions`"]);
    let message = refused("[device.ftl.placement]\npolicy = \"dca\"", &[]);
    says(&message, &["knows no `dca`", "a.toml:2:10", "nearest is `dac`"]);
    let message = refused("[device.ftl.placement]\nregions = 4", &[]);
    says(&message, &["`device.ftl.placement` lacks the key `policy`", "a.toml:1:1"]);
}

#[test]
fn wrong_units_and_values_name_key_place_and_remedy() {
    let message = refused("[device.nand]\nread = 60", &[]);
    says(&message, &["`device.nand.read` is the number `60`", "a.toml:2:8", "like \"60 us\""]);
    let message = refused("[device.nand]\nread = \"60 jiffies\"", &[]);
    says(&message, &["unknown unit `jiffies`", "a.toml:2:8", "expected one of ns, us, ms"]);
    let message = refused("[device.nand]\nchannels = -1", &[]);
    says(
        &message,
        &["`device.nand.channels` is the number `-1`", "whole number in 0..=4294967295"],
    );
    let message = refused("[device.nand]\nchannels = 99999999999999999999", &[]);
    says(&message, &["more than 64 bits", "a.toml:2:12"]);
    let message = refused("[device.ftl]\nover_provisioning = nan", &[]);
    says(&message, &["`NaN` is not a share", "write \"7 %\" or 0.07"]);
    let message = refused("[device]\nnand = 3", &[]);
    says(&message, &["`device.nand` is the number `3`", "a table"]);
    let message = refused("seed = 2026-11-21", &[]);
    says(&message, &["dates", "a.toml:1:8"]);
    let message = refused("[device\nseed = 1", &[]);
    says(&message, &["not valid TOML", "a.toml:1:"]);
}

#[test]
fn what_nests_too_deep_is_told_the_limit() {
    let nested = |levels: usize| {
        let [arrays, tables] = [("[", "", "]"), ("{a=", "1", "}")].map(|(open, inside, close)| {
            format!("a = {}{inside}{}", open.repeat(levels), close.repeat(levels))
        });
        [arrays, tables, "a.".repeat(levels - 1) + "a = 1"]
    };
    for text in nested(80) {
        says(&refused(&text, &[]), &["unknown key `a`"]);
    }
    for text in nested(81).into_iter().chain(nested(100_000)) {
        says(&refused(&text, &[]), &["nest deeper than 80 levels"]);
    }
}

#[test]
fn impossible_drives_are_placed_too() {
    let message = refused("[device.nand]\npage_size = \"5000 B\"", &[]);
    says(&message, &["`device.nand.page_size`: 5 kB is not a power of two", "a.toml:2:13"]);
    // Said nowhere: the key that was said, and does not fit it, is the one to blame.
    let message = refused("[device.ftl]\nmapping_unit = \"16 KiB\"", &[]);
    let blame = "help: change `device.ftl.mapping_unit`";
    says(&message, &["`device.nand.page_size`: a page of 8 KiB", "a.toml:2:16", blame]);
    let message = refused("[device.ftl]\nmapping_unit = \"3 KiB\"", &[]);
    says(&message, &["`device.ftl.mapping_unit`: 3 KiB is not a power of two", "a.toml:2:16"]);
}

#[test]
fn a_drive_has_the_size_that_is_asked_for() {
    let scenario = accepted("size = \"3 GiB\"", &[]);
    let mut device = leyden_device::Config::default();
    leyden_device::fit(&mut device, 3 << 30).unwrap();
    assert_eq!((scenario.size, &scenario.device), (None, &device));
    assert_eq!(leyden_device::capacity_bytes(&device), Ok(3 << 30));
    // Of the drive that is meant, and not of the one that it replaces.
    let message = refused("size = \"100 TiB\"\n[device.ftl]\nmapping_unit = \"4 KiB\"", &[]);
    says(
        &message,
        &["`device.ftl.mapping_unit`", "a.toml:3:16", "device.ftl.mapping_unit=\"64 KiB\""],
    );
    let message = refused("", &["size=100 TiB"]);
    says(&message, &["--> --set:1:", "64 KiB"]);
    says(&refused("", &["size=7 B"]), &["`size`: 7 B are less", "--> --set:1:6", "1 MiB"]);
    let message = refused("size = \"1 GiB\"\n[device.zoned]\n[host.zoned_block]", &[]);
    says(&message, &["`size`: two drives have no one size", "blocks_per_plane"]);
}

#[test]
fn overrides_are_toml_or_bare_texts_and_keep_their_place() {
    let scenario = accepted(
        "",
        &[
            "seed=7",
            "name = two words",
            "device.nand.read=45 us",
            "device.ftl.over_provisioning=28%",
            "device.ftl.placement={ policy = \"dac\", regions = 4 }",
        ],
    );
    assert_eq!((scenario.seed, scenario.name.as_str()), (7, "two words"));
    assert_eq!(scenario.device.nand.read, Span::from_us(45));
    assert_eq!(scenario.device.ftl.over_provisioning.as_ppm(), 280_000);
    assert_eq!(scenario.device.ftl.placement.name(), "dac");
    let message = refused("", &["device.nand.read=60 jiffies"]);
    says(&message, &["--> --set:1:18", "1 | device.nand.read=60 jiffies", "help: expected one of"]);
    let message = refused("", &["device.nand.raed=60 us"]);
    says(&message, &["--> --set:1:1", "the nearest key is `read`"]);
}

#[test]
fn malformed_overrides_are_refused_at_once() {
    let refused = |text: &str| text.parse::<Set>().unwrap_err().to_string();
    says(&refused("seed"), &["there is no `=`", "key=value"]);
    says(&refused("=1"), &["`` is not a key"]);
    says(&refused("a..b=1"), &["`a..b` is not a key", "--set:1:1"]);
    says(&refused("a=[1,"), &["not a TOML value", "--set:1:"]);
}

#[test]
fn files_extend_files_relative_to_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(
        at,
        "devices/base.toml",
        "seed = 3\n[device.nand]\nread = \"40 us\"\nprogram = \"1 ms\"\n",
    );
    write(at, "devices/mid.toml", "extends = \"base.toml\"\n[device.nand]\nprogram = \"2 ms\"\n");
    let top = write(at, "jobs/top.toml", "extends = \"../devices/mid.toml\"\nseed = 5\n");
    let scenario = Loaded::new(&top, &[]).unwrap().scenario;
    assert_eq!(scenario.seed, 5);
    assert_eq!(scenario.device.nand.read, Span::from_us(40));
    assert_eq!(scenario.device.nand.program, Span::from_ms(2));

    write(at, "devices/base.toml", "[device.nand]\nread = \"40 parsec\"\n");
    let message = Loaded::new(&top, &[]).unwrap_err().to_string();
    says(&message, &["base.toml:2:8", "unknown unit `parsec`"]);
}

#[test]
fn circles_and_missing_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let a = write(at, "a.toml", "extends = \"b.toml\"");
    write(at, "b.toml", "extends = \"./a.toml\"");
    let message = Loaded::new(&a, &[]).unwrap_err().to_string();
    says(&message, &["goes round in circles", "b.toml:1:11"]);
    says(&refused("\nextends = \"no.toml\"", &[]), &["cannot read no.toml", "a.toml:2:11"]);
    says(&refused("extends = 3", &[]), &["`extends` is not a path", "a.toml:1:11"]);
    let message = Loaded::new("bench/randm-write", &[]).unwrap_err().to_string();
    says(&message, &["cannot read bench/randm-write", "called `bench/random-write`"]);
}

#[test]
fn a_policy_or_workload_replaces_the_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(
        at,
        "base.toml",
        "[device.ftl.placement]\npolicy = \"dac\"\nregions = 5\n[[workload.job]]\nrequests = 9\n",
    );
    let over = "extends = \"base.toml\"\nworkload.trace = \"x.csv\"\ndevice.ftl.placement.policy = \"single\"\n";
    let top = write(at, "sub/top.toml", &over.replace("base", "../base"));
    let scenario = Loaded::new(&top, &[]).unwrap().scenario;
    assert_eq!(scenario.device.ftl.placement.name(), "single");
    assert!(scenario.workload.job.is_empty());
    let trace = scenario.workload.trace.unwrap();
    assert_eq!(trace.path(), "x.csv");
    assert!(matches!(trace.replay().pace, Pace::Timestamps { .. }), "a trace keeps its times");
    assert_eq!(trace.source, TraceSource::Disk(at.join("sub/x.csv")));
    // Options beside a bare name belong to it.
    let set = ["workload.trace.mode=closed", "workload.trace.queue_depth=4"];
    let set = set.map(|set| set.parse().unwrap());
    let trace = Loaded::new(&top, &set).unwrap().scenario.workload.trace.unwrap();
    assert_eq!(trace.replay().pace, Pace::QueueDepth(4));
    assert_eq!(trace.source, TraceSource::Disk(at.join("sub/x.csv")));
    let set = ["workload.job.0.requests=4".parse().unwrap()];
    let base = at.join("base.toml").display().to_string();
    let job = &Loaded::new(&base, &set).unwrap().scenario.workload.job[0];
    assert_eq!(job.requests, Some(4));
}

#[test]
fn traces_are_checked() {
    let trace = |line: &str| refused(&format!("[workload.trace]\npath = \"x\"\n{line}\n"), &[]);
    says(&trace("queue_depth = 0"), &["`workload.trace.queue_depth`", "a.toml:3:15"]);
    says(
        &trace("mode = \"open\"\nspeed = 0"),
        &["at 0 nothing would", "a.toml:4:9", "help: use 1"],
    );
    says(&trace("format = \"cvs\""), &["no trace format is called `cvs`", "a.toml:3:10"]);
    says(&trace("speed = nan"), &["is not a share"]);
    let unnamed =
        ["`workload.trace.without`: `a b` is no class's name", "a.toml:3:11", "help: give one"];
    says(&trace("without = [\"a b\"]"), &unnamed);
    says(&trace("spead = 1"), &["unknown key `workload.trace.spead`", "a.toml:3:1", "`speed`"]);
    says(&trace("[[workload.job]]"), &["both jobs and a trace"]);
}

#[test]
fn layers_above_the_drive_are_checked() {
    let message = refused("[host.hints]\nbatch = 0\n", &[]);
    says(&message, &["`host.hints.batch`: 0 is not in 1..=256", "a.toml:2:9"]);
    says(&refused("[host.hints]\nchannel = \"pigyback\"\n", &[]), &["piggyback"]);
    says(&refused("[host.page_cash]\n", &[]), &["page_cash", "page_cache"]);
    let message = refused("[workload.trace]\npath = \"x\"\nhints = \"\"\n", &[]);
    says(&message, &["`workload.trace.hints`: the path is empty", "a.toml:3:9", "help: name a"]);
    let both = "host.page_cache = {}\n[workload.trace]\npath = \"x\"\nhints = \"y\"\n";
    let message = refused(both, &[]);
    says(&message, &["`workload.trace.hints`", "a.toml:4:9", "help: remove one of the two"]);
    let scenario = accepted("host.hints.channel = \"off\"", &[]);
    assert!(scenario.host.channel().is_none() && !scenario.host.is_bare());
}

#[test]
fn hints_are_found_like_their_trace() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[workload.trace]\npath = \"x.csv\"\nhints = \"h/x.csv\"\n";
    let file = write(folder.path(), "a.toml", text);
    let trace = Loaded::new(&file, &[]).unwrap().scenario.workload.trace.unwrap();
    let expected = TraceSource::Disk(folder.path().join("h/x.csv"));
    assert_eq!(trace.hints_source, Some(expected));
}

#[test]
fn a_scenario_serialises_to_one_that_loads_the_same() {
    let scenario = accepted("[workload.trace]\npath = \"t\"\nspeed = 2\nmode = \"open\"\n", &[]);
    let text = serde_json::to_string(&scenario).unwrap();
    let back: Scenario = serde_json::from_str(&text).unwrap();
    let speed = Ratio::from_percent(200);
    let pace = back.workload.trace.unwrap().replay().pace;
    assert!(matches!(pace, Pace::Timestamps { speed: s, .. } if s == speed), "{pace:?}");
    assert_eq!(back.device, scenario.device);
}

#[test]
fn cuts_are_refused_where_they_cannot_be_made() {
    let power = "[device.power]\n";
    let message = refused("[[run.cut]]\nat = \"1 s\"", &[]);
    says(
        &message,
        &["`run.cut`: the drive's power is never cut", "add one, or leave out `run.cut`"],
    );
    let message = refused(&format!("{power}[[run.cut]]\noff = \"1 s\""), &[]);
    says(&message, &["`run.cut.0` lacks the key `at`"]);
    let unsorted = "[[run.cut]]\nat = \"2 s\"\n[[run.cut]]\nat = \"1 s\"";
    let message = refused(&format!("{power}{unsorted}"), &[]);
    says(&message, &["`run.cut.1.at`: 1 s is before the cut above it, at 2 s", "a.toml:5:6"]);
    let dark = "[[run.cut]]\nat = \"1 s\"\n[[run.cut]]\nat = \"1050 ms\"";
    let message = refused(&format!("{power}{dark}"), &[]);
    says(&message, &["the power is off at 1050 ms, from 1 s until 1100 ms", "`run.cut.0.off`"]);
    let message = refused(&format!("{power}{dark}"), &["run.cut.0.off=0 s"]);
    says(&message, &["`run.cut.0.off`: power that is never off", "use 1 ns or more"]);
    let scenario = accepted(&format!("{power}{dark}"), &["run.cut.0.off=50 ms"]);
    let [first, second] = scenario.run.cut[..] else { panic!("two cuts") };
    assert_eq!((first.at, first.off), (Span::from_ms(1000), Span::from_ms(50)));
    assert_eq!((second.at, second.off), (Span::from_ms(1050), Span::from_ms(100)));
}

#[test]
fn atomic_writes_are_refused_where_no_drive_keeps_them() {
    const TABLE: &str = "[device.atomic]\nnawupf = \"16 KiB\"\n";
    accepted(TABLE, &[]);
    let zoned = refused(&format!("[device.zoned]\n{TABLE}"), &[]);
    says(&zoned, &["device.atomic", "a zoned drive promises no atomic writes"]);
    let member = refused("[device.zoned]\n[host.conventional.atomic]\nnawupf = \"16 KiB\"\n", &[]);
    says(&member, &["host.conventional.atomic", "a block device on two drives splits writes"]);
}
