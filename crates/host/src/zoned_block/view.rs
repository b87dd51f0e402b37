//! The device seen from outside: the place of each chunk, and the use of each random zone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::map::{Entry, Map};
use super::zones::{Use, Zones};

/// A chunk of a zoned block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Chunk {
    /// Where it lies.
    pub place: ChunkPlace,
    /// Its blocks that hold data, but for those in journal zones.
    pub valid_blocks: u32,
    /// Blocks of it that reclaim has copied, since the device was made.
    pub copied_blocks: u64,
}

/// Where a chunk lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChunkPlace {
    /// Nothing of it is written, or all of that lies in journal zones.
    Nowhere,
    /// In a random zone.
    Random,
    /// In a sequential zone.
    Sequential,
    /// In a sequential zone and a buffer zone.
    Buffered,
}

/// The use of a zone of the conventional drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RandomZone {
    /// The layer's tables.
    Tables,
    /// Nothing.
    Free,
    /// A chunk.
    Data,
    /// Overwritten data of a chunk in a sequential zone.
    Buffer,
    /// A journal.
    Journal,
    /// Nothing any more: it will be free.
    GivenUp,
}

/// Chunk `chunk`, of which `copied_blocks` were copied.
pub(super) fn chunk(layout: &Layout, map: &Map, chunk: u32, copied_blocks: u64) -> Chunk {
    let Entry { data, buffer } = map.chunk(chunk);
    let place = match (data, buffer) {
        (None, _) => ChunkPlace::Nowhere,
        (Some(data), _) if layout.is_random(data) => ChunkPlace::Random,
        (Some(_), None) => ChunkPlace::Sequential,
        (Some(_), Some(_)) => ChunkPlace::Buffered,
    };
    let valid_blocks = [data, buffer].into_iter().flatten().map(|zone| map.weight(zone)).sum();
    Chunk { place, valid_blocks, copied_blocks }
}

/// The use of each zone of the conventional member.
pub(super) fn random_zones(layout: &Layout, zones: &Zones) -> impl Iterator<Item = RandomZone> {
    zones.all().take(layout.random as usize).map(|(_, usage)| match usage {
        Use::Kept => RandomZone::Tables,
        Use::Free => RandomZone::Free,
        Use::Data(_) => RandomZone::Data,
        Use::Buffer(_) => RandomZone::Buffer,
        Use::Journal => RandomZone::Journal,
        Use::Target | Use::GivenUp | Use::Bad => RandomZone::GivenUp,
    })
}
