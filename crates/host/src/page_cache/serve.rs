//! Reads and writes of the host's, through the cache.
//!
//! A request goes from page to page. It stops where it needs a page and none can make room (it is
//! starved), and goes on when one can; so a request may be larger than the cache.

use std::ops::Range;

use leyden_device::{BlockDevice, Command, Hint, Op, Payload, Status, Units};
use leyden_sim::Time;

use super::PageCache;
use super::pages::Page;
use super::requests::{Below, Fill, NOBODY, Request, RequestId, Requests, Stage};

impl<P: Payload, D: BlockDevice<P>> PageCache<P, D> {
    /// Goes on with a request whose turn it is. False if it is starved.
    pub(super) fn proceed(&mut self, now: Time, id: RequestId) -> bool {
        match self.requests.get(id).stage {
            Stage::Reading => self.read(now, id),
            Stage::Preparing => self.prepare(now, id),
            Stage::Writing => self.write(now, id),
            stage => unreachable!("a request that is {stage:?} needs no pages"),
        }
    }

    /// Goes on with a request that is new or has been stopped.
    pub(super) fn start(&mut self, now: Time, id: RequestId) {
        if !self.proceed(now, id) {
            self.requests.get_mut(id).starved = true;
            self.starved.push_back(id);
            self.stats.starved += 1;
        }
    }

    /// Lets starved requests go on while there are pages.
    pub(super) fn feed(&mut self, now: Time) {
        while let Some(&id) = self.starved.front() {
            if !self.proceed(now, id) {
                break;
            }
            self.starved.pop_front();
            self.requests.get_mut(id).starved = false;
        }
    }

    /// Takes pages that are cached; reads runs of others.
    fn read(&mut self, now: Time, id: RequestId) -> bool {
        let Request { first, count, units, .. } = *self.requests.get(id);
        let mut run: Option<(u32, u32)> = None; // the fill's tag, and its pages
        let mut next = self.requests.get(id).next;
        let mut starved = false;
        while next < count && self.requests.get(id).status == Status::Success {
            let number = first + next;
            if let Some(page) = self.pages.find(number) {
                self.submit_fill(now, run.take());
                self.pages.touch(page);
                let page = self.pages.get(page);
                if page.uptodate {
                    self.stats.hits += 1;
                    if P::STORED {
                        let read = &mut self.requests.get_mut(id).read;
                        P::gather(read, units.part(next), &page.content);
                    }
                } else {
                    self.stats.misses += 1;
                    self.commands.wait(page.fill, id, number);
                    self.requests.get_mut(id).pending += 1;
                }
            } else if let Some(page) = self.pages.add(number) {
                let (tag, pages) = run.unwrap_or_else(|| {
                    self.requests.get_mut(id).pending += 1;
                    let fill = Fill { first: number, count: 0, owner: id, waiters: NOBODY };
                    (self.commands.insert(Below::Fill(fill)), 0)
                });
                self.stats.misses += 1;
                let page = self.pages.get_mut(page);
                (page.filling, page.fill) = (true, tag);
                run = Some((tag, pages + 1));
            } else {
                starved = true;
                break;
            }
            next += 1;
        }
        self.submit_fill(now, run);
        let request = self.requests.get_mut(id);
        request.next = next;
        if !starved && request.pending == 0 {
            self.read_ended(now, id);
        }
        !starved
    }

    fn read_ended(&mut self, now: Time, id: RequestId) {
        let request = self.requests.get_mut(id);
        let pages = u64::from(request.count);
        if request.status != Status::Success {
            request.read = P::ReadData::default();
        }
        self.end(now + self.page_io.saturating_mul(pages), id);
    }

    /// Sends the read of a run of pages.
    fn submit_fill(&mut self, now: Time, run: Option<(u32, u32)>) {
        let Some((tag, pages)) = run else { return };
        if let Below::Fill(Fill { first, count, .. }) = self.commands.get_mut(tag) {
            *count = pages;
            let first = *first;
            let (lba, sectors) = self.sectors_of(first, pages);
            self.device.submit(now, Command::read(lba, sectors).tag(tag));
        }
    }

    /// Pages have been read, for `owner` and those that wait for them too.
    pub(super) fn filled(
        &mut self,
        now: Time,
        fill: Fill,
        status: Status,
        data: Option<&P::ReadData>,
    ) {
        let Fill { first, count, owner, mut waiters } = fill;
        let (lba, sectors) = self.sectors_of(first, count);
        let units = Units::new(lba.0, sectors.into(), self.unit_sectors);
        let requests = &mut self.requests;
        for index in 0..count {
            let Some(id) = self.pages.find(first + index) else {
                unreachable!("page {} was being filled", first + index)
            };
            let page = self.pages.get_mut(id);
            page.filling = false;
            // Data written meanwhile is newer.
            if status == Status::Success && !page.uptodate {
                page.uptodate = true;
                if P::STORED
                    && let Some(data) = data
                {
                    page.content = P::unit(data, units.part(index));
                }
            }
            if !page.uptodate {
                self.pages.remove(id);
                continue;
            }
            hand_over(requests, owner, page);
            for (request, number) in self.commands.waiters(waiters) {
                if number == first + index {
                    hand_over(requests, request, page);
                }
            }
            if !page.dirty && !page.writeback {
                self.pages.unpark(id);
            }
        }
        self.fill_ended(now, owner, status);
        while let Some((request, _)) = self.commands.pop_waiter(&mut waiters) {
            self.fill_ended(now, request, status);
        }
    }

