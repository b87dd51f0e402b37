//! The page cache: Linux's write-back cache between software and a block device.
//!
//! **What lives here**: [`PageCache`]: what is cached ([`pages`]), what the flusher writes out and when
//! ([`flusher`]), how requests go through ([`serve`]), what is kept in order ([`order`]). **What
//! doesn't**: how its announcements get to the drive ([`crate::hints`]).
//!
//! The rules are Linux's for a block device file that several threads have open, as in the paper's
//! micro-benchmark (Zombie Chasing, 4.3.1 and 5.2.1; kernel 2.6.34, fs/fs-writeback.c and
//! mm/page-writeback.c):
//! - Age belongs to the file, not to the page: all threads share one inode. When it has been dirty for
//!   `expire`, the flusher, which looks every `writeback_interval`, writes all its dirty pages, young
//!   ones too. If pages behind the flusher have become dirty by then, the file is young again.
//! - The flusher goes through the file by page number, begins where it stopped, and goes round once
//!   (`range_cyclic`). Pages that are being written are passed over.
//! - With more than `background_ratio` dirty it writes until that is no longer so.
//! - With more than `dirty_ratio` dirty or being written, a write ends only when that is no longer so.
//! - A flush is `fsync`: all that is dirty when it comes is written, by page number; then it is passed
//!   on. If a write-back has failed since the last one, it fails; the data is lost. So it is when a trim
//!   fails that has dropped dirty pages. A flush of a file is about the pages of its range alone.
//! - A direct request passes the cache by (mm/filemap.c, `generic_file_direct_write`): a read has what is dirty of its
//!   range written out first, a write drops what is cached of it.
//!
//! Where it is simpler than Linux: in 2.6.34 a writer over the limit writes out itself, in 3.1 and
//! later it is slowed down from half-way between the two limits on; here it waits, and the flusher
//! writes, with as much depth. The ratios are of this cache alone. The background limit is looked at
//! before each command, not every 1,024 pages. There is no read-ahead. A write command covers
//! neighbouring pages that one write has made dirty; Linux would merge those of several.
//!
//! A cached page is one mapping unit of the drive, because that is the unit of which content is known
//! ([`Payload`]). With units of 4 KiB it is Linux's page.
//!
//! **Invariants**
//! - A read returns the last write that ended before it came, or a later one.
//! - No page has two writes under way.
//! - Memory is a fixed amount for each page of the cache, three bits for each of the drive, and what is
//!   under way.

mod config;
mod epochs;
mod flusher;
mod order;
mod pages;
mod requests;
mod serve;
mod stats;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use leyden_device::{
    Action, BlockDevice, Command, CommandId, Completion, Hint, Lba, Op, Output, Payload,
    SECTOR_BYTES, Status, Units,
};
use leyden_sim::{ConfigError, EventQueue, Span, Time};

pub use config::PageCacheConfig;
use epochs::Epoch;
use flusher::Flusher;
use pages::Pages;
use requests::{Below, Commands, Request, RequestId, Requests, Stage, range_of};
pub use stats::PageCacheStats;

