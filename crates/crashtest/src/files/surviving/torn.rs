//! Torn pages: pieces of a page that are older than the page.

use super::{Cell, Choice, Drive, FileHistory, Ino, Length, Page, Version};
use crate::files::step::PAGE_BYTES;

impl Choice {
    /// The bytes of a page of which pieces are older; nothing if none is.
    pub(super) fn torn(&self, history: &FileHistory, file: Ino, page: u32) -> Option<Vec<u8>> {
        let pieces = history.pieces(file, page)?;
        let lost = |piece: &Cell<()>| Some(*self.lost.get(&piece.atom?)?);
        if !pieces.values().any(|piece| lost(piece).is_some()) {
            return None;
        }
        let cell = history.pages(file)?.get(&page)?;
        let newest = self.page_version(history, file, cell)?;
        let least = self.least(history, file, cell, newest);
        let chosen = pieces.iter().filter_map(|(&number, piece)| {
            let last = lost(piece)?.max(least);
            (last < Some(newest.event)).then(|| (number, cell.up_to(last).last()))
        });
        let chosen: Vec<_> = chosen.collect();
        let floor = self.floor(history, file, cell, newest, chosen.iter().map(|(_, of)| *of));
        let is_older = |of: Option<&Version<Page>>| of.map(|of| of.event) < floor;
        let mut bytes = self.bytes_of(history, file, page, Some(newest));
        let (size, mut is_torn) = (history.tear_bytes() as usize, false);
        for (number, version) in chosen {
            let version = if is_older(version) { cell.up_to(floor).last() } else { version };
            let range = number as usize * size..(number as usize + 1) * size;
            let old = self.bytes_of(history, file, page, version);
            is_torn |= bytes[range.clone()] != old[range.clone()];
            bytes[range.clone()].copy_from_slice(&old[range]);
        }
        is_torn.then_some(bytes)
    }

    /// The version that every piece has at least: a version that is there was written out before the next call changed it,
    /// or a failed sync gave it up, and a flush of the drive after that call found it whole.
    fn floor<'a>(
        &self,
        history: &FileHistory,
        file: Ino,
        cell: &'a Cell<Page>,
        newest: &'a Version<Page>,
        pieces: impl Iterator<Item = Option<&'a Version<Page>>>,
    ) -> Option<u32> {
        let mut used: Vec<u32> = pieces.flatten().chain([newest]).map(|it| it.event).collect();
        used.sort_unstable();
        used.dedup();
        let next = |event: u32| {
            let next = cell.versions.partition_point(|it| it.event <= event);
            let next = cell.versions.get(next).map(|next| next.event);
            next.into_iter().chain(history.given_up(file, event)).min()
        };
        // The oldest raises none.
        let known = used.iter().skip(1).filter_map(|&event| Some((event, next(event)?)));
        let known: Vec<(u32, u32)> = known.collect();
        if known.is_empty() || !history.rules().has_journal() {
            return None;
        }
        let flushed = self.flushed(history, history.drive_of(file));
        known.into_iter().filter(|(_, next)| Some(*next) <= flushed).map(|(event, _)| event).max()
    }

    /// The last event of a drive after which its cache was flushed, as this state shows it: by a sync, or before an entry of
    /// the journal was written, lengths and blocks that are there among them.
    fn flushed(&self, history: &FileHistory, drive: Drive) -> Option<u32> {
        let shown = history.files_of(drive).filter_map(|file| {
            let blocks = history.pages(file).into_iter().flatten().filter_map(|(_, cell)| {
                self.page_version(history, file, cell).map(|version| version.value.block)
            });
            blocks.max().max(self.length_entered(history, file))
        });
        let journal = self.journals[drive as usize];
        shown.max().max(history.last_flush(drive, self.last, journal))
    }

    /// The call that brought the length that a file has, if it was a write.
    fn length_entered(&self, history: &FileHistory, file: Ino) -> Option<u32> {
        let (set, set_bytes) = self.set(history, file);
        if history.rules().has_lengths_alone() {
            let bytes = self.grown(history, file)?.value.bytes;
            let is_first = |it: &&Version<Length>| Some(it.event) > set && it.value.bytes == bytes;
            return Some(history.length(file)?.versions.iter().find(is_first)?.event);
        }
        let bytes = self.length(history, file);
        let last = self.of(history.length(file)?.atom);
        let pages = history.pages(file)?.values();
        let bringing = pages.filter(|cell| {
            bytes > set_bytes && self.page_end(history, file, cell, last, set) == Some(bytes)
        });
        bringing.filter_map(|cell| first_with_end(cell, set, bytes)).max()
    }

    /// The oldest version that a piece may have beside this version of its page; none by the standard. The journal is
    /// written after the drive's cache: what it says of a block, or of a length on XFS, was whole before.
    fn least(
        &self,
        history: &FileHistory,
        file: Ino,
        cell: &Cell<Page>,
        newest: &Version<Page>,
    ) -> Option<u32> {
        if !history.rules().has_journal() {
            return None;
        }
        let block = Some(newest.value.block);
        if history.rules().has_lengths_alone() {
            return block;
        }
        let (set, set_bytes) = self.set(history, file);
        let last = self.of(history.length(file).and_then(|cell| cell.atom));
        let end = self.page_end(history, file, cell, last, set);
        // The length that the file has is this page's.
        let is_last = end.is_some_and(|end| end > set_bytes && end == self.length(history, file));
        block.max(end.filter(|_| is_last).and_then(|end| first_with_end(cell, set, end)))
    }

    /// A whole page of one version, with zeroes where it was cut off later.
    fn bytes_of(
        &self,
        history: &FileHistory,
        file: Ino,
        page: u32,
        version: Option<&Version<Page>>,
    ) -> Vec<u8> {
        let Some(version) = version else { return vec![0; PAGE_BYTES as usize] };
        let mut bytes = history.store().bytes(version.value.content).to_vec();
        let cut = history.lengths().shortest(file, version.event, self.last_set(history, file));
        let kept = cut.saturating_sub(u64::from(page) * PAGE_BYTES).min(PAGE_BYTES);
        bytes[kept as usize..].fill(0);
        bytes
    }
}

/// The first version of a page behind `set` with which its file ended there.
fn first_with_end(cell: &Cell<Page>, set: Option<u32>, end: u64) -> Option<u32> {
    let mut later = cell.versions.iter().filter(|it| Some(it.event) > set);
    later.find(|it| it.value.end == end).map(|it| it.event)
}
