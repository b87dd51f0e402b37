//! Commands of I/O queues: what each asks of drives, and how its end follows from their answers.

use std::sync::{Arc, Mutex, PoisonError};

use leyden_device::{Lba, SECTOR_BYTES};
use leyden_image::{WriteFlags, ZoneAsk};
use leyden_nvme::wire::Sqe;
use leyden_nvme::{Io, Management, Report, Status};

use super::drives;
use super::house::Shared;
use super::reply::Replier;
use crate::ask::{Answer, Ask, Failure};
use crate::session::Asks;

/// A command with its data, and who is told how it ends.
pub(super) struct Command {
    pub(super) sqe: Sqe,
    /// The I/O command, on an I/O queue; parsed once, before its data comes.
    pub(super) io: Option<Io>,
    pub(super) data: Vec<u8>,
    pub(super) replier: Replier,
}

/// Asks drives for a command of an I/O queue of `controller`, if that takes commands.
pub(super) fn carry_out(shared: &Shared, controller: u16, command: Command, asks: &mut Asks<'_>) {
    let state = shared.lock();
    let of = state.subsystem.controller(controller);
    let ready = of.map(|it| (it.is_ready(), it.forces_unit_access()));
    drop(state);
    match (ready, command.io) {
        (Ok((true, fua)), Some(io)) => ask(shared, io, command, fua, asks),
        _ => command.replier.end(Status::SEQUENCE, 0),
    }
}

/// The end of a command that asks for several things: called when all of them have ended, with the first failure.
struct Joined<F>(Mutex<Join<F>>);

struct Join<F> {
    end: Option<F>,
    left: usize,
    failure: Option<Failure>,
}

impl<F: FnOnce(Option<Failure>)> Joined<F> {
    fn new(left: usize, end: F) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Join { end: Some(end), left, failure: None })))
    }

    fn ended(&self, failure: Option<Failure>) {
        // A number and an option: nothing is half done if a thread panics.
        let mut join = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        join.failure = join.failure.or(failure);
        join.left -= 1;
        if join.left > 0 {
            return;
        }
        let (end, failure) = (join.end.take(), join.failure);
        drop(join);
        if let Some(end) = end {
            end(failure);
        }
    }
}

/// Asks drives for `io`, which `command` says. With `force` each write is to be durable when it ends.
fn ask(shared: &Shared, io: Io, command: Command, force: bool, asks: &mut Asks<'_>) {
    let Command { sqe, data, replier, .. } = command;
    if io == (Io::Flush { all: true }) {
        return each(replier, asks, (0..shared.drives.len()).map(|drive| (drive, Ask::Flush)));
    }
    let namespace = match shared.namespace(&sqe) {
        Ok(namespace) => namespace,
        Err(status) => return replier.end(status, 0),
    };
    let drive = sqe.nsid.get() as usize - 1;
    let flags = |fua, plp| WriteFlags { fua: fua || force, plp };
    let ask = match io {
        Io::Flush { .. } => Ask::Flush,
        Io::Read(lba, sectors) => Ask::Read(lba, sectors),
        Io::Write { lba, fua, plp, .. } => Ask::Write(lba, data, flags(fua, plp)),
        Io::Append { lba, fua, plp, .. } => Ask::Append(lba, data, flags(fua, plp)),
        Io::WriteZeroes { lba, sectors, fua } => Ask::WriteZeroes(lba, sectors, fua || force),
        Io::Zone(Management { action, lba, all, zrwa }) => {
            Ask::Zone(ZoneAsk { action, lba, all, zrwa })
        }
        Io::Compare(lba, sectors) => {
            return asks.push(drive, Ask::Read(lba, sectors), move |answer| match answer {
                Answer::Data(found) if found == data => replier.end(Status::SUCCESS, 0),
                Answer::Data(_) => replier.end(Status::COMPARE_FAILURE, 0),
                other => replier.answer(other),
            });
        }
        Io::Verify(lba, sectors) => {
            return asks.push(drive, Ask::Read(lba, sectors), move |answer| match answer {
                Answer::Data(_) => replier.end(Status::SUCCESS, 0),
                other => replier.answer(other),
            });
        }
        Io::Dsm { count, deallocate } => {
            let trims = |all: Vec<_>| {
                all.into_iter().map(|(lba, sectors)| Ask::Trim(lba, sectors)).collect()
            };
            let hints =
                |all: Vec<_>| if all.is_empty() { vec![] } else { vec![Ask::WritePrepare(all)] };
            let asked: Result<Vec<_>, _> = if deallocate {
                namespace.ranges(&data, count).map(trims)
            } else {
                namespace.announced(&data, count).map(hints)
            };
            return match asked {
                Ok(all) => each(replier, asks, all.into_iter().map(|ask| (drive, ask))),
                Err(status) => replier.end(status, 0),
            };
        }
        Io::Copy { count, lba, fua } => {
            return match namespace.sources(&data, count, lba) {
                Ok(ranges) => {
                    copy(shared, drive, &ranges, lba, flags(fua, false), replier, asks);
                }
                Err(status) => replier.end(status, 0),
            };
        }
        Io::Report(asked) => {
            let block_bytes = namespace.block_bytes;
            return report(asked, block_bytes, drive, replier, asks);
        }
    };
    asks.push(drive, ask, move |answer| replier.answer(answer));
}

