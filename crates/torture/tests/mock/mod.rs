//! A drive that is right, in a page of code, and can be told to be wrong: one command after the
//! other, a buffer and flash. It takes time to recover, and forgets what is in flight.

use std::collections::{BTreeMap, VecDeque};

use leyden_buffer::Region;
use leyden_device::{
    Action, BlockDevice, Command, CommandId, Completion, NoData, Op, Output, PowerLoss, Recovery,
    SECTOR_BYTES, Ssd, Stamp, Status,
};
use leyden_host::{Cut, Powered};
use leyden_sim::{Span, Time};
use leyden_torture::{Inspected, Options};

/// The fault of the mock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    /// Nothing.
    None,
    /// FLUSH ends at once.
    ForgetsFlush,
    /// FUA is taken for a plain write.
    ForgetsFua,
    /// The dump leaves out a unit, if it has more than this.
    SkipsDump(usize),
    /// A cut during recovery undoes the dump of a unit.
    RecoversOnce,
    /// Trims are forgotten when the power fails.
    ForgetsTrims,
    /// It depends on an address in memory.
    Unrepeatable,
    /// It panics when its buffer has this many units.
    Panics(usize),
}

#[derive(Debug)]
pub(crate) struct Mock {
    bug: Bug,
    is_protected: bool,
    now: Time,
    ready: Time,
    units: u32,
    unit_sectors: u64,
    buffer: BTreeMap<u32, u64>,
    flash: Vec<u64>,
    /// The entry that the last dump replaced.
    undo: Option<(u32, u64)>,
    queue: VecDeque<(Time, Time, CommandId, Command<Stamp>)>,
    count: u64,
}

impl Mock {
    pub(crate) fn new(options: &Options, bug: Bug) -> Self {
        let units = Ssd::<NoData>::new(&options.device, 0).unwrap().mapping_units();
        Self {
            bug,
            is_protected: options.device.buffer.region == Region::Full,
            now: Time::ZERO,
            ready: Time::ZERO,
            units,
            unit_sectors: options.device.ftl.mapping_unit.get() / SECTOR_BYTES,
            buffer: BTreeMap::new(),
            flash: vec![0; units as usize],
            undo: None,
            queue: VecDeque::new(),
            count: 0,
        }
    }

    fn evict_all(&mut self) {
        for (unit, stamp) in std::mem::take(&mut self.buffer) {
            self.flash[unit as usize] = stamp;
        }
    }

    fn execute(&mut self, command: &Command<Stamp>) -> Output<Stamp> {
        let unit_sectors = self.unit_sectors;
        let (lba, sectors) = command.extent().unwrap_or_default();
        let (first, last) = (lba.0, lba.0 + u64::from(sectors));
        let units = (first / unit_sectors) as u32..last.div_ceil(unit_sectors) as u32;
        let is_whole = |unit: u32| {
            let from = u64::from(unit) * unit_sectors;
            first <= from && from + unit_sectors <= last
        };
        let get = |unit: u32| self.buffer.get(&unit).copied();
        match command.op() {
            Op::Read => {
                let read = |unit: u32| Stamp(get(unit).unwrap_or(self.flash[unit as usize]));
                return Output::Read(units.map(read).collect());
            }
            Op::WritePrepare | Op::ZoneAppend | Op::Copy | Op::Zone(_) | Op::ZoneReport => {}
            Op::Flush if self.is_protected || self.bug == Bug::ForgetsFlush => {}
            Op::Flush => self.evict_all(),
            Op::Write | Op::Trim | Op::WriteZeroes => {
                for unit in units {
                    let stamp = match command.action {
                        Action::Write { data, .. } => data,
                        _ if is_whole(unit) => 0,
                        Action::WriteZeroes { data, .. } => data,
                        _ => continue,
                    };
                    self.buffer.insert(unit, stamp);
                    if command.is_fua() && self.bug != Bug::ForgetsFua {
                        self.flash[unit as usize] = stamp;
                        self.buffer.remove(&unit);
                    }
                }
            }
        }
        Output::None
    }
}

impl BlockDevice<Stamp> for Mock {
    fn submit(&mut self, now: Time, command: Command<Stamp>) -> CommandId {
        assert!(now >= self.now);
        self.now = now;
        self.count += 1;
        let from = self.queue.back().map_or(now.max(self.ready), |(at, ..)| *at);
        let id = CommandId(self.count);
        self.queue.push_back((from + Span::from_us(10), now, id, command));
        id
    }

    fn next_event(&self) -> Option<Time> {
        self.queue.front().map(|(at, ..)| *at)
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<Stamp>>) {
        assert!(now >= self.now);
        self.now = now;
        while let Some((time, submitted, id, command)) = self.queue.pop_front() {
            if time > now {
                self.queue.push_front((time, submitted, id, command));
                break;
            }
            let output = self.execute(&command);
            if self.count.is_multiple_of(7) {
                let unit = self.buffer.keys().next().copied();
                if let Some((unit, stamp)) = unit.and_then(|unit| self.buffer.remove_entry(&unit)) {
                    self.flash[unit as usize] = stamp;
                }
            }
            if let Bug::Panics(most) = self.bug {
                assert!(self.buffer.len() < most, "too much in the buffer");
            }
            completions.push(Completion {
                id,
                op: command.op(),
                tag: command.tag,
                submitted,
                time,
                status: Status::Success,
                output,
            });
        }
    }

    fn capacity_sectors(&self) -> u64 {
        u64::from(self.units) * self.unit_sectors
    }
}

impl Inspected<Stamp> for Mock {}

impl Powered<Stamp> for Mock {
    type Drive = Self;

    fn drive(&self) -> &Self {
        self
    }

    fn drive_mut(&mut self) -> &mut Self {
        self
    }

    fn now(&self) -> Time {
        self.now
    }

    fn mapping_units(&self) -> u32 {
        self.units
    }

    fn region(&self) -> Region {
        if self.is_protected { Region::Full } else { Region::None }
    }

    fn cut_power(&mut self, now: Time) -> Cut {
        assert!(now >= self.now);
        if now < self.ready
            && self.bug == Bug::RecoversOnce
            && let Some((unit, stamp)) = self.undo.take()
        {
            self.flash[unit as usize] = stamp;
        }
        self.queue.clear();
        self.now = now;
        if self.bug == Bug::ForgetsTrims {
            self.buffer.retain(|_, stamp| *stamp != 0);
        }
        match self.bug {
            Bug::SkipsDump(most) if self.buffer.len() > most => drop(self.buffer.pop_first()),
            _ => {}
        }
        if self.is_protected {
            let last = self.buffer.keys().next_back().copied();
            self.undo = last.map(|unit| (unit, self.flash[unit as usize]));
            self.evict_all();
        }
        self.buffer.clear();
        Cut { drive: PowerLoss { time: now, ..PowerLoss::default() }, ..Cut::default() }
    }

    fn restore_power(&mut self, now: Time) -> Recovery {
        assert!(now >= self.now);
        self.now = now;
        self.ready = now + Span::from_us(500);
        Recovery { ready_at: self.ready, ..Recovery::default() }
    }

    fn check(&self) {}

    fn fingerprint(&self) -> u64 {
        let address = std::ptr::from_ref(self.flash.as_slice()).addr() as u64;
        if self.bug == Bug::Unrepeatable { address } else { self.count }
    }
}
