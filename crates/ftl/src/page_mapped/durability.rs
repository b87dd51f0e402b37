//! The durability that an FTL must provide.

use leyden_nand::Keeps;

/// Failures that an FTL must be ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// The power may be cut: the medium holds what recovery reads.
    pub power_cuts: bool,
    /// A dump may not reach the whole mapping table.
    pub may_lose_map: bool,
    /// Blocks of each die to keep back for dumps: twice what one may need.
    pub dump_blocks_per_die: u32,
}

impl Durability {
    /// Blocks of each die that one dump may need.
    pub const fn blocks_per_dump(self) -> u32 {
        self.dump_blocks_per_die / 2
    }

    /// Which parts of pages the medium must store for that.
    ///
    /// Out-of-band areas hold versions on every drive whose power may be cut: a scan goes by them, and a
    /// collection that a cut has broken off.
    pub const fn keeps(self) -> Keeps {
        Keeps { meta: self.power_cuts, versions: self.power_cuts }
    }
}
