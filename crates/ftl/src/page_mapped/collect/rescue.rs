//! The last resort of a die that has neither a free block nor a victim whose copies it has room for.
//!
//! Power cuts amid collections bring small dies to this: each wastes pages of the block that data is moved to.
//! So do failing blocks. Asked for only when nothing goes on in the whole drive and commands wait for room: else
//! they would end with a fault though there is garbage.

use leyden_nand::{BlockId, Content, DieId};
use leyden_sim::Time;

use super::{Around, Collector};
use crate::place::StreamId;

impl Collector {
    /// Nothing goes on in the drive, and the host waits; or that is over.
    pub(in crate::page_mapped) fn set_desperate(&mut self, is_desperate: bool) {
        self.is_desperate = is_desperate;
        self.dies.iter_mut().for_each(|die| die.is_stuck = false);
        self.stuck_dies = 0;
    }

    /// Begins whatever makes room on `die`: pads what waits for a full page; or empties a block, open or full,
    /// into the open block of any stream. True if an operation started.
    pub(super) fn rescue<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> bool {
        if self.program_copies(now, die, true, around) {
            return true;
        }
        if self.dies[die.index()].victim.is_some() {
            return false;
        }
        let Some((block, dest)) = Self::rescued_block(die, around) else { return false };
        if around.data.blocks().is_open(block) {
            around.data.blocks_mut().give_up_open(block);
        } else {
            around.data.collect(block);
        }
        around.stats.gc.collections += 1;
        around.stats.gc.victim_valid_units += u64::from(around.data.valid_in_block(block));
        let collection = &mut self.dies[die.index()];
        (collection.victim, collection.warmed, collection.dest) = (Some((block, 0)), 0, dest);
        self.read_next(now, die, around) || self.erase_emptied(now, die, around)
    }

    /// The block with the least to move, and the stream whose open block has room for that.
    fn rescued_block<C: Content>(
        die: DieId,
        around: &Around<'_, C>,
    ) -> Option<(BlockId, StreamId)> {
        let blocks = around.data.blocks();
        let open = blocks.open_blocks(die).filter(|&open| around.medium.written_pages(open) > 0);
        let all = open.chain(around.data.index().least_utilised(die));
        let with_dest = all.filter_map(|block| {
            let valid = around.data.valid_in_block(block);
            let gains_page =
                around.medium.geometry().units_per_block() - valid >= 2 * around.units_per_page();
            gains_page.then_some(())?;
            Some((valid, block, Self::any_dest(die, block, valid, around)?))
        });
        let least = with_dest.min_by_key(|&(valid, ..)| valid);
        least.map(|(_, block, dest)| (block, dest))
    }

    /// A stream whose open block, another one than `block`, has room for `valid` units of it.
    fn any_dest<C: Content>(
        die: DieId,
        block: BlockId,
        valid: u32,
        around: &Around<'_, C>,
    ) -> Option<StreamId> {
        let geometry = around.medium.geometry();
        let is_open = around.data.blocks().is_open(block);
        let of_block = around.data.blocks().stream(block);
        let mut streams = (0..around.data.streams().count()).map(StreamId);
        streams.find(|&stream| {
            let open_pages = around.data.blocks().open_pages(around.medium, die, stream);
            valid == 0
                || !(is_open && stream == of_block) && geometry.pages_for(valid) <= open_pages
        })
    }
}
