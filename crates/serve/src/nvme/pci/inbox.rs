//! Messages of a client, with the files that come along.

use std::io::{self, ErrorKind, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leyden_nvme::pci::{FILES_MOST, HEADER_BYTES, Header};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use zerocopy::FromBytes;

use super::PciError;
use crate::clock::wall;
use crate::negotiating::is_a_tick;
use crate::stream::{PATIENCE, TICK};

/// A message.
pub(super) struct Message {
    pub(super) header: Header,
    pub(super) body: Vec<u8>,
    pub(super) files: Vec<OwnedFd>,
}

/// See the module.
pub(super) struct Inbox {
    stream: Arc<UnixStream>,
    /// A first message has come until then.
    deadline: Option<Instant>,
}

impl Inbox {
    /// A client has `time` for its first message.
    ///
    /// # Errors
    /// If the socket takes no timeout.
    pub(super) fn new(stream: Arc<UnixStream>, time: Duration) -> io::Result<Self> {
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(TICK))?;
        Ok(Self { stream, deadline: Some(wall() + time) })
    }

    /// The next message; `None` if the client has gone.
    ///
    /// # Errors
    /// If it is none, or takes too long.
    pub(super) fn next(&mut self) -> Result<Option<Message>, PciError> {
        let (mut head, mut files, mut came) = ([0; HEADER_BYTES], Vec::new(), 0);
        while came < HEADER_BYTES {
            let count = self.read(|stream| receive(stream, &mut head[came..], &mut files))?;
            if count == 0 && came == 0 {
                return Ok(None);
            }
            if count == 0 {
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            self.deadline.get_or_insert_with(|| wall() + PATIENCE);
            came += count;
        }
        let Ok(header) = Header::read_from_bytes(&head) else { return Err(PciError::Message) };
        let mut body = vec![0; header.follows().ok_or(PciError::Message)?];
        let mut rest = &mut body[..];
        while !rest.is_empty() {
            let count = self.read(|mut stream| stream.read(rest))?;
            if count == 0 {
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            rest = &mut rest[count..];
        }
        self.deadline = None;
        Ok(Some(Message { header, body, files }))
    }

    /// Reads until something comes, or the deadline.
    fn read(&self, mut read: impl FnMut(&UnixStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match read(&self.stream) {
                Err(error) if is_a_tick(&error) || error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
            if self.deadline.is_some_and(|deadline| wall() > deadline) {
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    "the rest of a message does not come",
                ));
            }
        }
    }
}

/// Reads bytes, and files that come with the first of them. Files beyond [`FILES_MOST`] are closed.
fn receive(stream: &UnixStream, bytes: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MOST))];
    let mut along = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(bytes)];
    let received = rustix::net::recvmsg(stream, &mut into, &mut along, RecvFlags::CMSG_CLOEXEC)?;
    for message in along.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights.take(FILES_MOST - files.len()));
        }
    }
    Ok(received.bytes)
}
