//! The way back of a zoned drive: its root says which blocks each zone has.

use std::collections::BTreeMap;

use leyden_ftl::recovery::StepName;
use leyden_nand::{BlockId, Content, Medium, MetaPage, PageKind, Ppn};

use super::{Derived, Reads, WayBack, blocks_of, dump_blocks, kind_of, last_dump, places_of};

/// Reads little-endian numbers of four bytes.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte()?, self.byte()?]))
    }

    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }
}

/// Blocks of a zone side by side.
struct Set {
    lanes: u32,
    next: u32,
    blocks: Vec<Option<BlockId>>,
}

/// The root's entry for a zone.
struct Listed {
    is_irregular: bool,
    sets: Vec<Set>,
}

fn set_of(bytes: &mut Bytes<'_>) -> Option<Set> {
    let [lanes, next, _, count] =
        [bytes.number()?, bytes.number()?, bytes.number()?, bytes.number()?];
    let block = |bytes: &mut Bytes<'_>| Some(bytes.number()?.checked_sub(1).map(BlockId));
    let blocks = (0..count).map(|_| block(bytes)).collect::<Option<_>>()?;
    Some(Set { lanes, next, blocks })
}

fn zone_of(bytes: &mut Bytes<'_>) -> Option<Listed> {
    let (_, flags, sets) = (bytes.byte()?, bytes.byte()?, bytes.short()?);
    for _ in 0..4 {
        bytes.number()?;
    }
    let extension = bytes.number()? as usize;
    bytes.0 = bytes.0.get(extension..)?;
    let sets = (0..sets).map(|_| set_of(bytes)).collect::<Option<_>>()?;
    Some(Listed { is_irregular: flags >> 3 & 1 != 0, sets })
}

/// The zones that the root of a dump lists; `None` if it is not whole.
fn table(dump: &[(Ppn, &MetaPage)]) -> Option<Vec<Listed>> {
    let roots = dump.iter().filter(|(_, page)| page.kind == PageKind::Root);
    let parts: Vec<&[u8]> = roots.map(|(_, page)| &*page.bytes).collect();
    let bytes = parts.concat();
    let mut bytes = Bytes(&bytes);
    if bytes.number()? as usize != parts.len() {
        return None;
    }
    let zones = bytes.number()?;
    (0..zones).map(|_| zone_of(&mut bytes)).collect()
}

impl WayBack {
    /// The reads of a zoned drive with this medium in its recovery.
    pub(crate) fn zoned<C: Content>(&self, medium: &Medium<C>) -> Derived {
        let dump = last_dump(medium);
        let mut reads = Reads::new(self);
        for block in dump_blocks(medium) {
            reads.add(self.geometry.die_of(block), 1);
        }
        let mut steps = vec![reads.areas(StepName::FindCheckpoint)];
        let roots = places_of(&dump, PageKind::Root);
        steps.push(Reads::new(self).add_places(roots).pages(StepName::LoadMap));
        steps.push(match table(&dump) {
            Some(zones) => {
                let mut reads = Reads::new(self);
                for zone in &zones {
                    self.read_zone(zone, medium, &mut reads);
                }
                reads.areas(StepName::OpenBlocks)
            }
            None => self.all_data(medium),
        });
        self.put_back(&dump, &mut steps);
        // Of a zone that lost its middle the dump holds nothing that is wanted.
        Derived { steps, optional: vec![StepName::PutBack] }
    }

    fn all_data<C: Content>(&self, medium: &Medium<C>) -> super::Step {
        let mut reads = Reads::new(self);
        let is_data = |&block: &BlockId| {
            kind_of(medium, block) == Some(PageKind::Data) && !medium.is_poisoned(block)
        };
        for block in blocks_of(medium).filter(is_data) {
            reads.add(self.geometry.die_of(block), medium.written_pages(block).into());
        }
        reads.areas(StepName::RollForward)
    }

    /// Pages of a zone whose out-of-band areas tell where its data lies: those that were programmed since the root was
    /// written, and of an irregular zone all.
    fn read_zone<C: Content>(&self, zone: &Listed, medium: &Medium<C>, reads: &mut Reads<'_>) {
        let last = zone.sets.len().saturating_sub(1);
        for (at, set) in zone.sets.iter().enumerate() {
            let end = if at == last { set.end(medium) } else { set.next };
            let from = match zone.is_irregular {
                true => 0,
                false if at == last => set.next,
                false => end,
            };
            let per_level = set.lanes * self.geometry.pages_per_block();
            let mut by_block = BTreeMap::<BlockId, u64>::new();
            for page in from..end {
                let lane = page % set.lanes;
                let block = set.blocks[(page / per_level * set.lanes + lane) as usize];
                *by_block.entry(block.expect("a page in use")).or_default() += 1;
            }
            for (block, pages) in by_block {
                reads.add(self.geometry.die_of(block), pages);
            }
        }
    }
}

impl Set {
    /// The page after the last one that is programmed.
    fn end<C: Content>(&self, medium: &Medium<C>) -> u32 {
        let end_of_lane = |lane: u32| {
            let blocks = self.blocks.iter().skip(lane as usize).step_by(self.lanes as usize);
            let rows: u32 = blocks.flatten().map(|&block| medium.written_pages(block)).sum();
            if rows == 0 { 0 } else { (rows - 1) * self.lanes + lane + 1 }
        };
        (0..self.lanes).map(end_of_lane).fold(self.next, u32::max)
    }
}
