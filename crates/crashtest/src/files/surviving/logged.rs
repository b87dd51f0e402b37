//! Logs of files: what syncs have kept of calls that no transaction has.

use std::collections::BTreeMap;

use super::tree_log::{Place, Replayed, replayed};
use super::{Cell, Choice, Drive, FileHistory, Ino, Page, Version};

impl Choice {
    /// The event of the log that a file is in, where no transaction has what it says.
    pub(super) fn logged(&self, history: &FileHistory, file: Ino) -> Option<u32> {
        let (atom, events) = history.logs().of_file(file)?;
        let log = self.written(atom, events);
        log.filter(|_| log > self.journal(history, file))
    }

    /// The last log of a file that was written.
    fn written(&self, atom: u32, events: &[u32]) -> Option<u32> {
        let last = self.of(Some(atom))?;
        events[..events.partition_point(|event| *event <= last)].last().copied()
    }

    /// The version of a page that a log has.
    pub(super) fn logged_page<'a>(
        &self,
        history: &FileHistory,
        file: Ino,
        cell: &'a Cell<Page>,
    ) -> Option<&'a Version<Page>> {
        let log = self.logged(history, file)?;
        let (_, logs) = history.logs().of_file(file)?;
        // A failed sync gave up what its file's next log would have had.
        let is_logged = |version: &&Version<Page>| {
            let first = logs[logs.partition_point(|log| *log < version.event)];
            history.given_up(file, version.event).is_none_or(|failed| failed > first)
        };
        cell.up_to(Some(log)).iter().rfind(is_logged)
    }

    /// Names that logs change. Moves journals up to where syncs have ended transactions.
    pub(super) fn replay_logs(&mut self, history: &FileHistory) -> BTreeMap<Place, Option<Ino>> {
        let mut names = BTreeMap::new();
        for drive in 0..history.drives() {
            names.append(&mut self.replay_log(history, drive));
        }
        names
    }

    fn replay_log(&mut self, history: &FileHistory, drive: Drive) -> BTreeMap<Place, Option<Ino>> {
        // The log is written as a whole: the last sync of a file that has written it ends it for all.
        let of_drive =
            history.logs().of_files().filter(|(file, ..)| history.drive_of(*file) == drive);
        let written = of_drive.filter_map(|(_, atom, events)| self.written(atom, events));
        let Some(last) = written.max() else { return BTreeMap::new() };
        let (mut from, mut sync) = (0, last + 1);
        loop {
            let journal = self.journals[drive as usize];
            let found = |file| {
                let part = history.logs().found(file);
                part.is_none_or(|(atom, _)| !self.lost.contains_key(&atom))
            };
            match replayed(history, drive, journal, (from, sync), &found) {
                Replayed::Names(names) => return names,
                // The sync under way at the cut has not ended it.
                Replayed::Committed(at) if Some(at) > self.last => sync = at - 1,
                Replayed::Committed(at) => {
                    self.journals[drive as usize] = history.last_entry(drive, at);
                    from = at + 1;
                }
            }
        }
    }
}
