//! The files that a power cut leaves: names, lengths and bytes, from the versions kept of each part.
//!
//! Parts are chosen independently of each other. Where the journal is behind them, what it does not hold yet cannot
//! be there: bytes whose blocks are entered later, lengths that are entered later. The newest version is there then
//! that the journal allows, which a file system may leave as well.

mod logged;
mod torn;
mod tree_log;
mod xattrs;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::atom::{Atom, Cell, Drive, Ino, Length, Name, Page, Version};
use super::history::FileHistory;
use super::step::{Kind, PAGE_BYTES};
use crate::state::State;
use crate::store::{Content, key_of};

/// The files of a state.
#[derive(Clone, Debug)]
pub(crate) struct SurvivingFiles {
    history: Arc<FileHistory>,
    is: Choice,
    /// Lengths that were asked for.
    lengths: RefCell<BTreeMap<Ino, u64>>,
}

/// The version of each part that a state keeps.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The last event before the cut.
    last: Option<u32>,
    /// The last entry of each drive's journal.
    journals: Vec<Option<u32>>,
    lost: BTreeMap<u32, Option<u32>>,
    /// Names of folders that another name has, too: where each name is kept by itself, a moved folder may have two.
    hidden: BTreeSet<(Ino, Name)>,
    /// Names that differ from those of the journal, by logs of files.
    logged: BTreeMap<(Ino, Name), Option<Ino>>,
}

/// The content of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SurvivingPage {
    content: Content,
    /// Bytes from here on were cut off, and are zeroes.
    kept_bytes: u64,
}

impl Choice {
    pub(crate) fn new(history: &FileHistory, state: &State) -> Self {
        let last = state.at.checked_sub(1).map(|last| last as u32);
        let lost: BTreeMap<u32, Option<u32>> = state.lost.iter().copied().collect();
        let journal = |drive: Drive| lost.get(&drive).copied().unwrap_or(last);
        let journals = (0..history.drives()).map(journal).collect();
        let mut choice =
            Self { last, journals, lost, hidden: BTreeSet::new(), logged: BTreeMap::new() };
        if history.rules().logs_files() {
            choice.logged = choice.replay_logs(history);
        }
        if !history.rules().has_journal() && history.has_moved_folders() {
            choice.hidden = choice.second_names(history);
        }
        choice
    }

    /// Names of folders that were reached before by another name: a tree has no circles.
    fn second_names(&self, history: &FileHistory) -> BTreeSet<(Ino, Name)> {
        let (mut hidden, mut seen) = (BTreeSet::new(), BTreeSet::from([Ino::ROOT]));
        let mut folders = VecDeque::from([Ino::ROOT]);
        while let Some(folder) = folders.pop_front() {
            for (name, ino) in self.entries(history, folder) {
                if history.kind(ino) != Kind::Folder {
                    continue;
                }
                if seen.insert(ino) {
                    folders.push_back(ino);
                } else {
                    hidden.insert((folder, name));
                }
            }
        }
        hidden
    }

    /// The last entry of the journal that a file or folder is in.
    pub(crate) fn journal(&self, history: &FileHistory, ino: Ino) -> Option<u32> {
        self.journals[history.drive_of(ino) as usize]
    }

    /// The last entry of a drive's journal.
    pub(crate) fn last_entry(&self, drive: Drive) -> Option<u32> {
        self.journals[drive as usize]
    }

    /// The last event whose version of a part may be there.
    fn of(&self, atom: Option<u32>) -> Option<u32> {
        atom.and_then(|atom| self.lost.get(&atom).copied()).unwrap_or(self.last)
    }

    /// A part is as it was last.
    pub(crate) fn put_back(&mut self, atom: u32) {
        self.lost.remove(&atom);
    }

    /// A part has the version of an event.
    pub(crate) fn lose(&mut self, atom: u32, event: Option<u32>) {
        self.lost.insert(atom, event);
    }

    /// A number that differs where what a part shows differs.
    pub(crate) fn shows(&self, history: &FileHistory, part: &Atom) -> u128 {
        match part {
            Atom::Journal(drive) => {
                self.journals[*drive as usize].map_or(0, |entry| 1 + u128::from(entry))
            }
            Atom::Name(folder, name) => {
                self.name(history, *folder, name).map_or(0, |ino| ino.0.into())
            }
            Atom::Length(file) => key_of_file(history, self, *file),
            Atom::Found(_) => 0,
            Atom::Log(file) => self.logged(history, *file).map_or(0, |event| 1 + u128::from(event)),
            Atom::Xattr(of, name) => {
                self.xattr(history, *of, name).map_or(0, |value| mixed(value.key, 1))
            }
            Atom::Page(file, page) | Atom::Piece(file, page, _) => {
                let whole = || {
                    let left = self.page(history, *file, *page)?;
                    Some(mixed(history.store().key(left.content), left.kept_bytes))
                };
                let torn = self.torn(history, *file, *page).map(|bytes| key_of(&bytes));
                let key = torn.or_else(whole).unwrap_or(0);
                mixed(key, self.brought_by(history, *file, *page).map_or(0, |end| end + 1))
            }
        }
    }

