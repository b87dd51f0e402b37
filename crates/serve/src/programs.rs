//! The front end for programs with `libleyden.so`: all that a drive can do, zones too, and its switch.
//!
//! A client is a process on this machine that may use the socket, and may do to the drive what its owner may.

use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use leyden_device::{Lba, SECTOR_BYTES, Status};
use leyden_image::{WriteFlags, ZoneAsk};
use leyden_wire::programs::{
    ALL_ZONES, FUA, GREETING_BYTES, Hello, Kind, Outcome, PLP, ProgramsError, REQUEST_BYTES, Reply,
    Request, TRANSFER_MOST, VERSION, WITH_AREA, Welcome, ZONE_BYTES,
};
use thiserror::Error;

use crate::about::{DriveStats, Identity, all_stats};
use crate::listen::Socket;
use crate::owner::{Answer, Ask, Batch, Failure, Handle};
use crate::switch;
use crate::window::Window;

/// A client says something within this time, or goes.
const GREETING: Duration = Duration::from_secs(10);
/// Bytes of small requests that come in together, and of small replies that go out.
const GATHERED: usize = 256 << 10;
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

/// The claim of one client at most: whoever mounts what must not be mounted twice has it.
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

/// Serves one client until it goes.
pub(crate) fn serve(
    mut socket: Socket,
    drive: &Handle,
    claim: &Claim,
) -> Result<(), ConnectionError> {
    socket.set_read_timeout(Some(GREETING))?;
    let mut hello = [0; GREETING_BYTES];
    socket.read_exact(&mut hello)?;
    let hello = Hello::parse(&hello)?;
    let Some(version) = hello.version() else {
        return Ok(socket.write_all(&Welcome::Other(VERSION).encode())?);
    };
    let claimed = if hello.claims { claim.take() } else { None };
    if hello.claims && claimed.is_none() {
        return Ok(socket.write_all(&Welcome::Claimed.encode())?);
    }
    socket.write_all(&Welcome::Version(version).encode())?;
    socket.set_read_timeout(None)?;

    let (to, replies) = std::sync::mpsc::channel();
    let window = Arc::new(Window::default());
    let writer = (socket.try_clone()?, Arc::clone(&window));
    std::thread::scope(|scope| {
        scope.spawn(move || write(writer.0, &replies, &writer.1));
        let stream = BufReader::with_capacity(GATHERED, socket);
        let mut session = Session { stream, drive, to, window, batch: Batch::default() };
        let read = session.read();
        // What is under way is answered before the connection ends.
        session.drive.ask_all(&mut session.batch);
        session.window.drain();
        drop(claimed);
        session.stream.get_ref().close();
        read
    })
}

/// A reply on its way, and what it gives back to the window.
struct Outgoing {
    reply: Reply,
    payload: Vec<u8>,
    bytes: usize,
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

/// A client that was let in.
struct Session<'a> {
    stream: BufReader<Socket>,
    drive: &'a Handle,
    to: Sender<Outgoing>,
    window: Arc<Window>,
    /// Requests that have been read but not handed to the drive yet.
    batch: Batch,
}