/// A write-back cache on top of a device.
///
/// ```
/// use leyden_device::{BlockDevice, Command, Config, Lba, Ssd, Stamp};
/// use leyden_host::{PageCache, PageCacheConfig};
/// use leyden_sim::{Bytes, Time};
///
/// let ssd = Ssd::<Stamp>::new(&Config::default(), 1).unwrap();
/// let config = PageCacheConfig { size: Bytes::new(64 << 20), ..PageCacheConfig::default() };
/// let mut host = PageCache::new(&config, ssd, 4096).unwrap();
/// host.submit(Time::ZERO, Command::write(Lba(0), 8, 7));
/// let mut done = Vec::new();
/// host.advance(Time::from_ns(1_000), &mut done);
/// assert_eq!((done.len(), host.dirty_units()), (1, 1));
/// while let Some(time) = host.next_event() {
///     host.advance(time, &mut done);
/// }
/// assert_eq!(host.dirty_units(), 0); // the flusher has come by
/// ```
#[derive(Debug)]
pub struct PageCache<P: Payload, D> {
    device: D,
    page_io: Span,
    unit_sectors: u64,
    drive_pages: u32,
    pages: Pages<P>,
    flusher: Flusher,
    requests: Requests<P>,
    commands: Commands,
    /// Requests that end at a time that is known.
    timers: EventQueue<u32>,
    /// Writes that wait because too much is dirty, in order.
    throttled: VecDeque<RequestId>,
    /// Requests that wait for a page, in order.
    starved: VecDeque<RequestId>,
    /// Writes with FUA, flushes of files and direct reads that have pages left to write out.
    persisting: VecDeque<RequestId>,
    /// Flushes that wait for pages to be written out, in order.
    flushes: VecDeque<(Epoch, RequestId)>,
    /// Trims, zeroes and direct writes that have their range for themselves.
    exclusive: Vec<RequestId>,
    /// Requests that wait for these to end, in order.
    blocked: VecDeque<RequestId>,
    now: Time,
    next_id: u64,
    next_write: u64,
    /// Completions of the device below: kept for its memory.
    ended: Vec<Completion<P>>,
    stats: PageCacheStats,
}

impl<P: Payload, D: BlockDevice<P>> PageCache<P, D> {
    /// An empty cache on top of `device`, whose mapping unit has `unit_bytes`.
    pub fn new(config: &PageCacheConfig, device: D, unit_bytes: u32) -> Result<Self, ConfigError> {
        let unit_sectors = u64::from(unit_bytes) / SECTOR_BYTES;
        assert!(unit_sectors > 0, "a mapping unit has whole sectors");
        let drive_pages = (device.capacity_sectors() / unit_sectors).min(u64::from(u32::MAX - 1));
        let limits = config.limits(unit_bytes, drive_pages)?;
        let drive_pages = drive_pages as u32;
        Ok(Self {
            device,
            page_io: config.page_io,
            unit_sectors,
            drive_pages,
            pages: Pages::new(limits.pages),
            flusher: Flusher::new(config, limits, drive_pages),
            requests: Requests::new(),
            commands: Commands::new(),
            timers: EventQueue::default(),
            throttled: VecDeque::new(),
            starved: VecDeque::new(),
            persisting: VecDeque::new(),
            flushes: VecDeque::new(),
            exclusive: Vec::new(),
            blocked: VecDeque::new(),
            now: Time::ZERO,
            next_id: 0,
            next_write: 0,
            ended: Vec::new(),
            stats: PageCacheStats::default(),
        })
    }

    /// The device below.
    pub const fn device(&self) -> &D {
        &self.device
    }

    /// The device below. Commands belong to the cache.
    pub const fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Counts since the cache was made.
    pub fn stats(&self) -> PageCacheStats {
        PageCacheStats { evictions: self.pages.evictions(), ..self.stats }
    }

    /// Pages (mapping units) whose newest data is in the cache only; not those being written.
    pub fn dirty_units(&self) -> u64 {
        self.flusher.dirty.into()
    }

    /// Pages (mapping units) that are being written out.
    pub fn writeback_units(&self) -> u64 {
        self.flusher.writeback.into()
    }

    /// Pages (mapping units) that are cached.
    pub fn cached_units(&self) -> u64 {
        self.pages.len().into()
    }

    /// Pages (mapping units) whose data could not be written out, since this was last asked: reads may
    /// find what the cache has, or what lies below, and the next flush fails.
    pub fn take_lost_units(&mut self) -> Vec<u32> {
        self.flusher.take_lost()
    }

