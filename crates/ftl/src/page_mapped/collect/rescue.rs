//! The last resort of a die that has neither a free block nor a victim whose copies fit.
//!
//! Power cuts during collections lead to this: each wastes a page of the destination block, until the rest of the
//! victim no longer fits. Failing blocks do, too. A rescue runs only when the whole drive is idle and commands wait
//! for space: without it they would fail although there is garbage.
//!
//! **Invariant**: a drive whose blocks are good never fails a command because it is full. A collection opens the
//! last free block of its die for copies only ([`Ftl::may_program`]), and the die has a free block again as soon
//! as one is erased; so while it has none, everything in that block still lies where it was copied from. Its
//! copies are undone, it is erased, and the die has a free block as it had before the collection.
//!
//! [`Ftl::may_program`]: crate::page_mapped::Ftl::may_program

use std::collections::BTreeSet;

use leyden_nand::{BlockId, Content, DieId, Geometry, Lpn, Ppa};
use leyden_sim::Time;

use super::{Around, Collector};
use crate::page_mapped::data::BlockState;
use crate::place::StreamId;

/// The result of undoing the copies in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TakenBack {
    /// All of them are undone: the block is to be erased.
    All,
    /// The table makes room for the next one first.
    Waits,
    /// No block holds only copies that can be undone, or the table has no room.
    Nothing,
}

impl Collector {
    /// Nothing goes on in the drive, and the host waits; or that is over.
    pub(in crate::page_mapped) fn set_desperate(&mut self, is_desperate: bool) {
        self.is_desperate = is_desperate;
        self.dies.iter_mut().for_each(|die| die.is_stuck = false);
        self.stuck_dies = 0;
    }

    /// The erase of an emptied block has been taken over by another part.
    pub(in crate::page_mapped) fn forget_emptied(&mut self, die: DieId, block: BlockId) {
        self.dies[die.index()].emptied.retain(|&emptied| emptied != block);
    }

