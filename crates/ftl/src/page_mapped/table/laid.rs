//! A table that is drawn: every mapping page lies on flash as it is, and none is dirty.

use leyden_nand::{Content, MetaPage, PageKind};

use super::{Step, TableWriter};
use crate::map::MapPage;

impl TableWriter {
    /// Puts every mapping page on flash, if mapping pages are written there for changes of entries. False if
    /// there is no room for one.
    pub(in crate::page_mapped) fn lay_pages<C: Content>(&mut self, step: &mut Step<'_, C>) -> bool {
        if !self.store.follows_changes() {
            return true;
        }
        for page in (0..step.data.map().pages()).map(MapPage) {
            let die = self.blocks.die_of(page);
            let blocks = step.data.blocks_mut();
            let Some(place) = self.blocks.place(die, &self.store, step.medium, blocks) else {
                return false;
            };
            let bytes = self.bytes_of(page, step);
            let (kind, sequence) = (PageKind::Mapping, self.next_sequence);
            self.next_sequence += 1;
            let meta = MetaPage { kind, number: u64::from(page.0), sequence, bytes };
            step.medium.lay_meta(place, meta);
            let old = self.store.written(page, place);
            assert!(old.is_none(), "{page:?} was on flash already");
            self.blocks.add(step.medium.geometry(), place);
        }
        self.wake_writers();
        true
    }
}
