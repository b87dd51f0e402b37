//! The NBD front end: for each client a thread that reads and one that writes.

use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use leyden_device::{Lba, SECTOR_BYTES, Status};
use leyden_image::WriteFlags;
use leyden_wire::nbd::{
    ClientFlags, ClientOption, Context, Errno, ExportInfo, Extent, Greeting, NbdError,
    OPTION_HEADER_BYTES, OptionHeader, OptionReply, REQUEST_BYTES, Reply, Request, RequestKind,
    block_status_head, data_head,
};
use thiserror::Error;

use crate::listen::Socket;
use crate::owner::{Answer, Ask, Batch, Failure, Handle};
use crate::stream::Stream;
use crate::tls::Tls;
use crate::window::Window;

/// The most that a request may carry.
const REQUEST_MOST: u32 = 32 << 20;
/// A client that has not chosen an export by then is sent away.
const NEGOTIATION: Duration = Duration::from_secs(30);
/// Bytes of small requests that come in together, and of small replies that go out.
const GATHERED: usize = 256 << 10;
/// The number of the only context.
const ALLOCATION: u32 = 1;

/// Why a connection has ended before its client said so.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// The socket.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The client does not speak the protocol.
    #[error(transparent)]
    Protocol(#[from] NbdError),
    /// It asks for an export that is not there, where the protocol knows no other answer.
    #[error("the client asks for export {0:?}, which is not there")]
    NoExport(String),
    /// It wants to go on without TLS.
    #[error("the client does not ask for TLS")]
    NoTls,
}

/// What was agreed on.
struct Agreed {
    structured: bool,
    /// Block status may be asked for.
    allocation: bool,
}

/// Serves one client until it goes. The export is called `name`; the empty name is it, too.
pub(crate) fn serve(
    socket: Socket,
    name: &str,
    drive: &Handle,
    tls: Option<&Tls>,
) -> Result<(), ConnectionError> {
    let mut stream = Stream::Open(socket);
    stream.set_read_timeout(Some(NEGOTIATION))?;
    let Some(agreed) = negotiate(&mut stream, name, drive, tls)? else { return Ok(()) };
    stream.set_read_timeout(None)?;
    let (to, replies) = std::sync::mpsc::channel();
    let window = Arc::new(Window::default());
    let writer = (stream.try_clone()?, Arc::clone(&window));
    std::thread::scope(|scope| {
        scope.spawn(move || write(writer.0, &replies, &writer.1));
        let stream = BufReader::with_capacity(GATHERED, stream);
        let mut session = Session { stream, drive, agreed, to, window, batch: Batch::default() };
        let read = session.read();
        // What is under way is answered before the connection ends.
        session.drive.ask_all(&mut session.batch);
        session.window.drain();
        session.stream.get_ref().close();
        read
    })
}

/// What follows an option.
enum Next<'a> {
    /// These replies, and another option.
    Replies(Vec<OptionReply<'a>>),
    /// These replies, and requests.
    Go(Vec<OptionReply<'a>>),
    /// The export as older clients ask for it, and requests.
    Export,
    /// Encryption.
    Tls(&'a Tls),
    /// The client goes.
    Leave,
}

/// Settles the options. `None` if the client goes.
fn negotiate(
    stream: &mut Stream,
    name: &str,
    drive: &Handle,
    tls: Option<&Tls>,
) -> Result<Option<Agreed>, ConnectionError> {
    stream.write_all(&Greeting.encode())?;
    let mut flags = [0; 4];
    stream.read_exact(&mut flags)?;
    let flags = ClientFlags::parse(flags)?;
    let mut agreed = Agreed { structured: false, allocation: false };
    loop {
        let mut header = [0; OPTION_HEADER_BYTES];
        stream.read_exact(&mut header)?;
        let header = OptionHeader::parse(&header)?;
        let mut data = vec![0; header.length as usize];
        stream.read_exact(&mut data)?;
        let option = ClientOption::parse(header.option, &data);
        let info = info_of(drive, agreed.structured);
        let next = match tls.filter(|_| !stream.is_encrypted()) {
            Some(tls) => before_tls(&option, tls)?,
            None => settle(option, name, info, &mut agreed)?,
        };
        let mut send = |replies: Vec<OptionReply<'_>>| {
            let bytes: Vec<u8> =
                replies.iter().flat_map(|reply| reply.encode(header.option)).collect();
            stream.write_all(&bytes)
        };
        match next {
            Next::Replies(replies) => send(replies)?,
            Next::Go(replies) => {
                send(replies)?;
                return Ok(Some(agreed));
            }
            Next::Export => {
                stream.write_all(&info.encode_export(flags))?;
                return Ok(Some(agreed));
            }
            Next::Tls(tls) => {
                send(vec![OptionReply::Ack])?;
                stream.encrypt(tls)?;
            }
            Next::Leave => {
                // The client may be gone before it hears this.
                let _ = send(vec![OptionReply::Ack]);
                return Ok(None);
            }
        }
    }
}

fn info_of(drive: &Handle, structured: bool) -> ExportInfo {
    ExportInfo {
        bytes: drive.capacity_sectors() * SECTOR_BYTES,
        minimum_block_bytes: SECTOR_BYTES as u32,
        preferred_block_bytes: drive.unit_bytes(),
        maximum_block_bytes: REQUEST_MOST,
        structured,
    }
}

/// In the open, where TLS must be used: nothing but TLS.
fn before_tls<'a>(option: &ClientOption, tls: &'a Tls) -> Result<Next<'a>, ConnectionError> {
    Ok(match option {
        ClientOption::StartTls => Next::Tls(tls),
        ClientOption::Abort => Next::Leave,
        ClientOption::ExportName(_) => return Err(ConnectionError::NoTls),
        _ => Next::Replies(vec![OptionReply::TlsRequired]),
    })
}