    /// The latest time that the cache was told.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// True if no command is under way. Pages may be dirty.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.commands.is_empty()
    }

    /// The power is gone, and with it everything that was cached, and every command. Returns how many
    /// units were dirty or being written. The device below is the caller's to cut.
    pub(crate) fn lose_power(&mut self) -> u64 {
        let lost = self.flusher.dirty + self.flusher.writeback;
        self.pages.clear();
        self.flusher.clear();
        (self.requests, self.commands) = (Requests::new(), Commands::new());
        self.timers = EventQueue::default();
        for queue in
            [&mut self.throttled, &mut self.starved, &mut self.persisting, &mut self.blocked]
        {
            queue.clear();
        }
        self.flushes.clear();
        self.exclusive.clear();
        lost.into()
    }

    /// A new request, or one that was blocked: does it, unless a trim has its range.
    fn admit(&mut self, now: Time, id: RequestId) {
        if !self.exclusive.is_empty() && self.is_blocked(id) {
            self.requests.get_mut(id).stage = Stage::Blocked;
            self.blocked.push_back(id);
            return;
        }
        let request = self.requests.get_mut(id);
        match request.op {
            Op::Flush => return self.begin_sync(id),
            Op::Read if request.direct => return self.begin_sync(id),
            Op::Write if request.direct => return self.begin_trim(id),
            Op::Read => request.stage = Stage::Reading,
            Op::Write if request.partial().next().is_some() => {
                request.stage = Stage::Preparing;
            }
            Op::Write => request.stage = Stage::Writing,
            _ => return self.begin_trim(id),
        }
        self.start(now, id);
    }

    /// The status of a command that is wrong, else success.
    #[inline]
    fn check(&self, command: &Command<P>) -> Status {
        let Some((lba, sectors)) = range_of(command) else { return Status::Success };
        match lba.0.checked_add(sectors.into()) {
            _ if sectors == 0 => Status::InvalidField,
            Some(end) if end <= self.capacity_sectors() => Status::Success,
            _ => Status::LbaOutOfRange,
        }
    }

    /// The request ends at `time`.
    #[inline]
    fn end(&mut self, time: Time, id: RequestId) {
        self.requests.get_mut(id).stage = Stage::Done;
        self.timers.schedule(time, id.0);
    }

    /// A command of the cache's own has ended.
    fn command_ended(&mut self, now: Time, completion: &Completion<P>) {
        let status = completion.status;
        match self.commands.take(completion.tag) {
            Below::Fill(fill) => self.filled(now, fill, status, completion.data()),
            Below::Writeback { first_page, first, count, owner } => {
                self.written_back(now, first_page, first, count, owner, status);
            }
            Below::Pass(request) => self.passed(now, request, status, completion.data()),
            Below::Free => unreachable!("command {} has ended before", completion.tag),
        }
    }

    /// Does what has become possible. The order matters: pages of a write with FUA must not be
    /// written out without it.
    #[inline]
    fn settle(&mut self, now: Time) {
        if !self.starved.is_empty() {
            self.feed(now);
        }
        if !self.persisting.is_empty() {
            self.persist(now);
        }
        if !self.exclusive.is_empty() {
            self.continue_trims(now);
        }
        if !self.flushes.is_empty() && self.settle_flushes(now) {
            // A flush that fails sends nothing below, whose end would wake the trims that have waited for it.
            self.continue_trims(now);
        }
        if !self.throttled.is_empty() {
            self.release_throttled(now);
        }
        self.pump(now);
    }

    /// A request's time has come: it ends, unless it is a write, and too much is dirty.
    fn timer(&mut self, now: Time, id: RequestId, completions: &mut Vec<Completion<P>>) {
        let over_limit = self.flusher.is_over_limit();
        let request = self.requests.get_mut(id);
        if request.stage == Stage::Copied && over_limit {
            (request.stage, request.since) = (Stage::Throttled, now);
            self.throttled.push_back(id);
            self.stats.throttled_writes += 1;
            return;
        }
        let output = match request.op {
            Op::Read if request.status == Status::Success => {
                Output::Read(std::mem::take(&mut request.read))
            }
            _ => Output::None,
        };
        completions.push(Completion {
            id: request.id,
            op: request.op,
            tag: request.tag,
            submitted: request.submitted,
            time: now,
            status: request.status,
            output,
        });
        self.requests.remove(id);
    }
}

