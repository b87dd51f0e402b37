//! `leyden torture`.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use leyden_experiment::claims::quote;
use leyden_torture::campaign::{Campaign, Failed, StateError, Summary, run_alone, run_twice};
use leyden_torture::{Kind, Options, SeedFile, shrink};

use leyden_report::format::{count, rate};

use super::{Cancel, print_json};
use crate::args::TortureArgs;
use crate::failure::Failure;
use crate::output::atomic;
use crate::output::progress::Progress;
use crate::output::table::Table;

/// Runs that are made to make a failure small, at most.
const MOST_ATTEMPTS: u32 = 5_000;
/// Failures that are shown.
const MOST_SHOWN: usize = 5;

pub(crate) fn main(args: &TortureArgs, cancel: &Cancel) -> Result<(), Failure> {
    if let Some(path) = &args.shrink {
        atomic::check_writable(path)?;
    }
    let (summary, origin) = match (&args.replay, args.seed) {
        (Some(path), _) => {
            let options = SeedFile::read(path).map_err(Failure::usage)?.options;
            let summary = run_alone(&options);
            refuse_unbuildable(path, &summary)?;
            (summary, Origin::File(path, Box::new(options)))
        }
        (None, Some(start)) if args.zoned => {
            let alone = Campaign { start, seeds: 1, threads: 1, state: None };
            let summary = alone.run_zoned(cancel, &mut |_| {}).map_err(Failure::usage)?;
            (summary, Origin::Zoned)
        }
        (None, Some(seed)) => (run_alone(&Options::draw(seed)), Origin::Seed),
        (None, None) => {
            let origin = if args.zoned { Origin::Zoned } else { Origin::Seed };
            (campaign(args, cancel)?, origin)
        }
    };
    if args.json {
        print_json(&summary)?;
    } else {
        show(&summary, &mut anstream::stdout().lock())?;
    }
    let is_whole = args.replay.is_some() || args.seed.is_some() || summary.seeds >= args.seeds;
    let Some(first) = summary.failed.first() else {
        return if is_whole { Ok(()) } else { Err(interrupted(args)) };
    };
    let small = match &args.shrink {
        Some(path) => Some(make_small(&origin.options(first.seed), path, cancel)?),
        None => None,
    };
    Err(Failure::failed(anyhow::anyhow!(
        "{}",
        explain(&summary, &origin, small.as_deref(), args.json)
    )))
}

/// Where a run comes from.
enum Origin<'a> {
    Seed,
    /// A seed of `--zoned`, which is not made small.
    Zoned,
    File(&'a Path, Box<Options>),
}

impl Origin<'_> {
    fn options(&self, seed: u64) -> Options {
        match self {
            Self::Seed | Self::Zoned => Options::draw(seed),
            Self::File(_, options) => options.as_ref().clone(),
        }
    }

    /// The command that runs it again.
    fn command(&self, seed: u64) -> String {
        match self {
            Self::Seed => format!("leyden torture --seed {seed}"),
            Self::Zoned => format!("leyden torture --zoned --seed {seed}"),
            Self::File(path, _) => {
                format!("leyden torture --replay {}", quote(&path.to_string_lossy()))
            }
        }
    }
}