/// What follows an option where nothing more has to be settled first.
fn settle<'a>(
    option: ClientOption,
    name: &'a str,
    info: ExportInfo,
    agreed: &mut Agreed,
) -> Result<Next<'a>, ConnectionError> {
    let is_here = |export: &str| export.is_empty() || export == name;
    let replies = match option {
        ClientOption::ExportName(export) if !is_here(&export) => {
            return Err(ConnectionError::NoExport(export));
        }
        ClientOption::ExportName(_) => return Ok(Next::Export),
        ClientOption::Abort => return Ok(Next::Leave),
        ClientOption::List => vec![OptionReply::Server(name), OptionReply::Ack],
        ClientOption::Info { export, .. } | ClientOption::MetaContext { export, .. }
            if !is_here(&export) =>
        {
            vec![OptionReply::UnknownExport]
        }
        ClientOption::Info { go, .. } => {
            let all =
                vec![OptionReply::Export(info), OptionReply::BlockSize(info), OptionReply::Ack];
            return Ok(if go { Next::Go(all) } else { Next::Replies(all) });
        }
        ClientOption::StructuredReply => {
            agreed.structured = true;
            vec![OptionReply::Ack]
        }
        ClientOption::MetaContext { .. } if !agreed.structured => vec![OptionReply::Invalid],
        ClientOption::MetaContext { contexts, set, .. } => {
            let has = contexts.contains(&Context::Allocation);
            agreed.allocation = if set { has } else { agreed.allocation };
            let context = OptionReply::MetaContext(Context::Allocation, ALLOCATION);
            has.then_some(context).into_iter().chain([OptionReply::Ack]).collect()
        }
        ClientOption::StartTls | ClientOption::Unknown => vec![OptionReply::Unsupported],
        ClientOption::Invalid => vec![OptionReply::Invalid],
    };
    Ok(Next::Replies(replies))
}

/// A reply on its way: its head and its data, and what it gives back to the window.
struct Outgoing {
    head: Vec<u8>,
    data: Vec<u8>,
    bytes: usize,
}

