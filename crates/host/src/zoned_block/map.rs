//! The tables: which zones a chunk has, which blocks of a zone are valid, where journal blocks lie.
//!
//! They are words of 64 bits in one array, because that is what the metadata on the members holds
//! ([`super::metadata`]); what is derived from them stands beside it.
//!
//! A block of the device is looked for in the journal's zones, then in its chunk's buffer zone, then in its
//! chunk's data zone; where it is valid in none, it reads as zeroes.
//!
//! **Invariants**
//! - A block is valid in one place at most.
//! - A zone belongs to one chunk, or to the journal, or to nobody; then none of its blocks is valid.
//! - A chunk with a buffer zone has a sequential data zone.
//! - What differs from the last snapshot is in a block that is dirty.

use std::collections::BTreeSet;
use std::ops::Range;

use super::journal::{JournalMap, Slot};
use super::layout::{JOURNAL_RUNS, Layout, Place, ZoneNo};

/// The zones of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Entry {
    pub(super) data: Option<ZoneNo>,
    pub(super) buffer: Option<ZoneNo>,
}

const NONE: u32 = u32::MAX;

impl Entry {
    fn word(self) -> u64 {
        let half = |zone: Option<ZoneNo>| u64::from(zone.map_or(NONE, |zone| zone.0));
        half(self.data) | half(self.buffer) << 32
    }

    fn of(word: u64) -> Self {
        let half = |half: u32| (half != NONE).then_some(ZoneNo(half));
        Self { data: half(word as u32), buffer: half((word >> 32) as u32) }
    }
}

/// The tables as they were at a moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// Blocks of the tables that had changed since the snapshot before, and their words.
    pub(super) blocks: Vec<(u32, Vec<u64>)>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Map {
    layout: Layout,
    words: Vec<u64>,
    /// The tables as they are known to survive a power cut.
    durable: Vec<u64>,
    /// The tables as the last snapshot has them: from some moment on, they survive instead.
    committing: Vec<u64>,
    /// Valid blocks of each zone.
    weights: Vec<u32>,
    journal: JournalMap,
    /// Blocks of the tables that have changed since the last snapshot.
    dirty: BTreeSet<u32>,
}

impl Map {
    /// Nothing is mapped.
    pub(super) fn new(layout: Layout) -> Self {
        let mut words = vec![0; layout.words() as usize];
        words[..layout.chunks as usize].fill(Entry::default().word());
        let mut map = Self {
            layout,
            durable: words.clone(),
            committing: words.clone(),
            words,
            weights: vec![0; layout.zones() as usize],
            journal: JournalMap::new(&layout),
            dirty: BTreeSet::new(),
        };
        map.write_journal();
        map.set_all_dirty();
        map
    }

    /// The tables as the metadata has them.
    ///
    /// # Errors
    /// Says what cannot be.
    pub(super) fn decode(layout: Layout, words: Vec<u64>) -> Result<Self, String> {
        if words.len() != layout.words() as usize {
            return Err(format!("{} words of tables, not {}", words.len(), layout.words()));
        }
        let journal = JournalMap::decode(&layout, &words[Self::journal_words(&layout)])?;
        let mut map = Self {
            durable: words.clone(),
            committing: words.clone(),
            words,
            weights: vec![0; layout.zones() as usize],
            journal,
            layout,
            dirty: BTreeSet::new(),
        };
        for zone in (0..layout.zones()).map(ZoneNo) {
            map.weights[zone.0 as usize] =
                map.words[map.bitmap(zone)].iter().map(|word| word.count_ones()).sum();
        }
        map.check()?;
        Ok(map)
    }

    /// All of it is to be written again.
    pub(super) fn set_all_dirty(&mut self) {
        self.dirty = (0..self.layout.table_blocks()).collect();
    }

    pub(super) const fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The blocks changed since the last snapshot, with their present contents.
    pub(super) fn snapshot(&mut self) -> Snapshot {
        let dirty = std::mem::take(&mut self.dirty);
        let mut blocks = Vec::with_capacity(dirty.len());
        for block in dirty {
            let range = self.block_words(block);
            self.committing[range.clone()].copy_from_slice(&self.words[range.clone()]);
            blocks.push((block, self.words[range].to_vec()));
        }
        Snapshot { blocks }
    }

