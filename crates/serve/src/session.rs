//! The session of one client, whatever protocol it speaks: a thread that reads requests and one that writes replies.
//!
//! **What lives here**: batching, the window, memory, time-outs, the end. **What doesn't**: what bytes mean; that is a
//! [`Protocol`]'s.
//!
//! **Invariants**
//! - Each request is answered once, or the connection ends.
//! - No memory is taken for a payload before its bytes have come, nor for a reply before the budget has room for it.
//! - Whatever ends one of the two threads ends the other.

use std::io::{self, BufReader, ErrorKind, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::Builder;

use crate::budget::{Budget, COMMAND_BYTES, GATHERED, Permit, Window};
use crate::guests::Guest;
use crate::owner::{Answer, Ask, Batch, Failure, Handle};
use crate::stream::{Reader, Stream, send};

/// No head of a request is longer.
const HEAD_MOST: usize = 64;
/// Data from this size on is sent from where it lies.
const LARGE: usize = GATHERED;

/// A reply: what comes before its data, and its data.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) head: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

/// What follows a request.
pub(crate) enum Step {
    /// The drive is asked.
    Ask(Ask),
    /// It is answered at once.
    Reply(Encoded),
    /// It is answered by [`Protocol::report`], behind all that was asked before.
    Report,
}

/// A protocol, as agreed on with one client. Budget, batches and deadlines are the session's.
pub(crate) trait Protocol: Sized {
    /// A request without its payload.
    type Request: Copy + Send + 'static;
    /// What replies depend on.
    type Terms: Copy + Send + 'static;
    /// Why the connection ends.
    type Error: From<io::Error>;
    /// What is settled before a client is let in, by all clients of a listener.
    type Front;
    /// The length of a request without its payload.
    const HEAD_BYTES: usize;

    /// Settles with the client what is to be settled. `None` if it goes.
    fn handshake(
        stream: &mut Stream,
        front: &Self::Front,
        drive: &Handle,
    ) -> Result<Option<Self>, Self::Error>;
    /// What replies depend on.
    fn terms(&self) -> Self::Terms;
    /// A request; `None` if the client goes.
    fn parse(&self, head: &[u8]) -> Result<Option<Self::Request>, Self::Error>;
    /// Bytes that follow the request.
    fn payload_bytes(request: &Self::Request) -> Result<usize, Self::Error>;
    /// Bytes that its reply carries at most.
    fn reply_bytes(request: &Self::Request, drive: &Handle) -> usize;
    /// What follows it.
    fn step(&self, request: &Self::Request, payload: Vec<u8>, drive: &Handle) -> Step;
    /// What is answered without a command.
    fn report(&self, request: &Self::Request, drive: &Handle) -> Encoded;
    /// The reply with `answer`.
    fn encode(terms: Self::Terms, request: &Self::Request, answer: Answer) -> Encoded;
}

/// Serves one client until it goes.
pub(crate) fn serve<P: Protocol>(
    mut stream: Stream,
    front: &P::Front,
    drive: &Handle,
    guest: &Guest,
    budget: &Arc<Budget>,
) -> Result<(), P::Error> {
    let Some(protocol) = P::handshake(&mut stream, front, drive)? else { return Ok(()) };
    guest.settle()?;
    let (to, replies) = std::sync::mpsc::channel();
    let window = Arc::new(Window::new(Arc::clone(budget)));
    let reader = Reader::new(stream.clone(), Arc::clone(&window))?;
    std::thread::scope(|scope| {
        let (out, windows) = (stream.clone(), Arc::clone(&window));
        let write = move || write(Closing(out), &replies, &windows);
        Builder::new().name("replies".to_owned()).spawn_scoped(scope, write)?;
        let _closing = Closing(stream); // ends the writer if this thread panics
        let stream = BufReader::with_capacity(GATHERED, reader);
        let mut session =
            Session { protocol, stream, drive, guest, to, window, batch: Batch::default() };
        let read = session.read();
        // What is under way is answered before the connection ends.
        session.drive.ask_all(&mut session.batch);
        session.window.drain();
        read
    })
}

/// A stream that is closed when this is dropped.
struct Closing(Stream);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.socket().close();
    }
}

/// A reply on its way, and what it returns to the window.
struct Outgoing {
    reply: Encoded,
    permit: Permit,
}

/// A client that has negotiated.
struct Session<'a, P> {
    protocol: P,
    stream: BufReader<Reader>,
    drive: &'a Handle,
    guest: &'a Guest,
    to: Sender<Outgoing>,
    window: Arc<Window>,
    /// Requests that have been read but not handed to the drive yet.
    batch: Batch,
}

