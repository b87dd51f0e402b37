//! The loop of a run: the source of a phase's commands, and the condition that ends it.

use std::collections::BTreeMap;

use leyden_device::{Command, Completion, DataKind, Lba, Region, SECTOR_BYTES, Ssd};
use leyden_host::Powered;
use leyden_oracle::{Id, Op, Oracle, Promise, Request};
use leyden_sim::{Digest, Ratio, Rng, Span, Time};

use super::{Inspected, Outcome, Trouble, atomic};
use crate::commands::Commands;
use crate::coverage::{Coverage, Hits, Point};
use crate::event_log::EventLog;
use crate::faulty::FaultLog;
use crate::options::{mixed, rng};
use crate::physics::{Blocks, Physics};
use crate::traced::{Grain, TracedPayload};
use crate::{Failure, Kind, Options, Round, Tally, Verify};

/// A drive that is ready, and at which so much happens without a command's end, is stuck.
const MOST_EVENTS: u64 = 200_000;
/// Events are not counted for so long after the first that follows the end of a command.
const UNCOUNTED: Span = Span::from_ms(10);
/// A drive that has no room left has little more to show.
const MOST_FAULTS: u64 = 200;

/// A run under way.
#[derive(Clone, Debug)]
pub(crate) struct Runner<'a, P: TracedPayload, D> {
    pub(super) options: &'a Options,
    pub(super) commands: Commands<'a>,
    pub(crate) drive: D,
    pub(crate) oracle: Oracle,
    pub(super) host: HostSide,
    /// `None` if the drive cannot be looked into.
    pub(super) physics: Option<Physics>,
    pub(super) power: PowerSide,
    pub(super) digest: Digest,
    pub(super) tally: Tally,
    pub(super) hits: Hits,
    pub(super) story: EventLog,
    done: Vec<Completion<P>>,
    pub(super) stamps: Vec<u64>,
}

/// The host's commands in flight, and its chances.
#[derive(Clone, Debug)]
pub(super) struct HostSide {
    /// When the host looks late.
    late: Rng,
    /// The host's announcements.
    hints: Rng,
    pub(super) in_flight: u32,
    /// Those in flight that the oracle knows, by number; each with how many commands had been made fail on
    /// their way when it was submitted, or, for a flush of a file, how many of these had ended.
    pub(super) open: BTreeMap<u64, (Request, usize)>,
    /// A FLUSH that a cut waits for.
    pub(super) awaited: Option<Id>,
    /// Steps since a command ended.
    events: u64,
    /// Commands that were made fail on their way to the drive.
    pub(super) faults: FaultLog,
    /// How many had been made fail when the last FLUSH to end was submitted.
    pub(super) faults_at_flush: usize,
    /// The same of flushes of files, by the unit of the file.
    pub(super) faults_at_sync: BTreeMap<u64, usize>,
    /// The sectors that the oracle takes for a unit.
    pub(super) sectors_per_grain: u64,
    pub(super) unit_sectors: u64,
}

/// The run's knowledge of the drive's power.
#[derive(Clone, Debug)]
pub(super) struct PowerSide {
    /// When the drive is ready. Until then, a cache may look many times whether it can write.
    pub(super) ready: Time,
    /// It has been told that it is.
    pub(super) is_up: bool,
    /// When the dump of the last cut has ended.
    pub(super) dump_end: Time,
    /// The stamps that lost grains may read as.
    pub(super) left: BTreeMap<u32, Vec<u64>>,
    /// The number of the last command before the last cut.
    pub(super) last_before_cut: u64,
    /// The flash as it was when the power returned, or the drive became ready.
    pub(super) blocks: Option<Blocks>,
}

