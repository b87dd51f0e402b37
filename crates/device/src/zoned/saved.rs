//! A zoned drive at rest, saved and loaded.

use leyden_buffer::zoned::ZoneBufferState;
use leyden_ftl::zoned::{ZoneId, ZonedFtlState};
use serde::{Deserialize, Serialize};

use super::Zoned;
use super::dispatch::DispatchState;
use crate::Payload;
use crate::snapshot::Resting;

/// The state of the namespace in a snapshot.
#[derive(Serialize, Deserialize)]
#[serde(bound = "P: Payload")]
pub(crate) struct ZonedState<'a, P: Payload> {
    ftl: ZonedFtlState<'a, P>,
    buffer: ZoneBufferState<'a, P>,
    dispatch: DispatchState,
}

impl<P: Payload> Resting<P> for Zoned<P> {
    const IS_ZONED: bool = true;
    type State<'a>
        = ZonedState<'a, P>
    where
        Self: 'a;
    type Loaded = ZonedState<'static, P>;

    fn state(&self) -> ZonedState<'_, P> {
        ZonedState {
            ftl: self.ftl.state(),
            buffer: self.buffer.state(),
            dispatch: self.dispatch.state(),
        }
    }

    fn restore(&mut self, state: ZonedState<'static, P>) -> Option<Result<(), String>> {
        let area_units = self.ftl.shape().zrwa_size;
        if !self.ftl.restore(state.ftl) || !self.buffer.restore(state.buffer, area_units) {
            return None;
        }
        Some(self.agree(&state.dispatch))
    }
}

impl<P: Payload> Zoned<P> {
    /// Takes over whose turn it is, and checks that zones, buffer and flash agree.
    fn agree(&mut self, dispatch: &DispatchState) -> Result<(), String> {
        let (buffer, ftl) = (&self.buffer, &self.ftl);
        let die_of = |zone: ZoneId| buffer.has_page(zone.0).then(|| ftl.next_die(zone));
        if !self.dispatch.restore(dispatch, die_of) {
            return Err("zones have their turn where they have no page".to_owned());
        }
        for (id, zone) in ftl.zones().all() {
            let (settled, end) = (buffer.settled(id.0), buffer.end(id.0));
            if end > zone.wp || settled > ftl.end(id) {
                return Err(format!("{id:?} holds {end} units, {settled} of them on flash"));
            }
            if buffer.has_window(id.0) != zone.has_zrwa {
                return Err(format!("{id:?} has a Zone Random Write Area, and has none"));
            }
            if buffer.unprotected(id.0) > 0 {
                self.plain.insert(id);
            }
        }
        self.buffer.check()?;
        self.ftl.check(|zone| self.buffer.settled(zone.0))
    }
}
