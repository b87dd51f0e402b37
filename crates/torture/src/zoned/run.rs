//! A run: commands, power cuts, recoveries, and every zone judged.

use std::collections::BTreeMap;

use leyden_device::{
    BlockDevice, Completion, PowerLoss, Stamp, Status, ZnsSsd, ZoneAction, ZoneId, ZoneState,
};
use leyden_oracle::zones::{ZoneChange, ZoneOracle, ZoneViolation};
use leyden_sim::Span;

use super::ZonedOptions;
use super::cause::Held;
use super::command::{Host, Pending, Slot};
use crate::options::{mixed, rng};
use crate::panics::caught;
use crate::{Coverage, Failure, Kind, Outcome, Tally};

/// Events without the end of a command, after which a drive that is ready is stuck.
const MOST_EVENTS: u64 = 100_000;

/// A failure on its way out.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) kind: Kind,
    pub(super) message: String,
}

impl From<Box<ZoneViolation>> for Trouble {
    fn from(violation: Box<ZoneViolation>) -> Self {
        Self { kind: violation.problem.into(), message: violation.to_string() }
    }
}

/// A run under way.
pub(super) struct Runner<'a> {
    pub(super) options: &'a ZonedOptions,
    pub(super) host: Host<'a>,
    pub(super) drive: ZnsSsd<Stamp>,
    pub(super) oracle: ZoneOracle,
    /// What is under way, with the zones that may take resources meanwhile.
    pending: BTreeMap<u32, (Pending, Held)>,
    /// The zones that may take resources now.
    pub(super) held: Held,
    /// Zones that cannot be written any more.
    pub(super) dead: u32,
    next_tag: u32,
    tally: Tally,
}

/// Runs `options` once.
pub fn run(options: &ZonedOptions) -> Outcome {
    let drive = match ZnsSsd::<Stamp>::new(&options.device, mixed(options.seed)) {
        Ok(drive) => drive,
        Err(error) => {
            let message = format!("the drive cannot be built: {error}");
            let failure = Some(Failure { kind: Kind::Refused, cuts: 0, message });
            let (tally, coverage) = (Tally::default(), Coverage::default());
            return Outcome { tally, digest: 0, failure, coverage };
        }
    };
    let mut runner = Runner::new(options, drive);
    let result = caught(|| runner.run()).unwrap_or_else(|panic| {
        Err(Trouble { kind: Kind::Panicked, message: format!("the drive panicked: {panic}") })
    });
    let mut tally = runner.tally;
    tally.reported_losses = runner.oracle.reported;
    let failure =
        result.err().map(|Trouble { kind, message }| Failure { kind, cuts: tally.cuts, message });
    // What zoned drives reach is not counted by name.
    let coverage = Coverage::default();
    Outcome { tally, digest: runner.drive.digest().value(), failure, coverage }
}

/// Runs `options` twice; that the two agree is part of the outcome.
pub fn run_twice(options: &ZonedOptions) -> Outcome {
    let mut first = run(options);
    if first.failure.is_none() {
        let second = run(options);
        if first != second {
            let message = "two runs of the same options differ".to_owned();
            let cuts = first.tally.cuts;
            first.failure = Some(Failure { kind: Kind::NotDeterministic, cuts, message });
        }
    }
    first
}

