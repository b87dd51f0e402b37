//! Causes of what a zoned drive refuses: the blocks of its flash, and the host's own count of its zones.
//!
//! **Invariants**: the drive is not asked. Blocks are counted on the flash; zones that may be active, open or have a
//! Zone Random Write Area are those for which the host has sent a command that makes them so.

use std::collections::BTreeSet;

use leyden_device::{Payload, ZnsSsd, ZoneAction};
use leyden_nand::{BlockId, DieId, Health, PageKind, Ppa};
use leyden_oracle::zones::ZoneChange;

use super::command::Pending;

/// Zones, a bit for each, that may take resources of the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ZoneResources {
    /// Open or closed.
    pub(super) active: u64,
    /// Opened by a command: the controller does not close them.
    pub(super) open: u64,
    /// With a Zone Random Write Area.
    pub(super) areas: u64,
}

const fn bit(zone: u32) -> u64 {
    1 << zone
}

impl ZoneResources {
    /// The resources that `pending` may take, once it has arrived.
    pub(super) const fn by(pending: &Pending) -> Self {
        let (zone, open, area) = match pending {
            Pending::Write { zone, .. }
            | Pending::Append { zone, .. }
            | Pending::Copy { zone, .. } => (*zone, false, false),
            Pending::Change { zone, change: ZoneChange::OpenWithArea } => (*zone, true, true),
            Pending::Toggle { zone, action: ZoneAction::Open } => (*zone, true, false),
            _ => return Self { active: 0, open: 0, areas: 0 },
        };
        Self {
            active: bit(zone),
            open: if open { bit(zone) } else { 0 },
            areas: if area { bit(zone) } else { 0 },
        }
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.active |= other.active;
        self.open |= other.open;
        self.areas |= other.areas;
    }

    /// Every active zone may be opened by a command.
    pub(super) const fn all_opened(&mut self) {
        self.open |= self.active;
    }

    /// `zone` is known to take nothing.
    pub(super) const fn release(&mut self, zone: u32) {
        self.active &= !bit(zone);
        self.open &= !bit(zone);
        self.areas &= !bit(zone);
    }

    /// `zone` is known not to be open.
    pub(super) const fn closed(&mut self, zone: u32) {
        self.open &= !bit(zone);
    }

    /// The state of `zone` after a power cut.
    pub(super) const fn recovered(&mut self, zone: u32, is_active: bool, has_area: bool) {
        self.release(zone);
        if is_active {
            self.active |= bit(zone);
        }
        if has_area {
            self.areas |= bit(zone);
        }
    }

    pub(super) const fn has(self, zone: u32) -> bool {
        self.active & bit(zone) != 0
    }

    /// Zones that may be active.
    pub(super) const fn active_zones(self) -> u32 {
        self.active.count_ones()
    }
}

/// True if writes may fail for want of blocks: some have gone bad, and few are left.
pub(crate) fn lacks_blocks<P: Payload>(ssd: &ZnsSsd<P>, zones: u32) -> bool {
    has_lost_blocks(ssd) && has_few_blocks(ssd, zones)
}

/// True if no more blocks are erased than are kept back for two dumps, and `zones` zones that are written may have been
/// given.
pub(super) fn has_few_blocks<P: Payload>(ssd: &ZnsSsd<P>, zones: u32) -> bool {
    let erased: u32 = dies(ssd).map(|die| erased(ssd, die)).sum();
    let kept = 2 * ssd.geometry().dies() * ssd.dump_blocks_needed();
    erased <= kept + zones * blocks_of_zone(ssd)
}

/// The part of a zone on flash.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct OnFlash {
    /// The blocks that hold some of it.
    blocks: u32,
    /// Pages of these that are written.
    pages: u32,
    pub(super) units: u32,
}

/// The part of each of the first `zones` zones on flash. Blocks that are to be erased count as
/// well: a drive that is short of blocks has none.
pub(super) fn on_flash<P: Payload>(ssd: &ZnsSsd<P>, zones: u32) -> Vec<OnFlash> {
    let (medium, geometry, size) = (ssd.medium(), ssd.geometry(), ssd.zone_shape().size);
    let mut found = vec![OnFlash::default(); zones as usize];
    let mut seen = BTreeSet::new();
    let holds_data = |&block: &BlockId| {
        medium.used_for(block).is_some_and(|it| it.kind == PageKind::Data)
            && !medium.is_poisoned(block)
    };
    for block in (0..geometry.blocks()).map(BlockId).filter(holds_data) {
        let first = geometry.first_unit_of_block(block).0;
        let units = (first..first + geometry.units_per_block()).map(Ppa);
        let mut zone = None;
        for lpn in units.filter_map(|unit| medium.lpn(unit)) {
            zone = Some(lpn.0 / size);
            if seen.insert(lpn)
                && let Some(it) = found.get_mut((lpn.0 / size) as usize)
            {
                it.units += 1;
            }
        }
        if let Some(it) = zone.and_then(|zone| found.get_mut(zone as usize)) {
            it.blocks += 1;
            it.pages += medium.written_pages(block);
        }
    }
    found
}

