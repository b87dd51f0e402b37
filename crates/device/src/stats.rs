//! What a drive counts. All counters only grow; a reader takes the difference of two copies.

use leyden_sim::Span;

use crate::{HintStats, Payload, Ssd};

/// Page programs by what caused them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// Data the host wrote.
    pub user: u64,
    /// Data that garbage collection copied.
    pub gc_user: u64,
    /// Mapping pages written back.
    pub map: u64,
    /// Mapping pages that garbage collection copied.
    pub gc_map: u64,
    /// Pages dumped on a power loss.
    pub dump: u64,
    /// Pages put back by recovery.
    pub recovery: u64,
}

/// Page reads by what caused them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The host read.
    pub host: u64,
    /// The host wrote part of a mapping unit, whose rest had to be read.
    pub rmw: u64,
    /// Garbage collection copied data.
    pub gc_user: u64,
    /// Recovery scanned.
    pub recovery: u64,
}

/// Counters of the whole drive, since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Page programs.
    pub programs: Programs,
    /// Page reads.
    pub reads: Reads,
    /// Block erases.
    pub erases: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Mapping units left empty in programmed pages.
    pub padded_units: u64,
    /// Mapping units the host wrote (before coalescing).
    pub host_units_written: u64,
    /// Mapping units of user data programmed for the host.
    pub user_units: u64,
    /// Blocks collected.
    pub gc_collections: u64,
    /// Mapping units copied by garbage collection.
    pub gc_copied_units: u64,
    /// Of those, zombies: what the host has said it will overwrite.
    pub gc_copied_zombie_units: u64,
    /// Valid units in the blocks collected, when they were chosen.
    pub gc_victim_valid_units: u64,
    /// The most mapping units in the buffer at once.
    pub buffer_peak_units: u64,
    /// Time that writes spent waiting for room in the buffer, summed over commands.
    pub buffer_stalled: Span,
    /// Buffered units dropped because they were trimmed.
    pub buffer_discarded_units: u64,
    /// Unit writes that replaced data still in the buffer.
    pub buffer_coalesced_units: u64,
    /// Unit reads served from the buffer.
    pub buffer_read_hits: u64,
    /// Mapping pages in all.
    pub map_pages: u64,
    /// Pages that capacitors protect: how many of them may be dirty at once, or, if the table's changes
    /// are logged, pages of the journal in DRAM.
    pub map_protected_pages: u64,
    /// The most that were dirty at once.
    pub map_dirty_peak: u64,
    /// Mapping pages written back.
    pub map_writebacks: u64,
    /// Pages of the mapping table's journal written.
    pub map_journal_pages: u64,
    /// Map updates.
    pub map_updates: u64,
    /// Of those, how many found their mapping page dirty already.
    pub map_update_hits: u64,
    /// Time each die was busy.
    pub die_busy: Vec<Span>,
    /// Time each channel was busy.
    pub channel_busy: Vec<Span>,
    /// Blocks retired, or bad from the factory.
    pub bad_blocks: u64,
    /// Power cuts.
    pub power_cuts: u64,
    /// Mapping units that a dump was to save, and did not reach.
    pub lost_units: u64,
    /// Zombie hints heard.
    pub hints: HintStats,
}

impl<P: Payload> Ssd<P> {
    /// The counters of all layers, as they stand.
    pub fn stats(&self) -> Stats {
        let ftl = self.ftl.stats();
        let buffer = self.writer.buffer.stats();
        let map_pages = u64::from(self.ftl.map().pages());
        let store = self.ftl.store();
        // Protection `full`: every page may be dirty, and none is written while the power is on.
        let (updates, hits) = if store.writes_back() {
            (store.stats().updates, store.stats().hits)
        } else {
            (ftl.user_units + ftl.gc_units, ftl.user_units + ftl.gc_units)
        };
        Stats {
            programs: Programs {
                user: ftl.user_programs,
                gc_user: ftl.gc_programs,
                map: ftl.map_programs,
                gc_map: ftl.gc_map_programs,
                dump: ftl.dump_programs,
                ..Programs::default()
            },
            reads: Reads {
                host: ftl.host_reads - self.counters.rmw_reads,
                rmw: self.counters.rmw_reads,
                gc_user: ftl.gc_reads,
                recovery: self.counters.recovery_reads,
            },
            erases: ftl.erases,
            program_failures: ftl.program_failures,
            erase_failures: ftl.erase_failures,
            padded_units: ftl.padded_units,
            host_units_written: self.counters.units_written,
            user_units: ftl.user_units,
            gc_collections: ftl.collections,
            gc_copied_units: ftl.gc_units,
            gc_copied_zombie_units: ftl.gc_zombie_units,
            gc_victim_valid_units: ftl.victim_valid_units,
            buffer_peak_units: u64::from(buffer.peak_units),
            buffer_stalled: self.counters.stalled,
            buffer_discarded_units: buffer.discarded_units,
            buffer_coalesced_units: buffer.coalesced_units,
            buffer_read_hits: self.counters.read_hits,
            map_pages,
            map_protected_pages: u64::from(store.protected()),
            map_dirty_peak: u64::from(store.stats().dirty_peak),
            map_writebacks: store.stats().writebacks,
            map_journal_pages: store.stats().journal_pages,
            map_updates: updates,
            map_update_hits: hits,
            die_busy: self.ftl.die_busy().collect(),
            channel_busy: self.ftl.channel_busy().collect(),
            bad_blocks: self.ftl.bad_blocks(),
            power_cuts: self.counters.cuts,
            lost_units: self.counters.lost_units,
            hints: HintStats {
                overwritten_zombie_units: ftl.overwritten_zombie_units,
                overwritten_live_units: ftl.overwritten_live_units,
                ..self.counters.hints
            },
        }
    }
}
