//! Logs of files: what syncs have kept of calls that no transaction has.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cell, Choice, FileHistory, Ino, Name, Page, Version};
use crate::files::history::{Change, Named};
use crate::files::step::Kind;

impl Choice {
    /// The event of the log that a file is in, where no transaction has what it says.
    pub(super) fn logged(&self, history: &FileHistory, file: Ino) -> Option<u32> {
        let (atom, events) = history.logs().of_file(file)?;
        let last = self.of(Some(atom))?;
        let log = events[..events.partition_point(|event| *event <= last)].last().copied();
        log.filter(|_| log > self.journal(history, file))
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

    /// Whether a log may have a call on names, and its part does not say otherwise.
    fn is_taken(&self, named: &Named) -> bool {
        !self.lost.contains_key(&named.atom)
    }

    /// Names that logs change: those of the calls that they hold, and of the calls that these build on.
    pub(super) fn logged_names(&self, history: &FileHistory) -> BTreeMap<(Ino, Name), Option<Ino>> {
        let mut calls: Vec<(u32, &Named)> = Vec::new();
        for (drive, journal) in (0..).zip(&self.journals) {
            let end = history.logs().up_to(drive, self.last.map_or(0, |last| last as usize + 1));
            let of_drive = history.logs().calls_in_logs(*journal, end);
            calls.extend(of_drive.filter(|(_, named)| named.drive == drive));
        }
        calls.sort_unstable_by_key(|(event, _)| *event);
        let taken = calls.iter().filter(|(_, named)| self.is_taken(named)).map(|(event, _)| *event);
        let mut taken: BTreeSet<u32> = taken.collect();
        loop {
            let mut replay = Replay { history, is: self, taken: &taken, names: BTreeMap::new() };
            let mut missing = BTreeSet::new();
            for (event, named) in calls.iter().filter(|(event, _)| taken.contains(event)) {
                for change in &named.changes {
                    replay.needed(*event, named, change, &mut missing);
                }
                named.changes.iter().for_each(|change| replay.apply(change));
            }
            if missing.is_empty() {
                return replay.names;
            }
            taken.append(&mut missing);
        }
    }
}

/// Calls of a log, done once more over the last transaction.
struct Replay<'a> {
    history: &'a FileHistory,
    is: &'a Choice,
    taken: &'a BTreeSet<u32>,
    names: BTreeMap<(Ino, Name), Option<Ino>>,
}

impl Replay<'_> {
    fn holder(&self, change: &Change) -> Option<Ino> {
        let place = (change.folder, change.name.clone());
        if let Some(held) = self.names.get(&place) {
            return *held;
        }
        let cell = self.history.names(change.folder)?.get(&change.name)?;
        *cell.at(self.is.journal(self.history, change.folder))?
    }

    /// Calls without which a change would lose something: the earlier names of what it names, of its folder if that is new,
    /// and of what still has the name.
    fn needed(&self, event: u32, named: &Named, change: &Change, missing: &mut BTreeSet<u32>) {
        let Some(ino) = change.holds else { return };
        let journal = self.is.journals[named.drive as usize];
        let (history, folder) = (self.history, change.folder);
        let is_new = history.logs().naming(folder).first().copied() > journal;
        let with_folder = is_new || history.kind(ino) == Kind::Folder;
        let left_behind = self.holder(change).filter(|holder| Some(*holder) != change.held);
        let all = [Some(ino), with_folder.then_some(folder), left_behind];
        for of in all.into_iter().flatten() {
            let earlier = history.logs().naming(of).iter().copied().filter(|it| *it < event);
            missing.extend(earlier.filter(|it| Some(*it) > journal && !self.taken.contains(it)));
        }
    }

    fn apply(&mut self, change: &Change) {
        if change.holds.is_some() || self.holder(change) == change.held {
            self.names.insert((change.folder, change.name.clone()), change.holds);
        }
    }
}
