//! Whole sweeps: the merged table is the same bytes whoever runs the shards, and nothing is lost or made twice.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use leyden_sweep::{Done, Options, Plan, Shard, SweepError, merge, run_shard, status};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const SMALL: &str = r#"
[device.nand]
channels = 2
dies_per_channel = 1
blocks_per_plane = 24
pages_per_block = 32
[[workload.job]]
pattern = "random"
block_size = "4 KiB"
requests = 600
[precondition]
kind = "fill"
"#;
const PLAN: &str = r#"
base = "small.toml"
seeds = 2
require = ["workload.job.0.queue_depth <= 8"]
[grid]
device.ftl.over_provisioning = ["20 %", "28 %"]
device.ftl.gc.victim = ["greedy", "fifo"]
workload.job.0.queue_depth = [1, 8, 16]
"#;

fn plan(folder: &Path, text: &str) -> Plan {
    fs::write(folder.join("small.toml"), SMALL).unwrap();
    fs::write(folder.join("plan.toml"), text).unwrap();
    Plan::read(&folder.join("plan.toml")).unwrap()
}

struct Run<'a> {
    jobs: usize,
    build: &'a str,
    retry_failed: bool,
    /// Interrupted after so many points.
    stop_after: u64,
}

impl Default for Run<'_> {
    fn default() -> Self {
        Self { jobs: 1, build: "b", retry_failed: false, stop_after: u64::MAX }
    }
}

impl Run<'_> {
    fn shard(&self, plan: &Plan, shard: &str, folder: &Path) -> Result<Done, SweepError> {
        let (cancel, ended) = (AtomicBool::new(false), AtomicU64::new(0));
        let progress = |_| {
            if ended.fetch_add(1, Ordering::SeqCst) + 1 >= self.stop_after {
                cancel.store(true, Ordering::SeqCst);
            }
        };
        let options = Options {
            jobs: self.jobs,
            build: self.build,
            with_series: true,
            retry_failed: self.retry_failed,
            cache: None,
            cancel: &cancel,
            progress: &progress,
            note: &|_| {},
        };
        run_shard(plan, shard.parse::<Shard>().unwrap(), folder, &options)
    }
}

fn merged(folder: &Path) -> (Vec<u8>, Vec<u8>) {
    let (runs, series) = (folder.join("runs.parquet"), folder.join("series.parquet"));
    merge(folder, &runs, Some(&series), false).unwrap();
    (fs::read(runs).unwrap(), fs::read(series).unwrap())
}

fn rows(file: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(file).unwrap()).unwrap();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap()
}

