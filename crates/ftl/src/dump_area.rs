//! The dump area: blocks that each die keeps back for what is saved when the power fails.
//!
//! Shared by all kinds of drive. A dump is a sequence of pages, numbered, on whatever dies the planner
//! chose; each carries the dump's sequence. Its *root* pages say what the rest holds, so that recovery
//! knows what is missing. Units of the host's data lie in pages like any other, with their home addresses
//! in the out-of-band areas.
//!
//! **Invariants**: of all dumps on the medium the last one counts, and only until it is used up. It is used
//! up when the drive is ready again; its blocks are erased after that.

use leyden_nand::{BlockId, Content, DieId, Lpn, Medium, MetaPage, PageKind, Ppa, Ppn};

use crate::map::{LogRoot, MapPage, Record, SavedPage, decode_records, encode_records};

/// The table of contents of a dump. It lists the pages of the mapping table that are newer in this dump
/// than anywhere else, so that recovery knows what is missing. Of a journal it says which records are
/// needed, and lists the mapping pages that the records do not tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The mapping pages that the dump is to hold.
    pub map_pages: Vec<MapPage>,
    /// The version of the next page of data.
    pub next_version: u64,
    /// Which part of the mapping table's journal is needed, if there is one.
    pub log: Option<LogRoot>,
}

/// A page of a dump.
#[derive(Clone, Debug)]
pub enum DumpPage<C> {
    /// A part of what the root says.
    Root(Box<[u8]>),
    /// Up to a page of units of the host's data, with their home addresses.
    Units(Vec<(Lpn, C)>),
    /// A mapping page.
    Map(MapPage, SavedPage),
    /// A page of the mapping table's journal, by its number.
    Journal(u64, Box<[Record]>),
}

/// Bytes of a root before the list of mapping pages, which takes a bit for each page of the table.
const ROOT_HEADER_BYTES: usize = 29;

/// Bytes of the root of a drive with so many mapping pages.
pub const fn root_bytes(map_pages: u32) -> u32 {
    ROOT_HEADER_BYTES as u32 + map_pages.div_ceil(8)
}

impl Root {
    /// As it is written: `pages` parts for a table of `map_pages` mapping pages.
    pub fn encode(&self, map_pages: u32, pages: u32) -> Vec<Box<[u8]>> {
        let mut bytes = Vec::with_capacity(root_bytes(map_pages) as usize);
        bytes.extend(pages.to_le_bytes());
        bytes.extend(self.next_version.to_le_bytes());
        bytes.push(u8::from(self.log.is_some()));
        let log = self.log.unwrap_or(LogRoot { tail: 0, next: 0 });
        bytes.extend(log.tail.to_le_bytes());
        bytes.extend(log.next.to_le_bytes());
        let mut bits = vec![0_u8; map_pages.div_ceil(8) as usize];
        for page in &self.map_pages {
            bits[page.index() / 8] |= 1 << (page.0 % 8);
        }
        bytes.extend(bits);
        let part = bytes.len().div_ceil(pages as usize).max(1);
        let mut parts: Vec<Box<[u8]>> = bytes.chunks(part).map(Box::from).collect();
        parts.resize(pages as usize, Box::default());
        parts
    }

    /// Decodes all parts of [`Root::encode`] in order; `None` if some are missing.
    pub fn decode(parts: &[&[u8]]) -> Option<Self> {
        let bytes = parts.concat();
        let (pages, rest) = bytes.split_first_chunk()?;
        let (next_version, rest) = rest.split_first_chunk()?;
        let (&has_log, rest) = rest.split_first()?;
        let (tail, rest) = rest.split_first_chunk()?;
        let (next, bits) = rest.split_first_chunk()?;
        if u32::from_le_bytes(*pages) as usize != parts.len() {
            return None;
        }
        let log = LogRoot { tail: u64::from_le_bytes(*tail), next: u64::from_le_bytes(*next) };
        let is_listed = |&page: &u32| bits[page as usize / 8] >> (page % 8) & 1 != 0;
        Some(Self {
            map_pages: (0..bits.len() as u32 * 8).filter(is_listed).map(MapPage).collect(),
            next_version: u64::from_le_bytes(*next_version),
            log: (has_log != 0).then_some(log),
        })
    }
}

/// The contents of a dump, as far as it was written, in the order it was.
#[derive(Clone, Debug)]
pub struct DumpImage<C> {
    /// Its table of contents; `None` if it was not written whole.
    pub root: Option<Root>,
    /// The host's data.
    pub units: Vec<(Lpn, C)>,
    /// Mapping pages.
    pub map_pages: Vec<(MapPage, SavedPage)>,
    /// Pages of the mapping table's journal.
    pub journal: Vec<(u64, Box<[Record]>)>,
}

