//! `harvest`: all buffered writes of one mapping page, then all of the next; what was overwritten stays.
//!
//! Beyond the papers. Hexa's authors found reordering to cost garbage collection when most of the
//! table is protected, and left a remedy open (section V). Two things cost Hexa there: writes whose
//! mapping page is dirty leave as soon as they come, a few at a time, and writes whose page is not may
//! wait for ever, so that the buffer is smaller than it seems. `harvest` does neither:
//!
//! - Next is the mapping page of the write that has waited longest, and **all** of its writes that are
//!   buffered then. They change one mapping page, so n writes cost one page written back at most,
//!   whatever else is dirty; and nothing waits for longer than the buffer takes to turn over.
//! - A page of the table is a range of addresses. A buffer that is large beside the table holds a good
//!   part of each range; it goes to a few blocks as one, and is overwritten by the next harvest of
//!   that range as one. That is why garbage collection gains, even with the whole table protected.
//! - Data that the host has overwritten twice while it waited is likely to be overwritten again. Its
//!   turn passes it over: it counts as having just come (as in the clock algorithm). This makes up for
//!   writes that leave early because an older one of their page takes them along. Once is not enough:
//!   of uniform writes a large buffer sees many twice, and keeping those back only scatters a harvest.
//! - Data written in order, like a log, has no reason to wait unless it is overwritten while it is buffered.
//!   When a mapping page has seen a **stream** as long as the dies take at once, what waits of it
//!   leaves before anything else. Only as much as the dies take at once stays, the newest: the host
//!   may still add to it. It goes too when the stream has come to the end of the page: left to wait
//!   for its turn, it would come to lie scattered among data that is overwritten at other times.
//! - A stream that comes back to a mapping page within as many arrivals as there are writes waiting is **cyclic**: a
//!   doublewrite buffer, a small journal, a redo ring. In order of arrival its data would still be buffered, so
//!   it waits for its turn like other data, until the stream comes back later than that.
//! - Data that is overwritten, but less often than the buffer turns over, is never overwritten in the
//!   buffer if the oldest goes first. So a mapping page is passed over for a turn if clearly more of
//!   it was overwritten than of the others. Each write counts once, and is forgotten at the page's
//!   turn: a page cannot stay for ever.
//!
//! The schedule need not know which mapping pages are dirty nor how many may be. O(log n) per write.
//! `docs/schedules.md` has the measurements.

use leyden_nand::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shape;
use super::heap::IndexedHeap;
use super::lists::PageLists;
use crate::SlotId;

/// How often data must be overwritten while it waits to be passed over.
const OVERWRITES: u8 = 2;
/// A mapping page is passed over if this many times as much of it was overwritten as of all pages, ...
const MORE_THAN_OTHERS: u64 = 2;
/// ... and so many writes at least: of fewer, chance may have made as many.
const AT_LEAST: u32 = 8;

/// One mapping page after the other, by its oldest write; data overwritten meanwhile stays for a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Harvest {}

/// Writes by mapping page, and the harvest under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HarvestQueue {
    lists: PageLists,
    /// The mapping pages with waiting slots, by the oldest of them or when they were passed over.
    by_age: IndexedHeap<u64>,
    /// The mapping pages that hold enough of a stream to write out.
    streams: IndexedHeap<u32>,
    pages: Vec<Page>,
    /// How often the data of each slot was overwritten since it came, up to [`OVERWRITES`].
    overwritten: Vec<u8>,
    /// The logical page of each slot.
    lpns: Vec<Lpn>,
    /// Waiting slots.
    waiting: u32,
    /// The sum of [`Page::overwritten`].
    all_overwritten: u32,
    /// As many units as the dies can be programmed with at once.
    batch_units: u32,
    entries_per_map_page: u32,
    /// The mapping page whose writes are taken: ...
    map_page: u32,
    /// ... those that arrived before this, or ...
    until: u64,
    /// ... all but the newest, without regard to what was overwritten.
    is_stream: bool,
}

