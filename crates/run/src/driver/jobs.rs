//! Closed loop: the threads of synthetic jobs, each keeping its queue full.

use std::collections::VecDeque;

use leyden_device::{Lba, Op, SECTOR_BYTES};
use leyden_sim::{EventQueue, Span, Time};
use leyden_workload::synth::{FsyncOf, Job};
use leyden_workload::{Class, Request};

use super::DriveError;
use super::pump::{Next, Source};
use super::tenants::Names;

/// With more jobs than this they are not measured apart.
const MOST_TENANTS: usize = 256;

/// A thread of a job.
struct Thread {
    job: u32,
    /// Its number within the job.
    index: u32,
    in_flight: u32,
    state: State,
    /// In the queue of threads that may go on.
    ready: bool,
    since_rest: u64,
    writes_since_flush: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Submits while there is room in its queue.
    Open,
    /// Waits for its outstanding requests, to flush or to rest.
    Draining,
    /// Waits for its flush.
    Flushing,
    /// Waits for its timer.
    Resting,
    /// Waits for its job's rate limits.
    Limited,
    /// Submits nothing more.
    Done,
}

/// The cause that wakes a thread.
#[derive(Clone, Copy)]
enum Timer {
    Thread(u32),
    /// A job's rate limits allow the next request.
    Rate(u32),
}

struct JobState {
    job: Job,
    start: Time,
    deadline: Time,
    requests_left: u64,
    bytes_left: u64,
    requests_rate: Option<Pacer>,
    bytes_rate: Option<Pacer>,
    /// Threads in [`State::Limited`], in the order they came.
    limited: VecDeque<u32>,
    timer_set: bool,
    /// Copies of the pacing that every request asks for.
    queue_depth: u32,
    rest: Span,
    rest_every: u64,
    flush_every: u64,
    is_direct: bool,
}

/// Spaces things out at a rate, exactly over any number of them. A schedule from the start, not
/// from the previous one: who falls behind catches up.
#[derive(Clone, Copy)]
struct Pacer {
    /// Units (requests, or bytes) per second.
    rate: u64,
    next: Time,
    /// The remainder of the last division, in billionths of a unit.
    remainder: u64,
}

impl Pacer {
    #[inline]
    fn charge(&mut self, units: u64) {
        // A command is at most 2^32 sectors of 2^9 bytes; a billion times that needs the width.
        let due = u128::from(units) * 1_000_000_000 + u128::from(self.remainder);
        let (ns, remainder) = if let Ok(due) = u64::try_from(due) {
            (due / self.rate, due % self.rate)
        } else {
            let rate = u128::from(self.rate);
            ((due / rate) as u64, (due % rate) as u64)
        };
        self.next += Span::from_ns(ns);
        self.remainder = remainder;
    }
}

impl JobState {
    fn new(job: Job, start: Time) -> Self {
        let pacing = job.pacing();
        let start = start + pacing.start_delay;
        let pacer = |rate| Pacer { rate, next: start, remainder: 0 };
        Self {
            start,
            deadline: start + pacing.time,
            requests_left: pacing.requests,
            bytes_left: pacing.bytes,
            requests_rate: pacing.iops_limit.map(pacer),
            bytes_rate: pacing.rate_limit.map(|rate| pacer(rate.get())),
            limited: VecDeque::new(),
            timer_set: false,
            queue_depth: pacing.queue_depth,
            rest: pacing.think_time,
            rest_every: pacing.think_every,
            flush_every: pacing.fsync_every,
            is_direct: pacing.direct,
            job,
        }
    }

    /// Goes on until [`JobState::set_limits`].
    fn lift_limits(&mut self) {
        (self.requests_left, self.bytes_left, self.deadline) = (u64::MAX, u64::MAX, Time::MAX);
    }

    /// Limits count from `now` on.
    fn set_limits(&mut self, now: Time) {
        let pacing = self.job.pacing();
        (self.requests_left, self.bytes_left) = (pacing.requests, pacing.bytes);
        (self.start, self.deadline) = (now, now + pacing.time);
    }

    #[inline]
    fn over(&self, now: Time) -> bool {
        self.requests_left == 0 || self.bytes_left == 0 || now >= self.deadline
    }

    /// When the rate limits allow the next request.
    #[inline]
    fn allowed_at(&self) -> Time {
        let next = |pacer: &Option<Pacer>| pacer.as_ref().map_or(Time::ZERO, |pacer| pacer.next);
        next(&self.requests_rate).max(next(&self.bytes_rate))
    }

