//! Names in the log of Btrfs behind the last transaction. Calls and syncs change the log as in Linux 6.18
//! (fs/btrfs/tree-log.c); its replay gives the names.
//!
//! Seen on a real Btrfs by `campaigns/btrfs_log.py`: the works of `test/btrfs.txt`. Linux had no inodes of new entries in the log
//! that a new name wrote (`logging_new_name` in `log_new_dir_dentries`) before that was mended; those kernels are not covered.

use std::collections::{BTreeMap, BTreeSet};

use super::{Drive, FileHistory, Ino, Name};
use crate::files::history::{Change, LogEvent, Synced};
use crate::files::step::Kind;

/// A name in a folder.
pub(super) type Place = (Ino, Name);

/// Content of a log.
#[derive(Debug, Default)]
struct Log {
    /// The names of files and folders that it has.
    names: BTreeMap<Ino, BTreeSet<Place>>,
    /// New entries of folders that it has with their entries.
    entries: BTreeMap<Place, Ino>,
    /// Entries that they have lost.
    gone: BTreeSet<Place>,
}

/// A sync that ends the transaction, since no log can have what changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Commits;

/// The calls behind a transaction, and the log as it is then.
#[derive(Debug)]
pub(super) struct TreeLog<'a> {
    history: &'a FileHistory,
    /// The last entry that the transaction has.
    journal: Option<u32>,
    /// Names that calls have changed since.
    now: BTreeMap<Place, Option<Ino>>,
    log: Log,
    /// Files and folders that lost a name, or left a folder unknown to the log (`last_unlink_trans`).
    unlinked: BTreeSet<Ino>,
    /// The last event that put each into the log.
    logged: BTreeMap<Ino, u32>,
    /// The last sync that has written the log.
    written: Option<u32>,
    /// The next sync ends the transaction (`btrfs_set_log_full_commit`).
    must_commit: bool,
    event: u32,
}

/// The log behind a transaction.
#[derive(Debug)]
pub(super) enum Replayed {
    /// Names that its replay changes.
    Names(BTreeMap<Place, Option<Ino>>),
    /// This sync has ended the transaction.
    Committed(u32),
}

/// Names by the log of a drive: the last transaction has the journal up to `journal`, and all that was written before event
/// `from`; syncs up to event `last` have ended. `found` says whether a sync found bytes of a file that the transaction did not have.
pub(super) fn replayed(
    history: &FileHistory,
    drive: Drive,
    journal: Option<u32>,
    (from, last): (u32, u32),
    found: &dyn Fn(Ino) -> bool,
) -> Replayed {
    let from = journal.max(from.checked_sub(1));
    let mut all = history.logs().between(drive, from, last);
    loop {
        let mut log = TreeLog::new(history, journal);
        match log.run(all, found) {
            Err(Commits) => return Replayed::Committed(log.event),
            Ok(()) if log.written.is_none() => return Replayed::Names(BTreeMap::new()),
            Ok(()) if log.written == Some(log.event) => return Replayed::Names(log.replay()),
            // Names that came to the log behind its last sync are not written.
            Ok(()) => all = &all[..all.partition_point(|(event, _)| Some(*event) <= log.written)],
        }
    }
}

impl<'a> TreeLog<'a> {
    fn new(history: &'a FileHistory, journal: Option<u32>) -> Self {
        Self {
            history,
            journal,
            now: BTreeMap::new(),
            log: Log::default(),
            unlinked: BTreeSet::new(),
            logged: BTreeMap::new(),
            written: None,
            must_commit: false,
            event: 0,
        }
    }

    fn run(&mut self, all: &[(u32, LogEvent)], found: &dyn Fn(Ino) -> bool) -> Result<(), Commits> {
        for (event, what) in all {
            self.event = *event;
            match what {
                LogEvent::Names(changes) => self.call(changes),
                LogEvent::Sync(synced) if self.finds(synced, found) => {
                    self.sync(synced.ino)?;
                    self.written = Some(*event);
                }
                LogEvent::Sync(_) => {}
            }
        }
        Ok(())
    }

    /// The holder of a name in the transaction.
    fn before(&self, (folder, name): &Place) -> Option<Ino> {
        *self.history.names(*folder)?.get(name)?.at(self.journal)?
    }

    fn holder(&self, place: &Place) -> Option<Ino> {
        self.now.get(place).copied().unwrap_or_else(|| self.before(place))
    }

    fn names_of(&self, ino: Ino) -> BTreeSet<Place> {
        let places = self.history.places(ino);
        places.filter(|place| self.holder(place) == Some(ino)).cloned().collect()
    }

    fn has(&self, ino: Ino) -> bool {
        self.log.names.contains_key(&ino)
    }

    fn is_folder(&self, ino: Ino) -> bool {
        self.history.kind(ino) == Kind::Folder
    }

    /// Whether the transaction does not have it.
    fn is_new(&self, ino: Ino) -> bool {
        ino != Ino::ROOT && self.history.logs().first(ino) > self.journal
    }