#[test]
fn the_bytes_do_not_depend_on_shards_threads_or_interruptions() {
    let temporary = tempfile::tempdir().unwrap();
    let plan = plan(temporary.path(), PLAN);
    assert_eq!(plan.len(), 24);
    let folder = |name: &str| temporary.path().join(name);

    let one = folder("one");
    let done = Run::default().shard(&plan, "1/1", &one).unwrap();
    assert_eq!(done, Done { points: 16, made: 16, failed: 0 });
    let whole = merged(&one);
    let again = Run::default().shard(&plan, "1/1", &one).unwrap();
    assert_eq!(again, Done { points: 16, made: 0, failed: 0 }, "what is done is not done again");

    let threads = folder("threads");
    Run { jobs: 3, ..Run::default() }.shard(&plan, "1/1", &threads).unwrap();
    assert!(merged(&threads) == whole, "threads");

    let shards = folder("shards");
    for shard in ["3/3", "1/3", "2/3"] {
        Run { jobs: 2, ..Run::default() }.shard(&plan, shard, &shards).unwrap();
    }
    assert!(merged(&shards) == whole, "shards");
    // More shards than points: some are empty.
    let many = folder("many");
    for shard in 1..=30 {
        Run::default().shard(&plan, &format!("{shard}/30"), &many).unwrap();
    }
    assert!(merged(&many) == whole, "a shard for each point");

    let broken = folder("broken");
    let mut kept_before = 0;
    loop {
        match (Run { stop_after: 3, ..Run::default() }).shard(&plan, "1/1", &broken) {
            Err(SweepError::Interrupted { kept, points: 16 }) => {
                assert!(kept > kept_before && kept < 16, "{kept} after {kept_before}");
                kept_before = kept;
                // A kill in the midst of a line.
                let journal = broken.join("part-00001-of-00001.rows");
                let bytes = fs::read(&journal).unwrap();
                fs::write(&journal, [&bytes[..], b"{\"point\": 3, \"id\": \"x"].concat()).unwrap();
            }
            Ok(done) => {
                assert!(done.made < 16);
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(merged(&broken) == whole, "interrupted and resumed");
}

#[test]
fn numbers_are_numbers_and_each_point_is_its_run() {
    let temporary = tempfile::tempdir().unwrap();
    let plan = plan(temporary.path(), PLAN);
    let folder = temporary.path().join("parts");
    Run::default().shard(&plan, "1/1", &folder).unwrap();
    let table = rows(&folder.join("part-00001-of-00001.parquet"));
    let column = |name: &str| table.column_by_name(name).unwrap_or_else(|| panic!("{name}"));
    let points = column("point").as_primitive::<Int64Type>();
    assert_eq!(points.values()[..4], [0, 1, 2, 3]);
    assert_eq!(points.values()[4], 6, "4 and 5 have a queue depth of 16");
    let spare = column("config.device.ftl.over_provisioning").as_primitive::<Float64Type>();
    assert_eq!((spare.value(0), spare.value(15)), (0.2, 0.28));
    assert_eq!(column("config.device.ftl.gc.victim").as_string::<i32>().value(0), "greedy");
    assert_eq!(column("error").null_count(), 16);
    assert!(table.column_by_name("sim.cpu_s").is_none(), "a figure of the machine");
    // A point is the run that its settings make.
    let loaded = plan.templates().unwrap().load(&plan.point(9).unwrap()).unwrap();
    let record =
        leyden_run::run(&loaded.scenario, &mut leyden_run::Hooks::default()).unwrap().record;
    let at = points.values().iter().position(|point| *point == 9).unwrap();
    assert_eq!(column("digest").as_string::<i32>().value(at), record.sim.digest);
    let waf = column("flash.waf").as_primitive::<Float64Type>().value(at);
    assert_eq!(waf.to_bits(), record.flash.waf.to_bits());
    let erases = column("flash.erases").as_primitive::<Int64Type>().value(at);
    assert_eq!(erases as u64, record.flash.erases);
    // Its series are that run's.
    let series = rows(&folder.join("series-00001-of-00001.parquet"));
    let names = series.column_by_name("series").unwrap().as_string::<i32>();
    let of = series.column_by_name("point").unwrap().as_primitive::<Int64Type>();
    let value = series.column_by_name("value").unwrap().as_primitive::<Float64Type>();
    let waf: Vec<f64> = (0..series.num_rows())
        .filter(|&line| names.value(line) == "waf" && of.value(line) == 9)
        .map(|line| value.value(line))
        .collect();
    assert_eq!(waf, record.series.waf);
}

#[test]
fn a_point_that_cannot_be_run_is_a_row_that_says_why() {
    let temporary = tempfile::tempdir().unwrap();
    let text = PLAN.replace("\"28 %\"", "\"0 %\"").replace("require", "#");
    let plan = plan(temporary.path(), &text);
    let folder = temporary.path().join("parts");
    let done = Run::default().shard(&plan, "1/1", &folder).unwrap();
    assert!(done.failed == 12 && done.points == 24, "{done:?}");
    let table = rows(&folder.join("part-00001-of-00001.parquet"));
    let errors = table.column_by_name("error").unwrap().as_string::<i32>();
    let digests = table.column_by_name("digest").unwrap();
    let said: Vec<&str> = errors.iter().flatten().collect();
    assert!(
        said.len() == 12 && said.iter().all(|text| text.contains("over_provisioning")),
        "{said:?}"
    );
    assert_eq!(digests.null_count(), 12);
    let before = merged(&folder);
    let retried =
        Run { retry_failed: true, ..Run::default() }.shard(&plan, "1/1", &folder).unwrap();
    assert_eq!((retried.made, retried.failed), (12, 12), "only those that failed");
    assert!(merged(&folder) == before, "the others are as they were");
}

#[test]
fn parts_of_another_plan_build_or_number_of_shards_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let first = plan(temporary.path(), PLAN);
    let folder = temporary.path().join("parts");
    Run::default().shard(&first, "1/2", &folder).unwrap();
    let refusal = |result: Result<Done, SweepError>| result.unwrap_err().to_string();
    let other = Run { build: "c", ..Run::default() }.shard(&first, "1/2", &folder);
    assert!(refusal(other).contains("another build, b; this is c"));
    let text = PLAN.replace("seeds = 2", "seeds = 3");
    let second = plan(temporary.path(), &text);
    assert!(refusal(Run::default().shard(&second, "1/2", &folder)).contains("of another plan"));
    // The scenario has changed below the same plan.
    let third = plan(temporary.path(), PLAN);
    fs::write(temporary.path().join("small.toml"), SMALL.replace("600", "601")).unwrap();
    assert!(refusal(Run::default().shard(&third, "1/2", &folder)).contains("has changed since"));
    let runs = temporary.path().join("runs.parquet");
    let missing = merge(&folder, &runs, None, false).unwrap_err().to_string();
    assert!(missing.contains("1 of 2 shards are missing: 2") && !runs.exists(), "{missing}");
    assert_eq!(merge(&folder, &runs, None, true).unwrap().rows, 8);
    let now = status(&folder).unwrap();
    assert_eq!((now.shards, now.whole, now.rows, now.missing), (2, 1, 8, vec![2]));
    fs::write(folder.join("part-00002-of-00002.parquet"), b"PAR1 no more").unwrap();
    let broken = merge(&folder, &runs, None, false).unwrap_err().to_string();
    assert!(broken.contains("no whole Parquet file"), "{broken}");
    fs::write(folder.join("part-00001-of-00003.rows"), b"").unwrap();
    assert!(status(&folder).unwrap_err().to_string().contains("of 2 and of 3 shards"));
}

#[test]
fn where_the_plan_stands_is_not_in_the_results() {
    let temporary = tempfile::tempdir().unwrap();
    let text = "base = \"small.toml\"\ndevice = [\"one.toml\", \"two.toml\"]\n\
                [set]\ndevice.ftl.over_provisioning = \"28 %\"\n[grid]\nworkload.job.0.name = [\"1\", \"x\"]\n";
    let results = |place: &str| {
        let folder = temporary.path().join(place);
        fs::create_dir_all(&folder).unwrap();
        let plan = plan(&folder, text.replace("small", place).as_str());
        for name in ["one.toml", "two.toml", &format!("{place}.toml")] {
            fs::write(folder.join(name), format!("name = \"n\"\n{SMALL}")).unwrap();
        }
        let plan = Plan::read(&folder.join("plan.toml")).unwrap_or(plan);
        let parts = folder.join("parts");
        Run::default().shard(&plan, "1/1", &parts).unwrap();
        (merged(&parts).0, plan, parts)
    };
    let (first, plan, parts) = results("small");
    let table = rows(&parts.join("part-00001-of-00001.parquet"));
    let devices = table.column_by_name("device").unwrap().as_string::<i32>();
    assert_eq!(devices.iter().flatten().collect::<Vec<_>>()[1..3], ["one.toml", "two.toml"]);
    assert_eq!(
        table.column_by_name("error").unwrap().null_count(),
        4,
        "a text that looks like a number"
    );
    let folder = temporary.path().join("small");
    let moved = temporary.path().join("moved");
    fs::rename(&folder, &moved).unwrap();
    let again = Plan::read(&moved.join("plan.toml")).unwrap();
    let parts = moved.join("again");
    Run::default().shard(&again, "1/1", &parts).unwrap();
    assert!(merged(&parts).0 == first, "another folder");
    // Each file of a plan decides which sweep it is.
    drop(plan);
    fs::write(moved.join("two.toml"), format!("name = \"n\"\nseed = 5\n{SMALL}")).unwrap();
    let refused = Run::default().shard(&again, "1/1", &parts).unwrap_err().to_string();
    assert!(refused.contains("has changed since"), "{refused}");
}

#[test]
fn a_file_is_its_own_shards_and_a_cut_off_head_is_none() {
    let temporary = tempfile::tempdir().unwrap();
    let plan = plan(temporary.path(), PLAN);
    let folder = temporary.path().join("parts");
    fs::create_dir(&folder).unwrap();
    let journal = folder.join("part-00001-of-00002.rows");
    fs::write(&journal, b"{\"format\":1,\"pl").unwrap();
    Run::default().shard(&plan, "1/2", &folder).unwrap();
    assert!(!journal.exists());
    let other = Run::default().shard(&plan, "1/3", &folder).unwrap_err().to_string();
    assert!(other.contains("it has parts of 2 shards, and this is shard 1/3"), "{other}");
    let (one, two) =
        (folder.join("part-00001-of-00002.parquet"), folder.join("part-00002-of-00002.parquet"));
    fs::copy(&one, &two).unwrap();
    fs::copy(
        folder.join("series-00001-of-00002.parquet"),
        folder.join("series-00002-of-00002.parquet"),
    )
    .unwrap();
    let twice =
        merge(&folder, &temporary.path().join("runs"), None, false).unwrap_err().to_string();
    assert!(twice.contains("that of another shard"), "{twice}");
    fs::remove_file(&two).unwrap();
    Run::default().shard(&plan, "2/2", &folder).unwrap();
    let replaced = merge(&folder, &one, None, false).unwrap_err().to_string();
    assert!(replaced.contains("it is a part of the sweep"), "{replaced}");
    assert!(leyden_sweep::read_table(&temporary.path().join("plan.toml")).is_err());
}

#[test]
fn keys_that_need_each_other_are_tried_together() {
    let temporary = tempfile::tempdir().unwrap();
    let text = "base = \"small.toml\"\n[grid]\ndevice.ftl.gc.victim.policy = [\"d_choices\"]\n\
                device.ftl.gc.victim.d = [2, 4]\n";
    plan(temporary.path(), text).check().unwrap();
    let none = plan(temporary.path(), &text.replace("d_choices", "d_choice")).check().unwrap_err();
    assert!(none.to_string().contains("d_choices"), "{none}");
    let text = "base = \"small.toml\"\nrequire = [\"device.buffer.size > 9 MiB\"]\n\
                [grid]\ndevice.buffer.size = [\"8 MiB\"]\n";
    fs::write(temporary.path().join("none.toml"), text).unwrap();
    let none = Plan::read(&temporary.path().join("none.toml")).unwrap_err().to_string();
    assert!(none.contains("no point satisfies it"), "{none}");
}
