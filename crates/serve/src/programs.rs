//! The front end for programs with `libleyden.so`: all that a drive can do, zones too, and its switch.
//!
//! A client is a process on this machine that may use the socket, and may do to the drive what its owner may.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leyden_device::{Lba, SECTOR_BYTES, Status};
use leyden_image::{WriteFlags, ZoneAsk};
use leyden_wire::programs::{
    ALL_ZONES, FUA, GREETING_BYTES, Hello, Kind, Outcome, PLP, ProgramsError, REQUEST_BYTES, Reply,
    Request, TRANSFER_MOST, VERSION, WITH_AREA, Welcome, ZONE_BYTES,
};
use thiserror::Error;

use crate::about::{DriveStats, Identity, all_stats};
use crate::ask::{Answer, Ask, Failure};
use crate::negotiating::Negotiating;
use crate::owner::Handle;
use crate::session::{Encoded, Protocol, Single, Step, Turn, one};
use crate::stream::Stream;
use crate::switch;

/// How often, and how far apart, it is looked whether a claim is free.
const CLAIM_LOOKS: u32 = 50;
const CLAIM_BREATH: Duration = Duration::from_millis(20);

/// Why a connection has ended before its client went.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    /// The socket.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The client does not speak the protocol.
    #[error(transparent)]
    Protocol(#[from] ProgramsError),
}

/// A claim that one client at most holds, for mounts that must not be made twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claim(Arc<AtomicBool>);

/// Held by the client that has the claim.
struct Claimed(Claim);

