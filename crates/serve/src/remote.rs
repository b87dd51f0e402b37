//! A drive that another process serves: blocking calls from any number of threads, over one connection.
//!
//! Each call has a tag, and any number may be under way. One thread reads replies and hands each to the call that waits
//! for it.
//!
//! **Invariants**
//! - A call ends: with its reply, or when the connection does.
//! - No reply takes more memory than its call allows for. Who sends another one is no server, and is hung up on.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use leyden_image::{WriteFlags, ZoneAsk};
pub use leyden_wire::programs::Outcome;
use leyden_wire::programs::{
    FUA, GREETING_BYTES, Hello, Kind, PLP, ProgramsError, REPLY_BYTES, Reply, Request, VERSION,
    Welcome, ZONE_BYTES, ZoneLine,
};
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::about::{DriveStats, Identity};
use crate::listen::dial;
use crate::server::{ServeError, thread};
use crate::switch::{CutReport, RestoreReport};

/// A server says something within this time, or is none.
const GREETING: Duration = Duration::from_secs(10);
/// No report is longer.
const REPORT_MOST: u32 = 16 << 20;
/// No sentence about a failure is longer.
const TEXT_MOST: u32 = 64 << 10;
/// A request with a payload up to this size is sent at once.
const SENT_AT_ONCE: usize = 64 << 10;

/// Why a call failed.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// The server says so.
    #[error("{1}")]
    Failed(Outcome, String),
    /// No process listens there.
    #[error("no drive is served there: {0}")]
    Nobody(#[source] io::Error),
    /// Another client has claimed the drive.
    #[error("another program has claimed the drive")]
    Claimed,
    /// The server speaks another version of the protocol.
    #[error("the server speaks version {0} of the protocol, and this library version {VERSION}")]
    Version(u16),
    /// The connection is at its end.
    #[error("the connection to the server has ended: {0}")]
    Gone(String),
}

/// A reply, and its payload.
type Answer = (Reply, Vec<u8>);

/// A call that waits.
#[derive(Debug)]
struct PendingCall {
    /// The longest payload of its reply.
    most: u32,
    to: SyncSender<Answer>,
}

/// Calls under way.
#[derive(Debug, Default)]
struct Calls {
    next_tag: u64,
    by_tag: BTreeMap<u64, PendingCall>,
    /// Why there can be no more.
    gone: Option<String>,
}

#[derive(Debug, Default)]
struct Shared(Mutex<Calls>);

