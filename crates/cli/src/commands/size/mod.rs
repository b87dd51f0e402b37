//! `leyden size`: how much capacitance, and what is lost with less.

mod fleet_page;
mod page;
mod worst;
mod zones;

pub(crate) use worst::BANKS_HEAD;

use std::io::Write;

use leyden_config::{Loaded, Set};
use leyden_record::Bank;
use leyden_run::size::{
    CURVE, LESS, Shown, SizedDrive, Sizing, Watched, ZoneSizing, discharge, fleet, size,
    size_zones, worst_cases,
};
use leyden_run::{validate, validate_configuration};

use leyden_report::format::{bytes, capacitance, count, latency, number, percent};

use super::{Cancel, command_of, explain, load, overrides, print_json, threads, warn};
use crate::args::SizeArgs;
use crate::failure::Failure;
use crate::output::atomic;
use crate::output::place::{self, Kind};
use crate::output::progress::{Progress, wrote};
use crate::output::table::Table;

pub(crate) fn main(args: &SizeArgs, cancel: &Cancel) -> Result<(), Failure> {
    if let Some(path) = &args.csv {
        place::check(path, Kind::Banks)?;
    }
    if let Some(path) = &args.report {
        place::check(path, Kind::Report)?;
    }
    let mut sets = overrides(&args.set, args.seed)?;
    let loaded = load(&args.file, &mut sets, args.allow_underprovisioned)?;
    if args.worst || args.fleet.is_some() {
        // Arithmetic takes no memory: any capacity will do.
        validate_configuration(&loaded.scenario).map_err(|error| explain(&loaded, error))?;
        return by_arithmetic(args, &loaded, &sets);
    }
    // Of an impossible drive each variant is impossible, too.
    validate(&loaded.scenario).map_err(|error| explain(&loaded, error))?;
    let bar = Progress::new(&loaded.scenario.name);
    let progress = |drive: &str, fraction| {
        bar.what(drive);
        bar.fraction(fraction);
    };
    let watched = Watched { jobs: threads(args.jobs), cancel, progress: &progress };
    if loaded.scenario.device.zoned.is_some() {
        let sized = size_zones(&loaded.scenario, args.commands, &watched);
        drop(bar);
        let (sizing, cancelled) = sized.map_err(|error| explain(&loaded, error))?;
        if cancelled {
            return Err(Failure::interrupted("not every drive had been run"));
        }
        write_page(args, &loaded, &sets, None, Some(&sizing))?;
        if args.json {
            return print_json(&sizing);
        }
        return Ok(zones::show(&sizing, &mut anstream::stdout().lock())?);
    }
    let percents: &[u64] = if args.report.is_some() { &CURVE } else { &LESS };
    let sized = size(&loaded.scenario, args.commands, percents, &watched);
    drop(bar);
    let (sizing, cancelled) = sized.map_err(|error| explain(&loaded, error))?;
    if cancelled && sizing.variants.iter().all(|drive| drive.measured.is_none()) {
        return Err(Failure::interrupted("no drive had been run yet"));
    }
    if !cancelled {
        write_page(args, &loaded, &sets, Some(&sizing), None)?;
    }
    if args.json {
        print_json(&sizing)?;
    } else {
        show(&sizing, &mut anstream::stdout().lock())?;
    }
    if loaded.scenario.device.power.is_none() {
        warn("the scenario has no table [device.power]: its defaults were taken");
    }
    if cancelled {
        return Err(Failure::interrupted("the tables are of the drives that were run"));
    }
    Ok(())
}

/// Writes the page, if one is asked for.
fn write_page(
    args: &SizeArgs,
    loaded: &Loaded,
    sets: &[Set],
    sizing: Option<&Sizing>,
    zones: Option<&ZoneSizing>,
) -> Result<(), Failure> {
    let Some(path) = &args.report else { return Ok(()) };
    let scenario = &loaded.scenario;
    let worst = match scenario.device.zoned {
        Some(_) => None,
        None => Some(worst_cases(scenario).map_err(|error| explain(loaded, error))?),
    };
    let mut command = command_of("leyden size", &args.file, sets);
    if args.worst {
        command.push_str(" --worst");
    } else {
        command = format!("{command} --commands {}", args.commands);
    }
    let page = page::page(&page::Parts {
        loaded,
        command: &command,
        discharge: discharge(scenario).map_err(|error| explain(loaded, error))?,
        worst,
        sizing,
        zones,
    });
    atomic::write(path, page.map_err(Failure::failed)?.as_bytes())?;
    wrote(path);
    Ok(())
}

