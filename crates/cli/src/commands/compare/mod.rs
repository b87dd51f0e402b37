//! `leyden compare`: every combination of files, devices and varied keys, in one table of ratios.

mod remarks;
mod table;
mod vary;

use anyhow::anyhow;
use leyden_config::{Loaded, Scenario, Set};
use leyden_config::{quote, run_command};
use leyden_record::{RunRecord, Varied};
use leyden_run::{Plan, RunError, run_all, validate};

use self::table::show;
use self::vary::varied;
use super::{
    Cancel, cache, check_outputs, explain, keep, overrides, parsed_of, stamp, threads, verdict,
    warn,
};
use crate::args::{Common, CompareArgs};
use crate::failure::Failure;
use crate::output::progress::Progress;

/// One run to be made.
struct Planned {
    loaded: Loaded,
    reproduce: String,
    varied: Vec<Varied>,
}

pub(crate) fn main(args: &CompareArgs, cancel: &Cancel) -> Result<(), Failure> {
    make_all(&plan(args)?, &args.common, args.jobs, cancel)
}

/// `leyden run --seeds N`: one scenario with several seeds.
pub(crate) fn over_seeds(
    file: &str,
    sets: Vec<Set>,
    common: &Common,
    cancel: &Cancel,
) -> Result<(), Failure> {
    if file == "-" {
        return Err(Failure::usage(anyhow!(
            "--seeds: standard input can be read only once\n  help: save the scenario to a file"
        )));
    }
    let variant = Variant { sets, varied: Vec::new() };
    make_all(&with_seeds(file, None, &variant, common.seeds)?, common, None, cancel)
}

/// Makes the runs, keeps them and shows them.
fn make_all(
    plans: &[Planned],
    common: &Common,
    jobs: Option<u16>,
    cancel: &Cancel,
) -> Result<(), Failure> {
    // Everything is checked before anything runs.
    for plan in plans {
        check_outputs(common, &plan.loaded)?;
        validate(&plan.loaded.scenario).map_err(|error| explain(&plan.loaded, error))?;
    }
    let (mut records, failure) = make(plans, threads(jobs), common.no_cache, cancel);
    remarks::add_remarks(&mut records);
    if !records.is_empty() {
        keep(common, &records)?;
        if !common.json {
            show(&records, &mut anstream::stdout().lock())?;
        }
    }
    for record in &records {
        for warning in &record.warnings {
            warn(&format!("{}: {warning}", record.name));
        }
    }
    failure.map_or_else(|| verdict(&records), Err)
}

/// Makes the runs. What is finished is kept, up to the first that failed; or, if interrupted, all of it.
fn make(
    plans: &[Planned],
    jobs: usize,
    no_cache: bool,
    cancel: &Cancel,
) -> (Vec<RunRecord>, Option<Failure>) {
    let bar = Progress::new("compare");
    let note = |run: usize, text: &str| {
        bar.line(&format!("{}: {text}", plans[run].loaded.scenario.name));
    };
    let progress = |run: usize, fraction| {
        bar.what(&plans[run].loaded.scenario.name);
        bar.fraction(fraction);
    };
    let scenarios: Vec<&Scenario> = plans.iter().map(|plan| &plan.loaded.scenario).collect();
    let drives = cache::drives(no_cache);
    let plan = Plan { jobs, cancel, progress: &progress, note: &note, cache: drives.as_ref() };
    let outcomes = run_all(&scenarios, &plan);
    drop(bar);
    let (mut records, mut failure) = (Vec::new(), None);
    let mut is_whole = true;
    for (plan, outcome) in plans.iter().zip(outcomes) {
        match outcome {
            Some(Ok(outcome)) if !outcome.interrupted => {
                let mut record = outcome.record;
                stamp(&mut record, &plan.loaded, &plan.reproduce);
                plan.varied.clone_into(&mut record.varied);
                records.push(record);
            }
            None | Some(Ok(_) | Err(RunError::Interrupted)) => is_whole = false,
            Some(Err(error)) => {
                failure = Some(explain(&plan.loaded, error));
                break;
            }
        }
    }
    if failure.is_none() && !is_whole {
        let kept = format!("kept {} of {} runs", records.len(), plans.len());
        failure = Some(Failure::interrupted(kept));
    }
    (records, failure)
}

