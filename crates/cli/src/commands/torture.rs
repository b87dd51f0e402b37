//! `leyden torture`.

mod page;
#[cfg(feature = "serve")]
mod watched;

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use leyden_config::quote;
use leyden_torture::campaign::{Campaign, Failed, StateError, Summary, run_alone};
use leyden_torture::exhaustive::{self, Exhausted, exhaust};
use leyden_torture::{Case, Kind, SeedFile, Subject, shortfalls};

use leyden_report::format::{count, rate};

use super::{Cancel, print_json};
use crate::args::TortureArgs;
use crate::failure::Failure;
use crate::output::atomic;
use crate::output::place::{self, Kind as Output};
use crate::output::progress::{Progress, wrote};
use crate::output::table::Table;
use crate::version;

/// Runs that are made to make a failure small, at most.
const MOST_ATTEMPTS: u32 = 5_000;
/// Failures that are shown.
const MOST_SHOWN: usize = 5;

pub(crate) fn main(args: &TortureArgs, cancel: &Cancel) -> Result<(), Failure> {
    if let Some(path) = &args.report {
        place::check(path, Output::Report)?;
    }
    if args.tiny.exhaustive {
        return every_moment(args, cancel);
    }
    if let Some(path) = &args.explain {
        return timeline(path);
    }
    if let Some(path) = &args.shrink {
        atomic::check_writable(path)?;
    }
    let subject = subject_of(args);
    let (summary, origin) = match (&args.replay, args.seed) {
        (Some(path), _) => {
            let case = SeedFile::read(path).map_err(Failure::usage)?.case;
            let summary = run_alone(&case);
            refuse_unbuildable(path, &summary)?;
            (summary, Origin::File(path, case))
        }
        (None, Some(seed)) => (run_alone(&subject.draw(seed)), Origin::Seed(subject)),
        (None, None) => {
            let campaign = planned(args);
            let summary = run_campaign(args, &campaign, cancel)?;
            if let Some(path) = &args.report {
                write_page(path, page::of_campaign(&summary, &campaign))?;
            }
            (summary, Origin::Campaign(campaign))
        }
    };
    if args.json {
        print_json(&summary)?;
    } else {
        show(&summary, &mut anstream::stdout().lock())?;
        if args.coverage {
            show_coverage(&summary, subject, &mut anstream::stdout().lock())?;
        }
    }
    let is_whole = args.replay.is_some() || args.seed.is_some() || summary.seeds >= args.seeds;
    let Some(first) = summary.failed.first() else {
        if let Some(path) = &args.shrink {
            super::warn(&format!("nothing failed: {} was not written", path.display()));
        }
        return match (is_whole, args.coverage) {
            (false, _) => Err(interrupted(args)),
            (true, true) => all_reached(&summary, subject),
            (true, false) => Ok(()),
        };
    };
    let small = match &args.shrink {
        Some(path) => {
            // The one that fails soonest has the least to be left out.
            let shortest = summary.failed.iter().min_by_key(|failed| failed.failure.cuts);
            let seed = shortest.unwrap_or(first).seed;
            Some(make_small(&origin.case(seed), path, cancel)?)
        }
        None => None,
    };
    Err(Failure::failed(anyhow::anyhow!(
        "{}",
        explain(&summary, &origin, small.as_deref(), args.json)
    )))
}

fn write_page(
    path: &Path,
    page: Result<String, leyden_report::ReportError>,
) -> Result<(), Failure> {
    atomic::write(path, page.map_err(Failure::failed)?.as_bytes())?;
    wrote(path);
    Ok(())
}

/// The kind of drive that is asked for.
const fn subject_of(args: &TortureArgs) -> Subject {
    match (args.zoned, args.zoned_block) {
        (true, _) => Subject::Zoned,
        (_, true) => Subject::ZonedBlock,
        _ => Subject::Conventional,
    }
}

/// Where a run comes from.
enum Origin<'a> {
    Seed(Subject),
    Campaign(Campaign),
    File(&'a Path, Case),
}

