//! The loop between a source of requests and a device.
//!
//! There is one copy of it for each device: source and check of content are called through tables, but on a bare
//! drive, where that would cost a few percent.

use std::sync::atomic::{AtomicBool, Ordering};

use leyden_device::{
    Action, BlockDevice, Command, Completion, DataKind, Hint, Op, Payload, SECTOR_BYTES,
};
use leyden_sim::Time;
use leyden_workload::zoned::ZoneLeft;
use leyden_workload::{Class, Request};

use super::measure::{Measure, Measured};
use super::slots::{Slot, Slots};
use super::tenants::Names;
use super::traffic::Sample;
use super::{Content, DriveError, Options, Watch};

/// How many steps between two looks at the cancel flag.
const CANCEL_EVERY: u64 = 1 << 12;
/// How many steps between two reports of progress.
const PROGRESS_EVERY: u64 = 1 << 16;

/// The answer of a source of requests when it is asked for the next one.
pub(super) enum Next {
    /// Submit this now.
    Submit {
        request: Request,
        /// Handed back to [`Source::completed`].
        owner: u32,
        /// When the host asked for it.
        arrived: Time,
    },
    /// Pass this hint on now, and ask again.
    Announce(Request),
    /// Ask again then, or after a completion.
    At(Time),
    /// Ask again after a completion.
    Wait,
    /// Nothing more will come.
    End,
}

/// Where requests come from.
pub(super) trait Source {
    /// The next request, if it may be submitted at `now`. `At` lies after `now`.
    fn next(&mut self, now: Time) -> Result<Next, DriveError>;
    /// Requests to come that are already known, each told once.
    #[inline]
    fn upcoming(&mut self) -> &[Request] {
        &[]
    }
    /// The names of the tenants that share the drive; none if it is not shared.
    fn tenants(&self) -> Names;
    /// Which of them asks for `request`, which is `owner`'s.
    fn tenant(&self, owner: u32, request: &Request) -> u8;
    /// A request of `owner`'s completed at `now`.
    fn completed(&mut self, owner: u32, now: Time);
    /// The power failed before a request of `owner`'s had ended, and is back `now`.
    fn cut_off(&mut self, owner: u32, now: Time) {
        self.completed(owner, now);
    }
    /// The power is back `now`, and these are the device's zones, if it has any. Told after everything that was cut
    /// off.
    fn recovered(&mut self, now: Time, zones: &[ZoneLeft]) {
        let _ = (now, zones);
    }
    /// The measurement begins `now`, after a ramp.
    fn measured_from(&mut self, now: Time) {
        let _ = now;
    }
    /// How far it has come in the time of a recording, if it replays one.
    fn recorded(&self) -> Option<Time> {
        None
    }
    /// The share done, 0..=1, as far as it is known.
    fn fraction(&self, now: Time) -> f64;
    /// True if `request` asks for the PLP flag, or opens a zone with a Zone Random Write Area.
    #[inline]
    fn asks_for_protection(&self, request: &Request) -> bool {
        let _ = request;
        false
    }
    /// True if `owner`'s requests pass page caches by.
    #[inline]
    fn is_direct(&self, owner: u32) -> bool {
        let _ = owner;
        false
    }
    /// Warnings to give at the end.
    fn warnings(&self) -> Vec<String>;
}

pub(super) struct Pump<'a, 'o, P: Payload, D, C: ?Sized, S: ?Sized> {
    device: &'a mut D,
    content: &'a mut C,
    source: &'a mut S,
    watch: &'a mut dyn Watch<P, D>,
    cancel: Option<&'o AtomicBool>,
    limit: u64,
    callbacks: Callbacks<'o>,
    slots: Slots,
    measure: Measure,
    listeners: Listeners,
    /// All requests pass page caches by.
    is_direct: bool,
    completions: Vec<Completion<P>>,
    now: Time,
    /// The end of an interval, a moment of the watch's, or a power cut: time goes no further than this.
    next_stop: Time,
    completed: u64,
    looks: Looks,
}

/// The listeners to each command. Asked once: the answers never change.
struct Listeners {
    /// [`Watch::follows_commands`].
    watch: bool,
    /// [`Content::is_checked`].
    content: bool,
    /// [`Content::minds_unwritten`].
    unwritten: bool,
}

/// The caller's functions; see [`Options`].
struct Callbacks<'o> {
    progress: Option<&'o mut dyn FnMut(f64)>,
    begun: Option<&'o mut dyn FnMut()>,
}

/// When the pump looks up: for cancellation and progress.
struct Looks {
    /// Loop turns and completions.
    steps: u64,
    next_look: u64,
    next_report: u64,
}

/// Whether more can come from the source, and when.
struct Coming {
    timer: Option<Time>,
    ended: bool,
}