/// Every run that the arguments ask for.
fn plan(args: &CompareArgs) -> Result<Vec<Planned>, Failure> {
    let common = overrides(&args.common.set, args.common.seed)?;
    let mut variants = vec![Variant { sets: common, varied: Vec::new() }];
    let varies_seed =
        |vary: &String| vary.split('=').next().is_some_and(|key| key.trim() == "seed");
    if args.common.seeds > 1 && args.vary.iter().any(varies_seed) {
        return Err(Failure::usage(anyhow!(
            "--seeds and --vary seed=... both say which seeds are run\n  help: leave one of them out"
        )));
    }
    for vary in &args.vary {
        let (key, values) = varied(vary).map_err(Failure::usage)?;
        let mut next = Vec::new();
        for variant in &variants {
            for value in &values {
                let mut variant = variant.clone();
                variant.sets.push(parsed_of("--vary", &format!("{key}={value}"))?);
                variant.varied.push(Varied { key: key.to_owned(), value: value.clone() });
                next.push(variant);
            }
        }
        variants = next;
    }
    let devices: Vec<Option<&str>> = match args.device.as_slice() {
        [] => vec![None],
        devices => devices.iter().map(|device| Some(device.as_str())).collect(),
    };
    let mut plans = Vec::new();
    for file in &args.files {
        for device in &devices {
            for variant in &variants {
                plans.extend(with_seeds(file, *device, variant, args.common.seeds)?);
            }
        }
    }
    name(&mut plans, args);
    Ok(plans)
}

/// A combination of the varied keys' values.
#[derive(Clone)]
struct Variant {
    sets: Vec<Set>,
    varied: Vec<Varied>,
}

/// A run of `variant` for each of so many seeds, from its own on.
fn with_seeds(
    file: &str,
    device: Option<&str>,
    variant: &Variant,
    seeds: u16,
) -> Result<Vec<Planned>, Failure> {
    let first = one(file, device, variant)?;
    if seeds <= 1 {
        return Ok(vec![first]);
    }
    let own = first.loaded.scenario.seed;
    let Some(last) = own.checked_add(u64::from(seeds) - 1) else {
        return Err(Failure::usage(anyhow!(
            "--seeds: there are no {seeds} seeds from {own} on\n  help: begin with a smaller --seed"
        )));
    };
    let with_seed = |seed: u64| {
        let mut variant = variant.clone();
        variant.sets.push(parsed_of("--seeds", &format!("seed={seed}"))?);
        variant.varied.push(Varied { key: "seed".to_owned(), value: seed.to_string() });
        one(file, device, &variant)
    };
    (own..=last).map(with_seed).collect()
}

fn one(
    file: &str,
    device: Option<&str>,
    Variant { sets, varied }: &Variant,
) -> Result<Planned, Failure> {
    let (mut loaded, mut reproduce) = match device {
        None => (Loaded::new(file, sets)?, run_command(file, sets)),
        Some(device) => {
            let loaded = Loaded::on_device(file, device, sets)?;
            let command = run_command(file, sets).replacen("leyden run", "leyden compare", 1);
            (loaded, format!("{command} --device {}", quote(device)))
        }
    };
    let mut varied = varied.clone();
    let mut parts = vec![loaded.scenario.name.clone()];
    parts.extend(varied.iter().map(|varied| varied.value.clone()));
    if let Some(device) = device {
        let name = device.rsplit('/').next().unwrap_or(device).trim_end_matches(".toml");
        parts.push(name.to_owned());
        varied.push(Varied { key: "device".to_owned(), value: name.to_owned() });
    }
    loaded.scenario.name = parts.join(" ");
    reproduce.truncate(reproduce.trim_end().len());
    Ok(Planned { loaded, reproduce, varied })
}

/// Shortens names to what differs: with one file, its name says nothing.
fn name(plans: &mut [Planned], args: &CompareArgs) {
    if args.files.len() > 1 || plans.len() == 1 {
        return;
    }
    for plan in plans {
        let name = &plan.loaded.scenario.name;
        if let Some((_, rest)) = name.split_once(' ') {
            plan.loaded.scenario.name = rest.to_owned();
        }
    }
}