impl OnFlash {
    /// True if the zone takes more pages than one has whose pages are all full, or will. A FLUSH, or a write with FUA, that
    /// finds part of a page pads it, and a program that fails or is broken off takes a page. A zone of several dies, some of
    /// which had no block when it began, takes blocks of all of them for the rest, however little that is: at most one less
    /// than it has dies above its share, for without the last of each it had less than its share.
    pub(super) fn exceeds_its_share<P: Payload>(self, ssd: &ZnsSsd<P>) -> bool {
        let (geometry, share) = (ssd.geometry(), blocks_of_zone(ssd));
        let left = ssd.zone_shape().capacity.saturating_sub(self.units);
        let pages = self.pages + geometry.pages_for(left);
        let above = self.blocks.saturating_sub(share);
        let is_uneven = (1..ssd.zone_shape().dies_per_zone).contains(&above);
        is_uneven || pages > share * geometry.pages_per_block()
    }

    /// Blocks of a die that the zone has at most been given for what flash does not hold of its capacity.
    pub(super) fn most_unbegun<P: Payload>(self, ssd: &ZnsSsd<P>) -> u32 {
        let (geometry, shape) = (ssd.geometry(), ssd.zone_shape());
        let pages = geometry.pages_for(shape.capacity.saturating_sub(self.units));
        pages.div_ceil(geometry.pages_per_block() * shape.dies_per_zone.max(1))
    }
}

fn blocks_of_zone<P: Payload>(ssd: &ZnsSsd<P>) -> u32 {
    let (geometry, shape) = (ssd.geometry(), ssd.zone_shape());
    let blocks = shape.capacity.div_ceil(geometry.units_per_block());
    blocks.next_multiple_of(shape.dies_per_zone)
}

/// True if a block of the flash is not as it was made.
pub(crate) fn has_lost_blocks<P: Payload>(ssd: &ZnsSsd<P>) -> bool {
    let mut blocks = (0..ssd.geometry().blocks()).map(BlockId);
    blocks.any(|block| ssd.medium().health(block) != Health::Good)
}

/// Blocks of each die that `zones` open zones may have been given.
pub(super) fn blocks_of_zones<P: Payload>(ssd: &ZnsSsd<P>, zones: u32) -> u32 {
    zones * (blocks_of_zone(ssd) / ssd.zone_shape().dies_per_zone.max(1))
}

/// True if some die has lost blocks, and fewer of its others are erased than a dump may need beside `of_zones`, which zones
/// may have been given.
pub(super) fn lacks_dump_room<P: Payload>(ssd: &ZnsSsd<P>, of_zones: u32) -> bool {
    let needed = ssd.dump_blocks_needed() + of_zones;
    dies(ssd).any(|die| {
        let is_bad = |block| ssd.medium().health(block) != Health::Good;
        blocks_of(ssd, die).any(is_bad) && erased(ssd, die) < needed
    })
}

fn dies<P: Payload>(ssd: &ZnsSsd<P>) -> impl Iterator<Item = DieId> {
    (0..ssd.geometry().dies()).map(DieId)
}

fn blocks_of<P: Payload>(ssd: &ZnsSsd<P>, die: DieId) -> impl Iterator<Item = BlockId> {
    let geometry = *ssd.geometry();
    (0..geometry.blocks()).map(BlockId).filter(move |&block| geometry.die_of(block) == die)
}

/// Good blocks of a die that hold nothing.
fn erased<P: Payload>(ssd: &ZnsSsd<P>, die: DieId) -> u32 {
    let medium = ssd.medium();
    let is_erased = |&block: &BlockId| {
        medium.health(block) == Health::Good
            && medium.used_for(block).is_none()
            && !medium.is_poisoned(block)
    };
    blocks_of(ssd, die).filter(is_erased).count() as u32
}

/// The numbers behind a cause, for messages.
pub(super) fn state_of_flash<P: Payload>(ssd: &ZnsSsd<P>) -> String {
    let erased: Vec<u32> = dies(ssd).map(|die| erased(ssd, die)).collect();
    let blocks = (0..ssd.geometry().blocks()).map(BlockId);
    let lost = blocks.filter(|&it| ssd.medium().health(it) != Health::Good).count();
    let kept = ssd.dump_blocks_needed();
    format!(
        "{lost} blocks have gone bad, {erased:?} are erased on the dies, and a dump may take {kept} of each"
    )
}
