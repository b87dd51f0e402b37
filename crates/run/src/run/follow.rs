//! One slow command, and everything around it: a run is made twice, first to find the command, then to
//! follow what host, channels and dies do while it waits.
//!
//! **Invariants**
//! - Following changes nothing: the second run is held against the first by its digest.
//! - Times of flash operations are exact. When one began or ceased to wait for its channel, how much is
//!   buffered, free and waiting at the gate is known to a [`Window::step`].

use std::collections::BTreeMap;

use leyden_device::{Activity, Payload, Phase, Ssd, ZnsSsd};
use leyden_sim::{Span, Time};
use leyden_workload::Request;

use super::{AgedDrives, Bounds, Hooks, RunError, run_within};
use leyden_config::Scenario;
use leyden_record::{FollowedCommand, FollowedOperation, Levels, RunRecord, SlowCommand, Timeline};

/// The most looks at a drive.
const MOST_LOOKS: u64 = 20_000;
/// The least time between two: a third of what the smallest transfers take.
const LEAST_STEP: Span = Span::from_us(1);

/// Which command is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The slowest read.
    Read,
    /// The slowest write.
    Write,
    /// The slowest flush.
    Flush,
    /// The slowest of all.
    Any,
    /// None: whatever is going on at this time of the run, its ramp included.
    At(Span),
}

impl Wanted {
    const fn noun(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Any | Self::At(_) => "read, write or flush",
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::Any | Self::At(_) => "give the run some to do after its ramp",
            Self::Read | Self::Write | Self::Flush => "ask for another kind of command",
        }
    }
}

/// The command to follow, and how much around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follow {
    /// Around which command.
    pub wanted: Wanted,
    /// So much before it arrived.
    pub before: Span,
    /// So much after it completed.
    pub after: Span,
}

/// A part of a run, counted from its beginning, ramp included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    from: Span,
    until: Span,
}

impl Window {
    fn step(self) -> Span {
        let length_ns = self.until.as_ns().saturating_sub(self.from.as_ns());
        Span::from_ns(length_ns / MOST_LOOKS).max(LEAST_STEP)
    }
}

/// A command that was followed, in its run.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The run.
    pub record: RunRecord,
    /// The activity around the command.
    pub timeline: Timeline,
}

/// Follows a command of `scenario`.
pub fn follow(
    scenario: &Scenario,
    ask: Follow,
    hooks: &mut Hooks<'_>,
) -> Result<Followed, RunError> {
    let aged = AgedDrives::of([scenario, scenario]);
    let mut once = |bounds: Bounds<'_>| {
        let (cancel, cache) = (hooks.cancel, hooks.cache);
        let mut none = |_, _| {};
        let progress = hooks.progress.as_deref_mut().unwrap_or(&mut none);
        let mut hooks = Hooks {
            cancel,
            progress: Some(progress),
            aged: Some(&aged),
            cache,
            ..Hooks::default()
        };
        let outcome = run_within(scenario, &mut hooks, bounds)?;
        if outcome.interrupted { Err(RunError::Interrupted) } else { Ok(outcome) }
    };
    let first = once(Bounds::default())?;
    let [read, write, flush] = first.slowest;
    let slow = match ask.wanted {
        Wanted::Read => read,
        Wanted::Write => write,
        Wanted::Flush => flush,
        Wanted::Any => {
            let all = [read, write, flush].into_iter().flatten();
            all.max_by_key(|slow| slow.completed.as_ns() - slow.arrived.as_ns())
        }
        Wanted::At(_) => None,
    };
    let around = match (ask.wanted, slow) {
        (Wanted::At(at), _) => SlowCommand { arrived: at, completed: at },
        (_, Some(slow)) => slow,
        (wanted, None) => {
            let problem = format!("no {} was measured; {}", wanted.noun(), wanted.remedy());
            return Err(RunError::config("workload", problem));
        }
    };
    let from = Span::from_ns(around.arrived.as_ns().saturating_sub(ask.before.as_ns()));
    let window = Window { from, until: around.completed + ask.after };
    let second = once(Bounds { window: Some(window), ..Bounds::default() })?;
    assert_eq!(first.record.sim.digest, second.record.sim.digest, "following has changed the run");
    let timeline = Timeline { slow, ..second.timeline.unwrap_or_default() };
    Ok(Followed { record: second.record, timeline })
}

/// A drive, or several that make up a device, as a timeline shows it.
pub(super) trait Visible {
    /// How full things are; the moment is the caller's.
    fn levels(&self) -> Levels;
    /// The activity of each die that is not idle. Dies and channels of several drives are numbered
    /// on.
    fn activities(&self) -> Vec<Activity>;
}

impl<P: Payload> Visible for Ssd<P> {
    fn levels(&self) -> Levels {
        let stats = self.stats();
        Levels {
            at: Span::ZERO,
            buffered_bytes: stats.buffered_units.get() * u64::from(self.geometry().unit_bytes()),
            free_blocks: stats.free_blocks.get(),
            at_gate: self.waiting_at_gate(),
        }
    }

    fn activities(&self) -> Vec<Activity> {
        self.activity().collect()
    }
}

impl<P: Payload> Visible for ZnsSsd<P> {
    fn levels(&self) -> Levels {
        let fill = self.pool_fill();
        let units = u64::from(fill.protected) + u64::from(fill.plain);
        Levels {
            at: Span::ZERO,
            buffered_bytes: units * u64::from(self.geometry().unit_bytes()),
            free_blocks: self.free_blocks(),
            at_gate: 0, // there is no mapping table
        }
    }

