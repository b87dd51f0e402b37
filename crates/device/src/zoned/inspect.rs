//! Read-only inspection for checkers and reports.

use leyden_buffer::PoolKind;
use leyden_ftl::zoned::{ZoneId, ZoneState};
use leyden_nand::{DieId, Kind, Medium};

use super::ZnsSsd;
use super::dump::Item;
use crate::activity::{Activity, ActivityKind};
use crate::controller::power::PowerSupply;
use crate::conventional::{DumpPageHolds, DumpPageView};
use crate::units::Units;
use crate::{Lba, Payload, PoolFill, Status, ZoneDescriptor, ZoneShape};

impl<P: Payload> ZnsSsd<P> {
    /// The flash, and what lies on it.
    pub const fn medium(&self) -> &Medium<P> {
        self.namespace().ftl.medium()
    }

    /// The pages of the dump that a cut now would begin, in its order; and how many of them each die has room for, the
    /// blocks of zones that go on there included. `None` without `[device.power]`.
    pub fn dump_view(&self) -> Option<(Vec<DumpPageView>, Vec<u32>)> {
        let (supply, namespace) = (self.power()?, self.namespace());
        let to_dump = namespace.pages_to_dump(supply);
        let view = |(item, home): (Item<P>, DieId)| {
            let holds = match item {
                Item::Root => DumpPageHolds::Root,
                Item::Units(units) | Item::Home { units, .. } => {
                    DumpPageHolds::Units(units.into_iter().map(|(lpn, _)| lpn).collect())
                }
            };
            DumpPageView { holds, home }
        };
        let pages = to_dump.items.into_iter().zip(to_dump.homes).map(view).collect();
        let at_home = |die: u32| to_dump.at_home.get(die as usize).copied().unwrap_or(0);
        let blocks = |die| namespace.ftl.dump_blocks(DieId(die)).min(supply.blocks_per_dump());
        let room = |die| blocks(die) * supply.pages_per_block() + at_home(die);
        Some((pages, (0..self.geometry().dies()).map(room).collect()))
    }

    /// Free blocks that a die needs for the dump of a cut; 0 without `[device.power]`.
    pub fn dump_blocks_needed(&self) -> u32 {
        self.power().map_or(0, PowerSupply::blocks_per_dump)
    }

    /// The sizes of zones, and their limits.
    pub const fn zone_shape(&self) -> &ZoneShape {
        self.namespace().ftl.shape()
    }

    /// A zone as a report describes it.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn zone(&self, zone: ZoneId) -> ZoneDescriptor {
        self.namespace().descriptor(zone)
    }

    /// Every zone, in their order, as a report describes it.
    pub fn all_zones(&self) -> Vec<ZoneDescriptor> {
        (0..self.zone_shape().zones).map(|zone| self.zone(ZoneId(zone))).collect()
    }

    /// Sectors of `zone`, from its beginning, that flash or the buffer holds. After a power cut a full zone may hold
    /// less than it has room for: what was not flushed of it.
    pub fn held_sectors(&self, zone: ZoneId) -> u64 {
        u64::from(self.namespace().buffer.end(zone.0)) * self.namespace().unit_sectors()
    }

    /// Zones that are open, and zones that are active, open ones among them.
    pub const fn zone_resources(&self) -> (u32, u32) {
        let zones = self.namespace().ftl.zones();
        (zones.open(), zones.active())
    }

    /// How many zones are in each state, in the order of [`ZoneState::ALL`].
    pub fn zones_in_state(&self) -> [u32; ZoneState::ALL.len()] {
        let mut counts = [0; ZoneState::ALL.len()];
        for (_, zone) in self.namespace().ftl.zones().all() {
            counts[zone.state as usize] += 1;
        }
        counts
    }

    /// How full the buffer is.
    pub fn pool_fill(&self) -> PoolFill {
        let used = |kind| self.namespace().buffer.pool(kind).used();
        PoolFill { protected: used(PoolKind::Protected), plain: used(PoolKind::Plain) }
    }

    /// How large the pools of the buffer are, that of the protected one with the room of Zone Random Write Areas.
    pub fn pool_sizes(&self) -> PoolFill {
        let slots = |kind| self.namespace().buffer.pool(kind).slots();
        PoolFill { protected: slots(PoolKind::Protected), plain: slots(PoolKind::Plain) }
    }

    /// The result of a read of every zone if it took no time: the buffer's content, and flash's for the rest.
    /// Costs a pass over the units, unless there is no content.
    pub fn whole(&self) -> P::ReadData {
        let mut data = P::ReadData::default();
        if !P::STORED {
            return data;
        }
        let namespace = self.namespace();
        let sectors = u64::from(self.mapping_units()) * namespace.unit_sectors();
        let units = Units::new(0, sectors, namespace.unit_sectors());
        for index in 0..units.count() {
            let (zone, unit) = namespace.zone_of(index);
            P::gather(&mut data, units.part(index), &namespace.peek(zone, unit));
        }
        data
    }

    /// Whether a read of these sectors would be carried out now.
    ///
    /// # Errors
    /// The status that it would end with.
    pub fn may_read(&self, lba: Lba, sectors: u32) -> Result<(), Status> {
        self.namespace().readable(lba, sectors).map(drop)
    }

    /// The result of a read of the logical block of `lba` if it took no time; zeroes of an offline zone.
    ///
    /// # Panics
    /// If `lba` is beyond the drive's capacity.
    pub fn newest(&self, lba: Lba) -> P {
        let unit = lba.0 / self.namespace().unit_sectors();
        assert!(unit < u64::from(self.mapping_units()), "{lba:?} is beyond the drive");
        let (zone, unit) = self.namespace().zone_of(unit as u32);
        self.namespace().peek(zone, unit)
    }

    /// The content of everything that holds content, in a fixed order: units of the medium that were written since
    /// their block's erase, of the buffer with its Zone Random Write Areas, and those that copies under way have read.
    /// The drive needs no content elsewhere ([`crate::Controller::in_flight`] apart).
    pub fn contents(&self) -> impl Iterator<Item = &P> {
        let namespace = self.namespace();
        let copies = namespace.copies.values().flatten();
        namespace.ftl.medium().contents().chain(namespace.buffer.contents()).chain(copies)
    }

    /// The activity of each die that is not idle.
    pub fn activity(&self) -> impl Iterator<Item = Activity> + '_ {
        self.namespace().ftl.medium().activity().map(|it| {
            let (kind, address) = match it.operation.kind {
                Kind::HostRead(page) => (ActivityKind::HostRead, page.0),
                Kind::Read(page) => (ActivityKind::OwnRead, page.0),
                Kind::Program(page) => (ActivityKind::HostProgram, page.0),
                Kind::Erase(block) => (ActivityKind::Erase, block.0),
            };
            let (die, channel) = (it.die.index() as u32, it.channel.index() as u32);
            Activity { die, channel, kind, address, phase: it.phase }
        })
    }

    /// Blocks that zones may take without an erase before, of all dies.
    pub fn free_blocks(&self) -> u64 {
        self.namespace().ftl.free_blocks()
    }

    /// The zones that the controller has changed since the last call: the Changed Zone List (log page BFh).
    pub fn take_changed_zones(&mut self) -> Vec<ZoneId> {
        self.namespace_mut().ftl.zones_mut().take_changed()
    }
}

impl<P: Payload> ZnsSsd<P> {
    /// Lets `zone` fail, as if no block were left for it: it is read-only, or offline if it is empty.
    pub fn fail_zone(&mut self, zone: ZoneId) {
        self.namespace_mut().ftl.run_out(zone);
    }
}
