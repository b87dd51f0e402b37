//! Which block is collected next, and whether its data has room: a collection that begins must end.

use leyden_nand::{BlockId, Content, DieId, Medium, Ppa};
use leyden_sim::Time;

use super::{Around, Collector};
use crate::gc::level::WearView;
use crate::page_mapped::data::Data;
use crate::place::StreamId;

impl Collector {
    /// Chooses the next victim of `die`, if it needs one and one is worth it.
    #[inline(never)]
    pub(super) fn choose_victim<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> bool {
        let free = around.data.blocks().free(die);
        let failing = around.data.blocks().next_failing(die);
        let is_due = self.is_due(die, around.data, around.medium);
        let for_wear = if is_due { self.worn_unevenly(now, die, around) } else { None };
        if let Some((victim, dest)) = for_wear {
            around.stats.gc.wear_moves += 1;
            self.begin(die, victim, dest, around);
            return true;
        }
        let victim = if is_due { self.worthwhile_victim(now, die, around) } else { None };
        // Emptying a failing block gains nothing and costs up to a block: only from plenty.
        let victim =
            victim.or(failing.filter(|&block| free >= 2 && self.has_room_for(die, block, around)));
        let Some(victim) = victim else { return false };
        let dest = around.data.streams().for_gc(around.data.blocks().stream(victim));
        self.begin(die, victim, dest, around);
        true
    }

    fn begin<C: Content>(
        &mut self,
        die: DieId,
        victim: BlockId,
        dest: StreamId,
        around: &mut Around<'_, C>,
    ) {
        around.data.collect(victim);
        around.stats.gc.collections += 1;
        around.stats.gc.victim_valid_units += u64::from(around.data.valid_in_block(victim));
        self.dies[die.index()].begin(victim, dest, false);
    }

