//! What a drive counts: its own counters, and those of its layers as these count them.

use leyden_buffer::BufferStats;
use leyden_ftl::map::MapStats;
use leyden_ftl::page_mapped::FtlStats;
use leyden_sim::{Level, Span, counters};
use serde::Serialize;

use crate::{HintStats, Payload, Ssd};

counters! {
    /// What the drive itself counts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct SsdStats {
        /// Mapping units the host wrote (before coalescing).
        pub units_written: u64,
        /// Unit reads served from the buffer.
        pub read_hits: u64,
        /// Time that writes spent waiting for room in the buffer, summed over commands.
        pub stalled: Span,
        /// Power cuts.
        pub cuts: u64,
        /// Mapping units that a dump was to save, and did not reach.
        pub lost_units: u64,
        /// Zombie hints heard.
        pub hints: HintStats,
    }
}

counters! {
    /// Counters of the whole drive since it was made, by layer.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct Stats {
        /// The drive itself.
        pub ssd: SsdStats,
        /// The write buffer.
        pub buffer: BufferStats,
        /// The flash translation layer.
        pub ftl: FtlStats,
        /// The mapping table. With the protection `full` any page may be dirty: every update hits.
        pub map: MapStats,
        /// Mapping pages in all.
        pub map_pages: Level,
        /// Pages that capacitors protect: how many mapping pages may be dirty at once, or, if the
        /// table's changes are logged, pages of the journal in DRAM.
        pub map_protected_pages: Level,
        /// Blocks retired, or bad from the factory.
        pub bad_blocks: Level,
        /// Time each die was busy.
        pub die_busy: Vec<Span>,
        /// Time each channel was busy.
        pub channel_busy: Vec<Span>,
    }
}

impl<P: Payload> Ssd<P> {
    /// The counters of all layers, as they stand.
    pub fn stats(&self) -> Stats {
        let ftl = *self.ftl.stats();
        let store = self.ftl.store();
        let mut map = *store.stats();
        if !store.writes_back() {
            map.updates = ftl.user_units + ftl.gc.copied_units;
            map.hits = map.updates;
        }
        Stats {
            ssd: self.counters,
            buffer: *self.writer.buffer.stats(),
            ftl,
            map,
            map_pages: Level::new(self.ftl.map().pages().into()),
            map_protected_pages: Level::new(store.protected().into()),
            bad_blocks: Level::new(self.ftl.bad_blocks()),
            die_busy: self.ftl.die_busy().collect(),
            channel_busy: self.ftl.channel_busy().collect(),
        }
    }
}
