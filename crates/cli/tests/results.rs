//! Results of commands that have ended: kept files, exit codes, and runs that can be repeated.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny.toml");

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leyden"));
    command.current_dir(folder).args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn ends_with(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = run(folder, args);
    ends_with(&output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder with a copy of the tiny scenario, and its path in there.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(TINY, folder.path().join("tiny.toml")).unwrap();
    folder
}

#[test]
fn a_record_without_series_keeps_the_rest_and_is_read_everywhere() {
    let folder = folder();
    let path = folder.path();
    let whole = json(path, &["run", "tiny.toml", "--json"]);
    let short = json(path, &["run", "tiny.toml", "--json", "--no-series", "--out", "out"]);
    assert!(whole.get("series").is_some() && short.get("series").is_none());
    let saved = fs::read(path.join("out/tiny.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&saved).unwrap(), short);
    let again = run(path, &["run", "out/tiny.json", "--no-cache"]);
    ends_with(&again, 0);
    assert!(
        stderr(&again).contains("the digest is the same as in the record"),
        "{}",
        stderr(&again)
    );
    ends_with(&run(path, &["report", "out/tiny.json", "-o", "page.html"]), 0);
    let page = fs::read_to_string(path.join("page.html")).unwrap();
    assert!(page.contains("<h3>Write amplification"));
    let told = "Write amplification over time: The record was saved without series.";
    assert!(page.contains(told) && !page.contains("<h3>Write amplification over time"));
    // Wall times differ between two runs, and nothing else.
    for (key, value) in whole.as_object().unwrap() {
        let same = short.get(key) == Some(value);
        assert!(same || ["series", "sim", "reproduce"].contains(&key.as_str()), "{key}");
    }
    let many = ["compare", "tiny.toml", "--vary", "seed=1,2", "--json", "--no-series"];
    let runs = json(path, &many)["runs"].as_array().unwrap().clone();
    assert!(runs.len() == 2 && runs.iter().all(|run| run.get("series").is_none()));
    let refused = run(path, &["run", "tiny.toml", "--no-series", "--csv", "t.csv"]);
    ends_with(&refused, 2);
    assert!(stderr(&refused).contains("--no-series has no effect without a record"));
}

/// Arithmetic takes no memory: each bank of a drive that no run could hold has its figures.
#[test]
fn worst_cases_of_any_capacity_are_computed() {
    for size in ["4 TB", "30 TB", "60 TB"] {
        let unit = if size == "4 TB" { "4 KiB" } else { "64 KiB" };
        let sets = [format!("size={size}"), format!("device.ftl.mapping_unit={unit}")];
        let args = [
            "size",
            "devices/tlc-datacenter",
            "--worst",
            "--json",
            "--set",
            &sets[0],
            "--set",
            &sets[1],
        ];
        let worst = json(Path::new("."), &args);
        let banks = worst["banks"].as_array().unwrap();
        assert!(banks.iter().all(|bank| bank["problem"].is_null()), "{size}: {banks:?}");
        let capacity = worst["capacity_bytes"].as_f64().unwrap() / 1e12;
        assert_eq!(format!("{capacity:.0} TB"), size);
    }
}

#[test]
fn a_result_replaces_no_scenario_and_no_trace() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("a.csv"), "time_us,op,lba,len\n0,W,0,8\n").unwrap();
    for (flag, target) in [("--report", "tiny.toml"), ("--report", "a.csv"), ("--csv", "a.csv")] {
        let before = fs::read(path.join(target)).unwrap();
        let output = run(path, &["run", "tiny.toml", flag, target]);
        ends_with(&output, 2);
        assert!(stderr(&output).contains("it is left alone"), "{}", stderr(&output));
        assert_eq!(fs::read(path.join(target)).unwrap(), before, "{flag} {target}");
    }
    for target in ["tiny.toml", "a.csv"] {
        let before = fs::read(path.join(target)).unwrap();
        let output = run(path, &["size", "power-loss", "--worst", "--csv", target]);
        ends_with(&output, 2);
        assert!(
            stderr(&output).contains("is not a table of banks: it is left alone"),
            "{}",
            stderr(&output)
        );
        assert_eq!(fs::read(path.join(target)).unwrap(), before, "{target}");
    }
    for _ in 0..2 {
        ends_with(&run(path, &["size", "power-loss", "--worst", "--csv", "banks.csv"]), 0);
    }
    // A report takes the place of an older one, and so does a table.
    for _ in 0..2 {
        let output = run(path, &["run", "tiny.toml", "--report", "r.html", "--csv", "t.csv"]);
        ends_with(&output, 0);
        assert_eq!(stderr(&output), "wrote t.csv\nwrote r.html\n");
    }
    let output = run(path, &["run", "tiny.toml", "--report", "r.html", "--quiet"]);
    assert_eq!(stderr(&output), "");
}

#[test]
fn records_of_other_configurations_are_kept() {
    let folder = folder();
    let path = folder.path();
    let out = |extra: &[&str]| {
        let output = run(path, &[&["run", "tiny.toml", "--out", "out"], extra].concat());
        ends_with(&output, 0);
        stderr(&output)
    };
    assert_eq!(out(&[]), "wrote out/tiny.json\n");
    assert_eq!(out(&["--seed", "7"]), "wrote out/tiny-2.json\n");
    assert_eq!(out(&[]), "wrote out/tiny.json\n", "the same again");
    let vary = "device.ftl.over_provisioning=28%,35%";
    let output = run(path, &["compare", "tiny.toml", "--out", "out", "--vary", vary]);
    let wrote = "wrote out/tiny-over_provisioning=28pct.json\nwrote out/tiny-over_provisioning=35pct.json\n";
    assert_eq!(stderr(&output), wrote);
}

#[test]
fn a_snapshot_that_is_made_again_says_why() {
    let folder = folder();
    let path = folder.path();
    let set = ["--set", "precondition.snapshot=a.snap", "--set", "precondition.kind=fill"];
    let with = |extra: &[&str]| {
        let output = run(path, &[&["run", "tiny.toml"][..], &set, extra].concat());
        ends_with(&output, 0);
        stderr(&output)
    };
    assert_eq!(with(&[]), "", "nothing was there");
    assert_eq!(with(&[]), "", "it is loaded");
    let said = with(&["--seed", "9"]);
    assert_eq!(said, "note: the snapshot a.snap is made again: `seed` is 9 and was 1\n");
    assert_eq!(with(&["--quiet"]), "");
}

#[test]
fn a_worn_out_drive_and_an_empty_measurement_have_exit_codes_of_their_own() {
    let folder = folder();
    let path = folder.path();
    let worn = ["run", "tiny.toml", "--json", "--set", "device.nand.endurance_cycles=1"];
    let output = run(path, &[&worn[..], &["--set", "workload.job.0.requests=60000"]].concat());
    ends_with(&output, 4);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(record["host"]["write_faults"].as_u64().unwrap() > 0);
    assert!(stderr(&output).contains("worn out"), "{}", stderr(&output));

    let output = run(path, &["run", "tiny.toml", "--set", "run.ramp.time=1 h"]);
    ends_with(&output, 5);
    assert!(stderr(&output).contains("nothing was measured"), "{}", stderr(&output));
    assert!(stdout(&output).contains("digest"), "the table is shown all the same");
}

#[test]
fn a_record_and_a_report_are_enough_to_run_again() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("a.csv"), "time_us,op,lba,len\n0,W,0,8\n9,R,0,8\n").unwrap();
    let set = ["--set", "workload.trace.path=a.csv"];
    ends_with(&run(path, &[&["run", "tiny.toml", "--out", "out"][..], &set].concat()), 0);
    let vary = "device.ftl.gc.victim=greedy,fifo";
    let compare = ["compare", "tiny.toml", "--vary", vary, "--report", "gc.html", "--json"];
    let compared = json(path, &compare);
    fs::remove_file(path.join("tiny.toml")).unwrap();

    let again = run(path, &["run", "out/tiny.json"]);
    ends_with(&again, 0);
    assert!(stderr(&again).contains("the digest is the same"), "{}", stderr(&again));
    let fifo = json(path, &["run", "gc.html#fifo", "--json", "--quiet"]);
    assert_eq!(fifo["sim"]["digest"], compared["runs"][1]["sim"]["digest"]);
    assert_ne!(fifo["sim"]["digest"], compared["runs"][0]["sim"]["digest"]);

    for (file, said) in [
        ("gc.html", "choose one as gc.html#NAME: greedy, fifo"),
        ("gc.html#fifi", "the nearest is `fifo`"),
    ] {
        let output = run(path, &["run", file]);
        ends_with(&output, 2);
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    fs::write(path.join("a.csv"), "time_us,op,lba,len\n0,W,0,8\n9,R,0,16\n").unwrap();
    let output = run(path, &["run", "out/tiny.json"]);
    ends_with(&output, 2);
    assert!(stderr(&output).contains("is not the file that was recorded"), "{}", stderr(&output));
}

