//! A recorded key-value store at work: threads that do what was recorded, and resets of zones that hold nothing any more.
//!
//! Files lie on the small zoned file system of the store that is generated ([`super::Lsm`]), and get there as the
//! RocksDB plugin puts them: what is needed to find files is durable with each change of a name and each sync of a
//! table, after a FLUSH; a log is written as it grows, or, on a drive that protects none of it, in pieces and when it
//! is closed.
//!
//! **Invariants**: a thread has one request under way; logs share zones, and one write at a time is under way to them;
//! nothing is done before what it [waits for](plan).

mod config;
mod files;
mod plan;
mod steps;
mod trace;

use std::collections::VecDeque;
use std::sync::Arc;

use leyden_device::{Op, ZoneAction};
use leyden_sim::{Span, Time};

use super::fs::Run;
use super::lsm::request;
use super::lsm_config::rocksdb;
use super::lsm_figures::LsmFigures;
use super::pace::Pace;
use super::{Ask, Host, LOG, ZoneLayout, ZoneLeft};
use crate::Request;

pub use config::{LogZoneEnd, RecordedConfig};
use files::Files;
use plan::Plan;
use steps::{Step, steps_of};
pub use trace::{Event, FileOp, FileTrace, FileTraceError, Role};

/// A thread, and where it is.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Its events.
    events: VecDeque<u32>,
    /// The remaining steps of the first of them.
    steps: VecDeque<Step>,
    /// Until when it computes.
    until: Option<Time>,
    has_begun: bool,
    is_waiting: bool,
}

/// The cleaning of a zone that gets no more writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cleaning {
    Finish,
    Reset(u32),
}

/// Counts, and their begin.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Puts, those that are skipped too.
    puts: u64,
    /// When the last of these had been made, and how long the writer had been held up by then.
    skipped_at: Option<Time>,
    skipped_delays: Span,
    flushed: u64,
    compacted: u64,
    stalled: Span,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Recorded {
    config: RecordedConfig,
    trace: Arc<FileTrace>,
    plan: Arc<Plan>,
    files: Files,
    threads: Vec<Thread>,
    is_done: Vec<bool>,
    /// Tables that wait to be compacted.
    waiting: i64,
    pace: Pace,
    stalled_since: Option<Time>,
    cleaning: Option<Cleaning>,
    /// Which thread's write to the logs is under way.
    log_writer: Option<u32>,
    counted: Counted,
    last_put: u64,
    /// The power failed: what a recording does after that is not known.
    is_over: bool,
}

impl Recorded {
    /// The store of `trace` on an empty drive, whose buffer has a protected region or not, from `start` on.
    pub fn new(
        config: &RecordedConfig,
        trace: Arc<FileTrace>,
        layout: ZoneLayout,
        has_region: bool,
        start: Time,
    ) -> Self {
        let mut threads = vec![Thread::default(); trace.threads as usize];
        for (at, event) in (0..).zip(&trace.events) {
            threads[event.thread as usize].events.push_back(at);
        }
        let all = trace.puts();
        let wanted = if config.puts == 0 { all } else { config.skip.saturating_add(config.puts) };
        let counted =
            Counted { skipped_at: (config.skip == 0).then_some(start), ..Counted::default() };
        Self {
            plan: Arc::new(Plan::new(&trace, rocksdb::WRITE_BUFFERS)),
            files: Files::new(layout, &trace, has_region, config),
            is_done: vec![false; trace.events.len()],
            pace: Pace::new(
                Span::ZERO,
                rocksdb::DB_BENCH_DELAYED_WRITE_RATE,
                config.slowdown_at,
                0,
            ),
            config: config.clone(),
            trace,
            threads,
            waiting: 0,
            stalled_since: None,
            cleaning: None,
            log_writer: None,
            counted,
            last_put: wanted.min(all),
            is_over: false,
        }
    }

    /// Counts until `now`, and the time that they cover.
    pub fn figures(&self, now: Time) -> (LsmFigures, Span) {
        let Counted { puts, skipped_at, flushed, compacted, stalled, .. } = self.counted;
        let figures = LsmFigures {
            puts: puts.saturating_sub(self.config.skip),
            flushed,
            compacted,
            stalled,
            delayed: Span::from_ns(
                self.pace.delayed().as_ns() - self.counted.skipped_delays.as_ns(),
            ),
            ..LsmFigures::default()
        };
        (figures, skipped_at.map_or(Span::ZERO, |since| now.since(since)))
    }

