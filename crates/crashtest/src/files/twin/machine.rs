//! The machine: a page cache, blocks and a log.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::Persistence;

/// Cells of a page: the twin counts in cells, which hold one byte many times.
pub(super) const PAGE: u64 = 4;
/// Machines that are followed side by side, at most.
pub(super) const MACHINES_MOST: usize = 6_000;

/// A call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Do {
    Create(&'static str),
    Write {
        name: &'static str,
        from: u64,
        to: u64,
        byte: u8,
    },
    Set {
        name: &'static str,
        cells: u64,
    },
    /// Opened and closed: what was cut to nothing before is closed.
    Close(&'static str),
    Rename(&'static str, &'static str),
    Remove(&'static str),
    /// Its one extended attribute is set, or removed if it has one.
    Xattr(&'static str, Option<u8>),
    Sync {
        name: &'static str,
        is_data: bool,
        fails: bool,
    },
    SyncFolder,
}

/// The number of a file, in the order of their making.
pub(super) type File = usize;
/// Names in order, each with the cells of its file and the value of its extended attribute.
pub(super) type Folder = BTreeMap<&'static str, (Vec<u8>, Option<u8>)>;

/// An entry of the log.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Entry {
    Names(Vec<(&'static str, Option<File>)>),
    /// A length, and how often each page had been freed then.
    Set {
        file: File,
        cells: u64,
        freed: Vec<u64>,
    },
    /// The size that a page brings.
    Size(File, u64),
    Xattr(File, Option<u8>),
    /// The block of a page.
    Block {
        file: File,
        page: u64,
        life: usize,
    },
}

/// A file in the page cache.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Cached {
    cells: u64,
    pages: BTreeMap<u64, [u8; PAGE as usize]>,
    dirty: BTreeSet<u64>,
    /// On ext4: submitted since they were written to, so that the size knows them.
    is_cut: bool,
    xattr: Option<u8>,
    /// Entries of the log that `fsync` and `fdatasync` need.
    whole: usize,
    data: usize,
    lives: BTreeMap<u64, usize>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Machine {
    names: BTreeMap<&'static str, File>,
    files: Vec<Cached>,
    pub(super) log: Vec<Entry>,
    /// Entries that a crash keeps.
    pub(super) forced: usize,
    /// The contents of the block of a page in one of its lives, and the length of the log when each
    /// was written: the last, and where pages are torn, those since the drive was flushed.
    blocks: BTreeMap<(File, u64, usize), Vec<Written>>,
    folder: usize,
    /// The drive keeps each cell of a page by itself.
    is_torn: bool,
}

type Written = ([u8; PAGE as usize], usize);

impl Machine {
    pub(super) fn new(is_torn: bool) -> Self {
        Self { is_torn, ..Self::default() }
    }

    fn enter(&mut self, entry: Entry) -> usize {
        self.log.push(entry);
        self.log.len()
    }

    fn enter_of(&mut self, file: File, entry: Entry) {
        let end = self.enter(entry);
        (self.files[file].whole, self.files[file].data) = (end, end);
    }

    /// Writes a dirty page out: on ext4 its size is entered before, on XFS after it.
    fn write_out(&mut self, file: File, page: u64, rules: Persistence) {
        if rules == Persistence::Ext4 {
            self.submit(file, page);
        }
        let life = self.files[file].lives.get(&page).copied().unwrap_or(0);
        let content = (self.files[file].pages[&page], self.log.len());
        let block = self.blocks.entry((file, page, life)).or_default();
        let is_new = block.is_empty();
        if !self.is_torn {
            block.clear();
        }
        block.push(content);
        if is_new {
            self.enter_of(file, Entry::Block { file, page, life });
        }
        if rules == Persistence::Xfs {
            self.submit(file, page);
        }
        self.files[file].dirty.remove(&page);
    }

    fn submit(&mut self, file: File, page: u64) {
        let size = self.files[file].cells.min((page + 1) * PAGE);
        let entered = self.log.iter().fold(0, |entered, entry| match entry {
            Entry::Set { file: of, cells, .. } if *of == file => *cells,
            Entry::Size(of, cells) if *of == file => entered.max(*cells),
            _ => entered,
        });
        if entered < size {
            self.enter_of(file, Entry::Size(file, size));
        }
    }

    /// This machine, and those that it may be after it wrote out any pages, or entered their sizes.
    pub(super) fn settled(&self, rules: Persistence, all: &mut BTreeSet<Self>) {
        if all.len() > MACHINES_MOST || !all.insert(self.clone()) {
            return;
        }
        for file in 0..self.files.len() {
            for page in self.files[file].dirty.clone() {
                let mut next = self.clone();
                next.write_out(file, page, rules);
                next.settled(rules, all);
                if rules == Persistence::Ext4 {
                    let mut next = self.clone();
                    next.submit(file, page);
                    next.settled(rules, all);
                }
            }
        }
    }

    pub(super) fn call(&mut self, call: Do, rules: Persistence) {
        match call {
            Do::Create(name) => {
                self.files.push(Cached::default());
                let file = self.files.len() - 1;
                self.names.insert(name, file);
                self.enter_of(file, Entry::Names(vec![(name, Some(file))]));
                self.folder = self.log.len();
            }
            Do::Write { name, from, to, byte } => self.write(self.names[name], from, to, byte),
            Do::Set { name, cells } => self.set(self.names[name], cells),
            Do::Close(name) => {
                let file = self.names[name];
                if std::mem::take(&mut self.files[file].is_cut) && rules == Persistence::Ext4 {
                    self.submit_all(file);
                }
            }
            Do::Rename(from, to) => self.rename(from, to, rules),
            Do::Remove(name) => {
                let file = self.names.remove(name).expect("it is there");
                self.folder = self.enter(Entry::Names(vec![(name, None)]));
                self.files[file].whole = self.folder;
            }
            Do::Xattr(name, value) => {
                let file = self.names[name];
                if std::mem::replace(&mut self.files[file].xattr, value).or(value).is_some() {
                    self.files[file].whole = self.enter(Entry::Xattr(file, value));
                }
            }
            Do::Sync { name, fails: true, .. } => {
                // The kernel takes the pages for written.
                let file = self.names[name];
                self.files[file].dirty.clear();
            }
            Do::Sync { name, is_data, .. } => {
                let file = self.names[name];
                for page in self.files[file].dirty.clone() {
                    self.write_out(file, page, rules);
                }
                let needed = if is_data { self.files[file].data } else { self.files[file].whole };
                self.forced = self.forced.max(needed);
                self.flush();
            }
            Do::SyncFolder => {
                self.forced = self.forced.max(self.folder);
                self.flush();
            }
        }
    }

    /// The drive's cache is flushed: the last content of each block is durable.
    fn flush(&mut self) {
        for block in self.blocks.values_mut() {
            block.drain(..block.len() - 1);
        }
    }

    fn submit_all(&mut self, file: File) {
        for page in self.files[file].dirty.clone() {
            self.submit(file, page);
        }
    }

    fn write(&mut self, file: File, from: u64, to: u64, byte: u8) {
        let cached = &mut self.files[file];
        let last = cached.cells / PAGE;
        if from / PAGE > last && !cached.cells.is_multiple_of(PAGE) {
            cached.pages.entry(last).or_default();
            cached.dirty.insert(last);
        }
        for cell in from..to {
            cached.pages.entry(cell / PAGE).or_default()[(cell % PAGE) as usize] = byte;
            cached.dirty.insert(cell / PAGE);
        }
        cached.cells = cached.cells.max(to);
    }

    fn set(&mut self, file: File, cells: u64) {
        let cached = &mut self.files[file];
        let old = std::mem::replace(&mut cached.cells, cells);
        let mut freed = Vec::new();
        cached.is_cut |= cells == 0;
        if cells == old {
            return;
        }
        for page in cells / PAGE..old.div_ceil(PAGE) {
            if page * PAGE >= cells {
                cached.pages.remove(&page);
                cached.dirty.remove(&page);
                *cached.lives.entry(page).or_insert(0) += 1;
                freed.push(page);
            } else if let Some(kept) = cached.pages.get_mut(&page) {
                kept[(cells % PAGE) as usize..].fill(0);
                cached.dirty.insert(page);
            }
        }
        self.enter_of(file, Entry::Set { file, cells, freed });
    }

    fn rename(&mut self, from: &'static str, to: &'static str, rules: Persistence) {
        let moved = self.names.remove(from).expect("it is there");
        let replaced = self.names.insert(to, moved);
        if replaced.is_some() && rules == Persistence::Ext4 {
            self.submit_all(moved);
        }
        self.folder = self.enter(Entry::Names(vec![(from, None), (to, Some(moved))]));
        for file in [Some(moved), replaced].into_iter().flatten() {
            self.files[file].whole = self.folder;
        }
    }

    /// The folders after a crash that keeps `kept` entries; nothing if there are more than `most`.
    pub(super) fn left(&self, kept: usize, most: usize) -> Option<Vec<Folder>> {
        let mut names: BTreeMap<&str, File> = BTreeMap::new();
        let mut sizes: BTreeMap<File, u64> = BTreeMap::new();
        let mut lives: BTreeMap<(File, u64), usize> = BTreeMap::new();
        let mut xattrs: BTreeMap<File, Option<u8>> = BTreeMap::new();
        for entry in &self.log[..kept] {
            match entry {
                Entry::Names(changes) => {
                    for (name, file) in changes {
                        match file {
                            Some(file) => names.insert(name, *file),
                            None => names.remove(name),
                        };
                    }
                }
                Entry::Set { file, cells, freed } => {
                    sizes.insert(*file, *cells);
                    for page in freed {
                        lives.remove(&(*file, *page));
                    }
                }
                Entry::Size(file, cells) => {
                    let size = sizes.entry(*file).or_insert(0);
                    *size = (*size).max(*cells);
                }
                Entry::Xattr(file, value) => drop(xattrs.insert(*file, *value)),
                Entry::Block { file, page, life } => {
                    lives.insert((*file, *page), *life);
                }
            }
        }
        let mut folders = vec![Folder::new()];
        for (name, file) in names {
            let length = sizes.get(&file).copied().unwrap_or(0) as usize;
            let mut cells = vec![BTreeSet::from([0]); length];
            for ((_, page), life) in lives.range((file, 0)..=(file, u64::MAX)) {
                self.show((file, *page, *life), kept, &mut cells);
            }
            let mut contents = vec![Vec::new()];
            for cell in cells {
                if folders.len() * contents.len() * cell.len() > most {
                    return None;
                }
                let longer = |content: &Vec<u8>| {
                    cell.iter().map(|byte| [&content[..], &[*byte]].concat()).collect::<Vec<_>>()
                };
                contents = contents.iter().flat_map(longer).collect();
            }
            let with = |folder: &Folder| {
                let of = |content: &Vec<u8>| {
                    let mut folder = folder.clone();
                    folder.insert(name, (content.clone(), xattrs.get(&file).copied().flatten()));
                    folder
                };
                contents.iter().map(of).collect::<Vec<Folder>>()
            };
            folders = folders.iter().flat_map(with).collect();
        }
        Some(folders)
    }

    /// Contents that each cell of a block may have: an entry that is kept was written behind a flush of the drive.
    fn show(&self, block: (File, u64, usize), kept: usize, cells: &mut [BTreeSet<u8>]) {
        let (file, page, _) = block;
        let all = &self.blocks[&block];
        let first = all.iter().rposition(|(_, written)| *written < kept).unwrap_or(0);
        for at in 0..PAGE {
            let Some(cell) = cells.get_mut((page * PAGE + at) as usize) else { continue };
            cell.clear();
            for (content, written) in &all[first..] {
                let end = self.cut_since(file, *written, kept).unwrap_or(u64::MAX);
                let is_there = page * PAGE + at < end;
                cell.insert(if is_there { content[at as usize] } else { 0 });
            }
        }
    }

    /// The shortest length among the entries from `from` to `kept`.
    fn cut_since(&self, file: File, from: usize, kept: usize) -> Option<u64> {
        let entries = self.log.get(from..kept).unwrap_or_default();
        let set = entries.iter().filter_map(|entry| match entry {
            Entry::Set { file: of, cells, .. } if *of == file => Some(*cells),
            _ => None,
        });
        set.min()
    }
}
