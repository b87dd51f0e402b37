//! Power cuts: both members lose their power at once.

use leyden_device::{Payload, PowerLoss, Recovery, Region};
use leyden_sim::{Digest, Time};

use super::stored::Stored;
use super::{State, ZonedBlock};
use crate::{Cut, Layers, Powered};

/// The power losses of two drives at the same moment, as one.
fn both(now: Time, a: &PowerLoss, b: &PowerLoss) -> PowerLoss {
    PowerLoss {
        time: now,
        cost: leyden_device::CutCost {
            promised: leyden_sim::Bytes::new(a.cost.promised.get() + b.cost.promised.get()),
            map_pages: a.cost.map_pages + b.cost.map_pages,
            pages: a.cost.pages + b.cost.pages,
            failed_programs: a.cost.failed_programs + b.cost.failed_programs,
            time: a.cost.time.max(b.cost.time),
            energy: a.cost.energy + b.cost.energy,
            capacitance: a.cost.capacitance.max(b.cost.capacitance),
        },
        energy_left: a.energy_left.min(b.energy_left),
        lost: Vec::new(),
        lost_map_pages: a.lost_map_pages + b.lost_map_pages,
        uncertain: Vec::new(),
        torn_pages: a.torn_pages + b.torn_pages,
        during_recovery: a.during_recovery && b.during_recovery,
    }
}

impl<P, C, Z> Powered<P> for ZonedBlock<P, C, Z>
where
    P: Payload,
    C: Powered<Stored<P>>,
    Z: Powered<Stored<P>>,
{
    /// The device itself: there are two drives below.
    type Drive = Self;

    fn drive(&self) -> &Self {
        self
    }

    fn drive_mut(&mut self) -> &mut Self {
        self
    }

    fn now(&self) -> Time {
        self.now.max(self.members.conventional.now()).max(self.members.zoned.now())
    }

    fn mapping_units(&self) -> u32 {
        self.layout.chunks * self.layout.zone_blocks
    }

    /// None, for any members: the tables of data's places are written at a FLUSH.
    fn region(&self) -> Region {
        Region::None
    }

    /// If a member loses what it had promised, nothing is certain: it may have been the tables.
    fn cut_power(&mut self, now: Time) -> Cut {
        self.forget(now);
        let (a, b) = self.members.cut_power(now);
        let has_lost = |cut: &PowerLoss| !cut.lost.is_empty() || !cut.uncertain.is_empty();
        let has_lost = has_lost(&a.drive) || has_lost(&b.drive);
        let mut drive = both(now, &a.drive, &b.drive);
        if has_lost {
            drive.uncertain.push((leyden_device::Lpn(0), leyden_device::Lpn(self.mapping_units())));
        }
        Cut { drive, ..Cut::default() }
    }

    /// The members are ready then; the tables are read next, and commands wait for that, too.
    fn restore_power(&mut self, now: Time) -> Recovery {
        self.now = now;
        let a = self.members.conventional.restore_power(now);
        let b = self.members.zoned.restore_power(now);
        self.load(now);
        Recovery {
            ready_at: a.ready_at.max(b.ready_at),
            dump: a.dump.max(b.dump),
            steps: a.steps.into_iter().chain(b.steps).collect(),
            scan: a.scan.max(b.scan),
            charge: a.charge.max(b.charge),
            pages_scanned: a.pages_scanned + b.pages_scanned,
            pages_restored: a.pages_restored + b.pages_restored,
            scanned_map_pages: a.scanned_map_pages + b.scanned_map_pages,
        }
    }

    fn layers(&self) -> Layers {
        Layers { zoned_block: Some(self.stats()), ..Layers::default() }
    }

    fn check(&self) {
        self.members.conventional.check();
        self.members.zoned.check();
        if let State::Up = self.state {
            self.check_tables().unwrap_or_else(|problem| panic!("{problem}"));
        }
    }

    fn fingerprint(&self) -> u64 {
        let stats = self.stats();
        let mut digest = Digest::default();
        digest.add(self.members.conventional.fingerprint()).add(self.members.zoned.fingerprint());
        digest.add(stats.host_blocks).add(stats.reclaimed).add(stats.commits).add(stats.resets);
        digest.value()
    }
}
