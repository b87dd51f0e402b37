//! Programs that have ended change the map: of the host's data, and of copies.

use leyden_nand::{Content, Lpn, Ppa, Ppn};
use leyden_sim::Time;

use super::ftl::Ftl;

impl<C: Content> Ftl<C> {
    /// Makes unit `unit` of `page`, whose program of the host's data has ended, the current version of
    /// its logical page.
    #[inline]
    pub fn commit(&mut self, now: Time, page: Ppn, unit: u32) {
        let (lpn, old) = self.point_to(now, page, unit);
        let old = old.map(|old| self.geometry.block_of(old));
        self.replace_zombie(lpn, old, Some(self.geometry.block_of_page(page)));
        self.note_change(lpn);
    }

    /// The same for a copy of `from`: its mapping page need not become dirty for that.
    #[inline]
    pub(crate) fn commit_copy(&mut self, now: Time, page: Ppn, unit: u32, from: Ppa) {
        let (lpn, _) = self.point_to(now, page, unit);
        let (from, to) = (self.geometry.block_of(from), self.geometry.block_of_page(page));
        self.move_zombie(lpn, from, to);
        if !self.moves.are_kept() {
            self.note_change(lpn);
            return;
        }
        let map_page = self.map.page_of(lpn);
        if !self.store.is_dirty(map_page) {
            self.moves.moved(from, map_page);
        }
    }

    /// Points the map to where `unit` of `page` lies now; hands back where the last version does.
    #[inline]
    fn point_to(&mut self, now: Time, page: Ppn, unit: u32) -> (Lpn, Option<Ppa>) {
        let ppa = Ppa(self.geometry.first_unit(page).0 + unit);
        let lpn = self.media.lpn(ppa).expect("committed a unit that was not written");
        let old = self.map.set(lpn, ppa);
        if let Some(old) = old {
            self.invalidate(now, old);
        }
        self.validity.set(ppa);
        self.blocks.add_valid(self.geometry.block_of_page(page));
        (lpn, old)
    }

    /// The entry of `lpn` has changed, and what flash holds of it has not.
    #[inline]
    fn note_change(&mut self, lpn: Lpn) {
        if !self.store.follows_changes() {
            return;
        }
        let map_page = self.map.page_of(lpn);
        if self.store.changed(map_page) {
            self.moves.dirtied(map_page);
        }
        self.log_change(lpn, self.map.get(lpn));
    }
}
