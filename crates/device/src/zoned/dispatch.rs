//! Whose turn it is on which die: zones that have a page to program, and blocks that are to be erased.
//!
//! **Invariants**: a zone is listed with the die that its next page goes to, if it has a page; or as one
//! that has no block yet.

use leyden_buffer::PoolKind;
use leyden_buffer::zoned::schedule::{ZoneScheduleConfig, ZoneView};
use leyden_ftl::zoned::ZoneId;
use leyden_nand::DieId;
use leyden_sim::Time;
use serde::{Deserialize, Serialize};

use super::Zoned;
use crate::Payload;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Listed {
    Nowhere,
    On(DieId),
    WithoutBlock,
}

/// Whose turn it is on a drive at rest: the order in which zones came is part of it.
#[derive(Serialize, Deserialize)]
pub(super) struct DispatchState {
    by_die: Vec<Vec<ZoneId>>,
    without_block: Vec<ZoneId>,
    were_draining: [bool; 2],
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct DispatchOrder {
    by_die: Vec<Vec<ZoneId>>,
    listed: Vec<Listed>,
    without_block: Vec<ZoneId>,
    schedule: ZoneScheduleConfig,
    /// Whether each pool was being written out when somebody last looked.
    was_draining: [bool; 2],
    is_halted: bool,
}

impl DispatchOrder {
    pub(super) fn new(dies: u32, zones: u32) -> Self {
        Self {
            by_die: vec![Vec::new(); dies as usize],
            listed: vec![Listed::Nowhere; zones as usize],
            without_block: Vec::new(),
            schedule: ZoneScheduleConfig::default(),
            was_draining: [false; 2],
            is_halted: false,
        }
    }

    pub(super) fn with_schedule(self, schedule: ZoneScheduleConfig) -> Self {
        Self { schedule, ..self }
    }

    /// Forgets whose turn it is: the power is gone.
    pub(super) fn cleared(&self) -> Self {
        let (dies, zones) = (self.by_die.len() as u32, self.listed.len() as u32);
        Self::new(dies, zones).with_schedule(self.schedule.clone())
    }

    /// Nothing is programmed any more.
    pub(super) fn halt(&mut self) {
        self.is_halted = true;
    }

    /// Zones that have a page to program and no block for it.
    pub(super) fn without_block(&self) -> Vec<ZoneId> {
        self.without_block.clone()
    }

    /// The state at rest.
    pub(super) fn state(&self) -> DispatchState {
        DispatchState {
            by_die: self.by_die.clone(),
            without_block: self.without_block.clone(),
            were_draining: self.was_draining,
        }
    }

    /// Takes over a state: this has nothing listed. `die_of` says where a zone with a page belongs, `None` if it has
    /// none. False if the state says otherwise.
    pub(super) fn restore(
        &mut self,
        state: &DispatchState,
        die_of: impl Fn(ZoneId) -> Option<Option<DieId>>,
    ) -> bool {
        if state.by_die.len() != self.by_die.len() {
            return false;
        }
        let on_dies = (0..).map(DieId).zip(&state.by_die);
        let listed =
            on_dies.flat_map(|(die, zones)| zones.iter().map(move |&zone| (zone, Some(die))));
        let waiting = state.without_block.iter().map(|&zone| (zone, None));
        for (zone, die) in listed.chain(waiting) {
            let is_listed = self.listed.get(zone.index()) != Some(&Listed::Nowhere);
            if is_listed || die_of(zone) != Some(die) {
                return false;
            }
            self.list(zone, die.map_or(Listed::WithoutBlock, Listed::On));
        }
        self.was_draining = state.were_draining;
        let zones = (0..self.listed.len() as u32).map(ZoneId);
        zones
            .zip(&self.listed)
            .all(|(zone, &place)| place != Listed::Nowhere || die_of(zone).is_none())
    }

