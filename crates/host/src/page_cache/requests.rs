//! Commands in flight above and below: the host's, and the cache's own to the device.

use leyden_device::{Action, Command, CommandId, Op, Payload, Status, Units};
use leyden_sim::Time;

use super::pages::PageId;

/// Where one of the host's commands is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RequestId(pub(super) u32);

/// How far a command of the host's has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Not in use.
    Free,
    /// Waits for a trim of its range to end.
    Blocked,
    /// A read that waits for pages.
    Reading,
    /// A write that waits for the pages that it covers in part.
    Preparing,
    /// A write whose data is going in.
    Writing,
    /// A write with FUA, a flush of a file, or a direct read: its pages are being written out.
    Persisting,
    /// A trim, or zeroes: waits for requests in its range.
    Draining,
    /// Its range is not cached any more; waits for writes in it to end.
    Dropped,
    /// A flush that waits for pages to be written out.
    Flushing,
    /// The device below is at it.
    Below,
    /// A write whose data is in: it ends unless too much is dirty.
    Copied,
    /// A write that waits because too much is dirty.
    Throttled,
    /// Ends when its timer says so.
    Done,
}

/// One of the host's commands.
#[derive(Clone, Debug)]
pub(super) struct Request<P: Payload> {
    pub(super) id: CommandId,
    pub(super) stage: Stage,
    pub(super) op: Op,
    pub(super) fua: bool,
    /// Passes the cache by.
    pub(super) direct: bool,
    pub(super) tag: u32,
    pub(super) status: Status,
    /// The pages that it touches.
    pub(super) first: u32,
    pub(super) count: u32,
    /// The same, and how much of them.
    pub(super) units: Units,
    /// The next page to deal with, counted from `first`.
    pub(super) next: u32,
    /// Commands, and fills of others, that it waits for.
    pub(super) pending: u32,
    /// Waits for a page to become clean.
    pub(super) starved: bool,
    /// Pages of a write with FUA have been written out without it: a flush has to follow.
    pub(super) needs_flush: bool,
    /// A trim, or zeroes, has dropped dirty pages.
    pub(super) has_dropped: bool,
    pub(super) submitted: Time,
    /// Since when it is throttled.
    pub(super) since: Time,
    /// Which of the host's writes.
    pub(super) write: u64,
    pub(super) data: P::WriteData,
    pub(super) read: P::ReadData,
    pub(super) lba: leyden_device::Lba,
    pub(super) sectors: u32,
}

impl<P: Payload> Request<P> {
    /// `units` are those that `command` touches, if its range is on the drive.
    pub(super) fn new(id: CommandId, now: Time, command: &Command<P>, units: Units) -> Self {
        let (lba, sectors) = range_of(command).unwrap_or_default();
        Self {
            id,
            stage: Stage::Done,
            op: command.op(),
            fua: command.is_fua(),
            direct: command.direct,
            tag: command.tag,
            status: Status::Success,
            first: units.first().0,
            count: units.count(),
            units,
            next: 0,
            pending: 0,
            starved: false,
            needs_flush: command.op() == Op::Flush,
            has_dropped: false,
            submitted: now,
            since: now,
            write: 0,
            data: command.data().cloned().unwrap_or_default(),
            read: P::ReadData::default(),
            lba,
            sectors,
        }
    }

    /// True if it has its range for itself: what is cached of it goes.
    pub(super) const fn is_exclusive(&self) -> bool {
        match self.op {
            Op::Trim | Op::WriteZeroes => true,
            Op::Write => self.direct,
            _ => false,
        }
    }

    /// True if it changes pages in part, below the cache.
    pub(super) const fn changes_parts(&self) -> bool {
        matches!(self.op, Op::WriteZeroes | Op::Write)
    }

    /// The page after the last one.
    pub(super) const fn end(&self) -> u32 {
        self.first + self.count
    }

    pub(super) const fn overlaps(&self, first: u32, end: u32) -> bool {
        self.first < end && first < self.end()
    }

    /// The pages that it touches as a whole: from the first up to, not including, the second.
    pub(super) fn whole(&self) -> (u32, u32) {
        let (first, end) = self.units.whole();
        (first.0, end.0)
    }

    /// The pages that it touches in part: none, one or two.
    pub(super) fn partial(&self) -> impl Iterator<Item = u32> + use<P> {
        self.units.partial().map(|lpn| lpn.0)
    }
}

/// The sectors that `command` touches, or asks to be flushed; nothing if it is about all of them, or none.
pub(super) const fn range_of<P: Payload>(
    command: &Command<P>,
) -> Option<(leyden_device::Lba, u32)> {
    match command.action {
        Action::Flush { file } => file,
        _ => command.extent(),
    }
}

/// The host's commands, in a slab: places are reused.
#[derive(Debug)]
pub(super) struct Requests<P: Payload> {
    places: Vec<Request<P>>,
    free: Vec<u32>,
}

