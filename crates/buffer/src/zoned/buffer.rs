//! Units on their way from the host to the zones' blocks.

use leyden_nand::Content;
use leyden_sim::{Ratio, counters};
use serde::Serialize;

use super::ZonePoolSizes;
use super::pool::Pool;
use super::queue::{Page, PageState, Queue};
use super::schedule::ZoneView;
use crate::PoolKind;

counters! {
    /// Counters of a zoned drive's buffer since it was made.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct ZoneBufferStats {
        /// Units that a reset has taken out before they were programmed, from the protected pool.
        pub discarded_protected_units: u64,
        /// From the other one.
        pub discarded_plain_units: u64,
        /// Units that were protected because something above them had to be.
        pub promoted_units: u64,
        /// Units that replaced others in a Zone Random Write Area.
        pub overwritten_units: u64,
    }
}

/// The page that a zone has to program next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextPage {
    /// Its first unit, from the zone's beginning.
    pub first: u32,
    /// Units in it.
    pub units: u32,
}

/// The write buffer of a zoned drive.
#[derive(Clone, Debug)]
pub struct ZoneBuffer<C: Content> {
    pub(super) pools: [Pool; 2],
    pub(super) zones: Vec<Queue<C>>,
    page_units: u32,
    /// Units that a zone can hold.
    pub(super) capacity: u32,
    pub(super) arrivals: u64,
    stats: ZoneBufferStats,
}

/// The zones that a buffer is for.
#[derive(Clone, Copy, Debug)]
pub struct BufferShape {
    /// How many there are.
    pub zones: u32,
    /// Units that one holds.
    pub capacity: u32,
    /// Units of a page.
    pub page_units: u32,
}

impl<C: Content> ZoneBuffer<C> {
    /// An empty buffer whose pools are written out from `threshold` on, down to `drain_to`.
    pub fn new(
        threshold: Ratio,
        drain_to: Ratio,
        sizes: ZonePoolSizes,
        shape: BufferShape,
    ) -> Self {
        let BufferShape { zones, capacity, page_units } = shape;
        let pool = |slots, reserved| Pool::new(slots, reserved, threshold, drain_to);
        Self {
            pools: [pool(sizes.protected, sizes.zrwa), pool(sizes.plain, 0)],
            zones: vec![Queue::default(); zones as usize],
            page_units,
            capacity,
            arrivals: 0,
            stats: ZoneBufferStats::default(),
        }
    }

    /// Forgets everything: the power is gone. The counters, and the pools' sizes, stay.
    pub fn clear(&mut self) {
        self.zones.fill(Queue::default());
        self.pools = self.pools.map(Pool::emptied);
    }

    /// Peaks count from here on.
    pub fn forget_peaks(&mut self) {
        self.pools.iter_mut().for_each(Pool::forget_peak);
    }

    /// A pool.
    #[inline]
    pub fn pool(&self, kind: PoolKind) -> &Pool {
        &self.pools[kind.index()]
    }

    /// The counters.
    pub const fn stats(&self) -> &ZoneBufferStats {
        &self.stats
    }

    /// Units of `zone`, from its beginning, that flash holds.
    #[inline]
    pub fn settled(&self, zone: u32) -> u32 {
        self.zones[zone as usize].base
    }

    /// Units of `zone` that flash or the buffer holds.
    #[inline]
    pub fn end(&self, zone: u32) -> u32 {
        self.zones[zone as usize].end()
    }

    /// Up to where `zone` is kept over a power cut.
    #[inline]
    pub fn kept(&self, zone: u32) -> u32 {
        let queue = &self.zones[zone as usize];
        queue.protected.max(queue.base)
    }

    /// Units of `zone` that are neither protected nor on flash.
    #[inline]
    pub fn unprotected(&self, zone: u32) -> u32 {
        self.end(zone) - self.kept(zone)
    }

    /// Appends a unit to `zone`, which there must be room for. A protected unit needs all below it to be
    /// kept ([`ZoneBuffer::promote`]).
    #[inline]
    pub fn push(&mut self, zone: u32, kind: PoolKind, content: C) {
        let queue = &mut self.zones[zone as usize];
        if queue.dirty() == 0 {
            queue.since = self.arrivals;
        }
        self.arrivals += 1;
        if kind == PoolKind::Protected && queue.protected.max(queue.base) == queue.end() {
            queue.protected = queue.end() + 1;
        } else {
            debug_assert!(kind == PoolKind::Plain, "zone {zone}");
        }
        let lies =
            if queue.protected > queue.end() { PoolKind::Protected } else { PoolKind::Plain };
        queue.units.push_back(content);
        self.pools[lies.index()].add(1, 1);
    }

    /// Protects what is not, of `zone`, if there is room for it.
    pub fn promote(&mut self, zone: u32) -> bool {
        let queue = &mut self.zones[zone as usize];
        let (from, end) = (queue.protected.max(queue.base), queue.end());
        let units = end - from;
        if units > self.pools[PoolKind::Protected.index()].room() {
            return false;
        }
        let dirty = end - queue.started.clamp(from, end);
        queue.protected = end;
        self.pools[PoolKind::Plain.index()].remove(units, dirty);
        self.pools[PoolKind::Protected.index()].add(units, dirty);
        self.stats.promoted_units += u64::from(units);
        true
    }

