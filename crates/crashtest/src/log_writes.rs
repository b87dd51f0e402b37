//! Runs that others recorded with dm-log-writes, on a modelled drive; and recordings as others' tools read them.
//!
//! A log has no times: its commands are given to the drive one after the other.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::os::unix::fs::FileExt;
use std::path::Path;

use leyden_device::{Lba, SECTOR_BYTES, Status};
use leyden_files::NewFile;
use leyden_image::recording::format::Step;
use leyden_image::recording::{Recording, Replay};
use leyden_image::{Drive, ImageConfig, WriteFlags, raw};
use leyden_wire::log_writes::{LogAction, LogEntry, LogError, LogReader, LogWriter};

use crate::error::CrashError;
use crate::recorded::{self, BEGIN, END, Moment, Until, walk, written};
use crate::session::{Plan, Session};

/// Bytes that are written at once.
const CHUNK_BYTES: usize = 1 << 20;
/// The mark that dm-log-writes notes when its device is taken down.
const LOG_END: &[u8] = b"dm-log-writes-end";
/// The mark at which the work of a recording begins.
const LOG_BEGIN: &[u8] = b"begin";

/// A log recorded by dm-log-writes, and the options of its import.
#[derive(Debug)]
pub struct Imported<'a> {
    /// The drive that it is run on.
    pub drive: ImageConfig,
    /// How it is checked. Its `size_bytes` is that of the device; its sectors are the log's.
    pub plan: Plan,
    /// The log.
    pub log: &'a File,
    /// The device's earlier content.
    pub base: Option<&'a File>,
    /// Cuts begin behind this mark; from the beginning without.
    pub begin: Option<&'a str>,
}

/// Counts of an imported log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Entries.
    pub entries: u64,
    /// Marks among them that are promises, or the beginning.
    pub marks: u64,
}

/// Runs a log on a drive, and records that as the run of `session`. A mark that begins with `ack `, or as the plan's
/// acknowledgements do, is a promise; others are left out.
///
/// # Errors
/// If the log is none or damaged, reaches beyond the device, or has no mark `begin`, or the recording cannot be written.
pub fn import(session: &Session, imported: &Imported<'_>) -> Result<Moved, CrashError> {
    let image = session.drive();
    let _ = std::fs::remove_file(&image); // of an earlier process that was killed
    let moved = run_log(session, imported);
    let _ = std::fs::remove_file(&image);
    if moved.is_err() {
        let _ = std::fs::remove_file(session.recording());
    }
    let (moved, sector_bytes) = moved?;
    // Loop devices have none that are larger than a page.
    let sector_bytes = sector_bytes.min(4_096);
    session.set_plan(&Plan { sector_bytes, ..imported.plan.clone() })?;
    Ok(moved)
}

fn run_log(session: &Session, imported: &Imported<'_>) -> Result<(Moved, u32), CrashError> {
    let mut log =
        LogReader::new(BufReader::new(imported.log)).map_err(|error| unreadable(&error))?;
    let mut drive = Drive::create(&session.drive(), imported.drive.clone())?;
    if let Some(base) = imported.base {
        raw::import(&mut drive, base)?;
    }
    drive.write_out()?; // as in a recording of ours
    drive.record(&session.recording())?;
    session.share()?;
    let mut host = Host { drive, size_bytes: imported.plan.size_bytes };
    let mut moved = Moved::default();
    let mut has_begun = imported.begin.is_none();
    if has_begun {
        host.drive.mark(BEGIN);
    }
    while let Some(entry) = log.entry().map_err(|error| unreadable(&error))? {
        if let Some(LogAction::Mark(text)) = &entry.action {
            let text = String::from_utf8_lossy(text);
            if !has_begun && imported.begin == Some(text.trim()) {
                has_begun = true;
                host.drive.mark(BEGIN);
                moved.marks += 1;
            } else if let Some(ack) = promise(&text, imported.plan.ack_prefix.as_deref()) {
                host.drive.mark(format!("ack {ack}\n").as_bytes());
                moved.marks += 1;
            }
        }
        host.act(&entry, moved.entries)?;
        moved.entries += 1;
    }
    if !has_begun {
        let mark = imported.begin.unwrap_or_default();
        return Err(CrashError::Input(format!("the log has no mark `{mark}`")));
    }
    host.drive.mark(END);
    host.drive.rest()?;
    host.drive.close()?;
    Ok((moved, log.sector_bytes()))
}

/// The promise of a mark.
fn promise<'a>(mark: &'a str, prefix: Option<&str>) -> Option<&'a str> {
    let rest = mark.strip_prefix("ack ").or_else(|| mark.strip_prefix(prefix?));
    rest.map(str::trim).filter(|rest| !rest.is_empty() && !rest.contains('\n'))
}

