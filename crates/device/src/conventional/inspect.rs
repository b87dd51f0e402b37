//! Read-only inspection for checkers.

use leyden_buffer::Region;
use leyden_nand::{DieId, Lpn};

use super::Ssd;
use super::commands::newest;
use crate::lba::SECTOR_BYTES;
use crate::{BlockDevice, Lba, Payload, Units};

impl<P: Payload> Ssd<P> {
    /// True if every write that was acknowledged survives a power cut, flushed or not.
    pub const fn keeps_acknowledged(&self) -> bool {
        match self.namespace().region {
            Region::Full => true,
            Region::None | Region::Selective => false,
        }
    }

    /// Free blocks of each die that data may have.
    pub fn free_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        let dies = self.geometry().dies();
        (0..dies).map(|die| self.namespace().ftl.blocks().free(DieId(die)))
    }

    /// What the map points to for the mapping unit that holds `lba`, whatever the buffer holds:
    /// what would be left without it. `None` if the unit is not mapped.
    ///
    /// # Panics
    /// If `lba` is beyond the drive's capacity.
    pub fn stored(&self, lba: Lba) -> Option<P> {
        let unit = lba.0 * SECTOR_BYTES / u64::from(self.geometry().unit_bytes());
        assert!(unit < u64::from(self.mapping_units()), "{lba:?} is beyond the drive");
        self.namespace()
            .ftl
            .map()
            .get(Lpn(unit as u32))
            .map(|unit| self.namespace().ftl.content(unit))
    }

    /// What a read of the mapping unit that holds `lba` would return if it took no time.
    ///
    /// # Panics
    /// If `lba` is beyond the drive's capacity.
    pub fn newest(&self, lba: Lba) -> P {
        let unit = lba.0 * SECTOR_BYTES / u64::from(self.geometry().unit_bytes());
        assert!(unit < u64::from(self.mapping_units()), "{lba:?} is beyond the drive");
        newest(self.namespace().buffer(), self.namespace().ftl(), Lpn(unit as u32))
    }

    /// The content of everything that holds content, in a fixed order: units of the medium and slots of
    /// the buffer, also those that nothing points to any more. What lies elsewhere
    /// ([`crate::Controller::in_flight`] apart) is of no use to the drive.
    pub fn contents(&self) -> impl Iterator<Item = &P> {
        self.namespace().ftl().contents().chain(self.namespace().buffer().contents())
    }

    /// What a read of the whole drive would return if it took no time: the buffer's content, and what the
    /// map points to for the rest. Costs a pass over the units, unless there is no content.
    pub fn whole(&self) -> P::ReadData {
        let mut data = P::ReadData::default();
        if !P::STORED {
            return data;
        }
        let units = Units::new(0, self.capacity_sectors(), self.namespace().unit_sectors());
        for index in 0..units.count() {
            let content = newest(self.namespace().buffer(), self.namespace().ftl(), Lpn(index));
            P::gather(&mut data, units.part(index), &content);
        }
        data
    }
}