    #[inline]
    fn take(&mut self, thread: u32) -> Request {
        let request = self.job.next_request(thread);
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        self.requests_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if let Some(pacer) = &mut self.requests_rate {
            pacer.charge(1);
        }
        if let Some(pacer) = &mut self.bytes_rate {
            pacer.charge(bytes);
        }
        request
    }

    /// The share done by the limit that is nearest to being reached.
    fn fraction(&self, now: Time) -> f64 {
        let pacing = self.job.pacing();
        let done = |limit: u64, left: u64| (limit - left) as f64 / limit as f64;
        let elapsed = now.since(self.start).as_ns() as f64 / pacing.time.as_ns() as f64;
        done(pacing.requests, self.requests_left)
            .max(done(pacing.bytes, self.bytes_left))
            .max(elapsed)
            .min(1.0)
    }
}

/// Several jobs side by side.
pub(super) struct Jobs {
    states: Vec<JobState>,
    threads: Vec<Thread>,
    /// Threads that may be able to go on, in the order they became so.
    ready: VecDeque<u32>,
    timers: EventQueue<Timer>,
    /// Threads that are not done.
    live: usize,
    /// The job that the last request came from.
    last_job: u32,
    /// Limits count only from the measurement's begin.
    is_unlimited: bool,
}

impl Jobs {
    pub(super) fn new(jobs: Vec<Job>, start: Time, is_unlimited: bool) -> Self {
        let mut states: Vec<_> = jobs.into_iter().map(|job| JobState::new(job, start)).collect();
        if is_unlimited {
            states.iter_mut().for_each(JobState::lift_limits);
        }
        let mut threads = Vec::new();
        let mut timers = EventQueue::default();
        for (index, job) in (0..).zip(&states) {
            for thread in 0..job.job.pacing().threads {
                timers.schedule(job.start, Timer::Thread(threads.len() as u32));
                threads.push(Thread {
                    job: index,
                    index: thread,
                    in_flight: 0,
                    state: State::Resting,
                    ready: false,
                    since_rest: 0,
                    writes_since_flush: 0,
                });
            }
        }
        Self {
            states,
            live: threads.len(),
            last_job: 0,
            is_unlimited,
            ready: VecDeque::with_capacity(threads.len()),
            threads,
            timers,
        }
    }

    #[inline]
    fn make_ready(&mut self, id: u32) {
        let thread = &mut self.threads[id as usize];
        if !thread.ready {
            thread.ready = true;
            self.ready.push_back(id);
        }
    }

    #[inline]
    fn fire_timers(&mut self, now: Time) {
        if self.timers.next_time_or_max() <= now {
            self.fire_due_timers(now);
        }
    }

    #[inline(never)]
    fn fire_due_timers(&mut self, now: Time) {
        while self.timers.next_time().is_some_and(|time| time <= now) {
            match self.timers.pop() {
                Some((_, Timer::Thread(id))) => self.open(id),
                Some((_, Timer::Rate(job))) => {
                    self.states[job as usize].timer_set = false;
                    self.release_limited(job, now);
                }
                None => {}
            }
        }
    }

    fn open(&mut self, id: u32) {
        self.threads[id as usize].state = State::Open;
        self.make_ready(id);
    }

    /// Lets the first thread that waits for `job`'s rate limits go on, or sets a timer for it.
    #[inline]
    fn release_limited(&mut self, job: u32, now: Time) {
        if !self.states[job as usize].limited.is_empty() {
            self.release_first_limited(job, now);
        }
    }

    #[inline(never)]
    fn release_first_limited(&mut self, job: u32, now: Time) {
        let state = &mut self.states[job as usize];
        let at = state.allowed_at();
        if at <= now || state.over(now) {
            if let Some(id) = state.limited.pop_front() {
                self.open(id);
            }
        } else if !state.timer_set {
            state.timer_set = true;
            // Past the deadline nothing is submitted: no use in waiting longer.
            let at = at.min(state.deadline);
            self.timers.schedule(at, Timer::Rate(job));
        }
    }