fn unreadable(error: &LogError) -> CrashError {
    CrashError::Input(format!("the log cannot be read: {error}"))
}

/// The host that gives a log's commands to a drive.
struct Host {
    drive: Drive,
    size_bytes: u64,
}

impl Host {
    fn act(&mut self, entry: &LogEntry, number: u64) -> Result<(), CrashError> {
        if entry.flush {
            self.drive.flush(self.drive.now(), 0)?;
            self.drive.finish_one()?;
        }
        match &entry.action {
            None | Some(LogAction::Mark(_)) => {}
            Some(LogAction::Write { offset_bytes, data, fua }) => {
                self.must_hold(*offset_bytes, data.len() as u64, number)?;
                let mut at = Lba(offset_bytes / SECTOR_BYTES);
                for chunk in data.chunks(CHUNK_BYTES) {
                    let flags = WriteFlags::fua(*fua);
                    self.drive.write(self.drive.now(), 0, at, chunk, flags)?;
                    self.drive.finish_one()?;
                    at = Lba(at.0 + chunk.len() as u64 / SECTOR_BYTES);
                }
            }
            Some(LogAction::Discard { offset_bytes, length_bytes }) => {
                self.must_hold(*offset_bytes, *length_bytes, number)?;
                let sectors = (length_bytes / SECTOR_BYTES) as u32;
                if sectors > 0 {
                    let at = Lba(offset_bytes / SECTOR_BYTES);
                    self.drive.trim(self.drive.now(), 0, at, sectors)?;
                    self.drive.finish_one()?;
                }
            }
        }
        Ok(())
    }

    fn must_hold(&self, offset: u64, length: u64, number: u64) -> Result<(), CrashError> {
        if offset.checked_add(length).is_some_and(|end| end <= self.size_bytes) {
            return Ok(());
        }
        let problem = format!(
            "entry {number} of the log reaches to byte {}, and the device has {}\n  help: name its size with --size",
            offset.saturating_add(length),
            self.size_bytes
        );
        Err(CrashError::Input(problem))
    }
}

/// Writes what was recorded as a log of dm-log-writes to `to`, and what was on the device before to `base`; neither may be
/// there. Acknowledgements are marks that begin with `ack `; the work begins behind the mark `begin`. Returns the number
/// of entries.
///
/// # Errors
/// If the recording is damaged, or its drive does something else when it is run again, or writing fails.
pub fn export(session: &Session, to: &Path, base: Option<&Path>) -> Result<u64, CrashError> {
    let recording = session.drive_recording()?;
    let plan = session.plan()?;
    let mut replay = Replay::new(&recording)?;
    let log = NewFile::create_new(to)?;
    let base = base.map(|path| Ok::<_, CrashError>((path, NewFile::create_new(path)?)));
    let base = base.transpose()?;
    if let Some((path, file)) = &base {
        write_base(&replay, recording.head().unit_bytes, plan.size_bytes, file, path)?;
    }
    let io = |error| CrashError::Io(to.to_owned(), error);
    let sector_bytes = sector_bytes(&recording, plan.sector_bytes);
    let mut writer = LogWriter::new(BufWriter::new(log.as_file()), sector_bytes).map_err(io)?;
    let mut write = |order: &mut Order<'_>| {
        order.out.drain(..).try_for_each(|entry| writer.entry(&entry).map_err(io))
    };
    let mut order = Order {
        recording: &recording,
        completed: Vec::new(),
        flushes: Vec::new(),
        out: Vec::new(),
    };
    walk(&recording, &mut replay, Until::WorkEnded, |moment| {
        match moment {
            Moment::Ended(ended) if ended.status == Status::Success => order.ended(ended.step),
            Moment::Ended(_) | Moment::WorkEnded => {}
            Moment::Submitted { number, step, .. } => order.submitted(number, step),
        }
        write(&mut order)
    })?;
    order.close();
    write(&mut order)?;
    let entries = writer.finish().map_err(io)?;
    log.commit()?;
    if let Some((_, base)) = base {
        base.commit()?;
    }
    Ok(entries)
}

/// The recorded device's sectors, if every command is of whole ones.
fn sector_bytes(recording: &Recording, wanted: u32) -> u32 {
    let sectors = u64::from(wanted) / SECTOR_BYTES;
    let fits = |step: &Step| match step {
        Step::Write(lba, count, ..) | Step::Trim(lba, count) | Step::WriteZeroes(lba, count, _) => {
            lba.0.is_multiple_of(sectors) && u64::from(*count).is_multiple_of(sectors)
        }
        _ => true,
    };
    if recording.steps().all(|(_, step)| fits(step)) { wanted } else { SECTOR_BYTES as u32 }
}