    /// `snapshot` survives a power cut from now on.
    pub(super) fn committed(&mut self, snapshot: &Snapshot) {
        for (block, words) in &snapshot.blocks {
            let range = self.block_words(*block);
            self.durable[range].copy_from_slice(words);
        }
    }

    /// `snapshot` could not be written: it is dirty again.
    pub(super) fn not_committed(&mut self, snapshot: &Snapshot) {
        self.dirty.extend(snapshot.blocks.iter().map(|&(block, _)| block));
    }

    fn block_words(&self, block: u32) -> Range<usize> {
        let per_block = self.layout.words_per_block();
        let first = (block * per_block) as usize;
        first..(first + per_block as usize).min(self.words.len())
    }

    #[inline]
    fn set_word(&mut self, at: usize, word: u64) {
        if self.words[at] != word {
            self.words[at] = word;
            self.dirty.insert(at as u32 / self.layout.words_per_block());
        }
    }

    #[inline]
    pub(super) fn chunk(&self, chunk: u32) -> Entry {
        Entry::of(self.words[chunk as usize])
    }

    pub(super) fn set_chunk(&mut self, chunk: u32, entry: Entry) {
        self.set_word(chunk as usize, entry.word());
    }

    /// The words of the bitmap of `zone`.
    #[inline]
    fn bitmap(&self, zone: ZoneNo) -> Range<usize> {
        let words = self.layout.bitmap_words();
        let first = (self.layout.chunks + zone.0 * words) as usize;
        first..first + words as usize
    }

    #[inline]
    pub(super) fn is_valid(&self, zone: ZoneNo, at: u32) -> bool {
        let word = self.bitmap(zone).start + at as usize / 64;
        self.words[word] >> (at % 64) & 1 == 1
    }

    /// Valid blocks of `zone`.
    #[inline]
    pub(super) fn weight(&self, zone: ZoneNo) -> u32 {
        self.weights[zone.0 as usize]
    }

    /// Marks blocks of a zone as valid, or as not.
    #[inline]
    pub(super) fn set_valid(&mut self, place: Place, valid: bool) {
        let bitmap = self.bitmap(place.zone).start;
        for (word, mask) in masks(place.at, place.blocks) {
            let before = self.words[bitmap + word];
            let after = if valid { before | mask } else { before & !mask };
            let weight = &mut self.weights[place.zone.0 as usize];
            *weight = *weight + after.count_ones() - before.count_ones();
            self.set_word(bitmap + word, after);
        }
    }

    /// The first valid block of `zone` from `from` on.
    pub(super) fn next_valid(&self, zone: ZoneNo, from: u32) -> Option<u32> {
        let bitmap = self.bitmap(zone);
        let first = from as usize / 64;
        let mut mask = !0 << (from % 64);
        for (index, word) in self.words[bitmap].iter().enumerate().skip(first) {
            let rest = word & mask;
            if rest != 0 {
                return Some(index as u32 * 64 + rest.trailing_zeros());
            }
            mask = !0;
        }
        None
    }

    /// Where block `at` of `chunk` lies; `None` if it is zeroes.
    #[inline]
    pub(super) fn find(&self, chunk: u32, at: u32) -> Option<(ZoneNo, u32)> {
        if let Some(slot) = self.slot(chunk, at)
            && self.is_valid(slot.zone, slot.at)
        {
            return Some((slot.zone, slot.at));
        }
        let Entry { data, buffer } = self.chunk(chunk);
        let zone = [buffer, data].into_iter().flatten().find(|&zone| self.is_valid(zone, at))?;
        Some((zone, at))
    }

    /// Blocks of the device from block `at` of `chunk` on have new data in `place`, and nowhere else; or are
    /// zeroes.
    pub(super) fn settle(&mut self, chunk: u32, at: u32, blocks: u32, place: Option<Place>) {
        let Entry { data, buffer } = self.chunk(chunk);
        for zone in [buffer, data].into_iter().flatten() {
            if place.is_none_or(|place| place.zone != zone) {
                self.set_valid(Place { zone, at, blocks }, false);
            }
        }
        if !self.journal.is_empty() {
            for block in at..at + blocks {
                if let Some(slot) = self.slot(chunk, block)
                    && place.is_none_or(|place| place.zone != slot.zone)
                {
                    self.set_valid(Place { zone: slot.zone, at: slot.at, blocks: 1 }, false);
                }
            }
        }
        if let Some(place) = place {
            self.set_valid(place, true);
        }
    }

