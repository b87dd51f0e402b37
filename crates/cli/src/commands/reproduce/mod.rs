//! `leyden reproduce`: the papers' claims beside what our drive does.

mod frontier;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use leyden_config::Set;
use leyden_reproduce::zombie::DatabaseCell;
use leyden_reproduce::{
    self as claims, Cache, Claim, ClaimResults, ClaimsFile, Paper, Results, RunSpec, Runner, Scale,
    Step, Value, Verdict, digest_of, hexa, selective, zombie,
};
use leyden_reproduce::{Reproduction, render_reproduction};

use leyden_report::format::{count, number};

use super::{Cancel, live, make_folder, print_json, warn};
use crate::args::ReproduceArgs;
use crate::failure::Failure;
use crate::output::atomic;
use crate::output::progress::Progress;
use crate::output::table::{Table, wrap};
use crate::version::VERSION;

/// Width of the notes under the table.
const NOTE_WIDTH: usize = 90;

pub(crate) fn main(args: &ReproduceArgs, cancel: &Cancel) -> Result<(), Failure> {
    if args.live {
        return measure_live(args);
    }
    if args.papers.contains(&Paper::FRONTIER) {
        return frontier::main(args, cancel);
    }
    let file = ClaimsFile::bundled().map_err(Failure::failed)?;
    let claims = claims::select(&file.claims, &args.papers, &args.only)
        .map_err(|problem| Failure::usage(anyhow!(problem)))?;
    if args.list {
        return list(&claims);
    }
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let figures = Figures::of(args);
    let mut specs = claims::needs(&claims, scale, args.seeds);
    if figures.protection {
        specs.extend(hexa::cells().iter().map(|cell| cell.spec(scale)));
    }
    if figures.zombies {
        specs.extend(zombie::cells().iter().map(|cell| cell.spec(scale)));
        specs.extend(zombie::database_cells().iter().map(DatabaseCell::spec));
    }
    if figures.stores {
        specs.extend(selective::cells().iter().map(|cell| cell.spec(scale)));
    }
    let results = make(args, &specs, cancel)?;
    let judged = claims::judge(&claims, &results, scale, args.seeds);
    for warning in &results.warnings {
        warn(warning);
    }
    if let Some(folder) = &args.out {
        let mut json = serde_json::to_vec_pretty(&judged).map_err(Failure::failed)?;
        json.push(b'\n');
        atomic::write(&folder.join("claims.json"), &json)?;
        let page = page(args, &judged, &results, scale, figures)?;
        atomic::write(&folder.join("reproduce.html"), page.as_bytes())?;
    }
    if args.json {
        print_json(&judged)?;
    } else {
        show(&judged, &args.set, &mut anstream::stdout().lock())?;
    }
    outcome(&results, &specs)
}

/// Selective-PLP, and nothing else, is measured live.
fn measure_live(args: &ReproduceArgs) -> Result<(), Failure> {
    if args.papers.is_empty() || !args.papers.iter().all(Paper::is_of_stores) {
        return Err(Failure::usage(anyhow!(
            "only Selective-PLP is measured live\n  help: leyden reproduce selective-plp --live"
        )));
    }
    live::main(args)
}

/// Which figures are drawn.
#[derive(Clone, Copy)]
struct Figures {
    /// Those that Hexa and Dawid share.
    protection: bool,
    /// Zombie Chasing's.
    zombies: bool,
    /// Selective-PLP's.
    stores: bool,
}

impl Figures {
    /// Those of the papers asked for, if there is a page to draw them on and not only some claims are
    /// wanted.
    fn of(args: &ReproduceArgs) -> Self {
        let draws = args.out.is_some() && args.only.is_empty();
        let any = |of: fn(&Paper) -> bool| {
            draws && (args.papers.is_empty() || args.papers.iter().any(of))
        };
        Self {
            protection: any(Paper::is_of_protection),
            zombies: any(Paper::is_of_zombies),
            stores: any(Paper::is_of_stores),
        }
    }
}

