//! `leyden compare`: every combination of files, devices and varied keys, in one table of ratios.

use std::io::Write;

use leyden_experiment::claims::{quote, run_command};
use leyden_experiment::{Loaded, Plan, RunError, RunRecord, Scenario, Set, run_all, validate};

use super::{Cancel, check_outputs, explain, keep, overrides, threads, warn};
use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output::number::{count, real};
use crate::output::progress::Progress;
use crate::output::table::Table;

/// One run to be made.
struct Planned {
    loaded: Loaded,
    reproduce: String,
}

pub(crate) fn main(args: &CompareArgs, cancel: &Cancel) -> Result<(), Failure> {
    let plans = plan(args)?; // everything is checked before anything runs
    for plan in &plans {
        check_outputs(&args.common, &plan.loaded)?;
        validate(&plan.loaded.scenario).map_err(|error| explain(&plan.loaded, error))?;
    }
    let (records, failure) = make(&plans, threads(args.jobs), cancel);
    if !records.is_empty() {
        keep(&args.common, &records)?;
        if !args.common.json {
            show(&records, &mut anstream::stdout().lock())?;
        }
    }
    for record in &records {
        for warning in &record.warnings {
            warn(&format!("{}: {warning}", record.name));
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Makes the runs. What is finished is kept, up to the first that failed; or, if interrupted, all of it.
fn make(plans: &[Planned], jobs: usize, cancel: &Cancel) -> (Vec<RunRecord>, Option<Failure>) {
    let bar = Progress::new("compare");
    let progress = |run: usize, fraction| {
        bar.what(&plans[run].loaded.scenario.name);
        bar.fraction(fraction);
    };
    let scenarios: Vec<&Scenario> = plans.iter().map(|plan| &plan.loaded.scenario).collect();
    let outcomes = run_all(&scenarios, &Plan { jobs, cancel, progress: &progress });
    drop(bar);
    let (mut records, mut failure) = (Vec::new(), None);
    let mut is_whole = true;
    for (plan, outcome) in plans.iter().zip(outcomes) {
        match outcome {
            Some(Ok(outcome)) if !outcome.interrupted => {
                let mut record = outcome.record;
                plan.reproduce.clone_into(&mut record.reproduce);
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
    let mut variants: Vec<(String, Vec<Set>)> = vec![(String::new(), common)];
    for vary in &args.vary {
        let (key, values) = varied(vary).map_err(Failure::usage)?;
        let mut next = Vec::new();
        for (name, sets) in &variants {
            for value in &values {
                let set: Set = format!("{key}={value}").parse().map_err(|problem| {
                    Failure::from(leyden_experiment::LoadError::Invalid(problem))
                })?;
                let mut sets = sets.clone();
                sets.push(set);
                let separator = if name.is_empty() { "" } else { " " };
                next.push((format!("{name}{separator}{value}"), sets));
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
            for (variant, sets) in &variants {
                plans.push(one(file, *device, variant, sets)?);
            }
        }
    }
    name(&mut plans, args);
    Ok(plans)
}

fn one(file: &str, device: Option<&str>, variant: &str, sets: &[Set]) -> Result<Planned, Failure> {
    let (mut loaded, mut reproduce) = match device {
        None => (Loaded::new(file, sets)?, run_command(file, sets)),
        Some(device) => {
            let loaded = Loaded::on_device(file, device, sets)?;
            let command = run_command(file, sets).replacen("leyden run", "leyden compare", 1);
            (loaded, format!("{command} --device {}", quote(device)))
        }
    };
    if !variant.is_empty() {
        loaded.scenario.name = format!("{} {variant}", loaded.scenario.name);
    }
    if let Some(device) = device {
        let name = device.rsplit('/').next().unwrap_or(device).trim_end_matches(".toml");
        loaded.scenario.name = format!("{} {name}", loaded.scenario.name);
    }
    reproduce.truncate(reproduce.trim_end().len());
    Ok(Planned { loaded, reproduce })
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

/// `key=a,b,c` as the key and its values.
fn varied(text: &str) -> Result<(&str, Vec<&str>), anyhow::Error> {
    let help = "write key=a,b, like device.ftl.gc.victim=greedy,cost_benefit";
    let Some((key, list)) = text.split_once('=') else {
        anyhow::bail!("--vary {text}: there is no `=`\n  help: {help}");
    };
    let (mut depth, mut quoted, mut start) = (0_u32, false, 0);
    let mut values = Vec::new();
    for (index, c) in list.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if depth == 0 && !quoted => {
                values.push(list[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    values.push(list[start..].trim());
    if values.iter().any(|value| value.is_empty()) {
        anyhow::bail!("--vary {text}: a value is empty\n  help: {help}");
    }
    Ok((key, values))
}

/// What a comparison shows: a name, and how to find it in a record.
type Figure = (&'static str, fn(&RunRecord) -> f64);

const FIGURES: [(&str, &[Figure]); 5] = [
    (
        "host",
        &[
            ("requests a second", |r| r.host.iops),
            ("MiB a second", |r| r.host.mib_per_s),
            ("read latency, mean, us", |r| r.host.read_latency_us.mean),
            ("read latency, 99 %, us", |r| r.host.read_latency_us.p99),
            ("write latency, mean, us", |r| r.host.write_latency_us.mean),
            ("write latency, 99 %, us", |r| r.host.write_latency_us.p99),
            ("write latency, 99.9 %, us", |r| r.host.write_latency_us.p999),
            ("flush latency, mean, us", |r| r.host.flush_latency_us.mean),
        ],
    ),
    (
        "flash",
        &[
            ("write amplification", |r| r.flash.waf),
            ("programs for the host", |r| r.flash.programs.user as f64),
            ("programs for collection", |r| r.flash.programs.gc_user as f64),
            ("block erases", |r| r.flash.erases as f64),
            ("valid in victims, %", |r| r.gc.victim_utilisation * 100.0),
        ],
    ),
    (
        "drive",
        &[
            ("dies busy, %", |r| mean(&r.utilisation.dies) * 100.0),
            ("erases of the most worn block", |r| r.wear.max as f64),
        ],
    ),
    (
        "power loss",
        &[
            ("energy of a dump, peak, mJ", |r| r.power.as_ref().map_or(0.0, |p| p.energy_mj.max)),
            ("at worst, mJ", |r| r.power.as_ref().map_or(0.0, |p| p.worst.energy_mj)),
            ("capacitance, peak, uF", |r| r.power.as_ref().map_or(0.0, |p| p.capacitance_uf)),
            ("at worst, uF", |r| r.power.as_ref().map_or(0.0, |p| p.worst.capacitance_uf)),
            ("state rebuilt after, ms", |r| r.recovery.as_ref().map_or(0.0, |v| v.scan_ms.max)),
            ("ready after, ms", |r| r.recovery.as_ref().map_or(0.0, |v| v.time_ms.max)),
        ],
    ),
    ("simulation", &[("processor time, s", |r| r.sim.cpu_s), ("wall time, s", |r| r.sim.wall_s)]),
];

/// Those that are whole numbers.
const COUNTS: [&str; 4] = [
    "programs for the host",
    "programs for collection",
    "block erases",
    "erases of the most worn block",
];

fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// The table: the first run's figures, the others' with their ratio to the first.
fn show(records: &[RunRecord], out: &mut dyn Write) -> std::io::Result<()> {
    let Some((first, others)) = records.split_first() else {
        return Ok(());
    };
    let mut table = Table::default();
    for (section, figures) in FIGURES {
        let told = |figure: &Figure| records.iter().any(|record| (figure.1)(record) != 0.0);
        let mut headed = false;
        for (name, figure) in figures.iter().filter(|figure| told(figure)) {
            if !headed {
                let mut cells = vec![section.to_owned(), first.name.clone()];
                for record in others {
                    cells.extend([record.name.clone(), "ratio".to_owned()]);
                }
                table.head(cells);
                headed = true;
            }
            let base = figure(first);
            let shown = |value: f64| match *name {
                name if COUNTS.contains(&name) => count(value as u64),
                _ => real(value),
            };
            let mut cells = vec![(*name).to_owned(), shown(base)];
            for record in others {
                let value = figure(record);
                let ratio = if base == 0.0 { "-".into() } else { format!("x{:.3}", value / base) };
                cells.extend([shown(value), ratio]);
            }
            table.row(cells);
        }
    }
    table.write(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_outside_of_brackets_and_quotes() {
        let split = |text| varied(text).unwrap().1.join("|");
        assert_eq!(split("k=a, b,c"), "a|b|c");
        assert_eq!(split("k={ a = 1, b = [2, 3] },\"x,y\""), "{ a = 1, b = [2, 3] }|\"x,y\"");
        assert!(varied("k").is_err() && varied("k=a,").is_err() && varied("k=").is_err());
    }
}