    /// The next request of thread `id`, if it submits one now.
    #[inline]
    fn step(&mut self, id: u32, now: Time) -> Option<Request> {
        let thread = &mut self.threads[id as usize];
        thread.ready = false;
        let job_id = thread.job;
        let job = &mut self.states[job_id as usize];
        match thread.state {
            State::Open if thread.in_flight < job.queue_depth => {}
            State::Draining if thread.in_flight == 0 => return self.barrier(id, now),
            _ => return None,
        }
        if job.over(now) {
            thread.state = State::Done;
            self.live -= 1;
            self.release_limited(job_id, now);
            return None;
        }
        if job.allowed_at() > now {
            thread.state = State::Limited;
            job.limited.push_back(id);
            self.release_limited(job_id, now);
            return None;
        }
        let request = job.take(thread.index);
        self.last_job = job_id;
        thread.in_flight += 1;
        thread.since_rest += 1;
        thread.writes_since_flush += u64::from(request.op == Op::Write);
        if job.flush_due(thread) || job.rest_due(thread) {
            thread.state = State::Draining;
        } else if thread.in_flight < job.queue_depth {
            thread.ready = true;
            self.ready.push_back(id);
        }
        self.release_limited(job_id, now);
        Some(request)
    }

    /// Flushes or rests, now that nothing is outstanding.
    fn barrier(&mut self, id: u32, now: Time) -> Option<Request> {
        let thread = &mut self.threads[id as usize];
        let job = &self.states[thread.job as usize];
        if job.flush_due(thread) {
            thread.state = State::Flushing;
            thread.writes_since_flush = 0;
            thread.in_flight = 1;
            let (lba, sectors) = match job.job.pacing().fsync_of {
                FsyncOf::Device => (Lba(0), 0),
                FsyncOf::Region => job.job.region(),
            };
            return Some(Request {
                at: now,
                op: Op::Flush,
                lba,
                sectors: sectors.min(u32::MAX.into()) as u32,
                fua: false,
                class: Class::Unknown,
            });
        }
        if job.over(now) {
            // A rest after the last request would only make the run look longer.
            self.open(id);
            return None;
        }
        thread.since_rest = 0;
        thread.state = State::Resting;
        let until = (now + job.rest).min(job.deadline);
        self.timers.schedule(until, Timer::Thread(id));
        None
    }
}

impl JobState {
    #[inline]
    fn flush_due(&self, thread: &Thread) -> bool {
        self.flush_every != 0 && thread.writes_since_flush >= self.flush_every
    }

    #[inline]
    fn rest_due(&self, thread: &Thread) -> bool {
        self.rest != Span::ZERO && thread.since_rest >= self.rest_every
    }
}

impl Source for Jobs {
    #[inline]
    fn next(&mut self, now: Time) -> Result<Next, DriveError> {
        loop {
            self.fire_timers(now);
            while let Some(id) = self.ready.pop_front() {
                if let Some(request) = self.step(id, now) {
                    return Ok(Next::Submit { request, owner: id, arrived: now });
                }
            }
            return Ok(match self.timers.next_time() {
                // A rest of no length at all, or past the end of time.
                Some(time) if time <= now => continue,
                _ if self.live == 0 => Next::End,
                Some(time) => Next::At(time),
                None => Next::Wait,
            });
        }
    }

    #[inline]
    fn upcoming(&mut self) -> &[Request] {
        self.states[self.last_job as usize].job.look_ahead()
    }

    fn tenants(&self) -> Names {
        let names = match self.states.len() {
            2..=MOST_TENANTS => self.states.iter().map(|job| job.job.name().to_owned()).collect(),
            _ => Vec::new(),
        };
        Names::Of(names)
    }

    #[inline]
    fn is_direct(&self, owner: u32) -> bool {
        self.states[self.threads[owner as usize].job as usize].is_direct
    }

    #[inline]
    fn tenant(&self, owner: u32, _: &Request) -> u8 {
        self.threads[owner as usize].job as u8
    }

    #[inline]
    fn completed(&mut self, owner: u32, _: Time) {
        let thread = &mut self.threads[owner as usize];
        thread.in_flight -= 1;
        match thread.state {
            State::Open => self.make_ready(owner),
            State::Draining if thread.in_flight == 0 => self.make_ready(owner),
            State::Flushing => {
                let rests = self.states[thread.job as usize].rest_due(thread);
                thread.state = if rests { State::Draining } else { State::Open };
                self.make_ready(owner);
            }
            _ => {}
        }
    }

    fn measured_from(&mut self, now: Time) {
        if std::mem::take(&mut self.is_unlimited) {
            self.states.iter_mut().for_each(|state| state.set_limits(now));
        }
    }

    fn fraction(&self, now: Time) -> f64 {
        if self.is_unlimited {
            return 0.0;
        }
        let fractions = self.states.iter().map(|job| job.fraction(now));
        fractions.fold(1.0, f64::min)
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