    /// Puts that were to be made, and could not: the drive has no room, or lost its power.
    pub fn left(&self) -> u64 {
        self.last_put.saturating_sub(self.counted.puts)
    }

    fn is_finished(&self) -> bool {
        self.is_over || self.counted.puts >= self.last_put
    }

    fn cleaner(&self) -> u32 {
        self.threads.len() as u32
    }

    fn clean(&mut self) -> Option<Request> {
        if self.cleaning.is_some() {
            return None;
        }
        let of =
            |action, lba| request(Op::Zone(action), Run { lba, sectors: 0 }, crate::Class::Unknown);
        // First: a zone must not be finished that was reset, and is written to anew.
        if let Some(lba) = self.files.fs.take_unfinished() {
            self.cleaning = Some(Cleaning::Finish);
            return Some(of(ZoneAction::Finish, lba));
        }
        let (zone, lba) = self.files.fs.take_dead()?;
        self.cleaning = Some(Cleaning::Reset(zone));
        Some(of(ZoneAction::Reset, lba))
    }

    /// Whether an event can begin.
    fn may_begin(&mut self, event: u32, now: Time) -> bool {
        let Event { role, op, .. } = self.trace.events[event as usize];
        let log = role == Role::Log && op == FileOp::Create;
        let waited = i64::from(self.plan.waited[event as usize]);
        let is_free = self.plan.after[event as usize].iter().all(|&at| self.is_done[at as usize])
            && !(log && self.waiting >= i64::from(self.config.stop_at) && self.waiting > waited);
        if log || role == Role::Log && op == FileOp::Append {
            match (is_free, self.stalled_since) {
                (false, None) => self.stalled_since = Some(now),
                (true, Some(since)) => {
                    self.counted.stalled += now.since(since);
                    self.stalled_since = None;
                }
                _ => {}
            }
        }
        is_free
    }

    /// The next request of thread `owner`; `Err` has the time at which it continues by itself, if it does.
    fn go_on(&mut self, owner: u32, now: Time) -> Result<Request, Option<Time>> {
        loop {
            let thread = &mut self.threads[owner as usize];
            if thread.is_waiting {
                return Err(None);
            }
            if let Some(until) = thread.until.filter(|&until| until > now) {
                return Err(Some(until));
            }
            thread.until = None;
            let Some(&event) = thread.events.front() else { return Err(None) };
            if !thread.has_begun {
                if !self.may_begin(event, now) {
                    return Err(None);
                }
                let steps = steps_of(&self.trace.events[event as usize], &self.config);
                let thread = &mut self.threads[owner as usize];
                (thread.steps, thread.has_begun) = (steps, true);
            }
            if let Some(request) = self.step(owner, event, now)? {
                self.threads[owner as usize].is_waiting = true;
                return Ok(request);
            }
        }
    }

    /// Does the next step of an event, or ends it.
    fn step(&mut self, owner: u32, event: u32, now: Time) -> Result<Option<Request>, Option<Time>> {
        let thread = &mut self.threads[owner as usize];
        let Some(step) = thread.steps.front_mut() else {
            self.ended(owner, event);
            return Ok(None);
        };
        match step {
            Step::Work(work) => {
                thread.until = Some(now + *work);
                thread.steps.pop_front();
                Ok(None)
            }
            // The work of a put, and what it waits for since tables do.
            Step::Put { work, puts, bytes } => {
                let (work, puts, bytes) = (*work, *puts, *bytes);
                thread.steps.pop_front();
                thread.steps.push_front(Step::Counted(puts));
                thread.steps.push_front(Step::Append { bytes });
                thread.until = Some(now + self.pace.takes(work, puts * rocksdb::PAIR));
                Ok(None)
            }
            Step::Counted(puts) => {
                self.counted.puts += *puts;
                thread.steps.pop_front();
                if self.counted.puts >= self.config.skip && self.counted.skipped_at.is_none() {
                    self.counted = Counted {
                        puts: self.counted.puts,
                        skipped_at: Some(now),
                        skipped_delays: self.pace.delayed(),
                        ..Counted::default()
                    };
                }
                Ok(None)
            }
            step => {
                let event = &self.trace.events[event as usize];
                let is_log =
                    event.role == Role::Log && matches!(step, Step::Append { .. } | Step::Rest);
                if is_log && self.log_writer.is_some() {
                    return Err(None);
                }
                let is_fresh = self.plan.is_fresh[event.file as usize];
                let most = rocksdb::TABLE_IO;
                match self.files.ask(event, step, is_fresh, most) {
                    files::StepRequest::Request(request) => {
                        if is_log {
                            self.log_writer = Some(owner);
                        }
                        Ok(Some(request))
                    }
                    files::StepRequest::NoRoom => Err(None),
                    files::StepRequest::Done => {
                        thread.steps.pop_front();
                        Ok(None)
                    }
                }
            }
        }
    }