    /// Whether a folder has changed, or moved, and the log does not have it: what happens to its names later is told to the log
    /// (`need_log_inode`).
    fn needs_log(&self, folder: Ino) -> bool {
        let is_changed = |(folder, name): &Place| {
            let cell = self.history.names(*folder).and_then(|names| names.get(name));
            let newest = cell.and_then(|cell| cell.up_to(Some(self.event)).last());
            newest.is_some_and(|it| Some(it.event) > self.journal)
        };
        let names = self.history.names(folder).into_iter().flatten();
        let mut within = names.map(|(name, _)| (folder, name.clone()));
        !self.has(folder)
            && (within.any(|place| is_changed(&place))
                || self.history.places(folder).any(is_changed))
    }

    /// Whether a sync has something to log.
    fn finds(&self, synced: &Synced, found: &dyn Fn(Ino) -> bool) -> bool {
        let has_names = || match self.log.names.get(&synced.ino) {
            _ if synced.ino == Ino::ROOT => true,
            // The log is told of all that change.
            Some(names) => !names.is_empty(),
            None => !self.names_of(synced.ino).is_empty(),
        };
        // `btrfs_inode_in_log`
        let in_log = self.logged.get(&synced.ino).copied().min(self.written);
        let is_changed = synced.entry > self.journal.max(in_log);
        let is_found = || synced.before > self.journal || found(synced.ino);
        (is_changed || (synced.is_written && is_found())) && has_names()
    }

    fn call(&mut self, changes: &[Change]) {
        let place = |change: &Change| (change.folder, change.name.clone());
        match changes {
            [one] => match (one.held, one.holds) {
                (Some(held), None) => self.unlink(place(one), held),
                (_, Some(ino)) => self.link(place(one), ino),
                (None, None) => {}
            },
            [one, other] => {
                let (to, from) = if one.holds.is_some() { (one, other) } else { (other, one) };
                let moves: Vec<(Ino, Place, Place)> = [(to, from), (from, to)]
                    .into_iter()
                    .filter_map(|(to, from)| Some((to.holds?, place(from), place(to))))
                    .collect();
                let over = to.held.filter(|_| from.holds.is_none());
                self.rename(&moves, over);
            }
            _ => {}
        }
    }

    /// `btrfs_create`, `btrfs_mkdir` and `btrfs_link`.
    fn link(&mut self, place: Place, ino: Ino) {
        let is_first = self.history.logs().first(ino) == Some(self.event);
        self.now.insert(place, Some(ino));
        if !is_first {
            self.log_new_name(ino, None);
        }
    }

    /// `btrfs_unlink` and `btrfs_rmdir`.
    fn unlink(&mut self, place: Place, held: Ino) {
        if self.is_folder(held) && self.unlinked.contains(&held) {
            self.unlinked.insert(place.0);
        }
        self.unlinked.insert(held);
        self.forget(&place, held);
        self.now.insert(place, None);
    }

    /// `btrfs_del_inode_ref_in_log` and `btrfs_del_dir_entries_in_log`.
    fn forget(&mut self, place: &Place, held: Ino) {
        if let Some(names) = self.log.names.get_mut(&held) {
            names.remove(place);
        }
        self.log.entries.remove(place);
    }

    /// `btrfs_rename` and `btrfs_rename_exchange`: the files that move, and the one that loses its name to another.
    fn rename(&mut self, moves: &[(Ino, Place, Place)], over: Option<Ino>) {
        for (ino, from, to) in moves {
            if from.0 != to.0 {
                // `btrfs_record_unlink_dir`
                self.unlinked.insert(*ino);
                if !self.has(from.0) && !self.has(*ino) {
                    self.unlinked.insert(from.0);
                }
            }
        }
        if let (Some(over), [(_, _, to)]) = (over, moves) {
            self.forget(to, over);
        }
        for (_, from, _) in moves {
            self.now.insert(from.clone(), None);
        }
        for (ino, _, to) in moves {
            self.now.insert(to.clone(), Some(*ino));
        }
        for (ino, from, _) in moves {
            self.log_new_name(*ino, Some(from));
        }
    }

    /// `btrfs_log_new_name`: files in the log get their new names there at once.
    fn log_new_name(&mut self, ino: Ino, from: Option<&Place>) {
        if !self.is_folder(ino) {
            self.unlinked.insert(ino);
        }
        let from = from.filter(|(folder, _)| self.has(*folder));
        if from.is_none() && !self.has(ino) {
            return;
        }
        if let Some(from) = from {
            self.log.entries.remove(from);
            self.log.gone.insert(from.clone());
        }
        let logged = self.log_names(ino).and_then(|()| self.log_around(ino));
        self.must_commit |= logged == Err(Commits);
    }

