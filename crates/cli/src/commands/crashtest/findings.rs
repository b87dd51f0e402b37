//! Findings of crash tests: tried again, made small, shown; and flushes that nobody would miss.

use std::io::Write;
use std::path::Path;

use leyden_crashtest::{
    Access, Explore, Flushes, Limits, Model, Pool, RunVerdict, Runner, Seed, Session, explore,
    write_raw,
};
use leyden_report::format::{count, number};
use leyden_sim::Capacitance;

use super::doctor::{self, Purpose};
use super::kept::{CURVE, Lost, Recorded, failure, write_json};
use super::{files, kept, launcher, page, pool, tell, trusted};
use crate::args::crashtest::{ReplayHow, RunCommon, SeedArgs};
use crate::commands::{Cancel, print_json, warn};
use crate::failure::{FAILED, Failure};
use crate::output::escape::shown;
use crate::output::table::Table;

/// Lost atoms that are named.
const NAMED_MOST: usize = 16;

fn seed_of(path: &Path) -> Result<Seed, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(anyhow::Error::from(error).context(path.display().to_string()))
    })?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(anyhow::anyhow!(
            "{}: {error}\n  help: name a file of the folder findings",
            path.display()
        ))
    })
}

/// The session, the finding and the recorded run that a command line names, and one process for it.
fn opened<'a>(
    args: &SeedArgs,
    cancel: &'a Cancel,
) -> Result<(Session, Seed, Recorded, Pool<'a>), Failure> {
    let session = trusted(&args.folder, args.ground)?;
    let seed = seed_of(&args.finding)?;
    let recorded = Recorded::open(&session, Some(seed.atom_bytes))?;
    recorded.history().check(&seed.state).map_err(|problem| {
        let what = format!(
            "{}: {problem}\n  help: it is a finding of another recording",
            args.finding.display()
        );
        Failure::usage(anyhow::anyhow!(what))
    })?;
    let plan = session.plan().map_err(failure)?;
    if plan.files.is_some() {
        files::refuse_ground(args.ground)?;
    }
    let access = Access::of(&plan, args.ground.extract);
    doctor::check(&plan.fs, access, Purpose::Try)?;
    let pool = Pool::new(&session, &launcher(), Some(seed.atom_bytes), access, 1, cancel);
    let pool = pool.map_err(failure)?;
    Ok((session, seed, recorded, pool))
}

/// `leyden crashtest replay`.
pub(super) fn replay(args: &SeedArgs, how: &ReplayHow, cancel: &Cancel) -> Result<(), Failure> {
    let (session, mut seed, recorded, mut pool) = opened(args, cancel)?;
    if let Some(to) = &how.raw {
        match &recorded {
            Recorded::Drive(timeline) => write_raw(timeline, &seed.state, to).map_err(failure)?,
            // It says what is wrong.
            Recorded::Files(_) => drop(session.timeline(None).map_err(failure)?),
        }
    }
    if how.shell {
        return pool.shell(&seed.state).map_err(failure);
    }
    if let Some(to) = &how.copy {
        pool.copy(&seed.state, to).map_err(failure)?;
    }
    if let Some(command) = &how.run {
        let mut out = anstream::stdout().lock();
        let mut written = Ok(());
        let said = &mut |line: &str| {
            if written.is_ok() {
                written = writeln!(out, "{line}");
            }
        };
        let code = pool.run_in(&seed.state, command, said).map_err(failure)?;
        written?;
        return if code == 0 { Ok(()) } else { Err(Failure::verdict(code)) };
    }
    if how.copy.is_some() || how.raw.is_some() {
        return Ok(());
    }
    let outcome = pool.run_one(&seed.state).map_err(failure)?;
    drop(pool);
    let is_broken = outcome.verdict.is_broken();
    (seed.verdict, seed.said) = (outcome.verdict, outcome.said);
    if args.json {
        print_json(&seed)?;
    } else {
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", seed.verdict.name())?;
        for line in seed.said.lines() {
            writeln!(out, "  | {line}")?;
        }
    }
    if is_broken { Err(Failure::verdict(FAILED)) } else { Ok(()) }
}