/// Where a dump gets its blocks.
pub trait DumpBlocks {
    /// Takes an erased block that `die` keeps back for dumps.
    fn take_for_dump(&mut self, die: DieId) -> Option<BlockId>;
}

/// One die's blocks.
#[derive(Clone, Debug, Default)]
struct DumpDie {
    /// Blocks that hold the last dump, the last one perhaps in part.
    written: Vec<BlockId>,
    /// Blocks whose dump is not needed any more.
    to_erase: Vec<BlockId>,
}

/// The blocks of dumps.
#[derive(Clone, Debug)]
pub struct DumpArea {
    dies: Vec<DumpDie>,
    /// The sequence of the last dump.
    sequence: u64,
    /// Pages written of the dump under way.
    pages: u64,
}

impl DumpArea {
    /// The dumps that `medium` holds in the blocks `in_use`.
    pub fn new<C: Content>(medium: &Medium<C>, in_use: impl Iterator<Item = BlockId>) -> Self {
        let geometry = medium.geometry();
        let in_use: Vec<_> = in_use.collect();
        let last_in = |block| medium.meta_pages(block).map(|(_, page)| page.sequence).max();
        let last = in_use.iter().filter_map(|&block| last_in(block)).max().unwrap_or(0);
        let mut dies = vec![DumpDie::default(); geometry.dies() as usize];
        for block in in_use {
            let die = &mut dies[geometry.die_of(block).index()];
            if last_in(block) == Some(last) && last > medium.used_dump() {
                die.written.push(block);
            } else {
                die.to_erase.push(block);
            }
        }
        Self { dies, sequence: last.max(medium.used_dump()), pages: 0 }
    }

    /// Reads the last dump, if it is not used up.
    pub fn read<C: Content>(&self, medium: &Medium<C>) -> Option<DumpImage<C>> {
        let pages = self.pages(medium);
        if pages.is_empty() {
            return None;
        }
        let roots = pages.iter().filter(|(_, page)| page.kind == PageKind::Root);
        let roots: Vec<&[u8]> = roots.map(|(_, page)| &*page.bytes).collect();
        let mut image = DumpImage {
            root: Root::decode(&roots),
            units: Vec::new(),
            map_pages: Vec::new(),
            journal: Vec::new(),
        };
        for (place, page) in pages {
            read_page(medium, place, page, &mut image);
        }
        Some(image)
    }

