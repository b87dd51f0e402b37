//! Effects of syncs: for each moment, the versions of each part that a power cut may leave.

use std::collections::{BTreeMap, BTreeSet};

use super::atom::{Atom, Drive, Ino};
use super::history::{Event, FileHistory, Syncs};
use crate::cut::{Cut, Flushes, Unsettled};

/// Walks along a history.
pub(crate) struct Walk<'a> {
    history: &'a FileHistory,
    flushes: Flushes,
    at: usize,
    syncs_seen: usize,
    /// The entry of each drive's journal that is committed, and those after it.
    entries: Vec<Vec<Option<u32>>>,
    /// The versions that each part may have, the oldest first: those with one are left out.
    unsettled: BTreeMap<u32, Vec<Option<u32>>>,
    /// The newest version of each part.
    newest: BTreeMap<u32, u32>,
    /// Versions that a failed sync gave up: the kernel takes them for written.
    given_up: BTreeMap<u32, u32>,
    /// The unsettled parts of each file or folder.
    parts: BTreeMap<Ino, BTreeSet<u32>>,
    /// The entries that changed a file or folder, and those without which its bytes cannot be found.
    whole: BTreeMap<Ino, Vec<u32>>,
    data: BTreeMap<Ino, Vec<u32>>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(history: &'a FileHistory, flushes: Flushes) -> Self {
        Self {
            history,
            flushes,
            at: 0,
            syncs_seen: 0,
            entries: vec![Vec::new(); history.drives() as usize],
            unsettled: BTreeMap::new(),
            newest: BTreeMap::new(),
            given_up: BTreeMap::new(),
            parts: BTreeMap::new(),
            whole: BTreeMap::new(),
            data: BTreeMap::new(),
        }
    }

    /// Possible losses before event `at`; ask for moments in order.
    pub(crate) fn cut(&mut self, at: usize) -> Cut {
        while self.at < at {
            self.step();
        }
        self.settle_preparation();
        let mut unsettled = Vec::new();
        for (drive, entries) in (0..).zip(&self.entries) {
            if entries.len() > 1 {
                let versions = entries.iter().rev().copied().collect();
                unsettled.push(Unsettled { atom: drive, versions });
            }
        }
        let parts = self.unsettled.iter().map(|(&atom, versions)| {
            let shown = self.shown(atom, versions);
            Unsettled { atom, versions: shown.into_iter().rev().collect() }
        });
        unsettled.extend(parts.filter(|part| part.versions.len() > 1));
        let mut drives = Vec::new();
        if self.history.drives() > 1 {
            drives.extend(unsettled.iter().map(|part| self.history.drive_of_atom(part.atom)));
        }
        Cut { at, unsettled, whole: Vec::new(), drives }
    }

    /// The versions that differ: a length that a page below a durable end would bring is none.
    fn shown(&self, atom: u32, versions: &[Option<u32>]) -> Vec<Option<u32>> {
        let Some(&Atom::Length(file)) = self.history.atom(atom) else { return versions.to_vec() };
        let floor = versions[0];
        let (set, durable) = self.history.lengths().changed_after(file, floor);
        let newest = self.newest[&atom];
        let may_show = |event: &Option<u32>| {
            event.is_none_or(|event| {
                Some(event) == floor
                    || event == newest
                    || set.is_some_and(|set| set <= event)
                    || self.history.lengths().at(file, event) > durable
            })
        };
        versions.iter().copied().filter(may_show).collect()
    }

    /// The preparation's data is durable, whatever the disk does with syncs.
    fn settle_preparation(&mut self) {
        if self.at == self.history.begin() as usize {
            self.settle_all(self.at as u32);
        }
    }

    fn step(&mut self) {
        self.settle_preparation();
        let history = self.history;
        let event = self.at as u32;
        self.at += 1;
        match &history.events()[event as usize] {
            Event::Step { atoms, is_entry, drive, touches } => {
                for &atom in atoms {
                    self.change(atom, event);
                }
                for &(ino, needs_data) in touches {
                    self.whole.entry(ino).or_default().push(event);
                    if needs_data {
                        self.data.entry(ino).or_default().push(event);
                    }
                }
                if *is_entry {
                    let entries = &mut self.entries[*drive as usize];
                    if entries.is_empty() {
                        entries.push(None);
                    }
                    entries.push(Some(event));
                }
            }
            Event::Sync { syncs, since, is_done } => self.sync(*syncs, *since, *is_done),
            Event::Acknowledged => {}
        }
    }

    fn change(&mut self, atom: u32, event: u32) {
        let before = self.newest.insert(atom, event);
        self.unsettled.entry(atom).or_insert_with(|| vec![before]).push(Some(event));
        if let Some(owner) = self.owner(atom) {
            self.parts.entry(owner).or_default().insert(atom);
        }
    }

    /// The file or folder that a part belongs to.
    fn owner(&self, atom: u32) -> Option<Ino> {
        match self.history.atom(atom)? {
            Atom::Journal(_) => None,
            Atom::Name(ino, _)
            | Atom::Length(ino)
            | Atom::Page(ino, _)
            | Atom::Piece(ino, ..)
            | Atom::Log(ino)
            | Atom::Found(ino)
            | Atom::Xattr(ino, _) => Some(*ino),
        }
    }

    fn sync(&mut self, syncs: Syncs, since: u32, is_done: bool) {
        if is_done {
            let number = self.syncs_seen;
            self.syncs_seen += 1;
            if !self.flushes.does(number) {
                return;
            }
        }
        let ino = match syncs {
            Syncs::Everything if is_done => return self.settle_all(since),
            Syncs::Drive(folder) if is_done => {
                return self.settle_drive(self.history.drive_of(folder), since);
            }
            Syncs::Drive(_) | Syncs::Everything => None,
            Syncs::Whole(ino) | Syncs::Data(ino) => Some(ino),
        };
        let parts: Vec<u32> = match ino {
            Some(ino) => {
                let parts = self.parts.get(&ino).into_iter().flatten().copied();
                parts.filter(|atom| self.is_meant(syncs, *atom)).collect()
            }
            None => self.unsettled.keys().copied().collect(),
        };
        if !is_done {
            for atom in parts {
                self.given_up.insert(atom, self.newest[&atom]);
            }
            return;
        }
        if self.history.rules().logs_files() {
            for atom in parts {
                self.settle(atom, since);
            }
            return;
        }
        let touched = if matches!(syncs, Syncs::Data(_)) { &self.data } else { &self.whole };
        let last = ino.and_then(|ino| touched.get(&ino));
        let last = last.and_then(|events| events.iter().rfind(|event| **event < since)).copied();
        let needs = parts.into_iter().filter_map(|atom| self.settle(atom, since)).max();
        let drive = ino.map_or(0, |ino| self.history.drive_of(ino));
        self.commit(drive, last.max(needs));
    }

    /// Whether a sync of a file covers this part of it: no byte needs an extended attribute.
    fn is_meant(&self, syncs: Syncs, atom: u32) -> bool {
        let is_xattr = || matches!(self.history.atom(atom), Some(Atom::Xattr(..)));
        !matches!(syncs, Syncs::Data(_)) || !is_xattr()
    }

    /// Makes the newest version of a part before event `since` durable. Returns the entry of the journal that it needs.
    fn settle(&mut self, atom: u32, since: u32) -> Option<u32> {
        let versions = self.unsettled.get_mut(&atom)?;
        let count = versions.partition_point(|event| event.is_none_or(|event| event < since));
        let newest = versions[..count].last().copied().flatten()?;
        if self.given_up.get(&atom).is_some_and(|given_up| newest <= *given_up) {
            return None;
        }
        versions.drain(..count - 1);
        if versions.len() == 1 {
            self.unsettled.remove(&atom);
            let owner = self.owner(atom);
            if let Some(parts) = owner.and_then(|owner| self.parts.get_mut(&owner)) {
                parts.remove(&atom);
            }
        }
        self.history.needs_of(atom, newest)
    }

    fn settle_all(&mut self, since: u32) {
        for drive in 0..self.history.drives() {
            self.settle_drive(drive, since);
        }
    }

    fn settle_drive(&mut self, drive: Drive, since: u32) {
        for atom in self.unsettled.keys().copied().collect::<Vec<_>>() {
            if self.history.drive_of_atom(atom) == drive {
                self.settle(atom, since);
            }
        }
        let entries = &self.entries[drive as usize];
        let last = entries.iter().rfind(|entry| entry.is_some_and(|entry| entry < since));
        self.commit(drive, last.copied().flatten());
    }

    /// The journal of a drive is committed up to entry `last`.
    fn commit(&mut self, drive: Drive, last: Option<u32>) {
        let entries = &mut self.entries[drive as usize];
        let count = entries.partition_point(|entry| *entry <= last);
        entries.drain(..count.saturating_sub(1));
    }
}
