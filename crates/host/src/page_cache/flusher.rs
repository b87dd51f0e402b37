//! Writing dirty pages out: which, when, and what follows.
//!
//! **Invariants**
//! - `writable` holds exactly the pages that are dirty and not being written: so no page has two
//!   writes under way.
//! - `dirty` and `writeback` count the pages in these states. A page that is written to again while it
//!   is being written is both, as in Linux.

use std::collections::VecDeque;

use leyden_device::{BlockDevice, Command, Lba, Payload, Status};
use leyden_sim::{Span, Time};

use super::PageCache;
use super::config::{Limits, PageCacheConfig};
use super::epochs::{Epoch, Epochs};
use super::pages::PageId;
use super::requests::{Below, RequestId, Stage};
use crate::set::PageSet;

/// The dirty pages, and the flusher's progress.
#[derive(Debug)]
pub(super) struct Flusher {
    interval: Span,
    expire: Span,
    depth: u32,
    pages: u32,
    pub(super) limits: Limits,
    pub(super) writable: PageSet,
    pub(super) dirty: u32,
    pub(super) writeback: u32,
    pub(super) epochs: Epochs,
    /// Write commands under way.
    in_flight: u32,
    /// Where the flusher goes on (`mapping->writeback_index`).
    cursor: u32,
    /// Old data is being written: pages of the drive that are left to go over.
    lap: Option<u64>,
    /// When old data is next looked for, if anything is dirty then and no lap is under way.
    wake: Time,
    last_wake: Time,
    /// A walk over everything up to an epoch, for a flush: where it goes on.
    pub(super) sync: Option<(u32, Epoch)>,
    /// Pages that a flush waits for, and that were being written when its walk came by.
    retry: VecDeque<u32>,
    /// A page was lost since the last flush.
    pub(super) failed: bool,
    /// Pages that were lost, and not yet asked for.
    lost: PageSet,
    /// Pages that were lost, and of whose file no flush has said so.
    unsynced: PageSet,
}

impl Flusher {
    pub(super) fn new(config: &PageCacheConfig, limits: Limits, pages: u32) -> Self {
        Self {
            interval: config.writeback_interval,
            expire: config.expire,
            depth: config.writeback_depth,
            pages,
            limits,
            writable: PageSet::new(pages as usize),
            dirty: 0,
            writeback: 0,
            epochs: Epochs::new(),
            in_flight: 0,
            cursor: 0,
            lap: None,
            wake: Time::MAX,
            last_wake: Time::ZERO,
            sync: None,
            retry: VecDeque::new(),
            failed: false,
            lost: PageSet::new(pages as usize),
            unsynced: PageSet::new(pages as usize),
        }
    }

    /// Forgets everything but where it was.
    pub(super) fn clear(&mut self) {
        self.writable.clear();
        self.retry.clear();
        (self.dirty, self.writeback, self.in_flight) = (0, 0, 0);
        (self.lap, self.sync, self.failed) = (None, None, false);
        self.lost.clear();
        self.unsynced.clear();
        self.epochs = Epochs::new();
    }

    /// When old data is next looked for.
    #[inline]
    pub(super) fn next_event(&self) -> Option<Time> {
        let waits = self.dirty > 0 && self.lap.is_none() && self.interval != Span::ZERO;
        waits.then_some(self.wake)
    }

    /// The file is dirty since `now`: nothing was before, or all of it has been gone over.
    pub(super) fn dirty_since(&mut self, now: Time) {
        let Some(interval) = std::num::NonZeroU64::new(self.interval.as_ns()) else { return };
        // The flusher wakes at multiples of the interval; before the data is old it finds nothing.
        let old = now + self.expire;
        let wake = old.as_ns().div_ceil(interval.get()).saturating_mul(interval.get());
        self.wake = Time::from_ns(wake).max(self.last_wake + self.interval);
    }

    /// Begins to write old data, if it is time to.
    pub(super) fn wake(&mut self, now: Time) -> bool {
        let wakes = self.next_event().is_some_and(|event| event <= now);
        if wakes {
            self.last_wake = now;
            self.lap = Some(self.pages.into());
        }
        wakes
    }

