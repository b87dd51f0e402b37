//! The NBD front end.

use std::io::{self, Read, Write};
use std::time::Duration;

use leyden_device::{Lba, SECTOR_BYTES, Status};
use leyden_image::WriteFlags;
use leyden_wire::nbd::{
    ClientFlags, ClientOption, Context, Errno, ExportInfo, Extent, Greeting, NbdError,
    OPTION_HEADER_BYTES, OptionHeader, OptionReply, REQUEST_BYTES, Reply, Request, RequestKind,
    block_status_head, data_head,
};
use thiserror::Error;

use crate::ask::{Answer, Ask, Failure};
use crate::budget;
use crate::negotiating::Negotiating;
use crate::owner::Handle;
use crate::session::{Encoded, Protocol, Single, Step, Turn, one};
use crate::stream::Stream;
use crate::tls::Tls;

/// The most that a request may carry.
const REQUEST_MOST: u32 = budget::REQUEST_MOST as u32;
/// Units that block status looks at for one request at most, and what each takes at worst, in bytes.
const STATUS_UNITS_MOST: usize = 1 << 18;
const STATUS_UNIT_BYTES: usize = 16;
/// Characters shown of the name of an unknown export.
const NAME_SHOWN: usize = 64;
/// The number of the only context.
const ALLOCATION: u32 = 1;

/// Why a connection has ended before its client said so.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    /// The socket.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The client does not speak the protocol.
    #[error(transparent)]
    Protocol(#[from] NbdError),
    /// It asks for an export that is not there, where the protocol knows no other answer.
    #[error("the client asks for export {}, which is not there", shown(.0))]
    NoExport(String),
    /// It wants to go on without TLS.
    #[error("the client does not ask for TLS")]
    NoTls,
}

/// A client's text for a log: its beginning, escaped.
fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(NAME_SHOWN).collect();
    let rest = text.len() - beginning.len();
    if rest == 0 {
        format!("{beginning:?}")
    } else {
        format!("{beginning:?} and {rest} bytes more")
    }
}

/// The export that NBD clients find.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    /// Its name; the empty name is it, too.
    pub(crate) name: String,
    /// Clients must use TLS, then.
    pub(crate) tls: Option<Tls>,
    /// Bytes of a sector: the least that clients may ask for.
    pub(crate) sector_bytes: u32,
}

/// The features that were agreed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    structured: bool,
    /// Block status may be asked for.
    allocation: bool,
    /// The least that may be asked for.
    sector_bytes: u32,
}

