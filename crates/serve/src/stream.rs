//! A connection of an NBD client, in the open or encrypted.

use std::io::{self, Read, Write};
use std::time::Duration;

use crate::listen::Socket;
use crate::tls::{Tls, TlsStream};

/// A connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Open(Socket),
    Tls(TlsStream),
}

impl Stream {
    pub(crate) const fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Goes on encrypted, if it is not yet.
    pub(crate) fn encrypt(&mut self, tls: &Tls) -> io::Result<()> {
        if let Self::Open(socket) = self {
            *self = Self::Tls(tls.accept(socket.try_clone()?)?);
        }
        Ok(())
    }

    const fn socket(&self) -> &Socket {
        match self {
            Self::Open(socket) => socket,
            Self::Tls(stream) => stream.socket(),
        }
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Open(socket) => Self::Open(socket.try_clone()?),
            Self::Tls(stream) => Self::Tls(stream.try_clone()?),
        })
    }

    /// How long a read waits at most.
    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket().set_read_timeout(timeout)
    }

    /// Ends it, for both sides and for all who wait for it.
    pub(crate) fn close(&self) {
        self.socket().close();
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
        Ok(())
    }
}
