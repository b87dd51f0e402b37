//! `leyden lifetime`: write amplification, drive writes a day, and years.

mod page;

use leyden_config::{Scenario, run_command};
use leyden_record::Lifetime;
use leyden_report::format::{bytes, count, number};

use super::{Cancel, cache, command_of, load, overrides, print_json, run_one, verdict, warn};
use crate::args::LifetimeArgs;
use crate::failure::Failure;
use crate::output::atomic;
use crate::output::place::{self, Kind};
use crate::output::progress::wrote;
use crate::output::table::Table;

/// No drive is bought for so short a time.
const SHORT_LIFE_YEARS: f64 = 0.1;

/// Of fewer erases a block, the most worn one is what chance makes it.
const FEW_ERASES: f64 = 8.0;

pub(crate) fn main(args: &LifetimeArgs, cancel: &Cancel) -> Result<(), Failure> {
    if let Some(path) = &args.report {
        place::check(path, Kind::Report)?;
    }
    let mut sets = overrides(&args.set, args.seed)?;
    let loaded = load(&args.file, &mut sets, false)?;
    let scenario = &loaded.scenario;
    let own = u64::from(scenario.device.nand.endurance_cycles);
    let cycles = args.cycles.or((own > 0).then_some(own)).ok_or_else(|| {
        Failure::usage(anyhow::anyhow!(
            "{} does not say how often a block can be erased\n  help: say so with --cycles N; the \
             flash's data sheet has it",
            args.file
        ))
    })?;
    let drives = cache::drives(args.no_cache);
    let outcome = run_one(&loaded, &run_command(&args.file, &sets), drives.as_ref(), cancel)?;
    if outcome.interrupted {
        return Err(Failure::interrupted("a part of the work says nothing of all of it"));
    }
    let record = outcome.record;
    for warning in &record.warnings {
        warn(warning);
    }
    verdict(std::slice::from_ref(&record))?;
    let Some(life) = Lifetime::of(&record, cycles, args.warranty) else {
        let written = record.host.bytes_written;
        return Err(Failure::nothing_measured(if written > 0 && record.drive.is_some() {
            anyhow::anyhow!(
                "{} were written, and all of it to the write buffer: nothing wore the flash\n  help: give the run \
                 more writes than the buffer holds",
                bytes(written)
            )
        } else {
            anyhow::anyhow!("nothing was written\n  help: give the run writes to do")
        }));
    };
    let warnings = warnings(&life, scenario);
    if let Some(path) = &args.report {
        let command = format!(
            "{} --cycles {cycles} --warranty {}",
            command_of("leyden lifetime", &args.file, &sets),
            args.warranty
        );
        let page = page::page(&record, &life, &warnings, &command).map_err(Failure::failed)?;
        atomic::write(path, page.as_bytes())?;
        wrote(path);
    }
    if args.json {
        print_json(&life)?;
    } else {
        show(&life, &mut anstream::stdout().lock())?;
    }
    for warning in warnings {
        warn(&warning);
    }
    Ok(())
}

/// Reasons to distrust the answer.
fn warnings(life: &Lifetime, scenario: &Scenario) -> Vec<String> {
    let mut warnings = Vec::new();
    if life.years < SHORT_LIFE_YEARS {
        warnings.push(format!(
            "at {} drive writes a day the drive is worn out within {} days: drive and work do not fit; give \
             device.nand as much flash as the drive of the {} has",
            number(life.dwpd),
            number(life.years * 365.25),
            if scenario.workload.trace.is_some() { "trace" } else { "host" },
        ));
    }
    if life.mean_erases < FEW_ERASES {
        warnings.push(format!(
            "the mean block was erased {} times: chance decides which block is the most worn, and the life is at least \
             the one above; give the run more work, or set precondition.kind = \"steady\" with \
             precondition.distribution = \"workload\"",
            number(life.mean_erases),
        ));
    }
    if runs_flat_out(scenario) {
        warnings.push(
            "the work runs as fast as the drive lets it, so that its day is no day of the host's: give \
             jobs an iops_limit or rate_limit, or leave workload.trace.mode at \"open\""
                .to_owned(),
        );
    }
    warnings
}

fn show(life: &Lifetime, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    let mut table = Table::default();
    table.head(["the drive", ""]);
    table.row(["write amplification", &number(life.waf)]);
    table.row(["erases that a block stands", &count(life.cycles)]);
    table.row(["erases so far, mean block", &number(life.mean_erases)]);
    table.row(["erases so far, most worn block", &count(life.most_erases)]);
    table.row(["the host can write", &bytes(life.writable_bytes.round())]);
    table.row(["the same if all blocks wore alike", &bytes(life.level_writable_bytes.round())]);
    let years = number(life.warranty_years);
    table.row([format!("drive writes a day over {years} years"), number(life.rated_dwpd)]);
    table.head(["this work", ""]);
    table.row(["written in a day", &bytes(life.written_bytes_a_day.round())]);
    table.row(["drive writes a day", &number(life.dwpd)]);
    table.row(["years until it is worn out", &number(life.years)]);
    table.write(out)
}

/// Whether nothing but the drive limits the work.
fn runs_flat_out(scenario: &Scenario) -> bool {
    let workload = &scenario.workload;
    match &workload.trace {
        Some(trace) => trace.is_closed_loop(),
        None => workload.job.iter().any(|job| job.iops_limit.is_none() && job.rate_limit.is_none()),
    }
}