impl<P: Payload, D: BlockDevice<P>> PageCache<P, D> {
    /// Processes events of the instant `time`, and overdue ones.
    #[inline]
    fn at(&mut self, time: Time, completions: &mut Vec<Completion<P>>) {
        self.now = time;
        if self.device.next_event().is_some_and(|event| event <= time) {
            let mut ended = std::mem::take(&mut self.ended);
            self.device.advance(time, &mut ended);
            for completion in ended.drain(..) {
                self.command_ended(time, &completion);
            }
            self.ended = ended;
            self.settle(time);
        }
        if self.flusher.wake(time) {
            self.stats.laps += 1;
            self.settle(time);
        }
        while let Some(due) = self.timers.next_time().filter(|&due| due <= time)
            && let Some((_, id)) = self.timers.pop()
        {
            debug_assert!(due <= time);
            self.timer(time, RequestId(id), completions);
        }
    }
}

impl<P: Payload, D: BlockDevice<P>> BlockDevice<P> for PageCache<P, D> {
    fn submit(&mut self, now: Time, command: Command<P>) -> CommandId {
        assert!(now >= self.now, "time ran backwards");
        self.now = now;
        let id = CommandId(self.next_id);
        self.next_id += 1;
        if let Action::Read { hint: Some(hint), .. } | Action::Write { hint: Some(hint), .. } =
            command.action
        {
            self.device.announce(now, hint);
        }
        let status = self.check(&command);
        let units = match range_of(&command) {
            Some((lba, sectors)) if status == Status::Success => {
                Units::new(lba.0, sectors.into(), self.unit_sectors)
            }
            _ => Units::NONE,
        };
        let passes_by = command.direct && matches!(command.op(), Op::Read | Op::Write);
        self.stats.direct_requests += u64::from(passes_by);
        let mut request = Request::new(id, now, &command, units);
        request.status = status;
        if command.op() == Op::Write {
            request.write = self.next_write;
            self.next_write += 1;
        }
        let request = self.requests.insert(request);
        if status != Status::Success {
            self.end(now, request);
            return id;
        }
        match command.op() {
            Op::Flush if range_of(&command).is_none() => self.flush(request),
            // It is made for conventional drives; one says so to commands for zones.
            Op::WritePrepare | Op::ZoneAppend | Op::Copy | Op::Zone(_) | Op::ZoneReport => {
                let tag = self.commands.insert(Below::Pass(request));
                self.requests.get_mut(request).stage = Stage::Below;
                self.device.submit(now, command.tag(tag));
            }
            _ => self.admit(now, request),
        }
        self.settle(now);
        id
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        let (timer, flusher) = (self.timers.next_time(), self.flusher.next_event());
        Time::earliest([timer, flusher, self.device.next_event()])
    }

    /// At the same instant what is below comes first, then the flusher, then the host.
    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<P>>) {
        assert!(now >= self.now, "time ran backwards");
        while let Some(event) = self.next_event().filter(|&event| event <= now) {
            // Overdue events happen now.
            self.at(event.max(self.now), completions);
        }
        self.now = now;
    }

    #[inline]
    fn step(&mut self, now: Time, _: Time, completions: &mut Vec<Completion<P>>) -> Time {
        self.at(now, completions);
        now
    }

    /// Passed on: the layers above have more to go on.
    fn announce(&mut self, now: Time, hint: Hint) {
        self.device.announce(now, hint);
    }

    fn expect(&self, reads: impl Iterator<Item = Lba>) {
        let is_cached = |lba: &Lba| self.pages.find((lba.0 / self.unit_sectors) as u32).is_some();
        self.device.expect(reads.filter(|lba| !is_cached(lba)));
    }

    fn capacity_sectors(&self) -> u64 {
        u64::from(self.drive_pages) * self.unit_sectors
    }
}
