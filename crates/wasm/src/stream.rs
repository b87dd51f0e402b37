//! A stream: a job of the workload, and the moments at which it may ask.

use leyden_device::{Lba, Op};
use leyden_sim::{Span, Time};
use leyden_workload::synth::{Job, JobConfig};
use leyden_workload::{Class, Request};

/// Commands that a stream may keep outstanding.
const DEPTH_MOST: u32 = 1024;
/// Commands per second that a stream may be limited to.
const IOPS_MOST: u64 = 1_000_000_000;
const NS_PER_S: u64 = 1_000_000_000;
const FLUSH: Request = Request {
    at: Time::ZERO,
    op: Op::Flush,
    lba: Lba(0),
    sectors: 0,
    fua: false,
    class: Class::Unknown,
};

/// The first key that asks for a pace which streams do not keep, or for a trim.
fn not_kept(config: &JobConfig) -> Option<&'static str> {
    let default = JobConfig::default();
    let keys = [
        ("trim_share", config.trim_share != default.trim_share),
        ("threads", config.threads != default.threads),
        ("rate_limit", config.rate_limit != default.rate_limit),
        ("think_time", config.think_time != default.think_time),
        ("think_every", config.think_every != default.think_every),
        ("fsync_of", config.fsync_of != default.fsync_of),
        ("direct", config.direct != default.direct),
        ("start_delay", config.start_delay != default.start_delay),
        ("requests", config.requests != default.requests),
        ("bytes", config.bytes != default.bytes),
        ("time", config.time != default.time),
    ];
    keys.into_iter().find_map(|(key, is_given)| is_given.then_some(key))
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    job: Job,
    in_flight: u32,
    /// Beginning of its rate.
    began: Time,
    issued: u64,
    writes_since_flush: u64,
    is_flushing: bool,
    /// A request that waits for a write to the same place.
    held: Option<Request>,
}

impl Stream {
    /// The stream of a job, which is endless: it is ended by its visitor.
    ///
    /// # Errors
    /// If the job makes no sense, or asks for a pace that streams do not keep.
    pub(crate) fn new(
        config: &JobConfig,
        seed: u64,
        index: usize,
        capacity_sectors: u64,
        now: Time,
    ) -> Result<Self, String> {
        let at = |problem: String| format!("jobs[{index}].{problem}");
        if let Some(key) = not_kept(config) {
            return Err(at(format!(
                "{key}: a browser keeps `queue_depth`, `iops_limit` and `fsync_every` only: leave it out"
            )));
        }
        if config.queue_depth > DEPTH_MOST {
            return Err(at(format!(
                "queue_depth: {} is more than {DEPTH_MOST}",
                config.queue_depth
            )));
        }
        if let Some(limit) = config.iops_limit.filter(|&limit| limit > IOPS_MOST) {
            return Err(at(format!("iops_limit: {limit} is more than {IOPS_MOST}")));
        }
        let endless = JobConfig { time: Some(Span::from_ns(u64::MAX)), ..config.clone() };
        let job = endless.build(seed, index, capacity_sectors);
        let job = job.map_err(|error| at(error.to_string()))?;
        let (in_flight, issued, writes_since_flush) = (0, 0, 0);
        Ok(Self {
            job,
            in_flight,
            began: now,
            issued,
            writes_since_flush,
            is_flushing: false,
            held: None,
        })
    }

    /// When it asks next; none if it waits for a command to end.
    pub(crate) fn due(&self) -> Option<Time> {
        let waits = self.in_flight >= self.depth() || self.held.is_some();
        (!waits).then(|| self.paced())
    }

    /// Commands that it may have in flight now. A flush waits for those before it, and is waited for.
    fn depth(&self) -> u32 {
        if self.is_flushing {
            0
        } else if self.owes_flush() {
            1
        } else {
            self.job.pacing().queue_depth
        }
    }

    fn owes_flush(&self) -> bool {
        let every = self.job.pacing().fsync_every;
        every > 0 && self.writes_since_flush >= every
    }

    /// When its rate allows the next command.
    fn paced(&self) -> Time {
        let Some(limit) = self.job.pacing().iops_limit.filter(|_| !self.owes_flush()) else {
            return self.began;
        };
        // The product of the rest alone cannot overflow.
        let (s, rest) = (self.issued / limit, self.issued % limit);
        self.began + Span::from_ns(s.saturating_mul(NS_PER_S) + rest * NS_PER_S / limit)
    }

    /// The next command, if it is due. A write to a place where `is_being_written` says that another is in flight is
    /// held back: the next call tries it again.
    pub(crate) fn next(
        &mut self,
        now: Time,
        is_being_written: impl Fn(&Request) -> bool,
    ) -> Option<Request> {
        if self.in_flight >= self.depth() || (self.held.is_none() && self.paced() > now) {
            return None;
        }
        if self.owes_flush() {
            (self.is_flushing, self.writes_since_flush) = (true, 0);
            self.in_flight += 1;
            return Some(FLUSH);
        }
        let request = self.held.take().unwrap_or_else(|| self.job.next_request(0));
        if request.op == Op::Write && is_being_written(&request) {
            self.held = Some(request);
            return None;
        }
        self.issued += 1;
        self.in_flight += 1;
        self.writes_since_flush += u64::from(request.op == Op::Write);
        Some(request)
    }

    /// One of its commands has ended.
    pub(crate) fn ended(&mut self, op: Op) {
        self.in_flight -= 1;
        if op == Op::Flush {
            self.is_flushing = false;
        }
    }

    /// The power was cut: nothing is in flight. Its rate counts from `now` on.
    pub(crate) fn restart(&mut self, now: Time) {
        (self.in_flight, self.issued, self.writes_since_flush) = (0, 0, 0);
        (self.began, self.is_flushing, self.held) = (now, false, None);
    }
}
