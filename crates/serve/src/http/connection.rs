//! A connection: one request, and its reply; or, for those that follow a drive, events until they go.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thiserror::Error;

use super::metrics;
use super::page;
use super::reply::{NOTHING, Status, TEXT, head, whole};
use super::request::{self, Method, Refusal, Request, refuse};
use super::watch::{EVENTS_MOST, NEWS_MOST, Position, Watch};
use crate::listen::Socket;
use crate::negotiating::Negotiating;
use crate::owner::Handle;
use crate::session::{Encoded, Outbox, Protocol, Turn};
use crate::stream::Stream;
use crate::switch;

/// Bytes of a head of a reply.
const HEAD_MOST: usize = 2 << 10;
/// Bytes of the answer to the switch: lost ranges are many in the worst case, and their report is kept short.
const ANSWER_MOST: usize = 64 << 10;
/// Lost ranges in such an answer.
const RANGES_MOST: usize = 512;

/// The state that all connections share.
pub(crate) struct Shared {
    pub(super) watch: Watch,
    pub(super) token: String,
    /// Names in the `Host` header, beside addresses and `localhost`.
    pub(super) own_names: Vec<String>,
    /// Connections that may be in use at once.
    pub(super) seats_most: usize,
    pub(super) seats: AtomicUsize,
}

/// Why a connection has ended without its reply.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    /// The socket.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The request is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A place among the connections; given back when it is dropped.
struct Seat(Arc<Shared>);

impl Seat {
    fn take(shared: &Arc<Shared>) -> Option<Self> {
        let seat = Self(Arc::clone(shared));
        let before = shared.seats.fetch_add(1, Ordering::AcqRel);
        (before < shared.seats_most).then_some(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.seats.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The thing asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Page,
    Metrics,
    /// The events of a drive.
    Follow(usize),
    /// A drive's switch.
    Switch(usize, switch::Ask),
}

/// A reply that is to be made, and the room that it needs.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    asked: Asked,
    bytes: usize,
}

/// See the module.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    asked: Asked,
    is_head: bool,
    position: Position,
    /// Replies so far.
    replies: u64,
    peer: String,
    _seat: Option<Seat>,
}

impl Protocol for Connection {
    type Request = Due;
    type Error = ConnectionError;
    type Front = Arc<Shared>;
    /// The request has come in before: those of the session are the replies that it gets.
    const HEAD_BYTES: usize = 0;
    const NEGOTIATION: Duration = Duration::from_secs(10);
    /// A client that does not read its events has no second batch of them waiting.
    const COMMANDS_FIRST: usize = 1;
    const IS_BRIEF: bool = true;

    fn handshake(
        stream: &mut Negotiating<'_, Stream>,
        shared: &Arc<Shared>,
        drives: &[Handle],
    ) -> Result<Option<Self>, ConnectionError> {
        let Some(request) = request::read(stream)? else { return Ok(None) };
        let is_head = matches!(&request, Ok(request) if request.method == Method::Head);
        let admitted = request.and_then(|request| admit(&request, shared, drives.len()));
        match admitted {
            Ok((asked, seat)) => Ok(Some(Self {
                shared: Arc::clone(shared),
                asked,
                is_head,
                position: Position::default(),
                replies: 0,
                peer: stream.socket().peer(),
                _seat: seat,
            })),
            Err(refusal) => {
                let text = format!("{}\n", refusal.why);
                let mut reply = head(refusal.status, TEXT, NOTHING, Some(text.len()));
                reply.push_str(&text);
                stream.write_all(reply.as_bytes())?;
                Err(refusal.into())
            }
        }
    }

    fn begin(&mut self, _: &Outbox, _: &Socket) {}

    fn parse(&mut self, _: &[u8]) -> Result<Option<Due>, ConnectionError> {
        let bytes = match self.asked {
            Asked::Follow(drive) => {
                if !self.shared.watch.wait(drive, &self.position) {
                    return Ok(None);
                }
                if self.replies == 0 { EVENTS_MOST } else { NEWS_MOST }
            }
            _ if self.replies > 0 => return Ok(None),
            Asked::Page => page::BYTES_MOST,
            Asked::Metrics => (1 + self.shared.watch.names.len()) * metrics::DRIVE_MOST,
            Asked::Switch(..) => ANSWER_MOST,
        };
        Ok(Some(Due { asked: self.asked, bytes: bytes + HEAD_MOST }))
    }

    fn payload_bytes(_: &Due) -> Result<usize, ConnectionError> {
        Ok(0)
    }

    fn reply_bytes(due: &Due, _: &Handle) -> usize {
        due.bytes
    }

