//! The commands.

pub(crate) mod cache;
#[cfg(feature = "serve")]
mod campaign_page;
pub(crate) mod check;
pub(crate) mod compare;
#[cfg(feature = "crashtest")]
pub(crate) mod crashtest;
#[cfg(feature = "serve")]
pub(crate) mod fs;
#[cfg(feature = "serve")]
pub(crate) mod image;
pub(crate) mod lifetime;
pub(crate) mod lists;
mod live;
#[cfg(feature = "serve")]
mod log;
#[cfg(feature = "serve")]
pub(crate) mod mount;
#[cfg(feature = "plot")]
pub(crate) mod plot;
mod programs;
#[cfg(feature = "serve")]
pub(crate) mod recording;
pub(crate) mod reproduce;
pub(crate) mod run;
#[cfg(feature = "serve")]
pub(crate) mod serve;
#[cfg(feature = "serve")]
mod service;
pub(crate) mod size;
pub(crate) mod sweep;
mod swept;
pub(crate) mod timeline;
pub(crate) mod torture;
pub(crate) mod trace;

use std::borrow::Cow;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use leyden_config::{LoadError, Loaded, Scenario, Set, run_command};
use leyden_record::{Comparison, Host, RunRecord, Series};
use leyden_run::{DriveCache, Hooks, Outcome, Phase, RunError, run as run_scenario, validate};

use leyden_report::format;
use leyden_workload::trace::TraceError;

use crate::args::{Common, ReportArgs};
use crate::failure::Failure;
use crate::output::atomic;
use crate::output::place::{self, Kind};
use crate::output::progress::{self, Progress};
use crate::version;

/// The flag that Ctrl-C sets.
pub(crate) type Cancel = Arc<AtomicBool>;

/// The largest file that is read as a run record.
const MAX_RECORD_BYTES: u64 = 1 << 30;

/// `leyden report`.
pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    place::check(&args.output, Kind::Report)?;
    if let [path] = &args.records[..]
        && swept::is_table(path)
    {
        let page = swept::page(path, args.title.as_deref())?;
        atomic::write(&args.output, page.as_bytes())?;
        progress::wrote(&args.output);
        return Ok(());
    }
    let mut records = Vec::new();
    for path in &args.records {
        records.extend(records_in(path, &read_record(path)?)?);
    }
    write_report(&args.output, &records, args.title.as_deref())
}

/// The text of a file of records; a file without an end is none.
fn read_record(path: &Path) -> Result<String, Failure> {
    let read = || {
        let mut json = String::new();
        let file = std::fs::File::open(path)?;
        if file.take(MAX_RECORD_BYTES + 1).read_to_string(&mut json)? as u64 > MAX_RECORD_BYTES {
            let problem = format!("it is larger than {} MiB", MAX_RECORD_BYTES >> 20);
            return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, problem));
        }
        Ok(json)
    };
    read()
        .with_context(|| {
            let help = "name run records, as `leyden run --json` and `--out` write them";
            format!("cannot read {}\n  help: {help}", path.display())
        })
        .map_err(Failure::usage)
}

/// The records in `json`, the text of the file at `path`.
fn records_in(path: &Path, json: &str) -> Result<Vec<RunRecord>, Failure> {
    leyden_report::read_records(json)
        .with_context(|| path.display().to_string())
        .map_err(Failure::usage)
}

/// Renders the report on `records` into `path`.
fn write_report(path: &Path, records: &[RunRecord], title: Option<&str>) -> Result<(), Failure> {
    let html = leyden_report::render(records, title).map_err(Failure::failed)?;
    atomic::write(path, html.as_bytes())?;
    progress::wrote(path);
    Ok(())
}

/// JSON on standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(Failure::failed)?;
    text.push('\n');
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// A note on standard error, in the manner of errors.
pub(crate) fn warn(text: &str) {
    let style = anstyle::AnsiColor::Yellow.on_default().bold();
    let text = crate::output::escape::shown(text, true);
    // Standard error may be full, or closed.
    let _ = writeln!(anstream::stderr(), "{style}warning{style:#}: {text}");
}