    /// The block to empty for its wear, and the stream for what it holds. The destination is open when the move
    /// begins: while the block is read the host would take the most worn free block, and leave the one that the
    /// last move has emptied, which is as little worn as what is moved. Only from a die that has a free block:
    /// moving gains a block for the one that it takes.
    fn worn_unevenly<C: Content>(
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
            let pages_left = around.data.blocks().open_pages(around.medium, die, dest);
            // Moves would give up as many pages as other collections gain, and the host would wait for ever.
            if pages_left > 0 && std::mem::replace(&mut self.dies[die.index()].has_closed, true) {
                return None;
            }
            around.data.close(now, open, around.medium.written_pages(open) == 0);
        }
        around.data.blocks_mut().use_next(free);
        around.data.blocks_mut().open_next(die, dest);
        Some((block, dest))
    }

    /// The host writes a page of `die`: the next move for wear may give up pages again.
    #[inline]
    pub(in crate::page_mapped) fn host_writes(&mut self, die: DieId) {
        self.dies[die.index()].has_closed = false;
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
    #[inline(always)]
    pub(super) fn prepare<C: Content>(die: DieId, stream: StreamId, around: &mut Around<'_, C>) {
        if around.data.streams().level() == Some(stream) {
            Self::prepare_move(die, stream, around);
        }
    }

    #[inline(never)]
    fn prepare_move<C: Content>(die: DieId, stream: StreamId, around: &mut Around<'_, C>) {
        let Around { medium, data, .. } = around;
        if data.blocks().open_pages(medium, die, stream) == 0
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

    /// The policy's choice, or else the least utilised block, if collecting it makes room.
    fn worthwhile_victim<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> Option<BlockId> {
        let choice = self.policy.victim(&around.data.victims(now, die))?;
        if self.is_worthwhile(die, choice, around) {
            return Some(choice);
        }
        let least = around.data.victims(now, die).least_utilised()?;
        self.is_worthwhile(die, least, around).then_some(least)
    }

    /// True if collecting `block` makes room, or takes its die closer to a block that does.
    fn is_worthwhile<C: Content>(
        &self,
        die: DieId,
        block: BlockId,
        around: &Around<'_, C>,
    ) -> bool {
        if around.data.valid_in_block(block) == 0 {
            return true; // nothing is moved, so what waits for a page takes no room from it
        }
        let units_per_block = around.medium.geometry().units_per_block();
        let gains_page =
            units_per_block - around.data.valid_in_block(block) >= around.units_per_page();
        // A policy that does not look at utilisation may have to go round; it gets somewhere as
        // long as there is more than a block of garbage.
        let goes_round = around.data.index().garbage_units(die) > u64::from(units_per_block);
        gains_page && self.has_room_for(die, block, around)
            || goes_round && self.has_room_to_go_on(die, block, around)
    }

    /// True if `die` has pages for all of `block`'s valid units.
    fn has_room_for<C: Content>(&self, die: DieId, block: BlockId, around: &Around<'_, C>) -> bool {
        let (dest, staged) = self.joins(die, block, around.data);
        has_room(die, dest, staged + around.data.valid_in_block(block), around)
    }

    /// True if `die` has pages for all of `block`'s valid units, and going round with it gets
    /// somewhere. Odd units that no further victim's can join are padded in the end: if that makes
    /// as much garbage as the block had, going round would never end.
    fn has_room_to_go_on<C: Content>(
        &self,
        die: DieId,
        block: BlockId,
        around: &Around<'_, C>,
    ) -> bool {
        let (dest, staged) = self.joins(die, block, around.data);
        let valid = around.data.valid_in_block(block);
        let units = (staged + valid).next_multiple_of(around.units_per_page());
        let padding = units - staged - valid;
        let units_per_block = around.medium.geometry().units_per_block();
        let gains = padding == 0 || units_per_block - valid > padding;
        let next = if gains { 0 } else { units_per_block };
        has_room(die, dest, staged + valid + next, around)
    }

    /// The stream of `block`'s copies, and how many units wait there for a full page.
    fn joins(&self, die: DieId, block: BlockId, data: &Data) -> (StreamId, u32) {
        let dest = data.streams().for_gc(data.blocks().stream(block));
        (dest, self.dies[die.index()].staged[dest.index()].len() as u32)
    }

    /// The same, zombies to `stream`: as far as it has room, the rest goes with the others.
    #[inline(never)]
    pub(super) fn stage_apart<C: Content>(
        &mut self,
        first: Ppa,
        die: DieId,
        stream: StreamId,
        data: &mut Data,
        medium: &Medium<C>,
    ) {
        let dest = self.dies[die.index()].dest;
        for unit in (first.0..first.0 + medium.geometry().units_per_page()).map(Ppa) {
            if !data.is_valid(unit) {
                continue;
            }
            let lpn = medium.lpn(unit).expect("a valid unit without an owner");
            let apart = data.zombies().contains(lpn)
                && self.has_room_apart(die, stream, dest, data, medium);
            let to = if apart { stream } else { dest };
            self.dies[die.index()].staged[to.index()].push(unit);
        }
    }

    /// True if `stream` has a page for one more unit of `die`. Opens a block for it if that leaves
    /// `dest` room for all that is left of the victim.
    fn has_room_apart<C: Content>(
        &self,
        die: DieId,
        stream: StreamId,
        dest: StreamId,
        data: &mut Data,
        medium: &Medium<C>,
    ) -> bool {
        let collection = &self.dies[die.index()];
        let pages = |units: usize| medium.geometry().pages_for(units as u32);
        let open_pages = |data: &Data, stream| data.blocks().open_pages(medium, die, stream);
        if pages(collection.staged[stream.index()].len() + 1) <= open_pages(data, stream) {
            return true;
        }
        let victim = collection.victim.map_or(0, |(victim, _)| data.valid_in_block(victim));
        let left = pages(collection.staged[dest.index()].len() + victim as usize);
        let leaves_room = data.blocks().free(die) > 1 || left <= open_pages(data, dest);
        // A stream has one open block: what is left of it must be used first.
        leaves_room
            && open_pages(data, stream) == 0
            && data.blocks_mut().open_next(die, stream).is_some()
    }

    /// True if there is no block to open, or the host needs one and padding frees more than it costs.
    ///
    /// It does if more blocks wait than streams: two of them wait for the same page, so at least one
    /// was nearly all garbage. It also does if going round is out of the question, even with the
    /// garbage that padding makes: each block that waits had more than a page of garbage then.
    #[inline(never)]
    pub(super) fn padding_helps<C: Content>(&self, die: DieId, around: &Around<'_, C>) -> bool {
        let waiting = self.dies[die.index()].emptied.len();
        let streams = u32::from(around.data.streams().count());
        let garbage = around.data.index().garbage_units(die)
            + u64::from(streams) * u64::from(around.units_per_page());
        let goes_round = garbage > u64::from(around.medium.geometry().units_per_block());
        around.data.blocks().free(die) == 0
            || (self.is_urgent(die, around.data, around.medium)
                && waiting > if goes_round { streams as usize } else { 1 })
    }
}

/// True if `die` has pages for `units` more units of `stream`.
fn has_room<C: Content>(die: DieId, stream: StreamId, units: u32, around: &Around<'_, C>) -> bool {
    let geometry = around.medium.geometry();
    let free_pages = around.data.blocks().free(die) * geometry.pages_per_block();
    geometry.pages_for(units)
        <= around.data.blocks().open_pages(around.medium, die, stream) + free_pages
}
