//! `leyden crashtest`: does other software survive power cuts?

mod doctor;
mod files;
mod findings;
mod kept;
mod kits;
mod page;
mod page_files;
mod provenance;
mod recordings;
mod tell;
mod watched;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use leyden_crashtest::{
    Access, Explore, Finding, Flushes, Launcher, Limits, Model, ModelSummary, Plan, Pool,
    RunVerdict, Session, Summary, Timeline, TrialProgress, Verdict, again, check_atoms, cuts,
    shrink,
};
use leyden_sim::Capacitance;

use self::doctor::Purpose;
use self::kept::{CURVE, Recorded, failure as failed};
use self::watched::Watched;
use super::{Cancel, print_json, threads, warn};
use crate::args::crashtest::{CrashtestArgs, CrashtestCommand, GroundArgs, RunCommon, RunOptions};
use crate::failure::{self, Failure};
use crate::output::escape::shown;
use crate::output::progress::Progress;

/// Findings that a run explains; `shrink` explains any.
const EXPLAINED_MOST: usize = 3;
/// States that are tried to make one of them small.
const SHRINK_TRIES: u32 = 40;

pub(crate) fn main(args: &CrashtestArgs, cancel: &Cancel) -> Result<(), Failure> {
    let Some(command) = &args.command else {
        if args.record.rules().is_some() {
            files::refuse(&args.run.common, Some(&args.run))?;
        } else if let Some(atom_bytes) = args.run.common.atom {
            check_atoms(atom_bytes, args.record.sector).map_err(failed)?; // before a run is recorded in vain
        }
        let session = recordings::record(&args.record, cancel)?;
        return run(&session, None, &args.run, cancel);
    };
    match command {
        CrashtestCommand::Record(args) => recordings::record(args, cancel).map(drop),
        CrashtestCommand::Import(args) => recordings::import(args),
        CrashtestCommand::Export { folder, log, base } => {
            recordings::export(&session_of(folder)?, log, base.as_deref())
        }
        CrashtestCommand::Run { folder, check, options } => {
            run(&trusted(folder, options.common.ground)?, check.as_deref(), options, cancel)
        }
        CrashtestCommand::Audit { folder, states, common } => {
            findings::audit(&trusted(folder, common.ground)?, *states as usize, common, cancel)
        }
        CrashtestCommand::Capacitor { folder, uf, cuts, common } => findings::capacitor(
            &trusted(folder, common.ground)?,
            uf,
            *cuts as usize,
            common,
            cancel,
        ),
        CrashtestCommand::Shrink(args) => findings::shrink(args, cancel),
        CrashtestCommand::Replay { seed, how } => findings::replay(seed, how, cancel),
        CrashtestCommand::Show { folder, json } => tell::show(&session_of(folder)?, *json),
        CrashtestCommand::Init { name, folder } => kits::init(name.as_deref(), folder.as_deref()),
        CrashtestCommand::Doctor { fs, files } => doctor::main(fs, *files),
        CrashtestCommand::Worker { folder } => leyden_crashtest::work(folder).map_err(failed),
    }
}

/// Tries states of a recorded run.
fn run(
    session: &Session,
    check: Option<&str>,
    options: &RunOptions,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let before = session.plan().map_err(failed)?;
    if let Some(check) = check {
        let plan = Plan { check: check.to_owned(), ..before.clone() };
        session.set_plan(&plan).map_err(failed)?;
    }
    let explored = explored(session, options, cancel);
    if check.is_some() {
        match &explored {
            // A check that cannot be run does not take the place of one that can.
            Err(_) => session.set_plan(&before).map_err(failed)?,
            Ok(_) => drop(std::fs::remove_file(session.folder().join(CURVE))), // of another check
        }
    }
    let (recorded, summary) = explored?;
    keep(session, &recorded, &summary)?;
    if options.common.json {
        print_json(&summary)?;
    } else {
        tell::summary(session, &summary)?;
    }
    if summary.models.iter().any(|model| model.is_refuted) {
        warn(kept::UNSTEADY);
    }
    verdict(&summary)
}

/// The exit code; what it means was said with the results.
fn verdict(summary: &Summary) -> Result<(), Failure> {
    match summary.verdict {
        RunVerdict::Held => Ok(()),
        RunVerdict::Broken => Err(Failure::verdict(failure::FAILED)),
        RunVerdict::CheckBlind => {
            warn(&kept::blind(summary));
            Err(Failure::verdict(failure::CHECK_BLIND))
        }
        RunVerdict::CheckFails => {
            warn(&kept::fails(summary));
            Err(Failure::verdict(failure::CHECK_FAILS))
        }
        RunVerdict::TooFew => Err(Failure::verdict(failure::TOO_FEW)),
    }
}