impl<P: Protocol> Session<'_, P> {
    /// Reads requests until the client goes.
    fn read(&mut self) -> Result<(), P::Error> {
        let mut head = [0; HEAD_MOST];
        let head = &mut head[..P::HEAD_BYTES];
        loop {
            self.expect(head.len());
            match self.stream.read_exact(head) {
                // It has gone without a word.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            let Some(request) = self.protocol.parse(head)? else { return Ok(()) };
            self.guest.has_asked()?;
            self.ask(request)?;
        }
    }

    /// Called before a read of so many bytes: if it may block, the batch is handed to the drive first.
    fn expect(&mut self, bytes: usize) {
        if self.stream.buffer().len() < bytes {
            self.drive.ask_all(&mut self.batch);
        }
    }

    fn ask(&mut self, request: P::Request) -> Result<(), P::Error> {
        let length = P::payload_bytes(&request)?;
        let first = length.min(LARGE);
        let bytes = COMMAND_BYTES + P::reply_bytes(&request, self.drive) + first;
        let permit = self.window.enter(bytes, || self.drive.ask_all(&mut self.batch));
        let terms = self.protocol.terms();
        let Ok(mut permit) = permit else {
            self.discard(length)?;
            return self.refuse(&request);
        };
        let Some(payload) = self.read_payload(length, &mut permit)? else {
            drop(permit);
            return self.refuse(&request);
        };
        let to = self.to.clone();
        let reply = move |reply| {
            let _ = to.send(Outgoing { reply, permit }); // the client may be gone
        };
        match self.protocol.step(&request, payload, self.drive) {
            Step::Ask(ask) => {
                self.batch.came_in(self.stream.get_ref().came_in());
                self.batch.push(ask, move |answer| reply(P::encode(terms, &request, answer)));
            }
            Step::Reply(encoded) => reply(encoded),
            Step::Report => {
                self.drive.ask_all(&mut self.batch);
                reply(self.protocol.report(&request, self.drive));
            }
        }
        Ok(())
    }

    /// Tells the client that there is no memory for its request.
    fn refuse(&mut self, request: &P::Request) -> Result<(), P::Error> {
        self.guest.say(|left_out| {
            tracing::warn!(
                client = self.guest.number(),
                left_out,
                "a request was refused: --memory is used up"
            );
        });
        let Ok(permit) = self.window.enter(0, || self.drive.ask_all(&mut self.batch)) else {
            return Err(io::Error::from(ErrorKind::OutOfMemory).into());
        };
        let answer = Answer::Failed(Failure::NoMemory);
        let reply = P::encode(self.protocol.terms(), request, answer);
        let _ = self.to.send(Outgoing { reply, permit }); // the client may be gone
        Ok(())
    }

    /// Reads what follows a request, into as much memory as has come in. `None` if that is more than there is.
    fn read_payload(
        &mut self,
        length: usize,
        permit: &mut Permit,
    ) -> Result<Option<Vec<u8>>, P::Error> {
        self.expect(length);
        let mut payload = Vec::new();
        if length == 0 {
            return Ok(Some(payload));
        }
        self.stream.get_mut().begin();
        let mut piece = length.min(LARGE); // of which the permit is
        loop {
            if payload.try_reserve_exact(piece).is_err() {
                self.discard(length - payload.len())?;
                return Ok(None);
            }
            let count = (&mut self.stream).take(piece as u64).read_to_end(&mut payload)?;
            if count < piece {
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            piece = (length - payload.len()).min(payload.len());
            if piece == 0 {
                break;
            }
            if permit.grow(piece, || self.drive.ask_all(&mut self.batch)).is_err() {
                self.discard(length - payload.len())?;
                return Ok(None);
            }
            self.stream.get_mut().begin(); // the client is not to blame for that wait
        }
        self.stream.get_mut().end();
        Ok(Some(payload))
    }

    /// Reads so many bytes, and forgets them.
    fn discard(&mut self, bytes: usize) -> Result<(), P::Error> {
        self.drive.ask_all(&mut self.batch);
        self.stream.get_mut().begin();
        let count = io::copy(&mut (&mut self.stream).take(bytes as u64), &mut io::sink())?;
        self.stream.get_mut().end();
        if count < bytes as u64 {
            return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }
}

/// Writes replies until all senders are gone. If the client is gone, they are dropped.
fn write(mut stream: Closing, replies: &Receiver<Outgoing>, window: &Window) {
    let mut out = Vec::new();
    let mut is_gone = false;
    while let Ok(first) = replies.recv() {
        let Outgoing { reply, mut permit } = first;
        let mut next = Some(reply);
        let mut large = Vec::new();
        while let Some(Encoded { head, data }) = next.take() {
            out.extend(head);
            if data.len() >= LARGE {
                large = data;
                break;
            }
            out.extend(data);
            if out.len() < GATHERED
                && let Ok(other) = replies.try_recv()
            {
                permit.absorb(other.permit);
                next = Some(other.reply);
            }
        }
        is_gone = is_gone
            || send(&mut stream.0, &out, window).is_err()
            || !large.is_empty() && send(&mut stream.0, &large, window).is_err();
        if is_gone {
            stream.0.socket().close(); // ends the reader, too
        }
        out.clear();
    }
}
