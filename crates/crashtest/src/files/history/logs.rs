//! Calls on names one by one, and syncs that log a file, for file systems whose `fsync` writes a log of files beside their
//! transactions.

use std::collections::BTreeMap;

use super::{Atom, Drive, Ino, Name};

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

/// Contents that logs may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs {
    /// Calls on names, by their events.
    calls: BTreeMap<u32, Named>,
    /// The calls that gave something a name, in order.
    naming: BTreeMap<Ino, Vec<u32>>,
    /// Logs of each file: their part, and their events.
    of_files: BTreeMap<Ino, (u32, Vec<u32>)>,
    /// The events of the syncs of each drive's files.
    syncs: BTreeMap<Drive, Vec<u32>>,
}

impl Logs {
    /// Notes a call on names; returns its part. `parts` are all parts.
    pub(super) fn put_call(
        &mut self,
        event: u32,
        drive: Drive,
        changes: Vec<Change>,
        parts: &mut Vec<Atom>,
    ) -> u32 {
        let atom = parts.len() as u32;
        parts.push(Atom::Call(changes[0].folder, event));
        for ino in changes.iter().filter_map(|change| change.holds) {
            self.naming.entry(ino).or_default().push(event);
        }
        self.calls.insert(event, Named { atom, drive, changes });
        atom
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

    /// Notes a sync of a drive's file.
    pub(super) fn note_sync(&mut self, drive: Drive, event: u32) {
        self.syncs.entry(drive).or_default().push(event);
    }

    /// The call on names of an event.
    pub(crate) fn named(&self, event: u32) -> Option<&Named> {
        self.calls.get(&event)
    }

    /// Calls on names behind event `after`, and before event `end`.
    fn calls_between(&self, after: Option<u32>, end: u32) -> impl Iterator<Item = (u32, &Named)> {
        let first = after.map_or(0, |after| after + 1);
        let calls = self.calls.range(first..end.max(first));
        calls.map(|(event, named)| (*event, named))
    }

    /// Calls that logs may have behind event `after` of the last transaction, and before event `end`. A name that is only
    /// removed goes with a log of its folder, or with one that has what it named; else the transaction's name stays.
    pub(crate) fn calls_in_logs(
        &self,
        after: Option<u32>,
        end: u32,
    ) -> impl Iterator<Item = (u32, &Named)> {
        let has_log = move |ino: Ino, from: Option<u32>| {
            let events = self.of_files.get(&ino).map_or(&[][..], |(_, events)| events);
            let first = events.partition_point(|log| Some(*log) <= from);
            events.get(first).is_some_and(|log| *log < end)
        };
        self.calls_between(after, end).filter(move |&(event, named)| {
            named.changes.iter().any(|change| change.holds.is_some())
                || named.changes.iter().all(|change| {
                    let of_file = change.held.is_some_and(|held| has_log(held, after));
                    of_file || has_log(change.folder, Some(event))
                })
        })
    }

    /// Calls that gave something a name, in order.
    pub(crate) fn naming(&self, ino: Ino) -> &[u32] {
        self.naming.get(&ino).map_or(&[], Vec::as_slice)
    }

    /// Logs of a file: their part, and their events.
    pub(crate) fn of_file(&self, file: Ino) -> Option<(u32, &[u32])> {
        self.of_files.get(&file).map(|(atom, events)| (*atom, events.as_slice()))
    }

    /// The event up to which a log may hold calls of a drive, at moment `at`: a sync that has ended, or ends there.
    pub(crate) fn up_to(&self, drive: Drive, at: usize) -> u32 {
        let syncs = self.syncs.get(&drive).map_or(&[][..], Vec::as_slice);
        let count = syncs.partition_point(|event| *event as usize <= at);
        count.checked_sub(1).map_or(0, |last| syncs[last])
    }
}
