//! A look inside, for whoever checks what the drive has promised.

use leyden_nand::Lpn;

use crate::command::SECTOR_BYTES;
use crate::{Lba, Payload, Ssd};

impl<P: Payload> Ssd<P> {
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
}
