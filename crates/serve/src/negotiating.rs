//! A connection until a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use crate::clock::wall;
use crate::listen::Socket;

/// A stream until `deadline`, however the bytes trickle.
#[derive(Debug)]
pub(crate) struct Negotiating<'a, S> {
    pub(crate) stream: &'a mut S,
    pub(crate) socket: Socket,
    pub(crate) deadline: Instant,
}

impl<'a> Negotiating<'a, Socket> {
    pub(crate) fn of_socket(stream: &'a mut Socket, time: Duration) -> Self {
        let socket = stream.clone();
        Self { stream, socket, deadline: wall() + time }
    }
}

impl<S> Negotiating<'_, S> {
    /// Another deadline, from now on.
    pub(crate) fn extend(&mut self, time: Duration) {
        self.deadline = wall() + time;
    }

    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Lets the next read or write wait until the deadline.
    fn wait(&self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(wall());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "it takes too long"));
        }
        self.socket.set_timeout(Some(left))
    }
}

impl<S: Read> Read for Negotiating<'_, S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait()?;
            match self.stream.read(bytes) {
                Err(error) if is_a_tick(&error) => {}
                read => return read,
            }
        }
    }
}

impl<S: Write> Write for Negotiating<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait()?;
        self.stream.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.wait()?;
        self.stream.flush()
    }
}

/// A socket's timeout is told so.
pub(crate) fn is_a_tick(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}