/// `leyden crashtest shrink`.
pub(super) fn shrink(args: &SeedArgs, cancel: &Cancel) -> Result<(), Failure> {
    let (session, mut seed, recorded, mut pool) = opened(args, cancel)?;
    if !seed.state.after.is_empty() {
        return Err(Failure::usage(anyhow::anyhow!(
            "{}: a state after a second cut cannot be shrunk\n  help: replay it, with --run or --copy to look into it",
            args.finding.display()
        )));
    }
    let history = recorded.history();
    let mut state = seed.state.clone();
    history.normalize(&mut state);
    let before = state.lost.len();
    // Only a lawful state has to stay lawful at an earlier moment.
    let cuts = match seed.model {
        Model::Adversarial | Model::Realistic => history.cuts(Flushes::All, &|_| true),
        Model::Lying | Model::Recovery => Vec::new(),
    };
    let (small, outcome, tries) =
        leyden_crashtest::shrink(&mut pool, &seed.state, &cuts, u32::MAX).map_err(failure)?;
    if !outcome.verdict.is_broken() {
        return Err(Failure::usage(anyhow::anyhow!(
            "{}: it does not break any more: {}",
            args.finding.display(),
            outcome.verdict.name()
        )));
    }
    let mut state = small.clone();
    history.normalize(&mut state);
    let lost = state.lost.len();
    match &recorded {
        Recorded::Drive(timeline) => {
            let few: Vec<u32> = state.lost.iter().map(|lost| lost.0).take(NAMED_MOST).collect();
            let has_fs = session.plan().map_err(failure)?.has_fs();
            seed.lost = if has_fs && !few.is_empty() {
                pool.locate(small.at, &few).map_err(failure)?
            } else {
                Vec::new()
            };
            let is_lawful = seed.model != Model::Lying;
            seed.why =
                if is_lawful { pool.explain(timeline, &small).map_err(failure)? } else { None };
        }
        Recorded::Files(history) => seed.lost = files::places(history, &small),
    }
    drop(pool);
    (seed.state, seed.verdict, seed.said) = (small, outcome.verdict, outcome.said);
    let name = args.finding.file_stem().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches("-small");
    let to = format!("findings/{name}-small.json");
    write_json(&session, &to, &seed)?;
    page::write_again(&session)?;
    if args.json {
        return print_json(&seed);
    }
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "{}: {} of {} lost atoms are needed, after {} tries",
        seed.verdict.name(),
        count(lost as u64),
        count(before as u64),
        count(u64::from(tries))
    )?;
    for place in &seed.lost {
        match place.offset_bytes {
            Some(offset) => writeln!(
                out,
                "  {} at byte {} ({} bytes)",
                place.name,
                count(offset),
                seed.atom_bytes
            )?,
            None => writeln!(out, "  {}", shown(&place.name, false))?,
        }
    }
    for line in seed.said.lines().take(4) {
        writeln!(out, "  | {line}")?;
    }
    tell::why(seed.why.as_ref(), &mut out)?;
    writeln!(out, "wrote {}", session.folder().join(to).display())?;
    Ok(())
}

/// `leyden crashtest audit`.
pub(super) fn audit(
    session: &Session,
    states: usize,
    common: &RunCommon,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let recorded = Recorded::open(session, common.atom)?;
    let is_files = matches!(recorded, Recorded::Files(_));
    if is_files {
        files::refuse(common, None)?;
    }
    let mut pool = pool(session, common, cancel)?;
    let audit = leyden_crashtest::audit(&mut pool, recorded.history(), states, common.seed);
    let audit = audit.map_err(failure)?;
    drop(pool);
    let is_audited = matches!(audit.as_it_is.verdict, RunVerdict::Held | RunVerdict::CheckBlind);
    if common.json {
        print_json(&audit)?;
        return if is_audited { Ok(()) } else { super::verdict(&audit.as_it_is) };
    }
    let mut out = anstream::stdout().lock();
    let (one, all) = if is_files { ("sync", "syncs") } else { ("flush", "flushes") };
    writeln!(out, "with every {one}: {}", audit.as_it_is.headline())?;
    if !is_audited {
        writeln!(out, "no {one} was left out: the test already fails with all of them")?;
        return super::verdict(&audit.as_it_is);
    }
    let flushes = &audit.flushes;
    let needed = flushes.iter().filter(|flush| flush.noticed.is_some()).count();
    writeln!(
        out,
        "{} {all}, each left out once: without {} of them the check fails, without {} it does not",
        count(flushes.len() as u64),
        count(needed as u64),
        count((flushes.len() - needed) as u64)
    )?;
    for flush in flushes.iter().filter(|flush| flush.noticed.is_none()) {
        writeln!(
            out,
            "  {} {} at {} us, after {} promises: the check passes {} states without it",
            shown(&flush.call, false),
            flush.number,
            count(flush.time_ns / 1_000),
            count(flush.acks as u64),
            count(flush.states as u64)
        )?;
    }
    Ok(())
}

/// `leyden crashtest capacitor`.
pub(super) fn capacitor(
    session: &Session,
    capacitances_uf: &[u64],
    cuts: usize,
    common: &RunCommon,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let timeline = session.timeline(common.atom).map_err(failure)?;
    let recording = session.drive_recording().map_err(failure)?;
    let mut pool = pool(session, common, cancel)?;
    let mut curve = Vec::new();
    for &capacitance_uf in capacitances_uf {
        let options = Explore {
            models: vec![Model::Realistic],
            seed: common.seed,
            limits: Limits { budget: None, states: cuts, required: None },
            bank: Some(Capacitance::from_nf(capacitance_uf * 1_000)),
            even: true,
            faults: Vec::new(),
        };
        let summary = explore(&mut pool, &timeline, Some(&recording), &options, &mut |_| {});
        let summary = summary.map_err(failure)?;
        if summary.verdict == RunVerdict::CheckFails {
            return super::verdict(&summary);
        }
        let (cuts, cuts_that_lose) = summary.models[0].cuts.unwrap_or_default();
        let states = summary.models[0].states;
        let scans = summary.models[0].scans.unwrap_or_default();
        curve.push(Lost { capacitance_uf, cuts, cuts_that_lose, states, scans });
    }
    drop(pool);
    write_json(session, CURVE, &curve)?;
    if page::is_unprotected(&recording) {
        warn(kept::UNPROTECTED);
    }
    page::write_again(session)?;
    if common.json {
        return print_json(&curve);
    }
    let mut table = Table::default();
    table.head(["capacitance", "cuts", "that lose", "share", "recovered by scan"]);
    for Lost { capacitance_uf, cuts, cuts_that_lose, scans, .. } in &curve {
        let share = 100.0 * *cuts_that_lose as f64 / (*cuts).max(1) as f64;
        let (cuts, lose) = (count(*cuts as u64), count(*cuts_that_lose as u64));
        table.row([
            format!("{} uF", count(*capacitance_uf)),
            cuts,
            lose,
            format!("{} %", number(share)),
            count(*scans as u64),
        ]);
    }
    Ok(table.write(&mut anstream::stdout().lock())?)
}
