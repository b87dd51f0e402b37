//! Zombie hints: the host says which data it holds a newer version of, and will overwrite.
//!
//! A hint promises nothing and changes no promise: what it names is live data until it is
//! overwritten (Zombie Chasing, section 3.1).

use std::num::NonZeroU8;

use crate::lba::{Lba, SECTOR_BYTES};

/// Bytes of the units that hints count in, whatever the drive's mapping unit is.
pub const HINT_UNIT_BYTES: u64 = 4096;

const UNIT_SECTORS: u64 = HINT_UNIT_BYTES / SECTOR_BYTES;

/// A range that the host holds newer data for: what fits in the five bytes that SATA reads and writes
/// leave unused (Zombie Chasing, section 4.1), and in command dwords 14 and 15 of NVMe's.
///
/// ```
/// use leyden_device::{Hint, Lba};
///
/// let hints: Vec<Hint> = Hint::covering(Lba(12), 16).collect();
/// assert_eq!(hints, [Hint::from_dwords(1, 3).unwrap()]); // sectors 8 to 31
/// assert_eq!((hints[0].lba(), hints[0].sectors()), (Lba(8), 24));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hint {
    first: u32,
    units: NonZeroU8,
}

impl Hint {
    /// The most units that one hint names.
    pub const MOST_UNITS: u32 = u8::MAX as u32;

    /// `units` units of [`HINT_UNIT_BYTES`] from unit `first` on.
    pub const fn new(first: u32, units: NonZeroU8) -> Self {
        Self { first, units }
    }

    /// From command dwords 14 (the first unit) and 15 (bits 7:0, how many); `None` if they name none.
    pub const fn from_dwords(cdw14: u32, cdw15: u32) -> Option<Self> {
        match NonZeroU8::new(cdw15 as u8) {
            Some(units) => Some(Self::new(cdw14, units)),
            None => None,
        }
    }

    /// Command dwords 14 and 15, as [`Hint::from_dwords`] takes them.
    pub const fn dwords(self) -> (u32, u32) {
        (self.first, self.units.get() as u32)
    }

    /// Hints for every unit that `sectors` sectors from `lba` on touch, in order.
    /// Units beyond 16 TiB can't be named and are left out.
    pub fn covering(lba: Lba, sectors: u32) -> impl Iterator<Item = Self> {
        let end = lba.0.saturating_add(u64::from(sectors)).div_ceil(UNIT_SECTORS).min(1 << 32);
        let mut at = lba.0 / UNIT_SECTORS;
        std::iter::from_fn(move || {
            let count = end.saturating_sub(at).min(u64::from(Self::MOST_UNITS));
            let units = NonZeroU8::new(count as u8)?;
            let first = at as u32;
            at += count;
            Some(Self { first, units })
        })
    }

    /// The first sector.
    pub const fn lba(self) -> Lba {
        Lba(self.first as u64 * UNIT_SECTORS)
    }

    /// How many sectors.
    pub const fn sectors(self) -> u32 {
        self.units.get() as u32 * UNIT_SECTORS as u32
    }

    /// The first byte.
    pub const fn first_byte(self) -> u64 {
        self.first as u64 * HINT_UNIT_BYTES
    }

    /// The byte after the last one.
    pub const fn end_byte(self) -> u64 {
        self.first_byte() + self.units.get() as u64 * HINT_UNIT_BYTES
    }

    /// The first unit of [`HINT_UNIT_BYTES`].
    pub const fn first_unit(self) -> u32 {
        self.first
    }

    /// How many units.
    pub const fn units(self) -> u32 {
        self.units.get() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covering(lba: u64, sectors: u32) -> Vec<(u32, u32)> {
        Hint::covering(Lba(lba), sectors).map(|hint| (hint.first_unit(), hint.units())).collect()
    }

    #[test]
    fn ranges_are_cut_into_hints() {
        assert_eq!(covering(7, 1), [(0, 1)]);
        assert_eq!(covering(7, 2), [(0, 2)]);
        assert_eq!(covering(80, 0), []);
        assert_eq!(covering(0, 8 * 300), [(0, 255), (255, 45)]);
        let last = u64::from(u32::MAX);
        assert_eq!(covering(last * 8, 16), [(u32::MAX, 1)], "the second is beyond 16 TiB");
        assert_eq!(covering(u64::MAX, u32::MAX), []);
    }

    #[test]
    fn dwords_are_read_as_they_are_laid_out() {
        assert_eq!(Hint::from_dwords(5, 0), None);
        assert_eq!(Hint::from_dwords(5, 0x1_00), None, "bits above 7 are not the count's");
        assert_eq!(Hint::from_dwords(5, 0xff), Some(Hint::new(5, NonZeroU8::MAX)));
    }
}