    /// `btrfs_log_inode` with `LOG_INODE_EXISTS`, and `log_conflicting_inodes`: the names of something, and of the holders of these
    /// names in the transaction. If such a folder was removed, the one above is logged; if files left it, the transaction ends.
    fn log_names(&mut self, ino: Ino) -> Result<(), Commits> {
        let mut all = vec![ino];
        let (mut seen, mut left) = (BTreeSet::new(), BTreeSet::new());
        while let Some(ino) = all.pop() {
            if !seen.insert(ino) {
                continue;
            }
            let names = self.names_of(ino);
            for place in &names {
                let Some(other) = self.before(place).filter(|other| *other != ino) else {
                    continue;
                };
                if self.names_of(other).is_empty() {
                    left.extend(self.is_folder(other).then_some(place.0));
                } else if !self.has(other) {
                    if self.is_folder(other) && self.unlinked.contains(&other) {
                        return Err(Commits);
                    }
                    all.push(other);
                }
            }
            self.log.names.insert(ino, names);
        }
        for folder in left {
            let new = self.log_whole(folder)?;
            self.log_new(new)?;
        }
        Ok(())
    }

    /// `btrfs_log_inode` with `LOG_INODE_ALL`. Returns new entries of a folder.
    fn log_whole(&mut self, ino: Ino) -> Result<Vec<Ino>, Commits> {
        if self.is_folder(ino) && self.unlinked.contains(&ino) {
            return Err(Commits);
        }
        if !self.has(ino) {
            self.log_names(ino)?;
        }
        let before = self.logged.insert(ino, self.event);
        let mut new = Vec::new();
        for (name, cell) in self.history.names(ino).into_iter().flatten() {
            let place = (ino, name.clone());
            let newest = cell.up_to(Some(self.event)).last().map(|it| it.event);
            let is_changed = newest > self.journal.max(before);
            if !is_changed {
                continue;
            }
            if self.before(&place).is_some() {
                self.log.gone.insert(place.clone());
            }
            self.log.entries.remove(&place);
            if let Some(held) = self.holder(&place) {
                self.log.entries.insert(place, held);
                new.push(held);
            }
        }
        Ok(new)
    }

    /// `log_new_dir_dentries`: new entries of folders, and of those below.
    fn log_new(&mut self, mut new: Vec<Ino>) -> Result<(), Commits> {
        let mut seen = BTreeSet::new();
        while let Some(ino) = new.pop() {
            if self.has(ino) || !seen.insert(ino) {
                continue;
            }
            if self.is_folder(ino) {
                new.extend(self.log_whole(ino)?);
            } else {
                self.log_names(ino)?;
            }
        }
        Ok(())
    }

    /// `btrfs_sync_file`
    fn sync(&mut self, ino: Ino) -> Result<(), Commits> {
        if self.must_commit {
            return Err(Commits);
        }
        let new = self.log_whole(ino)?;
        self.log_around(ino)?;
        self.log_new(new)
    }

    /// `btrfs_log_inode_parent`: the folders without which the names of something would be lost, or be there twice.
    fn log_around(&mut self, ino: Ino) -> Result<(), Commits> {
        let is_unlinked = self.unlinked.contains(&ino);
        if !self.is_folder(ino) && !self.is_new(ino) && !is_unlinked {
            return Ok(());
        }
        if is_unlinked {
            self.log_all_parents(ino)?;
        }
        self.log_new_ancestors(ino)
    }

    /// `btrfs_log_all_parents`: the folders in which the transaction has it.
    fn log_all_parents(&mut self, ino: Ino) -> Result<(), Commits> {
        let places = self.history.places(ino);
        let before = places.filter(|place| self.before(place) == Some(ino));
        let folders: BTreeSet<Ino> = before.map(|(folder, _)| *folder).collect();
        for folder in folders {
            if self.needs_log(folder) {
                let new = self.log_whole(folder)?;
                self.log_new(new)?;
            }
        }
        Ok(())
    }

    /// `log_all_new_ancestors`
    fn log_new_ancestors(&mut self, ino: Ino) -> Result<(), Commits> {
        let mut all = vec![ino];
        let mut seen = BTreeSet::new();
        while let Some(ino) = all.pop() {
            for (folder, _) in self.names_of(ino) {
                if seen.insert(folder) {
                    if self.is_new(folder) && !self.has(folder) {
                        self.log_names(folder)?;
                    }
                    all.push(folder);
                }
            }
        }
        Ok(())
    }

    /// `btrfs_recover_log_trees`: names that differ from those of the transaction.
    fn replay(&self) -> BTreeMap<Place, Option<Ino>> {
        let log = &self.log;
        let mut names = BTreeMap::new();
        for place in &log.gone {
            names.insert(place.clone(), None);
        }
        for (ino, all) in &log.names {
            // Names in a folder are one item: old ones go with it (`unlink_old_inode_refs`).
            let folders: BTreeSet<Ino> = all.iter().map(|(folder, _)| *folder).collect();
            let old = self.history.places(*ino).filter(|place| {
                folders.contains(&place.0)
                    && !all.contains(place)
                    && self.before(place) == Some(*ino)
            });
            for place in old {
                names.entry(place.clone()).or_insert(None);
            }
        }
        let has = |ino: Ino| !self.is_new(ino) || log.names.contains_key(&ino);
        let of_files = log.names.iter().flat_map(|(ino, all)| all.iter().map(|it| (it, *ino)));
        let of_folders = log.entries.iter().map(|(place, ino)| (place, *ino));
        for (place, ino) in of_folders.chain(of_files) {
            if has(place.0) && has(ino) {
                names.insert(place.clone(), Some(ino));
            }
        }
        names
    }
}