/// Results that need no run.
fn by_arithmetic(args: &SizeArgs, loaded: &Loaded, sets: &[Set]) -> Result<(), Failure> {
    let scenario = &loaded.scenario;
    if scenario.device.zoned.is_some() {
        let option = if args.worst { "--worst" } else { "--fleet" };
        return Err(Failure::usage(anyhow::anyhow!(
            "{} has a zoned drive, and {option} compares protections of a mapping table\n  help: leave {option} out: \
             the tables that follow have the worst case of a zoned drive's protected region",
            args.file
        )));
    }
    if scenario.device.power.is_none() {
        warn("the scenario has no table [device.power]: its defaults were taken");
    }
    let out = &mut anstream::stdout().lock();
    if let Some(drives) = args.fleet {
        let fleet = fleet(scenario, drives).map_err(|error| explain(loaded, error))?;
        if let Some(path) = &args.report {
            let worst = worst_cases(scenario).map_err(|error| explain(loaded, error))?;
            let command = command_of("leyden size", &args.file, sets);
            let command = format!("{command} --fleet {drives}");
            let page = fleet_page::page(loaded, &fleet, &worst, &command);
            atomic::write(path, page.map_err(Failure::failed)?.as_bytes())?;
            wrote(path);
        }
        return if args.json { print_json(&fleet) } else { Ok(worst::show_fleet(&fleet, out)?) };
    }
    let worst = worst_cases(scenario).map_err(|error| explain(loaded, error))?;
    if let Some(path) = &args.csv {
        atomic::write(path, worst::csv(&worst).as_bytes())?;
        wrote(path);
    }
    write_page(args, loaded, sets, None, None)?;
    if args.json { print_json(&worst) } else { Ok(worst::show(&worst, out)?) }
}

fn show(sizing: &Sizing, out: &mut dyn Write) -> std::io::Result<()> {
    let bold = anstyle::Style::new().bold();
    writeln!(out, "{bold}{}{bold:#}  seed {}", sizing.name, sizing.seed)?;
    writeln!(out)?;
    let mut table = Table::default();
    let own = sizing.variants.iter().find(|drive| drive.own);
    let dump = own.map_or("", |own| own.dump.as_str());
    let name = |drive: &SizedDrive| match drive.protected {
        Some(share) => format!("{} {} %", drive.protection, real_share(share)),
        None => drive.protection.clone(),
    };
    capacitors(
        &format!("mapping table, dump {dump}"),
        sizing,
        |d| (d.dump == dump).then(|| name(d)),
        &mut table,
    );
    let protection = own.map(name).unwrap_or_default();
    let of_dump = |drive: &SizedDrive| (name(drive) == protection).then(|| drive.dump.clone());
    capacitors(&format!("dump, mapping table {protection}"), sizing, of_dump, &mut table);
    table.write(out)?;

    let mut table = Table::default();
    prices(sizing, |d| (d.dump == dump).then(|| name(d)), &mut table);
    with_less(sizing, &mut table);
    writeln!(out)?;
    table.write(out)?;
    writeln!(out)?;
    for line in dominated(sizing, |d| (d.dump == dump).then(|| name(d))) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{}", notes(&sizing.bank, sizing.commands))
}

