//! Changes that calls made to files, in order, and every version of each part.

mod drives;
mod inodes;
mod lengths;
mod logs;
mod pieces;
mod told;

use self::inodes::Inodes;
pub(crate) use self::inodes::{Value, Xattrs};
use self::lengths::Lengths;
pub(crate) use self::logs::{Change, LogEvent, Logs, Synced};
pub(crate) use self::pieces::ATOM_BYTES_LEAST;
use self::pieces::Pages;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::atom::{Atom, Cell, Drive, Ino, Length, Name, Page, Version};
use super::by_ino::ByIno;
use super::rules::Persistence;
use super::step::{Effect, Kind, PAGE_BYTES, Step};
use crate::store::{Store, key_of};

/// The data that a sync makes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Syncs {
    /// `fsync` of a file or a folder.
    Whole(Ino),
    /// `fdatasync`.
    Data(Ino),
    /// `syncfs`, or `sync`, on the drive of this folder.
    Drive(Ino),
    /// `sync`, or `syncfs`.
    Everything,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A step of a call.
    Step {
        /// The parts that it changed.
        atoms: Vec<u32>,
        /// It is an entry of the journal of its drive.
        is_entry: bool,
        drive: Drive,
        /// Files and folders whose own entry it changed; true if their bytes cannot be found without.
        touches: Vec<(Ino, bool)>,
    },
    /// A sync that has ended.
    Sync {
        syncs: Syncs,
        /// Events before this one are covered.
        since: u32,
        is_done: bool,
    },
    /// A line was acknowledged.
    Acknowledged,
}

/// A run of software, as its files saw it.
#[derive(Clone, Debug)]
pub struct FileHistory {
    rules: Persistence,
    store: Store,
    events: Vec<Event>,
    diary: Diary,
    /// Earlier events are durable in every state.
    begin: u32,
    acks: Acks,
    atoms: Vec<Atom>,
    inodes: Inodes,
    names: BTreeMap<Ino, BTreeMap<Name, Cell<Option<Ino>>>>,
    name_keys: BTreeMap<Name, u128>,
    lengths: Lengths,
    pages: Pages,
    has_moved_folders: bool,
    growth: Growth,
    logs: Logs,
}

/// Each event in words, with its time.
#[derive(Clone, Debug, Default)]
struct Diary {
    words: Vec<Arc<str>>,
    times_ns: Vec<u64>,
    /// The clock's time; in memory it ticks once an event.
    now_ns: Option<u64>,
}

/// The promises.
#[derive(Clone, Debug, Default)]
struct Acks {
    lines: Vec<String>,
    events: Vec<u32>,
}

/// Journal space for the bytes written last.
#[derive(Clone, Debug, Default)]
struct Growth {
    last_entry: Vec<Option<u32>>,
    /// The entry behind which the block of a page is entered, and the event that first wrote to it.
    blocks: BTreeMap<(Ino, u32), (Option<u32>, u32)>,
    /// The same of the length of a file.
    ends: BTreeMap<Ino, Option<u32>>,
    /// Files that have grown by writes since they were synced.
    growing: BTreeSet<Ino>,
}

impl FileHistory {
    pub(crate) fn new(rules: Persistence) -> Self {
        Self {
            rules,
            store: Store::new(PAGE_BYTES as usize),
            events: Vec::new(),
            diary: Diary::default(),
            begin: 0,
            acks: Acks::default(),
            atoms: vec![Atom::Journal(0)],
            inodes: Inodes::new(),
            names: BTreeMap::new(),
            name_keys: BTreeMap::new(),
            lengths: Lengths::new(),
            pages: Pages::new(),
            has_moved_folders: false,
            growth: Growth { last_entry: vec![None], ..Growth::default() },
            logs: Logs::default(),
        }
    }