/// Asks for all of these; the command ends when all of them have.
fn each(replier: Replier, asks: &mut Asks<'_>, all: impl Iterator<Item = (usize, Ask)>) {
    let all: Vec<_> = all.collect();
    if all.is_empty() {
        return replier.end(Status::SUCCESS, 0);
    }
    let joined = Joined::new(all.len(), |failure| match failure {
        None => replier.end(Status::SUCCESS, 0),
        Some(failure) => replier.failed(failure),
    });
    for (drive, ask) in all {
        let joined = Arc::clone(&joined);
        asks.push(drive, ask, move |answer| match answer {
            Answer::Failed(failure) => joined.ended(Some(failure)),
            _ => joined.ended(None),
        });
    }
}

/// Source ranges are read together, and written as one command when the last of them has come.
fn copy(
    shared: &Shared,
    drive: usize,
    ranges: &[(Lba, u32)],
    to: Lba,
    flags: WriteFlags,
    replier: Replier,
    asks: &mut Asks<'_>,
) {
    let bytes = |sectors: u32| sectors as usize * SECTOR_BYTES as usize;
    let whole = Arc::new(Mutex::new(vec![0; ranges.iter().map(|it| bytes(it.1)).sum()]));
    let (read, handle) = (Arc::clone(&whole), shared.drives[drive].clone());
    let joined = Joined::new(ranges.len(), move |failure| {
        if let Some(failure) = failure {
            return replier.failed(failure);
        }
        let data = std::mem::take(&mut *read.lock().unwrap_or_else(PoisonError::into_inner));
        handle.ask(Ask::Write(to, data, flags), move |answer| replier.answer(answer));
    });
    let mut at = 0;
    for &(lba, sectors) in ranges {
        let (joined, whole, from) = (Arc::clone(&joined), Arc::clone(&whole), at);
        at += bytes(sectors);
        asks.push(drive, Ask::Read(lba, sectors), move |answer| match answer {
            Answer::Data(part) => {
                let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                whole[from..from + part.len()].copy_from_slice(&part);
                drop(whole);
                joined.ended(None);
            }
            Answer::Failed(failure) => joined.ended(Some(failure)),
            _ => unreachable!("a read answers with data"),
        });
    }
}

/// All zones from the one asked for on are asked for: which of them match is only seen then.
fn report(asked: Report, block_bytes: u32, drive: usize, replier: Replier, asks: &mut Asks<'_>) {
    asks.push(drive, Ask::Zones(asked.lba, u32::MAX), move |answer| match answer {
        Answer::Zones(lines) => {
            let zones = lines.iter().map(|line| drives::zone(line, block_bytes));
            replier.data(leyden_nvme::report(&asked, zones), 0);
        }
        other => replier.answer(other),
    });
}
