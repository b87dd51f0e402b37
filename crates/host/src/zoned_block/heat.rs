//! How hot chunks are: how many of their blocks were written lately.
//!
//! The heat of a chunk halves whenever the host has written as many blocks as the random zones hold. About so long would
//! a chunk stay in them if all were moved in turn, so heat tells what would have come back meanwhile.

use super::layout::Layout;

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// As it was in `half_life`.
    blocks: u64,
    half_life: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Heat {
    /// Blocks written in a half-life.
    length: u64,
    written: u64,
    chunks: Vec<Chunk>,
}

impl Heat {
    /// Nothing is hot.
    pub(super) fn new(layout: &Layout) -> Self {
        let length = u64::from(layout.random - layout.meta) * u64::from(layout.zone_blocks);
        Self { length, written: 0, chunks: vec![Chunk::default(); layout.chunks as usize] }
    }

    /// The host has written blocks of `chunk`.
    pub(super) fn wrote(&mut self, chunk: u32, blocks: u32) {
        self.written += u64::from(blocks);
        let heat = self.of(chunk) + u64::from(blocks);
        let half_life = self.written / self.length;
        self.chunks[chunk as usize] = Chunk { blocks: heat, half_life };
    }

    /// Blocks of `chunk` written lately.
    pub(super) fn of(&self, chunk: u32) -> u64 {
        let Chunk { blocks, half_life } = self.chunks[chunk as usize];
        let passed = self.written / self.length - half_life;
        blocks.checked_shr(passed.try_into().unwrap_or(u32::MAX)).unwrap_or(0)
    }

    /// Forgets all writes.
    pub(super) fn clear(&mut self) {
        self.written = 0;
        self.chunks.fill(Chunk::default());
    }
}
