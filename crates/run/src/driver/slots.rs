//! Commands on their way to the device and back.

use leyden_sim::Time;

/// Commands outstanding, by the tag they carry.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// A command outstanding: whose it is, and what it asked for.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) owner: u32,
    pub(super) tenant: u8,
    pub(super) sectors: u32,
    pub(super) arrived: Time,
}

impl Slots {
    #[inline]
    pub(super) fn take(&mut self, slot: Slot) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            index
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        }
    }

    #[inline]
    pub(super) fn release(&mut self, index: u32) -> Slot {
        self.free.push(index);
        self.slots[index as usize]
    }

    /// Those outstanding, in ascending order.
    pub(super) fn taken(&self) -> Vec<u32> {
        let mut is_taken = vec![true; self.slots.len()];
        for &index in &self.free {
            is_taken[index as usize] = false;
        }
        (0..).zip(is_taken).filter_map(|(index, taken)| taken.then_some(index)).collect()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
