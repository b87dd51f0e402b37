//! Checks that what a zoned drive refuses, or gives up, has a cause.

use leyden_device::{Completion, Stamp, Status, ZoneAction, ZoneId, ZoneState};
use leyden_oracle::zones::ZoneChange;

use super::cause::{
    OnFlash, ZoneResources, blocks_of_zones, has_few_blocks, has_lost_blocks, lacks_dump_room,
    on_flash, state_of_flash,
};
use super::command::{Host, Pending};
use super::run::{Runner, Trouble};
use crate::Kind;

impl Runner<'_> {
    /// A zone that cannot be written any more needs a cause when it becomes so.
    pub(super) fn check_zones(&mut self) -> Result<(), Trouble> {
        let states = self.drive.zones_in_state();
        let dead = states[ZoneState::ReadOnly as usize] + states[ZoneState::Offline as usize];
        let before = std::mem::replace(&mut self.dead, dead);
        let changed = self.drive.take_changed_zones();
        if changed.len() as u32 > dead.saturating_sub(before) {
            let message = format!("the list of changed zones names {changed:?}: {states:?}");
            return Err(Trouble { kind: Kind::Zone, message });
        }
        for zone in changed {
            if let Some(slot) = self.host.slots.get_mut(zone.0 as usize) {
                slot.is_dead = true;
            }
        }
        if dead <= before || self.may_fault() {
            return Ok(());
        }
        let message = format!(
            "{} zones cannot be written any more: {}",
            dead - before,
            state_of_flash(&self.drive)
        );
        Err(Trouble { kind: Kind::Fault, message })
    }

    /// True if the drive lacks blocks for the zones that are written: some have gone bad, or zones take more than their share.
    /// A zone may have been given blocks while it is active, or has data that is not on flash.
    fn may_fault(&self) -> bool {
        let found = on_flash(&self.drive, self.options.zones);
        let is_buffered = |&(zone, on_flash): &(u32, &OnFlash)| {
            self.oracle.submitted(zone) > on_flash.units || self.held.has(zone)
        };
        let given = (0..).zip(&found).filter(is_buffered).count() as u32;
        has_few_blocks(&self.drive, given + 1)
            && (has_lost_blocks(&self.drive)
                || found.iter().any(|zone| zone.exceeds_its_share(&self.drive)))
    }

    /// A drive that can only be read has a die without room for a dump.
    pub(super) fn check_read_only(&self) -> Result<(), Trouble> {
        if !self.drive.is_read_only() || self.lacks_dump_room() {
            return Ok(());
        }
        let message = format!(
            "the drive can only be read: {}; full zones may hold {} of each; zones by state: {:?}",
            state_of_flash(&self.drive),
            self.held_by_full_zones(),
            self.drive.zones_in_state()
        );
        Err(Trouble { kind: Kind::Fault, message })
    }

    /// A command that had to be refused, and was not.
    pub(super) fn not_refused(end: &Completion<Stamp>) -> Trouble {
        let message = format!("{:?} must be refused, and was not", end.op);
        Trouble { kind: Kind::Status, message }
    }

    /// A dump needs blocks beside those that active zones may have been given, and those that full zones still hold.
    fn lacks_dump_room(&self) -> bool {
        let of_active = blocks_of_zones(&self.drive, self.held.active_zones());
        lacks_dump_room(&self.drive, of_active + self.held_by_full_zones())
    }

    /// Blocks of a die that full zones may hold and have not begun: a zone whose content is not all on flash, as after a cut
    /// whose dump recovery puts back, gives them back once it is.
    fn held_by_full_zones(&self) -> u32 {
        let found = on_flash(&self.drive, self.options.zones);
        let is_put_back = |&(zone, on_flash): &(u32, &OnFlash)| {
            let slot = &self.host.slots[zone as usize];
            slot.is_full
                && !slot.is_dead
                && !self.held.has(zone)
                && self.oracle.submitted(zone) > on_flash.units
        };
        let zones = (0..).zip(&found).filter(is_put_back);
        zones.map(|(_, on_flash)| on_flash.most_unbegun(&self.drive)).sum()
    }

    /// Whether `pending` may end with `status`; `during` are the zones that took resources while it was under way.
    pub(super) fn check_status(
        &self,
        pending: &Pending,
        status: Status,
        during: ZoneResources,
    ) -> Result<(), Trouble> {
        if status == Status::Success && self.host.is_beyond_copies(pending) {
            let message = format!("{pending:?} is beyond the copies' limit, and was not refused");
            return Err(Trouble { kind: Kind::Status, message });
        }
        let is_misuse = matches!(pending, Pending::Misuse | Pending::Offline { .. });
        if status == Status::Success || is_misuse {
            return Ok(());
        }
        let is_write = pending.is_write();
        let is_change = matches!(pending, Pending::Change { .. });
        let kind = if status == Status::WriteFault { Kind::Fault } else { Kind::Status };
        let zone = pending.zone();
        let may_end = match status {
            Status::WriteFault => {
                let may_fail = is_write || is_change || matches!(pending, Pending::Flush { .. });
                // A drive that can only be read changes no zone: it could not dump the zone table.
                let is_read_only = self.drive.is_read_only() && self.lacks_dump_room();
                may_fail && self.may_fault() || is_read_only && pending.changes_zones()
            }
            Status::TooManyOpenZones if *pending == Pending::All(ZoneAction::Open) => {
                during.active_zones() > self.drive.zone_shape().max_open
            }
            _ => zone.is_some_and(|zone| self.may_refuse(zone, pending, status, during)),
        };
        if may_end {
            return Ok(());
        }
        let message = format!(
            "{pending:?} ended with {status:?}, and nothing requires it: {}; zones that may take resources: \
             {during:x?}; {:?}",
            state_of_flash(&self.drive),
            zone.map(|zone| self.host.slots[zone as usize])
        );
        Err(Trouble { kind, message })
    }

    /// Whether a command to `zone` may be refused with `status`.
    fn may_refuse(
        &self,
        zone: u32,
        pending: &Pending,
        status: Status,
        during: ZoneResources,
    ) -> bool {
        let (shape, slot) = (self.drive.zone_shape(), &self.host.slots[zone as usize]);
        let others = |zones: u64| (zones & !(1 << zone)).count_ones();
        let is_write = pending.is_write();
        let is_append = matches!(pending, Pending::Append { .. });
        let state = self.drive.zone(ZoneId(zone)).state;
        let is_dead = matches!(state, ZoneState::ReadOnly | ZoneState::Offline);
        let takes = ZoneResources::by(pending);
        // Appends under way take up room in an order that the host does not know.
        let end = self.oracle.submitted(zone) + slot.append_units;
        match status {
            Status::ZoneReadOnly => is_write && state == ZoneState::ReadOnly,
            Status::ZoneOffline => state == ZoneState::Offline,
            Status::ZoneInvalidTransition => is_dead || matches!(pending, Pending::Toggle { .. }),
            Status::TooManyActiveZones => {
                takes != ZoneResources::default() && others(during.active) >= shape.max_active
            }
            Status::TooManyOpenZones => {
                let opens = is_write || takes != ZoneResources::default() || pending.is_commit();
                opens && others(during.open) >= shape.max_open
            }
            Status::ZrwaUnavailable => {
                pending.is_change(ZoneChange::OpenWithArea)
                    && others(during.areas) >= shape.zrwa_count
            }
            // A command has opened it before.
            Status::ZoneInvalidOperation => {
                pending.is_change(ZoneChange::OpenWithArea) && during.has(zone)
            }
            Status::ZoneFull => is_append && (slot.is_full || end >= self.host.capacity),
            Status::ZoneBoundary => is_append && end > self.host.capacity,
            // An append may be longer than the last zone.
            Status::LbaOutOfRange => {
                let first = u64::from(zone) * u64::from(shape.size);
                let end = first + u64::from(pending.append_units());
                is_append && end > u64::from(shape.zones) * u64::from(shape.size)
            }
            Status::SizeLimit => self.host.is_beyond_copies(pending),
            Status::ZoneInvalidWrite => is_write && !is_append && slot.has_refused,
            Status::SequenceError => is_write && self.host.refuses_above_plain(),
            _ => false,
        }
    }
}

