//! A run: commands, power cuts, recoveries, and every answer checked.

use leyden_device::{Command, Completion, Lba, SECTOR_BYTES, Ssd, Stamp, Status};
use leyden_host::Powered;
use leyden_host::stack::{self, StackConfig, Visitor};
use leyden_oracle::{Ended, Id, Op, Oracle, Promise, Request, Violation};
use leyden_sim::{Digest, Ratio, Rng, Span, Time};
use serde::{Deserialize, Serialize};

use crate::commands::Commands;
use crate::faulty::Faulty;
use crate::fold::{add_cut, add_recovery};
use crate::options::{mixed, rng};
use crate::panics::caught;
use crate::{Cut, Failure, Host, Kind, Options, Round, Verify};

/// A drive that is ready, and at which so much happens without a command's end, is stuck.
const MOST_EVENTS: u64 = 200_000;
/// A drive that has no room left has little more to show.
const MOST_FAULTS: u64 = 200;
/// The most commands with which a round goes on while it waits for its cut.
const MOST_EXTRA: u64 = 2_000;

/// The outcome of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What was done.
    pub tally: Tally,
    /// Fingerprint of everything that the drive did and answered.
    pub digest: u64,
    /// What went wrong, if anything; the run ended there.
    pub failure: Option<Failure>,
}

/// What a run did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Power cuts.
    pub cuts: u64,
    /// Those of them that interrupted a recovery.
    pub cuts_in_recovery: u64,
    /// Commands submitted, those that only look after a cut included.
    pub commands: u64,
    /// Commands in flight at cuts.
    pub cut_off: u64,
    /// Commands that ended with a write fault.
    pub write_faults: u64,
    /// Units whose promised content the drive said that it lost, as it may.
    pub reported_losses: u64,
    /// Units whose place the drive said that it forgot, as it may: it found some version of them.
    pub uncertain_units: u64,
    /// Those of all of them that were seen to be lost.
    pub confirmed_losses: u64,
    /// Units that were dirty in a page cache, or being written out of it, at cuts.
    #[serde(default)]
    pub cached_losses: u64,
    /// Units that a page cache could not write out.
    #[serde(default)]
    pub unwritten_units: u64,
}

impl Tally {
    /// All of its numbers.
    pub(crate) const fn numbers(&self) -> [u64; 10] {
        [
            self.cuts,
            self.cuts_in_recovery,
            self.commands,
            self.cut_off,
            self.write_faults,
            self.reported_losses,
            self.uncertain_units,
            self.confirmed_losses,
            self.cached_losses,
            self.unwritten_units,
        ]
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.cuts += other.cuts;
        self.cuts_in_recovery += other.cuts_in_recovery;
        self.commands += other.commands;
        self.cut_off += other.cut_off;
        self.write_faults += other.write_faults;
        self.reported_losses += other.reported_losses;
        self.uncertain_units += other.uncertain_units;
        self.confirmed_losses += other.confirmed_losses;
        self.cached_losses += other.cached_losses;
        self.unwritten_units += other.unwritten_units;
    }
}

/// Runs `options` once, on the drive that they describe, through what stands on it.
pub fn run(options: &Options) -> Outcome {
    match Ssd::<Stamp>::new(&options.device, mixed(options.seed)) {
        Ok(drive) => run_through(options, drive),
        Err(error) => refused(format!("the drive cannot be built: {error}")),
    }
}

/// Runs `options` once on a drive of the caller's, through what they say stands on it.
pub fn run_through<D: Powered<Stamp, Drive = D>>(options: &Options, drive: D) -> Outcome {
    let (config, failing_writes) = match &options.host {
        Some(Host { page_cache, failing_writes, hints }) => {
            (StackConfig { hints: Some(hints), page_cache: page_cache.as_ref() }, *failing_writes)
        }
        None => (StackConfig::default(), Ratio::ZERO),
    };
    let faulty =
        |channel| Faulty::new(channel, failing_writes, rng(options.seed, "failing writes"));
    stack::build(config, drive, mixed(options.seed), faulty, Run(options))
        .unwrap_or_else(|error| refused(format!("the host cannot be built: {error}")))
}

/// Runs its options once on a stack.
struct Run<'a>(&'a Options);

impl<T> Visitor<Stamp, T> for Run<'_> {
    type Output = Outcome;

    fn visit<S: Powered<Stamp, Drive = T>>(self, stack: S) -> Outcome {
        run_on(self.0, stack)
    }
}

