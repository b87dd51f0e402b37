//! Replies on their way to a client. Those that are there as soon as the drive was asked are sent by the thread that asked
//! it, as far as the client takes them at once; all others by the writer.

use std::collections::VecDeque;
use std::iter;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Closing, LARGE};
use crate::budget::{GATHERED, Permit, Window};
use crate::stream::{Stream, send};

/// A reply: what comes before its data, its data, and what comes behind.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) head: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) tail: Vec<u8>,
}

impl Encoded {
    pub(crate) const fn new(head: Vec<u8>, data: Vec<u8>) -> Self {
        Self { head, data, tail: Vec::new() }
    }
}

/// A reply on its way, and what it returns to the window.
#[derive(Debug)]
pub(super) struct Outgoing {
    reply: Encoded,
    permit: Option<Permit>,
}

/// The way to a client at any time. Its session ends when all of them are gone.
#[derive(Clone)]
pub(crate) struct Outbox {
    to: Sender<Outgoing>,
    /// Replies for whoever asks the drive now.
    held: Arc<Mutex<Option<VecDeque<Outgoing>>>>,
}

impl Outbox {
    pub(super) fn new(to: Sender<Outgoing>) -> Self {
        Self { to, held: Arc::default() }
    }

    // A list is whole at every moment.
    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<Outgoing>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends it, and gives back what `permit` holds.
    pub(crate) fn send(&self, reply: Encoded, permit: Option<Permit>) {
        let outgoing = Outgoing { reply, permit };
        let mut held = self.lock();
        if let Some(held) = &mut *held {
            return held.push_back(outgoing);
        }
        drop(held);
        self.post(outgoing);
    }

    /// Leaves it to the writer.
    fn post(&self, outgoing: Outgoing) {
        let _ = self.to.send(outgoing); // the client may be gone
    }

    /// The replies that come while `asks` runs.
    fn during(&self, asks: impl FnOnce()) -> VecDeque<Outgoing> {
        *self.lock() = Some(VecDeque::new());
        asks();
        self.lock().take().unwrap_or_default()
    }
}

/// The connection, for whoever writes to it.
pub(super) struct Pipe {
    stream: Stream,
    /// The beginning of a reply has been sent; this is its end.
    rest: Vec<u8>,
    /// Small replies together.
    out: Vec<u8>,
}

impl Pipe {
    pub(super) fn new(stream: Stream) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { stream, rest: Vec::new(), out: Vec::new() }))
    }

    /// Sends what the client takes at once. False if there is a rest.
    fn send_now(&mut self) -> bool {
        let sent = self.stream.socket().send_now(&self.out).unwrap_or_default(); // the writer meets the error, too
        self.out.drain(..sent);
        std::mem::swap(&mut self.rest, &mut self.out);
        self.rest.is_empty()
    }
}

/// Runs `asks`. Replies that come at once are sent by this thread, as long as the client takes them and the writer is not at
/// work.
pub(super) fn send_during(out: &Outbox, pipe: &Mutex<Pipe>, asks: impl FnOnce()) {
    let mut replies = out.during(asks);
    let free = if replies.is_empty() { None } else { pipe.try_lock().ok() };
    if let Some(mut pipe) = free.filter(|it| it.rest.is_empty() && !it.stream.is_encrypted()) {
        loop {
            let permit = gather(&mut pipe.out, &mut replies);
            if pipe.out.is_empty() {
                break;
            }
            if !pipe.send_now() {
                // The writer sends the rest first.
                out.post(Outgoing { reply: Encoded::new(Vec::new(), Vec::new()), permit });
                break;
            }
        }
    }
    for outgoing in replies {
        out.post(outgoing);
    }
}

/// Puts small replies together into `out`: none if the next one is large, or there is none. What they return to the window.
fn gather(out: &mut Vec<u8>, replies: &mut VecDeque<Outgoing>) -> Option<Permit> {
    let mut permit = None;
    while out.len() < GATHERED
        && let Some(next) = replies.pop_front_if(|it| it.reply.data.len() < LARGE)
    {
        let Outgoing { reply: Encoded { head, data, tail }, permit: other } = next;
        out.extend(head);
        out.extend(data);
        out.extend(tail);
        absorb(&mut permit, other);
    }
    permit
}

fn absorb(permit: &mut Option<Permit>, other: Option<Permit>) {
    match (permit, other) {
        (Some(permit), Some(other)) => permit.absorb(other),
        (permit @ None, other) => *permit = other,
        (Some(_), None) => {}
    }
}

