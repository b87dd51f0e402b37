//! Programs that have ended change the map: of the host's data, and of copies.

use leyden_nand::{Content, Lpn, Ppa, Ppn};
use leyden_sim::Time;

use super::ftl::Ftl;

impl<C: Content> Ftl<C> {
    /// Makes unit `unit` of `page`, whose program has ended, the current version of its logical page.
    #[inline]
    pub fn commit(&mut self, now: Time, page: Ppn, unit: u32) {
        let lpn = self.point_to(now, page, unit);
        if !self.store.follows_changes() {
            return;
        }
        let map_page = self.map.page_of(lpn);
        if self.store.changed(map_page) {
            self.moves.dirtied(map_page);
        }
        self.log_change(lpn, self.map.get(lpn));
    }

    /// The same for a copy of `from`: its mapping page need not become dirty for that.
    #[inline]
    pub(crate) fn commit_copy(&mut self, now: Time, page: Ppn, unit: u32, from: Ppa) {
        if !self.moves.are_kept() {
            self.commit(now, page, unit);
            return;
        }
        let lpn = self.point_to(now, page, unit);
        let map_page = self.map.page_of(lpn);
        if !self.store.is_dirty(map_page) {
            self.moves.moved(self.geometry.block_of(from), map_page);
        }
    }

    #[inline]
    fn point_to(&mut self, now: Time, page: Ppn, unit: u32) -> Lpn {
        let ppa = Ppa(self.geometry.first_unit(page).0 + unit);
        let lpn = self.media.lpn(ppa).expect("committed a unit that was not written");
        if let Some(old) = self.map.set(lpn, ppa) {
            self.invalidate(now, old);
        }
        self.validity.set(ppa);
        self.blocks.add_valid(self.geometry.block_of_page(page));
        lpn
    }
}