/// Tries states: the recorded run, and what came of them.
fn explored(
    session: &Session,
    options: &RunOptions,
    cancel: &Cancel,
) -> Result<(Recorded, Summary), Failure> {
    let recorded = Recorded::open(session, options.common.atom)?;
    let explore = Explore {
        models: options.model.iter().map(|&model| model.into()).collect(),
        seed: options.common.seed,
        limits: Limits {
            budget: options.budget.map(|budget| Duration::from_nanos(budget.as_ns())),
            states: options.states as usize,
            required: options.require_states.map(|states| states as usize),
        },
        bank: options.capacitance_uf.map(|uf| Capacitance::from_nf(uf * 1_000)),
        even: false,
        faults: plan_faults(session)?,
    };
    let summary = match &recorded {
        Recorded::Drive(timeline) => explored_drive(session, timeline, options, &explore, cancel)?,
        Recorded::Files(history) => files::explored(session, history, options, &explore, cancel)?,
    };
    Ok((recorded, summary))
}

/// The bar of a run, and its page.
fn progress_on<'a>(
    bar: &'a Progress,
    watched: &'a mut Watched<'_>,
) -> impl FnMut(TrialProgress<'_>) + 'a {
    |told| {
        bar.phase(told.model.name());
        bar.fraction(told.share);
        watched.take(&told);
    }
}

fn explored_drive(
    session: &Session,
    timeline: &Timeline,
    options: &RunOptions,
    explore: &Explore,
    cancel: &Cancel,
) -> Result<Summary, Failure> {
    let recording = session.drive_recording().map_err(failed)?;
    let mut watched = Watched::start(session, options)?;
    let mut pool = pool(session, &options.common, cancel)?;
    if !options.try_all {
        pool.learn(timeline);
    }
    let bar = Progress::new("states");
    let mut progress = progress_on(&bar, &mut watched);
    let summary =
        leyden_crashtest::explore(&mut pool, timeline, Some(&recording), explore, &mut progress);
    let mut summary = summary.map_err(failed)?;
    if options.again > 0 && summary.verdict != RunVerdict::CheckFails {
        again(&mut pool, timeline, &mut summary, explore.limits, options.again, &mut progress)
            .map_err(failed)?;
    }
    bar.phase("why");
    explain(&mut pool, timeline, &mut summary)?;
    Ok(summary)
}

/// I/O errors that the recorded work met.
fn plan_faults(session: &Session) -> Result<Vec<String>, Failure> {
    let plan = session.plan().map_err(failed)?;
    Ok(plan.faults.iter().map(ToString::to_string).collect())
}

/// Finds out why the first findings break, each made small before, within some tries.
fn explain(pool: &mut Pool<'_>, timeline: &Timeline, summary: &mut Summary) -> Result<(), Failure> {
    let is_one_cut =
        |model: &&mut ModelSummary| matches!(model.model, Model::Adversarial | Model::Realistic);
    let lawful = summary.models.iter_mut().filter(is_one_cut);
    let findings = lawful.flat_map(|model| &mut model.findings);
    let clear = findings.filter(|finding| !finding.is_flaky && finding.verdict != Verdict::Hung);
    let clear: Vec<&mut Finding> = clear.take(EXPLAINED_MOST).collect();
    if clear.is_empty() {
        return Ok(());
    }
    let cuts = cuts(timeline, Flushes::All);
    for finding in clear {
        let small = shrink(pool, &finding.state, &cuts, SHRINK_TRIES).map_err(failed)?.0;
        finding.why = pool.explain(timeline, &small).map_err(failed)?;
    }
    Ok(())
}

/// Keeps the results, and a page of them.
fn keep(session: &Session, recorded: &Recorded, summary: &Summary) -> Result<(), Failure> {
    session.keep(summary).map_err(failed)?;
    page::write(session, recorded, summary)
}

/// Processes that try states of `session`.
fn pool<'a>(
    session: &Session,
    common: &RunCommon,
    cancel: &'a AtomicBool,
) -> Result<Pool<'a>, Failure> {
    let plan = session.plan().map_err(failed)?;
    let access = Access::of(&plan, common.ground.extract);
    doctor::check(&plan.fs, access, Purpose::Try)?;
    // Btrfs knows its devices by an identity that copies share: two at once would be mixed up.
    let jobs = if plan.fs == "btrfs" { 1 } else { threads(common.jobs) };
    Pool::new(session, &launcher(), common.atom, access, jobs, cancel).map_err(failed)
}

/// This program, as a worker.
fn launcher() -> Launcher {
    Launcher { program: None, args: ["crashtest", "worker"].map(str::to_owned).to_vec() }
}

/// A folder whose commands may run.
fn trusted(folder: &Path, ground: GroundArgs) -> Result<Session, Failure> {
    let session = session_of(folder)?;
    if ground.trust {
        session.trust().map_err(failed)?;
    } else if !session.is_trusted() {
        let plan = session.plan().map_err(failed)?;
        return Err(Failure::usage(anyhow::anyhow!(
            "{}: you have not recorded this, and it runs commands: `{}`\n  help: read {}, then give --trust",
            folder.display(),
            shown(&plan.check, false),
            session.folder().join("plan.json").display()
        )));
    }
    Ok(session)
}

fn session_of(folder: &Path) -> Result<Session, Failure> {
    if !folder.is_dir() {
        return Err(Failure::usage(anyhow::anyhow!(
            "{}: there is no such folder\n  help: `leyden crashtest record` makes one",
            folder.display()
        )));
    }
    Session::open(folder).map_err(failed)
}
