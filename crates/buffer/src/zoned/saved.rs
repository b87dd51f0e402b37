//! The buffer of a drive at rest, saved and loaded.

use std::borrow::Cow;

use leyden_nand::Content;
use serde::{Deserialize, Serialize};

use super::ZoneBuffer;
use super::queue::{PageState, Queue};

/// The state that outlives an idle moment: borrowed to save it, owned when loaded. Counters start
/// at zero.
#[derive(Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub struct ZoneBufferState<'a, C: Content> {
    zones: Cow<'a, [Queue<C>]>,
    are_draining: [bool; 2],
    arrivals: u64,
}

impl<C: Content> ZoneBuffer<C> {
    /// The state.
    pub fn state(&self) -> ZoneBufferState<'_, C> {
        ZoneBufferState {
            zones: Cow::Borrowed(&self.zones),
            are_draining: self.pools.map(|pool| pool.is_draining()),
            arrivals: self.arrivals,
        }
    }

    /// Takes over a state that was saved from a drive of the same configuration. False if it is of a drive of another
    /// shape, or contradicts itself. `area_units` are those of a Zone Random Write Area.
    pub fn restore(&mut self, state: ZoneBufferState<'_, C>, area_units: u32) -> bool {
        let fits = state.zones.len() == self.zones.len()
            && state.zones.iter().all(|queue| queue.fits(self.capacity, area_units));
        if !fits {
            return false;
        }
        let (mut used, mut dirty) = ([0; 2], [0; 2]);
        for queue in &*state.zones {
            for kind in 0..2 {
                used[kind] += queue.split(queue.base, queue.end())[kind];
                dirty[kind] += queue.split(queue.started, queue.end())[kind];
            }
        }
        for (kind, pool) in self.pools.iter_mut().enumerate() {
            // A zone that cannot be written any more keeps what its area held, which may be more than there is room.
            if used[kind] > pool.slots() {
                return false;
            }
            *pool = pool.holding(used[kind], dirty[kind], state.are_draining[kind]);
        }
        self.zones = state.zones.into_owned();
        self.arrivals = state.arrivals;
        true
    }
}

impl<C: Content> Queue<C> {
    /// Whether a drive at rest can have this: a zone holds `capacity` units, an area `area_units`.
    fn fits(&self, capacity: u32, area_units: u32) -> bool {
        let units = u64::from(self.base) + self.units.len() as u64;
        if units > u64::from(capacity)
            || !(self.base..=self.end()).contains(&self.started)
            || self.protected.max(self.forced) > self.end()
        {
            return false;
        }
        let failed = self.pages.iter().filter(|page| page.state == PageState::Failed).count();
        let mut next = Some(self.base);
        for page in &self.pages {
            next = next.filter(|&first| first == page.first && page.units > 0);
            next = next.and_then(|first| first.checked_add(page.units));
        }
        next == Some(self.started)
            && failed == self.failed_pages as usize
            && self.pages.iter().all(|page| page.state != PageState::InFlight)
            && [0, area_units as usize].contains(&self.window.len())
    }
}
