//! What each command does.

pub(crate) mod compare;
pub(crate) mod image;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod size;
pub(crate) mod torture;
pub(crate) mod trace;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use clap_complete::Shell;
use leyden_experiment::{
    Comparison, Hooks, LoadError, Loaded, Outcome, Phase, RunError, RunRecord, Scenario, Set,
    policies, run as run_scenario,
};

use leyden_workload::trace::TraceError;

use crate::args::{Common, ReportArgs};
use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::output::{atomic, table};

/// The flag that Ctrl-C sets.
pub(crate) type Cancel = Arc<AtomicBool>;

/// The largest file that is read as a run record.
const MAX_RECORD_BYTES: u64 = 1 << 30;
/// The longest name of a record's file, in bytes, before its number and ending.
const MAX_STEM_BYTES: usize = 200;

/// `leyden policies`.
pub(crate) fn list_policies() -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let bold = anstyle::Style::new().bold();
    for (index, folder) in policies().into_iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{bold}{}{bold:#}  {}", folder.key, folder.summary)?;
        for (rank, policy) in folder.policies.iter().enumerate() {
            let default = if rank == 0 { " (default)" } else { "" };
            writeln!(out, "  {}{default}", policy.name)?;
            for line in table::wrap(&policy.doc, 90) {
                writeln!(out, "      {line}")?;
            }
            for (key, value, meaning) in &policy.parameters {
                writeln!(out, "      {key} = {value}  {meaning}")?;
            }
        }
    }
    Ok(())
}

/// `leyden schema`.
pub(crate) fn schema() -> Result<(), Failure> {
    print_json(&Scenario::schema())
}

/// `leyden completions`.
pub(crate) fn completions(shell: Shell, command: &mut clap::Command) -> Result<(), Failure> {
    // Into memory first: the generator panics when its writer fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "leyden", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}

/// `leyden report`.
pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let mut records = Vec::new();
    for path in &args.records {
        let json = read_record(path)
            .with_context(|| {
                let help = "name run records, as `leyden run --json` and `--out` write them";
                format!("cannot read {}\n  help: {help}", path.display())
            })
            .map_err(Failure::usage)?;
        let read = leyden_report::read_records(&json)
            .with_context(|| path.display().to_string())
            .map_err(Failure::usage)?;
        records.extend(read);
    }
    write_report(&args.output, &records, args.title.as_deref())
}

/// A record's text; what has no end is none.
fn read_record(path: &Path) -> std::io::Result<String> {
    let mut json = String::new();
    let file = std::fs::File::open(path)?;
    if file.take(MAX_RECORD_BYTES + 1).read_to_string(&mut json)? as u64 > MAX_RECORD_BYTES {
        let problem = format!("it is larger than {} MiB", MAX_RECORD_BYTES >> 20);
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, problem));
    }
    Ok(json)
}

/// Renders the report on `records` into `path`.
fn write_report(path: &Path, records: &[RunRecord], title: Option<&str>) -> Result<(), Failure> {
    let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
    let names = names.join(", ");
    let html = leyden_report::render(records, title.unwrap_or(&names)).map_err(Failure::failed)?;
    atomic::write(path, html.as_bytes())
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
    anstream::eprintln!("{style}warning{style:#}: {text}");
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
    set.parse().map_err(|problem: Box<_>| Failure::usage(LoadError::from(problem)))
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
    if let Some(folder) = &common.out {
        make_folder(folder)?;
    }
    match &common.report {
        Some(report) => atomic::check_writable(report),
        None => Ok(()),
    }
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
fn run_one(loaded: &Loaded, reproduce: &str, cancel: &Cancel) -> Result<Outcome, Failure> {
    let bar = Progress::new(&loaded.scenario.name);
    let mut progress = |phase, fraction| {
        bar.phase(match phase {
            Phase::Preconditioning => "preconditioning",
            Phase::Running => "running",
        });
        bar.fraction(fraction);
    };
    let mut hooks =
        Hooks { cancel: Some(cancel), progress: Some(&mut progress), ..Hooks::default() };
    let outcome = run_scenario(&loaded.scenario, &mut hooks);
    drop(bar);
    let mut outcome = outcome.map_err(|error| explain(loaded, error))?;
    reproduce.clone_into(&mut outcome.record.reproduce);
    Ok(outcome)
}

/// A run's failure, placed where its cause was written.
fn explain(loaded: &Loaded, error: RunError) -> Failure {
    match error {
        RunError::Config { key, problem } => loaded.complaint(&key, &problem).into(),
        RunError::Interrupted => Failure::interrupted("there was nothing to keep yet"),
        RunError::Snapshot(..) => Failure::io(error),
        error if error.is_input() => {
            if let Some(cause) = cause_in_trace(&error) {
                return trace::failure(cause);
            }
            let trace = loaded.scenario.workload.trace.as_ref();
            let path = trace.map_or("the trace", |trace| trace.path());
            loaded.complaint("workload.trace", &format!("{path}: {error}")).into()
        }
        error => Failure::failed(error),
    }
}

/// What was wrong with the trace, if that is what ended the run.
fn cause_in_trace(error: &RunError) -> Option<&TraceError> {
    let mut causes = std::iter::successors(Some(error as &dyn std::error::Error), |e| e.source());
    causes.find_map(|cause| cause.downcast_ref())
}

/// Keeps and reports what was run: `--out`, `--report`, and JSON if that is asked for.
fn keep(common: &Common, records: &[RunRecord]) -> Result<(), Failure> {
    if let Some(folder) = &common.out {
        for (path, record) in record_paths(folder, records).into_iter().zip(records) {
            let mut json = serde_json::to_vec_pretty(record).map_err(Failure::failed)?;
            json.push(b'\n');
            atomic::write(&path, &json)?;
        }
    }
    if let Some(path) = &common.report {
        write_report(path, records, None)?;
    }
    if !common.json {
        return Ok(());
    }
    match records {
        [record] => print_json(record),
        runs => print_json(&Comparison { runs: runs.to_vec() }),
    }
}

/// A file for each record, named after it; runs of one name are numbered.
fn record_paths(folder: &Path, records: &[RunRecord]) -> Vec<PathBuf> {
    let plain = |name: &str| -> String {
        let safe = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
        let mut text: String = name.chars().map(|c| if safe(c) { c } else { '-' }).collect();
        text.truncate(text.floor_char_boundary(MAX_STEM_BYTES));
        text.trim_matches(|c| c == '.' || c == '-').to_owned()
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for record in records {
        let stem = plain(&record.name);
        let stem = if stem.is_empty() { "run".to_owned() } else { stem };
        let numbered = (2..).map(|n| folder.join(format!("{stem}-{n}.json")));
        let path = std::iter::once(folder.join(format!("{stem}.json")))
            .chain(numbered)
            .find(|path| !paths.contains(path));
        paths.extend(path);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_get_files_of_their_own() {
        let named = |name: &str| RunRecord { name: name.into(), ..RunRecord::default() };
        let records = [named("a"), named("a"), named("../x, y=1"), named("")];
        let paths = record_paths(Path::new("out"), &records);
        let names: Vec<_> = paths.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(names, ["out/a.json", "out/a-2.json", "out/x--y=1.json", "out/run.json"]);
    }
}