    pub(crate) fn name(&self, history: &FileHistory, folder: Ino, name: &str) -> Option<Ino> {
        let (name, cell) = history.names(folder)?.get_key_value(name)?;
        self.held(history, folder, name, cell)
    }

    /// The file or folder of a name.
    fn held(
        &self,
        history: &FileHistory,
        folder: Ino,
        name: &Name,
        cell: &Cell<Option<Ino>>,
    ) -> Option<Ino> {
        let has_journal = history.rules().has_journal();
        let last = if has_journal { self.journal(history, folder) } else { self.of(cell.atom) };
        let logged = || self.logged.get(&(folder, name.clone()));
        let logged = if self.logged.is_empty() { None } else { logged() };
        let ino = match logged {
            Some(ino) => (*ino)?,
            None => (*cell.at(last)?)?,
        };
        let is_hidden = !self.hidden.is_empty() && self.hidden.contains(&(folder, name.clone()));
        (!is_hidden).then_some(ino)
    }

    pub(crate) fn entries(&self, history: &FileHistory, folder: Ino) -> BTreeMap<Name, Ino> {
        let names = history.names(folder).into_iter().flatten();
        names
            .filter_map(|(name, cell)| {
                Some((name.clone(), self.held(history, folder, name, cell)?))
            })
            .collect()
    }

    /// The length of a file.
    pub(crate) fn length(&self, history: &FileHistory, file: Ino) -> u64 {
        if let Some(bytes) = self.length_alone(history, file) {
            return bytes;
        }
        // Sizes follow bytes: no page brings one that is not written, and the last of them may be missing.
        let last = self.of(history.length(file).and_then(|cell| cell.atom));
        let (set, bytes) = self.set(history, file);
        let pages = history.pages(file).into_iter().flatten();
        let ends = pages.filter_map(|(_, cell)| self.page_end(history, file, cell, last, set));
        ends.max().unwrap_or(0).max(bytes)
    }

    /// The length of a file by rules with which no page brings one.
    pub(crate) fn length_alone(&self, history: &FileHistory, file: Ino) -> Option<u64> {
        let Some(cell) = history.length(file) else { return Some(0) };
        let chosen = cell.up_to(self.of(cell.atom));
        if !history.rules().has_journal() {
            return Some(chosen.last().map_or(0, |version| version.value.bytes));
        }
        let bytes = || self.set(history, file).1;
        let grown = history.rules().has_lengths_alone().then(|| self.grown(history, file));
        grown.map(|grown| grown.map_or_else(bytes, |version| version.value.bytes))
    }

