//! The interface of a protocol, and its treatment of a request that has come in.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::ask::{Answer, Ask, Failure};
use crate::budget::{COMMANDS_FIRST, Full, Permit};
use crate::listen::Socket;
use crate::negotiating::Negotiating;
use crate::owner::{Batch, Handle};
use crate::stream::Stream;

use super::replies::{Encoded, Outbox, Pipe, send_during};

/// The way to drives, whose requests are handed over together.
pub(crate) struct Asks<'a> {
    batches: &'a mut [Batch],
    came_in: Instant,
}

impl<'a> Asks<'a> {
    /// The batches of the drives, for requests that have come in then.
    pub(crate) const fn new(batches: &'a mut [Batch], came_in: Instant) -> Self {
        Self { batches, came_in }
    }

    /// Asks a drive; `reply` hears the answer.
    pub(crate) fn push(
        &mut self,
        drive: usize,
        ask: Ask,
        reply: impl FnOnce(Answer) + Send + 'static,
    ) {
        self.batches[drive].came_in(self.came_in);
        self.batches[drive].push(ask, reply);
    }
}

/// The way of a session to its drives and back.
pub(super) struct Route {
    drives: Vec<Handle>,
    /// Requests that have been read but not handed to the drives yet.
    batches: Vec<Batch>,
    out: Outbox,
    pipe: Arc<Mutex<Pipe>>,
}

impl Route {
    pub(super) fn new(drives: &[Handle], out: Outbox, pipe: Arc<Mutex<Pipe>>) -> Self {
        Self { drives: drives.to_vec(), batches: batches_of(drives), out, pipe }
    }

    pub(super) fn drives(&self) -> &[Handle] {
        &self.drives
    }

    pub(super) const fn out(&self) -> &Outbox {
        &self.out
    }

    /// Hands what was asked to the drives.
    pub(super) fn hand_over(&mut self) {
        if self.batches.iter().any(|it| !it.is_empty()) {
            send_during(&self.out, &self.pipe, || hand_over(&self.drives, &mut self.batches));
        }
    }
}

/// No requests for any of the drives.
pub(crate) fn batches_of(drives: &[Handle]) -> Vec<Batch> {
    drives.iter().map(|_| Batch::default()).collect()
}

/// Hands what was gathered to the drives.
pub(crate) fn hand_over(drives: &[Handle], batches: &mut [Batch]) {
    for (drive, batch) in drives.iter().zip(batches) {
        drive.ask_all(batch);
    }
}

/// A request that has come in whole, and all that it takes to answer it.
pub(crate) struct Turn<'a> {
    /// Its permit; `None` if one was taken before.
    pub(super) permit: Option<Permit>,
    pub(super) route: &'a mut Route,
    pub(super) came_in: Instant,
}

impl Turn<'_> {
    /// Asks a drive; `encode` makes the reply of its answer.
    pub(crate) fn ask(
        mut self,
        drive: usize,
        ask: Ask,
        encode: impl FnOnce(Answer) -> Encoded + Send + 'static,
    ) {
        let (out, permit) = (self.outbox(), self.permit.take());
        self.push(drive, ask, move |answer| out.send(encode(answer), permit));
    }

    /// Asks a drive; `reply` hears the answer.
    fn push(&mut self, drive: usize, ask: Ask, reply: impl FnOnce(Answer) + Send + 'static) {
        self.asks().push(drive, ask, reply);
    }

    /// The way to the drives.
    pub(crate) fn asks(&mut self) -> Asks<'_> {
        Asks::new(&mut self.route.batches, self.came_in)
    }

    /// Answers at once.
    pub(crate) fn reply(mut self, reply: Encoded) {
        let permit = self.permit.take();
        self.outbox().send(reply, permit);
    }

    /// The drives, by their number.
    pub(crate) fn drives(&self) -> &[Handle] {
        self.route.drives()
    }

    /// Hands what was asked before to the drives.
    pub(crate) fn hand_over(&mut self) {
        self.route.hand_over();
    }

    /// The way to the client.
    pub(crate) fn outbox(&self) -> Outbox {
        self.route.out.clone()
    }

    /// Takes what it holds.
    pub(crate) const fn take_permit(&mut self) -> Option<Permit> {
        self.permit.take()
    }

    /// Puts what another request holds in its place.
    pub(crate) fn with_permit(mut self, permit: Permit) -> Self {
        self.permit = Some(permit);
        self
    }

    /// Takes so many bytes more for `permit`; waits for them.
    pub(crate) fn grow(&mut self, permit: &mut Permit, bytes: usize) -> Result<(), Full> {
        permit.grow(bytes, || self.route.hand_over())
    }
}

