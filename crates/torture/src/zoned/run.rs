//! A run: commands, power cuts, recoveries, and every zone judged.

use std::collections::BTreeMap;

use leyden_device::{
    BlockDevice, Completion, Op, Stamp, Status, ZnsSsd, ZoneAction, ZoneId, ZoneState,
};
use leyden_oracle::Id;
use leyden_oracle::zones::{ZoneChange, ZoneOracle, ZoneViolation};
use leyden_sim::{Rng, Span, Time};

use super::ZonedOptions;
use super::cause::ZoneResources;
use super::command::{Host, Pending, Slot};
use crate::coverage::{Hits, Point};
use crate::event_log::EventLog;
use crate::options::{mixed, rng};
use crate::panics::caught;
use crate::physics::{Blocks, Physics};
pub(super) use crate::run::Trouble;
use crate::run::{refused, twice};
use crate::{Failure, Kind, Outcome, Tally};

/// Events without the end of a command, after which a drive that is ready is stuck.
const MOST_EVENTS: u64 = 100_000;
/// Commands at most until one changes a zone.
const MOST_TO_CHANGE: u32 = 40;

impl From<Box<ZoneViolation>> for Trouble {
    fn from(violation: Box<ZoneViolation>) -> Self {
        Self { kind: violation.problem.into(), message: violation.to_string() }
    }
}

/// A run under way.
#[derive(Clone, Debug)]
pub(crate) struct Runner<'a> {
    pub(super) options: &'a ZonedOptions,
    pub(super) host: Host<'a>,
    pub(super) drive: ZnsSsd<Stamp>,
    pub(super) oracle: ZoneOracle,
    /// Commands in flight, with the zones that may take resources meanwhile.
    pub(super) pending: BTreeMap<u32, (Pending, ZoneResources)>,
    /// The zones that may take resources now.
    pub(super) held: ZoneResources,
    /// Zones that cannot be written any more.
    pub(super) dead: u32,
    next_tag: u32,
    pub(super) tally: Tally,
    pub(super) hits: Hits,
    pub(super) story: EventLog,
    /// Which cuts fall on an event.
    aims: Rng,
    pub(super) physics: Option<Physics>,
    /// When the drive is ready after the last cut, and its dump has ended.
    pub(super) ready: Time,
    pub(super) dump_end: Time,
    /// The flash as it was when the power returned, or the drive became ready.
    pub(super) blocks: Option<Blocks>,
}

/// Runs `options` once.
pub fn run(options: &ZonedOptions) -> Outcome {
    tell(options, false).0
}

/// As [`run()`]; also yields the story of the run's last rounds as a timeline, if it `tells`.
pub(crate) fn tell(options: &ZonedOptions, tells: bool) -> (Outcome, Vec<String>) {
    let drive = match ZnsSsd::<Stamp>::new(&options.device, mixed(options.seed)) {
        Ok(drive) => drive,
        Err(error) => return (refused(format!("the drive cannot be built: {error}")), Vec::new()),
    };
    let mut runner = Runner::new(options, drive, tells);
    let result = caught(|| runner.run()).unwrap_or_else(|panic| {
        Err(Trouble { kind: Kind::Panicked, message: format!("the drive panicked: {panic}") })
    });
    runner.into_outcome(result)
}

/// Runs `options` twice; that the two agree is part of the outcome.
pub fn run_twice(options: &ZonedOptions) -> Outcome {
    twice(|| run(options))
}

impl<'a> Runner<'a> {
    pub(super) fn new(options: &'a ZonedOptions, drive: ZnsSsd<Stamp>, tells: bool) -> Self {
        let shape = *drive.zone_shape();
        let host = Host {
            options,
            rng: rng(options.seed, "zoned commands"),
            copies: rng(options.seed, "zoned copies"),
            others: rng(options.seed, "zoned other commands"),
            slots: vec![Slot::default(); options.zones as usize],
            size: shape.size,
            capacity: shape.capacity,
            append_limit: shape.append_limit,
            zrwa: (shape.zrwa_size, shape.zrwa_granularity),
            has_region: drive.region() != leyden_buffer::Region::None,
            keeps_all: drive.region() == leyden_buffer::Region::Full,
        };
        Self {
            options,
            host,
            oracle: ZoneOracle::new(options.zones, shape.capacity),
            drive,
            pending: BTreeMap::new(),
            held: ZoneResources::default(),
            dead: 0,
            next_tag: 0,
            tally: Tally::default(),
            hits: Hits::default(),
            story: EventLog::new(tells),
            aims: rng(options.seed, "zoned aimed cuts"),
            physics: Physics::new(&options.device),
            ready: Time::ZERO,
            dump_end: Time::ZERO,
            blocks: None,
        }
    }