impl<'a> Runner<'a> {
    fn new(options: &'a ZonedOptions, drive: ZnsSsd<Stamp>) -> Self {
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
            held: Held::default(),
            dead: 0,
            next_tag: 0,
            tally: Tally::default(),
        }
    }

    fn run(&mut self) -> Result<(), Trouble> {
        for _ in 0..self.options.cuts {
            let commands = self.host.rng.below(u64::from(self.options.commands)) as u32;
            self.work(commands)?;
            let late = self.host.rng.below(3_000_000);
            let within = self.host.rng.below(late + 1);
            self.advance_to_cut(Span::from_ns(within))?;
            if self.host.rng.below(4) == 0 {
                self.drain()?;
                self.count_resources()?;
            }
            self.drive.check();
            self.cut()?;
            while self.host.chance(self.options.again) {
                let recovery = self.drive.next_event().unwrap_or_else(|| self.drive.now());
                let span = recovery.since(self.drive.now()).as_ns();
                let at = self.drive.now() + Span::from_ns(self.host.rng.below(span + 1));
                self.drive.advance(at, &mut Vec::new());
                self.cut()?;
                self.tally.cuts_in_recovery += 1;
            }
            if let Some(ready) = self.drive.next_event() {
                self.drive.advance(ready, &mut Vec::new());
            }
            self.drive.check();
            self.check_read_only()?;
            self.judge()?;
            if self.drive.is_read_only() {
                break; // it has nothing more to show
            }
        }
        self.drain()?;
        self.drive.check();
        Ok(())
    }

    /// Submits so many commands, as many at once as the queue depth allows.
    fn work(&mut self, commands: u32) -> Result<(), Trouble> {
        let mut left = commands;
        // A host that finds nothing careful to do for long waits for something to end.
        let mut tries = 20 * commands;
        while left > 0 && tries > 0 {
            tries -= 1;
            while self.pending.len() >= self.options.queue_depth as usize {
                self.step()?;
            }
            match self.host.next(&mut self.oracle) {
                Some((command, pending)) => {
                    self.next_tag += 1;
                    self.drive.submit(self.drive.now(), command.tag(self.next_tag));
                    if pending == Pending::All(ZoneAction::Open) {
                        self.all_opened();
                    }
                    let takes = Held::by(&pending);
                    self.pending.insert(self.next_tag, (pending, self.held));
                    self.held.add(takes);
                    for (_, (_, during)) in self.pending.range_mut(..self.next_tag) {
                        during.add(takes);
                    }
                    self.tally.commands += 1;
                    left -= 1;
                }
                None if !self.pending.is_empty() => self.step()?,
                None => {}
            }
        }
        Ok(())
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

    /// Commands have ended, all at one moment: what they ended with is judged by what the flash is then.
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

    fn cut(&mut self) -> Result<(), Trouble> {
        self.tally.cuts += 1;
        self.tally.cut_off += self.pending.len() as u64;
        self.pending.clear();
        let loss = self.drive.cut_power(self.drive.now());
        self.note_loss(&loss)?;
        let off = Span::from_ns(self.host.rng.below(1 << 20));
        let now = self.drive.now() + off;
        self.drive.restore_power(now);
        Ok(())
    }

    fn note_loss(&mut self, loss: &PowerLoss) -> Result<(), Trouble> {
        let may_lose =
            self.options.device.power.as_ref().is_some_and(|it| it.allow_underprovisioned);
        let is_whole = loss.lost.is_empty() && loss.uncertain.is_empty();
        if !may_lose && !is_whole {
            let message = format!("it lost what it must keep: {loss:?}");
            return Err(Trouble { kind: Kind::Underprovisioned, message });
        }
        for lpn in &loss.lost {
            let (zone, unit) = (lpn.0 / self.host.size, lpn.0 % self.host.size);
            if zone < self.options.zones {
                self.oracle.note_lost(zone, unit);
            }
        }
        if !loss.uncertain.is_empty() {
            self.oracle.note_uncertain();
            self.tally.uncertain_units += 1;
        }
        Ok(())
    }

    /// A command has ended.
    fn ended(&mut self, end: &Completion<Stamp>) -> Result<(), Trouble> {
        let Some((pending, during)) = self.pending.remove(&end.tag) else {
            let message = format!("{:?} ended, and is not under way", end.op);
            return Err(Trouble { kind: Kind::Status, message });
        };
        let is_done = end.status == Status::Success;
        self.check_status(&pending, end.status, during)?;
        self.tally.write_faults += u64::from(end.status == Status::WriteFault);
        match pending {
            Pending::Write { zone, stamp, first, units } => {
                self.host.slots[zone as usize].writes -= 1;
                self.write_ended(end, (zone, stamp), first, units)?;
            }
            Pending::Copy { from, zone, stamp, first } => {
                self.host.slots[from as usize].is_busy = false;
                let to = &mut self.host.slots[zone as usize];
                to.is_busy = false;
                to.writes -= 1;
                self.write_ended(end, (zone, stamp), first, 0)?;
            }
            Pending::Append { zone, stamp, units } => {
                let slot = &mut self.host.slots[zone as usize];
                slot.appends -= 1;
                slot.append_units -= units;
                let first = end.appended().map(|lba| {
                    let unit_sectors = self.options.device.ftl.mapping_unit.get() / 512;
                    (lba.0 / unit_sectors) as u32 - zone * self.host.size
                });
                self.write_ended(end, (zone, stamp), first.unwrap_or(0), 0)?;
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
            Pending::Misuse if is_done => {
                let message = format!("{:?} must be refused, and was not", end.op);
                return Err(Trouble { kind: Kind::Status, message });
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
                let asked = (zone, filter, partial, most);
                if let Some(message) = self.host.wrong_in_report(asked, report) {
                    return Err(Trouble { kind: Kind::Zone, message });
                }
            }
            Pending::Inert { .. } | Pending::Misuse => {}
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
        (zone, stamp): (u32, u64),
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