impl Shared {
    // Nothing that is half done is believed: a call is in the table, or it is not.
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all calls.
    fn end(&self, why: String) {
        let mut calls = self.calls();
        calls.gone.get_or_insert(why);
        calls.by_tag.clear();
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Remote {
    stream: UnixStream,
    /// Whole requests go out.
    out: Mutex<UnixStream>,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

impl Remote {
    /// Connects to a drive that is served at this socket. With `claims`, no other client that claims it is let in until
    /// this one goes.
    ///
    /// # Errors
    /// If nobody serves one there, or it is claimed.
    pub fn connect(socket: &Path, claims: bool) -> Result<Self, RemoteError> {
        let mut stream = dial(socket, GREETING).map_err(RemoteError::Nobody)?;
        let io = |error: io::Error| RemoteError::Gone(error.to_string());
        stream.set_read_timeout(Some(GREETING)).map_err(io)?;
        let hello = Hello { oldest: VERSION, newest: VERSION, claims };
        stream.write_all(&hello.encode()).map_err(io)?;
        let mut welcome = [0; GREETING_BYTES];
        stream.read_exact(&mut welcome).map_err(io)?;
        match Welcome::parse(&welcome).map_err(foreign)? {
            Welcome::Version(VERSION) => {}
            Welcome::Version(other) | Welcome::Other(other) => {
                return Err(RemoteError::Version(other));
            }
            Welcome::Claimed => return Err(RemoteError::Claimed),
        }
        stream.set_read_timeout(None).map_err(io)?;
        let shared = Arc::new(Shared::default());
        let (mut from, calls) = (stream.try_clone().map_err(io)?, Arc::clone(&shared));
        let read = move || {
            let why = read(&mut from, &calls);
            // A server without a drive is not listened to any more.
            let _ = from.shutdown(std::net::Shutdown::Both);
            calls.end(why);
        };
        let gone = |error: ServeError| RemoteError::Gone(error.to_string());
        let reader = Some(thread("replies", read).map_err(gone)?);
        let out = Mutex::new(stream.try_clone().map_err(io)?);
        Ok(Self { stream, out, shared, reader })
    }

    /// Asks, and waits for the reply, whose payload is `most` bytes long at most.
    fn ask(
        &self,
        mut request: Request,
        payload: &[u8],
        most: u32,
    ) -> Result<(u64, Vec<u8>), RemoteError> {
        let (tag, replied) = self.begin(most)?;
        request.tag = tag;
        if let Err(error) = self.send(request, payload) {
            // The part that was sent is no whole request: nothing more can be.
            let _ = self.stream.shutdown(std::net::Shutdown::Both);
            self.shared.end(error.to_string());
        }
        let Ok((reply, payload)) = replied.recv() else {
            let why = self.shared.calls().gone.clone();
            return Err(RemoteError::Gone(why.unwrap_or_default()));
        };
        if reply.outcome == Outcome::Done {
            return Ok((reply.value, payload));
        }
        Err(RemoteError::Failed(reply.outcome, String::from_utf8_lossy(&payload).into_owned()))
    }

    /// Makes room for a reply.
    fn begin(&self, most: u32) -> Result<(u64, Receiver<Answer>), RemoteError> {
        let (to, replied) = sync_channel(1);
        let mut calls = self.shared.calls();
        if let Some(why) = &calls.gone {
            return Err(RemoteError::Gone(why.clone()));
        }
        let tag = calls.next_tag;
        calls.next_tag += 1;
        calls.by_tag.insert(tag, PendingCall { most, to });
        drop(calls);
        Ok((tag, replied))
    }

    fn send(&self, request: Request, payload: &[u8]) -> io::Result<()> {
        let head = request.encode();
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if payload.len() > SENT_AT_ONCE {
            out.write_all(&head)?;
            return out.write_all(payload);
        }
        let mut bytes = Vec::with_capacity(head.len() + payload.len());
        bytes.extend(head);
        bytes.extend(payload);
        out.write_all(&bytes)
    }

    /// A request without a payload, whose reply has none.
    fn tell(&self, kind: Kind, flags: u8, offset: u64, length: u64) -> Result<u64, RemoteError> {
        let request = Request { kind, flags, payload: 0, tag: 0, offset, length };
        Ok(self.ask(request, &[], 0)?.0)
    }

    fn report<T: DeserializeOwned>(&self, kind: Kind, length: u64) -> Result<T, RemoteError> {
        let text = self.text(kind, length)?;
        serde_json::from_slice(&text).map_err(|error| RemoteError::Gone(error.to_string()))
    }

    fn text(&self, kind: Kind, length: u64) -> Result<Vec<u8>, RemoteError> {
        let request = Request { kind, flags: 0, payload: 0, tag: 0, offset: 0, length };
        Ok(self.ask(request, &[], REPORT_MOST)?.1)
    }

    /// The drive's identity.
    ///
    /// # Errors
    /// If the server says so, or is gone; the same for all calls.
    pub fn identify(&self) -> Result<Identity, RemoteError> {
        self.report(Kind::Identify, 0)
    }

    /// Fills `bytes`, from `offset` on.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RemoteError> {
        let (kind, length) = (Kind::Read, bytes.len() as u64);
        let request = Request { kind, flags: 0, payload: 0, tag: 0, offset, length };
        let (_, data) = self.ask(request, &[], bytes.len() as u32)?;
        if data.len() != bytes.len() {
            return Err(RemoteError::Gone("a read returned another length".to_owned()));
        }
        bytes.copy_from_slice(&data);
        Ok(())
    }

    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn write(&self, offset: u64, data: &[u8], flags: WriteFlags) -> Result<(), RemoteError> {
        self.put(Kind::Write, offset, data, flags).map(drop)
    }

    /// Appends `data` to the zone that begins at `start`. Returns where it lies.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn append(&self, start: u64, data: &[u8], flags: WriteFlags) -> Result<u64, RemoteError> {
        self.put(Kind::Append, start, data, flags)
    }

    fn put(
        &self,
        kind: Kind,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<u64, RemoteError> {
        let flags = if flags.fua { FUA } else { 0 } | if flags.plp { PLP } else { 0 };
        let payload = data.len() as u32;
        let request = Request { kind, flags, payload, tag: 0, offset, length: u64::from(payload) };
        Ok(self.ask(request, data, 0)?.0)
    }

    /// Flushes.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn flush(&self) -> Result<(), RemoteError> {
        self.tell(Kind::Flush, 0, 0, 0).map(drop)
    }

    /// Trims.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn trim(&self, offset: u64, length: u64) -> Result<(), RemoteError> {
        self.tell(Kind::Trim, 0, offset, length).map(drop)
    }