impl Origin<'_> {
    fn case(&self, seed: u64) -> Case {
        match self {
            Self::Seed(subject) => subject.draw(seed),
            Self::Campaign(campaign) => campaign.case(seed),
            Self::File(_, case) => case.clone(),
        }
    }

    /// The command that runs it again.
    fn command(&self, seed: u64) -> String {
        match self {
            Self::Campaign(campaign) => command_of(campaign, seed),
            Self::Seed(subject) => format!("leyden torture{} --seed {seed}", subject.argument()),
            Self::File(path, _) => {
                format!("leyden torture --replay {}", quote(&path.to_string_lossy()))
            }
        }
    }
}

/// The command that makes the same campaign.
fn command_of_all(campaign: &Campaign) -> String {
    let Campaign { subject, start, seeds, guided, .. } = campaign;
    let guided = if *guided { " --guided" } else { "" };
    format!("leyden torture{} --start {start} --seeds {seeds}{guided}", subject.argument())
}

/// The command that runs a seed of a campaign again.
fn command_of(campaign: &Campaign, seed: u64) -> String {
    let kind = campaign.subject.argument();
    if campaign.guided {
        return format!("leyden torture{kind} --guided --start {seed} --seeds 1");
    }
    format!("leyden torture{kind} --seed {seed}")
}

fn planned(args: &TortureArgs) -> Campaign {
    Campaign {
        subject: subject_of(args),
        start: args.start,
        seeds: args.seeds,
        threads: threads(args),
        state: args.state.clone(),
        guided: args.guided,
    }
}

fn threads(args: &TortureArgs) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    args.jobs.map_or(processors, usize::from)
}

fn run_campaign(
    args: &TortureArgs,
    campaign: &Campaign,
    cancel: &Cancel,
) -> Result<Summary, Failure> {
    if let Some(path) = &campaign.state {
        if path.is_dir() {
            let problem = "it is a folder".to_owned();
            return Err(Failure::usage(StateError::Foreign { path: path.clone(), problem }));
        }
        atomic::check_writable(path)?;
    }
    #[cfg(feature = "serve")]
    let page = watched::page(args.http.as_ref(), campaign)?;
    #[cfg(not(feature = "serve"))]
    let _ = args;
    let bar = Progress::new("torture");
    let mut note = |progress: leyden_torture::campaign::Progress<'_>| {
        bar.fraction(progress.done as f64 / progress.seeds as f64);
        let failed = match progress.failed.len() {
            0 => String::new(),
            failed => format!(", {failed} FAILED"),
        };
        bar.note(format!("{} cuts{failed}", count(progress.cuts)));
        #[cfg(feature = "serve")]
        page.tell(|| watched::news(campaign, &progress));
    };
    let summary = campaign.run(cancel, &mut note);
    drop(bar);
    summary.map_err(|error| match error {
        StateError::Write(..) => Failure::io(error),
        error => Failure::usage(error),
    })
}

/// Every name that can be reached, how often it was, and how many never were.
fn show_coverage(summary: &Summary, subject: Subject, out: &mut dyn Write) -> std::io::Result<()> {
    let mut table = Table::default();
    table.head(["reached", "times"]);
    for (name, times) in summary.coverage.all(subject.names()) {
        table.row([name.as_str(), &count(times)]);
    }
    table.write(out)
}

/// Fails by name if something was reached too seldom.
fn all_reached(summary: &Summary, subject: Subject) -> Result<(), Failure> {
    let short = shortfalls(summary, subject);
    if short.is_empty() {
        return Ok(());
    }
    let lines = short.iter().map(|it| format!("\n  {} (of {}): {}", it.times, it.floor, it.name));
    Err(Failure::failed(anyhow::anyhow!(
        "{} points of the coverage are below their floors:{}\n  help: run 1,000 seeds or more; if that does not \
         help, the draw of seeds does not reach them",
        short.len(),
        lines.collect::<String>()
    )))
}

/// The timeline of the run that the file at `path` holds, and how it ends.
fn timeline(path: &Path) -> Result<(), Failure> {
    let case = SeedFile::read(path).map_err(Failure::usage)?.case;
    let (outcome, lines) = case.play(true);
    let mut out = anstream::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    match outcome.failure {
        None => {
            writeln!(out, "the run ends, and every promise was kept")?;
            Ok(())
        }
        Some(failure) if failure.kind == Kind::Refused => {
            Err(Failure::usage(anyhow::anyhow!("{}: {}", path.display(), failure.message)))
        }
        Some(failure) => Err(Failure::failed(anyhow::anyhow!("{failure}"))),
    }
}