fn refused(message: String) -> Outcome {
    let failure = Failure { kind: Kind::Refused, cuts: 0, message };
    Outcome { tally: Tally::default(), digest: 0, failure: Some(failure) }
}

/// Runs `options` once on a drive of the caller's, and on nothing else.
pub fn run_on<D: Powered<Stamp>>(options: &Options, drive: D) -> Outcome {
    let mut runner = Runner::new(options, drive);
    let result = caught(|| runner.run()).unwrap_or_else(|panic| {
        Err(Trouble { kind: Kind::Panicked, message: format!("the drive panicked: {panic}") })
    });
    let mut tally = runner.tally;
    let losses = runner.oracle.losses();
    tally.reported_losses = losses.reported;
    tally.uncertain_units = losses.uncertain;
    tally.confirmed_losses = losses.confirmed;
    let failure =
        result.err().map(|Trouble { kind, message }| Failure { kind, cuts: tally.cuts, message });
    Outcome { tally, digest: runner.digest.value(), failure }
}

/// A failure on its way out.
#[derive(Debug)]
struct Trouble {
    kind: Kind,
    message: String,
}

impl From<Box<Violation>> for Trouble {
    fn from(violation: Box<Violation>) -> Self {
        Self { kind: violation.problem.into(), message: violation.to_string() }
    }
}

/// The source of a phase's commands, and the condition that ends it.
struct Runner<'a, D> {
    options: &'a Options,
    commands: Commands<'a>,
    drive: D,
    oracle: Oracle,
    /// When the host looks late.
    late: Rng,
    /// What it announces.
    hints: Rng,
    digest: Digest,
    tally: Tally,
    in_flight: u32,
    /// Steps since a command ended.
    events: u64,
    /// When the drive is ready. Until then, a cache may look many times whether it can write.
    ready: Time,
    /// A FLUSH that a cut waits for.
    awaited: Option<Id>,
    done: Vec<Completion<Stamp>>,
    stamps: Vec<u64>,
}