    fn into_outcome(mut self, result: Result<(), Trouble>) -> (Outcome, Vec<String>) {
        self.tally.reported_losses = self.oracle.reported;
        self.note_work();
        let failure = result.err().map(|Trouble { kind, message }| Failure {
            kind,
            cuts: self.tally.cuts,
            message: self.story.with_context(&message),
        });
        let (digest, coverage) = (self.drive.digest().value(), self.coverage());
        let outcome = Outcome { tally: self.tally, coverage, digest, failure };
        (outcome, self.story.into_lines())
    }

    /// Commands in flight.
    pub(super) fn under_way(&self) -> Vec<Pending> {
        self.pending.values().map(|(pending, _)| pending.clone()).collect()
    }

    fn run(&mut self) -> Result<(), Trouble> {
        for round in 0..self.options.cuts {
            self.story.round(u64::from(round));
            let commands = self.host.rng.below(u64::from(self.options.commands)) as u32;
            self.work(commands)?;
            let late = self.host.rng.below(3_000_000);
            let within = self.host.rng.below(late + 1);
            if self.aims.chance(self.options.aimed) {
                if self.aims.below(3) == 0 {
                    self.work_to_change()?;
                    self.advance_to_event(4)?;
                } else {
                    self.advance_to_event(12)?;
                }
            } else {
                self.advance_to_cut(Span::from_ns(within))?;
            }
            if self.host.rng.below(4) == 0 {
                self.drain()?;
                self.count_resources()?;
            }
            self.drive.check();
            let was_read_only = self.drive.is_read_only();
            self.cut()?;
            while self.host.chance(self.options.again) {
                let recovery = self.drive.next_event().unwrap_or_else(|| self.drive.now());
                let span = recovery.since(self.drive.now()).as_ns();
                let at = self.drive.now() + Span::from_ns(self.host.rng.below(span + 1));
                self.drive.advance(at, &mut Vec::new());
                self.cut()?;
                self.tally.cuts_in_recovery += 1;
            }
            self.look()?;
            if self.drive.is_read_only() && was_read_only {
                break; // it has answered a round of commands, and has kept what it holds
            }
            // Twice in a row: the second finds what the first recovery has begun.
            if self.aims.below(8) == 0 {
                self.advance_to_event(4)?;
                self.cut_and_look()?;
            }
        }
        self.finish()
    }

    /// Another cut, with no work since the one before.
    fn cut_and_look(&mut self) -> Result<(), Trouble> {
        self.drive.check();
        self.cut()?;
        self.look()
    }

    /// Submits so many commands, as many at once as the queue depth allows.
    fn work(&mut self, commands: u32) -> Result<(), Trouble> {
        let mut left = commands;
        // A host that finds nothing careful to do for long waits for something to end.
        let mut tries = 20 * commands;
        while left > 0 && tries > 0 {
            tries -= 1;
            while self.is_full() {
                self.step()?;
            }
            if self.submit_next() {
                left -= 1;
            } else if !self.pending.is_empty() {
                self.step()?;
            }
        }
        Ok(())
    }

    /// True if as many commands are under way as may be.
    pub(super) fn is_full(&self) -> bool {
        self.pending.len() >= self.options.queue_depth as usize
    }

    /// Sends the next command; false if it would be one that a careful host does not send now.
    pub(super) fn submit_next(&mut self) -> bool {
        let Some((command, pending)) = self.host.next(&mut self.oracle) else { return false };
        self.next_tag += 1;
        let (now, tag) = (self.drive.now(), self.next_tag);
        self.story.note(now, || format!("#{tag} {pending:?}"));
        self.drive.submit(now, command.tag(tag));
        if pending == Pending::All(ZoneAction::Open) {
            self.all_opened();
        }
        let takes = ZoneResources::by(&pending);
        self.pending.insert(tag, (pending, self.held));
        self.held.add(takes);
        for (_, (_, during)) in self.pending.range_mut(..tag) {
            during.add(takes);
        }
        self.tally.commands += 1;
        true
    }

    fn step(&mut self) -> Result<(), Trouble> {
        let mut done = Vec::new();
        for _ in 0..MOST_EVENTS {
            let Some(at) = self.drive.next_event() else { break };
            self.drive.advance(at, &mut done);
            if !done.is_empty() {
                return self.all_ended(&done);
            }
        }
        Err(self.stuck())
    }

    fn stuck(&self) -> Trouble {
        let under_way = if self.drive.next_event().is_none() { "nothing" } else { "something" };
        let message = format!(
            "{} commands do not end, and {under_way} is under way: {:?}",
            self.pending.len(),
            self.pending
        );
        Trouble { kind: Kind::Stuck, message }
    }