/// A protocol, as agreed on with one client. Budget, batches and deadlines are the session's.
pub(crate) trait Protocol: Sized {
    /// A request without its payload.
    type Request: Copy + Send + 'static;
    /// Why the connection ends.
    type Error: From<io::Error>;
    /// The state of all clients of a listener before one is let in.
    type Front;
    /// The length of a request without its payload, or of its beginning.
    const HEAD_BYTES: usize;
    /// A client has negotiated within this time, or goes.
    const NEGOTIATION: Duration;
    /// Requests that a new client may have under way.
    const COMMANDS_FIRST: usize = COMMANDS_FIRST;
    /// Its clients come for one reply each: that they come and go is worth a line for debugging only.
    const IS_BRIEF: bool = false;
    /// Connections that a listener accepts per second, at most; `None` for any number.
    const ACCEPTED_PER_S: Option<u32> = None;

    /// Settles with the client what is to be settled. `None` if it goes.
    fn handshake(
        stream: &mut Negotiating<'_, Stream>,
        front: &Self::Front,
        drives: &[Handle],
    ) -> Result<Option<Self>, Self::Error>;
    /// The session has begun: how to reach its client unasked, and how to end it.
    fn begin(&mut self, _: &Outbox, _: &Socket) {}
    /// No request comes any more.
    fn end(&mut self) {}
    /// The length of a request without its payload that begins so; at most 128.
    fn head_bytes(&mut self, _: &[u8]) -> Result<usize, Self::Error> {
        Ok(Self::HEAD_BYTES)
    }
    /// A request; `None` if the client goes.
    fn parse(&mut self, head: &[u8]) -> Result<Option<Self::Request>, Self::Error>;
    /// True once the client may do more than say who it is. Until then a new one may take its place.
    fn is_known(&self) -> bool {
        true
    }
    /// Bytes that follow the request.
    fn payload_bytes(request: &Self::Request) -> Result<usize, Self::Error>;
    /// Bytes that its reply carries at most.
    fn reply_bytes(request: &Self::Request, drives: &[Handle]) -> usize;
    /// True if a request before it has taken the room for its payload.
    fn has_room(_: &Self::Request) -> bool {
        false
    }
    /// The bytes that came before its payload, which is to stand behind them.
    fn payload_so_far(&mut self, _: &Self::Request) -> Vec<u8> {
        Vec::new()
    }
    /// The next steps for it.
    fn turn(
        &mut self,
        request: Self::Request,
        payload: Vec<u8>,
        turn: Turn<'_>,
    ) -> Result<(), Self::Error>;
    /// The reply to a request for which there is no memory.
    fn refused(&mut self, request: &Self::Request) -> Encoded;
}

/// The next step for a request.
pub(crate) enum Step {
    /// The drive is asked.
    Ask(Ask),
    /// It is answered at once.
    Reply(Encoded),
    /// It is answered by [`Single::report`], behind all that was asked before.
    Report,
}

/// A protocol each of whose requests asks one drive one thing.
pub(crate) trait Single: Protocol {
    /// The terms that replies depend on.
    type Terms: Copy + Send + 'static;
    /// The terms that replies depend on.
    fn terms(&self) -> Self::Terms;
    /// The next step for it.
    fn step(&self, request: &Self::Request, payload: Vec<u8>, drive: &Handle) -> Step;
    /// The answer without a command.
    fn report(&self, request: &Self::Request, drive: &Handle) -> Encoded;
    /// The reply with `answer`.
    fn encode(terms: Self::Terms, request: &Self::Request, answer: Answer) -> Encoded;
    /// The reply to a request for which there is no memory.
    fn no_memory(&self, request: &Self::Request) -> Encoded {
        Self::encode(self.terms(), request, Answer::Failed(Failure::NoMemory))
    }
}

/// [`Protocol::turn`] of such a protocol.
pub(crate) fn one<P: Single>(
    protocol: &P,
    request: P::Request,
    payload: Vec<u8>,
    mut turn: Turn<'_>,
) {
    let terms = protocol.terms();
    match protocol.step(&request, payload, &turn.drives()[0]) {
        Step::Ask(ask) => turn.ask(0, ask, move |answer| P::encode(terms, &request, answer)),
        Step::Reply(encoded) => turn.reply(encoded),
        Step::Report => {
            turn.hand_over();
            let report = protocol.report(&request, &turn.drives()[0]);
            turn.reply(report);
        }
    }
}
