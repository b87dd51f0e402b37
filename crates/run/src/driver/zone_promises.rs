//! Checks runs on zoned drives against what the drive has promised to keep.
//!
//! **What lives here**: the driver's side of the model of zones ([`leyden_oracle::zones`]), which torture uses
//! too. What is promised is decided here, by the flags of a write and what the buffer protects; the drive is not
//! asked.
//!
//! **Invariants**: each read is held against every write before it; after each power cut every zone is looked at,
//! whether the host will read it or not.

use std::collections::BTreeMap;

use leyden_device::{Completion, Op, Stamp, Status, ZoneAction, ZoneDescriptor, ZoneState};
use leyden_oracle::zones::{ZoneChange, ZoneOracle, ZoneSeen, ZoneStands};
use leyden_sim::Time;
use leyden_workload::Request;
use leyden_workload::zoned::{ZoneLayout, is_protected, wants_area};

use super::{Content, DriveError, Outage};

/// A command under way.
#[derive(Clone, Debug)]
enum Pending {
    Write {
        zone: u32,
        stamp: u64,
        first: u32,
    },
    Append {
        zone: u32,
        stamp: u64,
    },
    Change(u32),
    /// A write in an area; `end` is the block at which it ends, with which it may commit.
    InArea {
        zone: u32,
        stamp: u64,
        first: u32,
        end: u32,
    },
    Read {
        zone: u32,
        first: u32,
    },
    /// A flush, with its promise for each zone, and the number of resets of each.
    Flush {
        ends: Vec<u32>,
        resets: Vec<u64>,
    },
}

/// The promise of a drive's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonePromise {
    /// All that was acknowledged.
    pub keeps_all: bool,
    /// Acknowledged writes with the PLP flag.
    pub keeps_flagged: bool,
    /// The drive may say that it lost its zone table.
    pub may_forget: bool,
}

/// Gives each write a stamp of its own and checks each read, over power cuts too.
#[derive(Clone, Debug)]
pub struct ZonePromises {
    oracle: ZoneOracle,
    layout: ZoneLayout,
    promise: ZonePromise,
    /// By slot.
    pending: BTreeMap<u32, Pending>,
    /// How often each zone was reset.
    resets: Vec<u64>,
}

impl ZonePromises {
    /// For an empty drive.
    pub fn new(layout: ZoneLayout, promise: ZonePromise) -> Self {
        let capacity = (layout.capacity / layout.block) as u32;
        let oracle = ZoneOracle::new(layout.zones, capacity);
        Self {
            oracle: if promise.may_forget { oracle } else { oracle.without_history() },
            layout,
            promise,
            pending: BTreeMap::new(),
            resets: vec![0; layout.zones as usize],
        }
    }

    /// The zone of a sector, and which block of it.
    const fn place(&self, lba: u64) -> (u32, u32) {
        let (zone, sector) = (lba / self.layout.size, lba % self.layout.size);
        (zone as u32, (sector / self.layout.block) as u32)
    }

    fn blocks(&self, sectors: u32) -> u32 {
        sectors / self.layout.block as u32
    }

    /// A write is promised with its acknowledgement.
    fn is_promised(&self, request: &Request) -> bool {
        let is_kept = self.promise.keeps_flagged && is_protected(request);
        self.promise.keeps_all || is_kept || request.fua
    }

    /// A write that ended at block `end` of a zone has committed what makes room for it in the zone's area.
    fn commit_before(&mut self, zone: u32, end: u32) {
        let Some(wp) = self.oracle.area(zone) else { return };
        let [area, step, capacity] =
            [self.layout.area, self.layout.area_step, self.layout.capacity]
                .map(|it| self.blocks(it as u32));
        let beyond = end.saturating_sub(wp + area);
        self.oracle.area_moved(zone, wp + beyond.next_multiple_of(step).min(capacity - wp));
    }

