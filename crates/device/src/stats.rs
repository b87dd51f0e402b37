//! Counters of a drive: its own, and those of its layers as these count them.

use leyden_buffer::BufferStats;
use leyden_ftl::map::MapStats;
use leyden_ftl::page_mapped::FtlStats;
use leyden_sim::{Level, Span, counters};
use serde::Serialize;

use crate::{Payload, Ssd, SsdStats};

counters! {
    /// Counters of the whole drive since it was made, by layer.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct Stats {
        /// Power cuts.
        pub power_cuts: u64,
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
        /// Mapping units in the write buffer now.
        pub buffered_units: Level,
        /// Free blocks that data may have now, of all dies.
        pub free_blocks: Level,
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
        let namespace = self.namespace();
        let ftl = namespace.ftl();
        let (counted, store) = (*ftl.stats(), ftl.store());
        let mut map = *store.stats();
        if !store.writes_back() {
            map.updates = counted.user_units + counted.gc.copied_units;
            map.hits = map.updates;
        }
        Stats {
            power_cuts: self.cuts(),
            ssd: namespace.counters,
            buffer: *namespace.buffer().stats(),
            ftl: counted,
            map,
            map_pages: Level::new(ftl.map().pages().into()),
            map_protected_pages: Level::new(store.protected().into()),
            buffered_units: Level::new(namespace.buffer().used().into()),
            free_blocks: Level::new(ftl.free_blocks()),
            bad_blocks: Level::new(ftl.bad_blocks()),
            die_busy: ftl.die_busy().collect(),
            channel_busy: ftl.channel_busy().collect(),
        }
    }
}
