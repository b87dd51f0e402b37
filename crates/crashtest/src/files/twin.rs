//! A slow twin of the rules: a machine that does what a kernel does, step by step, in every order that it may.
//!
//! The rules ([`super::rules`]) say which versions of which parts may be there. The twin knows no parts: it has a page
//! cache, blocks and a log. Between any two calls it may write out a page, and a crash keeps any part of the log that no
//! sync has forced. Both must leave the same sets of folders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leyden_sim::Rng;

use super::file::OpenOptions;
use super::fs::{Call, Failure, Fs};
use super::history::FileHistory;
use super::left::Left;
use super::rules::Persistence;
use crate::contract::{Cut, Flushes};
use crate::history::History as _;
use crate::state::State;

/// The twin counts in cells, which hold one byte many times.
const CELL_BYTES: u64 = 1_024;
/// Cells of a page.
const PAGE: u64 = 4;
/// Names that files may have.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// Moments with more combinations than this are left out.
const COMBINATIONS_MOST: usize = 20_000;
/// Machines that are followed side by side, at most.
const MACHINES_MOST: usize = 6_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Do {
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
    Sync {
        name: &'static str,
        is_data: bool,
        fails: bool,
    },
    SyncFolder,
}

type File = usize;
/// What a name, in the order of names, and the cells of its file are.
type Folder = BTreeMap<&'static str, Vec<u8>>;