    fn activities(&self) -> Vec<Activity> {
        self.activity().collect()
    }
}

/// Looks at a drive while a window of its run goes on.
struct Follower {
    start: Time,
    window: Window,
    next: Time,
    /// The command in each of the driver's slots.
    open: BTreeMap<u32, FollowedCommand>,
    /// The operation on each die.
    doing: BTreeMap<u32, FollowedOperation>,
    timeline: Timeline,
}

impl Follower {
    fn new(start: Time, window: Window) -> Self {
        Self {
            start,
            window,
            next: start + window.from,
            open: BTreeMap::new(),
            doing: BTreeMap::new(),
            timeline: Timeline { window: (window.from, window.until), ..Timeline::default() },
        }
    }

    fn since(&self, time: Time) -> Span {
        time.since(self.start)
    }

    fn submitted(&mut self, now: Time, slot: u32, arrived: Time, request: &Request) {
        let command = FollowedCommand {
            op: request.op,
            lba: request.lba.0,
            sectors: request.sectors,
            arrived: self.since(arrived),
            submitted: self.since(now),
            ended: None,
        };
        self.open.insert(slot, command);
    }

    fn gone(&mut self, time: Time, slot: u32) {
        let ended = self.since(time);
        let Some(command) = self.open.remove(&slot) else { return };
        if ended >= self.window.from && command.arrived <= self.window.until {
            self.timeline.commands.push(FollowedCommand { ended: Some(ended), ..command });
        }
    }

    /// Takes what `drive` does at `time`.
    fn look(&mut self, time: Time, drive: &impl Visible) {
        let now = self.since(time);
        self.timeline.levels.push(Levels { at: now, ..drive.levels() });
        let mut seen = BTreeMap::new();
        for activity in drive.activities() {
            let before = self.doing.remove(&activity.die);
            let continued = before.filter(|doing| is_same(doing, &activity, self.start));
            if continued.is_none() {
                self.timeline.operations.extend(before);
            }
            let mut doing = continued.unwrap_or(FollowedOperation {
                die: activity.die,
                channel: activity.channel,
                kind: activity.kind,
                address: activity.address,
                waited: None,
                transfer: None,
                array: None,
            });
            let span = |from: Time, until: Time| Some((self.since(from), self.since(until)));
            match activity.phase {
                Phase::Waiting => doing.waited = Some((doing.waited.map_or(now, |it| it.0), now)),
                Phase::Array(from, until) => doing.array = span(from, until),
                Phase::ReadTransfer(from, until) => doing.transfer = span(from, until),
                Phase::Program(from, on_die, until) => {
                    (doing.transfer, doing.array) = (span(from, on_die), span(on_die, until));
                }
            }
            seen.insert(activity.die, doing);
        }
        let done = std::mem::replace(&mut self.doing, seen);
        self.timeline.operations.extend(done.into_values());
        let next = time + self.window.step();
        self.next = if self.since(next) > self.window.until { Time::MAX } else { next };
    }

    fn finish(mut self) -> Timeline {
        let (window, open) = (self.window, std::mem::take(&mut self.open));
        let open = open.into_values().filter(|command| command.arrived <= window.until);
        self.timeline.commands.extend(open);
        self.timeline.commands.sort_by_key(|command| (command.submitted, command.lba));
        self.timeline.operations.extend(std::mem::take(&mut self.doing).into_values());
        self.timeline.operations.sort_by_key(|it| (it.begin(), it.die));
        self.timeline
    }
}

/// The follower of a run, if it is followed.
pub(super) struct Following(Option<Follower>);

impl Following {
    /// Follows `window` of a run that begins at `start`.
    pub(super) fn new(start: Time, window: Option<Window>) -> Self {
        Self(window.map(|window| Follower::new(start, window)))
    }

    pub(super) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn next_moment(&self) -> Time {
        self.0.as_ref().map_or(Time::MAX, |follower| follower.next)
    }

    pub(super) fn look_if_due(&mut self, now: Time, drive: &impl Visible) {
        if let Some(follower) = self.0.as_mut().filter(|follower| now >= follower.next) {
            follower.look(now, drive);
        }
    }

    pub(super) fn submitted(&mut self, now: Time, slot: u32, arrived: Time, request: &Request) {
        if let Some(follower) = &mut self.0 {
            follower.submitted(now, slot, arrived, request);
        }
    }

    pub(super) fn gone(&mut self, time: Time, slot: u32) {
        if let Some(follower) = &mut self.0 {
            follower.gone(time, slot);
        }
    }

    pub(super) fn finish(self) -> Option<Timeline> {
        self.0.map(Follower::finish)
    }
}

/// Whether a die still does the operation seen before.
fn is_same(doing: &FollowedOperation, activity: &Activity, start: Time) -> bool {
    let began = match activity.phase {
        Phase::Array(from, _) => doing.array.is_none_or(|array| array.0 == from.since(start)),
        Phase::Program(from, ..) => doing.transfer.is_none_or(|it| it.0 == from.since(start)),
        Phase::ReadTransfer(..) => true,
        // Of an operation that has been on the channel, that is over.
        Phase::Waiting => doing.transfer.is_none(),
    };
    (doing.kind, doing.address) == (activity.kind, activity.address) && began
}