/// The state of a mapping page besides its waiting slots.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Page {
    /// Units that came in order of address, ...
    run: u32,
    /// ... and the address after the last of them.
    end: u32,
    /// Waiting writes that were overwritten, since its last turn.
    overwritten: u32,
    /// When it was passed over, in arrivals.
    passed: u64,
    /// When a run last went back in it or came into it, in arrivals; of a cyclic one, when it was last overwritten.
    entered: Option<u64>,
    /// The last run came back so soon that its data would still have been buffered.
    is_cyclic: bool,
}

impl Page {
    /// Whether its data need not wait, because it is not overwritten while it is buffered.
    fn is_stream(&self, batch_units: u32) -> bool {
        self.run >= batch_units && !self.is_cyclic
    }

    /// A run goes back in the page or comes into it `now`, while `waiting` writes are buffered.
    fn enter(&mut self, now: u64, waiting: u32) {
        let is_soon = |before: u64| now - before <= u64::from(waiting);
        self.is_cyclic = self.entered.is_some_and(is_soon);
        self.entered = Some(now);
    }
}

impl HarvestQueue {
    pub(super) fn new(shape: &Shape) -> Self {
        Self {
            lists: PageLists::new(shape),
            by_age: IndexedHeap::new(shape.mapping_pages),
            streams: IndexedHeap::new(shape.mapping_pages),
            pages: vec![Page::default(); shape.mapping_pages as usize],
            overwritten: vec![0; shape.slots as usize],
            lpns: vec![Lpn(0); shape.slots as usize],
            waiting: 0,
            all_overwritten: 0,
            batch_units: shape.batch_units,
            entries_per_map_page: shape.entries_per_mapping_page,
            map_page: 0,
            until: 0,
            is_stream: false,
        }
    }

    #[inline(never)]
    pub(super) fn push(&mut self, slot: SlotId, lpn: Lpn) {
        self.lpns[slot.index()] = lpn;
        self.follow(lpn);
        self.put(slot);
    }

    pub(super) fn overwritten(&mut self, slot: SlotId) {
        let count = &mut self.overwritten[slot.index()];
        let is_first = *count == 0;
        *count = (*count + 1).min(OVERWRITES);
        let page = &mut self.pages[self.lists.page_of(slot) as usize];
        if page.is_cyclic {
            page.entered = Some(self.lists.arrivals());
        }
        // The end of a log is overwritten as it grows: that says nothing about later.
        if is_first && !page.is_stream(self.batch_units) {
            page.overwritten += 1;
            self.all_overwritten += 1;
        }
    }

    /// Takes a slot out, whether it is written now or not at all.
    #[inline(never)]
    pub(super) fn remove(&mut self, slot: SlotId) {
        let map_page = self.lists.remove(slot);
        self.waiting -= 1;
        self.sort_in(map_page);
    }

    #[inline(never)]
    pub(super) fn pop(&mut self) -> Option<SlotId> {
        loop {
            let slot = self.next()?;
            self.remove(slot);
            if self.is_stream || self.overwritten[slot.index()] < OVERWRITES {
                return Some(slot);
            }
            self.put(slot);
        }
    }

    pub(super) fn fits(&self, shape: &Shape) -> bool {
        self.lists.fits(shape)
            && self.by_age.fits(shape.mapping_pages)
            && self.streams.fits(shape.mapping_pages)
            && self.pages.len() == shape.mapping_pages as usize
            && self.overwritten.len() == shape.slots as usize
            && self.lpns.len() == shape.slots as usize
            && self.waiting <= shape.slots
            && self.batch_units == shape.batch_units
            && self.entries_per_map_page == shape.entries_per_mapping_page
            && self.map_page < shape.mapping_pages.max(1)
    }

    /// Adds a slot as the newest.
    fn put(&mut self, slot: SlotId) {
        self.overwritten[slot.index()] = 0;
        self.waiting += 1;
        let map_page = self.lists.push(slot, self.lpns[slot.index()]);
        self.sort_in(map_page);
    }

