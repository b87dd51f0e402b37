//! Calls on names one by one, and syncs that log a file, for file systems whose `fsync` writes a log of files beside their
//! transactions.

use std::collections::BTreeMap;

use super::{Atom, Drive, Event, FileHistory, Ino, Name, Syncs};

/// A name that a call gave to something else, or to nothing.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) folder: Ino,
    pub(crate) name: Name,
    pub(crate) held: Option<Ino>,
    pub(crate) holds: Option<Ino>,
}

/// A call on names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The part that says whether a log has it.
    pub(crate) atom: u32,
    pub(crate) drive: Drive,
    pub(crate) changes: Vec<Change>,
}

/// What a log may hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Logs {
    /// Calls on names, by their events.
    calls: BTreeMap<u32, Named>,
    /// The calls that gave something a name, in order.
    naming: BTreeMap<Ino, Vec<u32>>,
    /// Logs of each file: their part, and their events.
    of_files: BTreeMap<Ino, (u32, Vec<u32>)>,
    /// The events of the syncs of each drive's files.
    syncs: BTreeMap<Drive, Vec<u32>>,
}

impl FileHistory {
    /// Notes a call on names; returns its part.
    pub(super) fn put_call(&mut self, event: u32, drive: Drive, changes: Vec<Change>) -> u32 {
        let atom = self.atoms.len() as u32;
        self.atoms.push(Atom::Call(changes[0].folder, event));
        for ino in changes.iter().filter_map(|change| change.holds) {
            self.logs.naming.entry(ino).or_default().push(event);
        }
        self.logs.calls.insert(event, Named { atom, drive, changes });
        atom
    }

    /// The log of a file that is synced is written before the sync ends. Returns whether there is one.
    pub(super) fn put_log(&mut self, syncs: Syncs, words: &str) -> bool {
        let (Syncs::Whole(ino) | Syncs::Data(ino)) = syncs else { return false };
        // A file without names is not logged.
        if !self.rules.logs_files() || !self.has_names(ino, self.events.len() as u32) {
            return false;
        }
        let (event, next) = (self.events.len() as u32, self.atoms.len() as u32);
        let (atom, events) = self.logs.of_files.entry(ino).or_insert((next, Vec::new()));
        events.push(event);
        let atoms = vec![*atom];
        if *atom == next {
            self.atoms.push(Atom::Log(ino));
        }
        let drive = self.drive_of(ino);
        let step = Event::Step { atoms, is_entry: false, drive, touches: Vec::new() };
        self.push(step, words.into());
        true
    }

    /// Notes a sync that ends with the next event.
    pub(super) fn note_sync(&mut self, syncs: Syncs) {
        if let Syncs::Whole(ino) | Syncs::Data(ino) = syncs {
            let (drive, event) = (self.drive_of(ino), self.events.len() as u32);
            self.logs.syncs.entry(drive).or_default().push(event);
        }
    }

    /// Whether a file or folder has a name before event `end`.
    pub(crate) fn has_names(&self, ino: Ino, end: u32) -> bool {
        let holds = |(folder, name): &(Ino, Name)| {
            let cell = self.names.get(folder).and_then(|names| names.get(name));
            cell.and_then(|cell| cell.at(end.checked_sub(1))).is_some_and(|held| *held == Some(ino))
        };
        ino == Ino::ROOT || self.places(ino).any(holds)
    }

    /// The call on names of an event.
    pub(crate) fn named(&self, event: u32) -> Option<&Named> {
        self.logs.calls.get(&event)
    }

    /// Calls on names behind event `after`, and before event `end`.
    pub(crate) fn calls_between(
        &self,
        after: Option<u32>,
        end: u32,
    ) -> impl Iterator<Item = (u32, &Named)> {
        let first = after.map_or(0, |after| after + 1);
        let calls = self.logs.calls.range(first..end.max(first));
        calls.map(|(event, named)| (*event, named))
    }

    /// Calls that gave something a name, in order.
    pub(crate) fn naming(&self, ino: Ino) -> &[u32] {
        self.logs.naming.get(&ino).map_or(&[], Vec::as_slice)
    }

    /// Logs of a file: their part, and their events.
    pub(crate) fn logs_of(&self, file: Ino) -> Option<(u32, &[u32])> {
        self.logs.of_files.get(&file).map(|(atom, events)| (*atom, events.as_slice()))
    }

    /// The event up to which a log may hold calls of a drive, at moment `at`: a sync that has ended, or ends there.
    pub(crate) fn logged_up_to(&self, drive: Drive, at: usize) -> u32 {
        let syncs = self.logs.syncs.get(&drive).map_or(&[][..], Vec::as_slice);
        let count = syncs.partition_point(|event| *event as usize <= at);
        count.checked_sub(1).map_or(0, |last| syncs[last])
    }
}