impl<'a, P, D> Runner<'a, P, D>
where
    P: TracedPayload,
    D: Powered<P>,
    D::Drive: Inspected<P>,
{
    pub(crate) fn new(options: &'a Options, drive: D, faults: FaultLog, tells: bool) -> Self {
        let units = drive.mapping_units();
        let unit_sectors = options.device.ftl.mapping_unit.get() / SECTOR_BYTES;
        let promise = match drive.region() {
            Region::None => Promise::None,
            Region::Full => Promise::Full,
            Region::Selective => Promise::Selective,
        };
        let per_grain = match P::GRAIN {
            Grain::Unit => unit_sectors,
            Grain::Sector => 1,
        };
        let grains = (u64::from(units) * unit_sectors / per_grain) as u32;
        Self {
            options,
            commands: Commands::new(options, units, unit_sectors as u32),
            physics: drive.drive().ssd().and_then(|_| Physics::new(&options.device)),
            drive,
            oracle: Oracle::new(grains, per_grain as u32, promise)
                .flushing_trims(options.device.flushes_trims())
                .with_atomic(atomic::of(options)),
            host: HostSide {
                late: rng(options.seed, "late"),
                hints: rng(options.seed, "hints"),
                in_flight: 0,
                open: BTreeMap::new(),
                awaited: None,
                events: 0,
                faults,
                faults_at_flush: 0,
                faults_at_sync: BTreeMap::new(),
                sectors_per_grain: per_grain,
                unit_sectors,
            },
            power: PowerSide {
                ready: Time::ZERO,
                is_up: true,
                dump_end: Time::ZERO,
                left: BTreeMap::new(),
                last_before_cut: 0,
                blocks: None,
            },
            digest: Digest::default(),
            tally: Tally::default(),
            hits: Hits::default(),
            story: EventLog::new(tells),
            done: Vec::new(),
            stamps: Vec::new(),
        }
    }

    /// The drive, if it can be looked into.
    pub(super) fn ssd(&self) -> Option<&Ssd<P>> {
        self.drive.drive().ssd()
    }

    pub(crate) fn into_outcome(mut self, result: Result<(), Trouble>) -> (Outcome, Vec<String>) {
        let losses = self.oracle.losses();
        self.tally.reported_losses = losses.reported;
        self.tally.uncertain_units = losses.uncertain;
        self.tally.confirmed_losses = losses.confirmed;
        self.count_work();
        let failure = result.err().map(|Trouble { kind, message }| Failure {
            kind,
            cuts: self.tally.cuts,
            message: self.story.with_context(&message),
        });
        let coverage = Coverage::of_run(self.options, &self.hits);
        let outcome = Outcome { tally: self.tally, coverage, digest: self.digest.value(), failure };
        (outcome, self.story.into_lines())
    }

    /// Writes as much of the drive as the options say.
    pub(crate) fn fill(&mut self) -> Result<(), Trouble> {
        let commands = self.commands.clone();
        self.play(commands.fill())
    }

    /// Command `number` of `round`.
    pub(crate) fn command(&self, round: u64, number: u64) -> Request {
        self.commands.command(round, number)
    }

    /// True if as many commands are in flight as may be.
    pub(crate) fn is_full(&self) -> bool {
        self.host.in_flight >= self.options.work.queue_depth
    }

    /// When something next happens.
    pub(crate) fn next_event(&self) -> Option<Time> {
        self.drive.next_event()
    }

    /// When the dump of the last cut has ended.
    pub(crate) const fn dump_end(&self) -> Time {
        self.power.dump_end
    }

    /// How long each step of the last recovery takes.
    pub(crate) fn recovery_steps(&self) -> Vec<Span> {
        self.story.recovery_steps()
    }

    pub(crate) fn run(&mut self) -> Result<(), Trouble> {
        let commands = self.commands.clone();
        self.fill()?;
        for round in &self.options.rounds {
            self.story.round(round.number);
            if round.reload {
                self.reload()?;
            }
            self.round(round)?;
            if self.tally.write_faults > MOST_FAULTS {
                break;
            }
        }
        self.drain()?;
        self.play(commands.all())?;
        self.drain()?;
        self.oracle.judge_left()?;
        self.drive.check();
        self.drive.drive().judge().map_err(|message| Trouble { kind: Kind::Fault, message })?;
        self.digest.add(self.drive.fingerprint());
        Ok(())
    }

    /// One round: work, cut, recovery, looks.
    fn round(&mut self, round: &Round) -> Result<(), Trouble> {
        let Some(at) = self.work(round)? else { return Ok(()) };
        if round.check {
            self.drive.check(); // amid work, too
        }
        self.cut(at)?;
        let mut ready = self.restore(at, round.off)?;
        for share in &round.again {
            let recovery = ready.since(self.drive.now());
            let at = self.drive.now() + Span::from_ns(share.of(recovery.as_ns()));
            if round.early {
                // Commands that wait for the recovery are cut off with it.
                let request = self.commands.look(!round.number, u64::from(self.host.in_flight));
                self.submit(request);
            }
            self.advance(at)?;
            self.cut(at)?;
            self.tally.cuts_in_recovery += 1;
            ready = self.restore(at, round.off)?;
        }
        self.hits.hit_if(round.early, Point::RecoveryEarly);
        if !round.early {
            self.advance(ready)?;
        }
        if round.check && !round.early {
            self.drive.check();
        }
        self.verify(round.number, round.verify)
    }

    /// Looks at what a recovery has left.
    pub(crate) fn verify(&mut self, number: u64, verify: Verify) -> Result<(), Trouble> {
        let commands = self.commands.clone();
        match verify {
            Verify::Nothing => {}
            Verify::Some(count) => {
                let looks = (0..u64::from(count)).map(|n| commands.look(number, n));
                self.play(looks)?;
            }
            Verify::All => {
                self.play(commands.all())?;
                self.drain()?;
                self.oracle.judge_left()?;
                self.oracle.compact();
            }
        }
        Ok(())
    }

    /// Exchanges the drive for one that was saved and loaded, if nothing stands on it and it comes to rest.
    fn reload(&mut self) -> Result<(), Trouble> {
        if self.options.host.is_some() {
            return Ok(());
        }
        self.drain()?;
        let is_idle = |runner: &Self| runner.ssd().is_none_or(Ssd::is_idle);
        while !is_idle(self) && self.drive.next_event().is_some() {
            self.step_in_time()?;
        }
        self.count_work();
        let Some(ssd) = self.drive.drive_mut().ssd_mut().filter(|ssd| ssd.is_idle()) else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        let (device, seed) = (&self.options.device, mixed(self.options.seed));
        let loaded = ssd.save(&mut bytes).and_then(|()| Ssd::load(device, seed, &mut &bytes[..]));
        match loaded {
            Ok(loaded) => *ssd = loaded,
            Err(error) => {
                let message = format!("a drive that was saved cannot be loaded: {error}");
                return Err(Trouble { kind: Kind::Refused, message });
            }
        }
        self.power.blocks = None; // what it counts begins at 0
        self.tally.reloads += 1;
        self.hits.hit(Point::WorkReload);
        Ok(())
    }

    /// Submits all of `requests`, as many at once as the queue depth allows.
    pub(super) fn play(&mut self, requests: impl Iterator<Item = Request>) -> Result<(), Trouble> {
        for request in requests {
            while self.host.in_flight >= self.options.work.queue_depth {
                self.step()?;
            }
            self.submit(request);
        }
        Ok(())
    }

    /// Lets everything under way end.
    pub(super) fn drain(&mut self) -> Result<(), Trouble> {
        while self.host.in_flight > 0 {
            self.step()?;
        }
        Ok(())
    }

    pub(crate) fn submit(&mut self, request: Request) -> Id {
        let now = self.drive.now();
        let id = self.oracle.submit(now, self.as_seen_by_oracle(&request));
        let op = match request.op {
            Op::Read => leyden_device::Op::Read,
            Op::Write => leyden_device::Op::Write,
            Op::Flush | Op::Sync => leyden_device::Op::Flush,
            Op::Trim => leyden_device::Op::Trim,
            Op::WriteZeroes => leyden_device::Op::WriteZeroes,
        };
        let mut hints = self.commands.hints(&mut self.host.hints);
        let mut hint = if hints.len() == 1 { hints.pop() } else { None };
        if self.options.host.is_some()
            && id.0.is_multiple_of(2)
            && let Some(hint) = hint.take()
        {
            self.drive.announce(now, hint);
        }
        if !hints.is_empty() {
            self.drive.submit(now, Command::write_prepare(hints));
            self.host.in_flight += 1;
        }
        // Asked for by drives that believe it.
        let kind = if id.0.is_multiple_of(4) { DataKind::Log } else { DataKind::Data };
        let data = P::data(id.0, request.lba, request.sectors);
        let command = match request.op {
            Op::Sync => Command::sync(Lba(request.lba), request.sectors),
            _ => Command::new(op, Lba(request.lba), request.sectors, data),
        };
        let command = command
            // A page cache, if there is one, promises the same of a request that passes it by.
            .direct(id.0 % 8 == 5)
            .fua(request.fua)
            .kind(kind)
            .hint(hint)
            .plp(request.plp);
        self.drive.submit(now, command.tag(id.0 as u32));
        self.host.in_flight += 1;
        let faults_before = match request.op {
            // It may wait for one that is on its way, as others do that wait with it.
            Op::Sync => self.host.faults.told(),
            _ => self.host.faults.len(),
        };
        self.host.open.insert(id.0, (request, faults_before));
        self.tally.commands += 1;
        self.note_submitted(&request);
        self.story.submitted(now, id, &request);
        id
    }

    /// The effect of `request` in the oracle's grains: a trim leaves units alone that it covers in part.
    fn as_seen_by_oracle(&self, request: &Request) -> Request {
        let HostSide { sectors_per_grain, unit_sectors, .. } = self.host;
        if request.op != Op::Trim || sectors_per_grain == unit_sectors {
            return *request;
        }
        let first = request.lba.next_multiple_of(unit_sectors);
        let end = (request.lba + u64::from(request.sectors)) / unit_sectors * unit_sectors;
        Request { lba: first.min(end), sectors: end.saturating_sub(first) as u32, ..*request }
    }

    /// Only the oracle judges how a change in flight affects lost data.
    fn note_submitted(&mut self, request: &Request) {
        let per_grain = self.host.sectors_per_grain;
        let end = request.lba + u64::from(request.sectors);
        if matches!(request.op, Op::Read | Op::Flush | Op::Sync) {
            return;
        }
        let unit_sectors = self.host.unit_sectors;
        self.hits.hit_if(
            !request.lba.is_multiple_of(unit_sectors) || !end.is_multiple_of(unit_sectors),
            Point::WorkPartial,
        );
        if !self.power.left.is_empty() {
            let touched = (request.lba / per_grain) as u32..end.div_ceil(per_grain) as u32;
            self.power.left.retain(|grain, _| !touched.contains(grain));
        }
    }

    /// Advances to the next event, or somewhat later if the host looks late. A host that never does sees nothing of what
    /// happens until a command ends.
    pub(crate) fn step(&mut self) -> Result<(), Trouble> {
        if self.options.work.late == Ratio::ZERO && self.power.is_up && self.host.events == 0 {
            return self.step_to_completion();
        }
        let Some(mut at) = self.drive.next_event() else { return Err(self.stuck()) };
        if self.host.late.chance(self.options.work.late) {
            at += Span::from_ns(self.host.late.below(500_000));
        }
        self.advance(at)
    }

    /// Advances until a command ends. If none does for some time, events are taken one by one, and counted, from then on.
    fn step_to_completion(&mut self) -> Result<(), Trouble> {
        let Some(first) = self.drive.next_event() else { return Err(self.stuck()) };
        let limit = first + UNCOUNTED;
        let mut done = std::mem::take(&mut self.done);
        let at = self.drive.advance_until_completion(self.drive.now(), limit, &mut done);
        self.advanced(at, done)
    }

    /// Advances to the next event.
    pub(crate) fn step_in_time(&mut self) -> Result<(), Trouble> {
        let Some(at) = self.drive.next_event() else { return Err(self.stuck()) };
        self.advance(at)
    }

    /// A command that waits while nothing is under way would wait for ever.
    pub(super) fn check_moving(&self) -> Result<(), Trouble> {
        if self.host.in_flight > 0 && self.drive.next_event().is_none() {
            return Err(self.stuck());
        }
        Ok(())
    }

    fn stuck(&self) -> Trouble {
        let under_way = if self.drive.next_event().is_none() { "nothing" } else { "something" };
        let message =
            format!("{} commands do not end, and {under_way} is under way", self.host.in_flight);
        Trouble { kind: Kind::Stuck, message }
    }

    pub(crate) fn advance(&mut self, at: Time) -> Result<(), Trouble> {
        let mut done = std::mem::take(&mut self.done);
        self.drive.advance(at, &mut done);
        self.advanced(at, done)
    }

    /// The drive has come to `at`, and `done` has ended.
    fn advanced(&mut self, at: Time, mut done: Vec<Completion<P>>) -> Result<(), Trouble> {
        if !self.power.is_up && at >= self.power.ready {
            self.power.is_up = true;
            self.check_ready(at)?;
        }
        let waits = done.is_empty() && self.host.in_flight > 0 && at > self.power.ready;
        self.host.events = if waits { self.host.events + 1 } else { 0 };
        if self.host.events > MOST_EVENTS {
            return Err(self.stuck());
        }
        let lost = self.drive.take_lost_units();
        if !lost.is_empty() {
            self.unwritten(lost)?;
        }
        let result = done.drain(..).try_for_each(|completion| self.completed(&completion));
        self.done = done;
        result
    }
}
