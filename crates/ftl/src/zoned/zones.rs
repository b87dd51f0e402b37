//! The zones as the host knows them: state, write pointer, attributes, and the resources they take.
//!
//! **Invariants**: as many zones are open and active as are counted; the limits hold. A zone that is not
//! active has no Zone Random Write Area. All checks come before any change.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::state::{Refusal, ZoneAction, ZoneState};
use super::{ZoneId, ZoneShape};

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Its state.
    pub state: ZoneState,
    /// The write pointer, in mapping units from the zone's beginning.
    pub wp: u32,
    /// How often it was reset: tells its data from older data on the medium.
    pub generation: u32,
    /// It has a Zone Random Write Area (ZRWAV).
    pub has_zrwa: bool,
    /// It was finished by the controller (ZFC), not by the host.
    pub is_changed: bool,
    /// The zone descriptor extension (ZDEV), if the host has set one.
    pub extension: Option<Box<[u8]>>,
    /// When it was opened, among all openings: the oldest implicitly open zone is closed first.
    opened: u64,
}

const NEW: Zone = Zone {
    state: ZoneState::Empty,
    wp: 0,
    generation: 0,
    has_zrwa: false,
    is_changed: false,
    extension: None,
    opened: 0,
};

/// Why an action on a zone is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// By its state.
    State(Refusal),
    /// 1BDh, Too Many Active Zones.
    TooManyActive,
    /// 1BEh, Too Many Open Zones.
    TooManyOpen,
    /// 1B7h, Zone Random Write Area Resources Unavailable.
    NoZrwa,
    /// 1B6h, Invalid Zone Operation Request.
    InvalidOperation,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::State(refusal)
    }
}

/// All zones.
#[derive(Clone, Debug)]
pub struct ZoneTable {
    zones: Vec<Zone>,
    limits: ZoneShape,
    open: u32,
    active: u32,
    zrwas: u32,
    /// Implicitly open zones, by when they were opened.
    implicit: BTreeSet<(u64, u32)>,
    openings: u64,
    /// Zones that the controller has changed, of which the host was not told (the Changed Zone List).
    changed: BTreeSet<u32>,
    implicit_closes: u64,
}

/// The zones of a drive at rest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ZoneTableState {
    zones: Vec<Zone>,
    openings: u64,
    changed: BTreeSet<u32>,
}

impl ZoneTable {
    pub(crate) fn new(shape: ZoneShape) -> Self {
        Self {
            zones: vec![NEW; shape.zones as usize],
            limits: shape,
            open: 0,
            active: 0,
            zrwas: 0,
            implicit: BTreeSet::new(),
            openings: 0,
            changed: BTreeSet::new(),
            implicit_closes: 0,
        }
    }