impl Session<'_> {
    /// Reads requests until the client goes.
    fn read(&mut self) -> Result<(), ConnectionError> {
        loop {
            let mut request = [0; REQUEST_BYTES];
            self.expect(REQUEST_BYTES);
            match self.stream.read_exact(&mut request) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            let request = Request::parse(&request)?;
            let payload = self.read_payload(request.payload as usize)?;
            self.ask(request, payload);
        }
    }

    fn read_payload(&mut self, length: usize) -> Result<Vec<u8>, ConnectionError> {
        self.expect(length);
        // As much memory as has come in, whatever the client says is to come.
        let mut payload = Vec::new();
        (&mut self.stream).take(length as u64).read_to_end(&mut payload)?;
        if payload.len() < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(payload)
    }

    /// Called before a read of so many bytes: if it may block, the batch is handed to the drive first.
    fn expect(&mut self, bytes: usize) {
        if self.stream.buffer().len() < bytes {
            self.drive.ask_all(&mut self.batch);
        }
    }

    fn ask(&mut self, request: Request, payload: Vec<u8>) {
        let most = u64::from(TRANSFER_MOST);
        let bytes = match request.kind {
            Kind::Read => request.length.min(most) as usize,
            Kind::Zones => request.length.saturating_mul(ZONE_BYTES as u64).min(most) as usize,
            _ => payload.len(),
        };
        self.window.enter(bytes, || self.drive.ask_all(&mut self.batch));
        let (to, tag) = (self.to.clone(), request.tag);
        let reply = move |(outcome, value, payload): Answered| {
            let reply = Reply { outcome, payload: payload.len() as u32, tag, value };
            let _ = to.send(Outgoing { reply, payload, bytes }); // the client may be gone
        };
        match ask_of(&request, payload) {
            Ok(Some(ask)) => self.batch.push(ask, move |answer| reply(answered(answer))),
            Ok(None) => {
                // Behind all that was asked before.
                self.drive.ask_all(&mut self.batch);
                reply(self.report(&request).unwrap_or_else(gone));
            }
            Err(answer) => reply(answer),
        }
    }

    /// What is answered without a command; `None` if the drive is gone.
    fn report(&self, request: &Request) -> Option<Answered> {
        Some(match request.kind {
            Kind::Identify => json(&self.drive.look(|seen| Identity::of(seen.drive))?),
            Kind::Stats => {
                match self.drive.look(|seen| DriveStats::of(seen.drive, seen.counts))? {
                    Ok(stats) => json(&stats),
                    Err(error) => failed(Outcome::Image, error.to_string()),
                }
            }
            Kind::AllStats => {
                (Outcome::Done, 0, self.drive.look(|seen| all_stats(seen.drive))?.into_bytes())
            }
            Kind::LastCut => match self.drive.look(|seen| seen.last_cut.cloned())? {
                Some(cut) => json(&cut),
                None => failed(Outcome::NotFound, "there was no power cut yet"),
            },
            Kind::Cut => self.switch(switch::Ask::Cut)?,
            Kind::Restore => {
                let capacitance_nf = Some(request.length).filter(|&nf| nf > 0);
                self.switch(switch::Ask::Restore { capacitance_nf })?
            }
            _ => unreachable!("a command"),
        })
    }

    fn switch(&self, ask: switch::Ask) -> Option<Answered> {
        let was_off = self.drive.look(|seen| seen.drive.is_off())?;
        Some(match self.drive.control(ask)? {
            switch::Answer::Cut(report) => json(&report),
            switch::Answer::Restored(report) => json(&report),
            switch::Answer::Refused { why } if was_off && ask != switch::Ask::Cut => {
                failed(Outcome::Config, why)
            }
            switch::Answer::Refused { why } => failed(Outcome::Switch, why),
            other => failed(Outcome::Argument, format!("{other:?}")),
        })
    }
}

fn gone() -> Answered {
    failed(Outcome::Gone, "the drive is not served any more")
}

/// What the drive is to be asked; `None` if it is answered without a command.
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
            failed(Outcome::PowerLost, "the power failed while the command was under way")
        }
        Answer::Failed(Failure::NoSpace) => {
            failed(Outcome::NoSpace, "the file system of the image is full")
        }
        Answer::Failed(Failure::Image) => {
            failed(Outcome::Image, "the server cannot read or write the image")
        }
        Answer::Failed(Failure::Gone) => gone(),
    }
}

/// Writes replies until all senders are gone. If the client is gone, they are dropped.
fn write(mut socket: Socket, replies: &Receiver<Outgoing>, window: &Window) {
    let mut out = Vec::new();
    let mut is_gone = false;
    while let Ok(first) = replies.recv() {
        let mut next = Some(first);
        let (mut commands, mut bytes) = (0, 0);
        while let Some(outgoing) = next {
            out.extend(outgoing.reply.encode());
            out.extend(outgoing.payload);
            (commands, bytes) = (commands + 1, bytes + outgoing.bytes);
            next = if out.len() < GATHERED { replies.try_recv().ok() } else { None };
        }
        if !is_gone && socket.write_all(&out).is_err() {
            is_gone = true;
            socket.close(); // ends the reader, too
        }
        out.clear();
        window.leave(commands, bytes);
    }
}