/// The next step after an option.
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
    stream: &mut Negotiating<'_, Stream>,
    export: &Export,
    drive: &Handle,
) -> Result<Option<Agreed>, ConnectionError> {
    let Export { name, tls, sector_bytes } = export;
    stream.write_all(&Greeting.encode())?;
    let mut flags = [0; 4];
    stream.read_exact(&mut flags)?;
    let flags = ClientFlags::parse(flags)?;
    let mut agreed = Agreed { structured: false, allocation: false, sector_bytes: *sector_bytes };
    loop {
        let mut header = [0; OPTION_HEADER_BYTES];
        stream.read_exact(&mut header)?;
        let header = OptionHeader::parse(&header)?;
        let mut data = vec![0; header.length as usize];
        stream.read_exact(&mut data)?;
        let option = ClientOption::parse(header.option, &data);
        let info = info_of(drive, agreed);
        let next = match tls.as_ref().filter(|_| !stream.stream.is_encrypted()) {
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

fn info_of(drive: &Handle, agreed: Agreed) -> ExportInfo {
    ExportInfo {
        bytes: drive.capacity_sectors() * SECTOR_BYTES,
        minimum_block_bytes: agreed.sector_bytes,
        preferred_block_bytes: drive.unit_bytes().max(agreed.sector_bytes),
        maximum_block_bytes: REQUEST_MOST,
        structured: agreed.structured,
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

/// The next step after an option that needs no further agreement.
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

impl Protocol for Agreed {
    type Request = Request;
    type Error = ConnectionError;
    type Front = Export;
    const HEAD_BYTES: usize = REQUEST_BYTES;
    const NEGOTIATION: Duration = Duration::from_secs(30);

    fn handshake(
        stream: &mut Negotiating<'_, Stream>,
        front: &Export,
        drives: &[Handle],
    ) -> Result<Option<Self>, ConnectionError> {
        negotiate(stream, front, &drives[0])
    }

    fn parse(&mut self, head: &[u8]) -> Result<Option<Request>, ConnectionError> {
        let head = head.try_into().map_err(|_| NbdError::Magic)?;
        let request = Request::parse(head)?;
        Ok(Some(request).filter(|request| request.kind != RequestKind::Disconnect))
    }

    fn payload_bytes(request: &Request) -> Result<usize, ConnectionError> {
        match request.kind {
            // Data behind it could only be thrown away.
            RequestKind::Write if request.length > REQUEST_MOST => {
                Err(NbdError::TooLong(request.length).into())
            }
            RequestKind::Write => Ok(request.length as usize),
            _ => Ok(0),
        }
    }

    fn reply_bytes(request: &Request, drives: &[Handle]) -> usize {
        match request.kind {
            RequestKind::Read if request.length <= REQUEST_MOST => request.length as usize,
            RequestKind::BlockStatus => {
                let units = (request.length / drives[0].unit_bytes()) as usize + 2;
                units.min(STATUS_UNITS_MOST) * STATUS_UNIT_BYTES
            }
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

impl Single for Agreed {
    type Terms = Self;

    fn terms(&self) -> Self {
        *self
    }

    fn step(&self, request: &Request, payload: Vec<u8>, drive: &Handle) -> Step {
        match self.check(request, payload, drive) {
            Ok(Some(ask)) => Step::Ask(ask),
            Ok(None) => Step::Reply(reply(request, Ok(Answer::Done), self.structured)),
            Err(error) => Step::Reply(reply(request, Err(error), self.structured)),
        }
    }

    fn report(&self, request: &Request, _: &Handle) -> Encoded {
        reply(request, Err(Errno::Invalid), self.structured)
    }

    fn encode(terms: Self, request: &Request, answer: Answer) -> Encoded {
        reply(request, errno_of(answer), terms.structured)
    }
}

impl Agreed {
    /// The command for the drive, if there is one.
    fn check(self, request: &Request, data: Vec<u8>, drive: &Handle) -> Result<Option<Ask>, Errno> {
        let Request { kind, offset, length, fua, .. } = *request;
        if request.has_unknown_flags {
            return Err(Errno::Invalid);
        }
        if kind == RequestKind::Flush {
            return Ok(Some(Ask::Flush));
        }
        let (sector, length_bytes) = (SECTOR_BYTES, u64::from(length));
        let end = offset.checked_add(length_bytes).ok_or(Errno::Invalid)?;
        let least = u64::from(self.sector_bytes);
        if !offset.is_multiple_of(least) || !length_bytes.is_multiple_of(least) || length == 0 {
            return Err(Errno::Invalid);
        }
        if end > drive.capacity_sectors() * sector {
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
            RequestKind::BlockStatus if self.allocation => Ok(Some(Ask::Extents(lba, sectors))),
            RequestKind::BlockStatus | RequestKind::Unknown(_) => Err(Errno::Invalid),
            RequestKind::Cache => Ok(None), // all of it is as near as it gets
            RequestKind::Flush | RequestKind::Disconnect => unreachable!("handled before"),
        }
    }
}

fn errno_of(answer: Answer) -> Result<Answer, Errno> {
    match answer {
        Answer::Failed(Failure::NoSpace) => Err(Errno::NoSpace),
        Answer::Failed(Failure::NoMemory) => Err(Errno::NoMemory),
        Answer::Failed(Failure::Drive(Status::InvalidField | Status::LbaOutOfRange)) => {
            Err(Errno::Invalid)
        }
        Answer::Failed(Failure::Gone) => Err(Errno::Shutdown),
        // A drive that has lost its power, or cannot read or write: what a dead disk gives.
        Answer::Failed(_) => Err(Errno::Io),
        answer => Ok(answer),
    }
}

/// The reply to `request`.
fn reply(request: &Request, result: Result<Answer, Errno>, structured: bool) -> Encoded {
    let Request { cookie, offset, length, .. } = *request;
    let (head, data) = match result {
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
    };
    Encoded::new(head, data)
}
