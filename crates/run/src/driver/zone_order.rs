//! A trace on a zoned drive: in the order that its zones need.
//!
//! NVMe puts commands in no order, and a host of zones waits for one to end before it asks for the next: it resets a
//! zone when what it has written is done, and writes when the reset is. A drive that is slower than the traced one
//! would mix them up. So what is done to a zone waits until nothing of that zone is under way, and what follows it in
//! the trace waits for its end. Writes of a zone may be under way together, in their order; in a Zone Random Write Area,
//! where each may write the last one's blocks again, what is asked is done one at a time.

use std::collections::{BTreeMap, BTreeSet};

use leyden_device::{Op, ZoneAction};
use leyden_sim::Time;
use leyden_workload::Request;
use leyden_workload::zoned::{ZoneLeft, wants_area};

use super::DriveError;
use super::OnZones;
use super::pump::{Next, Source};
use super::tenants::Names;

/// A request that was submitted.
#[derive(Clone, Copy, Debug)]
struct Submitted {
    /// The trace's own name for it.
    owner: u32,
    zone: u64,
}

/// Commands in flight in a zone.
#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    commands: u32,
    /// One of them changes its state.
    is_changing: bool,
}

/// See the module's documentation.
pub(super) struct ZoneOrder<S> {
    trace: S,
    drive: OnZones,
    /// Zones in which something is under way.
    zones: BTreeMap<u64, UnderWay>,
    /// Zones that were opened with a Zone Random Write Area: its blocks are written more than once.
    areas: BTreeSet<u64>,
    submitted: Vec<Submitted>,
    free: Vec<u32>,
    /// The trace's next request, which must wait; whose it is, and when the host asked for it.
    held: Option<(Request, u32, Time)>,
}

impl<S: Source> ZoneOrder<S> {
    pub(super) fn new(trace: S, drive: OnZones) -> Self {
        let (zones, areas) = (BTreeMap::new(), BTreeSet::new());
        Self { trace, drive, zones, areas, submitted: Vec::new(), free: Vec::new(), held: None }
    }

    const fn zone(&self, request: &Request) -> u64 {
        request.lba.0 / self.drive.zone_sectors
    }

    fn may_go(&self, request: &Request) -> bool {
        let Some(under_way) = self.zones.get(&self.zone(request)) else { return true };
        match request.op {
            Op::Flush | Op::ZoneReport => true,
            Op::Zone(_) => under_way.commands == 0,
            _ if self.areas.contains(&self.zone(request)) => under_way.commands == 0,
            _ => !under_way.is_changing,
        }
    }

    fn submit(&mut self, request: Request, owner: u32, arrived: Time) -> Next {
        let zone = self.zone(&request);
        if matches!(request.op, Op::Zone(_)) {
            if self.drive.protection.has_areas && wants_area(&request) {
                self.areas.insert(zone);
            } else if !matches!(request.op, Op::Zone(ZoneAction::FlushZrwa)) {
                self.areas.remove(&zone);
            }
        }
        if request.op != Op::Flush {
            let under_way = self.zones.entry(zone).or_default();
            under_way.commands += 1;
            under_way.is_changing |= matches!(request.op, Op::Zone(_));
        }
        let zone = if request.op == Op::Flush { u64::MAX } else { zone };
        let submitted = Submitted { owner, zone };
        let number = if let Some(number) = self.free.pop() {
            self.submitted[number as usize] = submitted;
            number
        } else {
            self.submitted.push(submitted);
            self.submitted.len() as u32 - 1
        };
        Next::Submit { request, owner: number, arrived }
    }

    /// A request has ended, or was cut off. Returns the trace's name for it.
    fn end(&mut self, number: u32) -> u32 {
        let Submitted { owner, zone } = self.submitted[number as usize];
        self.free.push(number);
        if let Some(under_way) = self.zones.get_mut(&zone) {
            under_way.commands -= 1;
            if under_way.commands == 0 {
                self.zones.remove(&zone);
            }
        }
        owner
    }
}

impl<S: Source> Source for ZoneOrder<S> {
    fn next(&mut self, now: Time) -> Result<Next, DriveError> {
        let next = match self.held.take() {
            Some((request, owner, arrived)) => Next::Submit { request, owner, arrived },
            None => self.trace.next(now)?,
        };
        Ok(match next {
            Next::Submit { request, owner, arrived } if self.may_go(&request) => {
                self.submit(request, owner, arrived)
            }
            Next::Submit { request, owner, arrived } => {
                self.held = Some((request, owner, arrived));
                Next::Wait
            }
            other => other,
        })
    }