impl<P: Payload> Requests<P> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(super) fn insert(&mut self, request: Request<P>) -> RequestId {
        if let Some(at) = self.free.pop() {
            self.places[at as usize] = request;
            RequestId(at)
        } else {
            self.places.push(request);
            RequestId(self.places.len() as u32 - 1)
        }
    }

    #[inline]
    pub(super) fn get(&self, id: RequestId) -> &Request<P> {
        &self.places[id.0 as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: RequestId) -> &mut Request<P> {
        &mut self.places[id.0 as usize]
    }

    #[inline]
    pub(super) fn remove(&mut self, id: RequestId) {
        self.places[id.0 as usize].stage = Stage::Free;
        self.free.push(id.0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// True if a command that still changes or reads pages of the range is under way.
    pub(super) fn is_busy(&self, first: u32, end: u32) -> bool {
        let stages = [Stage::Reading, Stage::Preparing, Stage::Writing, Stage::Persisting];
        let busy =
            |request: &Request<P>| stages.contains(&request.stage) && request.overlaps(first, end);
        self.places.iter().any(busy)
    }

    /// Page `number` could not be written: every write with FUA whose data was in it has failed, and every flush of a
    /// file that waits for it, no matter which request wrote the page out.
    pub(super) fn fail_persisting(&mut self, number: u32) {
        for request in
            self.places.iter_mut().filter(|request| request.fua || request.op == Op::Flush)
        {
            let Some(index) = number.checked_sub(request.first) else { continue };
            let has_data_there = match request.stage {
                Stage::Writing => index < request.next,
                Stage::Persisting => (request.next..request.count).contains(&index),
                _ => false,
            };
            if has_data_there {
                request.status = Status::WriteFault;
            }
        }
    }
}

/// A command of the cache's own to the device below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Below {
    /// Not in use.
    Free,
    /// Reads pages for a request; others that wait for the same pages are in a list.
    Fill(Fill),
    /// Writes pages out; for a request that waits for it, or because they are dirty.
    Writeback { first_page: PageId, first: u32, count: u32, owner: Option<RequestId> },
    /// Does what the host has asked for: a trim, zeroes, the end of a flush.
    Pass(RequestId),
}

/// A read of `count` pages from `first` on, for `owner`, and the list of those that wait for them too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fill {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) owner: RequestId,
    pub(super) waiters: u32,
}

/// A request that waits for a page of another's fill.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    request: RequestId,
    number: u32,
    next: u32,
}

/// No waiter.
pub(super) const NOBODY: u32 = u32::MAX;

/// The cache's own commands, by their tag, in a slab.
#[derive(Debug)]
pub(super) struct Commands {
    places: Vec<Below>,
    free: Vec<u32>,
    waiters: Vec<Waiter>,
    free_waiters: Vec<u32>,
}

impl Commands {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), waiters: Vec::new(), free_waiters: Vec::new() }
    }

    #[inline]
    pub(super) fn insert(&mut self, command: Below) -> u32 {
        if let Some(at) = self.free.pop() {
            self.places[at as usize] = command;
            at
        } else {
            self.places.push(command);
            self.places.len() as u32 - 1
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, tag: u32) -> &mut Below {
        &mut self.places[tag as usize]
    }

    #[inline]
    pub(super) fn take(&mut self, tag: u32) -> Below {
        self.free.push(tag);
        std::mem::replace(&mut self.places[tag as usize], Below::Free)
    }

    /// `request` waits for page `number` of the fill `tag`.
    pub(super) fn wait(&mut self, tag: u32, request: RequestId, number: u32) {
        let Below::Fill(Fill { waiters, .. }) = &mut self.places[tag as usize] else {
            unreachable!("command {tag} fills page {number}")
        };
        let waiter = Waiter { request, number, next: *waiters };
        *waiters = if let Some(at) = self.free_waiters.pop() {
            self.waiters[at as usize] = waiter;
            at
        } else {
            self.waiters.push(waiter);
            self.waiters.len() as u32 - 1
        };
    }

    /// A list of waiters, and the pages that they wait for.
    pub(super) fn waiters(&self, mut at: u32) -> impl Iterator<Item = (RequestId, u32)> + '_ {
        std::iter::from_fn(move || {
            let waiter = self.waiters.get(at as usize)?;
            at = waiter.next;
            Some((waiter.request, waiter.number))
        })
    }

    /// Takes the first of a list of waiters.
    pub(super) fn pop_waiter(&mut self, waiters: &mut u32) -> Option<(RequestId, u32)> {
        let waiter = *self.waiters.get(*waiters as usize)?;
        self.free_waiters.push(*waiters);
        *waiters = waiter.next;
        Some((waiter.request, waiter.number))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// The first page of the range that is being written.
    pub(super) fn first_written(&self, from: u32, to: u32) -> Option<u32> {
        let written = |command: &Below| match *command {
            Below::Writeback { first, count, .. } if first < to && from < first + count => {
                Some(first.max(from))
            }
            _ => None,
        };
        self.places.iter().filter_map(written).min()
    }

    /// True if pages of the range are being written.
    pub(super) fn is_writing(&self, from: u32, to: u32) -> bool {
        self.first_written(from, to).is_some()
    }
}
