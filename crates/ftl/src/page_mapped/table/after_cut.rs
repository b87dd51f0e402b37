//! After a power cut: takes over the recovered table, and marks the pages that must be written again.

use leyden_nand::{Content, Medium, Ppn};

use super::TableWriter;
use crate::map::MapPage;
use crate::page_mapped::data::Data;

impl TableWriter {
    /// `page` as of `sequence` lies at `place`: takes it for the current copy, if no newer one was found.
    pub(in crate::page_mapped) fn found(&mut self, page: MapPage, place: Ppn, sequence: u64) {
        self.store.found(page, place);
        self.next_sequence = self.next_sequence.max(sequence + 1);
    }

    /// Counts the current pages of each block, and goes on with emptying blocks.
    pub(in crate::page_mapped) fn rebuild<C: Content>(&mut self, medium: &Medium<C>, data: &Data) {
        for page in (0..data.map().pages()).map(MapPage) {
            if let Some(place) = self.store.place(page) {
                self.blocks.add(medium.geometry(), place);
            }
        }
        self.blocks.resume(&self.store, medium, data.blocks());
        self.wake_writers();
    }

    /// One past the last page of the journal that any die was handed.
    pub(in crate::page_mapped) fn journal_end(&self) -> u64 {
        self.journal.end()
    }

    /// The mapping pages that were `dumped`, which flash does not hold otherwise, are dirty again, and
    /// so are those found by a scan.
    pub(in crate::page_mapped) fn mark_unsaved(
        &mut self,
        dumped: impl Iterator<Item = MapPage>,
        scanned: &[MapPage],
        next_version: u64,
    ) {
        if !self.store.writes_back() {
            return;
        }
        if self.store.log().is_some() {
            self.mark_logged(scanned);
            return;
        }
        for page in dumped {
            if self.store.trims_only() {
                self.trim_versions[page.index()] = next_version;
            }
            if self.store.recovered(page) {
                self.queue_writeback(page);
            }
        }
        if !self.store.trims_only() {
            for &page in scanned {
                self.store.recovered(page);
            }
            self.make_room(0);
        }
    }

    /// The mapping pages that records have changed since they were written are dirty again, and those
    /// found by a scan are to be written back at once.
    fn mark_logged(&mut self, scanned: &[MapPage]) {
        self.store.recovered_log();
        for &page in scanned {
            if self.store.scanned(page) {
                self.queue_writeback(page);
            }
        }
        self.shorten_journal(false);
        if let Some(log) = self.store.log() {
            self.woken.extend(self.journal.busy_dies(log));
        }
    }
}
