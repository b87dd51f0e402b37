//! A look inside, for whoever checks what the drive has promised.

use leyden_nand::{DieId, Lpn};

use crate::command::SECTOR_BYTES;
use crate::{Lba, Payload, Ssd};

impl<P: Payload> Ssd<P> {
    /// Free blocks of each die that data may have.
    pub fn free_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        let dies = self.geometry().dies();
        (0..dies).map(|die| self.ftl.blocks().free(DieId(die)))
    }

    /// What the map points to for the mapping unit that holds `lba`, whatever the buffer holds:
    /// what would be left without it. `None` if the unit is not mapped.
    ///
    /// # Panics
    /// If `lba` is beyond the drive's capacity.
    pub fn stored(&self, lba: Lba) -> Option<P> {
        let unit = lba.0 * SECTOR_BYTES / u64::from(self.geometry().unit_bytes());
        assert!(unit < u64::from(self.mapping_units()), "{lba:?} is beyond the drive");
        self.ftl.map().get(Lpn(unit as u32)).map(|unit| self.ftl.content(unit))
    }

    /// What a read of the whole drive would return if it took no time: the buffer's content, and what the
    /// map points to for the rest. Costs a pass over the units, unless there is no content.
    pub fn whole(&self) -> P::ReadData {
        let mut data = P::ReadData::default();
        if !P::STORED {
            return data;
        }
        let count = self.mapping_units();
        for lpn in (0..count).map(Lpn) {
            let on_flash = || self.ftl.map().get(lpn).map(|unit| self.ftl.content(unit));
            let content = self.writer.buffer.read(lpn).or_else(on_flash);
            P::gather(&mut data, lpn.0, count, content.unwrap_or_default());
        }
        data
    }
}