impl Claim {
    /// Takes it, if nobody has it for long: who had it may be about to go.
    fn take(&self) -> Option<Claimed> {
        for _ in 0..CLAIM_LOOKS {
            if !self.0.swap(true, Ordering::AcqRel) {
                return Some(Claimed(self.clone()));
            }
            std::thread::sleep(CLAIM_BREATH);
        }
        None
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// A reply without its tag.
type Answered = (Outcome, u64, Vec<u8>);

fn failed(outcome: Outcome, text: impl Into<String>) -> Answered {
    (outcome, 0, text.into().into_bytes())
}

fn json(report: &impl serde::Serialize) -> Answered {
    match serde_json::to_vec(report) {
        Ok(text) => (Outcome::Done, 0, text),
        Err(error) => failed(Outcome::Image, error.to_string()),
    }
}

/// A client that was let in; it may have the claim.
pub(crate) struct Program {
    _claimed: Option<Claimed>,
}

fn reply(request: &Request, (outcome, value, data): Answered) -> Encoded {
    let payload = data.len() as u32;
    let head = Reply { outcome, payload, tag: request.tag, value }.encode().to_vec();
    Encoded::new(head, data)
}

impl Protocol for Program {
    type Request = Request;
    type Error = ConnectionError;
    type Front = Claim;
    const HEAD_BYTES: usize = REQUEST_BYTES;
    const NEGOTIATION: Duration = Duration::from_secs(10);

    fn handshake(
        stream: &mut Negotiating<'_, Stream>,
        claim: &Claim,
        _: &[Handle],
    ) -> Result<Option<Self>, ConnectionError> {
        let mut hello = [0; GREETING_BYTES];
        stream.read_exact(&mut hello)?;
        let hello = Hello::parse(&hello)?;
        let Some(version) = hello.version() else {
            stream.write_all(&Welcome::Other(VERSION).encode())?;
            return Ok(None);
        };
        let claimed = if hello.claims { claim.take() } else { None };
        if hello.claims && claimed.is_none() {
            stream.write_all(&Welcome::Claimed.encode())?;
            return Ok(None);
        }
        stream.write_all(&Welcome::Version(version).encode())?;
        Ok(Some(Self { _claimed: claimed }))
    }

    fn parse(&mut self, head: &[u8]) -> Result<Option<Request>, ConnectionError> {
        let head = head.try_into().map_err(|_| ProgramsError::Magic)?;
        Ok(Some(Request::parse(head)?))
    }

    fn payload_bytes(request: &Request) -> Result<usize, ConnectionError> {
        Ok(request.payload as usize)
    }

    fn reply_bytes(request: &Request, _: &[Handle]) -> usize {
        let most = u64::from(TRANSFER_MOST);
        match request.kind {
            Kind::Read => request.length.min(most) as usize,
            Kind::Zones => request.length.saturating_mul(ZONE_BYTES as u64).min(most) as usize,
            _ => 0,
        }
    }

    fn turn(
        &mut self,
        request: Request,
        payload: Vec<u8>,
        turn: Turn<'_>,
    ) -> Result<(), ConnectionError> {
        one(self, request, payload, turn);
        Ok(())
    }

    fn refused(&mut self, request: &Request) -> Encoded {
        self.no_memory(request)
    }
}

impl Single for Program {
    type Terms = ();

    fn terms(&self) {}

    fn step(&self, request: &Request, payload: Vec<u8>, _: &Handle) -> Step {
        match ask_of(request, payload) {
            Ok(Some(ask)) => Step::Ask(ask),
            Ok(None) => Step::Report,
            Err(answer) => Step::Reply(reply(request, answer)),
        }
    }

    fn report(&self, request: &Request, drive: &Handle) -> Encoded {
        reply(request, report(request, drive).unwrap_or_else(gone))
    }

    fn encode((): (), request: &Request, answer: Answer) -> Encoded {
        reply(request, answered(answer))
    }
}

/// The answer to a request without a command; `None` if the drive is gone.
fn report(request: &Request, drive: &Handle) -> Option<Answered> {
    Some(match request.kind {
        Kind::Identify => json(&drive.look(|seen| Identity::of(seen.drive))?),
        Kind::Stats => match drive.look(|seen| DriveStats::of(seen.drive, seen.counts))? {
            Ok(stats) => json(&stats),
            Err(error) => failed(Outcome::Image, error.to_string()),
        },
        Kind::AllStats => {
            (Outcome::Done, 0, drive.look(|seen| all_stats(seen.drive))?.into_bytes())
        }
        Kind::LastCut => match drive.look(|seen| seen.cuts.last().cloned())? {
            Some(cut) => json(&cut),
            None => failed(Outcome::NotFound, "there was no power cut yet"),
        },
        Kind::Cut => switch_to(drive, switch::Ask::Cut)?,
        Kind::Restore => {
            let capacitance_nf = Some(request.length).filter(|&nf| nf > 0);
            switch_to(drive, switch::Ask::Restore { capacitance_nf })?
        }
        _ => unreachable!("a command"),
    })
}

fn switch_to(drive: &Handle, ask: switch::Ask) -> Option<Answered> {
    let was_off = drive.look(|seen| seen.drive.is_off())?;
    Some(match drive.control(ask)? {
        switch::Answer::Cut(report) => json(&report),
        switch::Answer::Restored(report) => json(&report),
        switch::Answer::Refused { why } if was_off && ask != switch::Ask::Cut => {
            failed(Outcome::Config, why)
        }
        switch::Answer::Refused { why } => failed(Outcome::Switch, why),
        other => failed(Outcome::Argument, format!("{other:?}")),
    })
}
fn gone() -> Answered {
    failed(Outcome::Gone, "the drive is not served any more")
}

/// The command for the drive; `None` if the request is answered without one.
fn ask_of(request: &Request, payload: Vec<u8>) -> Result<Option<Ask>, Answered> {
    let Request { kind, flags, offset, length, .. } = *request;
    let invalid = || (Outcome::Status(Status::InvalidField.code()), 0, Vec::new());
    let (lba, sectors) = (Lba(offset / SECTOR_BYTES), length / SECTOR_BYTES);
    let is_whole = |bytes: u64| bytes.is_multiple_of(SECTOR_BYTES);
    let write = WriteFlags { fua: flags & FUA != 0, plp: flags & PLP != 0 };
    let ask = match kind {
        Kind::Read if length > u64::from(TRANSFER_MOST) => {
            return Err(failed(Outcome::Argument, "more than is read at once"));
        }
        Kind::Read if is_whole(offset) && is_whole(length) => Ask::Read(lba, sectors as u32),
        Kind::Write if is_whole(offset) && is_whole(payload.len() as u64) => {
            Ask::Write(lba, payload, write)
        }
        Kind::Append if is_whole(offset) && is_whole(payload.len() as u64) => {
            Ask::Append(lba, payload, write)
        }
        Kind::Flush => Ask::Flush,
        Kind::Trim if is_whole(offset) && is_whole(length) => {
            Ask::Trim(lba, u32::try_from(sectors).map_err(|_| invalid())?)
        }
        Kind::Zone if is_whole(offset) => {
            let bits = flags & (ALL_ZONES | WITH_AREA);
            let code = u8::try_from(length).map_err(|_| invalid())?;
            Ask::Zone(ZoneAsk::from_code(code, lba, bits).ok_or_else(invalid)?)
        }
        Kind::Zones if is_whole(offset) => {
            let most = u64::from(TRANSFER_MOST) / ZONE_BYTES as u64;
            Ask::Zones(lba, length.min(most) as u32)
        }
        Kind::Mark => Ask::Mark(payload),
        Kind::Read | Kind::Write | Kind::Append | Kind::Trim | Kind::Zone | Kind::Zones => {
            return Err(invalid());
        }
        Kind::Identify
        | Kind::Cut
        | Kind::Restore
        | Kind::Stats
        | Kind::AllStats
        | Kind::LastCut => return Ok(None),
    };
    Ok(Some(ask))
}

fn answered(answer: Answer) -> Answered {
    match answer {
        Answer::Done | Answer::Extents(_) => (Outcome::Done, 0, Vec::new()),
        Answer::Data(data) => (Outcome::Done, 0, data),
        Answer::Appended(lba) => (Outcome::Done, lba.0 * SECTOR_BYTES, Vec::new()),
        Answer::Zones(zones) => (
            Outcome::Done,
            0,
            zones.into_iter().flat_map(leyden_wire::programs::ZoneLine::encode).collect(),
        ),
        Answer::Failed(Failure::Drive(status)) => (Outcome::Status(status.code()), 0, Vec::new()),
        Answer::Failed(Failure::PowerLost) => {
            failed(Outcome::PowerLost, "the power failed while the command was in flight")
        }
        Answer::Failed(Failure::NoSpace) => {
            failed(Outcome::NoSpace, "the file system of the image is full")
        }
        Answer::Failed(Failure::NoMemory) => {
            failed(Outcome::Image, "the server has no memory left for this request: see --memory")
        }
        Answer::Failed(Failure::Image) => {
            failed(Outcome::Image, "the server cannot read or write the image")
        }
        Answer::Failed(Failure::Gone) => gone(),
    }
}
