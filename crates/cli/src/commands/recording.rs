//! `leyden recording`: what a served drive was asked.

use std::os::unix::fs::FileExt;
use std::path::Path;

use leyden_device::SECTOR_BYTES;
use leyden_files::NewFile;
use leyden_image::recording::format::Step;
use leyden_image::recording::{Recording, RecordingError, Replay, ReplayError};
use leyden_report::format::{bytes, count, seconds};
use leyden_serve::{CutReport, RestoreReport};
use leyden_sim::{Capacitance, Span, Time};
use serde::Serialize;

use super::print_json;
use super::serve::{cut_table, restore_table};
use crate::args::served::{RecordingArgs, RecordingCommand};
use crate::failure::Failure;
use crate::output::table::Table;

pub(crate) fn main(command: &RecordingCommand) -> Result<(), Failure> {
    match command {
        RecordingCommand::Info(args) => {
            let recording = open(&args.file)?;
            tell(args, &Summary::new(&recording), |summary| vec![summary.table()])
        }
        RecordingCommand::Replay { recording, cut, capacitance_uf, raw } => {
            let bank = capacitance_uf.map(|uf| Capacitance::from_nf(uf * 1_000));
            replay(recording, *cut, bank, raw.as_deref())
        }
    }
}

/// The contents of a recording.
#[derive(Clone, Debug, Serialize)]
struct Summary {
    name: String,
    made_by: String,
    seed: u64,
    is_whole: bool,
    seconds: f64,
    reads: u64,
    writes: u64,
    flushes: u64,
    trims: u64,
    zone_actions: u64,
    cuts: u64,
    marks: u64,
    written_bytes: u64,
    different_units: usize,
    unit_bytes: u32,
}

impl Summary {
    fn new(recording: &Recording) -> Self {
        let config = &recording.head().config;
        let times = || recording.steps().map(|(time, _)| time);
        let span = times().last().zip(times().next()).map(|(end, begin)| end.since(begin));
        let mut summary = Self {
            name: config.name.clone(),
            made_by: config.made_by.clone(),
            seed: config.seed,
            is_whole: recording.is_whole(),
            seconds: span.unwrap_or_default().as_ns() as f64 / 1e9,
            reads: 0,
            writes: 0,
            flushes: 0,
            trims: 0,
            zone_actions: 0,
            cuts: 0,
            marks: 0,
            written_bytes: 0,
            different_units: recording.contents(),
            unit_bytes: recording.head().unit_bytes,
        };
        recording.steps().for_each(|(_, step)| summary.add(step));
        summary
    }

