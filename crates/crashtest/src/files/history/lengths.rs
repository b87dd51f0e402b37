//! Lengths of files: those that writes bring, and those that calls set.

use std::collections::BTreeMap;

use super::{Atom, ByIno, Cell, Ino, Length, Version, version_of};

/// The lengths that files have ever had.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    cells: ByIno<Cell<Length>>,
    /// Lengths that were set to less, by file.
    cuts: BTreeMap<Ino, Vec<(u32, u64)>>,
    /// Entries of the journal that hold the length that a file had then.
    brought: BTreeMap<Ino, Vec<u32>>,
}

impl Lengths {
    pub(super) const fn new() -> Self {
        Self { cells: ByIno::new(), cuts: BTreeMap::new(), brought: BTreeMap::new() }
    }

    pub(crate) fn of(&self, file: Ino) -> Option<&Cell<Length>> {
        self.cells.get(file)
    }

    /// All files that ever had a length.
    pub(super) fn files(&self) -> impl Iterator<Item = Ino> + '_ {
        self.cells.keys()
    }

    /// The event of the first change of a file's length after event `floor`, and the length that the file had at `floor`.
    pub(crate) fn changed_after(&self, file: Ino, floor: Option<u32>) -> (Option<u32>, u64) {
        let Some(cell) = self.of(file) else { return (None, 0) };
        let settled = cell.up_to(floor);
        let mut later = cell.versions[settled.len()..].iter();
        let set = later.find(|version| !version.value.is_grown).map(|version| version.event);
        (set, settled.last().map_or(0, |version| version.value.bytes))
    }

    /// The length that a file got at an event.
    pub(crate) fn at(&self, file: Ino, event: u32) -> u64 {
        let version = self.of(file).and_then(|cell| version_of(cell, event));
        version.map_or(0, |version| version.value.bytes)
    }

    /// The newest length of a file.
    pub(super) fn newest(&self, file: Ino) -> u64 {
        let newest = self.of(file).and_then(|cell| cell.versions.last());
        newest.map_or(0, |version| version.value.bytes)
    }

    /// The shortest length that was set after event `after`, and no later than `upto`.
    pub(crate) fn shortest(&self, file: Ino, after: u32, upto: Option<u32>) -> u64 {
        let cuts = self.cuts.get(&file).into_iter().flatten();
        let counts = |&&(event, _): &&(u32, u64)| event > after && Some(event) <= upto;
        cuts.filter(counts).map(|(_, bytes)| *bytes).min().unwrap_or(u64::MAX)
    }

    /// The last entry no later than `upto` that holds the length which a file had then.
    pub(crate) fn brought(&self, file: Ino, upto: Option<u32>) -> Option<u32> {
        let entries = self.brought.get(&file)?;
        entries.iter().rfind(|entry| Some(**entry) <= upto).copied()
    }

    /// An entry of the journal holds the length that a file has then.
    pub(super) fn bring(&mut self, file: Ino, event: u32) {
        self.brought.entry(file).or_default().push(event);
    }

    /// A new length, and its part; `parts` are all parts.
    pub(super) fn put(
        &mut self,
        file: Ino,
        event: u32,
        needs: Option<u32>,
        value: Length,
        parts: &mut Vec<Atom>,
    ) -> Option<u32> {
        if !value.is_grown && value.bytes < self.newest(file) {
            self.cuts.entry(file).or_default().push((event, value.bytes));
        }
        let next = parts.len() as u32;
        let new = || Cell { atom: Some(next), versions: Vec::new() };
        let cell = self.cells.get_or_insert_with(file, new);
        if cell.atom == Some(next) {
            parts.push(Atom::Length(file));
        }
        cell.versions.push(Version { event, needs, value });
        cell.atom
    }
}
