//! Pages that are on the medium without having been programmed: of drives whose state is drawn and not
//! reached.

use super::Medium;
use crate::{BlockId, BlockUse, Content, MetaPage, PageKind, Ppn};

impl<C: Content> Medium<C> {
    /// Makes `block`, which is erased, one whose first `pages` pages are written for `used_for`. Units that
    /// are valid are stored in them ([`Medium::write_units`]); of the others nothing can be read, which
    /// nobody will try.
    pub fn lay_block(&mut self, block: BlockId, pages: u32, used_for: BlockUse) {
        let block = &mut self.blocks[block.index()];
        assert!(block.written_pages == 0 && pages <= self.geometry.pages_per_block());
        block.written_pages = pages;
        block.used_for = (pages > 0).then_some(used_for);
    }

    /// Makes `page`, which is the next of its block, one of the drive's own.
    pub fn lay_meta(&mut self, page: Ppn, meta: MetaPage) {
        debug_assert_ne!(meta.kind, PageKind::Data, "the drive's own pages only");
        self.append(page, BlockUse { kind: meta.kind, stream: 0 });
        self.pages.insert(page, self.kept(meta));
    }

    /// Makes `block` one that was erased `erases` times.
    pub fn lay_erases(&mut self, block: BlockId, erases: u32) {
        self.blocks[block.index()].erases = erases;
        self.note(block);
    }
}