    /// True if a power cut would leave everything that says where these blocks lie as it is, at whatever moment of
    /// the commit that is under way.
    pub(super) fn is_durable(&self, chunk: u32, at: u32, blocks: u32) -> bool {
        let changed = |word: usize| {
            let now = self.words[word];
            let committing = now ^ self.committing[word];
            (now ^ self.durable[word]) | committing
        };
        let same = |word: usize| changed(word) == 0;
        if !same(chunk as usize) || !Self::journal_words(&self.layout).all(same) {
            return false;
        }
        let Entry { data, buffer } = self.chunk(chunk);
        let is_same = |zone: ZoneNo, at: u32, blocks: u32| {
            let bitmap = self.bitmap(zone).start;
            masks(at, blocks).all(|(word, mask)| changed(bitmap + word) & mask == 0)
        };
        [buffer, data].into_iter().flatten().all(|zone| is_same(zone, at, blocks))
            && (self.journal.is_empty()
                || (at..at + blocks)
                    .filter_map(|block| self.slot(chunk, block))
                    .all(|slot| is_same(slot.zone, slot.at, 1)))
    }

    fn journal_words(layout: &Layout) -> Range<usize> {
        (layout.chunks + layout.zones() * layout.bitmap_words()) as usize..layout.words() as usize
    }

    fn device_block(&self, chunk: u32, at: u32) -> u64 {
        u64::from(chunk) * u64::from(self.layout.zone_blocks) + u64::from(at)
    }

    /// Where in the journal's zones block `at` of `chunk` has its place, if it has one.
    #[inline]
    pub(super) fn slot(&self, chunk: u32, at: u32) -> Option<Slot> {
        if self.journal.is_empty() {
            return None;
        }
        self.journal.slot(self.device_block(chunk, at))
    }

    /// True if block `at` of `chunk` lies in the journal's zones.
    #[inline]
    pub(super) fn is_in_journal(&self, chunk: u32, at: u32) -> bool {
        self.slot(chunk, at).is_some_and(|slot| self.is_valid(slot.zone, slot.at))
    }

    /// The journal's zones.
    pub(super) const fn journal(&self) -> &JournalMap {
        &self.journal
    }

    /// Gives block `at` of `chunk` a place in the journal's zones; `None` if there is none left, or only in
    /// a zone that the journal has not got yet ([`JournalMap::wants_zone`]).
    pub(super) fn add_slot(&mut self, chunk: u32, at: u32) -> Option<Slot> {
        let block = self.device_block(chunk, at);
        let slot = self.journal.add(block)?;
        self.write_journal_changes();
        Some(slot)
    }

    /// `zone` is the journal's from now on.
    pub(super) fn add_journal_zone(&mut self, zone: ZoneNo) {
        self.journal.add_zone(zone);
        self.write_journal();
    }

    /// The first blocks that are valid in the journal's zones, `most` at most: chunk, first block, blocks.
    pub(super) fn next_in_journal(&self, most: u32) -> Option<(u32, u32, u32)> {
        let first = |zone| Some(Slot { zone, at: self.next_valid(zone, 0)? });
        let slot = self.journal.zones().find_map(first)?;
        let (block, run) = self.journal.owner(slot).expect("a valid block of the journal is one's");
        let zone_blocks = self.layout.zone_blocks;
        let (chunk, at) = (block / u64::from(zone_blocks), (block % u64::from(zone_blocks)) as u32);
        let most = most.min(run).min(zone_blocks - slot.at).min(zone_blocks - at);
        let blocks = (0..most).take_while(|n| self.is_valid(slot.zone, slot.at + n)).count() as u32;
        Some((chunk as u32, at, blocks))
    }

    /// Nothing is in the journal's zones; returns them: they are nobody's from now on.
    pub(super) fn clear_journal(&mut self) -> Vec<ZoneNo> {
        assert!(self.journal.zones().all(|zone| self.weight(zone) == 0), "the journal is in use");
        let zones = self.journal.clear();
        self.write_journal();
        zones
    }