    /// Data written to these pages has not reached the device: the next flush fails.
    pub(super) fn lose(&mut self, first: u32, end: u32) {
        self.failed = true;
        for number in first..end {
            self.lost.insert(number);
            self.unsynced.insert(number);
        }
    }

    /// True if a page of the range was lost since a file's flush last said so. A flush of everything says so once
    /// more, as each open file does in Linux (`errseq_t`).
    pub(super) fn take_unsynced(&mut self, first: u32, end: u32) -> bool {
        let mut any = false;
        while let Some(number) = self.unsynced.next(first).filter(|&number| number < end) {
            self.unsynced.remove(number);
            any = true;
        }
        any
    }

    /// True if the device below takes another write of pages.
    pub(super) const fn has_room(&self) -> bool {
        self.in_flight < self.depth
    }

    /// The first dirty page of a range that is not being written.
    pub(super) fn first_writable(&self, first: u32, end: u32) -> Option<u32> {
        self.writable.next(first).filter(|&number| number < end)
    }

    /// Takes the lost pages out, in order.
    pub(super) fn take_lost(&mut self) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Some(number) = self.lost.next(0) {
            self.lost.remove(number);
            numbers.push(number);
        }
        numbers
    }

    /// Too much is dirty for writers to go on.
    #[inline]
    pub(super) fn is_over_limit(&self) -> bool {
        self.dirty + self.writeback > self.limits.dirty
    }

    /// The next page on the flusher's way, if it has reason to write; `pressed` if a page is needed.
    fn next_page(&mut self, now: Time, pressed: bool) -> Option<u32> {
        let has_reason = pressed || self.dirty > self.limits.background;
        if !has_reason && self.lap.is_none() {
            return None;
        }
        let next = self.writable.next(self.cursor).or_else(|| self.writable.next(0));
        if let Some(left) = self.lap {
            let way = next.map_or(u64::MAX, |next| match next.checked_sub(self.cursor) {
                Some(way) => way.into(),
                None => u64::from(self.pages - self.cursor) + u64::from(next),
            });
            if way < left {
                self.lap = Some(left - way);
                return next;
            }
            // All has been gone over. What has become dirty behind it is not old yet.
            self.lap = None;
            self.dirty_since(now);
        }
        next.filter(|_| has_reason)
    }

    /// The flusher has written `count` pages from `first` on.
    fn pass(&mut self, first: u32, count: u32) {
        self.cursor = if first + count < self.pages { first + count } else { 0 };
        self.lap = self.lap.map(|left| left.saturating_sub(count.into()));
    }
}

impl<P: Payload, D: BlockDevice<P>> PageCache<P, D> {
    /// Writes out what has to be, as far as the queue has room.
    pub(super) fn pump(&mut self, now: Time) {
        while self.flusher.has_room() {
            if let Some(number) = self.next_retry().or_else(|| self.next_for_flush()) {
                self.write_back(now, number, self.drive_pages, None);
                continue;
            }
            let pressed = !self.starved.is_empty();
            let Some(number) = self.flusher.next_page(now, pressed) else { break };
            let count = self.write_back(now, number, self.drive_pages, None);
            self.flusher.pass(number, count);
        }
    }

    fn next_retry(&mut self) -> Option<u32> {
        loop {
            let number = self.flusher.retry.pop_front()?;
            if self.flusher.writable.contains(number) {
                return Some(number);
            }
        }
    }

    /// The next page on the walk for a flush.
    fn next_for_flush(&mut self) -> Option<u32> {
        loop {
            let (cursor, target) = self.flusher.sync?;
            if let Some(number) = self.flusher.writable.next(cursor) {
                self.flusher.sync = Some((number + 1, target));
                let page = self.pages.find(number)?;
                if self.pages.get(page).dirty_epoch <= target {
                    return Some(number);
                }
            } else {
                // Flushes that came meanwhile.
                let newest = self.flushes.back().map(|&(epoch, _)| epoch);
                self.flusher.sync = newest.filter(|&epoch| epoch > target).map(|epoch| (0, epoch));
            }
        }
    }