    fn add(&mut self, step: &Step) {
        match step {
            Step::Read(..) => self.reads += 1,
            Step::Write(_, sectors, ..) | Step::Append(_, sectors, ..) => {
                self.writes += 1;
                self.written_bytes += u64::from(*sectors) * SECTOR_BYTES;
            }
            Step::WriteZeroes(..) => self.writes += 1,
            Step::Flush => self.flushes += 1,
            Step::Trim(..) => self.trims += 1,
            Step::Cut => self.cuts += 1,
            Step::Mark(_) => self.marks += 1,
            Step::Zone(_) => self.zone_actions += 1,
            Step::WritePrepare(_) | Step::ZoneReport(..) | Step::Restore(_) | Step::Check(_) => {}
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        table.row(["drive", &self.name]);
        table.row(["recorded by", &format!("leyden {}", self.made_by)]);
        let end = if self.is_whole { "closed" } else { "breaks off: good up to there" };
        table.row(["end", end]);
        table.row(["lasts", &seconds(self.seconds)]);
        let counts = [
            ("reads", self.reads),
            ("writes", self.writes),
            ("flushes", self.flushes),
            ("trims", self.trims),
            ("zone actions", self.zone_actions),
            ("power cuts", self.cuts),
            ("marks", self.marks),
        ];
        for (name, number) in counts {
            table.row([name, &count(number)]);
        }
        table.row(["written", &bytes(self.written_bytes)]);
        let kept = self.different_units as u64 * u64::from(self.unit_bytes);
        table.row(["different", &bytes(kept)]);
        table
    }
}

/// The result of a replay.
#[derive(Debug, Serialize)]
struct Replayed {
    steps: u64,
    /// Digests on the way that were compared, and were the same.
    checks: u64,
    time_ns: u64,
    digest: String,
    cut: Option<CutReport>,
    recovery: Option<RestoreReport>,
}

fn replay(
    args: &RecordingArgs,
    cut: Option<Span>,
    bank: Option<Capacitance>,
    raw: Option<&Path>,
) -> Result<(), Failure> {
    let raw = raw.map(NewFile::create_private).transpose().map_err(Failure::io)?;
    let recording = open(&args.file)?;
    let named = |error: anyhow::Error| error.context(args.file.display().to_string());
    let made = match bank {
        Some(_) => Replay::with_bank(&recording, bank),
        None => Replay::new(&recording),
    };
    let mut replay = made.map_err(|error| Failure::usage(named(error.into())))?;
    let begin = replay.now();
    let ran = match cut {
        Some(span) => replay.run_to(begin + span),
        None => replay.run(),
    };
    ran.map_err(|error| match error {
        ReplayError::Diverged(_) => Failure::failed(named(error.into())),
        ReplayError::Drive(_) => Failure::usage(named(error.into())),
    })?;
    let mut replayed = summary_of(&recording, &replay);
    if cut.is_some() {
        if replay.is_off() {
            return Err(Failure::usage(anyhow::anyhow!("the power is off at that time already")));
        }
        let (lost, recovery) = cut_and_restore(&mut replay).map_err(Failure::usage)?;
        (replayed.cut, replayed.recovery) = (Some(lost), Some(recovery));
    }
    if let Some(raw) = raw {
        export(&replay, &recording, raw)?;
    }
    tell(args, &replayed, Replayed::tables)
}

fn cut_and_restore(
    replay: &mut Replay<'_>,
) -> Result<(CutReport, RestoreReport), leyden_image::ImageError> {
    let unit_sectors = u64::from(replay.device().unit_bytes()) / SECTOR_BYTES;
    let pending = replay.device().pending() as u64;
    let loss = replay.cut();
    let now = replay.now();
    let recovery = replay.restore(now, None)?;
    Ok((CutReport::new(&loss, pending, unit_sectors), RestoreReport::new(&recovery, now)))
}

fn summary_of(recording: &Recording, replay: &Replay<'_>) -> Replayed {
    let done = || recording.steps().take(replay.next());
    Replayed {
        steps: done().count() as u64,
        checks: done().filter(|(_, step)| matches!(step, Step::Check(_))).count() as u64,
        time_ns: replay.now().since(Time::ZERO).as_ns(),
        digest: replay.device().digest().to_string(),
        cut: None,
        recovery: None,
    }
}

impl Replayed {
    fn tables(&self) -> Vec<Table> {
        let mut table = Table::default();
        table.row(["steps", &count(self.steps)]);
        table.row(["digests compared", &count(self.checks)]);
        table.row(["drive's clock", &seconds(self.time_ns as f64 / 1e9)]);
        table.row(["digest", &self.digest]);
        let cut = self.cut.iter().map(cut_table);
        let recovery = self.recovery.iter().map(restore_table);
        std::iter::once(table).chain(cut).chain(recovery).collect()
    }
}

/// Writes all that the drive holds.
fn export(replay: &Replay<'_>, recording: &Recording, raw: NewFile) -> Result<(), Failure> {
    let unit_bytes = u64::from(recording.head().unit_bytes);
    let capacity = replay.device().capacity_sectors() * SECTOR_BYTES;
    raw.as_file().set_len(capacity)?;
    for unit in 0..capacity / unit_bytes {
        let held = replay.read_unit(unit).ok_or_else(|| {
            let at = unit * unit_bytes;
            Failure::failed(anyhow::anyhow!("the bytes at {at} were damaged when it was recorded"))
        })?;
        if held.iter().any(|&byte| byte != 0) {
            raw.as_file().write_all_at(&held, unit * unit_bytes)?;
        }
    }
    raw.commit().map(drop).map_err(Failure::io)
}

fn open(path: &Path) -> Result<Recording, Failure> {
    Recording::open(path).map_err(|error| {
        let is_io = matches!(error, RecordingError::Io(_));
        let told = anyhow::Error::from(error).context(path.display().to_string());
        if is_io { Failure::io(told) } else { Failure::usage(told) }
    })
}

fn tell<T: Serialize>(
    args: &RecordingArgs,
    value: &T,
    tables: impl FnOnce(&T) -> Vec<Table>,
) -> Result<(), Failure> {
    if args.json {
        return print_json(value);
    }
    for table in tables(value) {
        table.write(&mut anstream::stdout().lock())?;
    }
    Ok(())
}
