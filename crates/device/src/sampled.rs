//! The state of a drive in use, drawn instead of reached.

use leyden_ftl::page_mapped::{BlockState, DieShare, NoRoom};
use leyden_nand::BlockId;

use crate::{Payload, Ssd};

impl<P: Payload> Ssd<P> {
    /// Makes this drive, which is new, one in use ([`leyden_ftl::page_mapped::Ftl::fill_sampled`]). Its buffer
    /// is empty, and all units hold what was never written.
    ///
    /// # Errors
    /// If too many blocks are bad. The drive is of no use then.
    ///
    /// # Panics
    /// If the drive has been given anything to do, or has more than one stream; or if `valid` says what
    /// cannot be.
    pub fn fill_sampled(&mut self, valid: impl FnMut(&DieShare) -> Vec<u32>) -> Result<(), NoRoom> {
        assert!(self.is_idle() && self.next_id == 0, "the drive is not new");
        self.ftl.fill_sampled(valid)?;
        self.writer.wake(&self.ftl);
        Ok(())
    }

    /// The valid units of each block that is full and could be collected.
    pub fn closed_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        let blocks = (0..self.geometry().blocks()).map(BlockId);
        let closed = blocks.filter(|&block| self.ftl.blocks().state(block) == BlockState::Closed);
        closed.map(|block| self.ftl.blocks().valid(block))
    }
}
