//! The session of one client, whatever protocol it speaks: a thread that reads requests, and one that writes what the first cannot
//! send at once.
//!
//! **What lives here**: the deadline of the negotiation, batching, the window, memory, time-outs, the end. **What doesn't**: what bytes mean; that is a
//! [`Protocol`]'s.
//!
//! **Invariants**
//! - Each request is answered once, or the connection ends.
//! - No memory is taken for a payload before its bytes have come, nor for a reply before the budget has room for it.
//! - Whatever ends one of the two threads ends the other. Requests that a client has left behind are not served.

mod replies;
mod turn;

pub(crate) use replies::{Encoded, Outbox};
pub(crate) use turn::{Asks, Protocol, Single, Step, Turn, batches_of, hand_over, one};

use std::io::{self, BufReader, ErrorKind, Read};
use std::sync::Arc;
use std::thread::Builder;

use crate::budget::{Budget, COMMAND_BYTES, GATHERED, Permit, Window};
use crate::guests::Guest;
use crate::negotiating::Negotiating;
use crate::owner::Handle;
use crate::stream::{Reader, Stream};
use replies::{Pipe, write};
use turn::Route;

/// No head of a request is longer.
const HEAD_MOST: usize = 128;
/// Data from this size on is sent from where it lies.
const LARGE: usize = GATHERED;

/// Serves one client until it goes.
pub(crate) fn serve<P: Protocol>(
    mut stream: Stream,
    front: &P::Front,
    drives: &[Handle],
    guest: &Guest,
    budget: &Arc<Budget>,
) -> Result<(), P::Error> {
    // No protocol has the stream without the deadline.
    let negotiated =
        P::handshake(&mut Negotiating::new(&mut stream, P::NEGOTIATION), front, drives)?;
    let Some(mut protocol) = negotiated else { return Ok(()) };
    guest.settle()?;
    let (to, replies) = std::sync::mpsc::channel();
    let out = Outbox::new(to);
    protocol.begin(&out, stream.socket());
    let pipe = Pipe::new(stream.clone());
    let window = Arc::new(Window::new(Arc::clone(budget), P::COMMANDS_FIRST));
    let reader = Reader::new(stream.clone(), Arc::clone(&window))?;
    std::thread::scope(|scope| {
        let (closing, windows, shared) =
            (Closing(stream.clone()), Arc::clone(&window), Arc::clone(&pipe));
        let write = move || write(&closing, &shared, &replies, &windows);
        let writer = Builder::new().name("replies".to_owned()).spawn_scoped(scope, write)?;
        let _closing = Closing(stream); // ends the writer if this thread panics
        let stream = BufReader::with_capacity(GATHERED, reader);
        let route = Route::new(drives, out, pipe);
        let mut session = Session { protocol, stream, guest, window, route };
        let read = session.read();
        // Requests in flight are answered before the connection ends.
        session.route.hand_over();
        session.protocol.end();
        session.window.drain();
        drop(session); // and so the last way to the writer, which ends when it has sent all
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read
    })
}

/// A stream that is closed when this is dropped.
pub(crate) struct Closing(pub(crate) Stream);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.socket().close();
    }
}

/// A client that has negotiated.
struct Session<'a, P> {
    protocol: P,
    stream: BufReader<Reader>,
    guest: &'a Guest,
    window: Arc<Window>,
    route: Route,
}

impl<P: Protocol> Session<'_, P> {
    /// Reads requests until the client goes.
    fn read(&mut self) -> Result<(), P::Error> {
        let mut head = [0; HEAD_MOST];
        loop {
            if self.window.is_left() {
                return Ok(()); // the kernel still has thousands of requests of a client that has gone
            }
            let first = P::HEAD_BYTES;
            self.expect(first);
            match self.stream.read_exact(&mut head[..first]) {
                // It has gone without a word.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            let length = self.protocol.head_bytes(&head[..first])?;
            if length > first {
                self.expect(length - first);
                self.stream.get_mut().begin();
                self.stream.read_exact(&mut head[first..length])?;
                self.stream.get_mut().end();
            }
            let Some(request) = self.protocol.parse(&head[..length])? else { return Ok(()) };
            if self.protocol.is_known() {
                self.guest.has_asked()?;
            }
            self.ask(request)?;
        }
    }

    /// Called before a read of so many bytes: if it may block, the batch is handed to the drive first.
    fn expect(&mut self, bytes: usize) {
        if self.stream.buffer().len() < bytes {
            self.route.hand_over();
        }
    }

    fn ask(&mut self, request: P::Request) -> Result<(), P::Error> {
        let length = P::payload_bytes(&request)?;
        let mut permit = None;
        if !P::has_room(&request) {
            let first = length.min(LARGE);
            let bytes = COMMAND_BYTES + P::reply_bytes(&request, self.route.drives()) + first;
            let entered = self.window.enter(bytes, || self.route.hand_over());
            let Ok(entered) = entered else {
                self.discard(length)?;
                return self.refuse(&request);
            };
            if entered.is_pooled() && self.stream.get_ref().is_gone() {
                self.window.leave(); // it may have left while it waited for memory
                return Ok(());
            }
            permit = Some(entered);
        }
        let before = self.protocol.payload_so_far(&request);
        let Some(payload) = self.read_payload(before, length, permit.as_mut())? else {
            drop(permit);
            return self.refuse(&request);
        };
        let came_in = self.stream.get_ref().came_in();
        let turn = Turn { permit, route: &mut self.route, came_in };
        self.protocol.turn(request, payload, turn)
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
        let entered = self.window.enter(0, || self.route.hand_over());
        let Ok(permit) = entered else {
            return Err(io::Error::from(ErrorKind::OutOfMemory).into());
        };
        let reply = self.protocol.refused(request);
        self.route.out().send(reply, Some(permit));
        Ok(())
    }

    /// Reads what follows a request, into as much memory as has come in, behind what has come `before`. `None` if that is
    /// more than there is.
    fn read_payload(
        &mut self,
        before: Vec<u8>,
        length: usize,
        mut permit: Option<&mut Permit>,
    ) -> Result<Option<Vec<u8>>, P::Error> {
        self.expect(length);
        let mut payload = before;
        if length == 0 {
            return Ok(Some(payload));
        }
        let begin = payload.len();
        self.stream.get_mut().begin();
        let mut piece = length.min(LARGE); // of which the permit is
        loop {
            if payload.try_reserve_exact(piece).is_err() {
                self.discard(length - (payload.len() - begin))?;
                return Ok(None);
            }
            let count = (&mut self.stream).take(piece as u64).read_to_end(&mut payload)?;
            if count < piece {
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            let read = payload.len() - begin;
            piece = (length - read).min(read);
            if piece == 0 {
                break;
            }
            if let Some(permit) = &mut permit
                && permit.grow(piece, || self.route.hand_over()).is_err()
            {
                self.discard(length - read)?;
                return Ok(None);
            }
            self.stream.get_mut().begin(); // the client is not to blame for that wait
        }
        self.stream.get_mut().end();
        Ok(Some(payload))
    }

    /// Reads so many bytes, and forgets them.
    fn discard(&mut self, bytes: usize) -> Result<(), P::Error> {
        self.route.hand_over();
        self.stream.get_mut().begin();
        let count = io::copy(&mut (&mut self.stream).take(bytes as u64), &mut io::sink())?;
        self.stream.get_mut().end();
        if count < bytes as u64 {
            return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }
}
