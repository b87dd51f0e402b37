//! The commands that are in the device.

use leyden_sim::Time;

use crate::units::Units;
use crate::{Action, CommandId, Op, Payload};

/// Where a command is kept while it is in the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestId(pub(crate) u32);

/// A command in the device.
#[derive(Clone, Debug)]
pub struct Request<P: Payload> {
    pub(crate) id: CommandId,
    pub(crate) action: Action<P>,
    pub(crate) tag: u32,
    pub(crate) submitted: Time,
    /// The units that it touches; known once it has arrived.
    pub(crate) units: Units,
    pub(crate) read: P::ReadData,
    /// Flash reads, or units to be settled, that it waits for.
    pub(crate) pending: u32,
    /// The next unit to be taken into the buffer, counted from its first.
    pub(crate) next_unit: u32,
    /// Since when it has waited for room in the buffer.
    pub(crate) waiting_since: Time,
}

impl<P: Payload> Request<P> {
    #[inline]
    pub(crate) const fn op(&self) -> Op {
        self.action.op()
    }
}

/// A slab: places are reused, so that no I/O allocates once as many are under way as ever will be.
#[derive(Clone, Debug)]
pub(super) struct Requests<P: Payload> {
    places: Vec<Request<P>>,
    free: Vec<RequestId>,
    /// Which places are taken: to find our own bugs.
    #[cfg(debug_assertions)]
    taken: Vec<bool>,
}

impl<P: Payload> Requests<P> {
    pub(super) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            #[cfg(debug_assertions)]
            taken: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, request: Request<P>) -> RequestId {
        let id = if let Some(id) = self.free.pop() {
            // Field by field: as a whole it would be built elsewhere, and moved.
            let place = &mut self.places[id.0 as usize];
            place.action = request.action;
            (place.id, place.tag, place.submitted) = (request.id, request.tag, request.submitted);
            (place.units, place.read) = (request.units, request.read);
            (place.pending, place.next_unit) = (request.pending, request.next_unit);
            place.waiting_since = request.waiting_since;
            id
        } else {
            self.places.push(request);
            #[cfg(debug_assertions)]
            self.taken.push(false);
            RequestId(self.places.len() as u32 - 1)
        };
        self.mark(id, true);
        id
    }

    #[inline]
    pub(super) fn get(&self, id: RequestId) -> &Request<P> {
        self.check(id);
        &self.places[id.0 as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: RequestId) -> &mut Request<P> {
        self.check(id);
        &mut self.places[id.0 as usize]
    }

    /// The commands in the device; what places that are not taken hold carries no data.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Request<P>> {
        self.places.iter()
    }

    /// The command has ended. What it carried is let go of.
    #[inline]
    pub(super) fn remove(&mut self, id: RequestId) {
        let action = &mut self.get_mut(id).action;
        let has_data = std::mem::needs_drop::<P::WriteData>();
        if has_data || !matches!(action, Action::Read { .. } | Action::Write { .. }) {
            *action = Action::Flush { file: None };
        }
        self.mark(id, false);
        self.free.push(id);
    }

    /// Forgets every command: the power is gone.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many commands are in the device.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// A command that has ended must not be referenced.
    #[inline]
    fn check(&self, id: RequestId) {
        #[cfg(debug_assertions)]
        assert!(self.taken[id.0 as usize], "{id:?} has ended");
        let _ = id;
    }

    #[inline]
    fn mark(&mut self, id: RequestId, taken: bool) {
        #[cfg(debug_assertions)]
        {
            self.taken[id.0 as usize] = taken;
        }
        let _ = (id, taken);
    }
}
