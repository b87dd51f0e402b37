//! Counters of a zoned drive; its layers count the rest.

use leyden_buffer::BufferStats;
use leyden_sim::{Level, Span, counters};
use serde::Serialize;

use super::ZnsSsd;
use crate::{Payload, SsdStats, Stats};

counters! {
    /// Counters of a zoned drive itself.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct ZonedStats {
        /// Units that the host wrote or appended.
        pub units_written: u64,
        /// Zone Appends.
        pub appends: u64,
        /// Units that copies have written.
        pub copied_units: u64,
        /// Zones reset.
        pub resets: u64,
        /// Zones finished before they were full.
        pub finishes: u64,
        /// Zones that the controller closed to open others.
        pub implicit_closes: u64,
        /// Unit reads served from the buffer.
        pub read_hits: u64,
        /// Time that writes spent waiting for room in the buffer, summed over commands.
        pub stalled: Span,
        /// Flushes that left protected data in the buffer.
        pub flushes_past_protected: u64,
        /// Flushes that had to wait for something.
        pub flushes_waited: u64,
        /// Units that they waited for, each of which had to get to flash.
        pub flush_waited_units: u64,
        /// Zones in which those lay, summed over flushes.
        pub flush_waited_zones: u64,
        /// The most units that one of them waited for.
        pub flush_waited_peak: Level,
        /// Protected units that were in the buffer when a flush came, and that it did not wait for.
        pub flush_passed_units: u64,
        /// Units that a reset has taken out of the protected pool before they were programmed.
        pub discarded_protected_units: u64,
        /// Out of the unprotected pool.
        pub discarded_plain_units: u64,
        /// Units that were protected because something above them had to be.
        pub promoted_units: u64,
        /// Units that replaced others in a Zone Random Write Area.
        pub overwritten_units: u64,
        /// Mapping units that a dump was to save, and did not reach.
        pub lost_units: u64,
        /// The most units in the protected pool, with what is set aside for Zone Random Write Areas.
        pub protected_peak: Level,
        /// The most units in the unprotected pool.
        pub plain_peak: Level,
    }
}

impl<P: Payload> ZnsSsd<P> {
    /// Counters of the zones and of the buffer.
    pub fn zoned_stats(&self) -> ZonedStats {
        use leyden_buffer::PoolKind;
        let namespace = self.namespace();
        let buffer = namespace.buffer.stats();
        ZonedStats {
            implicit_closes: namespace.ftl.zones().implicit_closes(),
            discarded_protected_units: buffer.discarded_protected_units,
            discarded_plain_units: buffer.discarded_plain_units,
            promoted_units: buffer.promoted_units,
            overwritten_units: buffer.overwritten_units,
            protected_peak: namespace.buffer.pool(PoolKind::Protected).peak(),
            plain_peak: namespace.buffer.pool(PoolKind::Plain).peak(),
            ..namespace.counters
        }
    }

    /// The counters of all layers, as they stand, as a conventional drive has them: what it has not got
    /// counts nothing.
    pub fn stats(&self) -> Stats {
        let zoned = self.zoned_stats();
        let namespace = self.namespace();
        let ftl = &namespace.ftl;
        let peak = zoned.protected_peak.get() + zoned.plain_peak.get();
        Stats {
            power_cuts: self.cuts(),
            ssd: SsdStats {
                units_written: zoned.units_written,
                read_hits: zoned.read_hits,
                stalled: zoned.stalled,
                lost_units: zoned.lost_units,
                ..SsdStats::default()
            },
            buffer: BufferStats {
                coalesced_units: zoned.overwritten_units,
                discarded_units: zoned.discarded_protected_units + zoned.discarded_plain_units,
                promoted_units: zoned.promoted_units,
                peak_units: Level::new(peak),
            },
            ftl: *ftl.stats(),
            bad_blocks: Level::new(ftl.medium().bad_blocks()),
            die_busy: ftl.die_busy().collect(),
            channel_busy: ftl.channel_busy().collect(),
            ..Stats::default()
        }
    }
}