#[test]
fn output_of_check_is_the_same_scenario() {
    let folder = folder();
    let path = folder.path();
    for scenario in ["tiny.toml", "zombie/figure2"] {
        let output = run(path, &["check", scenario]);
        ends_with(&output, 0);
        fs::write(path.join("full.toml"), &output.stdout).unwrap();
        let digest = |file| json(path, &["run", file, "--json"])["sim"]["digest"].clone();
        assert_eq!(digest("full.toml"), digest(scenario), "{scenario}");
    }
    let output = run(path, &["check", "tiny.toml", "--set", "device.ftl.over_provisioning=1 ppm"]);
    ends_with(&output, 2);
}

#[test]
fn standard_input_is_a_scenario() {
    let script = format!("cat {TINY} | {} run - --json", env!("CARGO_BIN_EXE_leyden"));
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    ends_with(&output, 0);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let folder = folder();
    assert_eq!(
        record["sim"]["digest"],
        json(folder.path(), &["run", TINY, "--json"])["sim"]["digest"]
    );
}

#[test]
fn a_sweep_over_seeds_is_told_as_means_and_kept_as_a_table() {
    let folder = folder();
    let path = folder.path();
    let args = [
        "compare",
        "tiny.toml",
        "--vary",
        "seed=1..3",
        "--vary",
        "device.ftl.gc.victim=greedy,fifo",
    ];
    let output =
        run(path, &[&args[..], &["--csv", "sweep.csv", "--report", "sweep.html"]].concat());
    ends_with(&output, 0);
    let table = stdout(&output);
    assert!(table.contains("greedy") && table.contains("means over 3 seeds"), "{table}");
    let csv = fs::read_to_string(path.join("sweep.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 7);
    assert!(lines[0].starts_with("run,seed,digest,seed,device.ftl.gc.victim,"), "{}", lines[0]);
    let means: Vec<f64> = ["greedy", "fifo"]
        .map(|policy| {
            let column = lines[0].split(',').position(|name| name == "host.iops").unwrap();
            let rows = lines[1..].iter().filter(|line| line.contains(policy));
            let values: Vec<f64> =
                rows.map(|line| line.split(',').nth(column).unwrap().parse().unwrap()).collect();
            values.iter().sum::<f64>() / values.len() as f64
        })
        .into();
    assert!(table.contains(&leyden_report::format::number(means[0])), "{means:?} {table}");

    for wrong in ["device.ftl.gc.victim=greedy,greedy", "seed=3..1"] {
        ends_with(&run(path, &["compare", "tiny.toml", "--vary", wrong]), 2);
    }
}

/// `--seeds N` is `--vary seed=` from the scenario's own on, and what comes of it is the same.
#[test]
fn several_seeds_are_runs_of_their_own_with_a_spread() {
    let folder = folder();
    let path = folder.path();
    let digests = |args: &[&str]| -> Vec<String> {
        let runs = json(path, &[args, &["--json"]].concat());
        let runs = runs["runs"].as_array().unwrap().iter();
        runs.map(|run| run["sim"]["digest"].as_str().unwrap().to_owned()).collect()
    };
    let varied = digests(&["compare", "tiny.toml", "--seed", "4", "--vary", "seed=4..6"]);
    assert_eq!(digests(&["run", "tiny.toml", "--seed", "4", "--seeds", "3"]), varied);
    assert_eq!(varied.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);

    let victims = "device.ftl.gc.victim=greedy,fifo";
    let output = run(path, &["compare", "tiny.toml", "--vary", victims, "--seeds", "3"]);
    ends_with(&output, 0);
    let runs = json(path, &["compare", "tiny.toml", "--vary", victims, "--seeds", "3", "--json"]);
    let waf = |run: usize| runs["runs"][run]["flash"]["waf"].as_f64().unwrap();
    let mut ratios: Vec<f64> = (0..3).map(|seed| waf(seed + 3) / waf(seed)).collect();
    ratios.sort_by(f64::total_cmp);
    let [least, most] = [ratios[0], ratios[2]].map(leyden_report::format::number);
    assert!(least != most, "seeds differ");
    let table = stdout(&output);
    assert!(table.contains(&format!("[{least}, {most}]")), "{least} {most}\n{table}");
    assert!(table.contains("in brackets the least and the most"), "{table}");

    let both = ["compare", "tiny.toml", "--vary", "seed=1,2", "--seeds", "2"];
    let last = u64::MAX.to_string();
    for wrong in [
        &both[..],
        &["run", "-", "--seeds", "2"],
        &["run", "tiny.toml", "--seed", &last, "--seeds", "2"],
    ] {
        let output = run(path, wrong);
        ends_with(&output, 2);
        assert!(stderr(&output).contains("--seeds") && stderr(&output).contains("help:"));
    }
}

#[test]
fn manual_pages_and_lists_are_complete() {
    let folder = folder();
    let path = folder.path();
    ends_with(&run(path, &["man", "man"]), 0);
    let page = fs::read_to_string(path.join("man/leyden-trace-convert.1")).unwrap();
    assert!(page.starts_with(".ie") && page.contains("leyden\\-trace\\-convert"), "{page}");
    assert!(fs::read_to_string(path.join("man/leyden.1")).unwrap().contains("Exit codes"));
    let policies = json(path, &["policies", "--json"]);
    assert!(
        policies.as_array().unwrap().iter().any(|folder| folder["key"] == "device.ftl.gc.victim")
    );
    let schema = json(path, &["schema", "record"]);
    assert!(schema["properties"]["host"].is_object());
    let version = stdout(&run(path, &["--version"]));
    assert!(version.starts_with(concat!("leyden ", env!("CARGO_PKG_VERSION"))), "{version}");
}

/// A record as its schema has it: every name is there, and nothing else.
#[test]
fn a_record_holds_to_its_schema() {
    let folder = folder();
    let record = json(folder.path(), &["run", "tiny.toml", "--json"]);
    let schema = json(folder.path(), &["schema", "record"]);
    check(&schema, &schema, &record, "record");
}

fn check(root: &Value, schema: &Value, value: &Value, path: &str) {
    let target = schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?));
    let schema = target.unwrap_or(schema);
    if let Some(choices) = schema["anyOf"].as_array() {
        return check(root, &choices[0], value, path);
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    let table = value.as_object().unwrap_or_else(|| panic!("{path} is no table"));
    for (key, below) in table {
        let property =
            properties.get(key).unwrap_or_else(|| panic!("{path}.{key} is not in the schema"));
        check(root, property, below, &format!("{path}.{key}"));
    }
    for key in schema["required"].as_array().into_iter().flatten() {
        assert!(table.contains_key(key.as_str().unwrap()), "{path} lacks {key}");
    }
}

#[test]
fn a_drives_life_follows_from_its_cycles() {
    let folder = folder();
    let path = folder.path();
    let life = |cycles: &str| json(path, &["lifetime", "tiny.toml", "--cycles", cycles, "--json"]);
    let (one, two) = (life("1000"), life("2000"));
    let years = |life: &Value| life["years"].as_f64().unwrap();
    assert!((years(&two) / years(&one) - 2.0).abs() < 1e-9);
    let record = json(path, &["run", "tiny.toml", "--json"]);
    assert_eq!(one["waf"], record["flash"]["waf"]);
    let output = run(path, &["lifetime", "tiny.toml"]);
    ends_with(&output, 2);
    assert!(stderr(&output).contains("--cycles"), "{}", stderr(&output));
}

#[test]
fn the_key_that_is_to_blame_is_named_with_its_line() {
    let folder = folder();
    let path = folder.path();
    for (set, blamed) in [
        ("device.ftl.mapping_unit=6 KiB", "`device.ftl.mapping_unit`: 6 KiB is not a power of two"),
        ("device.nand.blocks_per_plane=2", "device.nand.blocks_per_plane"),
    ] {
        let output = run(path, &["run", "tiny.toml", "--set", set]);
        ends_with(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(blamed) && said.contains("--set:1:"), "{said}");
    }
    // One that is possible neither with a key nor without it blames none that has nothing to do with it.
    let output = run(path, &["run", "tiny.toml", "--set", "host.page_cache.dirty_ratio=20 %"]);
    ends_with(&output, 2);
    assert!(stderr(&output).starts_with("error: `host.page_cache.size`: "), "{}", stderr(&output));
    fs::write(path.join("only.toml"), "extends = \"devices/hexaa\"\n").unwrap();
    let output = run(path, &["run", "only.toml"]);
    ends_with(&output, 2);
    assert!(
        stderr(&output).contains("the nearest bundled scenario is `devices/hexa`"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn devices_of_one_trace_are_chosen_stacked_or_overlaid() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("two.csv"), "0,W,0,4096,10\n1,W,0,4096,20\n0,R,0,4096,30\n").unwrap();
    let end = |args: &[&str]| {
        let profile = json(path, &[&["trace", "info", "two.csv", "--json"][..], args].concat());
        (profile["profile"]["end_byte"].as_u64().unwrap(), profile["format"].clone())
    };
    assert_eq!(end(&["--overlay"]), (4096, "alibaba".into()));
    assert_eq!(end(&["--stack", "1MiB"]).0, (1 << 20) + 4096);
    assert_eq!(end(&["--device", "0"]).0, 4096);
    let output = run(path, &["trace", "info", "two.csv"]);
    ends_with(&output, 2);
    for flag in ["--device", "--stack", "--overlay"] {
        assert!(stderr(&output).contains(flag), "{}", stderr(&output));
    }
    let trace = ["--set", "workload.trace.path=two.csv"];
    let with =
        |set: &str| run(path, &[&["run", "tiny.toml"][..], &trace, &["--set", set]].concat());
    ends_with(&with("workload.trace.stack=1 MiB"), 0);
    ends_with(&with("workload.trace.overlay=true"), 0);
    let info = run(path, &["trace", "info", "scenarios/traces/tpcc.csv.zst"]);
    ends_with(&info, 0);
}

/// A conversion that replaced its input would lose part of it for good.
#[test]
fn a_conversion_never_replaces_what_it_reads() {
    let folder = folder();
    let path = folder.path();
    let text = "time_us,op,lba,len,flags,class\n0,W,0,8,WFS,wal\n";
    fs::write(path.join("a.csv"), text).unwrap();
    fs::write(path.join("hints.csv"), "time_us,op,lba,len\n0,H,0,8\n").unwrap();
    std::os::unix::fs::symlink("a.csv", path.join("link.csv")).unwrap();
    let convert = |args: &[&str]| {
        run(path, &[&["trace", "convert"][..], args, &["--force", "--to", "msr"]].concat())
    };
    for args in [
        &["a.csv", "a.csv"][..],
        &["link.csv", "a.csv"],
        &["a.csv", "link.csv"],
        &["a.csv", "./a.csv"],
        &["a.csv", "hints.csv", "--hints", "hints.csv"],
    ] {
        let output = convert(args);
        ends_with(&output, 2);
        assert!(stderr(&output).contains("this is the trace that is read"), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(path.join("a.csv")).unwrap(), text, "{args:?}");
    }
    ends_with(&convert(&["a.csv", "b.csv"]), 0);
    ends_with(&convert(&["a.csv", "b.csv"]), 0);
}

/// Columns of one's own give the same trace by flag, by key and as converted.
#[test]
fn columns_are_described_by_a_flag_or_a_key() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("nvme.txt"), "# ns\n0 w 0 1\n10000 w 1 4\n20000 r 1 4\n").unwrap();
    let columns = "time:ns op:r/w lba:4096 len:4096";
    let info = ["trace", "info", "nvme.txt", "--json", "--columns", columns];
    let profile = &json(path, &info)["profile"];
    assert_eq!((&profile["bytes_written"], &profile["bytes_read"]), (&20480.into(), &16384.into()));
    let convert = ["trace", "convert", "nvme.txt", "b.csv", "--columns", columns];
    ends_with(&run(path, &convert), 0);
    let right = "time_us,op,lba,len,flags,class\n0,W,0,8,W,-\n10,W,8,32,W,-\n20,R,8,32,R,-\n";
    assert_eq!(fs::read_to_string(path.join("b.csv")).unwrap(), right);
    let by = |key: &str| {
        let set = format!("workload.trace={key}");
        json(path, &["run", "tiny.toml", "--json", "--set", &set])["measured"]["digest"].clone()
    };
    let by_key = by(&format!("{{ path = \"nvme.txt\", columns = \"{columns}\" }}"));
    assert_eq!(by_key, by("{ path = \"b.csv\" }"));
    let wrong = "workload.trace={ path = \"nvme.txt\", columns = \"time lba len op:r/w\" }";
    let output = run(path, &["run", "tiny.toml", "--set", wrong]);
    ends_with(&output, 2);
    assert!(stderr(&output).contains("workload.trace.columns"), "{}", stderr(&output));
    assert!(stderr(&output).contains("no unit of s, ms"), "{}", stderr(&output));
    let output = run(path, &["trace", "info", "nvme.txt"]);
    ends_with(&output, 2);
    assert!(
        stderr(&output).contains("beginning is of no known format: `# ns`"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn torture_says_that_there_was_nothing_to_make_small() {
    let folder = folder();
    let output = run(folder.path(), &["torture", "--seed", "17", "--shrink", "small.json"]);
    ends_with(&output, 0);
    assert!(stderr(&output).contains("nothing failed: small.json was not written"));
    assert!(!folder.path().join("small.json").exists());
}

/// As any other file that holds no campaign, and with what can be done about it.
#[test]
fn a_folder_is_no_state_of_a_campaign() {
    let folder = folder();
    fs::create_dir(folder.path().join("states")).unwrap();
    let output = run(folder.path(), &["torture", "--seeds", "1", "--state", "states"]);
    ends_with(&output, 2);
    assert!(stderr(&output).contains("states is no campaign's state: it is a folder"));
    assert!(stderr(&output).contains("help: name a file"));
    assert_eq!(fs::read_dir(folder.path().join("states")).unwrap().count(), 0);
    assert!(!folder.path().join("states.lock").exists());
}

/// A wrong argument is quoted as it was typed, and the remedy fits the fault.
#[test]
fn messages_name_what_to_mend() {
    let folder = folder();
    let path = folder.path();
    let files = [
        ("fine.csv", "time_us,op,lba,len\n0,W,0,8\n"),
        ("digits.csv", "time_us,op,lba,len\n0.12345,W,0,8\n"),
        ("empty.csv", "time_us,op,lba,len\n0,W,0,0\n"),
        ("hosts.csv", "0,web,0,Write,0,4096,1\n10,usr,1,Write,0,4096,1\n"),
        ("idle.toml", "extends = \"devices/hexa\"\n"),
        ("lost.toml", "extends = \"tiny.toml\"\n[workload]\ntrace = \"no.csv\"\n"),
    ];
    for (name, text) in files {
        fs::write(path.join(name), text).unwrap();
    }
    let cases: &[(&[&str], i32, &str)] = &[
        (&["trace", "info", "digits.csv"], 2, "at most three decimals"),
        (&["trace", "info", "empty.csv"], 2, "check the column of lengths"),
        (
            &["trace", "info", "hosts.csv", "--device", "web,7"],
            2,
            "devices that are in it: `usr,1`, `web,0`\n",
        ),
        (
            &["trace", "convert", "fine.csv", "/no/such/x.csv"],
            3,
            "No such file or directory (os error 2)\n",
        ),
        (&["run", "lost.toml"], 2, "lost.toml:3:"),
        (
            &["compare", "tiny.toml", "--vary", "device.ftl.gc.victim=gredy,fifo"],
            2,
            "--> --vary:1:22",
        ),
        (&["compare", "tiny.toml", "--vary", "seed=1,1"], 2, "there twice"),
        (
            &["run", "tiny.toml", "--set", "device.ftl.placement={policy='dac',regions=99}"],
            2,
            "99 is not in 2..=8",
        ),
        (
            &["run", "tiny.toml", "--set", "workload.job.7.queue_depth=8"],
            2,
            "help: there is one, `workload.job.0`",
        ),
        (&["run", "tiny.toml", "--set", "workload.job.0.read_share=70"], 2, "0.7 is 70 %"),
        (&["run", "tiny.toml", "--set", "device.ftl.capacity=0 B"], 2, "less than a mapping unit"),
        (&["run", "idle.toml"], 2, " --> idle.toml\n"),
        (&["run", "tiny.toml", "--set", "device.ftl.over_provisioning=28"], 2, "write \"28 %\""),
        (
            &["run", "tiny.toml", "--set", "device.buffer.size=8.2 GiB"],
            2,
            "is not a whole number of B",
        ),
    ];
    for (args, code, part) in cases {
        let output = run(path, args);
        ends_with(&output, *code);
        let said = stderr(&output);
        assert!(said.contains(part) && !said.contains(".leyden-"), "{args:?}: {said}");
    }
    // Units as tables, reports and data sheets write them.
    let units = ["device.nand.program=700 µs", "device.nand.read=60 usec", "device.buffer.size=1M"];
    let units = units.iter().chain(&["device.nand.channel_rate=800 MT/s"]);
    let sets: Vec<&str> = units.flat_map(|unit| ["--set", unit]).collect();
    ends_with(&run(path, &[&["check", "tiny.toml"], &sets[..]].concat()), 0);
}

/// The over-provisioning that a refusal names makes a drive.
#[test]
fn remedies_of_refusals_work() {
    let folder = folder();
    let check = |sets: &[&str]| {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        run(folder.path(), &["check", "tiny.toml"].into_iter().chain(sets).collect::<Vec<_>>())
    };
    let little = "device.ftl.over_provisioning=0.1 %";
    for sets in [&[little][..], &[little, "device.power.bank.parts=500"]] {
        let refused = check(sets);
        ends_with(&refused, 2);
        let message = stderr(&refused);
        let (_, proposed) = message.split_once("over_provisioning of \"").expect(&message);
        let (proposed, _) = proposed.split_once('"').unwrap();
        let set = format!("device.ftl.over_provisioning={proposed}");
        ends_with(&check(&[sets, &[&set]].concat()), 0);
    }
    let none = ["device.nand.blocks_per_plane=4", "device.power.bank.parts=500"];
    let refused = check(&none);
    ends_with(&refused, 2);
    assert!(stderr(&refused).contains("give planes more blocks"), "{}", stderr(&refused));
    // `size` refuses what `run` refuses, and says it once. So many units have no addresses; a small machine lacks the memory.
    let many = "device.nand.blocks_per_plane=30000";
    let refused = run(folder.path(), &["size", "devices/tlc-datacenter", "--set", many]);
    ends_with(&refused, 2);
    let said = stderr(&refused);
    assert!(said.contains("error: `device.nand") && !said.contains("warning"), "{said}");
    let refused = run(folder.path(), &["size", "tiny.toml", "--set", none[0], "--set", none[1]]);
    ends_with(&refused, 2);
    assert_eq!(stderr(&refused).matches("no block of").count(), 1, "{}", stderr(&refused));
}
