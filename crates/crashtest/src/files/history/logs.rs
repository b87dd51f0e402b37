//! Calls on names and syncs, in order, for file systems whose `fsync` writes a log of files beside their transactions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Atom, Drive, Ino, Name};

/// A name that a call gave to something else, or to nothing.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) folder: Ino,
    pub(crate) name: Name,
    pub(crate) held: Option<Ino>,
    pub(crate) holds: Option<Ino>,
}

/// A sync of a file or folder that has ended well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Synced {
    pub(crate) ino: Ino,
    /// The last entry of the journal that changed it.
    pub(crate) entry: Option<u32>,
    /// Whether bytes were written to it since its sync before.
    pub(crate) is_written: bool,
    /// The last entry of the journal before the last of them.
    pub(crate) before: Option<u32>,
}

/// An event that a log of files depends on.
#[derive(Clone, Debug)]
pub(crate) enum LogEvent {
    /// A call on names.
    Names(Vec<Change>),
    Sync(Synced),
}

/// Contents that logs may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs {
    /// The events of each drive, in order.
    events: BTreeMap<Drive, Vec<(u32, LogEvent)>>,
    /// The call that gave each its first name.
    first: BTreeMap<Ino, u32>,
    /// The last entry that changed each.
    entries: BTreeMap<Ino, u32>,
    /// Files with bytes that no sync has seen, and the entry before the last of them.
    written: BTreeMap<Ino, Option<u32>>,
    /// Files whose last sync may have found nothing that a transaction did not have.
    unsure: BTreeSet<Ino>,
    /// Logs of each file: their part, and their events.
    of_files: BTreeMap<Ino, (u32, Vec<u32>)>,
    /// Parts that say whether a sync found something.
    found: BTreeMap<Ino, (u32, u32)>,
}

impl Logs {
    /// Notes that entries of the journal, or writes, changed files and folders.
    pub(super) fn note_changes(
        &mut self,
        event: u32,
        touched: impl Iterator<Item = Ino>,
        written: Option<(Ino, Option<u32>)>,
    ) {
        self.entries.extend(touched.map(|ino| (ino, event)));
        self.written.extend(written);
    }

    /// Notes a call on names; returns the parts that matter from now on. `parts` are all parts.
    pub(super) fn put_call(
        &mut self,
        event: u32,
        drive: Drive,
        changes: Vec<Change>,
        parts: &mut Vec<Atom>,
    ) -> Vec<u32> {
        let mut atoms = Vec::new();
        for ino in changes.iter().flat_map(|change| [change.held, change.holds]).flatten() {
            self.first.entry(ino).or_insert(event);
            if self.unsure.contains(&ino) && !self.found.contains_key(&ino) {
                let atom = parts.len() as u32;
                parts.push(Atom::Found(ino));
                self.found.insert(ino, (atom, event));
                atoms.push(atom);
            }
        }
        if !changes.is_empty() {
            self.events.entry(drive).or_default().push((event, LogEvent::Names(changes)));
        }
        atoms
    }

    /// The log of a file that is synced; returns its part. `parts` are all parts.
    pub(super) fn put_log(&mut self, file: Ino, event: u32, parts: &mut Vec<Atom>) -> u32 {
        let next = parts.len() as u32;
        let (atom, events) = self.of_files.entry(file).or_insert((next, Vec::new()));
        events.push(event);
        if *atom == next {
            parts.push(Atom::Log(file));
        }
        *atom
    }

    /// Notes that a sync of a drive's file or folder has ended well.
    pub(super) fn note_sync(&mut self, drive: Drive, ino: Ino, event: u32) {
        let written = self.written.remove(&ino);
        let entry = self.entries.get(&ino).copied();
        let is_written = written.is_some();
        let synced = Synced { ino, entry, is_written, before: written.flatten() };
        self.events.entry(drive).or_default().push((event, LogEvent::Sync(synced)));
        self.unsure.extend(is_written.then_some(ino));
    }

    /// Calls and syncs of a drive behind event `after`, and no later than event `last`.
    pub(crate) fn between(
        &self,
        drive: Drive,
        after: Option<u32>,
        last: u32,
    ) -> &[(u32, LogEvent)] {
        let all = self.events.get(&drive).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|(event, _)| Some(*event) <= after);
        let count = all[first..].partition_point(|(event, _)| *event <= last);
        &all[first..first + count]
    }

    /// The call that gave something its first name.
    pub(crate) fn first(&self, ino: Ino) -> Option<u32> {
        self.first.get(&ino).copied()
    }

    /// Files with bytes that no sync has seen.
    pub(super) fn unseen(&self) -> impl Iterator<Item = Ino> {
        self.written.keys().copied()
    }

    /// A transaction has all of these.
    pub(super) fn settle(&mut self, files: &[Ino]) {
        for file in files {
            self.written.remove(file);
        }
    }

    /// Logs of a file: their part, and their events.
    pub(crate) fn of_file(&self, file: Ino) -> Option<(u32, &[u32])> {
        self.of_files.get(&file).map(|(atom, events)| (*atom, events.as_slice()))
    }

    /// Logs of each.
    pub(crate) fn of_files(&self) -> impl Iterator<Item = (Ino, u32, &[u32])> {
        self.of_files.iter().map(|(file, (atom, events))| (*file, *atom, events.as_slice()))
    }

    /// The part that says whether a sync found something to log, where a transaction may have had it all, and its event.
    pub(crate) fn found(&self, file: Ino) -> Option<(u32, u32)> {
        self.found.get(&file).copied()
    }

    /// Whether a sync of a file may have found nothing, so that no log had it when it got its next name: a transaction up to
    /// `journal` has the file, and not the name.
    pub(crate) fn may_find_nothing(&self, file: Ino, journal: Option<u32>) -> bool {
        let call = self.found(file).map(|(_, call)| call);
        call > journal && self.first(file) <= journal
    }
}