/// A share in percent, without zeros that say nothing.
fn real_share(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// A drive's need at worst, and the peak of the workload.
fn capacitors(
    title: &str,
    sizing: &Sizing,
    name: impl Fn(&SizedDrive) -> Option<String>,
    table: &mut Table,
) {
    table.head([title, "at worst", "mJ", "parts", "dump ms", "measured", "mJ", "parts", "dump ms"]);
    for (drive, name) in sizing.variants.iter().filter_map(|drive| Some((drive, name(drive)?))) {
        let mut cells = vec![marked(drive, name)];
        if let Some(problem) = &drive.problem {
            cells.push("impossible".to_owned());
            table.row(cells);
            warn(&format!("{}, {}: {problem}", drive.protection, drive.dump));
            continue;
        }
        let worst = drive.worst.unwrap_or_default();
        cells.extend([
            capacitance(worst.capacitance_uf),
            number(worst.energy_mj),
            count(worst.parts),
            number(worst.dump_ms),
        ]);
        if let Some(shown) = &drive.measured {
            cells.extend([
                capacitance(shown.capacitance_uf),
                number(shown.energy_mj.max),
                count(shown.parts),
                number(shown.dump_ms.max),
            ]);
        }
        table.row(cells);
    }
}

/// The drive of the scenario is marked.
fn marked(drive: &SizedDrive, name: String) -> String {
    if drive.own { format!("{name} *") } else { name }
}

/// The costs of each protection while the power is on, and when it returns.
fn prices(sizing: &Sizing, name: impl Fn(&SizedDrive) -> Option<String>, table: &mut Table) {
    table.head([
        "mapping table",
        "requests a second",
        "write, mean",
        "99 %",
        "write amplification",
        "recovery ms",
        "ready ms",
    ]);
    for drive in &sizing.variants {
        let (Some(name), Some(shown)) = (name(drive), &drive.measured) else { continue };
        let Shown { iops, write_mean_us, write_p99_us, waf, recovery_ms, ready_ms, .. } = *shown;
        table.row([
            marked(drive, name),
            number(iops),
            latency(write_mean_us),
            latency(write_p99_us),
            number(waf),
            number(recovery_ms),
            number(ready_ms),
        ]);
    }
}

/// Protections that nobody needs: another needs no more capacitance, serves as many requests, amplifies
/// no more writes and is ready as soon.
fn dominated(sizing: &Sizing, name: impl Fn(&SizedDrive) -> Option<String>) -> Vec<String> {
    let known = sizing.variants.iter().filter_map(|drive| {
        let (name, worst, shown) = (name(drive)?, drive.worst?, drive.measured?);
        // All so that less is better.
        Some((name, [worst.capacitance_uf, -shown.iops, shown.waf, shown.ready_ms]))
    });
    let known: Vec<(String, [f64; 4])> = known.collect();
    let beats = |a: &[f64; 4], b: &[f64; 4]| {
        a.iter().zip(b).all(|(a, b)| a <= b) && a.iter().zip(b).any(|(a, b)| a < b)
    };
    let line = |(name, prices): &(String, [f64; 4])| {
        let better = known.iter().find(|(_, other)| beats(other, prices))?;
        Some(format!("dominated: {name}, by {}", better.0))
    };
    known.iter().filter_map(line).collect()
}

fn with_less(sizing: &Sizing, table: &mut Table) {
    if sizing.with_less.is_empty() {
        return;
    }
    let head = [
        "bank, of the worst case",
        "holds",
        "mJ",
        "parts",
        "moments that lose",
        "lost, mean",
        "most",
        "mapping pages not reached",
    ];
    table.head(head);
    for less in &sizing.with_less {
        let own = sizing.bank.shortfall_mj > 0.0
            && less.energy_mj.to_bits() == sizing.bank.energy_mj.to_bits();
        let share = percent(less.share);
        table.row([
            if own { format!("{share} *") } else { share },
            capacitance(less.capacitance_uf),
            number(less.energy_mj),
            count(less.parts),
            percent(less.losing),
            bytes(less.lost_bytes_mean as u64),
            bytes(less.lost_bytes_max),
            count(less.unsaved_map_pages_max),
        ]);
    }
}

fn notes(bank: &Bank, commands: u64) -> String {
    format!(
        "*: the scenario's own. Its bank: {} of {}, {}, {} mJ. Measured: the costliest of the moments\n\
         looked at, in runs of {} commands. Lost: data promised to the host; mapping pages are not\n\
         lost, but found by scanning all of flash.",
        count(bank.parts),
        bank.part,
        capacitance(bank.capacitance_uf),
        number(bank.energy_mj),
        count(commands),
    )
}