    /// Something that `id` waits for has ended.
    fn fill_ended(&mut self, now: Time, id: RequestId, status: Status) {
        let request = self.requests.get_mut(id);
        request.pending -= 1;
        if status != Status::Success {
            request.status = status;
        }
        if request.pending > 0 || request.starved {
            return; // goes on when it is fed
        }
        match request.stage {
            Stage::Reading => self.read_ended(now, id),
            Stage::Writing if status != Status::Success => self.end(now, id),
            _ => self.start(now, id),
        }
    }

    /// Brings in the pages that a write covers in part.
    fn prepare(&mut self, now: Time, id: RequestId) -> bool {
        let parts = self.requests.get(id).partial();
        for number in parts.skip(self.requests.get(id).next as usize) {
            if !self.bring_in(now, id, number) {
                return false;
            }
            self.requests.get_mut(id).next += 1;
        }
        let request = self.requests.get_mut(id);
        if request.pending > 0 {
            return true;
        }
        if request.status != Status::Success {
            self.end(now, id);
            return true;
        }
        (request.stage, request.next) = (Stage::Writing, 0);
        self.write(now, id)
    }

    /// Has `id` wait for a page that it covers in part, unless it is here. False if no page can make room.
    fn bring_in(&mut self, now: Time, id: RequestId, number: u32) -> bool {
        if let Some(page) = self.pages.find(number) {
            let page = self.pages.get(page);
            if !page.uptodate {
                self.commands.wait(page.fill, id, number);
                self.requests.get_mut(id).pending += 1;
            }
        } else if let Some(page) = self.pages.add(number) {
            let fill = Fill { first: number, count: 1, owner: id, waiters: NOBODY };
            let tag = self.commands.insert(Below::Fill(fill));
            let page = self.pages.get_mut(page);
            (page.filling, page.fill) = (true, tag);
            self.stats.partial_reads += 1;
            self.requests.get_mut(id).pending += 1;
            self.submit_fill(now, Some((tag, 1)));
        } else {
            return false;
        }
        true
    }

    /// Takes the data of a write in. Clean pages become dirty, and are announced.
    fn write(&mut self, now: Time, id: RequestId) -> bool {
        let request = self.requests.get(id);
        let (first, count, fua) = (request.first, request.count, request.fua);
        let (units, write) = (request.units, request.write);
        let mut next = request.next;
        let mut announced = first + next..first + next; // clean neighbours that became dirty
        while next < count {
            let number = first + next;
            if units.is_partial(next) {
                // It may have been evicted since it was brought in.
                let has_room = self.bring_in(now, id, number);
                if !has_room || self.requests.get(id).pending > 0 {
                    break;
                }
            }
            let page = if let Some(page) = self.pages.find(number) {
                self.pages.touch(page);
                page
            } else if let Some(page) = self.pages.add(number) {
                page
            } else {
                break;
            };
            let page = self.pages.get_mut(page);
            page.uptodate = true;
            page.write = write;
            if P::STORED {
                let (data, part) = (&self.requests.get(id).data, units.part(next));
                page.content = if part.is_whole() {
                    P::written(data, part)
                } else {
                    P::merged(&page.content, data, part)
                };
            }
            if page.dirty {
                self.stats.rewritten_pages += 1;
            } else {
                page.dirty = true;
                page.dirty_epoch = self.flusher.epochs.add();
                if !page.writeback {
                    self.flusher.writable.insert(number);
                }
                if self.flusher.dirty == 0 {
                    self.flusher.dirty_since(now);
                }
                self.flusher.dirty += 1;
                self.stats.dirtied_pages += 1;
                if announced.end != number {
                    self.announce_pages(now, announced, fua);
                    announced = number..number;
                }
                announced.end += 1;
            }
            next += 1;
        }
        self.announce_pages(now, announced, fua);
        self.stats.dirty_peak.raise_to(self.flusher.dirty);
        let request = self.requests.get_mut(id);
        request.next = next;
        if next < count {
            return request.pending > 0; // else it is starved
        }
        if fua {
            (request.stage, request.next) = (Stage::Persisting, 0);
            self.persisting.push_back(id);
        } else {
            request.stage = Stage::Copied;
            let copied = now + self.page_io.saturating_mul(count.into());
            self.timers.schedule(copied, id.0);
        }
        true
    }

    /// Tells those below that pages will be overwritten (Zombie Chasing, 4.3.1: `vfs_write` does so
    /// when the data is in the page cache). What is written out at once is not worth it.
    fn announce_pages(&mut self, now: Time, pages: Range<u32>, fua: bool) {
        if !pages.is_empty() && !fua {
            let (lba, sectors) = self.sectors_of(pages.start, pages.end - pages.start);
            for hint in Hint::covering(lba, sectors) {
                self.device.announce(now, hint);
            }
        }
    }
}

/// Gives a page's content to a read.
fn hand_over<P: Payload>(requests: &mut Requests<P>, id: RequestId, page: &Page<P>) {
    let request = requests.get_mut(id);
    if P::STORED && request.op == Op::Read {
        let part = request.units.part(page.number - request.first);
        P::gather(&mut request.read, part, &page.content);
    }
}
