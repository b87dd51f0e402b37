//! Zombies: units on flash that the host has said it will overwrite.
//!
//! Zombie Chasing (Lee et al., IEEE TC 2015), figure 1 (b): live data becomes a zombie when a hint
//! names it and dead when it is overwritten or trimmed. A zombie is valid like any other unit: it is
//! read, copied and recovered. Power cuts make all zombies live again, as the host has lost what it
//! was to write.
//!
//! A write that was announced and one that has arrived, but is still in the write buffer, are told
//! apart: a hint that comes meanwhile speaks of the write after that.
//!
//! Invariants: only mapped units are zombies; each block's are counted, and the victim index knows the
//! count. Nothing is kept, and nothing costs, before the first hint.

use leyden_nand::{BlockId, Lpn};
use leyden_sim::{BitSet, Span, Time};
use serde::{Deserialize, Serialize};

use super::lead::Lead;
use crate::place::StreamId;

/// The change by a hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Announced {
    /// The units are to be overwritten, which was not known.
    New,
    /// That was known.
    Again,
    /// There is nothing to be overwritten.
    Nothing,
}

/// The host's announcements.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Zombies {
    /// A bit for each logical unit: the version on flash will be overwritten. Empty before the first
    /// hint, as is the other.
    doomed: BitSet,
    /// A bit for each logical unit: of the write that was announced, nothing has come yet.
    announced: BitSet,
    /// Zombies of each block.
    in_block: Vec<u32>,
    /// For each logical unit that lies in a zombie block, the region it came from. Empty if none are
    /// kept apart.
    regions: Vec<u8>,
    units: u64,
    /// How many bits are set in `announced`.
    expected: u64,
    /// How long before hints come true they come.
    lead: Lead,
}

impl Zombies {
    /// Zombies on flash.
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Units whose announced write has not come yet.
    pub const fn expected_units(&self) -> u64 {
        self.expected
    }

    /// The same, recounted.
    pub(crate) fn count_expected(&self) -> u64 {
        self.announced.count()
    }

    /// True if there has been a hint.
    #[inline]
    pub const fn are_kept(&self) -> bool {
        !self.doomed.is_unused()
    }

    /// True if `lpn` is a zombie.
    #[inline]
    pub fn contains(&self, lpn: Lpn) -> bool {
        self.are_kept() && self.doomed.contains(lpn.0)
    }

    /// Zombies in `block`.
    #[inline]
    pub fn in_block(&self, block: BlockId) -> u32 {
        self.in_block.get(block.index()).copied().unwrap_or(0)
    }

    /// Ends the announcements of `count` units from `first` on: they have been written at
    /// `written`, or trimmed.
    #[inline]
    pub(crate) fn arrived(&mut self, first: Lpn, count: u32, written: Option<Time>) {
        if !self.are_kept() {
            return;
        }
        for lpn in (first.0..first.0 + count).map(Lpn) {
            if !self.announced.remove(lpn.0) {
                continue;
            }
            self.expected -= 1;
            if let Some(now) = written {
                self.lead.came(now, lpn);
            }
        }
    }

    pub(crate) fn fits(&self, lpns: u32, blocks: u32) -> bool {
        let is_unused = !self.are_kept() && self.announced.is_unused() && self.in_block.is_empty();
        let fits = self.doomed.fits(lpns)
            && self.announced.fits(lpns)
            && self.in_block.len() == blocks as usize;
        (is_unused || fits)
            && [0, self.doomed.bound() as usize].contains(&self.regions.len())
            && self.lead.fits(lpns)
    }

    /// Bytes of memory that grow with capacity.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let bits = self.doomed.memory_bytes() + self.announced.memory_bytes();
        let blocks = size_of_val(self.in_block.as_slice());
        bits + (blocks + self.regions.len() + self.lead.memory_bytes()) as u64
    }

    /// How long before it comes true a hint is given, on average ([`Lead::mean`]).
    #[inline]
    pub(super) fn mean_lead(&self) -> Option<Span> {
        self.lead.mean()
    }

    /// Keeps what the first hint needs: bits for `lpns` units, counts for `blocks`.
    pub(super) fn begin(&mut self, lpns: u32, blocks: u32, learns_lead: bool) {
        if !self.are_kept() {
            self.lead.begin(if learns_lead { lpns } else { 0 });
            self.doomed = BitSet::new(lpns);
            self.announced = BitSet::new(lpns);
            self.in_block = vec![0; blocks as usize];
        }
    }

    /// The write of `lpn` is announced. True if that was not known.
    pub(super) fn announce(&mut self, now: Time, lpn: Lpn) -> bool {
        let is_new = self.announced.insert(lpn.0);
        if is_new {
            self.expected += 1;
            self.lead.announced(now, lpn);
        }
        is_new
    }

    /// `lpn`, which lies on flash, is a zombie. True if it was not one.
    pub(super) fn doom(&mut self, lpn: Lpn) -> bool {
        let is_new = self.doomed.insert(lpn.0);
        self.units += u64::from(is_new);
        is_new
    }

    /// One zombie more in `block`, or one less; returns how many it holds.
    #[inline]
    pub(super) fn count(&mut self, block: BlockId, comes: bool) -> u32 {
        let count = &mut self.in_block[block.index()];
        *count = if comes { *count + 1 } else { *count - 1 };
        *count
    }

    /// The region that `lpn`, which lies in a zombie block, came from.
    #[inline]
    pub(crate) fn region(&self, lpn: Lpn) -> StreamId {
        StreamId(self.regions.get(lpn.index()).copied().unwrap_or(0))
    }

    /// `lpn` is copied to a zombie block from one of region `from`.
    #[inline]
    pub(super) fn keep_region(&mut self, lpn: Lpn, from: StreamId) {
        if self.regions.is_empty() {
            self.regions = vec![0; self.doomed.bound() as usize];
        }
        self.regions[lpn.index()] = from.0;
    }

    /// `lpn` is overwritten or trimmed; what takes its place is a zombie if that was announced since.
    /// Says whether the old version was one, and whether the new one is.
    #[inline]
    pub(super) fn overwritten(&mut self, lpn: Lpn) -> (bool, bool) {
        let (was, is) = (self.doomed.contains(lpn.0), self.announced.contains(lpn.0));
        if was != is {
            self.doomed.set(lpn.0, is);
        }
        self.units = self.units + u64::from(is) - u64::from(was);
        (was, is)
    }
}