    /// Takes back units that a dump held, which were protected before.
    pub fn put_back(&mut self, zone: u32, unit: u32, content: C) {
        assert_eq!(unit, self.end(zone), "what was dumped of a zone continues it");
        self.push(zone, PoolKind::Protected, content);
    }

    /// `zone` is on flash up to `settled`: recovery has found it so.
    pub fn set_settled(&mut self, zone: u32, settled: u32) {
        let queue = &mut self.zones[zone as usize];
        assert!(queue.units.is_empty(), "what is buffered lies above what is on flash");
        (queue.base, queue.started, queue.protected) = (settled, settled, settled);
    }

    /// Does not wait for full pages below `unit` of `zone`. True if that changes anything.
    pub fn force(&mut self, zone: u32, unit: u32) -> bool {
        let queue = &mut self.zones[zone as usize];
        queue.forced = queue.forced.max(unit.min(queue.end()));
        queue.forced > queue.started
    }

    /// The page that `zone` should program now, if there is one: it failed before, somebody waits for it,
    /// or it is full and its pool is being written out.
    #[inline]
    pub fn next_page(&self, zone: u32) -> Option<NextPage> {
        let queue = &self.zones[zone as usize];
        if queue.failed_pages > 0 {
            let failed = queue.pages.iter().find(|page| page.state == PageState::Failed)?;
            return Some(NextPage { first: failed.first, units: failed.units });
        }
        let dirty = queue.dirty();
        let page = NextPage { first: queue.started, units: dirty.min(self.page_units) };
        if dirty > 0 && queue.forced > queue.started {
            return Some(page);
        }
        let is_full = dirty >= self.page_units || (dirty > 0 && queue.end() == self.capacity);
        if !is_full {
            return None;
        }
        let [protected, plain] = queue.split(queue.started, queue.end());
        let drains = |kind: PoolKind, units| units > 0 && self.pools[kind.index()].is_draining();
        let wanted = drains(PoolKind::Protected, protected) || drains(PoolKind::Plain, plain);
        wanted.then_some(page)
    }

    /// True if `zone` has a page to program once its pool is written out.
    #[inline]
    pub fn has_page(&self, zone: u32) -> bool {
        let queue = &self.zones[zone as usize];
        let dirty = queue.dirty();
        queue.failed_pages > 0
            || dirty >= self.page_units
            || dirty > 0 && (queue.forced > queue.started || queue.end() == self.capacity)
    }

    /// Units of `zone`, from its beginning, whose programs have begun.
    #[inline]
    pub fn started(&self, zone: u32) -> u32 {
        self.zones[zone as usize].started
    }

    /// A schedule's view of `zone`.
    #[inline]
    pub fn view(&self, zone: u32) -> ZoneView {
        let queue = &self.zones[zone as usize];
        ZoneView {
            zone,
            since: queue.since,
            dirty: queue.dirty(),
            is_referenced: queue.is_referenced,
        }
    }

    /// `zone` had its turn, or was passed over.
    #[inline]
    pub fn forget_reference(&mut self, zone: u32) {
        self.zones[zone as usize].is_referenced = false;
    }

    /// The program of a zone's next page begins.
    #[inline]
    pub fn start(&mut self, zone: u32, page: NextPage) {
        let queue = &mut self.zones[zone as usize];
        if queue.failed_pages > 0 {
            let failed = queue.pages.iter_mut().find(|it| it.first == page.first);
            failed.expect("a page that failed").state = PageState::InFlight;
            queue.failed_pages -= 1;
            return;
        }
        let end = queue.started + page.units;
        let split = queue.split(queue.started, end);
        queue.started = end;
        let NextPage { first, units } = page;
        queue.pages.push_back(Page { first, units, state: PageState::InFlight });
        queue.since = self.arrivals;
        for (pool, units) in self.pools.iter_mut().zip(split) {
            pool.start(units);
        }
    }

