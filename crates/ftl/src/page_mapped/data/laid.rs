//! A state that is drawn: blocks that hold what they are said to.

use leyden_nand::{BlockId, Ppa};
use leyden_sim::Time;

use super::Data;

impl Data {
    /// A block that was opened ([`super::Blocks::allocate`]) holds `valid` valid units, which are named by
    /// [`Data::lay_unit`]. It is closed if it `is_full`; blocks that are closed count as filled in the
    /// order of the calls.
    pub(crate) fn lay_block(&mut self, block: BlockId, valid: u32, is_full: bool) {
        self.blocks.set_valid(block, valid);
        self.page_ended(Time::ZERO, block, is_full);
    }

    /// `unit` is one of the valid units of its block. The map is to point to it ([`Data::found`]).
    #[inline]
    pub(crate) fn lay_unit(&mut self, unit: Ppa) {
        self.validity.set(unit);
    }
}
