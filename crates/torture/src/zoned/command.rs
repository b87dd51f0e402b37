//! The next command of a zoned drive's host.

use leyden_device::{Command, CopyRange, Lba, SECTOR_BYTES, Stamp, ZoneAction, ZoneFilter};
use leyden_oracle::zones::{ZoneChange, ZoneOracle};
use leyden_sim::{Ratio, Rng};

use super::ZonedOptions;

/// A command in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Pending {
    Write {
        zone: u32,
        stamp: u64,
        first: u32,
        units: u32,
    },
    Append {
        zone: u32,
        stamp: u64,
        units: u32,
    },
    Copy {
        from: u32,
        zone: u32,
        stamp: u64,
        first: u32,
        units: u32,
    },
    Change {
        zone: u32,
        change: ZoneChange,
    },
    /// Open or close.
    Toggle {
        zone: u32,
        action: ZoneAction,
    },
    /// Its promise, and the number of resets of each zone then.
    Flush {
        ends: Vec<u32>,
        resets: Vec<u64>,
    },
    Read {
        zone: u32,
        first: u32,
    },
    /// To all zones: Open, Close or Reset.
    All(ZoneAction),
    /// It changes nothing.
    Inert {
        zone: u32,
    },
    Report {
        zone: u32,
        filter: ZoneFilter,
        partial: bool,
        most: u32,
    },
    /// It must be refused.
    Misuse,
    /// It must be refused unless the zone has become read-only meanwhile.
    Offline {
        zone: u32,
    },
}

/// The host's knowledge of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Slot {
    pub(super) writes: u32,
    pub(super) appends: u32,
    /// Units of the appends under way.
    pub(super) append_units: u32,
    /// Commands that open or close it under way.
    pub(super) toggles: u32,
    /// Of writes under way together, one was not carried out: those behind it have no place.
    pub(super) has_refused: bool,
    /// A change or a read: nothing else meanwhile.
    pub(super) is_busy: bool,
    /// A write has ended well since it was empty, or since the power failed.
    pub(super) is_open: bool,
    pub(super) is_full: bool,
    /// It can't be written any more.
    pub(super) is_dead: bool,
    pub(super) resets: u64,
}

impl Slot {
    pub(super) const fn is_quiet(&self) -> bool {
        self.writes == 0 && self.appends == 0 && !self.is_busy
    }
}

/// Draws commands.
#[derive(Clone, Debug)]
pub(super) struct Host<'a> {
    pub(super) options: &'a ZonedOptions,
    pub(super) rng: Rng,
    /// Copies come from a stream of their own: what seeds draw otherwise stays.
    pub(super) copies: Rng,
    /// The same of commands that a host of zones seldom sends.
    pub(super) others: Rng,
    pub(super) slots: Vec<Slot>,
    /// Units from a zone to the next, and of what can be written of it.
    pub(super) size: u32,
    pub(super) capacity: u32,
    pub(super) append_limit: u32,
    pub(super) zrwa: (u32, u32),
    pub(super) has_region: bool,
    pub(super) keeps_all: bool,
}