/// The overrides of the command line, `--seed` included.
fn overrides(set: &[Set], seed: Option<u64>) -> Result<Vec<Set>, Failure> {
    let mut sets = set.to_vec();
    if let Some(seed) = seed {
        sets.push(parsed(&format!("seed={seed}"))?);
    }
    Ok(sets)
}

fn parsed(set: &str) -> Result<Set, Failure> {
    parsed_of("--set", set)
}

/// The same, given with another option than `--set`.
fn parsed_of(option: &str, set: &str) -> Result<Set, Failure> {
    Set::of_option(option, set).map_err(|problem| Failure::usage(LoadError::from(problem)))
}

/// Loads a scenario, with `--allow-underprovisioned` as one of the overrides if it is given.
fn load(file: &str, sets: &mut Vec<Set>, allow_underprovisioned: bool) -> Result<Loaded, Failure> {
    let loaded = Loaded::new(file, sets)?;
    if !allow_underprovisioned {
        return Ok(loaded);
    }
    if loaded.scenario.device.power.is_none() {
        return Err(Failure::usage(anyhow::anyhow!(
            "--allow-underprovisioned: {file} says nothing of capacitors, so there is nothing to allow\n  \
             help: add a table [device.power], or leave the flag out"
        )));
    }
    sets.push(parsed("device.power.allow_underprovisioned=true")?);
    Ok(Loaded::new(file, sets)?)
}

/// Refuses before a long run what could not be kept after it.
fn check_outputs(common: &Common, loaded: &Loaded) -> Result<(), Failure> {
    match &loaded.scenario.precondition.snapshot_file {
        Some(snapshot) if !snapshot.exists() => atomic::check_writable(snapshot)?,
        _ => {}
    }
    if common.no_series && !common.json && common.out.is_none() {
        return Err(Failure::usage(anyhow::anyhow!(
            "--no-series has no effect without a record\n  help: add --json or --out"
        )));
    }
    if let Some(folder) = &common.out {
        make_folder(folder)?;
    }
    if let Some(report) = &common.report {
        place::check(report, Kind::Report)?;
    }
    if let Some(table) = &common.csv {
        place::check(table, Kind::Csv)?;
    }
    Ok(())
}

/// Makes a folder for results, and finds out whether anything can be written there.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .with_context(|| {
            format!("cannot make the folder {}\n  help: choose another", folder.display())
        })
        .map_err(Failure::io)?;
    atomic::check_writable(&folder.join("record.json"))
}

/// Runs to be made at once: as many as asked for, or as there are cores.
fn threads(jobs: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.map_or_else(cores, usize::from)
}

/// Runs one scenario with a progress bar.
fn run_one(
    loaded: &Loaded,
    reproduce: &str,
    drives: Option<&DriveCache>,
    cancel: &Cancel,
) -> Result<Outcome, Failure> {
    let bar = Progress::new(&loaded.scenario.name);
    let mut progress = |phase, fraction| {
        bar.phase(match phase {
            Phase::Preconditioning => "preconditioning",
            Phase::Running => "running",
        });
        bar.fraction(fraction);
    };
    let mut note = |text: &str| bar.line(text);
    let mut hooks = Hooks {
        cancel: Some(cancel),
        progress: Some(&mut progress),
        note: Some(&mut note),
        cache: drives,
        ..Hooks::default()
    };
    let outcome = run_scenario(&loaded.scenario, &mut hooks);
    drop(bar);
    let mut outcome = outcome.map_err(|error| explain(loaded, error))?;
    stamp(&mut outcome.record, loaded, reproduce);
    Ok(outcome)
}

/// A command on a scenario, with the keys that are set.
fn command_of(command: &str, file: &str, sets: &[Set]) -> String {
    run_command(file, sets).replacen("leyden run", command, 1)
}

/// Adds to a record what only the command line knows.
fn stamp(record: &mut RunRecord, loaded: &Loaded, reproduce: &str) {
    reproduce.clone_into(&mut record.reproduce);
    version::COMMIT.clone_into(&mut record.commit);
    if loaded.name() != record.name {
        loaded.name().clone_into(&mut record.scenario);
    }
}

