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

use leyden_nand::{BlockId, Content, Lpn};
use leyden_sim::Time;
use serde::{Deserialize, Serialize};

use super::ftl::Ftl;
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

    /// Forgets what DRAM held.
    pub(crate) fn lose_power(&mut self) {
        *self = Self::default();
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

    fn begin(&mut self, lpns: u32, blocks: u32, learns_lead: bool) {
        if !self.are_kept() {
            self.lead.begin(if learns_lead { lpns } else { 0 });
            self.doomed = vec![0; words_for(lpns)];
            self.announced = vec![0; words_for(lpns)];
            self.in_block = vec![0; blocks as usize];
        }
    }

    /// The region that `lpn`, which lies in a zombie block, came from.
    #[inline]
    pub(crate) fn region(&self, lpn: Lpn) -> StreamId {
        StreamId(self.regions.get(lpn.index()).copied().unwrap_or(0))
    }

    /// `lpn` is copied to a zombie block from one of region `from`.
    #[inline]
    fn keep_region(&mut self, lpn: Lpn, from: StreamId) {
        if self.regions.is_empty() {
            self.regions = vec![0; self.doomed.len() * 64];
        }
        self.regions[lpn.index()] = from.0;
    }

    /// `lpn` is overwritten or trimmed; what takes its place is a zombie if that was announced since.
    /// Says whether the old version was one, and whether the new one is.
    #[inline]
    fn overwritten(&mut self, lpn: Lpn) -> (bool, bool) {
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

impl<C: Content> Ftl<C> {
    /// What the host has announced.
    pub const fn zombies(&self) -> &Zombies {
        &self.zombies
    }

    /// True if somebody needs to know of writes as they arrive.
    #[inline]
    pub const fn follows_writes(&self) -> bool {
        self.zombies.are_kept() || self.logs.are_kept()
    }

    /// A write of `count` units from `first` on has arrived, of a log if the host says so: what was
    /// announced of it has come.
    #[inline]
    pub fn note_write(&mut self, now: Time, first: Lpn, count: u32, is_log: bool) {
        self.zombies.arrived(first, count, Some(now));
        self.index.set_lead(self.zombies.lead.mean());
        if self.logs.are_kept() {
            let map = &self.map;
            self.logs.written(first, count, is_log, |lpn| map.get(lpn).is_some());
        }
    }

    /// A trim of `count` units from `first` on has arrived.
    pub fn note_trim_of(&mut self, first: Lpn, count: u32) {
        self.zombies.arrived(first, count, None);
    }

    /// The host says that it will overwrite `lpn`, whose last version `is_buffered` or lies on flash.
    pub fn announce(
        &mut self,
        now: Time,
        lpn: Lpn,
        is_buffered: impl FnOnce() -> bool,
    ) -> Announced {
        let on_flash = self.map.get(lpn);
        if on_flash.is_none() && !is_buffered() {
            return Announced::Nothing;
        }
        let zombies = &mut self.zombies;
        zombies.begin(self.map.len(), self.geometry.blocks(), self.policy.asks_for_lead());
        let known = zombies.announced[word(lpn)] & bit(lpn) != 0;
        if !known {
            zombies.announced[word(lpn)] |= bit(lpn);
            zombies.expected += 1;
            zombies.lead.announced(now, lpn);
        }
        if let Some(unit) = on_flash
            && !zombies.contains(lpn)
        {
            zombies.doomed[word(lpn)] |= bit(lpn);
            zombies.units += 1;
            let block = self.geometry.block_of(unit);
            self.count_zombie(block, true);
            self.unstick(self.geometry.die_of(block));
        }
        if known { Announced::Again } else { Announced::New }
    }

    /// The host's write of `lpn` takes the place of what lies in `old`; it lies in `new`, unless it was
    /// a trim.
    #[inline]
    pub(crate) fn replace_zombie(
        &mut self,
        lpn: Lpn,
        old: impl Into<Option<BlockId>>,
        new: Option<BlockId>,
    ) {
        if !self.zombies.are_kept() {
            return;
        }
        let (was, is) = self.zombies.overwritten(lpn);
        let old = old.into();
        if old.is_some() && new.is_some() {
            self.stats.overwritten_zombie_units += u64::from(was);
            self.stats.overwritten_live_units += u64::from(!was);
        }
        if let Some(old) = old.filter(|_| was) {
            self.count_zombie(old, false);
        }
        if let Some(new) = new.filter(|_| is) {
            self.count_zombie(new, true);
        }
    }

    /// A copy of `lpn` has moved it.
    #[inline]
    pub(crate) fn move_zombie(&mut self, lpn: Lpn, from: BlockId, to: BlockId) {
        if !self.zombies.are_kept() {
            return;
        }
        let zombie = self.streams.zombie();
        let (old, new) = (self.blocks.stream(from), self.blocks.stream(to));
        if Some(new) == zombie && Some(old) != zombie {
            self.zombies.keep_region(lpn, self.streams.region(old));
        }
        if self.zombies.contains(lpn) {
            self.count_zombie(from, false);
            self.count_zombie(to, true);
        }
    }

    #[inline]
    fn count_zombie(&mut self, block: BlockId, comes: bool) {
        let count = &mut self.zombies.in_block[block.index()];
        *count = if comes { *count + 1 } else { *count - 1 };
        self.index.set_zombies(block, *count);
    }
}