    /// Commands have ended at one moment: the flash at that moment must justify their statuses.
    fn all_ended(&mut self, done: &[Completion<Stamp>]) -> Result<(), Trouble> {
        self.check_zones()?;
        done.iter().try_for_each(|end| self.ended(end))
    }

    fn drain(&mut self) -> Result<(), Trouble> {
        while !self.pending.is_empty() {
            self.step()?;
        }
        Ok(())
    }

    /// Lets so much time pass.
    fn advance_to_cut(&mut self, span: Span) -> Result<(), Trouble> {
        let cut = self.drive.now() + span;
        while let Some(at) = self.drive.next_event().filter(|&at| at <= cut) {
            let mut done = Vec::new();
            self.drive.advance(at, &mut done);
            self.all_ended(&done)?;
        }
        self.drive.advance(cut, &mut Vec::new());
        if !self.pending.is_empty() && self.drive.next_event().is_none() {
            return Err(self.stuck());
        }
        Ok(())
    }

    /// Works on until a reset, a Finish, a copy or a commit is under way: the next cut falls on its stages.
    fn work_to_change(&mut self) -> Result<(), Trouble> {
        let is_change = |pending: &Pending| {
            matches!(pending, Pending::Change { .. } | Pending::Copy { .. } | Pending::All(_))
        };
        for _ in 0..MOST_TO_CHANGE {
            if self.pending.values().any(|(pending, _)| is_change(pending)) {
                break;
            }
            self.work(1)?;
        }
        Ok(())
    }

    /// Lets fewer than `most` things happen: the power fails at the last of them, or just before it.
    fn advance_to_event(&mut self, most: u64) -> Result<(), Trouble> {
        for _ in 0..self.aims.below(most) {
            let Some(at) = self.drive.next_event() else { break };
            let mut done = Vec::new();
            self.drive.advance(at, &mut done);
            self.all_ended(&done)?;
        }
        let before = self.drive.next_event().filter(|_| self.aims.below(2) == 0);
        if let Some(at) = before {
            let just_before = Time::from_ns(at.as_ns().saturating_sub(1)).max(self.drive.now());
            self.drive.advance(just_before, &mut Vec::new());
        }
        self.hits.hit(Point::ZoneCutEvent);
        if !self.pending.is_empty() && self.drive.next_event().is_none() {
            return Err(self.stuck());
        }
        Ok(())
    }

    /// Lets everything happen that is due until `at`.
    pub(super) fn advance(&mut self, at: Time) -> Result<(), Trouble> {
        let mut done = Vec::new();
        self.drive.advance(at, &mut done);
        self.all_ended(&done)
    }

    /// Lets the drive recover, and judges it.
    pub(super) fn look(&mut self) -> Result<(), Trouble> {
        if let Some(ready) = self.drive.next_event() {
            self.drive.advance(ready, &mut Vec::new());
        }
        self.check_erased()?;
        self.drive.check();
        self.judge()?;
        self.check_read_only()
    }

    /// Lets everything under way end.
    pub(super) fn finish(&mut self) -> Result<(), Trouble> {
        self.drain()?;
        self.drive.check();
        Ok(())
    }