/// A failure for a script, once results are kept and shown: the drive wore out, or nothing was
/// measured.
fn verdict(records: &[RunRecord]) -> Result<(), Failure> {
    let name = |record: &RunRecord| match records {
        [_] => String::new(),
        _ => format!("{}: ", record.name),
    };
    if let Some(worn) = records.iter().find(|record| record.host.write_faults > 0) {
        return Err(Failure::worn_out(anyhow::anyhow!(
            "{}the drive is worn out: it refused {} writes, for its flash had no room left; the results \
             are of the commands before and of those that needed none\n  help: lower \
             `device.nand.faults`, or raise `device.ftl.over_provisioning` or \
             `device.nand.endurance_cycles`",
            name(worn),
            format::count(worn.host.write_faults)
        )));
    }
    let commands = |host: &Host| host.reads + host.writes + host.flushes + host.trims + host.errors;
    match records.iter().find(|record| commands(&record.host) == 0) {
        None => Ok(()),
        Some(empty) => Err(Failure::nothing_measured(anyhow::anyhow!(
            "{}nothing was measured\n  help: shorten `run.ramp`, or give the run more to do",
            name(empty)
        ))),
    }
}

/// A run's failure, placed where its cause was written.
fn explain(loaded: &Loaded, error: RunError) -> Failure {
    match error {
        RunError::Config { key, problem } => {
            // A key is to blame if the scenario is possible without it, not if it is impossible otherwise.
            let fails = |scenario: &Scenario| validate(scenario).is_err();
            loaded.complaint_of(&key, &problem, &fails).into()
        }
        RunError::Interrupted => Failure::interrupted("there was nothing to keep yet"),
        RunError::Snapshot(..) => Failure::io(error),
        RunError::Precondition(_) => Failure::worn_out(error),
        RunError::Drive(_) if error.is_input() => {
            let trace = loaded.scenario.workload.trace.as_ref();
            let path = trace.map_or("the trace", |trace| trace.path());
            if let Some(cause) = cause_in_trace(&error) {
                // A fault in a trace's line is mended in the trace; a wrong path, in the scenario.
                if cause.is_missing() {
                    let cause = cause.kind();
                    let problem =
                        format!("{path}: {cause}; a path counts from the file it stands in");
                    return loaded.complaint("workload.trace.path", &problem).into();
                }
                return trace::failure(cause);
            }
            loaded.complaint("workload.trace", &format!("{path}: {error}")).into()
        }
        error @ (RunError::Drive(_) | RunError::Panicked(_)) => Failure::failed(error),
    }
}

/// The trace's error, if that ended the run.
fn cause_in_trace(error: &RunError) -> Option<&TraceError> {
    let mut causes = std::iter::successors(Some(error as &dyn std::error::Error), |e| e.source());
    causes.find_map(|cause| cause.downcast_ref())
}

/// Keeps and reports what was run: `--out`, `--report`, and JSON if that is asked for.
fn keep(common: &Common, records: &[RunRecord]) -> Result<(), Failure> {
    if let Some(folder) = &common.out {
        for (path, record) in place::of_records(folder, records).into_iter().zip(records) {
            let record = saved(record, common);
            let mut json = serde_json::to_vec_pretty(&record).map_err(Failure::failed)?;
            json.push(b'\n');
            atomic::write(&path, &json)?;
            progress::wrote(&path);
        }
    }
    if let Some(path) = &common.csv {
        atomic::write(path, leyden_report::csv(records).as_bytes())?;
        progress::wrote(path);
    }
    if let Some(path) = &common.report {
        write_report(path, records, None)?;
    }
    if !common.json {
        return Ok(());
    }
    match records {
        [record] => print_json(&saved(record, common)),
        runs => {
            let runs = runs.iter().map(|record| saved(record, common).into_owned()).collect();
            print_json(&Comparison { runs })
        }
    }
}

/// A record as `--json` and `--out` write it.
fn saved<'a>(record: &'a RunRecord, common: &Common) -> Cow<'a, RunRecord> {
    if common.no_series {
        Cow::Owned(RunRecord { series: Series::default(), ..record.clone() })
    } else {
        Cow::Borrowed(record)
    }
}