    fn write_journal(&mut self) {
        let range = Self::journal_words(&self.layout);
        for (at, word) in range.zip(self.journal.encode()) {
            self.set_word(at, word);
        }
    }

    fn write_journal_changes(&mut self) {
        let range = Self::journal_words(&self.layout);
        for (at, word) in self.journal.changed() {
            self.set_word(range.start + at, word);
        }
    }

    /// Says what does not hold of the invariants.
    ///
    /// # Errors
    /// As text.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut owned = vec![false; self.layout.zones() as usize];
        let mut own = |zone: ZoneNo, whose: &str| {
            if !self.layout.is_for_data(zone) {
                return Err(format!("{whose} has {zone:?}, which is not for data"));
            }
            if std::mem::replace(&mut owned[zone.0 as usize], true) {
                return Err(format!("{whose} has {zone:?}, and so has another"));
            }
            Ok(())
        };
        for chunk in 0..self.layout.chunks {
            let Entry { data, buffer } = self.chunk(chunk);
            for zone in [data, buffer].into_iter().flatten() {
                own(zone, &format!("chunk {chunk}"))?;
            }
            let is_random = |zone: Option<ZoneNo>| zone.is_some_and(|it| self.layout.is_random(it));
            if buffer.is_some() && (!is_random(buffer) || data.is_none() || is_random(data)) {
                return Err(format!(
                    "chunk {chunk} has data in {data:?} and a buffer in {buffer:?}"
                ));
            }
        }
        for zone in self.journal.zones() {
            own(zone, "the journal")?;
            if !self.layout.is_random(zone) {
                return Err(format!("the journal has {zone:?}, which is sequential"));
            }
        }
        for zone in (0..self.layout.zones()).map(ZoneNo) {
            if !owned[zone.0 as usize] && self.weight(zone) > 0 {
                return Err(format!("{zone:?} is nobody's and has valid blocks"));
            }
            let last = self.words[self.bitmap(zone)].last().copied().unwrap_or(0);
            let used = self.layout.zone_blocks % 64;
            if used != 0 && last >> used != 0 {
                return Err(format!("{zone:?} has valid blocks beyond its end"));
            }
        }
        self.check_places()
    }

    /// No block is valid in two places.
    fn check_places(&self) -> Result<(), String> {
        for chunk in 0..self.layout.chunks {
            let Entry { data: Some(data), buffer: Some(buffer) } = self.chunk(chunk) else {
                continue;
            };
            let both = self.bitmap(data).zip(self.bitmap(buffer));
            if both.clone().any(|(data, buffer)| self.words[data] & self.words[buffer] != 0) {
                return Err(format!("chunk {chunk} has a block in {data:?} and in {buffer:?}"));
            }
        }
        let mut used = vec![0; self.layout.zones() as usize];
        for (block, slot) in self.journal.slots() {
            let chunk = (block / u64::from(self.layout.zone_blocks)) as u32;
            let at = (block % u64::from(self.layout.zone_blocks)) as u32;
            if chunk >= self.layout.chunks {
                return Err(format!("the journal has block {block}, which is beyond the end"));
            }
            if !self.is_valid(slot.zone, slot.at) {
                continue;
            }
            used[slot.zone.0 as usize] += 1;
            let Entry { data, buffer } = self.chunk(chunk);
            let mut others = [data, buffer].into_iter().flatten();
            if others.any(|zone| self.is_valid(zone, at)) {
                return Err(format!("block {at} of chunk {chunk} is in the journal and elsewhere"));
            }
        }
        let unused = self.journal.zones().find(|zone| self.weight(*zone) != used[zone.0 as usize]);
        match unused {
            Some(zone) => Err(format!("{zone:?} of the journal has valid blocks of no chunk")),
            None => Ok(()),
        }
    }
}

/// The words of a bitmap that hold `blocks` bits from `at` on, and those bits.
#[inline]
fn masks(at: u32, blocks: u32) -> impl Iterator<Item = (usize, u64)> {
    let end = at + blocks;
    (at / 64..end.div_ceil(64)).map(move |word| {
        let low = if word == at / 64 { !0 << (at % 64) } else { !0 };
        let high = if word == end / 64 { !(!0 << (end % 64)) } else { !0 };
        (word as usize, low & high)
    })
}

const _: () = assert!(JOURNAL_RUNS > 0);
