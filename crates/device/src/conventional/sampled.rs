//! The state of a drive in use, drawn instead of reached.

use leyden_ftl::page_mapped::{DieShare, NoRoom};
use leyden_nand::BlockId;

use super::Ssd;
use crate::Payload;

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
        assert!(self.is_new(), "the drive is not new");
        let namespace = self.namespace_mut();
        namespace.ftl.fill_sampled(valid)?;
        namespace.writer.wake(&namespace.ftl);
        Ok(())
    }

    /// The valid units of each block that is full and could be collected.
    pub fn closed_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        let index = self.namespace().ftl.data().index();
        (0..self.geometry().blocks()).filter_map(|block| index.valid(BlockId(block)))
    }
}
