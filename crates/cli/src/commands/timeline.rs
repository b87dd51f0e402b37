//! `leyden timeline`: what a drive does around its slowest command.

use std::io::Write;

use clap::ValueEnum as _;
use leyden_config::{Set, quote};
use leyden_report::{described, format, slow_command, timeline_page, timeline_trace};
use leyden_run::{Follow, Hooks, Phase, Wanted, follow};

use super::{Cancel, cache, command_of, explain, load, overrides, stamp};
use crate::args::{TimelineArgs, TimelineOf};
use crate::failure::Failure;
use crate::output::atomic;
use crate::output::place::{self, Kind};
use crate::output::progress::{self, Progress};

pub(crate) fn main(args: &TimelineArgs, cancel: &Cancel) -> Result<(), Failure> {
    let mut sets = overrides(&args.set, args.seed)?;
    let loaded = load(&args.file, &mut sets, false)?;
    let is_page = match args.output.extension().and_then(|ending| ending.to_str()) {
        Some("html") => true,
        Some("pftrace") => false,
        _ => {
            return Err(Failure::usage(anyhow::anyhow!(
                "{}: the ending says the format, and it must be .html or .pftrace",
                args.output.display()
            )));
        }
    };
    place::check(&args.output, if is_page { Kind::Report } else { Kind::Timeline })?;
    let wanted = match (args.at, args.of) {
        (Some(at), _) => Wanted::At(at),
        (None, TimelineOf::Read) => Wanted::Read,
        (None, TimelineOf::Write) => Wanted::Write,
        (None, TimelineOf::Flush) => Wanted::Flush,
        (None, TimelineOf::Any) => Wanted::Any,
    };
    let bar = Progress::new(&loaded.scenario.name);
    let mut tell = |phase, fraction| {
        bar.phase(match phase {
            Phase::Preconditioning => "preconditioning",
            Phase::Running => "running",
        });
        bar.fraction(fraction);
    };
    let drives = cache::drives(args.no_cache);
    let mut hooks = Hooks {
        cancel: Some(cancel),
        progress: Some(&mut tell),
        cache: drives.as_ref(),
        ..Hooks::default()
    };
    let ask = Follow { wanted, before: args.before, after: args.after };
    let followed = follow(&loaded.scenario, ask, &mut hooks);
    drop(bar);
    let mut followed = followed.map_err(|error| explain(&loaded, error))?;
    stamp(&mut followed.record, &loaded, &again(args, &sets));
    let timeline = &followed.timeline;
    let file = if is_page {
        timeline_page(&followed.record, timeline).map_err(Failure::usage)?.into_bytes()
    } else {
        timeline_trace(&followed.record, timeline)
    };
    atomic::write(&args.output, &file)?;
    progress::wrote(&args.output);
    let mut out = anstream::stdout().lock();
    if let Some(slow) = timeline.slow {
        let took = (slow.completed.as_ns() - slow.arrived.as_ns()) as f64 / 1e9;
        let at = format::seconds(slow.arrived.as_secs_f64());
        let name = slow_command(timeline).map_or_else(|| "command".to_owned(), described);
        writeln!(out, "the {name} took {}, from {at} of the run on", format::seconds(took))?;
    }
    let (commands, operations) = (timeline.commands.len(), timeline.operations.len());
    writeln!(
        out,
        "{} commands and {} flash operations around it",
        format::count(commands as f64),
        format::count(operations as f64)
    )?;
    Ok(())
}

/// The command that makes the timeline again.
fn again(args: &TimelineArgs, sets: &[Set]) -> String {
    let mut command = command_of("leyden timeline", &args.file, sets);
    let mut add = |option: &str, value: &str| {
        command = format!("{command} {option} {}", quote(value));
    };
    match (args.at, args.of.to_possible_value()) {
        (Some(at), _) => add("--at", &at.to_string()),
        (None, Some(of)) => add("--of", of.get_name()),
        (None, None) => {}
    }
    for (option, value, default) in [
        ("--before", args.before, TimelineArgs::BEFORE),
        ("--after", args.after, TimelineArgs::AFTER),
    ] {
        if value != default {
            add(option, &value.to_string());
        }
    }
    let name = args.output.file_name().unwrap_or(args.output.as_os_str());
    add("--output", &name.to_string_lossy());
    command
}