    fn judge(&mut self, outage: &Outage<Stamp>) -> Result<(), DriveError> {
        let content: Vec<u64> = outage.left.iter().map(|stamp| stamp.0).collect();
        let size = (self.layout.size / self.layout.block) as usize;
        let capacity = (self.layout.capacity / self.layout.block) as usize;
        for ((number, zone), left) in (0..).zip(&outage.zones).zip(content.chunks(size)) {
            let zone = &zone.descriptor;
            let is_offline = zone.state == ZoneState::Offline;
            let nothing = vec![0; capacity];
            let seen = ZoneSeen {
                stands: stands(zone),
                write_pointer: zone.write_pointer.map(|lba| self.place(lba.0).1),
                has_area: zone.has_zrwa,
                content: if is_offline { &nothing } else { &left[..capacity] },
            };
            self.oracle.judge(number, seen).map_err(DriveError::Zone)?;
        }
        Ok(())
    }
}

/// The oracle's name for the state of a zone.
const fn stands(zone: &ZoneDescriptor) -> ZoneStands {
    match zone.state {
        ZoneState::Empty => ZoneStands::Empty,
        ZoneState::Full => ZoneStands::Full,
        ZoneState::ReadOnly => ZoneStands::ReadOnly,
        ZoneState::Offline => ZoneStands::Offline,
        ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed => {
            ZoneStands::Active
        }
    }
}

impl Content<Stamp> for ZonePromises {
    fn submit(&mut self, slot: u32, _: Time, request: &Request) -> u64 {
        let (zone, first) = self.place(request.lba.0);
        let blocks = self.blocks(request.sectors);
        let at_once = self.is_promised(request);
        let (pending, stamp) = match request.op {
            // Data in an area is protected.
            Op::Write if self.oracle.area(zone).is_some() => {
                let stamp = self.oracle.write(zone, Some(first), blocks, true);
                (Pending::InArea { zone, stamp, first, end: first + blocks }, stamp)
            }
            Op::Write => {
                let stamp = self.oracle.write(zone, Some(first), blocks, at_once);
                (Pending::Write { zone, stamp, first }, stamp)
            }
            Op::ZoneAppend => {
                let stamp = self.oracle.write(zone, None, blocks, at_once);
                (Pending::Append { zone, stamp }, stamp)
            }
            Op::Read => (Pending::Read { zone, first }, 0),
            Op::Flush => {
                let (ends, resets) = (self.oracle.flush(), self.resets.clone());
                (Pending::Flush { ends, resets }, 0)
            }
            Op::Zone(action) => {
                let change = match action {
                    ZoneAction::Reset => ZoneChange::Reset,
                    ZoneAction::Finish => ZoneChange::Finish,
                    ZoneAction::Open if wants_area(request) && self.layout.area > 0 => {
                        ZoneChange::OpenWithArea
                    }
                    ZoneAction::FlushZrwa => ZoneChange::Commit(first + 1),
                    _ => return 0,
                };
                self.oracle.change(zone, change);
                (Pending::Change(zone), 0)
            }
            _ => return 0,
        };
        self.pending.insert(slot, pending);
        stamp
    }

