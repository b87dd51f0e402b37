//! The way of atomic writes into the buffer and out of it.
//!
//! All of such a write is taken into the buffer in one step, so that reads find it whole. Where capacitors keep it, a power cut
//! leaves it whole, too. Where nothing does, its units are a group: they go to flash in one page, whose program ends whole or
//! not at all, and the map changes for all of them at once. What a group costs: a page that a group does not fit in is
//! padded; what overlaps a group joins it, or waits until the group is on flash; and a write waits for room for all of it.

use leyden_buffer::{PoolKind, SlotId};
use leyden_ftl::page_mapped::Ftl;
use leyden_ftl::place::StreamId;
use leyden_nand::Lpn;

use super::writer::Writer;
use crate::Payload;
use crate::controller::RequestId;
use crate::units::Units;

/// An atomic write about to enter the buffer: where it goes, and whether its units are a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) pool: PoolKind,
    pub(super) is_group: bool,
}

impl<P: Payload> Writer<P> {
    /// The entry of a write of `units` that asks for `entry`, in one step; `None` if it has to wait.
    pub(super) fn enter(&mut self, ftl: &Ftl<P>, units: Units, entry: Entry) -> Option<Entry> {
        let Entry { mut pool, mut is_group } = entry;
        let lpns = || (0..units.count()).map(move |index| Lpn(units.first().0 + index));
        // A cut would bring back what is protected of one of its units: it is protected as a whole.
        if is_group && pool == PoolKind::Plain && lpns().any(|lpn| self.buffer.is_protected(lpn)) {
            pool = PoolKind::Protected;
        }
        is_group &= pool == PoolKind::Plain;
        // Amid a search on flash a page that has just been programmed is found in part.
        if is_group && ftl.store().is_searched() {
            self.grouping.wants_table = true;
            return None;
        }
        let mut may = true;
        for lpn in lpns() {
            may &= self.may_overwrite(ftl, lpn, pool);
        }
        if !may || is_group && !self.fits_a_page(ftl, units) {
            return None;
        }
        let needed = lpns().filter(|&lpn| self.buffer.needs_slot(lpn, pool)).count();
        if needed > self.buffer.room(pool) as usize {
            self.grouping.wants_room = true;
            return None;
        }
        Some(Entry { pool, is_group })
    }

    /// True if a write may replace what is buffered of `lpn`. It may not while that is on its way to flash in a group, nor if it
    /// would be protected, and the rest of the group not; then the group goes to flash first.
    #[inline(never)]
    pub(super) fn may_overwrite(&mut self, ftl: &Ftl<P>, lpn: Lpn, pool: PoolKind) -> bool {
        let grouped = self.buffer.newest(lpn).filter(|&slot| self.buffer.is_grouped(slot));
        let Some(slot) = grouped else { return true };
        let may = !self.buffer.is_started(slot) && pool == PoolKind::Plain;
        if !may {
            self.hurry(ftl, slot);
        }
        may
    }

    /// True if `units` fit into a page with all that is in a group with one of them. If not, these go to flash first.
    fn fits_a_page(&mut self, ftl: &Ftl<P>, units: Units) -> bool {
        let range = units.first().0..units.first().0 + units.count();
        let newest = range.clone().filter_map(|lpn| self.buffer.newest(Lpn(lpn)));
        let grouped = newest.filter(|&slot| self.buffer.is_grouped(slot));
        let mut others: Vec<SlotId> = Vec::new();
        for slot in grouped {
            others.extend(self.buffer.group(slot));
        }
        others.retain(|&slot| !range.contains(&self.buffer.lpn(slot).0));
        others.sort_unstable();
        others.dedup();
        if others.len() + units.count() as usize <= self.units_per_page {
            return true;
        }
        for slot in others {
            self.hurry(ftl, slot);
        }
        false
    }

