//! The slow twin: the durability model, told of the same commands.

use std::collections::BTreeMap;
use std::ops::Range;

use leyden_device::{Lpn, PowerLoss, Region, Stamp};
use leyden_oracle::{Ended, Id, Op, Oracle, Promise, Request};
use leyden_sim::Time;

use super::LostUnits;
use super::observer::Observer;

/// See the module. A sector is a mapping unit here.
#[derive(Clone, Debug)]
pub(super) struct Twin {
    oracle: Oracle,
    /// The oracle's number of each command, by our stamp.
    ids: BTreeMap<u64, Id>,
    units: u32,
}

impl Twin {
    fn submit(&mut self, op: Op, units: &Range<u32>, fua: bool) -> Id {
        let (lba, sectors) = (units.start.into(), units.len() as u32);
        self.oracle.submit(Time::ZERO, Request { op, lba, sectors, fua, plp: false })
    }

    /// True if a cut now may leave `unit` with our `stamp`.
    pub(super) fn may_survive(&self, unit: u32, stamp: u64) -> bool {
        self.oracle.may_survive(unit, if stamp == 0 { 0 } else { self.ids[&stamp].0 })
    }
}

impl Observer for Twin {
    fn new(units: u32, region: Region) -> Self {
        let promise = match region {
            Region::None => Promise::None,
            Region::Full => Promise::Full,
            Region::Selective => Promise::Selective,
        };
        Self { oracle: Oracle::new(units, 1, promise), ids: BTreeMap::new(), units }
    }

    fn begin_write(&mut self, units: &Range<u32>, stamp: u64, fua: bool) {
        let id = self.submit(Op::Write, units, fua);
        self.ids.insert(stamp, id);
    }

    fn begin_flush(&mut self, stamp: u64) {
        let id = self.submit(Op::Flush, &(0..1), false);
        self.ids.insert(stamp, id);
    }

    fn end(&mut self, stamp: u64, is_done: bool) {
        let ended = if is_done { Ended::Done } else { Ended::Failed };
        self.oracle.complete(Time::ZERO, self.ids[&stamp], ended, &[]).unwrap();
    }

    fn cut(&mut self) {
        self.oracle.cut(Time::ZERO);
    }

    /// Every promise that the drive did not report lost is kept, and the ledger counts what the oracle does.
    fn settle(&mut self, left: &[Stamp], reported: &PowerLoss, gone: LostUnits) {
        let before = self.oracle.losses().confirmed;
        self.oracle.note_loss_allowed(reported.lost.iter().map(|lpn| lpn.0));
        let uncertain = reported.uncertain.iter().flat_map(|&(Lpn(first), Lpn(end))| first..end);
        self.oracle.note_uncertain(uncertain.filter(|&unit| unit < self.units));
        self.oracle.restore(Time::ZERO);
        let left: Vec<u64> =
            left.iter().map(|stamp| if stamp.0 == 0 { 0 } else { self.ids[&stamp.0].0 }).collect();
        let look = self.submit(Op::Read, &(0..self.units), false);
        self.oracle.complete(Time::ZERO, look, Ended::Done, &left).unwrap();
        self.oracle.compact();
        assert_eq!(self.oracle.losses().confirmed - before, gone.promised);
    }
}
