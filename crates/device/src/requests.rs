//! The commands that are in the device.

use leyden_sim::Time;

use crate::{CommandId, Hint, Lba, Op, Payload};

/// Where a command is kept while it is in the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RequestId(pub(crate) u32);

/// A command in the device.
#[derive(Clone, Debug)]
pub(crate) struct Request<P: Payload> {
    pub(crate) id: CommandId,
    pub(crate) op: Op,
    pub(crate) lba: Lba,
    pub(crate) sectors: u32,
    pub(crate) fua: bool,
    pub(crate) is_log: bool,
    pub(crate) tag: u32,
    pub(crate) submitted: Time,
    pub(crate) data: P::WriteData,
    pub(crate) hint: Option<Hint>,
    pub(crate) read: P::ReadData,
    /// Flash reads, or units to be settled, that it waits for.
    pub(crate) pending: u32,
    /// The next unit to be taken into the buffer, counted from its first.
    pub(crate) next_unit: u32,
    /// Since when it has waited for room in the buffer.
    pub(crate) waiting_since: Time,
}

/// A slab: places are reused, so that no I/O allocates once as many are under way as ever will be.
#[derive(Debug)]
pub(crate) struct Requests<P: Payload> {
    places: Vec<Request<P>>,
    free: Vec<RequestId>,
}

impl<P: Payload> Requests<P> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(crate) fn insert(&mut self, request: Request<P>) -> RequestId {
        if let Some(id) = self.free.pop() {
            self.places[id.0 as usize] = request;
            id
        } else {
            self.places.push(request);
            RequestId(self.places.len() as u32 - 1)
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: RequestId) -> &Request<P> {
        &self.places[id.0 as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: RequestId) -> &mut Request<P> {
        &mut self.places[id.0 as usize]
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: RequestId) {
        self.free.push(id);
    }

    /// Forgets every command: the power is gone.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }
}
