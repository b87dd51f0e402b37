//! From sectors to mapping units.

use leyden_nand::Lpn;

/// The mapping units that a range of sectors touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub(crate) first: Lpn,
    pub(crate) count: u32,
    /// The first unit is touched only in part.
    partial_first: bool,
    /// The last unit is touched only in part.
    partial_last: bool,
}

impl Units {
    /// No units.
    pub(crate) const NONE: Self =
        Self { first: Lpn(0), count: 0, partial_first: false, partial_last: false };

    #[inline]
    pub(crate) fn new(lba: u64, sectors: u64, unit_sectors: u64) -> Self {
        let end = lba + sectors;
        let (first, last) = (lba / unit_sectors, end.div_ceil(unit_sectors));
        let starts_inside = !lba.is_multiple_of(unit_sectors);
        let ends_inside = !end.is_multiple_of(unit_sectors);
        Self {
            first: Lpn(first as u32),
            count: (last - first) as u32,
            partial_first: starts_inside || (last - first == 1 && ends_inside),
            partial_last: ends_inside,
        }
    }

    /// True if unit `index` is touched only in part.
    pub(crate) const fn is_partial(self, index: u32) -> bool {
        (self.partial_first && index == 0) || (self.partial_last && index + 1 == self.count)
    }

    /// The units touched in part: none, one or two.
    pub(crate) fn partial(self) -> impl Iterator<Item = Lpn> {
        let last = self.first.0 + self.count - 1;
        let head = self.partial_first.then_some(self.first);
        let tail = (self.partial_last && self.count > 1).then_some(Lpn(last));
        head.into_iter().chain(tail)
    }

    /// The units touched as a whole: from the first up to, not including, the second.
    pub(crate) fn whole(self) -> (Lpn, Lpn) {
        let first = self.first.0 + u32::from(self.partial_first);
        let end = self.first.0 + self.count - u32::from(self.partial_last);
        (Lpn(first), Lpn(end.max(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial(lba: u64, sectors: u64) -> Vec<u32> {
        Units::new(lba, sectors, 8).partial().map(|lpn| lpn.0).collect()
    }

    #[test]
    fn knows_what_is_touched_in_part() {
        assert_eq!(partial(0, 8), [] as [u32; 0]);
        assert_eq!(partial(1, 2), [0]);
        assert_eq!(partial(0, 7), [0]);
        assert_eq!(partial(4, 8), [0, 1]);
        assert_eq!(partial(0, 12), [1]);
        assert_eq!(partial(12, 12), [1]);
        assert_eq!(partial(9, 30), [1, 4]);
    }

    #[test]
    fn knows_what_is_touched_as_a_whole() {
        let whole = |lba, sectors| Units::new(lba, sectors, 8).whole();
        assert_eq!(whole(0, 16), (Lpn(0), Lpn(2)));
        assert_eq!(whole(4, 8), (Lpn(1), Lpn(1)));
        assert_eq!(whole(1, 2), (Lpn(1), Lpn(1)));
        assert_eq!(whole(4, 20), (Lpn(1), Lpn(3)));
    }

    proptest::proptest! {
        /// Against the slow twin: look at every sector.
        #[test]
        fn agrees_with_every_sector(lba in 0_u64..100, sectors in 1_u64..100) {
            let units = Units::new(lba, sectors, 8);
            for unit in 0..40_u64 {
                let inside = (unit * 8..unit * 8 + 8).filter(|s| (lba..lba + sectors).contains(s)).count();
                let touched = (u64::from(units.first.0)..).take(units.count as usize).any(|u| u == unit);
                proptest::prop_assert_eq!(touched, inside > 0);
                let partial = units.partial().any(|lpn| u64::from(lpn.0) == unit);
                proptest::prop_assert_eq!(partial, (1..8).contains(&inside));
                let (first, end) = units.whole();
                let whole = (u64::from(first.0)..u64::from(end.0)).contains(&unit);
                proptest::prop_assert_eq!(whole, inside == 8);
            }
        }
    }
}
