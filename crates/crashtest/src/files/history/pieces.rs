//! Pieces of pages: each page is torn between them, where a drive keeps or loses less than a page as a whole.

use std::collections::BTreeMap;

use super::{Atom, ByIno, Cell, Drive, Event, FileHistory, Ino, Page, Syncs, Version};
use crate::error::CrashError;
use crate::files::step::PAGE_BYTES;

/// Pages of files, and their pieces.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    pub(super) of_files: ByIno<BTreeMap<u32, Cell<Page>>>,
    /// Bytes that a drive keeps or loses as a whole: a page, or a piece of one.
    pub(super) atom_bytes: u32,
    /// The pieces of each page that differ between its versions. The events are the page's.
    pub(super) pieces: BTreeMap<(Ino, u32), BTreeMap<u32, Cell<()>>>,
    /// Events of syncs that failed.
    pub(super) failed: Vec<u32>,
}

impl Pages {
    pub(super) const fn new() -> Self {
        Self {
            of_files: ByIno::new(),
            atom_bytes: PAGE_BYTES as u32,
            pieces: BTreeMap::new(),
            failed: Vec::new(),
        }
    }

    /// The zeroes behind a shorter end, which the step before has written, are entered with that end.
    pub(super) fn enter_last(&mut self, file: Ino, bytes: u64, event: u32) {
        let page = (bytes / PAGE_BYTES) as u32;
        let cell = self.of_files.get_mut(file).and_then(|pages| pages.get_mut(&page));
        let last = cell.and_then(|cell| cell.versions.last_mut());
        if let Some(last) = last.filter(|last| last.event + 1 == event) {
            last.needs = Some(event);
        }
    }
}

/// The least that a drive keeps or loses as a whole: a sector.
pub(crate) const ATOM_BYTES_LEAST: u32 = 512;

impl FileHistory {
    /// A page is torn into pieces of `atom_bytes`. Nothing has happened yet.
    ///
    /// # Errors
    /// If pages have no such pieces.
    pub(crate) fn torn(mut self, atom_bytes: u32) -> Result<Self, CrashError> {
        assert!(self.events.is_empty(), "the size of pieces comes first");
        Self::check_pieces(atom_bytes)?;
        self.pages.atom_bytes = atom_bytes;
        Ok(self)
    }

    /// Checks that a page can be torn into pieces of `atom_bytes`.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check_pieces(atom_bytes: u32) -> Result<(), CrashError> {
        let page_bytes = PAGE_BYTES as u32;
        if atom_bytes.is_power_of_two() && (ATOM_BYTES_LEAST..=page_bytes).contains(&atom_bytes) {
            return Ok(());
        }
        Err(CrashError::Input(format!(
            "a page of {page_bytes} bytes cannot be torn into pieces of {atom_bytes}\n  help: a power of two from \
             {ATOM_BYTES_LEAST} to {page_bytes}"
        )))
    }

    /// Bytes that a drive keeps or loses as a whole.
    pub(crate) const fn tear_bytes(&self) -> u32 {
        self.pages.atom_bytes
    }

    /// The pieces of a page that have versions of their own.
    pub(crate) fn pieces(&self, file: Ino, page: u32) -> Option<&BTreeMap<u32, Cell<()>>> {
        self.pages.pieces.get(&(file, page))
    }

    /// Every file of a drive that has ever had a length.
    pub(crate) fn files_of(&self, drive: Drive) -> impl Iterator<Item = Ino> + '_ {
        self.lengths.files().filter(move |file| self.drive_of(*file) == drive)
    }

    /// The first failed sync of a file after event `after`: what was dirty then is never written out.
    pub(crate) fn given_up(&self, file: Ino, after: u32) -> Option<u32> {
        let is_of = |at: &u32| match self.events[*at as usize] {
            Event::Sync { syncs: Syncs::Whole(ino) | Syncs::Data(ino), .. } => ino == file,
            _ => true,
        };
        let first = self.pages.failed.partition_point(|at| *at <= after);
        self.pages.failed[first..].iter().copied().find(is_of)
    }

    /// The last event of a drive that flushed its cache: a sync up to event `last`, or an entry of the journal up to `journal`.
    pub(crate) fn last_flush(
        &self,
        drive: Drive,
        last: Option<u32>,
        journal: Option<u32>,
    ) -> Option<u32> {
        let flushes = |at: &u32| match self.events[*at as usize] {
            Event::Sync { syncs, is_done, .. } => {
                is_done
                    && match syncs {
                        Syncs::Everything => true,
                        Syncs::Whole(ino) | Syncs::Data(ino) | Syncs::Drive(ino) => {
                            self.drive_of(ino) == drive
                        }
                    }
            }
            Event::Step { is_entry, drive: of, .. } => {
                is_entry && of == drive && Some(*at) <= journal
            }
            Event::Acknowledged => false,
        };
        (0..last.map_or(0, |last| last + 1)).rev().find(flushes)
    }

    /// Versions of the pieces that these bytes change; returns their parts.
    pub(super) fn put_pieces(
        &mut self,
        file: Ino,
        page: u32,
        event: u32,
        bytes: &[u8],
    ) -> Vec<u32> {
        // A new block is entered when all of it is there, and is not torn.
        let has_block =
            self.growth.blocks.contains_key(&(file, page)) && !self.rules.copies_blocks();
        let is_new = self.rules.has_journal() && !has_block;
        if u64::from(self.pages.atom_bytes) == PAGE_BYTES || is_new {
            return Vec::new();
        }
        let last =
            self.pages.of_files.get(file).and_then(|pages| pages.get(&page)?.versions.last());
        let old = last.map(|version| self.store.bytes(version.value.content));
        let page_end = (u64::from(page) + 1) * PAGE_BYTES;
        let is_cut =
            last.is_some_and(|it| self.lengths.shortest(file, it.event, Some(event)) < page_end);
        let size = self.pages.atom_bytes as usize;
        let differs = |piece: &usize| {
            let range = piece * size..(piece + 1) * size;
            let new = &bytes[range.clone()];
            is_cut
                || old.map_or_else(|| new.iter().any(|byte| *byte != 0), |old| old[range] != *new)
        };
        let changed: Vec<usize> = (0..PAGE_BYTES as usize / size).filter(differs).collect();
        let cells = self.pages.pieces.entry((file, page)).or_default();
        let mut atoms = Vec::new();
        for piece in changed {
            let piece = piece as u32;
            let next = self.atoms.len() as u32;
            let cell = cells
                .entry(piece)
                .or_insert_with(|| Cell { atom: Some(next), versions: Vec::new() });
            if cell.atom == Some(next) {
                self.atoms.push(Atom::Piece(file, page, piece));
            }
            cell.versions.push(Version { event, needs: None, value: () });
            atoms.extend(cell.atom);
        }
        atoms
    }
}
