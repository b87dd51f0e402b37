//! Whose turn it is on a die that is short of blocks: its collection's, or the host's.

use leyden_nand::{Content, DieId, Medium};

use super::{Collector, is_out_of_pages};
use crate::Pace;
use crate::page_mapped::data::Data;

impl Collector {
    /// True if `die` is so short of free blocks that collecting goes before the host's writes.
    #[inline]
    pub(in crate::page_mapped) fn is_urgent<C: Content>(
        &self,
        die: DieId,
        data: &Data,
        medium: &Medium<C>,
    ) -> bool {
        data.blocks().free(die) <= self.hard_free_blocks
            || self.hard_free_blocks == 0 && is_out_of_pages(die, data, medium)
    }

    /// True if the next operation of `die` is its collection's rather than a write of the host's.
    #[inline]
    pub(in crate::page_mapped) fn goes_first<C: Content>(
        &self,
        die: DieId,
        data: &Data,
        medium: &Medium<C>,
    ) -> bool {
        self.is_urgent(die, data, medium)
            && (self.pace == Pace::AtOnce || self.lags(die, data, medium))
    }

    /// True if less of `die`'s victim has been read than of the open block has been written.
    ///
    /// Every block that is opened takes one that is erased. So a die whose victim is emptied while a block
    /// fills has as many free blocks after both as before. Of several open blocks the fullest counts: it is
    /// the next to take a free one.
    #[inline(never)]
    fn lags<C: Content>(&self, die: DieId, data: &Data, medium: &Medium<C>) -> bool {
        let read = self.dies[die.index()].victim.map_or(0, |(_, next)| next);
        let blocks = data.blocks();
        let open = blocks.open(die).map(|block| medium.written_pages(block));
        blocks.free(die) < self.hard_free_blocks || open.max().is_some_and(|written| read < written)
    }
}