    /// The pages of the last dump, if it is not used up, in the order they were written.
    pub fn pages<'a, C: Content>(&self, medium: &'a Medium<C>) -> Vec<(Ppn, &'a MetaPage)> {
        let mut pages: Vec<_> = self.by_block(medium).collect();
        pages.sort_by_key(|(_, page)| page.number);
        pages
    }

    /// The same pages, block by block.
    pub(crate) fn by_block<'a, C: Content>(
        &self,
        medium: &'a Medium<C>,
    ) -> impl Iterator<Item = (Ppn, &'a MetaPage)> {
        let written = self.dies.iter().flat_map(|die| &die.written);
        let pages = written.flat_map(|&block| medium.meta_pages(block));
        pages.filter(|(_, page)| page.sequence == self.sequence)
    }

    /// Blocks that hold a dump, needed or not.
    pub fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.dies.iter().flat_map(|die| die.written.iter().chain(&die.to_erase).copied())
    }

    /// Blocks of `die` whose dump is not needed any more.
    pub fn old_blocks(&self, die: DieId) -> impl Iterator<Item = BlockId> + '_ {
        self.dies[die.index()].to_erase.iter().copied()
    }

    /// Erases the blocks of dumps that are not needed any more, while the drive recovers: a cut just
    /// after that needs the room. Hands each block to `erase`.
    pub fn erase_old(&mut self, mut erase: impl FnMut(BlockId)) {
        for die in &mut self.dies {
            std::mem::take(&mut die.to_erase).into_iter().for_each(&mut erase);
        }
    }

    /// A block of `die` whose dump is not needed any more, to be erased.
    pub fn take_old(&mut self, die: DieId) -> Option<BlockId> {
        self.dies[die.index()].to_erase.pop()
    }

    /// Begins a dump. The one before must have been used up.
    pub fn begin(&mut self) {
        assert!(self.dies.iter().all(|die| die.written.is_empty()), "an older dump is needed");
        self.sequence += 1;
        self.pages = 0;
    }

    /// Programs a page of the dump on `die`, in a block that holds `pages_per_block` of a dump. Returns its
    /// place; `None` if there is no room.
    pub fn write<C: Content>(
        &mut self,
        die: DieId,
        pages_per_block: u32,
        page: DumpPage<C>,
        medium: &mut Medium<C>,
        blocks: &mut impl DumpBlocks,
    ) -> Option<Ppn> {
        let place = self.next_place(die, pages_per_block, medium, blocks)?;
        let (kind, units, bytes) = match page {
            DumpPage::Root(part) => (PageKind::Root, Vec::new(), part),
            DumpPage::Units(units) => (PageKind::Dump, units, Box::default()),
            DumpPage::Map(page, saved) => {
                (PageKind::Mapping, Vec::new(), numbered(page.0, &saved.encode()))
            }
            DumpPage::Journal(number, records) => {
                (PageKind::Journal, Vec::new(), numbered(number, &encode_records(&records)))
            }
        };
        let count = units.len() as u32;
        medium.write_units(medium.geometry().first_unit(place), 0, units.into_iter());
        let meta = MetaPage { kind, number: self.pages, sequence: self.sequence, bytes };
        medium.program_dump(place, count, meta);
        self.pages += 1;
        Some(place)
    }

    /// A program of the dump fails on `die`. Returns the page that it spoils; `None` if there is no room.
    pub fn fail<C: Content>(
        &mut self,
        die: DieId,
        pages_per_block: u32,
        medium: &mut Medium<C>,
        blocks: &mut impl DumpBlocks,
    ) -> Option<Ppn> {
        let place = self.next_place(die, pages_per_block, medium, blocks)?;
        medium.fail_dump(place);
        Some(place)
    }

    /// The page of `die` that is programmed next.
    fn next_place<C: Content>(
        &mut self,
        die: DieId,
        pages_per_block: u32,
        medium: &Medium<C>,
        blocks: &mut impl DumpBlocks,
    ) -> Option<Ppn> {
        let written = &mut self.dies[die.index()].written;
        let open = written.last().copied();
        let open = open.filter(|&open| medium.written_pages(open) < pages_per_block);
        let block = match open {
            Some(open) => open,
            None => blocks.take_for_dump(die)?,
        };
        if open.is_none() {
            written.push(block);
        }
        medium.next_page(block)
    }

    /// How many dumps there were, or might have been ([`DumpArea::skip`]).
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Counts a dump that was not made: the power has returned, whether or not anything was dumped.
    pub const fn skip(&mut self) {
        self.sequence += 1;
    }

    /// The drive is ready: what the dump held is where it belongs, and its blocks will be erased.
    pub fn use_up<C: Content>(&mut self, medium: &mut Medium<C>) {
        medium.use_up_dump(self.sequence);
        for DumpDie { written, to_erase } in &mut self.dies {
            to_erase.append(written);
        }
    }
}

/// Bytes of a page with its number before them.
fn numbered(number: impl Into<u64>, bytes: &[u8]) -> Box<[u8]> {
    [&number.into().to_le_bytes(), bytes].concat().into()
}

/// The units of the host's data in a page, with their home addresses.
pub(crate) fn units_of<C: Content>(
    medium: &Medium<C>,
    page: Ppn,
) -> impl Iterator<Item = (Lpn, C)> {
    let first = medium.geometry().first_unit(page).0;
    let units = (first..first + medium.geometry().units_per_page()).map(Ppa);
    units.filter_map(|unit| Some((medium.lpn(unit)?, medium.content(unit))))
}

fn read_page<C: Content>(
    medium: &Medium<C>,
    place: Ppn,
    page: &MetaPage,
    image: &mut DumpImage<C>,
) {
    let numbered = || {
        let (number, bytes) = page.bytes.split_first_chunk()?;
        Some((u64::from_le_bytes(*number), bytes))
    };
    match page.kind {
        PageKind::Dump => image.units.extend(units_of(medium, place)),
        PageKind::Mapping => {
            let saved =
                numbered().and_then(|(number, bytes)| Some((number, SavedPage::decode(bytes)?)));
            image.map_pages.extend(saved.map(|(number, saved)| (MapPage(number as u32), saved)));
        }
        PageKind::Journal => {
            let records =
                numbered().and_then(|(number, bytes)| Some((number, decode_records(bytes)?)));
            image.journal.extend(records);
        }
        PageKind::Data | PageKind::Root => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_root_is_read_back_from_all_its_parts(
            listed in proptest::collection::btree_set(0_u32..300, 0..40),
            next_version: u64, log in proptest::option::of((any::<u64>(), any::<u64>())), pages in 1_u32..5,
        ) {
            let log = log.map(|(tail, next)| LogRoot { tail, next });
            let map_pages = listed.into_iter().map(MapPage).collect();
            let root = Root { map_pages, next_version, log };
            let parts = root.encode(300, pages);
            let mut read: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            prop_assert_eq!(Root::decode(&read), Some(root));
            read.pop();
            prop_assert_eq!(Root::decode(&read), None);
        }
    }
}
