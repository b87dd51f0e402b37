//! The rest of the command set: what a host of zones seldom sends.

use leyden_device::{Action, Command, Hint, Stamp, ZoneAction, ZoneFilter, ZoneReport, ZoneState};
use leyden_oracle::zones::ZoneOracle;

use super::command::{Host, Pending};

impl Host<'_> {
    /// A command that changes no data, or must be refused; or a reset of all zones.
    pub(super) fn other(&mut self, oracle: &mut ZoneOracle) -> Option<(Command<Stamp>, Pending)> {
        let zone = self.others.below(u64::from(self.options.zones)) as u32;
        let unit = self.others.below(u64::from(self.capacity)) as u32;
        let (lba, start) = (self.lba(zone, unit), self.lba(zone, 0));
        let sectors = self.sectors(1);
        let slot = self.slots[zone as usize];
        let misuse = |command| Some((command, Pending::Misuse));
        match self.others.below(12) {
            0 => Some((Command::trim(lba, sectors), Pending::Inert { zone })),
            1 => {
                let hints = Hint::covering(lba, sectors);
                Some((Command::write_prepare(hints), Pending::Inert { zone }))
            }
            2 | 3 => {
                let (filter, partial) = self.filter();
                let most = 1 + self.others.below(4) as u32;
                let action = Action::ZoneReport { lba, filter, partial, most };
                Some((action.into(), Pending::Report { zone, filter, partial, most }))
            }
            4 => Some((Command::all_zones(ZoneAction::Close), Pending::All(ZoneAction::Close))),
            5 => Some((Command::all_zones(ZoneAction::Open), Pending::All(ZoneAction::Open))),
            6 => {
                let is_quiet = self.slots.iter().all(|it| it.is_quiet() && it.toggles == 0);
                is_quiet.then(|| {
                    for zone in 0..self.options.zones {
                        oracle.change(zone, leyden_oracle::zones::ZoneChange::Reset);
                        self.slots[zone as usize].is_busy = true;
                    }
                    let command = Command::all_zones(ZoneAction::Reset);
                    (command, Pending::All(ZoneAction::Reset))
                })
            }
            // Only a zone that is read-only can be taken offline.
            7 if !slot.is_dead => {
                Some((Command::zone(ZoneAction::Offline, start), Pending::Offline { zone }))
            }
            8 => misuse(Command::zone(ZoneAction::Write, start)),
            9 if self.options.device.zoned.as_ref()?.descriptor_extension.get() == 0 => {
                let data = vec![1; 64].into_boxed_slice();
                misuse(Action::ZoneExtension { lba: start, data }.into())
            }
            10 | 11 => self.write_zeroes(zone, oracle),
            _ => None,
        }
    }

    /// Write Zeroes where the next write would go. It has no data to wait for, and would overtake writes under way.
    fn write_zeroes(
        &mut self,
        zone: u32,
        oracle: &mut ZoneOracle,
    ) -> Option<(Command<Stamp>, Pending)> {
        let slot = &self.slots[zone as usize];
        let first = oracle.submitted(zone);
        let waits = !slot.is_quiet();
        let is_over = slot.is_dead || slot.is_full || first >= self.capacity;
        // Zones with holes are judged unit by unit, and not by where they end.
        if waits || is_over || oracle.had_area(zone) {
            return None;
        }
        let most = self.options.largest.min(self.capacity - first).max(1);
        let units = 1 + self.others.below(u64::from(most)) as u32;
        let fua = self.others.chance(self.options.fua);
        let stamp = oracle.write_zeroes(zone, first, units, fua || self.keeps_all);
        let slot = &mut self.slots[zone as usize];
        slot.has_refused = false;
        slot.writes += 1;
        let command = Command::write_zeroes(self.lba(zone, first), self.sectors(units), 0).fua(fua);
        Some((command, Pending::Write { zone, stamp, first, units }))
    }

    fn filter(&mut self) -> (ZoneFilter, bool) {
        let which = self.others.below(2 * ZoneState::ALL.len() as u64) as usize;
        let filter = ZoneState::ALL.get(which).map_or(ZoneFilter::All, |&it| ZoneFilter::In(it));
        (filter, self.others.below(2) == 0)
    }

    /// The fault of a report that begins at `zone`, if it has one.
    pub(super) fn wrong_in_report(
        &self,
        zone: u32,
        filter: ZoneFilter,
        partial: bool,
        most: u32,
        report: &ZoneReport,
    ) -> Option<String> {
        let zones = &report.zones;
        let matches = |state| filter == ZoneFilter::All || filter == ZoneFilter::In(state);
        let is_right = zones.iter().all(|it| it.start >= self.lba(zone, 0) && matches(it.state))
            && zones.is_sorted_by(|one, next| one.start < next.start)
            && zones.len() <= most as usize
            && (zones.len() as u64 == report.count
                || !partial && zones.len() == most as usize && report.count > u64::from(most));
        (!is_right).then(|| {
            format!(
                "a report of {most} zones from {zone}, {filter:?}, partial: {partial}: {report:?}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use leyden_device::Op;
    use leyden_sim::Rng;

    use super::super::ZonedOptions;
    use super::super::command::Slot;
    use super::*;

    #[test]
    fn every_command_is_drawn() {
        use ZoneAction as A;

        let mut drawn = BTreeSet::new();
        for seed in 0..40 {
            let mut options = ZonedOptions::draw(seed);
            options.others = leyden_sim::Ratio::from_percent(20);
            options.copies = leyden_sim::Ratio::from_percent(20);
            let mut oracle = ZoneOracle::new(options.zones, 64);
            let mut host = Host {
                options: &options,
                rng: Rng::new(seed, "a"),
                copies: Rng::new(seed, "b"),
                others: Rng::new(seed, "c"),
                slots: vec![Slot::default(); options.zones as usize],
                size: 64,
                capacity: 64,
                append_limit: 8,
                zrwa: (4, 2),
                has_region: true,
                keeps_all: false,
            };
            for _ in 0..400 {
                let Some((command, pending)) = host.next(&mut oracle) else {
                    // Everything under way ends well.
                    host.slots.fill(Slot::default());
                    continue;
                };
                drawn.insert(command.op());
                match pending {
                    Pending::Write { zone, stamp, first, .. }
                    | Pending::Copy { zone, stamp, first, .. } => {
                        oracle.written(zone, stamp, first).unwrap();
                    }
                    Pending::Append { zone, stamp, .. } => {
                        let first = oracle.submitted(zone);
                        oracle.written(zone, stamp, first).unwrap();
                    }
                    Pending::Change { zone, .. } => oracle.changed(zone, true),
                    Pending::All(ZoneAction::Reset) => {
                        (0..options.zones).for_each(|zone| oracle.changed(zone, true));
                    }
                    _ => {}
                }
            }
        }
        let actions = [
            A::Write,
            A::Open,
            A::Close,
            A::Finish,
            A::Reset,
            A::Offline,
            A::SetExtension,
            A::FlushZrwa,
        ];
        let ops = [
            Op::Read,
            Op::Write,
            Op::Flush,
            Op::Trim,
            Op::WriteZeroes,
            Op::WritePrepare,
            Op::ZoneAppend,
            Op::Copy,
            Op::ZoneReport,
        ];
        let all = ops.into_iter().chain(actions.map(Op::Zone));
        let missing: Vec<Op> = all.filter(|op| !drawn.contains(op)).collect();
        assert!(missing.is_empty(), "never drawn: {missing:?}");
    }
}