/// Makes the runs that are not kept yet.
fn make(
    args: &ReproduceArgs,
    specs: &BTreeSet<RunSpec>,
    cancel: &Cancel,
) -> Result<Results, Failure> {
    let folder = match &args.out {
        Some(folder) => {
            make_folder(folder)?;
            folder.join("runs")
        }
        None => default_cache()?,
    };
    let cache = build()
        .and_then(|build| Cache::open(&folder, build))
        .with_context(|| {
            format!("cannot use the folder {}\n  help: name one with --out", folder.display())
        })
        .map_err(Failure::io)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bar = Progress::of_runs(specs.len());
    let watch = |step: &Step<'_>| {
        if let Some(spec) = step.begun {
            bar.begun(spec.scenario);
        }
        bar.runs(step.done);
    };
    let threads = args.jobs.map_or(cores, usize::from);
    Ok(Runner { cache: &cache, threads, sets: &args.set, cancel, watch: &watch }.run(specs))
}

/// The digest of this build: a change of the code changes results, and not always the version.
fn build() -> std::io::Result<String> {
    let program = std::fs::read(std::env::current_exe()?)?;
    Ok(digest_of(&program).to_string())
}

/// Where finished runs are kept unless `--out` says.
fn default_cache() -> Result<PathBuf, Failure> {
    let none = || Failure::usage(anyhow!("there is no home folder\n  help: name one with --out"));
    super::cache::folder().map(|cache| cache.join("runs")).ok_or_else(none)
}

/// The outcome of the command, once everything is shown.
fn outcome(results: &Results, specs: &BTreeSet<RunSpec>) -> Result<(), Failure> {
    if results.interrupted {
        let (done, of) = (results.records.len(), specs.len());
        let kept = format!("{done} of {of} runs are kept; the same command resumes");
        return Err(Failure::interrupted(kept));
    }
    match results.failures.iter().next() {
        None => Ok(()),
        Some((spec, why)) => {
            let failed = results.failures.len();
            let rest = if failed > 1 { format!(" ({failed} runs failed)") } else { String::new() };
            Err(Failure::failed(anyhow!("{}{rest}: {why}", results.command_of(spec))))
        }
    }
}

/// `leyden reproduce --list`.
fn list(claims: &[Claim]) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let width = claims.iter().map(|claim| claim.id.len()).max().unwrap_or(0);
    for claim in claims {
        writeln!(out, "{:width$}  {}", claim.id, claim.statement)?;
    }
    Ok(())
}

/// The claims as a table, and what is to be said of those that do not hold.
fn show(judged: &ClaimResults, sets: &[Set], out: &mut dyn Write) -> std::io::Result<()> {
    let mut table = Table::default();
    table.head(["claim", "paper", "measured", "holds within", "verdict"]);
    for claim in &judged.claims {
        let [from, to] = claim.accept;
        let mut measured = claim.measured.as_ref().map_or_else(|| "-".to_owned(), figure);
        if let Some(spread) = &claim.spread {
            measured = format!("{measured} [{}, {}]", plain(spread.least), plain(spread.most));
        }
        let accept = if claim.accept[0] < claim.accept[1] {
            figure(&Value::Pair([from, to]))
        } else {
            plain(from)
        };
        let cells = [&claim.id, &figure(&claim.paper), &measured, &accept, claim.verdict.name()];
        table.row(cells.map(String::from));
    }
    table.write(out)?;
    if let Some(spread) = judged.claims.iter().find_map(|claim| claim.spread) {
        writeln!(
            out,
            "\nmeasured: the mean over {} seeds, and the least and the most of them",
            spread.seeds
        )?;
    }
    for set in sets {
        writeln!(out, "\nin every run: {set}")?;
    }
    let count = |verdict| judged.claims.iter().filter(|claim| claim.verdict == verdict).count();
    for claim in judged.claims.iter().filter(|claim| claim.verdict == Verdict::Differs) {
        writeln!(out, "\n{} differs. {}.", claim.id, claim.statement)?;
        for line in wrap(&claim.note, NOTE_WIDTH) {
            writeln!(out, "    {line}")?;
        }
    }
    let mut unknown: Vec<(&str, usize)> = Vec::new();
    for claim in judged.claims.iter().filter(|claim| claim.verdict == Verdict::NotRun) {
        match unknown.iter_mut().find(|(note, _)| *note == claim.note) {
            Some((_, claims)) => *claims += 1,
            None => unknown.push((&claim.note, 1)),
        }
    }
    for (note, claims) in unknown {
        writeln!(out, "\n{claims} not run:")?;
        for line in wrap(note, NOTE_WIDTH) {
            writeln!(out, "    {line}")?;
        }
    }
    let each = [Verdict::Holds, Verdict::Differs, Verdict::NotRun];
    let [holds, differs, not_run] = each.map(count);
    writeln!(out, "\n{holds} of {} hold, {differs} differ, {not_run} not run", judged.claims.len())
}

