//! The cached pages: where they are, and which of them has to make room.
//!
//! Eviction is Linux's two-list LRU (mm/vmscan.c, mm/swap.c). A new page comes to the head of the
//! inactive list. A page that is touched a second time there goes to the head of the active list, where
//! further touches do not move it. When a page is needed and the active list is the longer one, its
//! tail goes to the inactive list; then the inactive list's tail is evicted. A page there that is dirty or being written is *parked*: it is on
//! no list until it is clean, when it is the next to go (as Linux's `rotate_reclaimable_page` does).
//! So finding a page to evict costs O(1), however many pages are dirty.
//!
//! **Invariants**
//! - A page that is dirty, being written or being filled is never evicted.
//! - A page is on one list, or parked; pages on the lists are linked both ways.

use leyden_device::Payload;
use leyden_sim::SlotIndex;

use super::epochs::Epoch;

/// Where a page is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageId(pub(super) u32);

const NONE: u32 = u32::MAX;

/// A cached page.
#[derive(Clone, Debug)]
pub(super) struct Page<P: Payload> {
    /// Which page of the drive.
    pub(super) number: u32,
    /// The content is here.
    pub(super) uptodate: bool,
    /// Differs from what is below.
    pub(super) dirty: bool,
    /// A write of it is under way.
    pub(super) writeback: bool,
    /// A read of it is under way, in command `fill`.
    pub(super) filling: bool,
    /// Touched since it came to the inactive list.
    referenced: bool,
    list: List,
    newer: u32,
    older: u32,
    /// The command that fills it.
    pub(super) fill: u32,
    pub(super) content: P,
    /// The host's write that last changed it.
    pub(super) write: u64,
    /// Since when it is dirty.
    pub(super) dirty_epoch: Epoch,
    /// Since when what is being written was dirty.
    pub(super) writeback_epoch: Epoch,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum List {
    Inactive,
    Active,
    Parked,
}

/// A doubly linked list, newest first.
#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: u32,
    oldest: u32,
    len: u32,
}

impl Ends {
    const EMPTY: Self = Self { newest: NONE, oldest: NONE, len: 0 };
}

/// All pages of the cache.
#[derive(Debug)]
pub(super) struct Pages<P: Payload> {
    index: SlotIndex,
    slots: Vec<Page<P>>,
    free: Vec<u32>,
    most: u32,
    inactive: Ends,
    active: Ends,
    parked: u32,
    evictions: u64,
}

impl<P: Payload> Pages<P> {
    pub(super) fn new(most: u32) -> Self {
        Self {
            index: SlotIndex::new(most),
            slots: Vec::new(),
            free: Vec::new(),
            most,
            inactive: Ends::EMPTY,
            active: Ends::EMPTY,
            parked: 0,
            evictions: 0,
        }
    }