    fn list(&mut self, zone: ZoneId, place: Listed) {
        let before = std::mem::replace(&mut self.listed[zone.index()], place);
        if before == place {
            return;
        }
        match before {
            Listed::Nowhere => {}
            Listed::On(die) => self.by_die[die.index()].retain(|&other| other != zone),
            Listed::WithoutBlock => self.without_block.retain(|&other| other != zone),
        }
        match place {
            Listed::Nowhere => {}
            Listed::On(die) => self.by_die[die.index()].push(zone),
            Listed::WithoutBlock => self.without_block.push(zone),
        }
    }
}

impl<P: Payload> Zoned<P> {
    /// Something about `zone` has changed: it may have a page to program now, or none any more. Its die goes
    /// to work if it is free.
    #[inline]
    pub(super) fn offer(&mut self, now: Time, zone: ZoneId) {
        if let Some(die) = self.list(zone) {
            self.pump(now, die);
        }
        self.look_at_pools(now);
    }

    /// Lists `zone` where it belongs; returns its die.
    #[inline]
    fn list(&mut self, zone: ZoneId) -> Option<DieId> {
        if !self.buffer.has_page(zone.0) {
            self.dispatch.list(zone, Listed::Nowhere);
            return None;
        }
        let mut die = self.ftl.next_die(zone);
        // It gets its place when it has a page, though that may never be programmed: a dump in place needs it.
        if die.is_none() {
            let units = self.ftl.shape().capacity - self.buffer.started(zone.0);
            // A failed program is repeated, however little is left.
            if self.ftl.allocate(zone, units.max(1)) {
                die = self.ftl.next_die(zone);
            }
        }
        self.dispatch.list(zone, die.map_or(Listed::WithoutBlock, Listed::On));
        die
    }

    /// A pool that begins to be written out wakes the dies.
    #[inline]
    fn look_at_pools(&mut self, now: Time) {
        let draining = PoolKind::ALL.map(|kind| self.buffer.pool(kind).is_draining());
        let before = std::mem::replace(&mut self.dispatch.was_draining, draining);
        if draining.iter().zip(before).any(|(&now, before)| now && !before) {
            self.pump_all(now);
        }
    }

    /// Blocks may be free now for zones that have none.
    pub(super) fn place_waiting(&mut self, now: Time) {
        for zone in self.dispatch.without_block() {
            self.offer(now, zone);
        }
    }

    /// Gives every die something to do, if there is something.
    pub(super) fn pump_all(&mut self, now: Time) {
        for zone in self.dispatch.without_block() {
            self.list(zone);
        }
        for die in (0..self.ftl.geometry().dies()).map(DieId) {
            self.pump(now, die);
        }
    }

    /// Gives `die` something to do, if it accepts it and there is something; and then the dies that the zones
    /// which had their turn go on to, of which nothing else may ever wake an idle one.
    #[inline]
    pub(super) fn pump(&mut self, now: Time, mut die: DieId) {
        while let Some(next) = self.pump_one(now, die).filter(|&next| next != die) {
            die = next;
        }
    }

    /// Returns the die that the zone goes on to which had its turn.
    #[inline]
    fn pump_one(&mut self, now: Time, die: DieId) -> Option<DieId> {
        if self.dispatch.is_halted || !self.ftl.medium().accepts(die) {
            return None;
        }
        if self.ftl.erase_step(now, die, true) {
            return None;
        }
        let Some(zone) = self.chosen(die) else {
            self.ftl.erase_step(now, die, false);
            return None;
        };
        let page = self.buffer.next_page(zone.0).expect("a zone was chosen for its page");
        self.ftl.program(now, zone, page.first, self.buffer.units_of(zone.0, page));
        self.buffer.start(zone.0, page);
        let next = self.list(zone);
        let draining = PoolKind::ALL.map(|kind| self.buffer.pool(kind).is_draining());
        self.dispatch.was_draining = draining;
        next
    }

    /// The zone that goes next on `die`, if any has a page for it.
    #[inline]
    fn chosen(&mut self, die: DieId) -> Option<ZoneId> {
        let listed = &self.dispatch.by_die[die.index()];
        if let [only] = listed[..] {
            return self.buffer.next_page(only.0).map(|_| only);
        }
        let wanted = listed.iter().filter(|zone| self.buffer.next_page(zone.0).is_some());
        let views: Vec<ZoneView> = wanted.map(|zone| self.buffer.view(zone.0)).collect();
        if views.is_empty() {
            return None;
        }
        let chosen = self.dispatch.schedule.policy().next(&views);
        for view in &views {
            self.buffer.forget_reference(view.zone);
        }
        Some(ZoneId(views[chosen].zone))
    }
}
