//! Groups that commands wait for, and why writes wait.

use leyden_buffer::SlotId;

/// Why writes wait, and what is put together for a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Grouping {
    /// Slots whose groups a command waits for; they count as urgent.
    pub(super) hurried: Vec<SlotId>,
    /// A write waits for more room than there is.
    pub(super) wants_room: bool,
    /// A write waits until no mapping page needs to be looked for on flash.
    pub(super) wants_table: bool,
    /// Kept to save allocations.
    pub(super) scratch: Vec<SlotId>,
}

impl Grouping {
    /// True if a command waits for groups.
    #[inline]
    pub(super) const fn is_hurried(&self) -> bool {
        !self.hurried.is_empty()
    }

    /// The program of `slot` starts, or it is dropped. True if it was waited for.
    #[cold]
    #[inline(never)]
    pub(super) fn has_left(&mut self, slot: SlotId) -> bool {
        let place = self.hurried.iter().position(|&other| other == slot);
        place.map(|place| self.hurried.swap_remove(place)).is_some()
    }

    /// Nothing is waited for.
    pub(super) fn give_up(&mut self) {
        self.hurried.clear();
        (self.wants_room, self.wants_table) = (false, false);
    }
}
