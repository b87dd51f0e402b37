//! Flushes, writes with FUA, direct requests, trims and zeroes: what has to be kept in order.
//!
//! A trim, or zeroes, or a direct write, has its range for itself: it waits for the requests and the writes in its range
//! that came before it, and the requests in its range that come after it wait for it. So neither
//! can a write of old data overtake it, nor a read bring old data back.

use leyden_device::{BlockDevice, Command, Op, Payload, Status};
use leyden_sim::Time;

use super::PageCache;
use super::requests::{Below, RequestId, Stage};

impl<P: Payload, D: BlockDevice<P>> PageCache<P, D> {
    /// A flush has come: what is dirty has to be written out.
    pub(super) fn flush(&mut self, id: RequestId) {
        self.requests.get_mut(id).stage = Stage::Flushing;
        let epoch = self.flusher.epochs.end();
        self.flushes.push_back((epoch, id));
        if self.flusher.sync.is_none() && !self.flusher.epochs.is_done(epoch) {
            self.flusher.sync = Some((0, epoch));
        }
    }

    /// Passes flushes on that have nothing left to wait for. One fails if a page was lost since the
    /// last (as `fsync` reports an earlier failed write once).
    ///
    /// A trim that has dropped dirty pages, and has not got below, leaves what is older than both there:
    /// a flush must not end before it. True if one has failed, which ends here.
    pub(super) fn settle_flushes(&mut self, now: Time) -> bool {
        let mut has_failed = false;
        while let Some(&(epoch, id)) = self.flushes.front()
            && self.flusher.epochs.is_done(epoch)
            && !self.has_dropped()
        {
            self.flushes.pop_front();
            if std::mem::take(&mut self.flusher.failed) {
                self.requests.get_mut(id).status = Status::WriteFault;
                self.end(now, id);
                has_failed = true;
            } else {
                self.pass(now, id, Op::Flush);
            }
        }
        has_failed
    }

    /// True if a trim has dropped pages and has not ended below.
    fn has_dropped(&self) -> bool {
        let stage = |&id: &RequestId| self.requests.get(id).stage;
        self.exclusive.iter().any(|id| matches!(stage(id), Stage::Dropped | Stage::Below))
    }

    /// True if a flush has only trims left to wait for: no further one may drop pages before it.
    fn flush_is_next(&self) -> bool {
        self.flushes.front().is_some_and(|&(epoch, _)| self.flusher.epochs.is_done(epoch))
    }

    /// Has the device below do what a request of the host's asks for.
    fn pass(&mut self, now: Time, id: RequestId, op: Op) {
        let tag = self.commands.insert(Below::Pass(id));
        let request = self.requests.get_mut(id);
        request.stage = Stage::Below;
        let (lba, sectors, data) = (request.lba, request.sectors, request.data.clone());
        let command = Command::new(op, lba, sectors, data).fua(request.fua);
        self.device.submit(now, command.tag(tag));
    }

    /// A command passed on to the device has ended; `data` is the data of a read.
    pub(super) fn passed(
        &mut self,
        now: Time,
        id: RequestId,
        status: Status,
        data: Option<&P::ReadData>,
    ) {
        let request = self.requests.get_mut(id);
        if let Some(data) = data {
            request.read = data.clone();
        }
        if request.status == Status::Success {
            request.status = status;
        }
        let is_exclusive = request.is_exclusive();
        if is_exclusive && status != Status::Success && request.has_dropped {
            // Dropped data is neither below nor replaced.
            let (first, end) = request.whole();
            self.flusher.lose(first, end);
        }
        self.end(now, id);
        if is_exclusive {
            self.exclusive.retain(|&other| other != id);
            for blocked in std::mem::take(&mut self.blocked) {
                self.admit(now, blocked);
            }
        }
    }

    /// A flush of a file, or a direct read: what is dirty of its range is written out first.
    pub(super) fn begin_sync(&mut self, id: RequestId) {
        self.requests.get_mut(id).stage = Stage::Persisting;
        self.persisting.push_back(id);
    }

    /// Writes the pages of requests with FUA out, as far as they are not being written already; and those of flushes
    /// of files and of direct reads.
    pub(super) fn persist(&mut self, now: Time) {
        for _ in 0..self.persisting.len() {
            let Some(id) = self.persisting.pop_front() else { return };
            let is_fua = self.requests.get(id).fua;
            let is_under_way =
                if is_fua { self.persist_request(now, id) } else { self.sync_request(now, id) };
            if !is_under_way {
                self.persisting.push_back(id);
            }
        }
    }

    /// Goes over the range of a flush of a file, or a direct read, once. False if a page is being written, which may
    /// be older than what it waits for, or too much is under way.
    fn sync_request(&mut self, now: Time, id: RequestId) -> bool {
        loop {
            let request = self.requests.get(id);
            let (number, end) = (request.first + request.next, request.end());
            let dirty = self.flusher.first_writable(number, end);
            let written = self.commands.first_written(number, end);
            let Some(next) = dirty.into_iter().chain(written).min() else { break };
            // Those that this request has written itself are behind it.
            self.requests.get_mut(id).next = next - self.requests.get(id).first;
            if dirty != Some(next) || !self.flusher.has_room() {
                return false;
            }
            self.requests.get_mut(id).pending += 1;
            let count = self.write_back(now, next, end, Some(id));
            self.requests.get_mut(id).next += count;
        }
        let request = self.requests.get_mut(id);
        request.next = request.count;
        if request.pending == 0 {
            self.persist_ended(now, id);
        }
        true
    }