impl Host<'_> {
    pub(super) fn lba(&self, zone: u32, unit: u32) -> Lba {
        let unit_sectors = self.options.device.ftl.mapping_unit.get() / SECTOR_BYTES;
        Lba((u64::from(zone) * u64::from(self.size) + u64::from(unit)) * unit_sectors)
    }

    pub(super) fn sectors(&self, units: u32) -> u32 {
        units * (self.options.device.ftl.mapping_unit.get() / SECTOR_BYTES) as u32
    }

    /// A read of units of a zone.
    pub(super) fn read(&self, zone: u32, first: u32, units: u32) -> Command<Stamp> {
        Command::read(self.lba(zone, first), self.sectors(units))
    }

    /// The next command; `None` if it would be one that a careful host does not send now.
    pub(super) fn next(&mut self, oracle: &mut ZoneOracle) -> Option<(Command<Stamp>, Pending)> {
        if self.copies.chance(self.options.copies)
            && let Some(copy) = self.copy(oracle)
        {
            return Some(copy);
        }
        if self.others.chance(self.options.others)
            && let Some(other) = self.other(oracle)
        {
            return Some(other);
        }
        let zone = self.rng.below(u64::from(self.options.zones)) as u32;
        let what = self.rng.below(100);
        if what < 4 {
            let resets = self.slots.iter().map(|slot| slot.resets).collect();
            return Some((Command::flush(), Pending::Flush { ends: oracle.flush(), resets }));
        }
        let slot = self.slots[zone as usize];
        if slot.is_busy || slot.is_dead {
            return None;
        }
        match what {
            4..10 => self.change(zone, what, oracle),
            10..14 => {
                let action =
                    if self.rng.below(2) == 0 { ZoneAction::Open } else { ZoneAction::Close };
                self.slots[zone as usize].toggles += 1;
                Some((Command::zone(action, self.lba(zone, 0)), Pending::Toggle { zone, action }))
            }
            14..17 => Some(self.misuse(zone, oracle)),
            17..27 => self.look(zone),
            _ if oracle.area(zone).is_some() => self.in_area(zone, oracle),
            27..50 => self.append(zone, oracle),
            _ => self.write(zone, oracle),
        }
    }

    fn flags(&mut self) -> (bool, bool) {
        let plp = self.has_region && self.rng.chance(self.options.plp);
        (plp, self.rng.chance(self.options.fua))
    }

    fn units(&mut self, most: u32) -> u32 {
        1 + self.rng.below(u64::from(self.options.largest.min(most).max(1))) as u32
    }

    fn write(&mut self, zone: u32, oracle: &mut ZoneOracle) -> Option<(Command<Stamp>, Pending)> {
        let slot = &self.slots[zone as usize];
        let first = oracle.submitted(zone);
        let waits = slot.writes > 0 && !slot.is_open;
        if slot.appends > 0 || waits || slot.is_full || first >= self.capacity {
            return None;
        }
        let units = self.units(self.capacity - first).min(self.capacity - first);
        let (plp, fua) = self.flags();
        let stamp = oracle.write(zone, Some(first), units, plp || fua || self.keeps_all);
        let slot = &mut self.slots[zone as usize];
        slot.has_refused &= slot.writes > 0;
        slot.writes += 1;
        let command = Command::write(self.lba(zone, first), self.sectors(units), stamp);
        Some((command.plp(plp).fua(fua), Pending::Write { zone, stamp, first, units }))
    }

    fn append(&mut self, zone: u32, oracle: &mut ZoneOracle) -> Option<(Command<Stamp>, Pending)> {
        let slot = &self.slots[zone as usize];
        if slot.writes > 0 || slot.is_full {
            return None;
        }
        let units = self.units(self.append_limit).min(self.append_limit);
        let (plp, fua) = self.flags();
        let stamp = oracle.write(zone, None, units, plp || fua || self.keeps_all);
        let slot = &mut self.slots[zone as usize];
        slot.appends += 1;
        slot.append_units += units;
        let command = Command::zone_append(self.lba(zone, 0), self.sectors(units), stamp);
        Some((command.plp(plp).fua(fua), Pending::Append { zone, stamp, units }))
    }

    /// A copy of some ranges of a zone to the end of another, or of the same. Nothing else is under way in either.
    fn copy(&mut self, oracle: &mut ZoneOracle) -> Option<(Command<Stamp>, Pending)> {
        let zones = u64::from(self.options.zones);
        let rng = &mut self.copies;
        let (from, zone) = (rng.below(zones) as u32, rng.below(zones) as u32);
        let (source, to) = (self.slots[from as usize], self.slots[zone as usize]);
        let first = oracle.submitted(zone);
        if !source.is_quiet() || !to.is_quiet() || to.is_dead || to.is_full {
            return None;
        }
        if oracle.area(from).is_some() || oracle.area(zone).is_some() || first >= self.capacity {
            return None;
        }
        let mut content = Vec::new();
        let mut ranges = Vec::new();
        for _ in 0..=rng.below(3) {
            let at = rng.below(u64::from(self.capacity)) as u32;
            let most = (self.capacity - first - content.len() as u32).min(self.options.largest);
            let found = oracle.content(from, at, 1 + rng.below(u64::from(most.max(1))) as u32);
            let found = &found[..found.len().min(most as usize)];
            if !found.is_empty() {
                ranges.push((at, found.len() as u32));
                content.extend_from_slice(found);
            }
        }
        let plp = self.has_region && rng.chance(self.options.plp);
        let fua = rng.chance(self.options.fua);
        let range =
            |(at, units)| CopyRange { lba: self.lba(from, at), sectors: self.sectors(units) };
        let ranges: Vec<CopyRange> = ranges.into_iter().map(range).collect();
        if ranges.is_empty() {
            return None;
        }
        let units = content.len() as u32;
        let stamp = oracle.copy(zone, first, &content, plp || fua || self.keeps_all);
        let command = Command::copy(self.lba(zone, first), ranges).plp(plp).fua(fua);
        self.slots[from as usize].is_busy = true;
        let to = &mut self.slots[zone as usize];
        to.is_busy = true;
        to.writes += 1;
        Some((command, Pending::Copy { from, zone, stamp, first, units }))
    }

    /// A write in the zone's area, one at a time.
    fn in_area(&mut self, zone: u32, oracle: &mut ZoneOracle) -> Option<(Command<Stamp>, Pending)> {
        if !self.slots[zone as usize].is_quiet() {
            return None;
        }
        let wp = oracle.area(zone)?;
        let (size, _) = self.zrwa;
        let limit = (wp + 2 * size).min(self.capacity);
        let first = wp + self.rng.below(u64::from(limit - wp)) as u32;
        let units = self.units(limit - first).min(limit - first);
        let stamp = oracle.write(zone, Some(first), units, true);
        self.slots[zone as usize].writes += 1;
        let command = Command::write(self.lba(zone, first), self.sectors(units), stamp);
        Some((command, Pending::Write { zone, stamp, first, units }))
    }

    fn change(
        &mut self,
        zone: u32,
        what: u64,
        oracle: &mut ZoneOracle,
    ) -> Option<(Command<Stamp>, Pending)> {
        let slot = &self.slots[zone as usize];
        if !slot.is_quiet() {
            return None;
        }
        let (lba, area) = (self.lba(zone, 0), oracle.area(zone));
        let is_empty = oracle.submitted(zone) == 0 && !slot.is_full && area.is_none();
        let (command, change) = match what {
            4 | 5 => (Command::zone(ZoneAction::Reset, lba), ZoneChange::Reset),
            6 => (Command::zone(ZoneAction::Finish, lba), ZoneChange::Finish),
            _ if self.zrwa.0 > 0 && is_empty => {
                (Command::zone(ZoneAction::Open, lba).zrwa(true), ZoneChange::OpenWithArea)
            }
            _ => {
                let (wp, (size, step)) = (area?, self.zrwa);
                let most = size.min(self.capacity - wp) / step;
                if most == 0 {
                    return None;
                }
                let end = wp + step * (1 + self.rng.below(u64::from(most)) as u32);
                let command = Command::zone(ZoneAction::FlushZrwa, self.lba(zone, end - 1));
                (command, ZoneChange::Commit(end))
            }
        };
        oracle.change(zone, change);
        self.slots[zone as usize].is_busy = true;
        Some((command, Pending::Change { zone, change }))
    }

    fn look(&mut self, zone: u32) -> Option<(Command<Stamp>, Pending)> {
        if !self.slots[zone as usize].is_quiet() {
            return None;
        }
        let first = self.rng.below(u64::from(self.capacity)) as u32;
        let units = (1 + self.rng.below(16) as u32).min(self.capacity - first);
        self.slots[zone as usize].is_busy = true;
        Some((self.read(zone, first, units), Pending::Read { zone, first }))
    }

    /// A command that must be refused, and change nothing.
    fn misuse(&mut self, zone: u32, oracle: &ZoneOracle) -> (Command<Stamp>, Pending) {
        let beyond = self.capacity + 1;
        let command = match self.rng.below(5) {
            // Beyond what is written, whatever of it has arrived.
            0 if oracle.area(zone).is_none() && oracle.submitted(zone) + beyond < self.size => {
                Command::write(self.lba(zone, self.size - 1), self.sectors(1), 0)
            }
            1 => Command::write(self.lba(zone, 0), 1, 0),
            2 => Command::zone(ZoneAction::Reset, self.lba(zone, 1)),
            3 => Command::zone_append(self.lba(zone, 1), self.sectors(1), 0),
            _ => Command::zone_append(self.lba(zone, 0), self.sectors(self.append_limit + 1), 0),
        };
        (command, Pending::Misuse)
    }

    /// Whether to do something of this share.
    pub(super) fn chance(&mut self, share: Ratio) -> bool {
        self.rng.chance(share)
    }
}