    fn ended(&mut self, owner: u32, event: u32) {
        let thread = &mut self.threads[owner as usize];
        thread.events.pop_front();
        thread.has_begun = false;
        self.is_done[event as usize] = true;
        let change = self.plan.waiting[event as usize];
        let is_flush = self.plan.flushes.binary_search(&event).is_ok();
        let is_compaction = self.plan.compactions.binary_search(&event).is_ok();
        self.counted.flushed += u64::from(is_flush);
        self.counted.compacted += u64::from(is_compaction);
        if is_flush || is_compaction || change != 0 {
            self.waiting += i64::from(change);
            let waiting = self.waiting.max(0) as u64;
            self.pace.set(waiting, waiting);
        }
    }

    fn ask(&mut self, now: Time) -> Ask {
        if let Some(request) = self.clean() {
            return Ask::Submit { request, owner: self.cleaner() };
        }
        // An operation that ends may let another thread continue: until none ends any more.
        loop {
            let mut next: Option<Time> = None;
            let before: usize = self.threads.iter().map(|thread| thread.events.len()).sum();
            for owner in 0..self.threads.len() as u32 {
                match self.go_on(owner, now) {
                    Ok(request) => return Ask::Submit { request, owner },
                    Err(Some(at)) => next = Some(next.map_or(at, |next| next.min(at))),
                    Err(None) => {}
                }
                if self.is_finished() {
                    return Ask::Wait;
                }
            }
            if self.threads.iter().map(|thread| thread.events.len()).sum::<usize>() == before {
                return next.map_or(Ask::Wait, Ask::At);
            }
        }
    }

    fn answered(&mut self, owner: u32) {
        self.threads[owner as usize].is_waiting = false;
        self.log_writer = self.log_writer.filter(|&writer| writer != owner);
    }

    fn is_under_way(&self) -> bool {
        self.cleaning.is_some() || self.threads.iter().any(|thread| thread.is_waiting)
    }
}

impl Host for Recorded {
    fn next(&mut self, now: Time) -> Ask {
        let asked = if self.is_finished() { Ask::Wait } else { self.ask(now) };
        match asked {
            // With puts that are left, only a drive that is full lets nothing go on.
            Ask::Wait if !self.is_under_way() => Ask::End,
            asked => asked,
        }
    }

    fn completed(&mut self, owner: u32, _: Time) {
        if owner != self.cleaner() {
            self.answered(owner);
        } else if let Some(Cleaning::Reset(zone)) = self.cleaning.take() {
            self.files.fs.reset(zone);
        }
    }

    fn cut_off(&mut self, owner: u32, _: Time) {
        if owner == self.cleaner() {
            self.cleaning = None;
        } else {
            self.answered(owner);
        }
    }

    /// The program's behaviour after a power cut was not recorded: it ends.
    fn recovered(&mut self, _: Time, _: &[ZoneLeft]) {
        self.is_over = true;
    }

    fn fraction(&self) -> f64 {
        self.counted.puts as f64 / self.last_put.max(1) as f64
    }

    fn tenants(&self) -> Vec<String> {
        [LOG, "zones", "background"].map(str::to_owned).to_vec()
    }

    fn tenant(&self, owner: u32) -> u8 {
        if owner == self.cleaner() {
            return 1;
        }
        let events = &self.threads[owner as usize].events;
        let event = events.front().map(|&at| &self.trace.events[at as usize]);
        if event.is_some_and(|event| event.role == Role::Log && event.op == FileOp::Append) {
            0
        } else {
            2
        }
    }
}

#[cfg(test)]
mod tests;