/// A client that has chosen its export.
struct Session<'a> {
    stream: BufReader<Stream>,
    drive: &'a Handle,
    agreed: Agreed,
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
                // It has gone without a word.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            let request = Request::parse(&request)?;
            if request.kind == RequestKind::Disconnect {
                return Ok(());
            }
            let mut data = Vec::new();
            if request.kind == RequestKind::Write {
                if request.length > REQUEST_MOST {
                    // What follows could only be thrown away.
                    return Err(NbdError::TooLong(request.length).into());
                }
                data = self.read_data(request.length as usize)?;
            }
            self.ask(request, data);
        }
    }

    fn read_data(&mut self, length: usize) -> Result<Vec<u8>, ConnectionError> {
        self.expect(length);
        let mut data = Vec::with_capacity(length);
        (&mut self.stream).take(length as u64).read_to_end(&mut data)?;
        if data.len() < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(data)
    }

    /// Called before a read of so many bytes: if it may block, the batch is handed to the drive first.
    fn expect(&mut self, bytes: usize) {
        if self.stream.buffer().len() < bytes {
            self.drive.ask_all(&mut self.batch);
        }
    }

    fn ask(&mut self, request: Request, data: Vec<u8>) {
        let bytes = match request.kind {
            RequestKind::Read if request.length <= REQUEST_MOST => request.length as usize,
            _ => data.len(),
        };
        self.window.enter(bytes, || self.drive.ask_all(&mut self.batch));
        let (to, structured) = (self.to.clone(), self.agreed.structured);
        let reply = move |result: Result<Answer, Errno>| {
            let (head, data) = encode(&request, result, structured);
            let _ = to.send(Outgoing { head, data, bytes }); // the client may be gone
        };
        match self.check(&request, data) {
            Ok(Some(ask)) => self.batch.push(ask, move |answer| reply(errno_of(answer))),
            Ok(None) => reply(Ok(Answer::Done)),
            Err(error) => reply(Err(error)),
        }
    }

    /// What the drive is to be asked, if anything.
    fn check(&self, request: &Request, data: Vec<u8>) -> Result<Option<Ask>, Errno> {
        let Request { kind, offset, length, fua, .. } = *request;
        if request.has_unknown_flags {
            return Err(Errno::Invalid);
        }
        if kind == RequestKind::Flush {
            return Ok(Some(Ask::Flush));
        }
        let (sector, length_bytes) = (SECTOR_BYTES, u64::from(length));
        let end = offset.checked_add(length_bytes).ok_or(Errno::Invalid)?;
        if !offset.is_multiple_of(sector) || !length_bytes.is_multiple_of(sector) || length == 0 {
            return Err(Errno::Invalid);
        }
        if end > self.drive.capacity_sectors() * sector {
            let writes = matches!(kind, RequestKind::Write | RequestKind::WriteZeroes);
            return Err(if writes { Errno::NoSpace } else { Errno::Invalid });
        }
        let (lba, sectors) = (Lba(offset / sector), (length_bytes / sector) as u32);
        match kind {
            RequestKind::Read if length > REQUEST_MOST => Err(Errno::Overflow),
            RequestKind::Read => Ok(Some(Ask::Read(lba, sectors))),
            RequestKind::Write => Ok(Some(Ask::Write(lba, data, WriteFlags::fua(fua)))),
            RequestKind::Trim => Ok(Some(Ask::Trim(lba, sectors))),
            RequestKind::WriteZeroes => Ok(Some(Ask::WriteZeroes(lba, sectors, fua))),
            RequestKind::BlockStatus if self.agreed.allocation => {
                Ok(Some(Ask::Extents(lba, sectors)))
            }
            RequestKind::BlockStatus | RequestKind::Unknown(_) => Err(Errno::Invalid),
            RequestKind::Cache => Ok(None), // all of it is as near as it gets
            RequestKind::Flush | RequestKind::Disconnect => unreachable!("handled before"),
        }
    }
}

fn errno_of(answer: Answer) -> Result<Answer, Errno> {
    match answer {
        Answer::Failed(Failure::NoSpace) => Err(Errno::NoSpace),
        Answer::Failed(Failure::Drive(Status::InvalidField | Status::LbaOutOfRange)) => {
            Err(Errno::Invalid)
        }
        Answer::Failed(Failure::Gone) => Err(Errno::Shutdown),
        // A drive that has lost its power, or cannot read or write: what a dead disk gives.
        Answer::Failed(_) => Err(Errno::Io),
        answer => Ok(answer),
    }
}

/// The reply to `request`: what comes before its data, and the data.
fn encode(
    request: &Request,
    result: Result<Answer, Errno>,
    structured: bool,
) -> (Vec<u8>, Vec<u8>) {
    let Request { cookie, offset, length, .. } = *request;
    match result {
        Ok(Answer::Data(data)) => (data_head(structured, cookie, offset, length), data),
        Ok(Answer::Extents(runs)) => {
            let keep = if request.one_extent { 1 } else { runs.len() };
            let extent = |&(sectors, is_hole): &(u32, bool)| Extent {
                length: (u64::from(sectors) * SECTOR_BYTES) as u32,
                is_hole,
            };
            let extents: Vec<_> = runs.iter().take(keep).map(extent).collect();
            (block_status_head(cookie, ALLOCATION, &extents), Vec::new())
        }
        other => (Reply { cookie, error: other.err() }.encode(structured), Vec::new()),
    }
}

/// Writes replies until all senders are gone. If the client is gone, they are dropped.
fn write(mut stream: Stream, replies: &Receiver<Outgoing>, window: &Window) {
    let mut out = Vec::new();
    let mut is_gone = false;
    while let Ok(first) = replies.recv() {
        let mut next = Some(first);
        let (mut commands, mut bytes) = (0, 0);
        while let Some(reply) = next {
            out.extend(reply.head);
            out.extend(reply.data);
            (commands, bytes) = (commands + 1, bytes + reply.bytes);
            next = if out.len() < GATHERED { replies.try_recv().ok() } else { None };
        }
        if !is_gone && stream.write_all(&out).is_err() {
            is_gone = true;
            stream.close(); // ends the reader, too
        }
        out.clear();
        window.leave(commands, bytes);
    }
}
