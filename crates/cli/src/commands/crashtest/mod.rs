//! `leyden crashtest`: does other software survive power cuts?

mod doctor;
mod findings;
mod kept;
mod page;
mod recordings;
mod tell;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use leyden_crashtest::{
    Explore, Launcher, Limits, Plan, Pool, Session, Summary, Timeline, Told, explore, junit,
};
use leyden_image::recording::Recording;
use leyden_sim::Capacitance;

use self::doctor::Purpose;
use self::kept::{CURVE, PAGE, SUMMARY, failure, write_json};
use super::{Cancel, print_json, threads, warn};
use crate::args::crashtest::{CrashtestArgs, CrashtestCommand, RunCommon, RunOptions};
use crate::failure::Failure;
use crate::output::progress::Progress;

pub(crate) fn main(args: &CrashtestArgs, cancel: &Cancel) -> Result<(), Failure> {
    let Some(command) = &args.command else {
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
            run(&session_of(folder)?, check.as_deref(), options, cancel)
        }
        CrashtestCommand::Audit { folder, states, common } => {
            findings::audit(&session_of(folder)?, *states as usize, common, cancel)
        }
        CrashtestCommand::Capacitor { folder, uf, cuts, common } => {
            findings::capacitor(&session_of(folder)?, uf, *cuts as usize, common, cancel)
        }
        CrashtestCommand::Shrink(args) => findings::shrink(args, cancel),
        CrashtestCommand::Replay { seed, shell } => findings::replay(seed, *shell, cancel),
        CrashtestCommand::Show { folder, json } => tell::show(&session_of(folder)?, *json),
        CrashtestCommand::Doctor { fs } => doctor::main(fs),
        CrashtestCommand::Worker { folder } => leyden_crashtest::work(folder).map_err(failure),
    }
}

/// Tries states of a recorded run.
fn run(
    session: &Session,
    check: Option<&str>,
    options: &RunOptions,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let before = session.plan().map_err(failure)?;
    if let Some(check) = check {
        let plan = Plan { check: check.to_owned(), ..before.clone() };
        session.set_plan(&plan).map_err(failure)?;
    }
    let explored = explored(session, options, cancel);
    if check.is_some() {
        match &explored {
            // A check that cannot be run does not take the place of one that can.
            Err(_) => session.set_plan(&before).map_err(failure)?,
            Ok(_) => drop(std::fs::remove_file(session.folder().join(CURVE))), // of another check
        }
    }
    let (timeline, summary) = explored?;
    keep(session, &timeline, &summary)?;
    if options.common.json {
        print_json(&summary)?;
    } else {
        tell::summary(&summary)?;
    }
    if !summary.control_works() {
        warn(kept::BLIND);
    }
    if summary.models.iter().any(|model| model.is_refuted) {
        warn(kept::UNSTEADY);
    }
    if summary.held() {
        return Ok(());
    }
    Err(Failure::failed(anyhow::anyhow!(
        "not everything survived; see {}",
        session.folder().join(PAGE).display()
    )))
}

/// Tries states: the recorded run, and what came of them.
fn explored(
    session: &Session,
    options: &RunOptions,
    cancel: &Cancel,
) -> Result<(Timeline, Summary), Failure> {
    let timeline = session.timeline(options.common.atom).map_err(failure)?;
    let recording = Recording::open(&session.recording()).map_err(Failure::usage)?;
    let mut pool = pool(session, &options.common, cancel)?;
    if !options.try_all {
        pool.learn(&timeline);
    }
    let options = Explore {
        models: options.model.iter().map(|&model| model.into()).collect(),
        seed: options.common.seed,
        limits: Limits {
            budget: Duration::from_nanos(options.budget.as_ns()),
            states: options.states as usize,
        },
        bank: options.capacitance_uf.map(|uf| Capacitance::from_nf(uf * 1_000)),
        even: false,
    };
    let bar = Progress::new("states");
    let mut progress = |told: Told| {
        bar.phase(told.model.name());
        bar.fraction(told.share);
    };
    let summary = explore(&mut pool, &timeline, Some(&recording), &options, &mut progress);
    drop(bar);
    drop(pool);
    Ok((timeline, summary.map_err(failure)?))
}

/// Keeps the results: as JSON, as JUnit XML, and each finding as a seed file.
fn keep(session: &Session, timeline: &Timeline, summary: &Summary) -> Result<(), Failure> {
    let findings = session.findings();
    let _ = std::fs::remove_dir_all(&findings); // those of an earlier run
    for model in &summary.models {
        for (number, finding) in (1..).zip(&model.findings) {
            let seed = leyden_crashtest::Seed::new(model.model, summary.atom_bytes, finding);
            let name = format!("findings/{}-{number}.json", model.model.name());
            write_json(session, &name, &seed)?;
        }
    }
    session.write("junit.xml", &junit(summary)).map_err(failure)?;
    write_json(session, SUMMARY, summary)?;
    page::write(session, timeline, summary)
}

/// Processes that try states of `session`.
fn pool<'a>(
    session: &Session,
    common: &RunCommon,
    cancel: &'a AtomicBool,
) -> Result<Pool<'a>, Failure> {
    let plan = session.plan().map_err(failure)?;
    let access = doctor::access(common.ground.extract);
    doctor::check(&plan.fs, access, Purpose::Try)?;
    // Btrfs knows its devices by an identity that copies share: two at once would be mixed up.
    let jobs = if plan.fs == "btrfs" { 1 } else { threads(common.jobs) };
    Pool::new(session, &launcher()?, common.atom, access, jobs, cancel).map_err(failure)
}

/// This program, as a worker.
fn launcher() -> Result<Launcher, Failure> {
    let program = std::env::current_exe().map_err(Failure::io)?;
    let args = ["crashtest", "worker"].map(str::to_owned).to_vec();
    Ok(Launcher { program, args })
}

fn session_of(folder: &Path) -> Result<Session, Failure> {
    if !folder.is_dir() {
        return Err(Failure::usage(anyhow::anyhow!(
            "{}: there is no such folder\n  help: `leyden crashtest record` makes one",
            folder.display()
        )));
    }
    Session::open(folder).map_err(failure)
}
