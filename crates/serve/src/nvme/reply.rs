//! Replies to commands of one queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use leyden_nvme::wire::{Cqe, Sqe};
use leyden_nvme::{Connected, Status, tcp};

use super::CutMode;
use super::house::Shared;
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
    pub(super) out: Outbox,
    pub(super) socket: Socket,
    pub(super) terms: tcp::Terms,
    pub(super) queue: Option<Connected>,
    pub(super) head: Arc<Head>,
    pub(super) sqe: Sqe,
    pub(super) permit: Option<Permit>,
}

impl Replier {
    /// It has ended so.
    pub(super) fn end(mut self, status: Status, result: u64) {
        if let Some(queue) = self.queue.filter(|_| !status.is_success() && self.sqe.opcode != 0x7f)
        {
            let mut state = self.shared.lock();
            state.subsystem.failed(queue.controller, queue.queue, &self.sqe, status);
        }
        let permit = self.permit.take();
        self.out.send(Encoded::new(self.completion(status, result), Vec::new()), permit);
    }

    /// It has ended well, with this data.
    pub(super) fn data(mut self, data: Vec<u8>, result: u64) {
        if data.is_empty() {
            return self.end(Status::SUCCESS, result);
        }
        let without = self.queue.is_some_and(|it| it.no_flow_control) && result == 0;
        let head = tcp::data_head(self.terms, self.sqe.cid.get(), data.len(), without);
        let mut tail = Vec::new();
        if self.terms.data_digest {
            tail.extend(tcp::digest(&data));
        }
        if !without {
            tail.extend(self.completion(Status::SUCCESS, result));
        }
        let permit = self.permit.take();
        self.out.send(Encoded { head, data, tail }, permit);
    }

    fn completion(&self, status: Status, result: u64) -> Vec<u8> {
        let has_head = self.queue.is_none_or(|it| !it.no_flow_control);
        let head = if has_head { self.head.get() } else { 0 };
        let (cid, status) = (self.sqe.cid, status.field().into());
        let cqe = Cqe { result: result.into(), head: head.into(), cid, status, ..Cqe::default() };
        tcp::response(self.terms, cqe)
    }

    /// A drive has failed to do it. Without power that looks as the server was told.
    pub(super) fn failed(self, failure: Failure) {
        let is_cut = failure == Failure::PowerLost;
        let is_off = failure == Failure::Drive(leyden_device::Status::NotReady);
        let cut = self.shared.cut;
        match cut {
            _ if !is_cut && !is_off => self.end(status_of(failure), 0),
            CutMode::Hang | CutMode::Dead => {} // it never ends
            CutMode::Lost if is_cut || self.shared.is_dark() => self.socket.close(),
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