    fn turn(&mut self, due: Due, _: Vec<u8>, mut turn: Turn<'_>) -> Result<(), ConnectionError> {
        turn.hand_over();
        let (head, body) = match due.asked {
            Asked::Follow(drive) => {
                let events = self.shared.watch.events(drive, &mut self.position);
                let is_first = self.replies == 0;
                let head = if is_first {
                    head(Status::Ok, "text/event-stream", NOTHING, None)
                } else {
                    String::new()
                };
                (head, events.into_bytes())
            }
            Asked::Page => page::reply()?,
            Asked::Metrics => {
                let watch = &self.shared.watch;
                let text = metrics::text(&watch.names, &watch.readings());
                whole(Status::Ok, metrics::CONTENT_TYPE, NOTHING, text)
            }
            Asked::Switch(drive, ask) => self.switch(&turn.drives()[drive], drive, ask),
        };
        debug_assert!(head.len() + body.len() <= due.bytes, "{} bytes", body.len());
        self.replies += 1;
        let body = if self.is_head { Vec::new() } else { body };
        turn.reply(Encoded::new(head.into_bytes(), body));
        Ok(())
    }

    fn refused(&mut self, _: &Due) -> Encoded {
        self.replies += 1;
        let text = "the server has no memory left for this reply: see --memory\n".to_owned();
        let (head, body) = whole(Status::Unavailable, TEXT, NOTHING, text);
        Encoded::new(head.into_bytes(), body)
    }
}

impl Connection {
    /// Throws a drive's switch, and answers as the control socket does.
    fn switch(&self, handle: &Handle, drive: usize, ask: switch::Ask) -> (String, Vec<u8>) {
        let (peer, name) = (&self.peer, &self.shared.watch.names[drive]);
        tracing::info!(peer, drive = name, ?ask, "the switch is thrown from a page");
        let mut answer = handle.control(ask);
        if let Some(switch::Answer::Cut(report)) = &mut answer {
            report.lost.truncate(RANGES_MOST);
            report.uncertain.truncate(RANGES_MOST);
        }
        self.shared.watch.look_now();
        let status = match answer {
            None => Status::Unavailable,
            Some(switch::Answer::Refused { .. }) => Status::Conflict,
            Some(_) => Status::Ok,
        };
        let why = || switch::Answer::Refused { why: "the drive is gone".to_owned() };
        let text = serde_json::to_string(&answer.unwrap_or_else(why)).unwrap_or_default();
        whole(status, "application/json", NOTHING, text + "\n")
    }
}

/// The request's aim, and a place for it, if it may have both. The switch needs no place: its clients have the token.
fn admit(
    request: &Request,
    shared: &Arc<Shared>,
    drives: usize,
) -> Result<(Asked, Option<Seat>), Refusal> {
    request.check(&shared.own_names)?;
    let asked = route(request, drives)?;
    if let Asked::Switch(..) = asked {
        request.check_token(&shared.token)?;
        return Ok((asked, None));
    }
    let full = Refusal {
        status: Status::Unavailable,
        why: "as many pages are open as the server has room for: close one",
    };
    Ok((asked, Some(Seat::take(shared).ok_or(full)?)))
}

fn route(request: &Request, drives: usize) -> Result<Asked, Refusal> {
    let path = request.path.split('?').next().unwrap_or_default();
    let is_post = request.method == Method::Post;
    if let Some(of_drive) = path.strip_prefix("/drives/") {
        let (number, rest) = of_drive.split_once('/').unwrap_or((of_drive, ""));
        let drive = number.parse().ok().filter(|&number| number < drives);
        let Some(drive) = drive else { return refuse(Status::NotFound, "there is no such drive") };
        return match (rest, request.method) {
            ("events", Method::Get) => Ok(Asked::Follow(drive)),
            ("", Method::Post) => Ok(Asked::Switch(drive, question(&request.body)?)),
            ("events" | "", _) => {
                refuse(Status::MethodNotAllowed, "GET /drives/N/events, or POST /drives/N")
            }
            _ => refuse(Status::NotFound, "there is only /drives/N and /drives/N/events"),
        };
    }
    match path {
        "/" | "/metrics" if is_post => refuse(Status::MethodNotAllowed, "send GET"),
        "/" => Ok(Asked::Page),
        "/metrics" => Ok(Asked::Metrics),
        _ => refuse(Status::NotFound, "there is only /, /metrics and /drives/N"),
    }
}

/// The question to the switch: a line as on the control socket, but a cut or a restore only.
fn question(body: &[u8]) -> Result<switch::Ask, Refusal> {
    match serde_json::from_slice(body) {
        Ok(ask @ (switch::Ask::Cut | switch::Ask::Restore { .. })) => Ok(ask),
        Ok(_) => refuse(
            Status::Forbidden,
            "a page may cut and restore; the rest is for the control socket",
        ),
        Err(_) => refuse(Status::BadRequest, "send {\"ask\":\"cut\"} or {\"ask\":\"restore\"}"),
    }
}