    /// Takes note of whether `lpn` goes on with a stream.
    fn follow(&mut self, lpn: Lpn) {
        let at = (lpn.0 / self.entries_per_map_page) as usize;
        let (now, waiting) = (self.lists.arrivals(), self.waiting);
        if lpn.0.is_multiple_of(self.entries_per_map_page)
            && let Some(before) = at.checked_sub(1)
            && self.pages[before].end == lpn.0
        {
            let Page { run, end, .. } = self.pages[before];
            self.pages[at] = Page { run, end, ..self.pages[at] };
            self.pages[at].enter(now, waiting);
        }
        let page = &mut self.pages[at];
        if lpn.0 == page.end {
            if page.run == 0 {
                page.enter(now, waiting); // the first of all
            }
            page.run = page.run.saturating_add(1);
            page.end += 1;
        } else if lpn.0 > page.end || page.end - lpn.0 > page.run.min(self.batch_units) {
            if lpn.0 < page.end {
                page.enter(now, waiting);
            }
            page.run = 1;
            page.end = lpn.0 + 1;
        } // else the end of the run comes again
    }

    /// The next slot of the harvest, or of the next one.
    fn next(&mut self) -> Option<SlotId> {
        let waiting = self.lists.waiting(self.map_page);
        let oldest = self.lists.oldest(self.map_page);
        let goes_on = if self.is_stream {
            let is_cyclic = self.pages[self.map_page as usize].is_cyclic;
            !is_cyclic && waiting > self.kept_of_stream(self.map_page)
        } else {
            waiting > 0 && self.lists.arrival(oldest) < self.until
        };
        if goes_on {
            return Some(oldest);
        }
        let stream = self.streams.first();
        self.is_stream = stream.is_some();
        self.until = self.lists.arrivals();
        self.map_page = match stream {
            Some(page) => page,
            None => self.next_turn()?,
        };
        Some(self.lists.oldest(self.map_page))
    }

    /// The mapping page whose turn it is, and which is not passed over.
    fn next_turn(&mut self) -> Option<u32> {
        loop {
            let map_page = self.by_age.first()?;
            let all = (u64::from(self.all_overwritten), u64::from(self.waiting));
            let overwritten = self.forget_overwritten(map_page);
            let waiting = u64::from(self.lists.waiting(map_page));
            let is_average = u64::from(overwritten) * all.1 <= MORE_THAN_OTHERS * all.0 * waiting;
            if overwritten < AT_LEAST || is_average {
                return Some(map_page);
            }
            self.pages[map_page as usize].passed = self.lists.arrive();
            self.sort_in(map_page);
        }
    }

    /// How many of a stream's newest writes wait for more: none if it has gone on to the next page.
    fn kept_of_stream(&self, map_page: u32) -> u32 {
        let end = self.pages[map_page as usize].end;
        if end.is_multiple_of(self.entries_per_map_page) { 0 } else { self.batch_units }
    }

    fn forget_overwritten(&mut self, map_page: u32) -> u32 {
        let overwritten = std::mem::take(&mut self.pages[map_page as usize].overwritten);
        self.all_overwritten -= overwritten;
        overwritten
    }

    /// Puts a mapping page where it belongs.
    fn sort_in(&mut self, map_page: u32) {
        let waiting = self.lists.waiting(map_page);
        let page = self.pages[map_page as usize];
        if waiting == 0 {
            self.by_age.remove(map_page);
            self.forget_overwritten(map_page);
        } else {
            let oldest = self.lists.arrival(self.lists.oldest(map_page));
            self.by_age.set(map_page, oldest.max(page.passed));
        }
        let is_long = waiting >= self.kept_of_stream(map_page) + self.batch_units;
        if page.is_stream(self.batch_units) && is_long {
            self.streams.set(map_page, map_page);
        } else {
            self.streams.remove(map_page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        slots: 64,
        mapping_pages: 4,
        entries_per_mapping_page: 64,
        batch_units: 4,
        is_table_protected: false,
    };

    /// A queue of these writes, in slots 0, 1, ...
    fn queue(lpns: impl IntoIterator<Item = u32>) -> HarvestQueue {
        let mut queue = HarvestQueue::new(&SHAPE);
        for (slot, lpn) in (0..).zip(lpns) {
            queue.push(SlotId(slot), Lpn(lpn));
        }
        queue
    }

    /// The slots in the order in which they leave.
    fn order(mut queue: HarvestQueue) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop()).map(|slot| slot.0).collect()
    }

