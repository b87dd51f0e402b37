//! From sectors to mapping units.

use std::ops::Range;

use leyden_nand::Lpn;

/// The mapping units that a range of sectors touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Units {
    first: Lpn,
    count: u32,
    /// Sectors of the first unit that lie before the range.
    head: u32,
    /// Sectors of the last unit that lie after it.
    tail: u32,
    unit_sectors: u32,
}

/// The part of a range of sectors in one of the units that it touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Which of the units that the range touches this is.
    pub index: u32,
    /// How many units the range touches.
    pub units: u32,
    /// The first of the unit's sectors that the range covers.
    pub first: u32,
    /// The first sector after it that the range does not cover.
    pub end: u32,
    /// Sectors of a unit.
    pub unit_sectors: u32,
    /// Sectors of the range that lie before this unit.
    pub before: u64,
    /// Sectors of the whole range.
    pub total: u64,
}

impl Part {
    /// True if the range covers the whole unit.
    #[inline]
    pub const fn is_whole(self) -> bool {
        self.end - self.first == self.unit_sectors
    }

    /// The sectors of the unit that the range covers.
    pub const fn in_unit(self) -> Range<usize> {
        self.first as usize..self.end as usize
    }

    /// Where they lie among the range's sectors, and so in the data that a command carries.
    pub const fn in_range(self) -> Range<usize> {
        let before = self.before as usize;
        before..before + (self.end - self.first) as usize
    }
}

impl Units {
    /// No units.
    pub const NONE: Self = Self { first: Lpn(0), count: 0, head: 0, tail: 0, unit_sectors: 1 };

    /// The units that `sectors` sectors from `lba` on touch, which end before 2^63, in units of
    /// `unit_sectors`, a power of two.
    #[inline]
    pub fn new(lba: u64, sectors: u64, unit_sectors: u64) -> Self {
        debug_assert!(unit_sectors.is_power_of_two(), "units of {unit_sectors} sectors");
        let (end, shift) = (lba + sectors, unit_sectors.trailing_zeros());
        let (first, last) = (lba >> shift, (end + unit_sectors - 1) >> shift);
        Self {
            first: Lpn(first as u32),
            count: (last - first) as u32,
            head: (lba - (first << shift)) as u32,
            tail: ((last << shift) - end) as u32,
            unit_sectors: unit_sectors as u32,
        }
    }

    /// The first unit.
    #[inline]
    pub const fn first(self) -> Lpn {
        self.first
    }

    /// How many units.
    #[inline]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The part of the range in unit `index`, counted from the first.
    #[inline]
    pub fn part(self, index: u32) -> Part {
        let unit_sectors = u64::from(self.unit_sectors);
        let (first, before) = match index {
            0 => (self.head, 0),
            _ => (0, u64::from(index) * unit_sectors - u64::from(self.head)),
        };
        let left_out = if index + 1 == self.count { self.tail } else { 0 };
        Part {
            index,
            units: self.count,
            first,
            end: self.unit_sectors - left_out,
            unit_sectors: self.unit_sectors,
            before,
            total: u64::from(self.count) * unit_sectors - u64::from(self.head + self.tail),
        }
    }

    /// True if unit `index` is touched only in part.
    #[inline]
    pub const fn is_partial(self, index: u32) -> bool {
        (self.head > 0 && index == 0) || (self.tail > 0 && index + 1 == self.count)
    }

    /// True if no unit is touched only in part.
    #[inline]
    pub const fn are_whole(self) -> bool {
        self.head == 0 && self.tail == 0
    }

    /// The units touched in part: none, one or two.
    #[inline]
    pub fn partial(self) -> impl Iterator<Item = Lpn> {
        let last = self.count.saturating_sub(1);
        let head = self.is_partial(0).then_some(self.first);
        let tail = (self.tail > 0 && last > 0).then_some(Lpn(self.first.0 + last));
        head.into_iter().chain(tail)
    }

    /// The units touched as a whole: from the first up to, not including, the second.
    #[inline]
    pub fn whole(self) -> (Lpn, Lpn) {
        let first = self.first.0 + u32::from(self.is_partial(0));
        let end = self.first.0 + self.count - u32::from(self.tail > 0);
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
                if touched {
                    let part = units.part(unit as u32 - units.first.0);
                    let at = |s: &usize| unit * 8 + *s as u64;
                    let covered: Vec<_> = part.in_unit().map(|s| at(&s)).collect();
                    let carried: Vec<_> = part.in_range().map(|s| lba + s as u64).collect();
                    proptest::prop_assert_eq!(&covered, &carried);
                    let twin: Vec<_> = (lba..lba + sectors).filter(|s| s / 8 == unit).collect();
                    proptest::prop_assert_eq!(covered, twin);
                    proptest::prop_assert_eq!(part.total, sectors);
                    proptest::prop_assert_eq!(part.is_whole(), inside == 8);
                    proptest::prop_assert_eq!(units.is_partial(part.index), inside < 8);
                }
                let partial = units.partial().any(|lpn| u64::from(lpn.0) == unit);
                proptest::prop_assert_eq!(partial, (1..8).contains(&inside));
                proptest::prop_assert_eq!(units.are_whole(), units.partial().count() == 0);
                let (first, end) = units.whole();
                let whole = (u64::from(first.0)..u64::from(end.0)).contains(&unit);
                proptest::prop_assert_eq!(whole, inside == 8);
            }
        }
    }
}