    /// The version of a length by a write that is there, by rules with which no page brings one.
    fn grown<'a>(&self, history: &'a FileHistory, file: Ino) -> Option<&'a Version<Length>> {
        let cell = history.length(file)?;
        let chosen = cell.up_to(self.of(cell.atom));
        let (journal, (set, _)) = (self.journal(history, file), self.set(history, file));
        let brought = history.lengths().brought(file, journal);
        let may = |version: &&Version<Length>| {
            version.value.is_grown && Some(version.event) > set && version.needs <= journal
        };
        let grown = chosen.iter().rfind(may);
        let least = cell.up_to(brought).iter().rfind(may);
        grown.into_iter().chain(least).max_by_key(|version| version.event)
    }

    /// The last call in the journal that has set the length of a file, and that length.
    pub(crate) fn set(&self, history: &FileHistory, file: Ino) -> (Option<u32>, u64) {
        if let Some(log) = self.logged(history, file) {
            let bytes = history.length(file).and_then(|cell| cell.at(Some(log)));
            return (Some(log), bytes.map_or(0, |length| length.bytes));
        }
        let settled = history.length(file).map(|cell| cell.up_to(self.journal(history, file)));
        let set = settled.and_then(|all| all.iter().rfind(|version| !version.value.is_grown));
        set.map_or((None, 0), |set| (Some(set.event), set.value.bytes))
    }

    /// The length that a page brings, where sizes follow bytes: the last length no later than `last` and behind `set`.
    fn page_end(
        &self,
        history: &FileHistory,
        file: Ino,
        cell: &Cell<Page>,
        last: Option<u32>,
        set: Option<u32>,
    ) -> Option<u64> {
        let journal = self.journal(history, file);
        let version = self.page_version(history, file, cell)?;
        if history.rules().copies_blocks() {
            // The end of its I/O enters the length that the file has then, which is before the page is written to again.
            let next = cell.versions.partition_point(|it| it.event <= version.event);
            let next = cell.versions.get(next).map_or(u32::MAX, |next| next.event);
            let last = last.max(Some(version.event)).min(Some(next - 1));
            let lengths = history.length(file)?.up_to(last).iter();
            let may = |it: &&Version<Length>| Some(it.event) > set && it.needs <= journal;
            let brings = Some(version.event) > set;
            return lengths.rev().find(may).filter(|_| brings).map(|it| it.value.bytes);
        }
        let with_length = |it: &&Version<Page>| {
            it.value.end_needs <= journal && it.needs <= journal && Some(it.event) > set
        };
        let sized = cell.up_to(last.min(Some(version.event)));
        Some(sized.iter().rfind(with_length)?.value.end)
    }

    /// The length that a page adds to its file, where sizes follow bytes; the cost depends on the page alone.
    pub(crate) fn brought_by(&self, history: &FileHistory, file: Ino, page: u32) -> Option<u64> {
        if !history.rules().has_journal() || history.rules().has_lengths_alone() {
            return None;
        }
        let last = self.of(history.length(file)?.atom);
        let cell = history.pages(file)?.get(&page)?;
        self.page_end(history, file, cell, last, self.set(history, file).0)
    }

    /// The version of a page that is there.
    fn page_version<'a>(
        &self,
        history: &FileHistory,
        file: Ino,
        cell: &'a Cell<Page>,
    ) -> Option<&'a Version<Page>> {
        let (chosen, journal) = (self.of(cell.atom), self.journal(history, file));
        let is_there = |it: &&Version<Page>| !history.rules().has_journal() || it.needs <= journal;
        let by_journal = cell.up_to(chosen).iter().rfind(is_there);
        let logged = self.logged_page(history, file, cell);
        by_journal.into_iter().chain(logged).max_by_key(|it| it.event)
    }

    /// The last event whose change of the length counts for the bytes of a file.
    fn last_set(&self, history: &FileHistory, file: Ino) -> Option<u32> {
        if history.rules().has_journal() {
            return self.journal(history, file).max(self.logged(history, file));
        }
        self.of(history.length(file).and_then(|cell| cell.atom))
    }

    /// The content of a page; `None` if it is zeroes.
    pub(crate) fn page(
        &self,
        history: &FileHistory,
        file: Ino,
        page: u32,
    ) -> Option<SurvivingPage> {
        let cell = history.pages(file)?.get(&page)?;
        let version = self.page_version(history, file, cell)?;
        let begin = u64::from(page) * PAGE_BYTES;
        let cut = history.lengths().shortest(file, version.event, self.last_set(history, file));
        let kept_bytes = cut.saturating_sub(begin).min(PAGE_BYTES);
        let content = version.value.content;
        (kept_bytes > 0 && content != Content::ZEROES)
            .then_some(SurvivingPage { content, kept_bytes })
    }

    /// The bytes of a page of a file that is so long; nothing if they are zeroes.
    pub(crate) fn page_bytes(
        &self,
        history: &FileHistory,
        file: Ino,
        page: u32,
        length: u64,
    ) -> Option<Vec<u8>> {
        let begin = u64::from(page) * PAGE_BYTES;
        let reach = length.saturating_sub(begin).min(PAGE_BYTES);
        let (mut bytes, kept_bytes) = if let Some(bytes) = self.torn(history, file, page) {
            (bytes, PAGE_BYTES)
        } else {
            let SurvivingPage { content, kept_bytes } = self.page(history, file, page)?;
            (history.store().bytes(content).to_vec(), kept_bytes)
        };
        bytes[kept_bytes.min(reach) as usize..].fill(0);
        Some(bytes)
    }
}

impl SurvivingFiles {
    pub(crate) fn new(history: Arc<FileHistory>, state: &State) -> Self {
        let is = Choice::new(&history, state);
        Self { history, is, lengths: RefCell::default() }
    }

    /// How many drives there are.
    pub(crate) fn drives(&self) -> u32 {
        self.history.drives()
    }

    pub(crate) fn drive_of(&self, ino: Ino) -> Drive {
        self.history.drive_of(ino)
    }

    /// The first number that no file has.
    pub(crate) fn next_ino(&self) -> u32 {
        self.history.next_ino()
    }

    pub(crate) fn has(&self, ino: Ino) -> bool {
        self.history.has(ino)
    }