    #[test]
    fn a_page_leaves_as_one_and_what_is_hot_later() {
        let mut queue = queue([100, 3, 101, 9, 110]);
        queue.overwritten(SlotId(2));
        assert_eq!(order(queue.clone()), [0, 2, 4, 1, 3], "one overwrite may be chance");
        queue.overwritten(SlotId(2));
        assert_eq!(order(queue), [0, 4, 1, 3, 2]);
    }

    #[test]
    fn a_stream_leaves_first_but_its_end_waits() {
        // 150 is older than the stream, and leaves before its last four.
        assert_eq!(order(queue([150].into_iter().chain(0..8))), [1, 2, 3, 4, 0, 5, 6, 7, 8]);
        // Rewriting the end of the page does not make it less of a stream.
        let mut queue = queue([150, 0, 1, 2, 3, 4, 5, 6, 7, 7]);
        assert_eq!(queue.pop(), Some(SlotId(1)));
        queue.push(SlotId(30), Lpn(40));
        assert_eq!(queue.pop(), Some(SlotId(2)), "what has begun goes on");
        assert_eq!(queue.streams.first(), None, "but it is no stream any more");
    }

    #[test]
    fn a_stream_that_went_on_to_the_next_page_leaves_nothing() {
        let slots = order(queue([150].into_iter().chain(56..66)));
        assert_eq!(slots, [1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 10]);
    }

    /// Eight writes in order, over and over; half of the buffer has other data.
    #[test]
    fn a_stream_that_comes_back_while_it_would_be_buffered_waits_for_its_turn() {
        let mut queue = queue((100..120).step_by(2).chain(0..8));
        let first: Vec<u32> = (0..4).map(|_| queue.pop().unwrap().0).collect();
        assert_eq!(first, [10, 11, 12, 13], "nothing is known of it yet");
        for (slot, lpn) in (20..).zip(0..8) {
            queue.push(SlotId(slot), Lpn(lpn));
        }
        assert_eq!(queue.pop(), Some(SlotId(0)), "it came back 8 arrivals later, and 14 waited");
        // Later than the buffer turns over, it is a stream again.
        for (slot, lpn) in (30..).zip((130..180).step_by(2)) {
            queue.push(SlotId(slot), Lpn(lpn));
        }
        while queue.pop().is_some() {}
        queue.push(SlotId(50), Lpn(130));
        for (slot, lpn) in (0..).zip(0..8) {
            queue.push(SlotId(slot), Lpn(lpn));
        }
        assert_eq!(queue.pop(), Some(SlotId(0)));
    }

    #[test]
    fn a_page_overwritten_more_than_the_others_is_passed_over_once() {
        // Not in order, so no streams: the even addresses of page 0, then those of pages 1 to 3.
        let lpns = (0..4).flat_map(|page| (0..10).map(move |at| page * 64 + 2 * at));
        let mut queue = queue(lpns);
        for slot in 0..AT_LEAST {
            assert_eq!(queue.clone().pop(), Some(SlotId(0)), "{slot} may be chance");
            queue.overwritten(SlotId(slot));
        }
        assert_eq!(order(queue.clone()), (10..40).chain(0..10).collect::<Vec<_>>());
        for slot in AT_LEAST..40 {
            queue.overwritten(SlotId(slot));
        }
        assert_eq!(queue.pop(), Some(SlotId(0)), "as much as the others");
    }
}