    /// A zone.
    #[inline]
    pub fn get(&self, zone: ZoneId) -> &Zone {
        &self.zones[zone.index()]
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = (ZoneId, &Zone)> {
        (0..).map(ZoneId).zip(&self.zones)
    }

    /// Zones that are open.
    pub const fn open(&self) -> u32 {
        self.open
    }

    /// Zones that are active, open ones among them.
    pub const fn active(&self) -> u32 {
        self.active
    }

    /// How often the controller has closed a zone to open another.
    pub const fn implicit_closes(&self) -> u64 {
        self.implicit_closes
    }

    /// The zones that the controller has changed since the last call.
    pub fn take_changed(&mut self) -> Vec<ZoneId> {
        std::mem::take(&mut self.changed).into_iter().map(ZoneId).collect()
    }

    /// Whether `action` may be done to `zone` now, and what it would become.
    ///
    /// # Errors
    /// Why not. The limit of active zones is asked first, as 2.1.1.4.1 has it.
    #[inline]
    pub fn may(&self, zone: ZoneId, action: ZoneAction) -> Result<ZoneState, Refused> {
        let from = self.get(zone).state;
        let to = from.after(action)?;
        if from != to {
            self.has_room(from, to)?;
        }
        Ok(to)
    }

    fn has_room(&self, from: ZoneState, to: ZoneState) -> Result<(), Refused> {
        if to.is_active() && !from.is_active() && self.active >= self.limits.max_active {
            return Err(Refused::TooManyActive);
        }
        let takes_open = to.is_open() && !from.is_open();
        if takes_open && self.open >= self.limits.max_open && self.implicit.is_empty() {
            return Err(Refused::TooManyOpen);
        }
        Ok(())
    }

    /// Does `action` to `zone`.
    ///
    /// # Errors
    /// As [`ZoneTable::may`]; nothing has changed then.
    #[inline]
    pub fn apply(&mut self, zone: ZoneId, action: ZoneAction) -> Result<ZoneState, Refused> {
        let to = self.may(zone, action)?;
        self.change(zone, to);
        Ok(to)
    }

    /// Opens `zone` with a Zone Random Write Area.
    ///
    /// # Errors
    /// As [`ZoneTable::may`], or because there is no area for it.
    pub fn open_with_zrwa(&mut self, zone: ZoneId) -> Result<(), Refused> {
        if self.limits.zrwa_size == 0 || self.get(zone).state != ZoneState::Empty {
            self.may(zone, ZoneAction::Open)?;
            return Err(Refused::InvalidOperation);
        }
        self.may(zone, ZoneAction::Open)?;
        if self.zrwas >= self.limits.zrwa_count {
            return Err(Refused::NoZrwa);
        }
        self.change(zone, ZoneState::ExplicitlyOpen);
        self.zones[zone.index()].has_zrwa = true;
        self.zrwas += 1;
        Ok(())
    }

    /// Whether every closed zone can be opened.
    ///
    /// # Errors
    /// If there are not resources for all of them.
    pub fn may_open_all(&self) -> Result<(), Refused> {
        let closed = self.active - self.open;
        let explicit = self.open - self.implicit.len() as u32;
        if explicit + closed > self.limits.max_open {
            return Err(Refused::TooManyOpen);
        }
        Ok(())
    }

    /// Moves the write pointer of `zone` to `wp`; at the zone's capacity it is Full.
    #[inline]
    pub fn advance(&mut self, zone: ZoneId, wp: u32) {
        self.zones[zone.index()].wp = wp;
        if wp == self.limits.capacity {
            self.change(zone, ZoneState::Full);
        }
    }

    /// A fault: the controller makes `zone` read-only, or offline.
    pub fn fault(&mut self, zone: ZoneId, to: ZoneState) {
        self.change(zone, to);
        self.changed.insert(zone.0);
        self.zones[zone.index()].is_changed = true;
    }

    /// Sets the descriptor extension of an empty zone, which is Closed then.
    ///
    /// # Errors
    /// As [`ZoneTable::may`].
    pub fn set_extension(&mut self, zone: ZoneId, data: Box<[u8]>) -> Result<(), Refused> {
        self.apply(zone, ZoneAction::SetExtension)?;
        self.zones[zone.index()].extension = Some(data);
        Ok(())
    }

    /// Takes over a zone that recovery has found. The limits are not asked: it had its resources.
    pub(super) fn restore(&mut self, zone: ZoneId, found: Zone) {
        let state = found.state;
        let has_zrwa = found.has_zrwa;
        self.zones[zone.index()] = Zone { state: ZoneState::Empty, has_zrwa: false, ..found };
        self.change(zone, state);
        if has_zrwa && state.is_active() {
            self.zones[zone.index()].has_zrwa = true;
            self.zrwas += 1;
        }
    }

    /// The state at rest.
    pub(super) fn state(&self) -> ZoneTableState {
        let (zones, changed) = (self.zones.clone(), self.changed.clone());
        ZoneTableState { zones, openings: self.openings, changed }
    }

    /// Takes over a state; what is counted is counted again. False if it is of another drive, or contradicts itself
    /// or the limits.
    pub(super) fn restore_all(&mut self, state: ZoneTableState) -> bool {
        let is_known = |zone: &u32| (*zone as usize) < self.zones.len();
        let fits = state.zones.len() == self.zones.len()
            && state.changed.iter().all(is_known)
            && state.zones.iter().all(|zone| zone.opened <= state.openings)
            && state.zones.iter().all(|zone| zone.state.is_active() || !zone.has_zrwa);
        if !fits {
            return false;
        }
        let count =
            |what: fn(&Zone) -> bool| state.zones.iter().filter(|&it| what(it)).count() as u32;
        self.open = count(|zone| zone.state.is_open());
        self.active = count(|zone| zone.state.is_active());
        self.zrwas = count(|zone| zone.has_zrwa);
        let numbered = (0..).zip(&state.zones);
        let implicit = numbered.filter(|(_, zone)| zone.state == ZoneState::ImplicitlyOpen);
        self.implicit = implicit.map(|(number, zone)| (zone.opened, number)).collect();
        (self.zones, self.openings, self.changed) = (state.zones, state.openings, state.changed);
        self.check().is_ok()
    }

    fn change(&mut self, zone: ZoneId, to: ZoneState) {
        let from = self.zones[zone.index()].state;
        if from == to {
            return;
        }
        if to.is_open() && !from.is_open() && self.open >= self.limits.max_open {
            self.close_oldest();
        }
        let place = &mut self.zones[zone.index()];
        if from == ZoneState::ImplicitlyOpen {
            self.implicit.remove(&(place.opened, zone.0));
        }
        if to == ZoneState::ImplicitlyOpen {
            self.openings += 1;
            place.opened = self.openings;
            self.implicit.insert((self.openings, zone.0));
        }
        place.state = to;
        self.open = self.open + u32::from(to.is_open()) - u32::from(from.is_open());
        self.active = self.active + u32::from(to.is_active()) - u32::from(from.is_active());
        if !to.is_active() && place.has_zrwa {
            place.has_zrwa = false;
            self.zrwas -= 1;
        }
        if to == ZoneState::Empty {
            (place.wp, place.extension, place.is_changed) = (0, None, false);
        }
        if matches!(to, ZoneState::Empty | ZoneState::Offline) {
            place.generation += 1;
        }
    }

    /// The controller closes the zone that was opened implicitly longest ago, to open another.
    fn close_oldest(&mut self) {
        if let Some(&(_, oldest)) = self.implicit.first() {
            self.change(ZoneId(oldest), ZoneState::Closed);
            self.implicit_closes += 1;
        }
    }

    /// Says what does not hold.
    pub(super) fn check(&self) -> Result<(), String> {
        let count = |what: fn(&Zone) -> bool| self.zones.iter().filter(|&z| what(z)).count() as u32;
        let counted = (
            count(|zone| zone.state.is_open()),
            count(|zone| zone.state.is_active()),
            count(|zone| zone.has_zrwa),
        );
        let known = (self.open, self.active, self.zrwas);
        if counted != known {
            return Err(format!("zones open, active and with a ZRWA: {counted:?}, not {known:?}"));
        }
        if self.open > self.limits.max_open || self.active > self.limits.max_active {
            return Err(format!("{known:?} zones open and active, beyond the limits"));
        }
        let implicit = count(|zone| zone.state == ZoneState::ImplicitlyOpen);
        if implicit as usize != self.implicit.len() {
            return Err(format!(
                "{implicit} zones are implicitly open, not {}",
                self.implicit.len()
            ));
        }
        match self.all().find(|(_, zone)| zone.wp > self.limits.capacity) {
            Some((id, zone)) => Err(format!("{id:?} is written to {}", zone.wp)),
            None => Ok(()),
        }
    }
}
