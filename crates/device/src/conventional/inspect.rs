//! Read-only inspection for checkers.

use leyden_buffer::PoolKind;
use leyden_nand::{DieId, Interrupted, Lpn, Medium, Ppa};

use super::commands::newest;
use super::{Item, Ssd};
use crate::atomic::Atomicity;
use crate::controller::power::PowerSupply;
use crate::lba::SECTOR_BYTES;
use crate::{BlockDevice, Lba, Payload, PoolFill, Units};

/// A page of the dump that a cut would write, for checkers that work out for themselves how far it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpPageView {
    /// The contents of the page.
    pub holds: DumpPageHolds,
    /// The die that its address names.
    pub home: DieId,
}

/// The contents of a page of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpPageHolds {
    /// A part of the root.
    Root,
    /// Units of the host's data.
    Units(Vec<Lpn>),
    /// A mapping page: its entries, from the first up to, not including, the second.
    Map(Lpn, Lpn),
    /// A page of the mapping table's journal.
    Journal,
}

impl<P: Payload> Ssd<P> {
    /// The flash, and what lies on it.
    pub const fn medium(&self) -> &Medium<P> {
        self.namespace().ftl.medium()
    }

    /// The writes that are atomic, if not only those of a mapping unit.
    pub const fn atomicity(&self) -> Option<Atomicity> {
        self.namespace().atomic
    }

    /// How full the buffer is.
    pub fn pool_fill(&self) -> PoolFill {
        let buffer = self.namespace().buffer();
        let used = |kind| buffer.slots(kind) - buffer.room(kind);
        PoolFill { protected: used(PoolKind::Protected), plain: used(PoolKind::Plain) }
    }

    /// How large the pools of the buffer are.
    pub fn pool_sizes(&self) -> PoolFill {
        let slots = |kind| self.namespace().buffer().slots(kind);
        PoolFill { protected: slots(PoolKind::Protected), plain: slots(PoolKind::Plain) }
    }

    /// Pages of the mapping table that are dirty now, and how many may be.
    pub fn dirty_map_pages(&self) -> (u32, u32) {
        let store = self.namespace().ftl().store();
        (store.dirty(), store.limit())
    }

    /// The pages of the dump that a cut now would begin, in its order, if of what is on its way what
    /// `ended` says gets to its end; and how many of them each die has room for. `None` without
    /// `[device.power]`.
    pub fn dump_view(
        &self,
        ended: &dyn Fn(&Interrupted) -> bool,
    ) -> Option<(Vec<DumpPageView>, Vec<u32>)> {
        let supply = self.power()?;
        let ftl = &self.namespace().ftl;
        let to_dump = self.namespace().pages_to_dump(supply, ended);
        let view = |(item, home): (Item<P>, DieId)| {
            let holds = match item {
                Item::Root => DumpPageHolds::Root,
                Item::Units(units) => {
                    DumpPageHolds::Units(units.into_iter().map(|(lpn, _)| lpn).collect())
                }
                Item::Map(page) => {
                    let (first, end) = ftl.map().lpns_of(page);
                    DumpPageHolds::Map(first, end)
                }
                Item::Journal(_) => DumpPageHolds::Journal,
            };
            DumpPageView { holds, home }
        };
        let pages = to_dump.items.into_iter().zip(to_dump.homes).map(view).collect();
        let blocks = |die| ftl.dump_blocks(DieId(die)).min(supply.blocks_per_dump());
        let room = |die| blocks(die) * supply.pages_per_block();
        Some((pages, (0..self.geometry().dies()).map(room).collect()))
    }

    /// Where the map says that each mapping unit lies, in order.
    pub fn places(&self) -> impl Iterator<Item = Option<Ppa>> + '_ {
        (0..self.mapping_units()).map(|unit| self.namespace().ftl.map().get(Lpn(unit)))
    }

    /// Free blocks that a die needs for the dump of a cut; 0 without `[device.power]`.
    pub fn dump_blocks_needed(&self) -> u32 {
        self.power().map_or(0, PowerSupply::blocks_per_dump)
    }

    /// Free blocks of each die that data may have.
    pub fn free_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        let dies = self.geometry().dies();
        (0..dies).map(|die| self.namespace().ftl.blocks().free(DieId(die)))
    }

    /// The content that the map points to for the mapping unit of `lba`, without the buffer:
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

    /// The result of a read of the mapping unit of `lba` if it took no time.
    ///
    /// # Panics
    /// If `lba` is beyond the drive's capacity.
    pub fn newest(&self, lba: Lba) -> P {
        let unit = lba.0 * SECTOR_BYTES / u64::from(self.geometry().unit_bytes());
        assert!(unit < u64::from(self.mapping_units()), "{lba:?} is beyond the drive");
        newest(self.namespace().buffer(), self.namespace().ftl(), Lpn(unit as u32))
    }

    /// The content of everything that holds content, in a fixed order: units of the medium that were written since
    /// their block's erase, and slots of the buffer, also those that nothing points to any more. What lies elsewhere
    /// ([`crate::Controller::in_flight`] apart) is of no use to the drive.
    pub fn contents(&self) -> impl Iterator<Item = &P> {
        self.namespace().ftl().contents().chain(self.namespace().buffer().contents())
    }

    /// The result of a read of the whole drive if it took no time: the buffer's content, and
    /// flash's for the rest. Costs a pass over the units, unless there is no content.
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