impl<'a, D: Powered<Stamp>> Runner<'a, D> {
    fn new(options: &'a Options, drive: D) -> Self {
        let units = drive.mapping_units();
        let unit_sectors = (options.device.ftl.mapping_unit.get() / SECTOR_BYTES) as u32;
        let promise = Promise::of_acknowledged(drive.keeps_acknowledged());
        Self {
            options,
            commands: Commands::new(options, units, unit_sectors),
            drive,
            oracle: Oracle::new(units, unit_sectors, promise),
            late: rng(options.seed, "late"),
            hints: rng(options.seed, "hints"),
            digest: Digest::default(),
            tally: Tally::default(),
            in_flight: 0,
            events: 0,
            ready: Time::ZERO,
            awaited: None,
            done: Vec::new(),
            stamps: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), Trouble> {
        let commands = self.commands.clone();
        self.play(commands.fill())?;
        for round in &self.options.rounds {
            self.round(round)?;
            if self.tally.write_faults > MOST_FAULTS {
                break;
            }
        }
        self.drain()?;
        self.play(commands.all())?;
        self.drive.check();
        self.digest.add(self.drive.fingerprint());
        Ok(())
    }

    /// One round: work, cut, recovery, looks.
    fn round(&mut self, round: &Round) -> Result<(), Trouble> {
        let Some(at) = self.work(round)? else { return Ok(()) };
        self.cut(at)?;
        let mut ready = self.restore(at, round.off);
        for share in &round.again {
            let recovery = ready.since(self.drive.now());
            let at = self.drive.now() + Span::from_ns(share.of(recovery.as_ns()));
            if round.early {
                // What waits for the recovery is cut off with it.
                let request = self.commands.look(!round.number, u64::from(self.in_flight));
                self.submit(request);
            }
            self.advance(at)?;
            self.cut(at)?;
            self.tally.cuts_in_recovery += 1;
            ready = self.restore(at, round.off);
        }
        if !round.early {
            self.advance(ready)?;
        }
        if round.check && !round.early {
            self.drive.check();
        }
        let commands = self.commands.clone();
        match round.verify {
            Verify::Nothing => {}
            Verify::Some(count) => {
                let looks = (0..u64::from(count)).map(|n| commands.look(round.number, n));
                self.play(looks)?;
            }
            Verify::All => {
                self.play(commands.all())?;
                self.drain()?;
                self.oracle.compact();
            }
        }
        Ok(())
    }

    /// The round's commands; yields the moment of the cut.
    fn work(&mut self, round: &Round) -> Result<Option<Time>, Trouble> {
        let commands = self.commands.clone();
        let number = round.number;
        let left_out = |n: u32| round.skip.iter().any(|&(first, last)| (first..=last).contains(&n));
        let kept = (0..round.commands).filter(|&n| !left_out(n));
        self.play(kept.map(|n| commands.command(number, u64::from(n))))?;
        let rest = (u64::from(round.commands)..).map(|n| commands.command(number, n));
        let mut rest = rest.take(MOST_EXTRA as usize);
        match round.cut {
            Cut::Never => return Ok(None),
            Cut::After(span) => {
                let at = self.drive.now() + span;
                self.go_on(&mut rest, |_, next| next.is_none_or(|next| next > at))?;
                self.advance(at)?;
            }
            Cut::AtEvent { events, before } => {
                let mut left = events;
                self.go_on(&mut rest, |_, _| {
                    left = left.saturating_sub(1);
                    left == 0
                })?;
                match self.drive.next_event() {
                    Some(at) if before => return Ok(Some(at)),
                    Some(at) => self.advance(at)?,
                    None => {}
                }
            }
            Cut::AfterFlush(span) => {
                let flush = Request { op: Op::Flush, lba: 0, sectors: 0, fua: false, plp: false };
                self.awaited = Some(self.submit(flush));
                self.go_on(&mut rest, |runner, _| runner.awaited.is_none())?;
                let at = self.drive.now() + span;
                self.go_on(&mut rest, |_, next| next.is_none_or(|next| next > at))?;
                self.advance(at)?;
            }
            Cut::Idle(span) => {
                self.drain()?;
                self.advance(self.drive.now() + span)?;
            }
        }
        Ok(Some(self.drive.now()))
    }

    /// Submits all of `requests`, as many at once as the queue depth allows.
    fn play(&mut self, requests: impl Iterator<Item = Request>) -> Result<(), Trouble> {
        for request in requests {
            while self.in_flight >= self.options.work.queue_depth {
                self.step()?;
            }
            self.submit(request);
        }
        Ok(())
    }

    /// Goes on with `requests`, if there are, until `ends` says so; it is asked before each step and
    /// told when the next event is.
    fn go_on(
        &mut self,
        requests: &mut dyn Iterator<Item = Request>,
        mut ends: impl FnMut(&Self, Option<Time>) -> bool,
    ) -> Result<(), Trouble> {
        loop {
            while self.in_flight < self.options.work.queue_depth
                && let Some(request) = requests.next()
            {
                self.submit(request);
            }
            let next = self.drive.next_event();
            if ends(self, next) || next.is_none() {
                return Ok(());
            }
            self.step_in_time()?;
        }
    }

    /// Lets everything under way end.
    fn drain(&mut self) -> Result<(), Trouble> {
        while self.in_flight > 0 {
            self.step()?;
        }
        Ok(())
    }

    fn submit(&mut self, request: Request) -> Id {
        let now = self.drive.now();
        let id = self.oracle.submit(now, request);
        let op = match request.op {
            Op::Read => leyden_device::Op::Read,
            Op::Write => leyden_device::Op::Write,
            Op::Flush => leyden_device::Op::Flush,
            Op::Trim => leyden_device::Op::Trim,
            Op::WriteZeroes => leyden_device::Op::WriteZeroes,
        };
        let mut hints = self.commands.hints(&mut self.hints);
        let mut hint = if hints.len() == 1 { hints.pop() } else { None };
        if self.options.host.is_some()
            && id.0.is_multiple_of(2)
            && let Some(hint) = hint.take()
        {
            self.drive.announce(now, hint);
        }
        if !hints.is_empty() {
            self.drive.submit(now, Command::write_prepare(hints));
            self.in_flight += 1;
        }
        let is_log = id.0.is_multiple_of(4); // asked for by drives that believe it
        let command = Command::new(op, Lba(request.lba), request.sectors, id.0)
            .fua(request.fua)
            .log(is_log)
            .hint(hint);
        self.drive.submit(now, command.tag(id.0 as u32));
        self.in_flight += 1;
        self.tally.commands += 1;
        id
    }

    /// Advances to the next event, or somewhat later if the host looks late.
    fn step(&mut self) -> Result<(), Trouble> {
        let Some(mut at) = self.drive.next_event() else { return Err(self.stuck()) };
        if self.late.chance(self.options.work.late) {
            at += Span::from_ns(self.late.below(500_000));
        }
        self.advance(at)
    }

    /// Advances to the next event.
    fn step_in_time(&mut self) -> Result<(), Trouble> {
        let Some(at) = self.drive.next_event() else { return Err(self.stuck()) };
        self.advance(at)
    }

    fn stuck(&self) -> Trouble {
        let message = format!("{} commands do not end", self.in_flight);
        Trouble { kind: Kind::Stuck, message }
    }

    fn advance(&mut self, at: Time) -> Result<(), Trouble> {
        let mut done = std::mem::take(&mut self.done);
        self.drive.advance(at, &mut done);
        let waits = done.is_empty() && self.in_flight > 0 && at > self.ready;
        self.events = if waits { self.events + 1 } else { 0 };
        if self.events > MOST_EVENTS {
            return Err(self.stuck());
        }
        let lost = self.drive.take_lost_units();
        if !lost.is_empty() {
            self.tally.unwritten_units += lost.len() as u64;
            self.oracle.note_unwritten(lost);
        }
        let result = done.drain(..).try_for_each(|completion| self.completed(&completion));
        self.done = done;
        result
    }

    fn completed(&mut self, completion: &Completion<Stamp>) -> Result<(), Trouble> {
        self.in_flight -= 1;
        if completion.op == leyden_device::Op::WritePrepare {
            self.digest.add(u64::from(completion.status.code())); // refused if beyond the end
            return Ok(());
        }
        let id = Id(u64::from(completion.tag));
        if self.awaited == Some(id) {
            self.awaited = None;
        }
        let is_read = completion.op == leyden_device::Op::Read;
        let ended = match completion.status {
            Status::Success => Ended::Done,
            Status::WriteFault if !is_read => Ended::Failed,
            Status::UnrecoveredRead if is_read => Ended::Failed,
            status => {
                let message = format!("{:?} #{} ended with {status:?}", completion.op, id.0);
                return Err(Trouble { kind: Kind::Status, message });
            }
        };
        self.tally.write_faults += u64::from(completion.status == Status::WriteFault);
        self.stamps.clear();
        self.stamps.extend(completion.data().into_iter().flatten().map(|stamp| stamp.0));
        for stamp in &self.stamps {
            self.digest.add(*stamp);
        }
        self.oracle.complete(completion.time, id, ended, &self.stamps)?;
        Ok(())
    }
}

/// Power.
impl<D: Powered<Stamp>> Runner<'_, D> {
    /// The power fails at `at`, and with it everything in flight.
    fn cut(&mut self, at: Time) -> Result<(), Trouble> {
        self.digest.add(self.drive.fingerprint()).add(at.as_ns());
        let cut = self.drive.cut_power(at);
        add_cut(&mut self.digest, &cut);
        self.oracle.cut(at);
        self.tally.cuts += 1;
        self.tally.cut_off += u64::from(self.in_flight);
        self.tally.cached_losses += cut.dirty_units.unwrap_or(0);
        (self.in_flight, self.awaited) = (0, None);
        let (lost, uncertain) = (cut.lost_units(), cut.uncertain_units());
        if !(lost.is_empty() && uncertain.is_empty() || self.may_lose()) {
            let message = format!("the drive lost units {lost:?}, and where {uncertain:?} lie");
            return Err(Trouble { kind: Kind::Underprovisioned, message });
        }
        self.oracle.note_loss_allowed(lost);
        self.oracle.note_uncertain(uncertain.into_iter().flatten());
        Ok(())
    }

    /// True if the drive may lack the energy to keep what it has promised.
    fn may_lose(&self) -> bool {
        let power = self.options.device.power.as_ref();
        power.is_some_and(|power| power.allow_underprovisioned)
    }

    /// Power returns `off` after the cut at `at`; yields when the drive is ready.
    fn restore(&mut self, at: Time, off: Span) -> Time {
        let at = at + off;
        let recovery = self.drive.restore_power(at);
        self.oracle.restore(at);
        add_recovery(&mut self.digest, &recovery);
        self.ready = recovery.ready_at;
        self.ready
    }
}