    pub(crate) const fn rules(&self) -> Persistence {
        self.rules
    }
    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }
    /// How many events there were: steps of calls, syncs and promises.
    pub fn event_count(&self) -> usize {
        self.events.len()
    }
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }
    /// The first event of the work: what was before is there whatever happens.
    pub const fn begin(&self) -> u32 {
        self.begin
    }
    /// Makes the events so far durable in every state.
    pub(crate) fn set_begin(&mut self) {
        self.begin = self.events.len() as u32;
        let seen: Vec<Ino> = self.logs.unseen().collect();
        self.logs.settle(&seen);
    }
    /// When an event was, by the clock of the recording.
    pub fn time_ns(&self, event: usize) -> u64 {
        let times_ns = &self.diary.times_ns;
        times_ns.get(event).or(times_ns.last()).copied().unwrap_or_default()
    }
    /// Sets the time of the next event.
    pub(crate) const fn set_time(&mut self, now_ns: u64) {
        self.diary.now_ns = Some(now_ns);
    }
    fn push(&mut self, event: Event, words: Arc<str>) {
        let now_ns = self.diary.now_ns.unwrap_or(self.events.len() as u64);
        self.diary.times_ns.push(now_ns);
        self.diary.words.push(words);
        self.events.push(event);
    }
    pub(crate) fn word(&self, event: u32) -> &str {
        &self.diary.words[event as usize]
    }
    pub(crate) fn atom(&self, atom: u32) -> Option<&Atom> {
        self.atoms.get(atom as usize)
    }
    pub(crate) fn next_ino(&self) -> u32 {
        self.inodes.kinds.keys().next_back().expect("there is a root").0 + 1
    }
    pub(crate) fn has(&self, ino: Ino) -> bool {
        self.inodes.kinds.get(ino).is_some()
    }
    /// Every name that a file or folder has ever had.
    pub(crate) fn places(&self, ino: Ino) -> impl Iterator<Item = &(Ino, Name)> {
        self.inodes.places.get(&ino).into_iter().flatten()
    }
    pub(crate) fn kind(&self, ino: Ino) -> Kind {
        self.inodes.kinds[ino]
    }
    pub(crate) fn target(&self, link: Ino) -> Option<Arc<str>> {
        self.inodes.targets.get(&link).cloned()
    }
    pub(crate) fn xattrs(&self, of: Ino) -> Option<&Xattrs> {
        self.inodes.xattrs.get(&of)
    }
    pub(crate) const fn has_moved_folders(&self) -> bool {
        self.has_moved_folders
    }
    pub(crate) fn names(&self, folder: Ino) -> Option<&BTreeMap<Name, Cell<Option<Ino>>>> {
        self.names.get(&folder)
    }
    pub(crate) fn name_key(&self, name: &Name) -> u128 {
        self.name_keys[name]
    }
    pub(crate) const fn lengths(&self) -> &Lengths {
        &self.lengths
    }
    pub(crate) fn length(&self, file: Ino) -> Option<&Cell<Length>> {
        self.lengths.of(file)
    }
    pub(crate) const fn logs(&self) -> &Logs {
        &self.logs
    }
    pub(crate) fn pages(&self, file: Ino) -> Option<&BTreeMap<u32, Cell<Page>>> {
        self.pages.of_files.get(file)
    }

    /// Whether a file or folder has a name before event `end`.
    pub(crate) fn has_names(&self, ino: Ino, end: u32) -> bool {
        let holds = |(folder, name): &(Ino, Name)| {
            let cell = self.names.get(folder).and_then(|names| names.get(name));
            cell.and_then(|cell| cell.at(end.checked_sub(1))).is_some_and(|held| *held == Some(ino))
        };
        ino == Ino::ROOT || self.places(ino).any(holds)
    }

    /// The entry of the journal that must be committed before a version of a part can be there, with its length.
    pub(crate) fn needs_of(&self, atom: u32, event: u32) -> Option<u32> {
        match &self.atoms[atom as usize] {
            Atom::Page(file, page) => {
                let cell = &self.pages.of_files[*file][page];
                let version = version_of(cell, event)?;
                version.needs.max(version.value.end_needs)
            }
            Atom::Length(file) => version_of(self.length(*file)?, event)?.needs,
            _ => None,
        }
    }

    pub(crate) fn has_version(&self, atom: u32, event: u32) -> bool {
        match &self.atoms[atom as usize] {
            Atom::Journal(of) => {
                let step = self.events.get(event as usize);
                matches!(step, Some(Event::Step { is_entry: true, drive, .. }) if drive == of)
            }
            Atom::Name(folder, name) => version_of(&self.names[folder][name], event).is_some(),
            Atom::Length(file) => {
                self.length(*file).is_some_and(|cell| version_of(cell, event).is_some())
            }
            Atom::Page(file, page) => {
                version_of(&self.pages.of_files[*file][page], event).is_some()
            }
            Atom::Found(file) => self.logs.found(*file).is_some_and(|(_, call)| call == event),
            Atom::Log(file) => {
                self.logs.of_file(*file).is_some_and(|(_, logs)| logs.binary_search(&event).is_ok())
            }
            Atom::Piece(file, page, piece) => {
                version_of(&self.pages.pieces[&(*file, *page)][piece], event).is_some()
            }
            Atom::Xattr(of, name) => version_of(&self.inodes.xattrs[of][name], event).is_some(),
        }
    }

    /// A call in words, and its steps.
    pub(crate) fn call(&mut self, words: &str, steps: Vec<Step>) {
        let words: Arc<str> = words.into();
        for step in steps {
            self.step(&words, step);
        }
    }

    fn step(&mut self, words: &Arc<str>, step: Step) {
        let event = self.events.len() as u32;
        let drive = self.place(&step);
        let last_entry = self.growth.last_entry[drive as usize];
        let before = if self.rules.has_journal() { last_entry } else { None };
        let (mut atoms, mut touches, mut is_entry) = (Vec::new(), Vec::new(), false);
        let (mut whole_length, mut changes, mut written) = (None, Vec::new(), None);
        for effect in step {
            match effect {
                Effect::Born { ino, kind } => {
                    self.inodes.kinds.get_or_insert_with(ino, || kind);
                    touches.push((ino, true));
                    is_entry = true;
                }
                Effect::Target { link, target } => drop(self.inodes.targets.insert(link, target)),
                Effect::Name { folder, name, held, holds } => {
                    let is_moved = |ino: Ino| self.kind(ino) == Kind::Folder;
                    self.has_moved_folders |= held.is_some_and(is_moved);
                    let parts = [Some(folder), held, holds];
                    touches.extend(parts.into_iter().flatten().map(|ino| (ino, false)));
                    atoms.extend(self.put_name(folder, name.clone(), event, holds));
                    changes.push(Change { folder, name, held, holds });
                    is_entry = true;
                }
                Effect::Grown { file, bytes } => {
                    self.growth.ends.insert(file, before);
                    self.growth.growing.insert(file);
                    let length = Length { bytes, is_grown: true };
                    let (lengths, parts) = (&mut self.lengths, &mut self.atoms);
                    atoms.extend(lengths.put(file, event, before, length, parts));
                }
                Effect::Set { file, bytes } => {
                    is_entry = true;
                    touches.push((file, true));
                    atoms.extend(self.set_length(file, event, bytes));
                }
                Effect::Page { file, page, bytes } => {
                    written = Some(file);
                    atoms.extend(self.put_pieces(file, page, event, &bytes));
                    atoms.push(self.put_page(file, page, event, before, &bytes));
                    let reach = (u64::from(page) + 1) * PAGE_BYTES;
                    whole_length = self.put_part_of_length(file, event, before, reach);
                    atoms.extend(whole_length.and_then(|_| self.length(file)?.atom));
                }
                Effect::Freed { file, page } => drop(self.growth.blocks.remove(&(file, page))),
                Effect::Xattr { of, name, value } => {
                    is_entry = true;
                    touches.push((of, false));
                    let parts = (!self.rules.has_journal()).then_some(&mut self.atoms);
                    atoms.extend(self.inodes.put_xattr(of, name, event, value, parts));
                }
                Effect::Brings { file } if self.rules.brings_lengths() => {
                    self.lengths.bring(file, event);
                    is_entry = true;
                }
                Effect::Brings { .. } => {}
            }
        }
        is_entry &= self.rules.has_journal();
        if self.rules.logs_files() {
            let touched = touches.iter().map(|(ino, _)| *ino);
            self.logs.note_changes(event, touched, written.map(|file| (file, before)));
            atoms.extend(self.logs.put_call(event, drive, changes, &mut self.atoms));
        }
        if is_entry {
            self.growth.last_entry[drive as usize] = Some(event);
        }
        self.push(Event::Step { atoms, is_entry, drive, touches }, Arc::clone(words));
        if let Some((file, length)) = whole_length {
            let (lengths, parts) = (&mut self.lengths, &mut self.atoms);
            let atoms = lengths.put(file, event + 1, before, length, parts).into_iter().collect();
            let step = Event::Step { atoms, is_entry: false, drive, touches: Vec::new() };
            self.push(step, Arc::clone(words));
        }
    }

    /// A page below the end of a file that has grown since it was synced: written out first, it brings a length that
    /// ends with it. The length that the file has then is a version for the next event.
    fn put_part_of_length(
        &mut self,
        file: Ino,
        event: u32,
        needs: Option<u32>,
        reach: u64,
    ) -> Option<(Ino, Length)> {
        let versions = &self.length(file)?.versions;
        let whole = versions.last()?.value;
        // No page brings less than a call has set.
        let set = versions.iter().rfind(|version| !version.value.is_grown);
        if !self.rules.has_lengths_alone()
            || !self.growth.growing.contains(&file)
            || reach >= whole.bytes
            || set.is_some_and(|set| reach <= set.value.bytes)
        {
            return None;
        }
        let length = Length { bytes: reach, is_grown: true };
        self.lengths.put(file, event, needs, length, &mut self.atoms);
        Some((file, Length { bytes: whole.bytes, is_grown: true }))
    }

    fn set_length(&mut self, file: Ino, event: u32, bytes: u64) -> Option<u32> {
        if bytes < self.lengths.newest(file) {
            // Blocks beyond it are free: what is written there next gets new ones.
            let first = bytes.div_ceil(PAGE_BYTES) as u32;
            let freed = self.growth.blocks.range((file, first)..=(file, u32::MAX));
            for block in freed.map(|(block, _)| *block).collect::<Vec<_>>() {
                self.growth.blocks.remove(&block);
            }
        }
        if self.rules.copies_blocks() {
            self.pages.enter_last(file, bytes, event);
        }
        let entry = self.rules.has_journal().then_some(event);
        self.growth.ends.insert(file, entry);
        let length = Length { bytes, is_grown: false };
        let atom = self.lengths.put(file, event, entry, length, &mut self.atoms);
        // In a journal it stands in order, and nothing chooses it.
        atom.filter(|_| !self.rules.has_journal())
    }

    fn put_name(&mut self, folder: Ino, name: Name, event: u32, holds: Option<Ino>) -> Option<u32> {
        self.name_keys.entry(name.clone()).or_insert_with(|| key_of(name.as_bytes()));
        if let Some(ino) = holds {
            self.inodes.places.entry(ino).or_default().insert((folder, name.clone()));
        }
        let is_alone = !self.rules.has_journal();
        let next = self.atoms.len() as u32;
        let cell = self
            .names
            .entry(folder)
            .or_default()
            .entry(name.clone())
            .or_insert_with(|| Cell { atom: is_alone.then_some(next), versions: Vec::new() });
        if cell.atom == Some(next) {
            self.atoms.push(Atom::Name(folder, name));
        }
        cell.versions.push(Version { event, needs: None, value: holds });
        cell.atom
    }

    fn put_page(
        &mut self,
        file: Ino,
        page: u32,
        event: u32,
        before: Option<u32>,
        bytes: &[u8],
    ) -> u32 {
        let block = self.growth.blocks.entry((file, page)).or_insert((before, event));
        if self.rules.copies_blocks() {
            *block = (before, event);
        }
        let (needs, block) = *block;
        let end_needs = self.growth.ends.get(&file).copied().flatten();
        let length = self.lengths.newest(file);
        let end = length.min((u64::from(page) + 1) * PAGE_BYTES);
        let value = Page { content: self.store.put(bytes), end, end_needs, block };
        let next = self.atoms.len() as u32;
        let cells = self.pages.of_files.get_or_insert_with(file, BTreeMap::new);
        let cell =
            cells.entry(page).or_insert_with(|| Cell { atom: Some(next), versions: Vec::new() });
        if cell.atom == Some(next) {
            self.atoms.push(Atom::Page(file, page));
        }
        cell.versions.push(Version { event, needs, value });
        cell.atom.expect("a page is chosen by itself")
    }

    /// A sync has ended; it covers what happened before event `since`.
    pub(crate) fn sync(&mut self, words: &str, syncs: Syncs, mut since: u32, is_done: bool) {
        if is_done && since as usize == self.events.len() {
            since += u32::from(self.log(syncs, words));
            let mut growing = std::mem::take(&mut self.growth.growing);
            growing.retain(|file| !self.covers(syncs, *file));
            self.growth.growing = growing;
        }
        if !is_done {
            self.pages.failed.push(self.events.len() as u32);
        }
        if let (Syncs::Whole(ino) | Syncs::Data(ino), true) = (syncs, is_done) {
            self.logs.note_sync(self.drive_of(ino), ino, self.events.len() as u32);
        }
        self.push(Event::Sync { syncs, since, is_done }, words.into());
    }

    /// Whether a sync that nothing happened beside has all of a file.
    fn covers(&self, syncs: Syncs, file: Ino) -> bool {
        match syncs {
            Syncs::Whole(synced) | Syncs::Data(synced) => file == synced,
            Syncs::Drive(folder) => self.drive_of(file) == self.drive_of(folder),
            Syncs::Everything => true,
        }
    }

    /// The log of a file that is synced is written before the sync ends. Returns whether there is one: a file without names is
    /// not logged.
    fn log(&mut self, syncs: Syncs, words: &str) -> bool {
        let event = self.events.len() as u32;
        let (Syncs::Whole(ino) | Syncs::Data(ino)) = syncs else {
            let seen: Vec<Ino> = self.logs.unseen().filter(|it| self.covers(syncs, *it)).collect();
            self.logs.settle(&seen);
            return false;
        };
        if !self.rules.logs_files() || !self.has_names(ino, event) {
            return false;
        }
        let (drive, atoms) =
            (self.drive_of(ino), vec![self.logs.put_log(ino, event, &mut self.atoms)]);
        let step = Event::Step { atoms, is_entry: false, drive, touches: Vec::new() };
        self.push(step, words.into());
        true
    }

    /// The events of the syncs that have ended well.
    pub(crate) fn syncs_done(&self) -> impl Iterator<Item = usize> + '_ {
        let is_sync = |at: &usize| matches!(self.events[*at], Event::Sync { is_done: true, .. });
        (0..self.events.len()).filter(is_sync)
    }
}

fn version_of<T>(cell: &Cell<T>, event: u32) -> Option<&Version<T>> {
    let at = cell.versions.binary_search_by_key(&event, |version| version.event).ok()?;
    Some(&cell.versions[at])
}