/// Runs every tiny drive, and cuts it at every moment.
fn every_moment(args: &TortureArgs, cancel: &Cancel) -> Result<(), Failure> {
    let drives = exhaustive::drives(subject_of(args), args.tiny.commands);
    let done: Mutex<Vec<(usize, Exhausted)>> = Mutex::default();
    let next = AtomicUsize::new(0);
    let bar = Progress::new("torture");
    std::thread::scope(|scope| {
        for _ in 0..threads(args) {
            scope.spawn(|| {
                while !cancel.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((name, case)) = drives.get(at) else { break };
                    let exhausted = exhaust(name, case);
                    let mut done = done.lock().expect("nobody panics with it");
                    done.push((at, exhausted));
                    bar.fraction(done.len() as f64 / drives.len() as f64);
                }
            });
        }
    });
    drop(bar);
    let mut done = done.into_inner().expect("nobody panics with it");
    done.sort_by_key(|(at, _)| *at);
    let done: Vec<Exhausted> = done.into_iter().map(|(_, exhausted)| exhausted).collect();
    if let Some(path) = &args.report {
        let kind = subject_of(args).argument();
        let command =
            format!("leyden torture{kind} --exhaustive --commands {}", args.tiny.commands);
        write_page(path, page::of_tiny_drives(&done, drives.len(), &command))?;
    }
    if args.json {
        print_json(&done)?;
    } else {
        show_exhausted(&done, &mut anstream::stdout().lock())?;
    }
    if let Some(Exhausted { drive, failure: Some(failure), .. }) =
        done.iter().find(|exhausted| exhausted.failure.is_some())
    {
        return Err(Failure::failed(anyhow::anyhow!("{drive}: {failure}")));
    }
    if done.len() < drives.len() {
        return Err(Failure::interrupted("the results are of the drives that ran"));
    }
    Ok(())
}

fn show_exhausted(done: &[Exhausted], out: &mut dyn Write) -> std::io::Result<()> {
    let sum = |of: fn(&Exhausted) -> u64| done.iter().map(of).sum::<u64>();
    let mut table = Table::default();
    table.head(["torture, at every moment", ""]);
    table.row(["drives", &count(done.len() as u64)]);
    table.row(["events", &count(sum(|it| it.events))]);
    table.row(["power cuts", &count(sum(|it| it.cuts))]);
    table.row(["  in dumps and recoveries", &count(sum(|it| it.second_cuts))]);
    table.row(["drives that failed", &count(sum(|it| u64::from(it.failure.is_some())))]);
    table.write(out)
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
            "{} holds the finished seeds; the same command resumes",
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
    table.row(["  before the dump had ended", &count(tally.cuts_in_dump)]);
    table.row(["  of drives that could only be read", &count(tally.read_only_cuts)]);
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
    let cuts = format!("{} ({} build)", rate(summary.cuts_per_s), version::PROFILE);
    table.row(["power cuts a second", &cuts]);
    table.row(["digest", &summary.digest]);
    table.write(out)
}

/// Makes `case`, which fails, small, and writes it to `path`; yields what there is to say of it.
fn make_small(case: &Case, path: &Path, cancel: &Cancel) -> Result<String, Failure> {
    let bar = Progress::new("torture");
    let small = case.shrunk(MOST_ATTEMPTS, |attempts| {
        bar.note(format!("smaller, attempt {attempts}"));
        !cancel.load(Ordering::Relaxed)
    });
    drop(bar);
    let Some((small, failure, attempts)) = small else {
        return Ok("it did not fail again, and was not made small".to_owned());
    };
    let extent = small.extent();
    let file = SeedFile::new(small, Some(failure));
    atomic::write(path, file.to_json().as_bytes())?;
    Ok(format!(
        "made small in {} runs: {extent}; replay that with `leyden torture --replay {}`",
        count(u64::from(attempts)),
        quote(&path.to_string_lossy()),
    ))
}

/// The failures, and the command that shows each again.
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
