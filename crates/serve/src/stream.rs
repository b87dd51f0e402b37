//! A connection of a client: in the open or encrypted, and how long it may take.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::budget::{GATHERED, Window};
use crate::clock::wall;
use crate::listen::Socket;
use crate::negotiating::{Negotiating, is_a_tick};
use crate::tls::{Tls, TlsStream};

/// How often a connection that waits looks at its limits.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// The time for [`GATHERED`] bytes of a request or a reply.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The same, while others wait for the memory that this connection has.
const HURRY: Duration = Duration::from_secs(1);

/// A connection. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) enum Stream {
    Open(Socket),
    Tls(TlsStream),
}

impl Stream {
    pub(crate) const fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Goes on encrypted, if it is not yet.
    fn encrypt(&mut self, tls: &Tls, socket: Negotiating<'_, Socket>) -> io::Result<()> {
        if let Self::Open(_) = self {
            *self = Self::Tls(tls.accept(socket)?);
        }
        Ok(())
    }

    pub(crate) const fn socket(&self) -> &Socket {
        match self {
            Self::Open(socket) => socket,
            Self::Tls(stream) => stream.socket(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Open(socket) => socket.read(bytes),
            Self::Tls(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Open(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Open(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

impl<'a> Negotiating<'a, Stream> {
    pub(crate) fn new(stream: &'a mut Stream, time: Duration) -> Self {
        let socket = stream.socket().clone();
        Self { stream, socket, deadline: wall() + time }
    }

    /// Goes on encrypted; the time for that is of the same deadline.
    pub(crate) fn encrypt(&mut self, tls: &Tls) -> io::Result<()> {
        let mut socket = self.socket.clone();
        let (own, deadline) = (self.socket.clone(), self.deadline);
        self.stream.encrypt(tls, Negotiating { stream: &mut socket, socket: own, deadline })
    }
}

/// How long a request or a reply takes to pass.
#[derive(Debug, Default)]
struct Passing {
    since: Option<Instant>,
    bytes: usize,
}

impl Passing {
    /// So many bytes have passed, of a message that is not whole.
    ///
    /// # Errors
    /// If it takes too long.
    fn passed(&mut self, bytes: usize, window: &Window, what: &str) -> io::Result<()> {
        let now = wall();
        self.bytes += bytes;
        let since = *self.since.get_or_insert(now);
        if self.bytes >= GATHERED {
            *self = Self { since: Some(now), bytes: 0 };
            return Ok(());
        }
        let taken = now.duration_since(since);
        if taken > PATIENCE || taken > HURRY && window.is_in_the_way() {
            return Err(io::Error::new(ErrorKind::TimedOut, what));
        }
        Ok(())
    }
}

/// A stream that is read for as long as its client keeps going.
#[derive(Debug)]
pub(crate) struct Reader {
    stream: Stream,
    window: Arc<Window>,
    /// Of a request that is not whole; `None` between two, where a client may be silent.
    passing: Option<Passing>,
    /// When something was read last.
    came_in: Instant,
}

impl Reader {
    /// # Errors
    /// If the socket takes no timeout.
    pub(crate) fn new(stream: Stream, window: Arc<Window>) -> io::Result<Self> {
        stream.socket().set_timeout(Some(TICK))?;
        Ok(Self { stream, window, passing: None, came_in: wall() })
    }

    pub(crate) fn begin(&mut self) {
        self.passing = Some(Passing::default());
    }

    pub(crate) fn end(&mut self) {
        self.passing = None;
    }

    /// True if its client has closed it.
    pub(crate) fn is_gone(&self) -> bool {
        self.stream.socket().is_gone()
    }

    /// When what was read last had come in.
    pub(crate) const fn came_in(&self) -> Instant {
        self.came_in
    }
}

impl Read for Reader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some(passing) = &mut self.passing {
            passing.since.get_or_insert_with(wall);
        }
        loop {
            let count = match self.stream.read(bytes) {
                Err(error) if is_a_tick(&error) => 0,
                Err(error) => return Err(error),
                Ok(0) => return Ok(0),
                Ok(count) => count,
            };
            if let Some(passing) = &mut self.passing {
                passing.passed(count, &self.window, "the rest of a request does not come")?;
            }
            if count > 0 {
                self.came_in = wall();
                return Ok(count);
            }
        }
    }
}

/// Sends all of `bytes`, to a client that takes them at some speed.
pub(crate) fn send(stream: &mut Stream, mut bytes: &[u8], window: &Window) -> io::Result<()> {
    let mut passing = Passing::default();
    let what = "replies are not read";
    loop {
        let count = match stream.write(bytes) {
            Err(error) if is_a_tick(&error) => 0,
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            count => count?,
        };
        bytes = &bytes[count..];
        if bytes.is_empty() {
            break;
        }
        passing.passed(count, window, what)?;
    }
    loop {
        match stream.flush() {
            Err(error) if is_a_tick(&error) => passing.passed(0, window, what)?,
            flushed => return flushed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// A byte each 50 ms, for ever: each read is in time, and all of them are not.
    #[test]
    fn bytes_that_trickle_do_not_extend_a_deadline() {
        let (server, mut client) = UnixStream::pair().unwrap();
        let began = wall();
        std::thread::scope(|scope| {
            let trickle = scope.spawn(move || {
                while client.write_all(&[0]).is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let mut stream = Stream::Open(Socket::from(server));
            let mut negotiating = Negotiating::new(&mut stream, Duration::from_millis(400));
            let error = negotiating.read_exact(&mut [0; 1_000]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            stream.socket().close();
            trickle.join().unwrap();
        });
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }

    #[test]
    fn a_message_that_does_not_move_is_given_up_and_one_that_does_is_not() {
        let budget = Arc::new(crate::budget::Budget::new(crate::budget::Limits::default()));
        let window = Window::new(budget, 1);
        let past = |ago: Duration| Passing { since: wall().checked_sub(ago), bytes: 0 };
        assert!(past(PATIENCE * 2).passed(0, &window, "it").is_err());
        assert!(past(PATIENCE * 2).passed(GATHERED, &window, "it").is_ok());
        assert!(past(PATIENCE / 2).passed(1, &window, "it").is_ok());
    }
}