    /// The units of a zone's page, which is about to be programmed.
    #[inline]
    pub fn units_of(&self, zone: u32, page: NextPage) -> impl ExactSizeIterator<Item = C> + '_ {
        let queue = &self.zones[zone as usize];
        let from = (page.first - queue.base) as usize;
        queue.units.range(from..from + page.units as usize).cloned()
    }

    /// The program of the page that begins at unit `first` has ended. True if more of the zone is settled.
    #[inline]
    pub fn ended(&mut self, zone: u32, first: u32, failed: bool) -> bool {
        let queue = &mut self.zones[zone as usize];
        let page = queue.pages.iter_mut().find(|page| page.first == first);
        let page = page.expect("a page on its way");
        page.state = if failed { PageState::Failed } else { PageState::Done };
        queue.failed_pages += u32::from(failed);
        let before = queue.base;
        while let Some(page) = queue.pages.front()
            && page.state == PageState::Done
        {
            let units = page.units;
            queue.pages.pop_front();
            let split = queue.split(queue.base, queue.base + units);
            queue.units.drain(..units as usize);
            queue.base += units;
            for (pool, units) in self.pools.iter_mut().zip(split) {
                pool.remove(units, 0);
            }
        }
        queue.base > before
    }

    /// `zone` is reset: what is buffered of it goes nowhere.
    pub fn discard(&mut self, zone: u32) {
        self.close_window(zone);
        let queue = std::mem::take(&mut self.zones[zone as usize]);
        let (base, end) = (queue.base, queue.end());
        let units = queue.split(base, end);
        let dirty = queue.split(queue.started, end);
        for ((pool, units), dirty) in self.pools.iter_mut().zip(units).zip(dirty) {
            pool.remove(units, dirty);
        }
        self.stats.discarded_protected_units += u64::from(dirty[0]);
        self.stats.discarded_plain_units += u64::from(dirty[1]);
    }

    /// The newest version of `unit` of `zone`, if it is buffered; `wp` is the zone's write pointer.
    #[inline]
    pub fn read(&mut self, zone: u32, unit: u32, wp: u32) -> Option<C> {
        let content = self.peek(zone, unit, wp)?;
        self.zones[zone as usize].is_referenced |= unit < wp;
        Some(content)
    }

    /// The same, for whoever only looks.
    #[inline]
    pub fn peek(&self, zone: u32, unit: u32, wp: u32) -> Option<C> {
        let queue = &self.zones[zone as usize];
        if unit >= wp {
            return queue.window.get((unit - wp) as usize)?.clone();
        }
        queue.units.get(unit.checked_sub(queue.base)? as usize).cloned()
    }

    /// The buffered units of `zone` that are kept over a power cut: the first one's number, and the
    /// units.
    pub fn kept_units(&self, zone: u32) -> (u32, impl Iterator<Item = &C>) {
        let queue = &self.zones[zone as usize];
        let count = queue.protected.saturating_sub(queue.base) as usize;
        (queue.base, queue.units.iter().take(count))
    }

    /// The contents of the buffer, areas included, zone by zone.
    pub fn contents(&self) -> impl Iterator<Item = &C> {
        self.zones.iter().flat_map(|queue| queue.units.iter().chain(queue.window.iter().flatten()))
    }

    /// Opens a Zone Random Write Area of `units` on `zone`; its room is reserved.
    pub fn open_window(&mut self, zone: u32, units: u32) {
        self.zones[zone as usize].window.resize(units as usize, None);
    }

    /// The Zone Random Write Area of `zone` is gone, with what it holds.
    pub fn close_window(&mut self, zone: u32) {
        self.zones[zone as usize].window = std::collections::VecDeque::new();
    }

    /// Writes a unit in the area, `offset` units above the write pointer.
    pub fn write_window(&mut self, zone: u32, offset: u32, content: C) {
        let place = &mut self.zones[zone as usize].window[offset as usize];
        self.stats.overwritten_units += u64::from(place.is_some());
        *place = Some(content);
    }

    /// Commits the first `units` units of the area, which there must be room for: they follow the zone's
    /// others, zeroes where nothing was written. The area slides on.
    pub fn commit_window(&mut self, zone: u32, units: u32) {
        for _ in 0..units {
            let content = self.zones[zone as usize].window.pop_front().flatten();
            self.push(zone, PoolKind::Protected, content.unwrap_or_default());
            self.zones[zone as usize].window.push_back(None);
        }
    }

    /// True if `zone` has a Zone Random Write Area.
    pub fn has_window(&self, zone: u32) -> bool {
        !self.zones[zone as usize].window.is_empty()
    }

    /// The contents of the area of `zone`, by the distance from the write pointer.
    pub fn window(&self, zone: u32) -> impl Iterator<Item = (u32, &C)> {
        let window = &self.zones[zone as usize].window;
        (0..).zip(window).filter_map(|(offset, content)| Some((offset, content.as_ref()?)))
    }

    /// Checks the pools against the zones.
    ///
    /// # Errors
    /// Says what does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut used = [0; 2];
        let mut dirty = [0; 2];
        for queue in &self.zones {
            for kind in 0..2 {
                used[kind] += queue.split(queue.base, queue.end())[kind];
                dirty[kind] += queue.split(queue.started, queue.end())[kind];
            }
            let in_pages: u32 = queue.pages.iter().map(|page| page.units).sum();
            if queue.base + in_pages != queue.started {
                return Err(format!("{in_pages} units on their way from {}", queue.base));
            }
        }
        let known = (self.pools.map(|pool| pool.used()), self.pools.map(|pool| pool.dirty()));
        if known != (used, dirty) {
            return Err(format!("the pools count {known:?}, and there is {used:?}, {dirty:?}"));
        }
        Ok(())
    }

    /// Bytes of memory that grow with the number of zones.
    pub fn memory_bytes(&self) -> u64 {
        size_of_val(self.zones.as_slice()) as u64
    }
}
