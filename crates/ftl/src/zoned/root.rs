//! The root of a zoned drive's dump: the zone table, and which blocks each zone has.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | pages of the root |
//! | 4 | zones |
//! | | for each zone: |
//! | 1 | its state (`ZS`) |
//! | 1 | bit 0: has a Zone Random Write Area; 1: changed by the controller; 2: has a descriptor extension; 3: irregular |
//! | 2 | sets of blocks |
//! | 4 | write pointer |
//! | 4 | units that flash holds, from the zone's beginning |
//! | 4 | generation |
//! | 4 | pages that it has used since it was empty |
//! | 4 + n | length of the descriptor extension, and its bytes |
//! | | for each set: lanes (4), next page (4), pages (4), number of blocks (4), and each block plus 1 or 0 (4) |
//!
//! All numbers are little-endian. Of an irregular zone recovery finds by the out-of-band areas of its
//! pages where its data lies; of a regular one it lies in order from the first page on.

use leyden_nand::BlockId;

use super::body::{Body, Set};
use super::{Zone, ZoneShape, ZoneState};

const HEADER_BYTES: u64 = 8;
const ZONE_BYTES: u64 = 24;
const SET_BYTES: u64 = 16;
const BLOCK_BYTES: u64 = 4;

/// Bytes of a root, at most: every block in a set of its own.
pub fn zone_root_bytes(shape: &ZoneShape, blocks: u32) -> u64 {
    HEADER_BYTES
        + u64::from(shape.zones) * (ZONE_BYTES + u64::from(shape.extension_bytes))
        + u64::from(blocks) * (SET_BYTES + BLOCK_BYTES)
}

/// A zone's entry in a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ZoneRoot {
    pub(super) state: ZoneState,
    pub(super) has_zrwa: bool,
    pub(super) is_changed: bool,
    pub(super) is_irregular: bool,
    pub(super) wp: u32,
    pub(super) settled: u32,
    pub(super) generation: u32,
    pub(super) order: u32,
    pub(super) extension: Option<Box<[u8]>>,
    pub(super) sets: Vec<Set>,
}

impl ZoneRoot {
    pub(super) fn of(zone: &Zone, body: &Body, settled: u32) -> Self {
        Self {
            state: zone.state,
            has_zrwa: zone.has_zrwa,
            is_changed: zone.is_changed,
            is_irregular: !body.is_regular(),
            wp: zone.wp,
            settled,
            generation: zone.generation,
            order: body.order,
            extension: zone.extension.clone(),
            sets: body.sets.clone(),
        }
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let flags = [self.has_zrwa, self.is_changed, self.extension.is_some(), self.is_irregular];
        let flags = flags.iter().enumerate().fold(0, |sum, (bit, &on)| sum | u8::from(on) << bit);
        bytes.extend([self.state.code(), flags]);
        bytes.extend((self.sets.len() as u16).to_le_bytes());
        let extension = self.extension.as_deref().unwrap_or_default();
        let length = extension.len() as u32;
        for number in [self.wp, self.settled, self.generation, self.order, length] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(extension);
        for set in &self.sets {
            for number in [set.lanes, set.next, set.pages, set.blocks.len() as u32] {
                bytes.extend(number.to_le_bytes());
            }
            for block in &set.blocks {
                bytes.extend(block.map_or(0, |block| block.0 + 1).to_le_bytes());
            }
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (&[code, flags], rest) = bytes.split_first_chunk()?;
        let (&sets, rest) = rest.split_first_chunk()?;
        *bytes = rest;
        let [wp, settled, generation] = [take(bytes)?, take(bytes)?, take(bytes)?];
        let [order, length] = [take(bytes)?, take(bytes)?];
        let (extension, rest) = bytes.split_at_checked(length as usize)?;
        *bytes = rest;
        let is_set = |bit: u8| flags >> bit & 1 != 0;
        Some(Self {
            state: ZoneState::with_code(code)?,
            has_zrwa: is_set(0),
            is_changed: is_set(1),
            extension: is_set(2).then(|| extension.into()),
            is_irregular: is_set(3),
            wp,
            settled,
            generation,
            order,
            sets: (0..u16::from_le_bytes(sets))
                .map(|_| decode_set(bytes))
                .collect::<Option<_>>()?,
        })
    }
}

fn decode_set(bytes: &mut &[u8]) -> Option<Set> {
    let [lanes, next, pages, count] = [take(bytes)?, take(bytes)?, take(bytes)?, take(bytes)?];
    let block = |bytes: &mut &[u8]| Some(take(bytes)?.checked_sub(1).map(BlockId));
    let blocks = (0..count).map(|_| block(bytes)).collect::<Option<_>>()?;
    Some(Set { lanes, blocks, next, pages })
}

fn take(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

/// The root, as `pages` parts.
pub(super) fn encode(zones: &[ZoneRoot], pages: u32) -> Vec<Box<[u8]>> {
    let mut bytes = Vec::new();
    bytes.extend(pages.to_le_bytes());
    bytes.extend((zones.len() as u32).to_le_bytes());
    for zone in zones {
        zone.encode(&mut bytes);
    }
    let part = bytes.len().div_ceil(pages as usize).max(1);
    let mut parts: Vec<Box<[u8]>> = bytes.chunks(part).map(Box::from).collect();
    parts.resize(pages as usize, Box::default());
    parts
}

/// Decodes all parts of [`encode`] in order; `None` if some are missing.
pub(super) fn decode(parts: &[&[u8]]) -> Option<Vec<ZoneRoot>> {
    let bytes = parts.concat();
    let mut rest = &bytes[..];
    if take(&mut rest)? as usize != parts.len() {
        return None;
    }
    (0..take(&mut rest)?).map(|_| ZoneRoot::decode(&mut rest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn zone() -> impl Strategy<Value = ZoneRoot> {
        let set = (1_u32..4, 0_u32..100, proptest::collection::vec(any::<Option<u16>>(), 0..8));
        let sets = proptest::collection::vec(set, 0..3);
        let extension = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..64));
        let flags = (any::<bool>(), any::<bool>(), any::<bool>());
        (0_usize..7, flags, any::<[u32; 4]>(), extension, sets).prop_map(
            |(state, (has_zrwa, is_changed, is_irregular), numbers, extension, sets)| {
                let [wp, settled, generation, order] = numbers;
                let block = |block: Option<u16>| block.map(|block| BlockId(block.into()));
                let set = |(lanes, next, blocks): (u32, u32, Vec<Option<u16>>)| Set {
                    lanes,
                    next,
                    pages: next + 1,
                    blocks: blocks.into_iter().map(block).collect(),
                };
                let extension = extension.map(Into::into);
                let sets = sets.into_iter().map(set).collect();
                let state = ZoneState::ALL[state];
                ZoneRoot {
                    state,
                    has_zrwa,
                    is_changed,
                    is_irregular,
                    wp,
                    settled,
                    generation,
                    order,
                    extension,
                    sets,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn a_root_is_read_back_from_all_its_parts(
            zones in proptest::collection::vec(zone(), 0..9), pages in 1_u32..5,
        ) {
            let parts = encode(&zones, pages);
            let mut read: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            prop_assert_eq!(decode(&read), Some(zones));
            read.pop();
            prop_assert_eq!(decode(&read), None);
        }
    }
}
