//! `journal`: changes are logged in a small protected journal that overflows to flash.
//!
//! `SpartanSSD`'s elastic journaling (Lee et al., ISLPED 2021), as Hexa (section II) and Selective-PLP
//! (section 3) describe it: only the journal's part in DRAM needs capacitors; its pages go on to flash as
//! they fill, and a checkpoint writes dirty mapping pages back so that the oldest can be dropped. Both
//! name its price: every change is written twice, and recovery has a journal to replay.
//!
//! The paper's own sizes are not given there; those below are ours. The log itself is
//! [`MapLog`](super::MapLog), its blocks on flash are the page-mapped FTL's.

use leyden_nand::Geometry;
use leyden_sim::{Bytes, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a record: which logical page (4), and the unit it is now in, or that it is unmapped (4).
pub const RECORD_BYTES: u32 = 8;

/// Capacitors protect a journal of the table's changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Journal {
    /// The journal in DRAM, which capacitors protect. Rounded down to flash pages, but never fewer than
    /// two: one fills while the other goes to flash. The default is an assumption: 8 pages of 8 KiB.
    pub size: Bytes,
    /// The journal on flash, as a share of the mapping table. When it is longer, the mapping pages that
    /// were changed longest ago are written back until it is not; meanwhile it may grow by half, or by a
    /// page per die. Never less than a page per die. The default is an assumption: replay after a cut stays
    /// well below loading the table.
    pub flash: Ratio,
}

impl Default for Journal {
    fn default() -> Self {
        Self { size: Bytes::new(64 << 10), flash: Ratio::from_percent(10) }
    }
}

/// A journal's sizes, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalShape {
    /// Records of a page.
    pub records_per_page: u32,
    /// Pages in DRAM that no die has been handed, at most.
    pub dram_pages: u32,
    /// Pages on flash above which mapping pages are written back.
    pub flash_pages: u32,
    /// Pages on flash, those on their way included, at most.
    pub most_pages: u32,
    /// Dies: page `n` lies on die `n` modulo this.
    pub dies: u32,
}

impl Journal {
    /// The journal's sizes for a table of `map_pages` mapping pages.
    pub fn shape(&self, geometry: &Geometry, map_pages: u32) -> JournalShape {
        let dies = geometry.dies();
        let page_bytes = geometry.page_bytes();
        let dram = u32::try_from(self.size.get() / u64::from(page_bytes)).unwrap_or(u32::MAX);
        let flash = (self.flash.of(u64::from(map_pages)) as u32).max(dies);
        JournalShape {
            records_per_page: page_bytes / RECORD_BYTES,
            dram_pages: dram.max(2),
            flash_pages: flash,
            most_pages: flash + (flash / 2).max(dies),
            dies,
        }
    }
}

impl JournalShape {
    /// The blocks that each die keeps back: what its share of the journal fills, one because it begins
    /// and ends amid blocks, one in case programs fail or a power cut tears pages, and one being erased.
    pub fn blocks_per_die(&self, geometry: &Geometry) -> u32 {
        self.most_pages.div_ceil(self.dies).div_ceil(geometry.pages_per_block()) + 3
    }
}