    fn complete(&mut self, slot: u32, end: &Completion<Stamp>) -> Result<(), DriveError> {
        let is_done = end.status == Status::Success;
        match self.pending.remove(&slot) {
            Some(Pending::Write { zone, stamp, first }) if is_done => {
                self.oracle.written(zone, stamp, first).map_err(DriveError::Zone)?;
            }
            Some(Pending::InArea { zone, stamp, first, end }) if is_done => {
                self.oracle.written(zone, stamp, first).map_err(DriveError::Zone)?;
                self.commit_before(zone, end);
            }
            Some(Pending::Append { zone, stamp }) if is_done => {
                let first = end.appended().map_or(0, |lba| self.place(lba.0).1);
                self.oracle.written(zone, stamp, first).map_err(DriveError::Zone)?;
            }
            Some(
                Pending::Write { zone, stamp, .. }
                | Pending::InArea { zone, stamp, .. }
                | Pending::Append { zone, stamp },
            ) => match end.status {
                Status::WriteFault => self.oracle.failed(zone, stamp),
                _ => self.oracle.refused(zone, stamp),
            },
            Some(Pending::Change(zone)) => {
                self.resets[zone as usize] += u64::from(is_done);
                self.oracle.changed(zone, is_done);
            }
            Some(Pending::Read { zone, first }) if is_done => {
                let data: Vec<u64> = end.data().into_iter().flatten().map(|it| it.0).collect();
                self.oracle.read(zone, first, &data).map_err(DriveError::Zone)?;
            }
            Some(Pending::Flush { ends, resets }) if is_done => {
                let now = &self.resets;
                self.oracle.flushed(&ends, |zone| now[zone as usize] != resets[zone as usize]);
            }
            _ => {}
        }
        Ok(())
    }

    fn cut(&mut self, outage: &Outage<Stamp>) -> Result<Option<u64>, DriveError> {
        self.pending.clear();
        let size = (self.layout.size / self.layout.block) as u32;
        for unit in &outage.lost {
            self.oracle.note_lost(unit / size, unit % size);
        }
        if !outage.uncertain.is_empty() {
            self.oracle.note_uncertain();
        }
        self.judge(outage)?;
        Ok(Some(outage.lost.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_device::{CommandId, Lba};
    use leyden_workload::Class;
    use leyden_workload::zoned::ZoneLeft;

    const LAYOUT: ZoneLayout =
        ZoneLayout { zones: 2, size: 64, capacity: 32, block: 8, area: 16, area_step: 8 };

    fn flagged(op: Op, lba: u64, sectors: u32) -> Request {
        Request { at: Time::ZERO, op, lba: Lba(lba), sectors, fua: false, class: Class::Wal }
    }

    /// A zone of which a write with the PLP flag was acknowledged, after a cut that left `left` of it.
    fn after_cut(keeps_flagged: bool, left: u64) -> Result<Option<u64>, DriveError> {
        let promise = ZonePromise { keeps_all: false, keeps_flagged, may_forget: false };
        let mut content = ZonePromises::new(LAYOUT, promise);
        let stamp = content.submit(0, Time::ZERO, &flagged(Op::Write, 64, 8));
        let end = Completion {
            id: CommandId(0),
            op: Op::Write,
            tag: 0,
            submitted: Time::ZERO,
            time: Time::ZERO,
            status: Status::Success,
            output: leyden_device::Output::None,
        };
        content.complete(0, &end).unwrap();
        let zone = |state, start, wp: u64| ZoneDescriptor {
            state,
            start: Lba(start),
            capacity: 32,
            write_pointer: Some(Lba(start + wp)),
            has_zrwa: false,
            is_changed: false,
            extension: None,
        };
        let second =
            if left == 0 { zone(ZoneState::Empty, 64, 0) } else { zone(ZoneState::Closed, 64, 8) };
        let mut units = vec![Stamp(0); 16];
        units[8] = Stamp(left * stamp);
        content.cut(&Outage {
            at: Time::ZERO,
            back_at: Time::ZERO,
            lost: Vec::new(),
            uncertain: Vec::new(),
            left: units,
            zones: [zone(ZoneState::Empty, 0, 0), second]
                .map(|descriptor| ZoneLeft { descriptor, held: 0 })
                .into(),
        })
    }

    #[test]
    fn promised_data_must_be_there_after_a_cut() {
        assert!(matches!(after_cut(true, 1), Ok(Some(0))));
        assert!(matches!(after_cut(true, 0), Err(DriveError::Zone(_))));
        assert!(matches!(after_cut(false, 0), Ok(Some(0))), "nothing protects it");
        assert!(matches!(after_cut(false, 9), Err(DriveError::Zone(_))), "nobody wrote that");
    }
}