    /// Names that a file has in this state.
    pub(crate) fn links(&self, ino: Ino) -> u32 {
        let places = self.history.places(ino);
        places.filter(|(folder, name)| self.lookup(*folder, name) == Some(ino)).count() as u32
    }

    pub(crate) fn target(&self, link: Ino) -> Option<Arc<str>> {
        self.history.target(link)
    }

    pub(crate) fn kind(&self, ino: Ino) -> Kind {
        self.history.kind(ino)
    }

    pub(crate) fn lookup(&self, folder: Ino, name: &str) -> Option<Ino> {
        self.is.name(&self.history, folder, name)
    }

    pub(crate) fn entries(&self, folder: Ino) -> BTreeMap<Name, Ino> {
        self.is.entries(&self.history, folder)
    }

    pub(crate) fn length(&self, file: Ino) -> u64 {
        let known = self.lengths.borrow().get(&file).copied();
        known.unwrap_or_else(|| {
            let length = self.is.length(&self.history, file);
            self.lengths.borrow_mut().insert(file, length);
            length
        })
    }

    /// The pages of a file that were ever written.
    pub(crate) fn pages(&self, file: Ino) -> impl Iterator<Item = u32> + '_ {
        self.history.pages(file).into_iter().flatten().map(|(page, _)| *page)
    }

    /// The bytes of a page; nothing if they are zeroes.
    pub(crate) fn bytes(&self, file: Ino, page: u32) -> Option<Arc<[u8]>> {
        let bytes = self.is.page_bytes(&self.history, file, page, self.length(file))?;
        Some(bytes.into())
    }
}

/// A number that is the same for images that are the same: names that can be reached, lengths and bytes.
pub(crate) fn key_of_image(history: &FileHistory, state: &State) -> u128 {
    let choice = Choice::new(history, state);
    let (mut sum, mut seen) = (choice.key_of_xattrs(history, Ino::ROOT), BTreeSet::new());
    let mut folders = vec![Ino::ROOT];
    while let Some(folder) = folders.pop() {
        for (name, cell) in history.names(folder).into_iter().flatten() {
            let Some(ino) = choice.held(history, folder, name, cell) else { continue };
            sum = sum.wrapping_add(mixed(
                history.name_key(name),
                (u64::from(folder.0) << 32) | u64::from(ino.0),
            ));
            if !seen.insert(ino) {
                continue;
            }
            sum = sum.wrapping_add(choice.key_of_xattrs(history, ino));
            match history.kind(ino) {
                Kind::Folder => folders.push(ino),
                // Where it leads never changes, and its number stands for it.
                Kind::Symlink => {}
                Kind::File => sum = sum.wrapping_add(key_of_file(history, &choice, ino)),
            }
        }
    }
    sum
}

fn key_of_file(history: &FileHistory, choice: &Choice, file: Ino) -> u128 {
    let length = choice.length(history, file);
    let mut sum = mixed(u128::from(length), u64::from(file.0));
    for (&page, _) in history.pages(file).into_iter().flatten() {
        let begin = u64::from(page) * PAGE_BYTES;
        if begin >= length {
            break;
        }
        if choice.torn(history, file, page).is_some() {
            let bytes = choice.page_bytes(history, file, page, length).unwrap_or_default();
            if bytes.iter().any(|byte| *byte != 0) {
                sum = sum.wrapping_add(mixed(key_of(&bytes), place(file, page)));
            }
            continue;
        }
        let Some(SurvivingPage { content, kept_bytes }) = choice.page(history, file, page) else {
            continue;
        };
        let kept_bytes = kept_bytes.min(length - begin) as usize;
        let key = if kept_bytes < history.store().used_bytes(content) {
            let mut page = history.store().bytes(content).to_vec();
            page[kept_bytes..].fill(0);
            // Zeroes are like a hole.
            if page.iter().all(|byte| *byte == 0) {
                continue;
            }
            key_of(&page)
        } else {
            history.store().key(content)
        };
        sum = sum.wrapping_add(mixed(key, place(file, page)));
    }
    sum
}

fn place(file: Ino, page: u32) -> u64 {
    (u64::from(file.0) << 32) | u64::from(page)
}

/// Spreads a number and where it stands over 128 bits (the multiplier and the shifts of MurmurHash3's finalizer, twice).
fn mixed(key: u128, place: u64) -> u128 {
    const ODD: u128 = 0xff51_afd7_ed55_8ccd_c4ce_b9fe_1a85_ec53;
    let mut x = (key ^ (u128::from(place).wrapping_add(1)).wrapping_mul(ODD)).wrapping_mul(ODD);
    x ^= x >> 67;
    x = x.wrapping_mul(ODD);
    x ^ (x >> 61)
}
