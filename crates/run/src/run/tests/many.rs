//! Runs side by side, and what a run says of its own cost.

use std::sync::Mutex;

use super::*;

/// Four workloads on one drive, one on another, and one on a new drive.
fn scenarios() -> Vec<Scenario> {
    vec![
        small(&[]),
        small(&["workload.job.0.queue_depth=4"]),
        small(&["device.nand.read=61us"]),
        small(&["workload.job.0.read_share=0"]),
        small(&["precondition.kind=none"]),
        // A peak of the buffer is the run's own, not that of preconditioning.
        small(&["workload.job.0.requests=1"]),
    ]
}

fn run_with(jobs: usize, scenarios: &[Scenario]) -> Vec<RunRecord> {
    let cancel = AtomicBool::new(false);
    let shares = Mutex::new(Vec::new());
    let progress = |_, share| shares.lock().unwrap().push(share);
    let all: Vec<&Scenario> = scenarios.iter().collect();
    let outcomes = run_all(
        &all,
        &Plan { jobs, cancel: &cancel, progress: &progress, note: &|_, _| {}, cache: None },
    );
    assert!(shares.into_inner().unwrap().iter().all(|share| (0.0..=1.0).contains(share)));
    outcomes.into_iter().map(|outcome| outcome.unwrap().unwrap().record).collect()
}

/// All of a record but what the machine has to do with.
fn results(record: RunRecord) -> RunRecord {
    let sim = leyden_record::Sim { digest: record.sim.digest, ..leyden_record::Sim::default() };
    RunRecord { sim, ..record }
}

#[test]
fn neither_threads_nor_shared_drives_change_a_result() {
    let scenarios = scenarios();
    let alone: Vec<_> = scenarios.iter().map(|scenario| results(record(scenario))).collect();
    for jobs in [1, 3] {
        let together = run_with(jobs, &scenarios).into_iter().map(results);
        assert_eq!(together.collect::<Vec<_>>(), alone, "{jobs}");
    }
}

#[test]
fn drives_that_agree_are_preconditioned_once() {
    let scenarios = scenarios();
    let aged = AgedDrives::of(&scenarios);
    let made = std::cell::Cell::new(0);
    for scenario in &scenarios {
        let age = || {
            made.set(made.get() + 1);
            make(scenario, &mut Hooks::default())
        };
        let _: (Ssd<Stamp>, _) = aged.prepare(scenario, age).unwrap();
    }
    assert_eq!(made.get(), 3, "one for four, and two of their own");
    let is_shared: Vec<_> = scenarios.iter().map(|scenario| aged.is_shared(scenario)).collect();
    assert_eq!(is_shared, [true, true, false, true, false, true]);
}

#[test]
fn a_failure_ends_the_runs_after_it() {
    let scenarios = [small(&[]), small(&["device.buffer.size=1 B"]), small(&[])];
    let cancel = AtomicBool::new(false);
    let all: Vec<&Scenario> = scenarios.iter().collect();
    let outcomes = run_all(
        &all,
        &Plan { jobs: 1, cancel: &cancel, progress: &|_, _| {}, note: &|_, _| {}, cache: None },
    );
    assert!(matches!(outcomes.as_slice(), [Some(Ok(_)), Some(Err(_)), None]), "{outcomes:?}");
}

#[test]
fn the_check_after_a_run_can_be_turned_off_and_is_told() {
    let (auto, never) = (record(&small(&[])), record(&small(&["run.check=never"])));
    assert!(auto.sim.checked && !never.sim.checked);
    assert_eq!(auto.sim.digest, never.sim.digest);
    // 320,000 units, of which a short run on a new drive touches few.
    let large = [
        "device.nand={ channels = 2, dies_per_channel = 2, blocks_per_plane = 313, pages_per_block = 64, page_size = \"16 KiB\" }",
        "precondition.kind=none",
        "workload.job.0.requests=1000",
    ];
    let always = [large[0], large[1], large[2], "run.check=always"];
    let (auto, always) = (record(&small(&large)), record(&small(&always)));
    assert!(!auto.sim.checked && always.sim.checked);
    assert_eq!(auto.sim.digest, always.sim.digest);
}

