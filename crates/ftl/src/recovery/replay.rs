//! The mapping table's journal after a power cut: what is dumped of it, and its replay.

use leyden_nand::{Content, Interrupted};

use crate::map::{LogRoot, MapPage};
use crate::page_mapped::{Ftl, JournalDie};

use super::{DumpPage, Step, StepName};

impl<C: Content> Ftl<C> {
    /// The pages of the journal that a dump must save: those that flash does not hold, but for the ones
    /// whose programs are `ended` in time. By number.
    pub fn journal_pages_to_dump(&self, ended: impl Fn(&Interrupted) -> bool) -> Vec<u64> {
        let Some(log) = self.store.log() else { return Vec::new() };
        let on_the_way = self.on_the_way();
        let in_time = on_the_way.iter().filter(|op| ended(op));
        let in_time: Vec<u64> =
            in_time.filter_map(|op| self.journal_page_on(&op.operation, op.die)).collect();
        log.pages_to_dump(|number| in_time.contains(&number))
    }

    /// A page of the journal as a dump writes it.
    pub fn journal_page_to_dump(&self, number: u64) -> DumpPage<C> {
        let records = self.store.log().map(|log| log.records_of(number)).unwrap_or_default();
        DumpPage::Journal(number, records)
    }

    fn log_root(&self) -> Option<LogRoot> {
        self.dump.as_ref()?.root.as_ref()?.log
    }

    /// True if there is no journal, or flash and the dump hold all of it that is needed.
    pub(super) fn journal_is_whole(&self) -> bool {
        let (Some(log), Some(dump)) = (self.store.log(), &self.dump) else { return true };
        self.log_root().is_some_and(|root| log.is_whole(root, &dump.journal))
    }

    /// Replays the journal from its tail, in order. Of a mapping page, what it knew when it was written
    /// is left out. If part of the journal is lost, a scan has found every entry, and it begins anew.
    pub(super) fn replay_journal(&mut self) -> Option<Step> {
        self.store.log()?;
        let root = self.log_root().filter(|_| self.journal_is_whole());
        let Some((root, dump)) = root.zip(self.dump.as_ref()) else {
            let head = self.journal_dies.iter().map(JournalDie::end).max().unwrap_or(0);
            self.store.log_mut()?.begin_anew(head);
            return None;
        };
        let dumped = dump.journal.clone();
        let records = self.store.log_mut()?.recover(root, &dumped);
        let mut reads = self.reads();
        let log = self.store.log()?;
        let on_flash = log.places().map(|(number, _)| number);
        for number in on_flash.chain(dumped.iter().map(|&(number, _)| number)) {
            reads[log.die_of(number).index()] += 1;
        }
        for (number, record) in records {
            let page = self.map.page_of(record.lpn);
            if self.store.saved(page).is_some_and(|saved| number < saved.records_below) {
                continue;
            }
            match record.unit {
                Some(unit) => self.map.set(record.lpn, unit),
                None => self.map.unmap(record.lpn),
            };
            self.store.log_mut()?.mark_dirty(page, number);
        }
        Some(self.step(StepName::ReplayJournal, &reads, self.geometry.units_per_page()))
    }

    /// The mapping pages that records have changed since they were written are dirty again, and those
    /// found by a scan are to be written back at once.
    pub(super) fn mark_logged(&mut self, lost: &[MapPage]) {
        self.store.recovered_log();
        for &page in lost {
            if self.store.scanned(page) {
                self.queue_writeback(page);
            }
        }
        self.shorten_journal(false);
        for die in 0..self.journal_dies.len() as u32 {
            if self.has_journal_work(leyden_nand::DieId(die)) {
                self.wake.push(leyden_nand::DieId(die));
            }
        }
    }
}