/// An entry of the log.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Entry {
    Names(Vec<(&'static str, Option<File>)>),
    /// A length, and how often each page had been freed then.
    Set {
        file: File,
        cells: u64,
        freed: Vec<u64>,
    },
    /// The size that a page brings.
    Size(File, u64),
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
    /// Entries of the log that `fsync` and `fdatasync` need.
    whole: usize,
    data: usize,
    lives: BTreeMap<u64, usize>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Machine {
    names: BTreeMap<&'static str, File>,
    files: Vec<Cached>,
    log: Vec<Entry>,
    /// Entries that a crash keeps.
    forced: usize,
    /// What stands in the block of a page in one of its lives, and the length of the log when it was written.
    blocks: BTreeMap<(File, u64, usize), ([u8; PAGE as usize], usize)>,
    folder: usize,
}

impl Machine {
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
        if self.blocks.insert((file, page, life), content).is_none() {
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
    fn settled(&self, rules: Persistence, all: &mut BTreeSet<Self>) {
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

    fn call(&mut self, call: Do, rules: Persistence) {
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
            }
            Do::SyncFolder => self.forced = self.forced.max(self.folder),
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
        if cells == old {
            return;
        }
        cached.is_cut |= cells == 0;
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

    /// The folder after a crash that keeps `kept` entries.
    fn left(&self, kept: usize) -> Folder {
        let mut names: BTreeMap<&str, File> = BTreeMap::new();
        let mut sizes: BTreeMap<File, u64> = BTreeMap::new();
        let mut lives: BTreeMap<(File, u64), usize> = BTreeMap::new();
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
                Entry::Block { file, page, life } => {
                    lives.insert((*file, *page), *life);
                }
            }
        }
        let cells = |file: File| {
            let mut cells = vec![0; sizes.get(&file).copied().unwrap_or(0) as usize];
            for ((_, page), life) in lives.range((file, 0)..=(file, u64::MAX)) {
                let (block, written) = &self.blocks[&(file, *page, *life)];
                let end = self.cut_since(file, *written, kept).unwrap_or(u64::MAX);
                for (at, byte) in (*page * PAGE..).zip(block) {
                    if let Some(cell) = cells.get_mut(at as usize).filter(|_| at < end) {
                        *cell = *byte;
                    }
                }
            }
            cells
        };
        names.into_iter().map(|(name, file)| (name, cells(file))).collect()
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

/// Draws a call that succeeds on these names.
fn draw(rng: &mut Rng, lengths: &BTreeMap<&'static str, u64>, number: u64) -> Do {
    let pick = |rng: &mut Rng| NAMES[rng.below(NAMES.len() as u64) as usize];
    let name = match lengths.len() {
        0 => return Do::Create(pick(rng)),
        // Names that are there come three times as often.
        count if rng.below(4) > 0 => {
            *lengths.keys().nth(rng.below(count as u64) as usize).expect("one of them")
        }
        _ => pick(rng),
    };
    let Some(&length) = lengths.get(name) else { return Do::Create(name) };
    match rng.below(16) {
        0..6 => {
            let from = match rng.below(4) {
                0 | 1 => length,
                2 => rng.below(length + 1),
                _ => rng.below(3 * PAGE),
            };
            let to = from + 1 + rng.below(PAGE + 1);
            Do::Write { name, from, to, byte: 1 + number as u8 }
        }
        6 => Do::Set { name, cells: rng.below(length + 1) },
        7 => Do::Set { name, cells: if rng.below(2) == 0 { 0 } else { rng.below(2 * PAGE) } },
        8 => Do::Close(name),
        9 | 10 => {
            let to = pick(rng);
            if to == name { Do::SyncFolder } else { Do::Rename(name, to) }
        }
        11 => Do::Remove(name),
        12 => Do::SyncFolder,
        13 => Do::Sync { name, is_data: true, fails: false },
        14 => Do::Sync { name, is_data: false, fails: false },
        _ => Do::Sync { name, is_data: rng.below(2) == 0, fails: true },
    }
}

fn draws(seed: u64) -> Vec<Do> {
    let mut rng = Rng::new(seed, "small folders");
    let mut lengths = BTreeMap::new();
    let count = 2 + rng.below(7);
    let mut calls = Vec::new();
    for number in 0..count {
        let call = draw(&mut rng, &lengths, number);
        match call {
            Do::Create(name) => drop(lengths.insert(name, 0)),
            Do::Write { name, to, .. } => {
                let length = lengths.get_mut(name).expect("it is there");
                *length = to.max(*length);
            }
            Do::Set { name, cells } => drop(lengths.insert(name, cells)),
            Do::Rename(from, to) => {
                let length = lengths.remove(from).expect("it is there");
                lengths.insert(to, length);
            }
            Do::Remove(name) => drop(lengths.remove(name)),
            Do::Close(_) | Do::Sync { .. } | Do::SyncFolder => {}
        }
        calls.push(call);
    }
    calls
}

/// The same calls on the folder that is tested.
fn record(calls: &[Do], rules: Persistence) -> FileHistory {
    let fs = Fs::recorded(FileHistory::new(rules));
    let syncs = calls.iter().filter(|call| matches!(call, Do::Sync { .. } | Do::SyncFolder));
    let fails = |call: &Do| matches!(call, Do::Sync { fails: true, .. });
    let failing = (1..).zip(syncs).filter(|(_, call)| fails(call));
    let failures: Vec<Failure> =
        failing.map(|(nth, _)| Failure { call: Call::Sync, nth, errno: 5 }).collect();
    fs.set_begin(&failures);
    // A handle stays open, so that nothing closes but where the calls say it.
    let mut open = Vec::new();
    let mut opened = |name: &str| {
        open.push(OpenOptions::new().write(true).open(&fs, name).unwrap());
        open.len() - 1
    };
    let mut handles = BTreeMap::new();
    let mut made = Vec::new();
    for &call in calls {
        match call {
            Do::Create(name) => {
                made.push(OpenOptions::new().write(true).create_new(true).open(&fs, name).unwrap());
                handles.insert(name, opened(name));
            }
            Do::Write { name, from, to, byte } => {
                let bytes = vec![byte; ((to - from) * CELL_BYTES) as usize];
                let file = OpenOptions::new().write(true).open(&fs, name).unwrap();
                file.write_all_at(&bytes, from * CELL_BYTES).unwrap();
                std::mem::forget(file);
            }
            Do::Set { name, cells } => {
                let file = OpenOptions::new().write(true).open(&fs, name).unwrap();
                file.set_len(cells * CELL_BYTES).unwrap();
                std::mem::forget(file);
            }
            Do::Close(name) => drop(fs.open(name).unwrap()),
            Do::Rename(from, to) => fs.rename(from, to).unwrap(),
            Do::Remove(name) => fs.remove_file(name).unwrap(),
            Do::Sync { name, is_data, fails } => {
                let file = fs.open(name).unwrap();
                let done = if is_data { file.sync_data() } else { file.sync_all() };
                assert_eq!(done.is_err(), fails);
                std::mem::forget(file);
            }
            Do::SyncFolder => fs.sync_dir("/").unwrap(),
        }
    }
    let history = fs.history();
    made.into_iter().for_each(std::mem::forget);
    history
}

/// Every state of a moment.
fn states(cut: &Cut) -> Option<Vec<State>> {
    let counts = cut.unsettled.iter().map(|it| it.versions.len());
    if counts.fold(1, usize::saturating_mul) > COMBINATIONS_MOST {
        return None;
    }
    let mut states = vec![State::new(cut.at, Vec::new())];
    for unsettled in &cut.unsettled {
        let with = |state: &State| {
            let all = unsettled.versions.iter().enumerate();
            let all = all.map(|(place, version)| {
                let mut state = state.clone();
                if place > 0 {
                    state.lost.push((unsettled.atom, *version));
                }
                state
            });
            all.collect::<Vec<State>>()
        };
        states = states.iter().flat_map(with).collect();
    }
    Some(states)
}

fn folder(history: &Arc<FileHistory>, state: &State) -> Folder {
    let fs = Fs::shown(Left::new(Arc::clone(history), state));
    let names = fs.read_dir("/").unwrap();
    let cells = |name: &String| {
        let bytes = fs.read(name).unwrap();
        assert!(bytes.len().is_multiple_of(CELL_BYTES as usize));
        let cells = bytes.chunks_exact(CELL_BYTES as usize);
        let name = NAMES.into_iter().find(|it| it == name).expect("a name that is used");
        (name, cells.map(|cell| cell[0]).collect())
    };
    names.iter().map(cells).collect()
}

/// Compares at each moment; returns how many states were compared.
fn compare(calls: &[Do], rules: Persistence) -> usize {
    let history = Arc::new(record(calls, rules));
    let cuts = history.cuts(Flushes::All, &|_| true);
    let mut cuts = cuts.iter();
    let mut machines = BTreeSet::from([Machine::default()]);
    let mut compared = 0;
    let end = [None];
    for call in calls.iter().map(Some).chain(end) {
        let mut settled = BTreeSet::new();
        machines.iter().for_each(|machine| machine.settled(rules, &mut settled));
        if settled.len() > MACHINES_MOST {
            break;
        }
        let is_sync = matches!(call, Some(Do::Sync { fails: false, .. } | Do::SyncFolder));
        if (is_sync || call.is_none())
            && let Some(states) = states(cuts.next().expect("a moment for each sync"))
        {
            let left = |machine: &Machine| {
                let kept = machine.forced..=machine.log.len();
                kept.map(|kept| machine.left(kept)).collect::<Vec<Folder>>()
            };
            let lawful: BTreeSet<Folder> = settled.iter().flat_map(left).collect();
            let shown: BTreeSet<Folder> =
                states.iter().map(|state| folder(&history, state)).collect();
            let keys = history.keys();
            let different: BTreeSet<u128> = states.iter().map(|state| keys.of(state)).collect();
            let beyond = shown.difference(&lawful).next();
            assert_eq!(
                beyond, None,
                "{rules:?} shows what no kernel leaves, before {call:?} of {calls:?}"
            );
            let missed = lawful.difference(&shown).next();
            assert_eq!(missed, None, "{rules:?} does not show, before {call:?} of {calls:?}");
            assert!(different.len() >= shown.len(), "images with one key: {calls:?}");
            for state in &states {
                let mut normal = state.clone();
                history.normalize(&mut normal);
                assert_eq!(keys.of(&normal), keys.of(state), "{state:?} of {calls:?}");
            }
            compared += shown.len();
        }
        let Some(call) = call else { break };
        machines = settled;
        machines = machines
            .into_iter()
            .map(|mut machine| {
                machine.call(*call, rules);
                machine
            })
            .collect();
    }
    compared
}

#[test]
fn the_rules_leave_what_a_kernel_may_leave_and_nothing_else() {
    let mut compared = 0;
    for seed in 0..1_000 {
        let rules = if seed % 2 == 0 { Persistence::Xfs } else { Persistence::Ext4 };
        compared += compare(&draws(seed), rules);
    }
    assert!(compared > 10_000, "{compared} states");
}