    /// Makes a group of `units`, which have all been taken in, and of what is in groups with them.
    #[cold]
    #[inline(never)]
    pub(super) fn group(&mut self, units: Units) {
        let slots: Vec<SlotId> = self.slots_of(units).collect();
        for pair in slots.windows(2) {
            self.buffer.join(pair[0], pair[1]);
        }
        let group: Vec<SlotId> = self.buffer.group(slots[0]).collect();
        let Some(staged) = group.iter().copied().find(|&slot| self.buffer.is_staged(slot)) else {
            return;
        };
        // Part of it was about to be written: the rest goes with that, to one stream.
        let stream = self.stream_of(staged);
        for slots in &mut self.staged {
            slots.retain(|slot| !group.contains(slot) || *slot == staged);
        }
        for slot in group.into_iter().filter(|&slot| slot != staged) {
            self.buffer.take(slot);
            self.staged[stream].push_back(slot);
        }
    }

    /// Lets `request` wait until all of `units`, a group, is on flash; returns for how many.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_group(&mut self, ftl: &Ftl<P>, units: Units, request: RequestId) -> u32 {
        let slots: Vec<SlotId> = self.slots_of(units).collect();
        for &slot in &slots {
            self.wait_for(ftl, slot, request);
        }
        slots.len() as u32
    }

    /// The slots of the newest versions of `units`.
    fn slots_of(&self, units: Units) -> impl Iterator<Item = SlotId> + '_ {
        let lpns = (0..units.count()).map(move |index| Lpn(units.first().0 + index));
        lpns.filter_map(|lpn| self.buffer.newest(lpn))
    }

    /// The stream that a staged slot waits in.
    fn stream_of(&self, slot: SlotId) -> usize {
        let place = self.staged.iter().position(|slots| slots.contains(&slot));
        place.expect("what is staged waits in a stream")
    }

    /// The stage of a slot of a group: that of its others, if they have one.
    pub(super) fn stream_of_group(&self, slot: SlotId) -> Option<StreamId> {
        let staged = |other: &SlotId| *other != slot && self.buffer.is_staged(*other);
        let mut others = self.buffer.group(slot).filter(staged);
        others.find_map(|other| {
            let place = self.staged.iter().position(|slots| slots.contains(&other));
            place.map(|place| StreamId(place as u8))
        })
    }

    /// Stages what is in a group with `slot`, which is staged.
    pub(super) fn stage_group(&mut self, ftl: &Ftl<P>, slot: SlotId) {
        if !self.buffer.is_grouped(slot) {
            return;
        }
        let mut group = std::mem::take(&mut self.grouping.scratch);
        group.clear();
        group.extend(self.buffer.group(slot));
        for &other in &group {
            if self.buffer.take(other) {
                self.stage(ftl, other);
            }
        }
        self.grouping.scratch = group;
    }

    /// Stages what is in groups with the slots of a stream from `first` on.
    #[inline(never)]
    pub(super) fn stage_groups_from(&mut self, ftl: &Ftl<P>, stream: usize, first: usize) {
        let end = self.staged[stream].len();
        for at in first..end {
            self.stage_group(ftl, self.staged[stream][at]);
        }
    }

    /// A command waits for the group of `slot`: it is next to go to flash.
    fn hurry(&mut self, ftl: &Ftl<P>, slot: SlotId) {
        if self.buffer.is_started(slot) || self.grouping.hurried.contains(&slot) {
            return;
        }
        if self.buffer.take(slot) {
            self.stage(ftl, slot);
            self.stage_group(ftl, slot);
        }
        self.grouping.hurried.push(slot);
        self.urgent += 1;
    }

    /// Moves what makes the next page of a stream to its front: slots in their order, but for groups that do not fit any
    /// more. Returns how many.
    #[inline(never)]
    pub(super) fn gather(&mut self, stream: StreamId) -> usize {
        let mut page = std::mem::take(&mut self.grouping.scratch);
        page.clear();
        let staged = &mut self.staged[stream.index()];
        for &slot in &*staged {
            if page.len() >= self.units_per_page {
                break;
            }
            if page.contains(&slot) {
                continue;
            }
            let group = self.buffer.group(slot).count();
            if page.len() + group <= self.units_per_page {
                page.extend(self.buffer.group(slot));
            }
        }
        staged.retain(|slot| !page.contains(slot));
        page.iter().rev().for_each(|&slot| staged.push_front(slot));
        let count = page.len();
        self.grouping.scratch = page;
        count
    }
}
