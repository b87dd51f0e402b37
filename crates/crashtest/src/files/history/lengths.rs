//! Lengths of files: those that writes bring, and those that calls set.

use super::{Atom, Cell, FileHistory, Ino, Length, PAGE_BYTES, Version, version_of};

impl FileHistory {
    /// A page below the end of a file that has grown since it was synced: written out first, it brings a length that
    /// ends with it. The length that the file has then is a version for the next event.
    pub(super) fn put_part_of_length(
        &mut self,
        file: Ino,
        event: u32,
        needs: Option<u32>,
        reach: u64,
    ) -> Option<(Ino, Length)> {
        let whole = self.length(file)?.versions.last()?.value;
        if !self.rules.has_lengths_alone()
            || !self.growth.growing.contains(&file)
            || reach >= whole.bytes
        {
            return None;
        }
        self.put_length(file, event, needs, Length { bytes: reach, is_grown: true });
        Some((file, Length { bytes: whole.bytes, is_grown: true }))
    }

    /// The event of the first change of a file's length after event `floor`, and the length that the file had at `floor`.
    pub(crate) fn length_from(&self, file: Ino, floor: Option<u32>) -> (Option<u32>, u64) {
        let Some(cell) = self.length(file) else { return (None, 0) };
        let settled = cell.up_to(floor);
        let mut later = cell.versions[settled.len()..].iter();
        let set = later.find(|version| !version.value.is_grown).map(|version| version.event);
        (set, settled.last().map_or(0, |version| version.value.bytes))
    }

    /// The length that a file got at an event.
    pub(crate) fn length_at(&self, file: Ino, event: u32) -> u64 {
        let version = self.length(file).and_then(|cell| version_of(cell, event));
        version.map_or(0, |version| version.value.bytes)
    }

    pub(super) fn put_length(
        &mut self,
        file: Ino,
        event: u32,
        needs: Option<u32>,
        value: Length,
    ) -> Option<u32> {
        let next = self.atoms.len() as u32;
        let cell = (self.lengths.entry(file))
            .or_insert_with(|| Cell { atom: Some(next), versions: Vec::new() });
        if cell.atom == Some(next) {
            self.atoms.push(Atom::Length(file));
        }
        cell.versions.push(Version { event, needs, value });
        cell.atom
    }

    pub(super) fn set_length(&mut self, file: Ino, event: u32, bytes: u64) -> Option<u32> {
        let old = self.length(file).and_then(|cell| cell.versions.last());
        if old.is_some_and(|old| bytes < old.value.bytes) {
            self.cuts.entry(file).or_default().push((event, bytes));
            // Blocks beyond it are free: what is written there next gets new ones.
            let first = bytes.div_ceil(PAGE_BYTES) as u32;
            let freed = self.growth.blocks.range((file, first)..=(file, u32::MAX));
            for block in freed.map(|(block, _)| *block).collect::<Vec<_>>() {
                self.growth.blocks.remove(&block);
            }
        }
        let entry = self.rules.has_journal().then_some(event);
        if self.rules.copies_blocks() {
            self.enter_last_page(file, bytes, event);
        }
        self.growth.ends.insert(file, entry);
        let atom = self.put_length(file, event, entry, Length { bytes, is_grown: false });
        // In a journal it stands in order, and nothing chooses it.
        atom.filter(|_| !self.rules.has_journal())
    }

    /// The zeroes behind a shorter end, which the step before has written, are entered with that end.
    fn enter_last_page(&mut self, file: Ino, bytes: u64, event: u32) {
        let page = (bytes / PAGE_BYTES) as u32;
        let cell = self.pages.of_files.get_mut(&file).and_then(|pages| pages.get_mut(&page));
        let last = cell.and_then(|cell| cell.versions.last_mut());
        if let Some(last) = last.filter(|last| last.event + 1 == event) {
            last.needs = Some(event);
        }
    }
}