fn campaign(args: &TortureArgs, cancel: &Cancel) -> Result<Summary, Failure> {
    if let Some(path) = &args.state {
        atomic::check_writable(path)?;
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let campaign = Campaign {
        start: args.start,
        seeds: args.seeds,
        threads: args.jobs.map_or(processors, usize::from),
        state: args.state.clone(),
    };
    let bar = Progress::new("torture");
    let mut note = |progress: leyden_torture::campaign::Progress| {
        bar.fraction(progress.done as f64 / progress.seeds as f64);
        let failed = match progress.violations {
            0 => String::new(),
            violations => format!(", {violations} FAILED"),
        };
        bar.note(format!("{} cuts{failed}", count(progress.cuts)));
    };
    let summary = if args.zoned {
        campaign.run_zoned(cancel, &mut note)
    } else {
        campaign.run(cancel, &mut note)
    };
    drop(bar);
    summary.map_err(|error| match error {
        StateError::Write(..) => Failure::io(error),
        error => Failure::usage(error),
    })
}

/// A file that describes a drive which cannot be built is bad input, and no failure of a drive.
fn refuse_unbuildable(path: &Path, summary: &Summary) -> Result<(), Failure> {
    match summary.failed.first() {
        Some(Failed { failure, .. }) if failure.kind == Kind::Refused => {
            Err(Failure::usage(anyhow::anyhow!("{}: {}", path.display(), failure.message)))
        }
        _ => Ok(()),
    }
}

fn interrupted(args: &TortureArgs) -> Failure {
    match &args.state {
        Some(path) => Failure::interrupted(format_args!(
            "{} holds what is done; the same command goes on from there",
            path.display()
        )),
        None => Failure::interrupted("the results are of the seeds that ran"),
    }
}

fn show(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let tally = &summary.tally;
    let mut table = Table::default();
    table.head(["torture", ""]);
    table.row(["seeds", &count(summary.seeds)]);
    table.row(["power cuts", &count(summary.cuts)]);
    table.row(["  during recovery", &count(tally.cuts_in_recovery)]);
    table.row(["commands", &count(tally.commands)]);
    table.row(["  in flight at cuts", &count(tally.cut_off)]);
    table.row(["  ended with a write fault", &count(tally.write_faults)]);
    table.head(["units, on drives with too little energy", ""]);
    table.row(["reported as lost", &count(tally.reported_losses)]);
    table.row(["reported as scanned for", &count(tally.uncertain_units)]);
    table.row(["of both, seen to be older than promised", &count(tally.confirmed_losses)]);
    table.head(["units, in page caches", ""]);
    table.row(["dirty or being written out at cuts", &count(tally.cached_losses)]);
    table.row(["that could not be written out", &count(tally.unwritten_units)]);
    table.head(["result", ""]);
    table.row(["seeds that failed", &count(summary.violations)]);
    table.row(["power cuts a second", &rate(summary.cuts_per_s)]);
    table.row(["digest", &summary.digest]);
    table.write(out)
}

/// Makes `options`, which fail, small, and writes them to `path`; yields what there is to say of it.
fn make_small(options: &Options, path: &Path, cancel: &Cancel) -> Result<String, Failure> {
    let bar = Progress::new("torture");
    let mut attempts = 0_u32;
    let small = shrink(options, MOST_ATTEMPTS, |options| {
        attempts += 1;
        bar.note(format!("smaller, attempt {attempts}"));
        let mut outcome = run_twice(options);
        if cancel.load(Ordering::Relaxed) && attempts > 1 {
            outcome.failure = None; // nothing more is made smaller
        }
        outcome
    });
    drop(bar);
    let Some(small) = small else {
        return Ok("it did not fail again, and was not made small".to_owned());
    };
    let commands: u32 = small.options.rounds.iter().map(leyden_torture::Round::kept).sum();
    let rounds = small.options.rounds.len();
    let file = SeedFile::new(small.options, Some(small.failure));
    atomic::write(path, file.to_json().as_bytes())?;
    Ok(format!(
        "made small in {} runs: {commands} commands in {rounds} rounds; replay that with `leyden \
         torture --replay {}`",
        count(u64::from(small.attempts)),
        quote(&path.to_string_lossy()),
    ))
}

/// What failed, and the command that shows it again.
fn explain(summary: &Summary, origin: &Origin<'_>, small: Option<&str>, is_json: bool) -> String {
    let first = &summary.failed[0];
    let mut lines = vec![format!("seed {}: {}", first.seed, first.failure)];
    if !is_json {
        let others = summary.failed.iter().skip(1).take(MOST_SHOWN - 1);
        for Failed { seed, failure } in others {
            let line = failure.message.lines().next().unwrap_or_default();
            lines.push(format!("and seed {seed}, after {} cuts: {line}", failure.cuts));
        }
        if summary.failed.len() > MOST_SHOWN {
            lines.push(format!("and {} more", summary.failed.len() - MOST_SHOWN));
        }
    }
    lines.extend(small.map(str::to_owned));
    lines.push(format!("help: replay it with `{}`", origin.command(first.seed)));
    lines.join("\n  ")
}