    /// Changes zones; `offset` is that of `ask`'s block.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn zone(&self, offset: u64, ask: ZoneAsk) -> Result<(), RemoteError> {
        self.tell(Kind::Zone, ask.bits(), offset, u64::from(ask.code())).map(drop)
    }

    /// Up to `count` zones, from the one that begins at `start` on.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn zones(&self, start: u64, count: u32) -> Result<Vec<ZoneLine>, RemoteError> {
        let (kind, length) = (Kind::Zones, u64::from(count));
        let request = Request { kind, flags: 0, payload: 0, tag: 0, offset: start, length };
        let (_, lines) = self.ask(request, &[], count.saturating_mul(ZONE_BYTES as u32))?;
        let lines = lines.as_chunks().0.iter().map(ZoneLine::parse);
        lines.collect::<Result<_, _>>().map_err(foreign)
    }

    /// Cuts the power.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn cut(&self) -> Result<CutReport, RemoteError> {
        self.report(Kind::Cut, 0)
    }

    /// Returns the power, with a bank of so many nanofarads if they are more than 0.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn restore(&self, capacitance_nf: u64) -> Result<RestoreReport, RemoteError> {
        self.report(Kind::Restore, capacitance_nf)
    }

    /// Counters, of all clients of the server.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn stats(&self) -> Result<DriveStats, RemoteError> {
        self.report(Kind::Stats, 0)
    }

    /// Every counter of every layer, as JSON.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn all_stats(&self) -> Result<String, RemoteError> {
        Ok(String::from_utf8_lossy(&self.text(Kind::AllStats, 0)?).into_owned())
    }

    /// The last power cut since the drive has been served.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn last_cut(&self) -> Result<CutReport, RemoteError> {
        self.report(Kind::LastCut, 0)
    }

    /// A note in the server's recording.
    ///
    /// # Errors
    /// As [`Remote::identify`].
    pub fn mark(&self, text: &[u8]) -> Result<(), RemoteError> {
        let (kind, payload) = (Kind::Mark, text.len() as u32);
        let request = Request { kind, flags: 0, payload, tag: 0, offset: 0, length: 0 };
        self.ask(request, text, 0).map(drop)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both); // ends the reader
        if let Some(reader) = self.reader.take() {
            let _ = reader.join(); // it has nothing to say
        }
    }
}

fn foreign(error: ProgramsError) -> RemoteError {
    RemoteError::Gone(format!("no Leyden serves there: {error}"))
}

/// Hands replies to those who wait for them, until the connection ends. Returns why it has.
fn read(stream: &mut UnixStream, calls: &Shared) -> String {
    let ended = loop {
        match read_one(stream, calls) {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    match ended {
        Broken::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server has gone".to_owned()
        }
        Broken::Io(error) => error.to_string(),
        Broken::Protocol(error) => format!("no Leyden serves there: {error}"),
        Broken::Unasked => "no Leyden serves there: a reply without a request".to_owned(),
    }
}

/// Why no more is read.
enum Broken {
    Io(io::Error),
    Protocol(ProgramsError),
    /// A reply to nothing, or a longer one than there can be.
    Unasked,
}

fn read_one(stream: &mut UnixStream, calls: &Shared) -> Result<(), Broken> {
    let mut head = [0; REPLY_BYTES];
    stream.read_exact(&mut head).map_err(Broken::Io)?;
    let reply = Reply::parse(&head).map_err(Broken::Protocol)?;
    let most = calls.calls().by_tag.get(&reply.tag).map(|asked| asked.most);
    let most = if reply.outcome == Outcome::Done { most } else { most.map(|_| TEXT_MOST) };
    if most.is_none_or(|most| reply.payload > most) {
        return Err(Broken::Unasked);
    }
    let mut payload = vec![0; reply.payload as usize];
    stream.read_exact(&mut payload).map_err(Broken::Io)?;
    if let Some(asked) = calls.calls().by_tag.remove(&reply.tag) {
        let _ = asked.to.send((reply, payload)); // it has room for one
    }
    Ok(())
}