    /// Begins whatever makes room on `die`: pads what waits for a full page; or empties a block, open or full,
    /// into the open block of any stream. True if an operation started.
    #[cold]
    #[inline(never)]
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
        if around.data.blocks().free(die) == 0 {
            match self.take_back(now, die, around) {
                TakenBack::All => return self.erase_emptied(now, die, around),
                // Copies of another block would fill the pages that are to be free again.
                TakenBack::Waits => return false,
                TakenBack::Nothing => {}
            }
        }
        let Some((block, dest)) = Self::rescued_block(now, die, around) else { return false };
        if around.data.blocks().is_open(block) {
            around.data.blocks_mut().give_up_open(block);
        } else {
            around.data.collect(block);
        }
        around.stats.gc.collections += 1;
        around.stats.gc.victim_valid_units += u64::from(around.data.valid_in_block(block));
        self.dies[die.index()].begin(block, dest, true);
        self.read_next(now, die, around) || self.erase_emptied(now, die, around)
    }

    /// Undoes the copies in a block of `die` that holds nothing but copies which can be undone; it is to be erased
    /// then. What the table has no room for is undone when it has.
    fn take_back<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> TakenBack {
        if !around.medium.has_versions() {
            return TakenBack::Nothing;
        }
        let origins = origins(die, around);
        let of_block = |block: BlockId| Some((block, copies_in(block, &origins, around)?));
        let written = |open: &BlockId| around.medium.written_pages(*open) > 0;
        let open = around.data.blocks().open_blocks(die).filter(written);
        let found = open.chain(closed_blocks(die, around)).find_map(of_block);
        let Some((block, copies)) = found else { return TakenBack::Nothing };
        for (lpn, copy, origin) in copies {
            if !around.table.may_take_back() {
                let waits = around.table.is_making_room();
                return if waits { TakenBack::Waits } else { TakenBack::Nothing };
            }
            around.data.take_back(now, around.medium.geometry(), lpn, copy, origin);
            around.table.note_copy(lpn, origin, block, around.data);
        }
        around.data.give_up(block);
        self.dies[die.index()].emptied.push(block);
        TakenBack::All
    }

    /// The block with the least to move, and the stream whose open block has room for that.
    fn rescued_block<C: Content>(
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> Option<(BlockId, StreamId)> {
        let least = around.data.victims(now, die).least_utilised();
        let blocks = around.data.blocks();
        let open = blocks.open_blocks(die).filter(|&open| around.medium.written_pages(open) > 0);
        let all = open.chain(least);
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

fn closed_blocks<C: Content>(die: DieId, around: &Around<'_, C>) -> impl Iterator<Item = BlockId> {
    let geometry = around.medium.geometry();
    let of_die = (0..geometry.blocks()).map(BlockId).filter(move |&id| geometry.die_of(id) == die);
    of_die.filter(|&id| around.data.blocks().state(id) == BlockState::Closed)
}

/// The invalid units of the closed blocks of `die`, by owner and version.
fn origins<C: Content>(die: DieId, around: &Around<'_, C>) -> BTreeSet<(Lpn, u64, Ppa)> {
    let (medium, geometry) = (&around.medium, around.medium.geometry());
    let units = closed_blocks(die, around).flat_map(|id| {
        let first = geometry.first_unit_of_block(id).0;
        (first..first + geometry.units_per_block()).map(Ppa)
    });
    let unwanted = units.filter(|&unit| !around.data.is_valid(unit));
    unwanted.filter_map(|unit| Some((medium.lpn(unit)?, medium.version(unit), unit))).collect()
}

/// The valid units of `block`, each with what it is a copy of; `None` if one of them is no copy.
fn copies_in<C: Content>(
    block: BlockId,
    origins: &BTreeSet<(Lpn, u64, Ppa)>,
    around: &Around<'_, C>,
) -> Option<Vec<(Lpn, Ppa, Ppa)>> {
    let (medium, geometry) = (&around.medium, around.medium.geometry());
    let valid =
        around.data.valid_in(geometry.first_unit_of_block(block), geometry.units_per_block());
    let undone = valid.map(|copy| {
        let (lpn, version) = (medium.lpn(copy)?, medium.version(copy));
        let origin = origin_outside(block, lpn, version, origins, geometry)?;
        Some((lpn, copy, origin))
    });
    undone.collect()
}

/// The newest place of that version of the unit that is not in `block`. A block that was copied out of and into holds
/// both, and is the one to be erased.
fn origin_outside(
    block: BlockId,
    lpn: Lpn,
    version: u64,
    origins: &BTreeSet<(Lpn, u64, Ppa)>,
    geometry: &Geometry,
) -> Option<Ppa> {
    let same = origins.range((lpn, version, Ppa(0))..=(lpn, version, Ppa(u32::MAX)));
    let (.., origin) = same.rev().find(|it| geometry.block_of(it.2) != block)?;
    Some(*origin)
}

#[cfg(test)]
mod tests {
    use leyden_sim::Bytes;

    use super::*;

    #[test]
    fn a_copy_goes_back_to_another_block() {
        let geometry = leyden_nand::Config::default().geometry(Bytes::new(4096)).unwrap();
        let unit = |block, at| Ppa(geometry.first_unit_of_block(BlockId(block)).0 + at);
        let (lpn, version) = (Lpn(3), 7);
        let back = |block, origins: &[(Lpn, u64, Ppa)]| {
            let origins = origins.iter().copied().collect();
            origin_outside(BlockId(block), lpn, version, &origins, &geometry)
        };
        // The block holds the unit twice: it was copied out of it, and into it again.
        let others = [(Lpn(2), version, unit(0, 1)), (lpn, version - 1, unit(0, 2))];
        let own = (lpn, version, unit(2, 1));
        for elsewhere in [unit(1, 0), unit(3, 1)] {
            let all = [others[0], others[1], own, (lpn, version, elsewhere)];
            assert_eq!(back(2, &all), Some(elsewhere));
        }
        assert_eq!(back(2, &[others[0], others[1], own]), None);
    }
}