fn figure(value: &Value) -> String {
    let numbers: Vec<String> = value.numbers().iter().map(|value| plain(*value)).collect();
    numbers.join(" to ")
}

/// Counts without a fraction.
fn plain(value: f64) -> String {
    let whole = value.fract() == 0.0 && value >= 0.0 && value.to_bits() != 1.0_f64.to_bits();
    if whole { count(value) } else { number(value) }
}

/// The page with claims and figures.
fn page(
    args: &ReproduceArgs,
    judged: &ClaimResults,
    results: &Results,
    scale: Scale,
    figures: Figures,
) -> Result<String, Failure> {
    let cells = hexa::cells();
    let finished: Vec<_> = cells
        .into_iter()
        .filter(|_| figures.protection)
        .filter_map(|cell| Some((cell.clone(), results.get(&cell.spec(scale)).ok()?)))
        .collect();
    let zombies: Vec<_> = zombie::cells()
        .into_iter()
        .filter(|_| figures.zombies)
        .filter_map(|cell| Some((cell, results.get(&cell.spec(scale)).ok()?)))
        .collect();
    let databases: Vec<_> = zombie::database_cells()
        .into_iter()
        .filter(|_| figures.zombies)
        .filter_map(|cell| Some((cell, results.get(&cell.spec()).ok()?)))
        .collect();
    let stores: Vec<_> = selective::cells()
        .into_iter()
        .filter(|_| figures.stores)
        .filter_map(|cell| Some((cell, results.get(&cell.spec(scale)).ok()?)))
        .collect();
    let workloads = if figures.protection {
        claims::workload_rows(results, scale).map_err(Failure::failed)?
    } else {
        Vec::new()
    };
    let names: Vec<&str> = args.papers.iter().map(|paper| paper.name).collect();
    let title = if names.is_empty() { "All papers".to_owned() } else { names.join(", ") };
    render_reproduction(&Reproduction {
        version: VERSION,
        title: &title,
        command: &command_of(args),
        quick: args.quick,
        claims: &judged.claims,
        cells: &finished,
        workloads: &workloads,
        zombies: &zombies,
        databases: &databases,
        stores: &stores,
        frontiers: &[],
    })
    .map_err(Failure::failed)
}

/// The command that repeats this.
fn command_of(args: &ReproduceArgs) -> String {
    let mut command = "leyden reproduce".to_owned();
    for paper in &args.papers {
        command = format!("{command} {}", paper.name);
    }
    for id in &args.only {
        command = format!("{command} --only {id}");
    }
    if args.quick {
        command.push_str(" --quick");
    }
    if args.seeds > 1 {
        command = format!("{command} --seeds {}", args.seeds);
    }
    for set in &args.set {
        command = format!("{command} --set {}", leyden_config::quote(&set.to_string()));
    }
    command
}