impl<'a, 'o, P, D, C, S> Pump<'a, 'o, P, D, C, S>
where
    P: Payload,
    D: BlockDevice<P>,
    C: Content<P> + ?Sized,
    S: Source + ?Sized,
{
    pub(super) fn new(
        device: &'a mut D,
        content: &'a mut C,
        source: &'a mut S,
        watch: &'a mut dyn Watch<P, D>,
        options: Options<'o>,
    ) -> Self {
        let measure = Measure::new(
            options.start,
            options.ramp,
            options.settler,
            watch.stats(device),
            source.tenants(),
        );
        Self {
            next_stop: measure.next_boundary().min(watch.next_moment()).min(watch.next_cut()),
            limit: options.limit.unwrap_or(u64::MAX),
            completed: 0,
            is_direct: options.direct,
            listeners: Listeners {
                watch: watch.follows_commands(),
                content: content.is_checked(),
                unwritten: content.minds_unwritten(),
            },
            device,
            content,
            source,
            watch,
            cancel: options.cancel,
            callbacks: Callbacks { progress: options.progress, begun: options.begun },
            slots: Slots::default(),
            measure,
            completions: Vec::new(),
            now: options.start,
            looks: Looks { steps: 0, next_look: CANCEL_EVERY, next_report: PROGRESS_EVERY },
        }
    }

    pub(super) fn run(mut self) -> Result<Measured, DriveError> {
        loop {
            let coming = self.submit_ready()?;
            if coming.ended && self.slots.in_flight() == 0 {
                return Ok(self.finish(false));
            }
            if coming.timer.is_none() && self.device.next_event().is_none() {
                return Err(self.stuck());
            }
            let limit = coming.timer.unwrap_or(Time::MAX).min(self.next_stop);
            self.now = self.device.advance_until_completion(self.now, limit, &mut self.completions);
            if self.now == Time::MAX {
                return Ok(self.out_of_time());
            }
            self.handle_completions()?;
            if self.now >= self.next_stop {
                self.stop()?;
            }
            if let Some(cancelled) = self.ends() {
                return Ok(self.finish(cancelled));
            }
        }
    }

    /// An interval ends, the watch looks, or the power is cut.
    #[cold]
    fn stop(&mut self) -> Result<(), DriveError> {
        if self.now >= self.measure.next_boundary() {
            let begins = self.measure.boundary(self.now, &self.watch.stats(self.device));
            if begins {
                self.source.measured_from(self.now);
                self.measured_from_now();
            }
        }
        if self.now >= self.watch.next_moment() {
            // Events up to now have been processed: this call only advances the device's clock.
            self.device.advance(self.now, &mut self.completions);
            self.watch.look(self.now, self.device);
        }
        if self.now >= self.watch.next_cut() {
            self.cut()?;
        }
        self.set_stop();
        Ok(())
    }

    /// The power fails now, after what ends at this very moment, and returns.
    fn cut(&mut self) -> Result<(), DriveError> {
        let taken = self.slots.taken();
        let outage = self.watch.cut(self.now, self.device, taken.len() as u64);
        if let Some(units) = self.content.cut(&outage)? {
            self.watch.found_lost(units);
        }
        self.now = outage.back_at;
        for index in taken {
            let slot = self.slots.release(index);
            self.measure.gone(outage.at);
            if self.listeners.watch {
                self.watch.gone(outage.at, index);
            }
            self.source.cut_off(slot.owner, self.now);
        }
        self.source.recovered(self.now, &outage.zones);
        let stats = self.watch.stats(self.device);
        while self.now >= self.measure.next_boundary() && self.now < Time::MAX {
            let begins = self.measure.boundary(self.measure.next_boundary(), &stats);
            if begins {
                self.measured_from_now();
            }
        }
        while self.now >= self.watch.next_moment() && self.now < Time::MAX {
            self.watch.look(self.now, self.device);
        }
        Ok(())
    }

    /// The ramp is over.
    fn measured_from_now(&mut self) {
        self.watch.begin(self.device);
        self.measure.record_from(self.source.recorded());
        if let Some(begun) = &mut self.callbacks.begun {
            begun();
        }
    }

    fn set_stop(&mut self) {
        let stops = [self.watch.next_moment(), self.watch.next_cut()];
        self.next_stop = stops.into_iter().fold(self.measure.next_boundary(), Time::min);
    }

    #[cold]
    fn stuck(&self) -> DriveError {
        DriveError::Stuck { now: self.now, in_flight: self.slots.in_flight() as u64 }
    }

    /// Times saturate at the clock's end: what would happen there never happens.
    #[cold]
    fn out_of_time(self) -> Measured {
        let mut measured = self.finish(false);
        let problem = "the simulated clock ran out, after 584 years: the remaining requests were \
                       left out";
        measured.warnings.push(problem.to_owned());
        measured
    }

    fn finish(mut self, interrupted: bool) -> Measured {
        let mut warnings = self.source.warnings();
        if let Some(progress) = &mut self.callbacks.progress {
            progress(if interrupted { self.source.fraction(self.now) } else { 1.0 });
        }
        let after = self.watch.stats(self.device);
        let recorded = self.source.recorded();
        let mut measured = self.measure.finish(self.now, after, interrupted, recorded);
        measured.warnings.append(&mut warnings);
        measured
    }

    /// Submits everything that may be submitted now.
    #[inline]
    fn submit_ready(&mut self) -> Result<Coming, DriveError> {
        loop {
            let (timer, ended) = match self.source.next(self.now)? {
                Next::Submit { request, owner, arrived } => {
                    let upcoming = self.source.upcoming().iter();
                    let reads = upcoming.filter(|request| request.op == Op::Read);
                    self.device.expect(reads.map(|request| request.lba));
                    self.submit(&request, owner, arrived);
                    continue;
                }
                Next::Announce(hint) => {
                    self.announce(&hint);
                    continue;
                }
                Next::At(time) => (Some(time), false),
                Next::Wait => (None, false),
                Next::End => (None, true),
            };
            return Ok(Coming { timer, ended });
        }
    }

    /// A hint takes no slot, and nothing waits for it. It counts for cancellation, so that a trace of hints
    /// alone can be stopped.
    fn announce(&mut self, hint: &Request) {
        self.measure.hint();
        self.looks.steps += 1;
        for hint in Hint::covering(hint.lba, hint.sectors) {
            self.device.announce(self.now, hint);
        }
    }

    #[inline]
    fn submit(&mut self, request: &Request, owner: u32, arrived: Time) {
        let tenant = self.source.tenant(owner, request);
        self.measure.submitted(self.now);
        let is_flush = request.op == Op::Flush;
        let sectors = if is_flush { 0 } else { request.sectors };
        let slot = self.slots.take(Slot { owner, tenant, sectors, arrived });
        if self.listeners.watch {
            self.watch.submitted(self.now, slot, arrived, request);
        }
        let data = if self.listeners.content {
            self.content.submit(slot, self.now, request)
        } else {
            P::WriteData::default()
        };
        let is_protected = self.source.asks_for_protection(request);
        let mut command = command_of(request, data, is_protected);
        command.direct = self.is_direct || self.source.is_direct(owner);
        command.tag = slot;
        self.device.submit(self.now, command);
    }

    #[inline]
    fn handle_completions(&mut self) -> Result<(), DriveError> {
        if self.listeners.unwritten {
            let units = self.watch.take_unwritten(self.device);
            if !units.is_empty() {
                self.content.unwritten(units);
            }
        }
        self.looks.steps += self.completions.len() as u64;
        self.completed += self.completions.len() as u64;
        let mut has_begun = false;
        for completion in &self.completions {
            let slot = self.slots.release(completion.tag);
            if self.listeners.content {
                self.content.complete(completion.tag, completion)?;
            }
            self.measure.gone(completion.time);
            if self.listeners.watch {
                self.watch.gone(completion.time, completion.tag);
            }
            let ramp_over = self.measure.record(&Sample {
                op: completion.op,
                tenant: slot.tenant,
                tag: completion.tag,
                bytes: u64::from(slot.sectors) * SECTOR_BYTES,
                arrived: slot.arrived,
                time: completion.time,
                status: completion.status,
            });
            if ramp_over {
                self.measure.begin(self.now, self.watch.stats(self.device));
                has_begun = true;
            }
            self.source.completed(slot.owner, self.now);
        }
        self.completions.clear();
        if has_begun {
            self.measured_from_now();
            self.set_stop();
        }
        Ok(())
    }

    /// Looks at the limit and the cancel flag and reports progress, now and then. `Some` if that is the
    /// end, and whether because it was cancelled.
    #[inline]
    fn ends(&mut self) -> Option<bool> {
        self.looks.steps += 1;
        if self.looks.steps >= self.looks.next_look { self.look() } else { None }
    }

    #[cold]
    fn look(&mut self) -> Option<bool> {
        self.looks.next_look = self.looks.steps + CANCEL_EVERY;
        if self.looks.steps >= self.looks.next_report
            && let Some(progress) = &mut self.callbacks.progress
        {
            self.looks.next_report = self.looks.steps + PROGRESS_EVERY;
            let limited = self.completed as f64 / self.limit as f64;
            progress(self.source.fraction(self.now).max(limited).min(1.0));
        }
        if self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Some(true);
        }
        (self.completed >= self.limit).then_some(false)
    }
}

/// The command for `request`. Reads and writes at once, and not field by field: there are millions a second.
#[inline(always)]
fn command_of<P: Payload>(request: &Request, data: P::WriteData, is_protected: bool) -> Command<P> {
    let Request { op, lba, sectors, fua, class, .. } = *request;
    match op {
        Op::Read => Command::read(lba, sectors),
        Op::Write => {
            let (kind, plp, hint) = (kind_of(class), is_protected, None);
            Action::Write { lba, sectors, data, fua, kind, plp, hint }.into()
        }
        Op::Flush if sectors > 0 => Command::sync(lba, sectors),
        _ => Command::new(op, lba, sectors, data).fua(fua).plp(is_protected).zrwa(is_protected),
    }
}

/// The kind of data that a command declares for `class`.
#[inline]
const fn kind_of(class: Class) -> DataKind {
    match class {
        Class::Wal | Class::Journal => DataKind::Log,
        Class::FsMeta => DataKind::Meta,
        Class::Unknown | Class::Data | Class::Named(_) => DataKind::Data,
    }
}