impl Pending {
    const fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Append { .. } | Self::Copy { .. })
    }

    const fn changes_zones(&self) -> bool {
        !matches!(self, Self::Read { .. } | Self::Report { .. } | Self::Flush { .. })
    }

    fn is_change(&self, of: ZoneChange) -> bool {
        matches!(self, Self::Change { change, .. } if *change == of)
    }

    const fn append_units(&self) -> u32 {
        if let Self::Append { units, .. } = self { *units } else { 0 }
    }

    const fn is_commit(&self) -> bool {
        matches!(self, Self::Change { change: ZoneChange::Commit(_), .. })
    }

    const fn zone(&self) -> Option<u32> {
        match self {
            Self::Write { zone, .. }
            | Self::Append { zone, .. }
            | Self::Copy { zone, .. }
            | Self::Change { zone, .. }
            | Self::Toggle { zone, .. }
            | Self::Read { zone, .. }
            | Self::Inert { zone } => Some(*zone),
            Self::Flush { .. }
            | Self::All(_)
            | Self::Report { .. }
            | Self::Misuse
            | Self::Offline { .. } => None,
        }
    }
}

impl Host<'_> {
    /// A copy of more than the configuration allows: what the drive says of itself is not asked.
    fn is_beyond_copies(&self, pending: &Pending) -> bool {
        let device = &self.options.device;
        let limit = device.zoned.as_ref().map_or(0, |zoned| zoned.copy_limit.get());
        let unit_bytes = device.ftl.mapping_unit.get();
        matches!(pending, Pending::Copy { units, .. } if u64::from(*units) * unit_bytes > limit)
    }

    /// A protected write above unprotected data of its zone may be refused.
    fn refuses_above_plain(&self) -> bool {
        let buffer = &self.options.device.buffer;
        buffer.region == leyden_buffer::Region::Selective
            && buffer.zones.below_protected == leyden_buffer::zoned::BelowProtected::Refuse
    }
}