    /// Pages that are cached.
    pub(super) fn len(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    pub(super) const fn evictions(&self) -> u64 {
        self.evictions
    }

    #[inline]
    pub(super) fn find(&self, number: u32) -> Option<PageId> {
        self.index.get(number).map(PageId)
    }

    #[inline]
    pub(super) fn get(&self, id: PageId) -> &Page<P> {
        &self.slots[id.0 as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: PageId) -> &mut Page<P> {
        &mut self.slots[id.0 as usize]
    }

    /// The numbers of all cached pages.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let cached =
            |&(id, page): &(usize, &Page<P>)| self.index.get(page.number) == Some(id as u32);
        self.slots.iter().enumerate().filter(cached).map(|(_, page)| page.number)
    }

    /// A page for `number`, which is not cached; `None` if no page can make room.
    #[inline]
    pub(super) fn add(&mut self, number: u32) -> Option<PageId> {
        let id = if let Some(id) = self.free.pop() {
            id
        } else if (self.slots.len() as u32) < self.most {
            self.slots.push(Self::empty());
            self.slots.len() as u32 - 1
        } else {
            self.evict()?
        };
        self.slots[id as usize] = Page { number, ..Self::empty() };
        self.index.set(number, id);
        self.link_newest(id, List::Inactive);
        Some(PageId(id))
    }

    /// Lets go of a page.
    pub(super) fn remove(&mut self, id: PageId) {
        self.unlink(id.0);
        self.index.remove(self.get(id).number);
        self.free.push(id.0);
    }

    /// The page is read or written.
    #[inline]
    pub(super) fn touch(&mut self, id: PageId) {
        let page = self.get_mut(id);
        if page.list == List::Active {
            return;
        }
        if page.referenced {
            self.unlink(id.0);
            self.link_newest(id.0, List::Active);
        } else {
            page.referenced = true;
        }
    }

    /// The page is clean, and nothing is under way for it: if it is parked, it is the next to go.
    #[inline]
    pub(super) fn unpark(&mut self, id: PageId) {
        if self.get(id).list == List::Parked {
            self.unlink(id.0);
            self.link_oldest(id.0);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self { evictions: self.evictions, ..Self::new(self.most) };
    }

    /// Takes the page that has to go; `None` if none may.
    fn evict(&mut self) -> Option<u32> {
        loop {
            while self.active.len > 0
                && (self.active.len > self.inactive.len + self.parked || self.inactive.len == 0)
            {
                let oldest = self.active.oldest;
                self.unlink(oldest);
                self.slots[oldest as usize].referenced = false;
                self.link_newest(oldest, List::Inactive);
            }
            let oldest = self.inactive.oldest;
            let page = self.slots.get(oldest as usize)?;
            if page.dirty || page.writeback || page.filling {
                self.unlink(oldest);
                self.slots[oldest as usize].list = List::Parked;
                self.parked += 1;
                continue;
            }
            self.index.remove(page.number);
            self.unlink(oldest);
            self.evictions += 1;
            return Some(oldest);
        }
    }

    fn ends(&mut self, list: List) -> Option<&mut Ends> {
        match list {
            List::Inactive => Some(&mut self.inactive),
            List::Active => Some(&mut self.active),
            List::Parked => None,
        }
    }

    #[inline]
    fn link_newest(&mut self, id: u32, list: List) {
        let Some(ends) = self.ends(list) else { return };
        let older = std::mem::replace(&mut ends.newest, id);
        ends.len += 1;
        if older == NONE {
            ends.oldest = id;
        } else {
            self.slots[older as usize].newer = id;
        }
        let page = &mut self.slots[id as usize];
        (page.list, page.newer, page.older) = (list, NONE, older);
    }

    fn link_oldest(&mut self, id: u32) {
        let newer = std::mem::replace(&mut self.inactive.oldest, id);
        self.inactive.len += 1;
        if newer == NONE {
            self.inactive.newest = id;
        } else {
            self.slots[newer as usize].older = id;
        }
        let page = &mut self.slots[id as usize];
        (page.list, page.newer, page.older) = (List::Inactive, newer, NONE);
    }

    #[inline]
    fn unlink(&mut self, id: u32) {
        let Page { list, newer, older, .. } = self.slots[id as usize];
        let Some(ends) = self.ends(list) else {
            self.parked -= 1;
            return;
        };
        ends.len -= 1;
        if newer == NONE {
            ends.newest = older;
        }
        if older == NONE {
            ends.oldest = newer;
        }
        if newer != NONE {
            self.slots[newer as usize].older = older;
        }
        if older != NONE {
            self.slots[older as usize].newer = newer;
        }
    }

    fn empty() -> Page<P> {
        Page {
            number: 0,
            uptodate: false,
            dirty: false,
            writeback: false,
            filling: false,
            referenced: true, // what it comes for is its first touch
            list: List::Inactive,
            newer: NONE,
            older: NONE,
            fill: 0,
            content: P::default(),
            write: 0,
            dirty_epoch: Epoch::default(),
            writeback_epoch: Epoch::default(),
        }
    }
}
