//! Where things are: dies, blocks, pages and mapping units, and the arithmetic between them.
//!
//! All addresses are dense: die 0 holds the first blocks, block 0 the first pages, and so on, so
//! that state lives in flat arrays. Dies are numbered across channels first (die `d` hangs on
//! channel `d % channels`), so that neighbouring dies do not share a bus.

use leyden_sim::Divisor;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[doc = $doc:literal])* $name:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// As an array index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A bus between the controller and some dies.
    ChannelId
);
id!(
    /// A die (LUN): does one array operation at a time.
    DieId
);
id!(
    /// A block, the unit of erase, numbered over the whole drive.
    BlockId
);
id!(
    /// A physical (effective) flash page, the unit of program, numbered over the whole drive.
    Ppn
);
id!(
    /// A physical mapping unit: one of the places in a page that a map entry can point to.
    Ppa
);
id!(
    /// A logical page number: a mapping unit of the host's address space.
    Lpn
);

/// The shape of the flash, in effective pages and blocks (see `multi_plane`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    channels: Divisor,
    dies: u32,
    blocks_per_die: Divisor,
    pages_per_block: Divisor,
    pages_per_die: Divisor,
    units_per_page: Divisor,
    units_per_block: Divisor,
    unit_bytes: u32,
}

impl Geometry {
    /// A geometry whose products are known to fit; made by [`crate::Config::geometry`].
    pub(crate) fn new(
        channels: u32,
        dies: u32,
        blocks_per_die: u32,
        pages_per_block: u32,
        units_per_page: u32,
        unit_bytes: u32,
    ) -> Self {
        Self {
            channels: Divisor::new(channels),
            dies,
            blocks_per_die: Divisor::new(blocks_per_die),
            pages_per_block: Divisor::new(pages_per_block),
            pages_per_die: Divisor::new(blocks_per_die * pages_per_block),
            units_per_page: Divisor::new(units_per_page),
            units_per_block: Divisor::new(pages_per_block * units_per_page),
            unit_bytes,
        }
    }

    /// Channels.
    pub const fn channels(&self) -> u32 {
        self.channels.get()
    }
    /// Dies on all channels.
    pub const fn dies(&self) -> u32 {
        self.dies
    }
    /// Blocks of one die.
    pub const fn blocks_per_die(&self) -> u32 {
        self.blocks_per_die.get()
    }
    /// Blocks of the whole drive.
    pub const fn blocks(&self) -> u32 {
        self.dies * self.blocks_per_die.get()
    }
    /// Effective pages of a block.
    pub const fn pages_per_block(&self) -> u32 {
        self.pages_per_block.get()
    }
    /// Effective pages of the whole drive.
    pub const fn pages(&self) -> u32 {
        self.blocks() * self.pages_per_block.get()
    }
    /// Mapping units of an effective page.
    pub const fn units_per_page(&self) -> u32 {
        self.units_per_page.get()
    }
    /// Mapping units of a block.
    pub const fn units_per_block(&self) -> u32 {
        self.units_per_block.get()
    }
    /// Mapping units of the whole drive.
    pub const fn units(&self) -> u32 {
        self.blocks() * self.units_per_block.get()
    }
    /// Bytes of a mapping unit.
    pub const fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }
    /// Bytes of an effective page.
    pub const fn page_bytes(&self) -> u32 {
        self.units_per_page.get() * self.unit_bytes
    }
    /// Bytes of flash in all.
    pub const fn flash_bytes(&self) -> u64 {
        self.units() as u64 * self.unit_bytes as u64
    }

    /// The channel a die hangs on.
    #[inline]
    pub const fn channel_of(&self, die: DieId) -> ChannelId {
        ChannelId(die.0 - self.channels.divide(die.0) * self.channels.get())
    }
    /// The die a block is on.
    #[inline]
    pub const fn die_of(&self, block: BlockId) -> DieId {
        DieId(self.blocks_per_die.divide(block.0))
    }
    /// The first block of a die.
    #[inline]
    pub const fn first_block(&self, die: DieId) -> BlockId {
        BlockId(die.0 * self.blocks_per_die.get())
    }
    /// The block a page is in.
    #[inline]
    pub const fn block_of_page(&self, page: Ppn) -> BlockId {
        BlockId(self.pages_per_block.divide(page.0))
    }
    /// The block a unit is in.
    #[inline]
    pub const fn block_of(&self, unit: Ppa) -> BlockId {
        BlockId(self.units_per_block.divide(unit.0))
    }
    /// The page a unit is in.
    #[inline]
    pub const fn page_of(&self, unit: Ppa) -> Ppn {
        Ppn(self.units_per_page.divide(unit.0))
    }
    /// The die a page is on.
    #[inline]
    pub const fn die_of_page(&self, page: Ppn) -> DieId {
        DieId(self.pages_per_die.divide(page.0))
    }
    /// The pages that `units` units fill, the last one perhaps in part.
    #[inline]
    pub const fn pages_for(&self, units: u32) -> u32 {
        self.units_per_page.divide(units + self.units_per_page.get() - 1)
    }
    /// Page `index` of a block.
    #[inline]
    pub const fn page(&self, block: BlockId, index: u32) -> Ppn {
        Ppn(block.0 * self.pages_per_block.get() + index)
    }
    /// The first unit of a page.
    #[inline]
    pub const fn first_unit(&self, page: Ppn) -> Ppa {
        Ppa(page.0 * self.units_per_page.get())
    }
    /// The first unit of a block.
    #[inline]
    pub const fn first_unit_of_block(&self, block: BlockId) -> Ppa {
        Ppa(block.0 * self.units_per_block.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_agree_with_each_other() {
        let g = Geometry::new(2, 4, 3, 5, 2, 4096);
        assert_eq!((g.blocks(), g.pages(), g.units()), (12, 60, 120));
        assert_eq!((g.channel_of(DieId(3)), g.channel_of(DieId(2))), (ChannelId(1), ChannelId(0)));
        for unit in 0..g.units() {
            let page = g.page_of(Ppa(unit));
            assert_eq!(g.block_of(Ppa(unit)), g.block_of_page(page));
            assert_eq!(g.die_of_page(page), g.die_of(g.block_of_page(page)));
            assert_eq!(g.pages_for(unit), unit.div_ceil(2));
            assert!((g.first_unit(page).0..g.first_unit(page).0 + 2).contains(&unit));
        }
        assert_eq!(g.die_of(BlockId(11)), DieId(3));
        assert_eq!(g.first_unit_of_block(BlockId(1)), Ppa(10));
        assert_eq!(g.page(BlockId(2), 4), Ppn(14));
    }
}
