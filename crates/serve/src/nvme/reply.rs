//! Replies to commands of one queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;

use leyden_nvme::pci::Taken;
use leyden_nvme::wire::{Cqe, Sqe};
use leyden_nvme::{Connected, Status, tcp};

use super::CutMode;
use super::house::{Link, Shared};
use super::pci::note::{Ended, Note};
use crate::ask::{Answer, Failure};
use crate::budget::Permit;
use crate::listen::Socket;
use crate::session::{Encoded, Outbox};

/// The head of a submission queue, as completions tell it.
#[derive(Debug, Default)]
pub(super) struct Head(AtomicU32);

impl Head {
    /// A command was taken from a queue with so many entries.
    pub(super) fn advance(&self, entries: u32) {
        // One thread takes commands.
        let next = (self.0.load(Ordering::Relaxed) + 1) % entries.max(1);
        self.0.store(next, Ordering::Relaxed);
    }

    fn get(&self) -> u16 {
        self.0.load(Ordering::Relaxed) as u16
    }
}

/// The way from the end of a command to its host.
pub(super) struct Replier {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: Option<Connected>,
    pub(super) sqe: Sqe,
    pub(super) permit: Option<Permit>,
    pub(super) way: Way,
}

/// The transport of a host.
pub(super) enum Way {
    /// A connection.
    Tcp(Tcp),
    /// A function's queues: the command as it was taken, and its function's worker.
    Pci(Taken, Sender<Note>),
}

/// A connection.
pub(super) struct Tcp {
    pub(super) out: Outbox,
    pub(super) socket: Socket,
    pub(super) terms: tcp::Terms,
    pub(super) head: Arc<Head>,
}

impl Replier {
    /// It has ended so.
    pub(super) fn end(self, status: Status, result: u64) {
        if let Some(queue) = self.queue.filter(|_| !status.is_success() && !self.sqe.is_fabrics()) {
            let mut state = self.shared.lock();
            state.subsystem.failed(queue.controller, queue.queue, &self.sqe, status);
        }
        self.send(status, result, Vec::new());
    }

    /// It has ended well, with this data.
    pub(super) fn data(self, data: Vec<u8>, result: u64) {
        self.send(Status::SUCCESS, result, data);
    }

    fn send(self, status: Status, result: u64, data: Vec<u8>) {
        let Self { queue, sqe, permit, way, .. } = self;
        match way {
            Way::Tcp(tcp) => tcp.out.send(tcp.encoded(queue, &sqe, status, result, data), permit),
            Way::Pci(taken, to) => {
                let ended = Ended { taken, status, result, data, permit };
                let _ = to.send(Note::Ended(ended)); // the client may be gone
            }
        }
    }

    /// A drive has failed to do it. Without power that looks as the server was told.
    pub(super) fn failed(self, failure: Failure) {
        let is_cut = failure == Failure::PowerLost;
        let is_off = failure == Failure::Drive(leyden_device::Status::NotReady);
        let cut = self.shared.cut;
        match cut {
            _ if !is_cut && !is_off => self.end(status_of(failure), 0),
            CutMode::Hang | CutMode::Dead => {} // it never ends
            CutMode::Lost if is_cut || self.shared.is_dark() => self.way.cut(),
            CutMode::Lost | CutMode::Error => self.end(status_of(failure), 0),
        }
    }

    /// It has ended as the drive says.
    pub(super) fn answer(self, answer: Answer) {
        match answer {
            Answer::Done | Answer::Extents(_) | Answer::Zones(_) => self.end(Status::SUCCESS, 0),
            Answer::Data(data) => self.data(data, 0),
            Answer::Appended(lba) => {
                let sectors = self.block_sectors();
                self.end(Status::SUCCESS, lba.0 / sectors);
            }
            Answer::Failed(failure) => self.failed(failure),
        }
    }

    fn block_sectors(&self) -> u64 {
        let index = self.sqe.nsid.get() as usize - 1;
        u64::from(self.shared.namespaces[index].block_bytes) / leyden_device::SECTOR_BYTES
    }
}

impl Way {
    /// The way to the host at any time.
    pub(super) fn link(&self) -> Link {
        match self {
            Self::Tcp(Tcp { out, socket, terms, .. }) => {
                Link::Tcp { terms: *terms, out: out.clone(), socket: socket.clone() }
            }
            Self::Pci(_, to) => Link::Pci(to.clone()),
        }
    }

    /// The power of the drive is gone, and with it the connection. A function is gone for its client by itself.
    fn cut(&self) {
        match self {
            Self::Tcp(tcp) => tcp.socket.close(),
            Self::Pci(..) => {}
        }
    }
}

impl Tcp {
    /// The PDUs that end a command of this queue.
    fn encoded(
        &self,
        queue: Option<Connected>,
        sqe: &Sqe,
        status: Status,
        result: u64,
        data: Vec<u8>,
    ) -> Encoded {
        let has_head = queue.is_none_or(|it| !it.no_flow_control);
        let head = if has_head { self.head.get() } else { 0 };
        let (cid, field) = (sqe.cid, status.field().into());
        let cqe =
            Cqe { result: result.into(), head: head.into(), cid, status: field, ..Cqe::default() };
        let completion = tcp::response(self.terms, cqe);
        if data.is_empty() {
            return Encoded::new(completion, data);
        }
        let without = !has_head && result == 0;
        let head = tcp::data_head(self.terms, sqe.cid.get(), data.len(), without);
        let mut tail = Vec::new();
        if self.terms.data_digest {
            tail.extend(tcp::digest(&data));
        }
        if !without {
            tail.extend(completion);
        }
        Encoded { head, data, tail }
    }
}

/// The status of a command that a drive could not do.
pub(super) fn status_of(failure: Failure) -> Status {
    match failure {
        Failure::Drive(status) => status.into(),
        Failure::PowerLost => Status::POWER_LOST,
        Failure::NoSpace => Status::CAPACITY_EXCEEDED,
        Failure::NoMemory => Status::NO_MEMORY,
        Failure::Image | Failure::Gone => Status::INTERNAL,
    }
}
