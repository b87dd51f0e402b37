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
use leyden_sim::{Span, Time};
use serde::{Deserialize, Serialize};

use super::lead::Lead;
use crate::place::StreamId;

/// What a hint has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Announced {
    /// What it names is to be overwritten, which was not known.
    New,
    /// That was known.
    Again,
    /// There is nothing to be overwritten.
    Nothing,
}

/// What the host has announced.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Zombies {
    /// A bit for each logical unit: the version on flash will be overwritten. Empty before the first
    /// hint, as is the other.
    doomed: Vec<u64>,
    /// A bit for each logical unit: of the write that was announced, nothing has come yet.
    announced: Vec<u64>,
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

    /// The same, counted anew.
    pub(crate) fn count_expected(&self) -> u64 {
        self.announced.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// True if there has been a hint.
    #[inline]
    pub const fn are_kept(&self) -> bool {
        !self.doomed.is_empty()
    }

    /// True if `lpn` is a zombie.
    #[inline]
    pub fn contains(&self, lpn: Lpn) -> bool {
        self.are_kept() && self.doomed[word(lpn)] & bit(lpn) != 0
    }

    /// Zombies in `block`.
    #[inline]
    pub fn in_block(&self, block: BlockId) -> u32 {
        self.in_block.get(block.index()).copied().unwrap_or(0)
    }

    /// What was announced of `count` units from `first` on will not come any more: it has been written at
    /// `written`, or trimmed.
    #[inline]
    pub(crate) fn arrived(&mut self, first: Lpn, count: u32, written: Option<Time>) {
        if !self.are_kept() {
            return;
        }
        for lpn in (first.0..first.0 + count).map(Lpn) {
            let announced = &mut self.announced[word(lpn)];
            if *announced & bit(lpn) == 0 {
                continue;
            }
            *announced &= !bit(lpn);
            self.expected -= 1;
            if let Some(now) = written {
                self.lead.came(now, lpn);
            }
        }
    }

    pub(crate) fn fits(&self, lpns: u32, blocks: u32) -> bool {
        let lengths = [self.doomed.len(), self.announced.len(), self.in_block.len()];
        (lengths == [0; 3] || lengths == [words_for(lpns), words_for(lpns), blocks as usize])
            && [0, self.doomed.len() * 64].contains(&self.regions.len())
            && self.lead.fits(lpns)
    }

    /// Bytes of memory that grow with capacity.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let bits = size_of_val(self.doomed.as_slice()) + size_of_val(self.announced.as_slice());
        let blocks = size_of_val(self.in_block.as_slice());
        (bits + blocks + self.regions.len() + self.lead.memory_bytes()) as u64
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
            self.doomed = vec![0; words_for(lpns)];
            self.announced = vec![0; words_for(lpns)];
            self.in_block = vec![0; blocks as usize];
        }
    }

    /// The write of `lpn` is announced. True if that was not known.
    pub(super) fn announce(&mut self, now: Time, lpn: Lpn) -> bool {
        let announced = &mut self.announced[word(lpn)];
        let is_new = *announced & bit(lpn) == 0;
        if is_new {
            *announced |= bit(lpn);
            self.expected += 1;
            self.lead.announced(now, lpn);
        }
        is_new
    }

    /// `lpn`, which lies on flash, is a zombie. True if it was not one.
    pub(super) fn doom(&mut self, lpn: Lpn) -> bool {
        let doomed = &mut self.doomed[word(lpn)];
        let is_new = *doomed & bit(lpn) == 0;
        *doomed |= bit(lpn);
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
            self.regions = vec![0; self.doomed.len() * 64];
        }
        self.regions[lpn.index()] = from.0;
    }

    /// `lpn` is overwritten or trimmed; what takes its place is a zombie if that was announced since.
    /// Says whether the old version was one, and whether the new one is.
    #[inline]
    pub(super) fn overwritten(&mut self, lpn: Lpn) -> (bool, bool) {
        let (was, is) =
            (self.doomed[word(lpn)] & bit(lpn) != 0, self.announced[word(lpn)] & bit(lpn) != 0);
        if was != is {
            self.doomed[word(lpn)] ^= bit(lpn);
        }
        self.units = self.units + u64::from(is) - u64::from(was);
        (was, is)
    }
}

#[inline]
const fn word(lpn: Lpn) -> usize {
    lpn.0 as usize / 64
}

#[inline]
const fn bit(lpn: Lpn) -> u64 {
    1 << (lpn.0 % 64)
}

const fn words_for(lpns: u32) -> usize {
    (lpns as usize).div_ceil(64)
}