    /// A command has ended.
    fn ended(&mut self, end: &Completion<Stamp>) -> Result<(), Trouble> {
        let Some((pending, during)) = self.pending.remove(&end.tag) else {
            let message = format!("{:?} ended, and is not under way", end.op);
            return Err(Trouble { kind: Kind::Status, message });
        };
        let is_done = end.status == Status::Success;
        self.story.completed(end.time, Id(end.tag.into()), end.status);
        self.note_end(&pending, end.status);
        self.hits.hit_if(is_done && end.op == Op::WriteZeroes, Point::ZoneZeroes);
        self.check_status(&pending, end.status, during)?;
        self.tally.write_faults += u64::from(end.status == Status::WriteFault);
        match pending {
            Pending::Write { zone, stamp, first, units, .. } => {
                self.host.slots[zone as usize].writes -= 1;
                self.write_ended(end, zone, stamp, first, units)?;
            }
            Pending::Copy { from, zone, stamp, first, .. } => {
                self.host.slots[from as usize].is_busy = false;
                let to = &mut self.host.slots[zone as usize];
                to.is_busy = false;
                to.writes -= 1;
                self.write_ended(end, zone, stamp, first, 0)?;
            }
            Pending::Append { zone, stamp, units } => {
                let slot = &mut self.host.slots[zone as usize];
                slot.appends -= 1;
                slot.append_units -= units;
                let first = end.appended().map(|lba| {
                    let unit_sectors = self.options.device.ftl.mapping_unit.get() / 512;
                    (lba.0 / unit_sectors) as u32 - zone * self.host.size
                });
                self.write_ended(end, zone, stamp, first.unwrap_or(0), 0)?;
            }
            Pending::Change { zone, change } => {
                let slot = &mut self.host.slots[zone as usize];
                slot.is_busy = false;
                self.oracle.changed(zone, is_done);
                if is_done && change == ZoneChange::Reset {
                    let (resets, toggles) = (slot.resets + 1, slot.toggles);
                    *slot = Slot { toggles, resets, ..Slot::default() };
                }
                slot.is_full |= is_done && change == ZoneChange::Finish;
                let ends = matches!(change, ZoneChange::Reset | ZoneChange::Finish);
                if is_done && ends && slot.toggles == 0 {
                    self.held.release(zone);
                }
                self.note_end_of_zone(zone);
            }
            Pending::Flush { ends, resets } => {
                if is_done {
                    let now: Vec<u64> = self.host.slots.iter().map(|slot| slot.resets).collect();
                    self.oracle.flushed(&ends, |it| now[it as usize] != resets[it as usize]);
                }
            }
            Pending::Read { zone, first } => {
                self.host.slots[zone as usize].is_busy = false;
                if let Some(data) = end.data() {
                    let data: Vec<u64> = data.iter().map(|it| it.0).collect();
                    self.oracle.read(zone, first, &data)?;
                }
            }
            Pending::Misuse if is_done => return Err(Self::not_refused(end)),
            Pending::Offline { zone } if is_done && !self.host.slots[zone as usize].is_dead => {
                return Err(Self::not_refused(end));
            }
            Pending::Toggle { zone, action } => {
                let slot = &mut self.host.slots[zone as usize];
                slot.toggles -= 1;
                if is_done && action == ZoneAction::Close && slot.toggles == 0 {
                    self.held.closed(zone);
                }
            }
            Pending::All(action) => self.all_zones_ended(action, is_done),
            Pending::Report { zone, filter, partial, most } => {
                let report = end.zones().expect("a report that has ended well");
                let wrong = self.host.wrong_in_report(zone, filter, partial, most, report);
                if let Some(message) = wrong {
                    return Err(Trouble { kind: Kind::Zone, message });
                }
            }
            Pending::Inert { .. } | Pending::Misuse | Pending::Offline { .. } => {}
        }
        Ok(())
    }

    /// Every active zone may be opened by a command now.
    fn all_opened(&mut self) {
        self.held.all_opened();
        self.pending.values_mut().for_each(|(_, during)| during.all_opened());
    }

    /// A command to all zones has ended.
    fn all_zones_ended(&mut self, action: ZoneAction, is_done: bool) {
        if action == ZoneAction::Open && is_done {
            self.all_opened();
        }
        if action != ZoneAction::Reset {
            return;
        }
        for (zone, slot) in (0..).zip(&mut self.host.slots) {
            slot.is_busy = false;
            let state = self.drive.zone(ZoneId(zone)).state;
            let is_reset = is_done && !matches!(state, ZoneState::ReadOnly | ZoneState::Offline);
            self.oracle.changed(zone, is_reset);
            if is_reset {
                *slot = Slot { resets: slot.resets + 1, ..Slot::default() };
                self.held.release(zone);
            }
        }
    }

    fn write_ended(
        &mut self,
        end: &Completion<Stamp>,
        zone: u32,
        stamp: u64,
        first: u32,
        units: u32,
    ) -> Result<(), Trouble> {
        let slot = &mut self.host.slots[zone as usize];
        match end.status {
            Status::Success => {
                slot.is_open = true;
                self.oracle.written(zone, stamp, first)?;
                if let Some(wp) = self.oracle.area(zone) {
                    let (size, step) = self.host.zrwa;
                    let beyond = (first + units).saturating_sub(wp + size);
                    let commit = beyond.next_multiple_of(step).min(self.host.capacity - wp);
                    self.oracle.area_moved(zone, wp + commit);
                }
                self.note_end_of_zone(zone);
            }
            Status::WriteFault => {
                slot.is_dead = true;
                self.oracle.failed(zone, stamp);
            }
            status => {
                slot.is_dead |= matches!(status, Status::ZoneReadOnly | Status::ZoneOffline);
                slot.is_full &= status == Status::ZoneFull; // what was submitted to its end has no place
                self.oracle.refused(zone, stamp);
            }
        }
        self.host.slots[zone as usize].has_refused |= end.status != Status::Success;
        Ok(())
    }

    fn note_end_of_zone(&mut self, zone: u32) {
        let is_written =
            self.oracle.area(zone).is_none() && self.oracle.submitted(zone) >= self.host.capacity;
        let slot = &mut self.host.slots[zone as usize];
        slot.is_full |= is_written;
        if slot.is_full && slot.is_quiet() && slot.toggles == 0 {
            self.held.release(zone);
        }
    }
}