fn write_base(
    replay: &Replay<'_>,
    unit_bytes: u32,
    size_bytes: u64,
    to: &NewFile,
    path: &Path,
) -> Result<(), CrashError> {
    let io = |error| CrashError::Io(path.to_owned(), error);
    to.as_file().set_len(size_bytes).map_err(io)?;
    for unit in recorded::base(replay, size_bytes, unit_bytes) {
        let (unit, bytes) = unit?;
        to.as_file().write_all_at(&bytes, unit * u64::from(unit_bytes)).map_err(io)?;
    }
    Ok(())
}

/// The recorded writes, in the order of a log.
struct Order<'a> {
    recording: &'a Recording,
    /// Steps that have completed since the last flush was submitted, and that no flush covers.
    completed: Vec<usize>,
    /// Flushes under way, and what each covers.
    flushes: Vec<(usize, Vec<usize>)>,
    out: Vec<LogEntry>,
}

impl Order<'_> {
    fn submitted(&mut self, number: usize, step: &Step) {
        match step {
            Step::Flush => {
                let covered = std::mem::take(&mut self.completed);
                self.flushes.push((number, covered));
            }
            Step::Mark(text) if text == BEGIN => self.mark(LOG_BEGIN),
            Step::Mark(text) => {
                for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                    let ack = line.strip_prefix(b"ack ").unwrap_or(line);
                    self.mark(&[b"ack ", ack].concat());
                }
            }
            _ => {}
        }
    }

    fn mark(&mut self, text: &[u8]) {
        self.out.push(LogEntry { flush: false, action: Some(LogAction::Mark(text.to_vec())) });
    }

    fn ended(&mut self, number: usize) {
        let (_, step) = self.recording.steps().nth(number).expect("a step that ends was one");
        match step {
            Step::Flush => {
                let at = self.flushes.iter().position(|(flush, _)| *flush == number);
                let (_, covered) = self.flushes.remove(at.expect("it was submitted"));
                self.write(&covered);
                self.out.push(LogEntry { flush: true, action: None });
            }
            // Either flag promises that the write survives once it has ended.
            Step::Write(_, _, WriteFlags { fua: true, .. } | WriteFlags { plp: true, .. }, _)
            | Step::WriteZeroes(_, _, true) => {
                let older = self.overlapped(step);
                self.write(&older);
                self.write(&[number]);
            }
            Step::Write(..) | Step::WriteZeroes(..) | Step::Trim(..) => self.completed.push(number),
            _ => {}
        }
    }

    /// Takes out what has completed of the same sectors and is covered by no flush: in a log it must not come behind.
    fn overlapped(&mut self, step: &Step) -> Vec<usize> {
        let Some((begin, end)) = range(step) else { return Vec::new() };
        let overlaps = |number: &usize| {
            let (_, step) = self.recording.steps().nth(*number).expect("it was a step");
            range(step).is_some_and(|of| of.0 < end && begin < of.1)
        };
        let (older, rest) = self.completed.iter().partition(|number| overlaps(number));
        self.completed = rest;
        older
    }

    fn write(&mut self, numbers: &[usize]) {
        for &number in numbers {
            let (_, step) = self.recording.steps().nth(number).expect("it was a step");
            let offset = |lba: &Lba| lba.0 * SECTOR_BYTES;
            let action = match step {
                Step::Write(lba, sectors, flags, contents) => LogAction::Write {
                    offset_bytes: offset(lba),
                    data: written(self.recording, *lba, *sectors, contents),
                    fua: flags.fua || flags.plp,
                },
                // The format has no zeroes without bytes.
                Step::WriteZeroes(lba, sectors, fua) => LogAction::Write {
                    offset_bytes: offset(lba),
                    data: vec![0; *sectors as usize * SECTOR_BYTES as usize],
                    fua: *fua,
                },
                Step::Trim(lba, sectors) => LogAction::Discard {
                    offset_bytes: offset(lba),
                    length_bytes: u64::from(*sectors) * SECTOR_BYTES,
                },
                _ => unreachable!("only these are kept"),
            };
            self.out.push(LogEntry { flush: false, action: Some(action) });
        }
    }

    /// Writes that no flush has covered come last, as in dm-log-writes.
    fn close(&mut self) {
        let mut rest: Vec<usize> =
            self.flushes.drain(..).flat_map(|(_, covered)| covered).collect();
        rest.append(&mut self.completed);
        self.write(&rest);
        self.mark(LOG_END);
    }
}

/// The sectors of a step, the first and the one behind the last.
fn range(step: &Step) -> Option<(u64, u64)> {
    match step {
        Step::Write(lba, count, ..) | Step::Trim(lba, count) | Step::WriteZeroes(lba, count, _) => {
            Some((lba.0, lba.0 + u64::from(*count)))
        }
        _ => None,
    }
}