#[test]
fn processor_time_is_the_runs_own() {
    let sim = record(&small(&[])).sim;
    assert!(sim.cpu_s > 0.0 && sim.cpu_s <= sim.wall_s * 1.05 + 0.02, "{sim:?}");
    let rates = [sim.host_ios_per_cpu_s, sim.host_ios_per_s];
    assert!((rates[0] * sim.cpu_s - rates[1] * sim.wall_s).abs() < 1.0, "{sim:?}");
    assert!(sim.flash_ops_per_cpu_s > 0.0);
}

/// A ramp takes no time of the part that is measured after it.
#[test]
fn processor_time_is_of_the_measured_part() {
    let took = |requests: u64, ramp: u64| {
        let requests = format!("workload.job.0.requests={requests}");
        let ramp = format!("run.ramp.requests={ramp}");
        record(&small(&[&requests, &ramp])).sim
    };
    let (whole, part) = (took(60_000, 0), took(3_000, 57_000));
    assert!(
        part.cpu_s < whole.cpu_s / 3.0 && part.wall_s < whole.wall_s / 3.0,
        "{part:?} {whole:?}"
    );
}

/// A trace that writes next to nothing would be replayed for hours until a drive has settled.
#[test]
fn a_trace_that_hardly_writes_ages_no_drive() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.csv");
    let aged = |writes: u64, reads: u64| {
        let read = |at: u64| format!("{at},R,{},8\n", at % 64 * 8);
        let write = |at: u64| format!("0,W,{},8\n", at % 64 * 8);
        let lines = (0..writes).map(write).chain((1..=reads).map(read)).collect::<String>();
        std::fs::write(&trace, format!("time_us,op,lba,len\n{lines}")).unwrap();
        let path = format!("workload.trace.path={}", trace.display());
        let sets = [&path, "precondition.distribution=workload", "precondition.kind=steady"];
        let sets: Vec<_> = sets.iter().map(|set| set.parse().unwrap()).collect();
        let text = "[device.nand]\nchannels = 2\ndies_per_channel = 1\nblocks_per_plane = 24\n\
                    pages_per_block = 4\n[device.ftl]\nover_provisioning = \"28 %\"\n[workload.trace]\nloops = 1\n";
        let scenario = Loaded::from_text("t", text, &sets).unwrap().scenario;
        run(&scenario, &mut Hooks::default()).map(|_| ()).map_err(|error| error.to_string())
    };
    let refusal = aged(1, 1_001).unwrap_err();
    assert!(refusal.contains("writes 1 mapping units between 1001 reads"), "{refusal}");
    assert_eq!(aged(2_000, 4_000), Ok(()));
}

/// A drive of the cache is that of a trace's content, not of its name; and results are the same with and without.
#[test]
fn a_cached_drive_is_made_of_the_traces_content() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.csv");
    let write = |bytes: u64| {
        let line =
            |at: u64| format!("{},h,0,Write,{},{bytes},0\n", at * 1000, at * bytes % (1 << 19));
        std::fs::write(&trace, (0..2_000).map(line).collect::<String>()).unwrap();
    };
    let scenario = || {
        let path = format!("workload.trace.path={}", trace.display());
        let sets =
            [path.as_str(), "precondition.distribution=workload", "precondition.kind=steady"];
        let sets: Vec<_> = sets.iter().map(|set| set.parse().unwrap()).collect();
        let text = "[device.nand]\nchannels = 2\ndies_per_channel = 1\nblocks_per_plane = 24\n\
                    pages_per_block = 32\n[device.ftl]\nover_provisioning = \"28 %\"\n[workload.trace]\nloops = 1\n";
        Loaded::from_text("t", text, &sets).unwrap().scenario
    };
    let cache = DriveCache::new(folder.path().join("drives"), "b", 1 << 30);
    let digest = |cache: Option<&DriveCache>| {
        let mut hooks = Hooks { cache, ..Hooks::default() };
        run(&scenario(), &mut hooks).unwrap().record.sim.digest
    };
    let mut digests = Vec::new();
    for bytes in [4096, 16_384] {
        write(bytes);
        let without = digest(None);
        assert_eq!(digest(Some(&cache)), without, "{bytes}: made");
        assert_eq!(digest(Some(&cache)), without, "{bytes}: loaded");
        digests.push(without);
    }
    assert_ne!(digests[0], digests[1]);
    assert_eq!(cache.used().drives, 2, "one for each content");
    assert_ne!(drive_key(&scenario()), {
        write(4096);
        drive_key(&scenario())
    });
}
