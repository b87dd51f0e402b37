//! A device for the tests of what stands on it: every answer and its time are known.

use std::collections::{BTreeMap, BTreeSet};

use leyden_device::{
    Action, BlockDevice, Command, CommandId, Completion, Hint, Lba, Op, Output, Payload, Stamp,
    Status, Units,
};
use leyden_sim::{Span, Time};

pub(crate) const UNIT_SECTORS: u64 = 8;

/// Ends each command a fixed time after it came, and notes what it was asked. Content changes when
/// a command ends.
#[derive(Debug)]
pub(crate) struct Mock {
    pub(crate) latency: Span,
    /// Writes take this much longer.
    pub(crate) write_extra: Span,
    /// Reads and writes of these units fail.
    pub(crate) failing: BTreeSet<u64>,
    /// Trims fail.
    pub(crate) failing_trims: bool,
    /// Two writes of a unit may be under way at once.
    pub(crate) allows_overlaps: bool,
    /// Commands received, with their times.
    pub(crate) asked: Vec<(Time, Command<Stamp>)>,
    /// Content, by unit.
    pub(crate) content: Vec<u64>,
    /// Hints received, with their times.
    pub(crate) announced: Vec<(Time, Hint)>,
    under_way: BTreeMap<(Time, u64), (Time, Command<Stamp>)>,
    now: Time,
}

impl Mock {
    pub(crate) fn new(units: usize) -> Self {
        Self {
            latency: Span::from_us(100),
            write_extra: Span::ZERO,
            failing: BTreeSet::new(),
            failing_trims: false,
            allows_overlaps: true,
            asked: Vec::new(),
            content: vec![0; units],
            announced: Vec::new(),
            under_way: BTreeMap::new(),
            now: Time::ZERO,
        }
    }

    /// The operations it was asked for: microseconds, what, first unit, units.
    pub(crate) fn log(&self) -> Vec<(u64, Op, u64, u64)> {
        let entry = |(time, command): &(Time, Command<Stamp>)| {
            let (first, count) = units(command);
            (time.as_ns() / 1_000, command.op(), first, count)
        };
        self.asked.iter().map(entry).collect()
    }

    /// The first unit and count of each write that is under way.
    pub(crate) fn writes_under_way(&self) -> Vec<(u64, u64)> {
        let commands = self.under_way.values().map(|(_, command)| command);
        commands.filter(|command| command.op() == Op::Write).map(units).collect()
    }

    fn end(&mut self, command: &Command<Stamp>) -> (Status, Output<Stamp>) {
        let (first, count) = units(command);
        let touched = first..first + count;
        if matches!(command.op(), Op::Read | Op::Write)
            && touched.clone().any(|unit| self.failing.contains(&unit))
        {
            let is_read = command.op() == Op::Read;
            return (
                if is_read { Status::UnrecoveredRead } else { Status::WriteFault },
                Output::None,
            );
        }
        if command.op() == Op::Trim && self.failing_trims {
            return (Status::WriteFault, Output::None);
        }
        let mut data = Vec::new();
        let parts = Units::new(first * UNIT_SECTORS, count * UNIT_SECTORS, UNIT_SECTORS);
        for (index, unit) in touched.enumerate() {
            let held = &mut self.content[unit as usize];
            match command.action {
                Action::Read { .. } => {
                    Stamp::gather(&mut data, parts.part(index as u32), &Stamp(*held));
                }
                Action::Write { data, .. } => *held = data,
                // Zeroes in a part of a unit: the unit is what that write made of it.
                Action::WriteZeroes { data, .. } if !is_whole(command, unit) => *held = data,
                Action::Trim { .. } | Action::WriteZeroes { .. } => *held = 0,
                Action::Flush { .. } | Action::WritePrepare { .. } => {}
                Action::ZoneAppend { .. }
                | Action::Zone { .. }
                | Action::ZoneExtension { .. }
                | Action::Copy { .. }
                | Action::ZoneReport { .. } => panic!("this is no zoned drive"),
            }
        }
        let output = if command.op() == Op::Read { Output::Read(data) } else { Output::None };
        (Status::Success, output)
    }
}

/// From the first up to, not including, the second.
fn sectors(command: &Command<Stamp>) -> (u64, u64) {
    let (lba, sectors) = command.extent().unwrap_or_default();
    (lba.0, lba.0 + u64::from(sectors))
}

fn units(command: &Command<Stamp>) -> (u64, u64) {
    let (from, to) = sectors(command);
    match command.op() {
        Op::Trim => (
            from.div_ceil(UNIT_SECTORS),
            (to / UNIT_SECTORS).saturating_sub(from.div_ceil(UNIT_SECTORS)),
        ),
        Op::Flush | Op::WritePrepare => (0, 0),
        _ => (from / UNIT_SECTORS, to.div_ceil(UNIT_SECTORS) - from / UNIT_SECTORS),
    }
}

fn is_whole(command: &Command<Stamp>, unit: u64) -> bool {
    let (from, to) = sectors(command);
    from <= unit * UNIT_SECTORS && (unit + 1) * UNIT_SECTORS <= to
}

impl BlockDevice<Stamp> for Mock {
    fn submit(&mut self, now: Time, command: Command<Stamp>) -> CommandId {
        assert!(now >= self.now, "time ran backwards");
        self.now = now;
        if command.op() == Op::Write {
            let (first, count) = units(&command);
            let overlaps =
                |&(other, others): &(u64, u64)| first < other + others && other < first + count;
            assert!(
                self.allows_overlaps || !self.writes_under_way().iter().any(overlaps),
                "units from {first} on are being written already"
            );
        }
        let id = self.asked.len() as u64;
        self.asked.push((now, command.clone()));
        let extra = if command.op() == Op::Write { self.write_extra } else { Span::ZERO };
        self.under_way.insert((now + self.latency + extra, id), (now, command));
        CommandId(id)
    }

    fn next_event(&self) -> Option<Time> {
        self.under_way.first_key_value().map(|(&(time, _), _)| time)
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<Stamp>>) {
        assert!(now >= self.now, "time ran backwards");
        self.now = now;
        while self.next_event().is_some_and(|time| time <= now)
            && let Some(((time, id), (submitted, command))) = self.under_way.pop_first()
        {
            let (status, output) = self.end(&command);
            completions.push(Completion {
                id: CommandId(id),
                op: command.op(),
                tag: command.tag,
                submitted,
                time,
                status,
                output,
            });
        }
    }

    fn announce(&mut self, now: Time, hint: Hint) {
        self.announced.push((now, hint));
    }

    fn capacity_sectors(&self) -> u64 {
        self.content.len() as u64 * UNIT_SECTORS
    }
}

/// A command for whole units.
pub(crate) fn command(op: Op, unit: u64, units: u32) -> Command<Stamp> {
    Command::new(op, Lba(unit * UNIT_SECTORS), units * UNIT_SECTORS as u32, 0)
}
