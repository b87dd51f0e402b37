//! The slots that are being programmed, in the order in which their programs began.
//!
//! They end more or less in that order. So what an end will touch is known some programs before, and is brought near by
//! then. Only the simulator's speed depends on this.

use leyden_buffer::SlotId;

/// A ring of slots. What is said of the next to end may be wrong: of slots that ended before their turn, or if
/// nothing is being programmed. But they are slots of the buffer.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    /// A power of two of places.
    ring: Vec<SlotId>,
    /// How many slots have begun and have ended since the ring was made: places in it, going on past its end.
    begun: u32,
    ended: u32,
}

impl InFlight {
    /// For up to `slots` slots at once: of more, the oldest are forgotten.
    pub(super) fn new(slots: u32) -> Self {
        let places = slots.next_power_of_two() as usize;
        Self { ring: vec![SlotId(0); places], begun: 0, ended: 0 }
    }

    #[inline]
    pub(super) fn begin(&mut self, slot: SlotId) {
        let mask = self.ring.len() - 1;
        self.ring[self.begun as usize & mask] = slot;
        self.begun = self.begun.wrapping_add(1);
    }

    /// Some slot has ended.
    #[inline]
    pub(super) fn end(&mut self) {
        self.ended = self.ended.wrapping_add(1);
    }

    /// The slot that is going to end after so many others, or so.
    #[inline]
    pub(super) fn ahead(&self, slots: u32) -> SlotId {
        let mask = self.ring.len() - 1;
        self.ring[self.ended.wrapping_add(slots) as usize & mask]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_ends_next() {
        let mut in_flight = InFlight::new(5); // eight places
        (0..6).map(SlotId).for_each(|slot| in_flight.begin(slot));
        assert_eq!([0, 3, 5].map(|slots| in_flight.ahead(slots).0), [0, 3, 5]);
        (0..4).for_each(|_| in_flight.end());
        (6..11).map(SlotId).for_each(|slot| in_flight.begin(slot));
        assert_eq!([0, 3, 6].map(|slots| in_flight.ahead(slots).0), [4, 7, 10]);
        assert_eq!(InFlight::new(0).ahead(3), SlotId(0));
    }
}