/// Writes replies until all senders are gone. If the client is gone, they are dropped.
pub(super) fn write(
    closing: &Closing,
    pipe: &Mutex<Pipe>,
    replies: &Receiver<Outgoing>,
    window: &Window,
) {
    let mut is_gone = false;
    while let Ok(first) = replies.recv() {
        // A thread that has panicked here takes its session along.
        let mut pipe = pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let Pipe { stream, rest, out } = &mut *pipe;
        let mut deliver = |bytes: &[u8]| {
            let is_sent = is_gone || bytes.is_empty() || send(stream, bytes, window).is_ok();
            is_gone |= !is_sent;
        };
        deliver(rest);
        rest.clear();
        let mut waiting: VecDeque<_> = iter::once(first).chain(replies.try_iter()).collect();
        while !waiting.is_empty() {
            let mut permit = gather(out, &mut waiting);
            // A large one is sent from where it lies.
            let large = waiting.pop_front_if(|it| it.reply.data.len() >= LARGE);
            let (data, tail) = large.map_or_else(Default::default, |large| {
                let Outgoing { reply: Encoded { head, data, tail }, permit: other } = large;
                out.extend(head);
                absorb(&mut permit, other);
                (data, tail)
            });
            deliver(out);
            deliver(&data);
            deliver(&tail);
            out.clear();
        }
        drop(pipe);
        if is_gone {
            window.leave();
            closing.0.socket().close(); // ends the reader, too
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::budget::{Budget, Limits};
    use crate::listen::Socket;

    /// A reply of three parts whose bytes are its number; one of them is large.
    fn reply(number: u8) -> Encoded {
        let bytes = if number == 79 { LARGE } else { 6_000 };
        Encoded { head: vec![number; 10], data: vec![number; bytes], tail: vec![number; 5] }
    }

    fn bytes(reply: &Encoded) -> usize {
        reply.head.len() + reply.data.len() + reply.tail.len()
    }

    const EACH: u8 = 8;

    /// Rounds of replies for a client that reads from round `reads` on, with a writer from round `writes` on: the numbers of those
    /// that it gets, and how many bytes of one stayed behind at most.
    fn replied(rounds: u8, reads: u8, writes: u8) -> (Vec<u8>, usize) {
        let (server, mut client) = UnixStream::pair().unwrap();
        let stream = Stream::Open(Socket::from(server));
        let window = Arc::new(Window::new(Arc::new(Budget::new(Limits::default())), 1_024));
        let (to, replies) = std::sync::mpsc::channel();
        let (out, pipe) = (Outbox::new(to), Pipe::new(stream.clone()));
        let total: usize = (0..rounds * EACH).map(|it| bytes(&reply(it))).sum();
        let (mut read, mut most) = (vec![0; total], 0);
        std::thread::scope(|scope| {
            let (begin, is_time) = std::sync::mpsc::channel();
            let read = &mut read;
            let reading = scope.spawn(move || {
                is_time.recv().unwrap();
                client.read_exact(read).unwrap();
            });
            let mut writer = Some((Closing(stream), replies));
            for round in 0..=rounds {
                if round == reads {
                    begin.send(()).unwrap();
                }
                if round >= writes
                    && let Some((closing, replies)) = writer.take()
                {
                    let (pipe, window) = (Arc::clone(&pipe), Arc::clone(&window));
                    scope.spawn(move || write(&closing, &pipe, &replies, &window));
                }
                send_during(&out, &pipe, || {
                    for number in
                        (round * EACH..(round + 1) * EACH).take_while(|it| *it < rounds * EACH)
                    {
                        out.send(reply(number), Some(window.enter(100, || ()).unwrap()));
                    }
                });
                if round < writes {
                    most = most.max(pipe.lock().unwrap().rest.len());
                }
            }
            drop(out);
            reading.join().unwrap();
            window.drain(); // or a permit was lost
        });
        let (mut numbers, mut at) = (Vec::new(), 0);
        while at < read.len() {
            let length = bytes(&reply(read[at]));
            assert!(read[at..at + length].iter().all(|it| *it == read[at]), "replies are mixed");
            numbers.push(read[at]);
            at += length;
        }
        numbers.sort_unstable();
        (numbers, most)
    }

    #[test]
    fn a_client_that_reads_late_gets_each_reply_whole_and_once() {
        let mut has_stayed = false;
        // The pipe is full amid a reply of any round, the last one too.
        for rounds in 1..=15 {
            for (reads, writes) in [(0, 0), (rounds / 2, 0), (rounds, 0), (rounds, rounds), (3, 7)]
            {
                let (numbers, rest) = replied(rounds, reads.min(rounds), writes.min(rounds));
                assert_eq!(numbers, (0..rounds * EACH).collect::<Vec<_>>(), "{reads}, {writes}");
                has_stayed |= rest > 0;
            }
        }
        assert!(has_stayed);
    }

    #[test]
    fn small_replies_are_sent_before_asking_returns() {
        let (server, _client) = UnixStream::pair().unwrap();
        let (to, replies) = std::sync::mpsc::channel();
        let (out, pipe) = (Outbox::new(to), Pipe::new(Stream::Open(Socket::from(server))));
        send_during(&out, &pipe, || out.send(reply(1), None));
        assert!(replies.try_recv().is_err(), "the writer has nothing to do");
        out.send(reply(2), None);
        assert!(replies.try_recv().is_ok(), "nobody asks now");
    }
}
