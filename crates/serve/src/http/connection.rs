//! A connection: one request, and its reply; or, for those that follow a drive, events until they go.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thiserror::Error;

use super::metrics;
use super::page;
use super::reply::{NOTHING, Status, TEXT, head, whole};
use super::request::{self, Method, Refusal, Request};
use super::subject::{PageSubject, Route, route};
use crate::listen::Socket;
use crate::negotiating::Negotiating;
use crate::owner::Handle;
use crate::session::{Encoded, Outbox, Protocol, Turn};
use crate::stream::Stream;

/// A page takes one connection, and Prometheus one in some seconds. A flood beyond that waits.
const ACCEPTED_PER_S: u32 = 100;
/// Bytes of a head of a reply.
const HEAD_MOST: usize = 2 << 10;

/// The state that all connections share.
pub(crate) struct Shared<S> {
    pub(super) subject: Arc<S>,
    pub(super) token: String,
    /// Names in the `Host` header, beside addresses and `localhost`.
    pub(super) own_names: Vec<String>,
    /// Connections that may be in use at once.
    pub(super) seats_most: usize,
    pub(super) seats: Arc<AtomicUsize>,
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
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take<S>(shared: &Shared<S>) -> Option<Self> {
        let seat = Self(Arc::clone(&shared.seats));
        let before = shared.seats.fetch_add(1, Ordering::AcqRel);
        (before < shared.seats_most).then_some(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A reply that is to be made, and the room that it needs.
#[derive(Clone, Copy)]
pub(crate) struct Due<C> {
    asked: Route<C>,
    bytes: usize,
}

/// See the module.
pub(crate) struct Connection<S: PageSubject> {
    shared: Arc<Shared<S>>,
    asked: Route<S::Change>,
    is_head: bool,
    position: S::Position,
    /// Replies so far.
    replies: u64,
    peer: String,
    _seat: Option<Seat>,
}

impl<S: PageSubject> Protocol for Connection<S> {
    type Request = Due<S::Change>;
    type Error = ConnectionError;
    type Front = Arc<Shared<S>>;
    /// The request has come in before: those of the session are the replies that it gets.
    const HEAD_BYTES: usize = 0;
    const NEGOTIATION: Duration = Duration::from_secs(10);
    /// A client that does not read its events has no second batch of them waiting.
    const COMMANDS_FIRST: usize = 1;
    const IS_BRIEF: bool = true;
    const ACCEPTED_PER_S: Option<u32> = Some(ACCEPTED_PER_S);

    fn handshake(
        stream: &mut Negotiating<'_, Stream>,
        shared: &Arc<Shared<S>>,
        _: &[Handle],
    ) -> Result<Option<Self>, ConnectionError> {
        let Some(request) = request::read(stream)? else { return Ok(None) };
        let is_head = matches!(&request, Ok(request) if request.method == Method::Head);
        let admitted = request.and_then(|request| admit(&request, shared));
        match admitted {
            Ok((asked, seat)) => Ok(Some(Self {
                shared: Arc::clone(shared),
                asked,
                is_head,
                position: S::Position::default(),
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

    fn parse(&mut self, _: &[u8]) -> Result<Option<Self::Request>, ConnectionError> {
        let bytes = match self.asked {
            Route::Follow(source) => {
                if !self.shared.subject.wait(source, &self.position) {
                    return Ok(None);
                }
                S::events_most(self.replies == 0)
            }
            _ if self.replies > 0 => return Ok(None),
            Route::Page => page::bytes_most(&S::PAGE),
            Route::Metrics => self.shared.subject.metrics_most(),
            Route::Change(_) => S::ANSWER_MOST,
        };
        Ok(Some(Due { asked: self.asked, bytes: bytes + HEAD_MOST }))
    }

    fn payload_bytes(_: &Self::Request) -> Result<usize, ConnectionError> {
        Ok(0)
    }

    fn reply_bytes(due: &Self::Request, _: &[Handle]) -> usize {
        due.bytes
    }

    fn turn(
        &mut self,
        due: Self::Request,
        _: Vec<u8>,
        mut turn: Turn<'_>,
    ) -> Result<(), ConnectionError> {
        turn.hand_over();
        let subject = &self.shared.subject;
        let (head, body) = match due.asked {
            Route::Follow(source) => {
                let events = subject.events(source, &mut self.position);
                let is_first = self.replies == 0;
                let head = if is_first {
                    head(Status::Ok, "text/event-stream", NOTHING, None)
                } else {
                    String::new()
                };
                (head, events.into_bytes())
            }
            Route::Page => page::reply(&S::PAGE)?,
            Route::Metrics => whole(Status::Ok, metrics::CONTENT_TYPE, NOTHING, subject.metrics()),
            Route::Change(change) => {
                let (status, answer) = subject.change(turn.drives(), change, &self.peer);
                whole(status, "application/json", NOTHING, answer + "\n")
            }
        };
        debug_assert!(head.len() + body.len() <= due.bytes, "{} bytes", body.len());
        self.replies += 1;
        let body = if self.is_head { Vec::new() } else { body };
        turn.reply(Encoded::new(head.into_bytes(), body));
        Ok(())
    }

    fn refused(&mut self, _: &Self::Request) -> Encoded {
        self.replies += 1;
        let text = "the server has no memory left for this reply: see --memory\n".to_owned();
        let (head, body) = whole(Status::Unavailable, TEXT, NOTHING, text);
        Encoded::new(head.into_bytes(), body)
    }
}

/// The request's aim, and a place for it, if it may have both. A change needs no place: its clients have the token.
fn admit<S: PageSubject>(
    request: &Request,
    shared: &Shared<S>,
) -> Result<(Route<S::Change>, Option<Seat>), Refusal> {
    request.check(&shared.own_names)?;
    let asked = route(&*shared.subject, request)?;
    if let Route::Change(_) = asked {
        request.check_token(&shared.token)?;
        return Ok((asked, None));
    }
    let full = Refusal {
        status: Status::Unavailable,
        why: "as many pages are open as the server has room for: close one",
    };
    Ok((asked, Some(Seat::take(shared).ok_or(full)?)))
}