    /// False if a page of it is being written.
    fn persist_request(&mut self, now: Time, id: RequestId) -> bool {
        loop {
            let request = self.requests.get(id);
            let (number, end) = (request.first + request.next, request.end());
            if number == end {
                break;
            }
            let page = self.pages.find(number).map(|page| self.pages.get(page));
            let count = match page {
                Some(page) if page.writeback => return false,
                Some(page) if page.dirty => {
                    self.requests.get_mut(id).pending += 1;
                    self.write_back(now, number, end, Some(id))
                }
                // Written out while the request was starved.
                _ => {
                    self.requests.get_mut(id).needs_flush = true;
                    1
                }
            };
            self.requests.get_mut(id).next += count;
        }
        if self.requests.get(id).pending == 0 {
            self.persist_ended(now, id);
        }
        true
    }

    /// A write for a request with FUA has ended.
    pub(super) fn persisted(&mut self, now: Time, id: RequestId, status: Status) {
        let request = self.requests.get_mut(id);
        request.pending -= 1;
        // A direct read finds what there is.
        if status != Status::Success && request.op != Op::Read {
            request.status = status;
        }
        if request.pending == 0 && request.next == request.count {
            self.persist_ended(now, id);
        }
    }

    fn persist_ended(&mut self, now: Time, id: RequestId) {
        let request = self.requests.get(id);
        let (first, end) = (request.first, request.end());
        match request.op {
            Op::Read => self.pass(now, id, Op::Read),
            Op::Flush if self.flusher.take_unsynced(first, end) => {
                self.requests.get_mut(id).status = Status::WriteFault;
                self.end(now, id);
            }
            _ if request.needs_flush => self.pass(now, id, Op::Flush),
            _ => self.end(now, id),
        }
    }

    /// A trim, zeroes or a direct write, whose range is its own from now on.
    pub(super) fn begin_trim(&mut self, id: RequestId) {
        self.requests.get_mut(id).stage = Stage::Draining;
        self.exclusive.push(id);
    }

    /// True if a trim has the range of `id`.
    pub(super) fn is_blocked(&self, id: RequestId) -> bool {
        let request = self.requests.get(id);
        let overlaps =
            |&other: &RequestId| self.requests.get(other).overlaps(request.first, request.end());
        self.exclusive.iter().any(overlaps)
    }

    /// Resumes trims that wait for earlier commands.
    pub(super) fn continue_trims(&mut self, now: Time) {
        for at in 0..self.exclusive.len() {
            let id = self.exclusive[at];
            let request = self.requests.get(id);
            let (first, end) = (request.first, request.end());
            if request.stage == Stage::Draining
                && !self.flush_is_next()
                && !self.requests.is_busy(first, end)
            {
                self.discard(id);
                self.requests.get_mut(id).stage = Stage::Dropped;
            }
            let request = self.requests.get(id);
            if request.stage == Stage::Dropped
                && !self.write_edges(now, id)
                && !self.commands.is_writing(first, end)
            {
                self.drop_range(id);
                let op = self.requests.get(id).op;
                self.pass(now, id, op);
            }
        }
    }

    /// The pages that a trim covers as a whole are not dirty any more.
    fn discard(&mut self, request: RequestId) {
        let (first, end) = self.requests.get(request).whole();
        for number in self.cached_in(first, end) {
            let Some(id) = self.pages.find(number) else { continue };
            let page = self.pages.get_mut(id);
            if std::mem::take(&mut page.dirty) {
                self.flusher.epochs.remove(page.dirty_epoch);
                self.flusher.writable.remove(number);
                self.flusher.dirty -= 1;
                self.stats.discarded_pages += 1;
                self.requests.get_mut(request).has_dropped = true;
            }
        }
    }

    /// A part of a page is written to what is below, so that has to be up to date. True if a page is on its way
    /// there.
    fn write_edges(&mut self, now: Time, id: RequestId) -> bool {
        let request = self.requests.get(id);
        let mut waits = false;
        if request.changes_parts() {
            for number in request.partial() {
                if self.flusher.writable.contains(number) {
                    self.write_back(now, number, number + 1, None);
                    waits = true;
                }
            }
        }
        waits
    }

    /// Lets go of the pages whose content below is about to change.
    fn drop_range(&mut self, id: RequestId) {
        let request = self.requests.get(id);
        let (first, end) = match request.op {
            _ if request.changes_parts() => (request.first, request.end()),
            _ => request.whole(), // parts of pages keep their data
        };
        for number in self.cached_in(first, end) {
            if let Some(id) = self.pages.find(number) {
                self.pages.remove(id);
            }
        }
    }

    /// The cached pages of a range, in the time that the smaller of the two takes.
    fn cached_in(&self, first: u32, end: u32) -> Vec<u32> {
        if end - first <= self.pages.len() {
            (first..end).filter(|&number| self.pages.find(number).is_some()).collect()
        } else {
            self.pages.numbers().filter(|number| (first..end).contains(number)).collect()
        }
    }
}
