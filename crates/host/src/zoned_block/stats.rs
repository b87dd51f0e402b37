//! Counters of a zoned block device.

use leyden_device::{DataKind, Stats};
use leyden_sim::counters;
use serde::Serialize;

use super::layout::Layout;

counters! {
    /// Counts since the device was made. Blocks are mapping units of the members.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct ZonedBlockStats {
        /// Blocks that the host has written, zeroes that are stored among them.
        pub host_blocks: u64,
        /// Of those, blocks of journals.
        pub host_journal_blocks: u64,
        /// Of those, a file system's other metadata.
        pub host_meta_blocks: u64,
        /// Blocks that went to journal zones.
        pub separated_blocks: u64,
        /// Blocks that have left them, because the journal had.
        pub released_blocks: u64,
        /// Blocks written at the write pointer of a sequential zone.
        pub direct_blocks: u64,
        /// Blocks of journals that reclaim has copied.
        pub copied_journal_blocks: u64,
        /// Blocks of a file system's other metadata that it has copied.
        pub copied_meta_blocks: u64,
        /// Other blocks that it has copied.
        pub copied_data_blocks: u64,
        /// Blocks of zeroes that it has written to fill holes.
        pub filled_blocks: u64,
        /// Chunks that were moved.
        pub reclaimed: u64,
        /// Of those, sequential zones that were copied into their buffer.
        pub merged_into_buffer: u64,
        /// Moves aborted by a request for the chunk.
        pub aborted: u64,
        /// Requests that waited for a free random zone.
        pub starved: u64,
        /// Zones that were reset.
        pub resets: u64,
        /// Zones that were finished, to be allowed to begin others.
        pub finishes: u64,
        /// Times that tables were written.
        pub commits: u64,
        /// Blocks of metadata written.
        pub metadata_blocks: u64,
        /// Times that the tables were read back after a power cut.
        pub recoveries: u64,
    }
}

/// The flash of both members as one drive's, which has written `host_blocks` for the host.
pub fn flash_of_both(zoned: &Stats, conventional: &Stats, host_blocks: u64) -> Stats {
    let (mut all, other) = (zoned.clone(), conventional);
    let (to, from) = (&mut all.ftl, &other.ftl);
    to.programs.user += from.programs.user;
    to.programs.gc_user += from.programs.gc_user;
    to.programs.map += from.programs.map;
    to.programs.gc_map += from.programs.gc_map;
    to.reads.host += from.reads.host;
    to.reads.rmw += from.reads.rmw;
    to.reads.gc_user += from.reads.gc_user;
    to.erases += from.erases;
    to.user_units += from.user_units;
    to.padded_units += from.padded_units;
    to.gc.copied_units += from.gc.copied_units;
    to.gc.collections += from.gc.collections;
    all.ssd.units_written = host_blocks;
    all.die_busy.extend(&other.die_busy);
    all.channel_busy.extend(&other.channel_busy);
    all
}

/// The counters, and the kind of data of each block, as far as writes declared it. Power cuts
/// change neither.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    pub(super) totals: ZonedBlockStats,
    kinds: Vec<DataKind>,
    /// Blocks of each chunk that were copied.
    copied: Vec<u64>,
    zone_blocks: u32,
}

impl Counters {
    pub(super) fn new(layout: &Layout) -> Self {
        let blocks = layout.chunks as usize * layout.zone_blocks as usize;
        let kinds = vec![DataKind::Data; blocks];
        let copied = vec![0; layout.chunks as usize];
        Self { totals: ZonedBlockStats::default(), kinds, copied, zone_blocks: layout.zone_blocks }
    }

    fn block(&self, chunk: u32, at: u32) -> usize {
        chunk as usize * self.zone_blocks as usize + at as usize
    }

    pub(super) fn wrote(&mut self, chunk: u32, at: u32, blocks: u32, kind: DataKind) {
        let first = self.block(chunk, at);
        self.kinds[first..first + blocks as usize].fill(kind);
        let blocks = u64::from(blocks);
        self.totals.host_blocks += blocks;
        match kind {
            DataKind::Data => {}
            DataKind::Log => self.totals.host_journal_blocks += blocks,
            DataKind::Meta => self.totals.host_meta_blocks += blocks,
        }
    }

    /// Blocks that reclaim has copied, chunk by chunk.
    pub(super) fn copied_of_chunks(&self) -> impl Iterator<Item = u64> + '_ {
        self.copied.iter().copied()
    }

    pub(super) fn copied(&mut self, chunk: u32, at: u32, blocks: u32) {
        self.copied[chunk as usize] += u64::from(blocks);
        for block in at..at + blocks {
            match self.kinds[self.block(chunk, block)] {
                DataKind::Data => self.totals.copied_data_blocks += 1,
                DataKind::Log => self.totals.copied_journal_blocks += 1,
                DataKind::Meta => self.totals.copied_meta_blocks += 1,
            }
        }
    }
}
