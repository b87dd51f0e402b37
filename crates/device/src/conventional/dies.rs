//! A set of dies, and whose turn it is.

use leyden_nand::DieId;
use leyden_sim::BitSet;

/// A set of dies, walked round robin so that consecutive pages go to different channels.
#[derive(Clone, Debug)]
pub(super) struct DieSet {
    dies: BitSet,
    count: u32,
}

impl DieSet {
    pub(super) fn empty(dies: u32) -> Self {
        Self { dies: BitSet::new(dies), count: 0 }
    }

    pub(super) fn full(dies: u32) -> Self {
        let mut set = Self::empty(dies);
        (0..dies).for_each(|die| set.insert(DieId(die)));
        set
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub(super) fn insert(&mut self, die: DieId) {
        self.count += u32::from(self.dies.insert(die.0));
    }

    #[inline]
    pub(super) fn remove(&mut self, die: DieId) {
        // Mostly there is none, and nothing to look up.
        if self.count > 0 {
            self.count -= u32::from(self.dies.remove(die.0));
        }
    }

    #[inline]
    pub(super) fn contains(&self, die: DieId) -> bool {
        self.dies.contains(die.0)
    }
    /// The first die of the set at or after `from`, without wrapping around.
    #[inline]
    pub(super) fn next(&self, from: u32) -> Option<DieId> {
        self.dies.next(from).map(DieId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_in_order() {
        let mut set = DieSet::empty(200);
        for die in [3, 64, 199, 3] {
            set.insert(DieId(die));
        }
        assert_eq!(set.next(0), Some(DieId(3)));
        assert_eq!(set.next(4), Some(DieId(64)));
        assert_eq!(set.next(65), Some(DieId(199)));
        set.remove(DieId(199));
        set.remove(DieId(199));
        assert_eq!(set.next(65), None);
        assert_eq!(set.next(250), None);
        assert!(!set.is_empty() && DieSet::empty(200).is_empty());
        assert_eq!(DieSet::full(65).next(64), Some(DieId(64)));
    }
}
