//! `leyden sweep`: many runs, in shards, as one table.

use std::io::Write;
use std::path::Path;

use leyden_report::format::{bytes, count};
use leyden_sweep::{Options, Plan, SweepError, merge, run_shard, status};
use serde_json::json;

use super::{Cancel, cache, print_json, threads};
use crate::args::{SweepArgs, SweepCommand};
use crate::failure::Failure;
use crate::output::progress::{self, Progress};
use crate::output::table::Table;
use crate::version;

pub(crate) fn main(args: &SweepArgs, cancel: &Cancel) -> Result<(), Failure> {
    match (&args.command, &args.plan, &args.out) {
        (Some(SweepCommand::Points { plan }), ..) => points(&Plan::read(plan)?),
        (Some(SweepCommand::Status { folder, json }), ..) => show(folder, *json),
        (Some(SweepCommand::Merge { folder, output, series, partial }), ..) => {
            let merged = merge(folder, output, series.as_deref(), *partial)?;
            progress::wrote(output);
            if let (Some(series), Some(_)) = (series, merged.series_rows) {
                progress::wrote(series);
            }
            anstream::println!("{} runs, {}", count(merged.rows), bytes(merged.bytes as f64));
            Ok(())
        }
        (None, Some(plan), Some(out)) => run(args, plan, out, cancel),
        (None, ..) => unreachable!("clap requires both"),
    }
}

fn run(args: &SweepArgs, plan: &Path, out: &Path, cancel: &Cancel) -> Result<(), Failure> {
    let plan = Plan::read(plan)?;
    plan.check()?;
    let bar = Progress::new("sweep");
    let drives = cache::drives(args.no_cache);
    let options = Options {
        jobs: threads(args.jobs),
        build: &version::build(),
        with_series: args.series,
        retry_failed: args.retry_failed,
        cache: drives.as_ref(),
        cancel,
        progress: &|fraction| bar.fraction(fraction),
        note: &|text| bar.line(text),
    };
    let done = run_shard(&plan, args.shard, out, &options);
    drop(bar);
    let done = done?;
    let before = done.points - done.made;
    let earlier = if before > 0 { format!(", {} before", count(before)) } else { String::new() };
    anstream::println!("{} points: {} run now{earlier}", count(done.points), count(done.made));
    if done.failed == 0 {
        return Ok(());
    }
    Err(Failure::failed(anyhow::anyhow!(
        "{} of {} points have no results; the column `error` says why\n  help: --retry-failed runs them again; where the \
         plan or an input has to change, choose another folder",
        count(done.failed),
        count(done.points)
    )))
}

/// The points, one a line.
fn points(plan: &Plan) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "point\t{}", plan.columns().join("\t"))?;
    for point in (0..plan.len()).filter_map(|index| plan.point(index)) {
        writeln!(out, "{}\t{}", point.index, point.values.join("\t"))?;
    }
    Ok(())
}

fn show(folder: &Path, is_json: bool) -> Result<(), Failure> {
    let found = status(folder)?;
    if is_json {
        return print_json(&json!({
            "shards": found.shards,
            "whole": found.whole,
            "begun": found.begun,
            "points": found.points,
            "rows": found.rows,
            "missing": found.missing,
        }));
    }
    let mut table = Table::default();
    table.row(["shards", &count(u64::from(found.shards))]);
    table.row(["whole", &count(u64::from(found.whole))]);
    table.row(["running, or ended early", &count(u64::from(found.begun))]);
    table.row(["runs in whole shards", &count(found.rows)]);
    table.write(&mut anstream::stdout().lock())?;
    Ok(())
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Load(error) => error.into(),
            SweepError::Interrupted { kept, points } => Self::interrupted(format!(
                "kept {kept} of {points} points; the same command resumes"
            )),
            error if error.is_io() => Self::io(error),
            error => Self::usage(error),
        }
    }
}
