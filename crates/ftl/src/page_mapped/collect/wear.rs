//! Moves for wear: which block is emptied, and into which ([`crate::gc::level`]).

use leyden_nand::{BlockId, Content, DieId};
use leyden_sim::Time;

use super::{Around, Collector};
use crate::gc::level::WearView;
use crate::page_mapped::data::Data;
use crate::place::StreamId;

impl Collector {
    /// The block to empty for its wear, and the stream for what it holds. The destination is open when the move
    /// begins: while the block is read the host would take the most worn free block, and leave the one that the
    /// last move has emptied, which is as little worn as what is moved. Only from a die that has a free block:
    /// moving gains a block for the one that it takes.
    pub(super) fn worn_unevenly<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> Option<(BlockId, StreamId)> {
        let dest = around.data.streams().level()?;
        // Units of the last move would take pages that this one counts on.
        if around.data.blocks().free(die) == 0
            || !self.dies[die.index()].staged[dest.index()].is_empty()
        {
            return None;
        }
        let open = around.data.blocks().open_of(die, dest);
        if let Some(block) = open.and_then(|open| self.less_worn(now, die, open, around)) {
            return Some((block, dest));
        }
        let blocks = around.data.blocks();
        if open.is_some_and(|open| blocks.is_pending(open)) {
            return None;
        }
        let free = blocks.most_worn_free(die, |block| around.medium.erases(block))?;
        let block = self.less_worn(now, die, free, around)?;
        if let Some(open) = open {
            around.data.close(now, open, around.medium.written_pages(open) == 0);
        }
        around.data.blocks_mut().use_next(free);
        around.data.blocks_mut().open_next(die, dest);
        Some((block, dest))
    }

    /// The block of `die` to empty into `dest` for its wear, if that has room for it.
    fn less_worn<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        dest: BlockId,
        around: &mut Around<'_, C>,
    ) -> Option<BlockId> {
        let Around { medium, data, .. } = around;
        let erases = |block| medium.erases(block);
        let view = WearView::new(data.victims(now, die), &erases, dest);
        let block = self.policy.worn_unevenly(&view)?;
        let geometry = medium.geometry();
        let left = geometry.pages_per_block() - medium.written_pages(dest);
        (geometry.pages_for(data.valid_in_block(block)) <= left).then_some(block)
    }

    /// Data that is moved for wear goes to the free block that was erased most often, where it gives it a rest. The
    /// block that was opened for it may have failed.
    pub(super) fn prepare<C: Content>(die: DieId, stream: StreamId, around: &mut Around<'_, C>) {
        let Around { medium, data, .. } = around;
        if data.streams().level() == Some(stream)
            && data.blocks().open_pages(medium, die, stream) == 0
            && let Some(block) = data.blocks().most_worn_free(die, |block| medium.erases(block))
        {
            data.blocks_mut().use_next(block);
        }
    }

    /// The stream of a move for wear all of whose units have been read: no other move joins the last page.
    #[inline]
    pub(super) fn ended_move(&self, die: DieId, data: &Data) -> Option<StreamId> {
        let stream = data.streams().level()?;
        let collection = &self.dies[die.index()];
        let goes_on = collection.victim.is_some() && collection.dest == stream;
        (!goes_on && !collection.staged[stream.index()].is_empty()).then_some(stream)
    }

    /// Programs the last page of a move for wear, if all of its units have been read.
    #[inline]
    pub(super) fn end_move<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> bool {
        self.ended_move(die, around.data).is_some() && self.program_copies(now, die, false, around)
    }
}