    /// Writes out page `first`, which is writable, and the pages after it and before `end` that the
    /// same write of the host's has made dirty. Returns how many.
    pub(super) fn write_back(
        &mut self,
        now: Time,
        first: u32,
        end: u32,
        owner: Option<RequestId>,
    ) -> u32 {
        let (mut count, mut write) = (0, 0);
        let mut first_page = PageId(0);
        while first + count < end
            && self.flusher.writable.contains(first + count)
            && let Some(id) = self.pages.find(first + count)
        {
            let page = self.pages.get_mut(id);
            if count == 0 {
                first_page = id;
                write = page.write;
            } else if page.write != write {
                break;
            }
            (page.dirty, page.writeback) = (false, true);
            page.writeback_epoch = page.dirty_epoch;
            self.flusher.writable.remove(first + count);
            count += 1;
        }
        debug_assert!(count > 0, "page {first} is writable");
        self.flusher.dirty -= count;
        self.flusher.writeback += count;
        self.flusher.in_flight += 1;
        self.stats.writebacks += 1;
        self.stats.written_back_pages += u64::from(count);
        let tag = self.commands.insert(Below::Writeback { first_page, first, count, owner });
        let is_fua = owner.is_some_and(|owner| self.requests.get(owner).fua);
        let (lba, sectors) = self.sectors_of(first, count);
        let data = self.content_of(first, count);
        let command = Command::write(lba, sectors, data).fua(is_fua).tag(tag);
        self.device.submit(now, command);
        count
    }

    /// The data of a write of cached pages.
    fn content_of(&self, first: u32, count: u32) -> P::WriteData {
        if !P::STORED {
            return P::WriteData::default();
        }
        let pages = (first..first + count).filter_map(|number| self.pages.find(number));
        P::data_of(pages.map(|page| &self.pages.get(page).content), self.unit_sectors as u32)
    }

    /// A write of pages has ended.
    pub(super) fn written_back(
        &mut self,
        now: Time,
        first_page: PageId,
        first: u32,
        count: u32,
        owner: Option<RequestId>,
        status: Status,
    ) {
        self.flusher.writeback -= count;
        self.flusher.in_flight -= 1;
        let flushed = self.flushes.back().map(|&(epoch, _)| epoch);
        for number in first..first + count {
            let id = if number == first { Some(first_page) } else { self.pages.find(number) };
            let Some(id) = id else { unreachable!("page {number} was being written") };
            let page = self.pages.get_mut(id);
            debug_assert_eq!(page.number, number);
            page.writeback = false;
            self.flusher.epochs.remove(page.writeback_epoch);
            if !page.dirty {
                self.pages.unpark(id);
                if status != Status::Success {
                    self.requests.fail_persisting(number);
                }
                continue;
            }
            self.flusher.writable.insert(number);
            if flushed.is_some_and(|epoch| page.dirty_epoch <= epoch) {
                self.flusher.retry.push_back(number);
            }
        }
        if status != Status::Success {
            self.stats.failed_pages += u64::from(count);
            // Also with FUA: the page may hold what another write has put there.
            self.flusher.lose(first, first + count);
        }
        if let Some(request) = owner {
            self.persisted(now, request, status);
        }
    }

    /// Lets writers go on when little enough is dirty.
    pub(super) fn release_throttled(&mut self, now: Time) {
        if self.flusher.is_over_limit() {
            return;
        }
        while let Some(id) = self.throttled.pop_front() {
            let request = self.requests.get_mut(id);
            request.stage = Stage::Done;
            self.stats.throttled += now - request.since;
            self.timers.schedule(now, id.0);
        }
    }

    /// Where pages lie, in sectors.
    #[inline]
    pub(super) fn sectors_of(&self, first: u32, count: u32) -> (Lba, u32) {
        let sectors = u64::from(count) * self.unit_sectors;
        (Lba(u64::from(first) * self.unit_sectors), sectors as u32)
    }
}