    fn recorded(&self) -> Option<Time> {
        self.trace.recorded()
    }

    fn tenants(&self) -> Names {
        self.trace.tenants()
    }

    fn tenant(&self, number: u32, request: &Request) -> u8 {
        self.trace.tenant(self.submitted[number as usize].owner, request)
    }

    fn completed(&mut self, number: u32, now: Time) {
        let owner = self.end(number);
        self.trace.completed(owner, now);
    }

    fn cut_off(&mut self, number: u32, now: Time) {
        let owner = self.end(number);
        self.trace.cut_off(owner, now);
    }

    fn recovered(&mut self, now: Time, zones: &[ZoneLeft]) {
        self.trace.recovered(now, zones);
    }

    fn fraction(&self, now: Time) -> f64 {
        self.trace.fraction(now)
    }

    fn asks_for_protection(&self, request: &Request) -> bool {
        self.drive.protection.is_asked_by(request)
    }

    fn warnings(&self) -> Vec<String> {
        self.trace.warnings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::ZoneProtection;
    use leyden_device::Lba;
    use leyden_workload::Class;
    use std::collections::VecDeque;

    /// A trace of requests that all arrive at once.
    struct AtOnce(VecDeque<Request>);

    impl Source for AtOnce {
        fn next(&mut self, now: Time) -> Result<Next, DriveError> {
            let next = self.0.pop_front();
            Ok(next.map_or(Next::End, |request| Next::Submit { request, owner: 7, arrived: now }))
        }
        fn tenants(&self) -> Names {
            Names::Of(Vec::new())
        }
        fn tenant(&self, owner: u32, _: &Request) -> u8 {
            owner as u8
        }
        fn completed(&mut self, owner: u32, _: Time) {
            assert_eq!(owner, 7);
        }
        fn fraction(&self, _: Time) -> f64 {
            0.0
        }
        fn warnings(&self) -> Vec<String> {
            Vec::new()
        }
    }

    fn request(op: Op, lba: u64) -> Request {
        let (at, fua, class) = (Time::ZERO, false, Class::Wal);
        Request { at, op, lba: Lba(lba), sectors: 8, fua, class }
    }

    #[test]
    fn a_reset_waits_for_its_zone_and_what_follows_waits_for_it() {
        let reset = Op::Zone(ZoneAction::Reset);
        let trace = [
            request(Op::Write, 0),
            request(Op::Write, 8),
            request(Op::Flush, 0),
            request(reset, 0),
            request(Op::Write, 0),
            request(Op::Write, 100),
        ];
        let protection = ZoneProtection { has_region: true, has_areas: false };
        let drive = OnZones { zone_sectors: 100, protection };
        let mut order = ZoneOrder::new(AtOnce(trace.into()), drive);
        let next = |order: &mut ZoneOrder<AtOnce>| match order.next(Time::ZERO).unwrap() {
            Next::Submit { request, owner, .. } => Ok((request.op, request.lba.0, owner)),
            Next::Wait => Err("wait"),
            Next::End => Err("end"),
            _ => Err("other"),
        };
        assert_eq!(next(&mut order), Ok((Op::Write, 0, 0)));
        assert_eq!(next(&mut order), Ok((Op::Write, 8, 1)));
        assert_eq!(next(&mut order), Ok((Op::Flush, 0, 2)));
        assert_eq!(next(&mut order), Err("wait"), "the writes are under way");
        order.completed(1, Time::ZERO);
        assert_eq!(next(&mut order), Err("wait"));
        order.cut_off(0, Time::ZERO);
        assert_eq!(next(&mut order), Ok((reset, 0, 0)), "a flush is of no zone");
        assert_eq!(next(&mut order), Err("wait"), "the reset is under way");
        order.completed(0, Time::ZERO);
        assert_eq!(next(&mut order), Ok((Op::Write, 0, 0)));
        assert_eq!(next(&mut order), Ok((Op::Write, 100, 1)));
        assert_eq!(next(&mut order), Err("end"));
        assert!(order.asks_for_protection(&request(Op::Write, 0)));
        assert!(!order.asks_for_protection(&request(Op::Read, 0)));
    }
}
