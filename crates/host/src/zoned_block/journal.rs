//! Where journal blocks lie: a mapping by blocks, finer than chunks, because a journal may share its chunk with
//! file data.
//!
//! The journal's zones together are a row of slots. Blocks get them in the order in which they are first written,
//! so that a journal that is written from its beginning to its end is a few runs.
//!
//! **Invariants**: a slot belongs to one block, a block has one slot at most; slots are given out in order.

use std::collections::BTreeMap;

use super::layout::{JOURNAL_RUNS, Layout, ZoneNo};

/// A block of a journal zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    pub(super) zone: ZoneNo,
    pub(super) at: u32,
}

/// Neighbouring blocks of the device in neighbouring slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    first: u64,
    slot: u32,
    blocks: u32,
}

const NO_ZONE: u64 = u64::MAX;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct JournalMap {
    zone_blocks: u32,
    most_zones: u32,
    zones: Vec<ZoneNo>,
    /// In the order of their slots.
    runs: Vec<Run>,
    /// Which of them begins at a block.
    by_block: BTreeMap<u64, u32>,
}

impl JournalMap {
    /// No zones and no blocks.
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            zone_blocks: layout.zone_blocks,
            most_zones: layout.journal,
            zones: Vec::new(),
            runs: Vec::new(),
            by_block: BTreeMap::new(),
        }
    }

    /// From the words of the metadata.
    ///
    /// # Errors
    /// Says what cannot be.
    pub(super) fn decode(layout: &Layout, words: &[u64]) -> Result<Self, String> {
        let mut map = Self::new(layout);
        let Some((&count, rest)) = words.split_first() else { return Ok(map) };
        let (zones, runs) = rest.split_at(layout.journal as usize);
        let has = |&&word: &&u64| word != NO_ZONE;
        map.zones = zones.iter().take_while(has).map(|&word| ZoneNo(word as u32)).collect();
        if zones.iter().filter(has).any(|&word| word > u64::from(u32::MAX)) {
            return Err("the journal has a zone with an absurd number".to_owned());
        }
        if count > u64::from(JOURNAL_RUNS) {
            return Err(format!("the journal has {count} runs, of {JOURNAL_RUNS} at most"));
        }
        for pair in runs.chunks_exact(2).take(count as usize) {
            let (first, slot, blocks) = (pair[0], pair[1] as u32, (pair[1] >> 32) as u32);
            let end = first.checked_add(u64::from(blocks));
            let device = u64::from(layout.chunks) * u64::from(layout.zone_blocks);
            let before = map.by_block.range(..end.unwrap_or(0)).next_back();
            let overlaps = before.is_some_and(|(_, &index)| {
                let run = map.runs[index as usize];
                run.first + u64::from(run.blocks) > first
            });
            if slot != map.slots_used()
                || blocks == 0
                || end.is_none_or(|end| end > device)
                || u64::from(slot) + u64::from(blocks) > map.room()
                || overlaps
            {
                return Err(format!(
                    "the journal has a run of {blocks} blocks from {first} on in slot {slot}"
                ));
            }
            map.by_block.insert(first, map.runs.len() as u32);
            map.runs.push(Run { first, slot, blocks });
        }
        Ok(map)
    }

    /// The words of the metadata.
    pub(super) fn encode(&self) -> Vec<u64> {
        if self.most_zones == 0 {
            return Vec::new();
        }
        let zone =
            |index: u32| self.zones.get(index as usize).map_or(NO_ZONE, |zone| zone.0.into());
        let mut words = vec![self.runs.len() as u64];
        words.extend((0..self.most_zones).map(zone));
        words.extend(self.runs.iter().flat_map(|run| [run.first, run.second_word()]));
        words.resize((1 + self.most_zones + 2 * JOURNAL_RUNS) as usize, 0);
        words
    }

    /// The words that the last [`JournalMap::add`] may have changed.
    pub(super) fn changed(&self) -> impl Iterator<Item = (usize, u64)> + use<> {
        let last = self.runs.last().map(|run| {
            let at = 1 + self.most_zones as usize + 2 * (self.runs.len() - 1);
            [(at, run.first), (at + 1, run.second_word())]
        });
        [(0, self.runs.len() as u64)].into_iter().chain(last.into_iter().flatten())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn zones(&self) -> impl Iterator<Item = ZoneNo> + use<'_> {
        self.zones.iter().copied()
    }

    fn slots_used(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.slot + run.blocks)
    }

    fn room(&self) -> u64 {
        self.zones.len() as u64 * u64::from(self.zone_blocks)
    }

    /// True if the next block needs a zone that the journal has not got, and may have.
    pub(super) fn wants_zone(&self) -> bool {
        u64::from(self.slots_used()) == self.room() && (self.zones.len() as u32) < self.most_zones
    }

    /// True if no block can get a slot any more.
    pub(super) fn is_full(&self) -> bool {
        self.runs.len() as u32 == JOURNAL_RUNS
            || (u64::from(self.slots_used()) == self.room() && !self.wants_zone())
    }

    pub(super) fn add_zone(&mut self, zone: ZoneNo) {
        self.zones.push(zone);
    }

    fn place(&self, slot: u32) -> Slot {
        let zone = self.zones[(slot / self.zone_blocks) as usize];
        Slot { zone, at: slot % self.zone_blocks }
    }

    /// The slot of a block of the device, if it has one.
    #[inline]
    pub(super) fn slot(&self, block: u64) -> Option<Slot> {
        let (_, &index) = self.by_block.range(..=block).next_back()?;
        let run = self.runs[index as usize];
        let offset = block - run.first;
        (offset < u64::from(run.blocks)).then(|| self.place(run.slot + offset as u32))
    }

    /// Gives `block`, which has none, the next slot; `None` if there is none.
    pub(super) fn add(&mut self, block: u64) -> Option<Slot> {
        let slot = self.slots_used();
        if u64::from(slot) >= self.room() || self.is_full() {
            return None;
        }
        match self.runs.last_mut() {
            Some(run) if run.first + u64::from(run.blocks) == block => run.blocks += 1,
            _ => {
                self.by_block.insert(block, self.runs.len() as u32);
                self.runs.push(Run { first: block, slot, blocks: 1 });
            }
        }
        Some(self.place(slot))
    }

    /// The blocks that have slots, in runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
        self.runs.iter().map(|run| run.first..run.first + u64::from(run.blocks))
    }

    /// The block that has a slot, and how many blocks from it on have the next ones.
    pub(super) fn owner(&self, slot: Slot) -> Option<(u64, u32)> {
        let index = self.zones.iter().position(|&zone| zone == slot.zone)?;
        let number = index as u32 * self.zone_blocks + slot.at;
        let next = self.runs.partition_point(|run| run.slot <= number);
        let run = self.runs.get(next.checked_sub(1)?)?;
        let offset = number - run.slot;
        (offset < run.blocks).then(|| (run.first + u64::from(offset), run.blocks - offset))
    }

    /// No block has a slot any more; returns the zones, which are nobody's.
    pub(super) fn clear(&mut self) -> Vec<ZoneNo> {
        self.runs.clear();
        self.by_block.clear();
        std::mem::take(&mut self.zones)
    }

    /// Every block with its slot.
    pub(super) fn slots(&self) -> impl Iterator<Item = (u64, Slot)> + '_ {
        let blocks =
            |run: Run| (0..run.blocks).map(move |n| (run.first + u64::from(n), run.slot + n));
        self.runs.iter().copied().flat_map(blocks).map(|(block, slot)| (block, self.place(slot)))
    }
}

impl Run {
    fn second_word(self) -> u64 {
        u64::from(self.slot) | u64::from(self.blocks) << 32
    }
}
