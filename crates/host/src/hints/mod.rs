//! How announcements of coming writes get to the drive.
//!
//! **What lives here**: [`HintChannel`], the "zombie data queue of the generic block I/O layer"
//! (Zombie Chasing, 4.2), and how wrong its announcements are made. **What doesn't**: who announces
//! (the page cache, a trace), what the drive makes of it.
//!
//! **Invariants**
//! - Every unit announced is accounted for, once: [`HintChannelStats::announced_units`].
//! - A hint that goes out names no unit that was written or trimmed since it was announced.
//! - Commands and completions of the host pass as they are, but for the hint that rides along.

mod config;
mod queue;
mod stats;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use leyden_device::{
    BlockDevice, Command, CommandId, Completion, HINT_UNIT_BYTES, Hint, Lba, Op, Payload,
    SECTOR_BYTES,
};
use leyden_sim::{ConfigError, Rng, Span, Time};

pub use config::{Channel, HintChannelConfig};
use queue::{RangeQueue, Shape};
pub use stats::HintChannelStats;

/// The most commands with hints that are under way at once: a slow drive is not flooded.
const MOST_COMMANDS: usize = 32;

/// The most ranges that are held back by [`HintChannelConfig::late`]: 4 GiB of dirty data in single
/// units. Of more, the oldest is dropped.
const MOST_HELD: u32 = 1 << 20;

const UNIT_SECTORS: u64 = HINT_UNIT_BYTES / SECTOR_BYTES;

/// Brings announcements to the drive below; everything else passes.
///
/// ```
/// use leyden_device::{BlockDevice, Command, Config, Hint, Lba, Ssd, Stamp};
/// use leyden_host::{HintChannel, HintChannelConfig};
/// use leyden_sim::Time;
///
/// let ssd = Ssd::<Stamp>::new(&Config::default(), 1).unwrap();
/// let mut host = HintChannel::new(&HintChannelConfig::default(), ssd, 1).unwrap();
/// for hint in Hint::covering(Lba(80), 8) {
///     host.announce(Time::ZERO, hint);
/// }
/// host.submit(Time::ZERO, Command::read(Lba(0), 8)); // takes the hint along
/// assert_eq!(host.stats().sent, 1);
/// ```
#[derive(Debug)]
pub struct HintChannel<D> {
    device: D,
    config: HintChannelConfig,
    rng: Rng,
    /// Wait for their way to the drive.
    waiting: RangeQueue,
    /// Wait for their time, to enter `waiting`.
    held: RangeQueue,
    /// `waiting` and `held` are empty: nothing but commands passes.
    quiet: bool,
    /// Commands of our own that are under way, in order.
    under_way: VecDeque<CommandId>,
    /// The latest time that was told.
    now: Time,
    stats: HintChannelStats,
}

impl<D> HintChannel<D> {
    /// A channel to `device`. Which announcements go wrong comes from `seed`.
    pub fn new(config: &HintChannelConfig, device: D, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            device,
            config: config.clone(),
            rng: Rng::new(seed, "hint errors"),
            waiting: RangeQueue::new(config.queue, config.shape()),
            held: RangeQueue::new(
                MOST_HELD,
                Shape { merging: false, most_units: Hint::MOST_UNITS },
            ),
            quiet: true,
            under_way: VecDeque::new(),
            now: Time::ZERO,
            stats: HintChannelStats::default(),
        })
    }

    /// The device below.
    pub const fn device(&self) -> &D {
        &self.device
    }

    /// The device below. Commands belong to the channel, or their completions come out of order.
    pub const fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Counts of announcements, by what became of them.
    pub const fn stats(&self) -> &HintChannelStats {
        &self.stats
    }

    /// Ranges that wait for their way to the drive.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Units that were announced and are neither sent nor given up. Costs a pass over them.
    pub fn waiting_units(&self) -> u64 {
        self.waiting.units() + self.held.units()
    }

    /// The power is gone, and with it everything that waits: so many units. The drive below is the
    /// caller's to cut.
    pub(crate) fn lose_power(&mut self) -> u64 {
        let waiting = self.waiting_units();
        self.stats.lost_units += waiting;
        self.waiting.clear();
        self.held.clear();
        self.quiet = true;
        self.under_way.clear();
        waiting
    }

    /// Asserts that every unit announced is accounted for.
    pub(crate) fn check_units(&self) {
        let stats = self.stats();
        let known = stats.sent_units
            + stats.withdrawn_units
            + stats.repeated_units
            + stats.dropped_units
            + stats.missing_units
            + stats.beyond_end_units
            + stats.lost_units
            + self.waiting_units();
        assert_eq!(stats.announced_units + stats.false_units, known, "hints got lost: {stats:?}");
    }

    /// Sends commands of its own, so that it has events of its own.
    #[inline]
    fn has_commands(&self) -> bool {
        self.config.channel == Channel::Command
    }

    /// Announcements are held back.
    #[inline]
    fn is_late(&self) -> bool {
        self.config.late > Span::ZERO
    }

    /// Takes an announcement, or an error, in.
    fn take_in(&mut self, now: Time, hint: Hint) {
        if self.is_late() {
            let added = self.held.add(hint, now + self.config.late);
            self.stats.repeated_units += added.repeated_units;
            self.stats.dropped_units += added.dropped_units;
        } else {
            self.queue(now, hint);
        }
        self.quiet = false;
    }

    fn queue(&mut self, since: Time, hint: Hint) {
        let added = self.waiting.add(hint, since);
        self.stats.repeated_units += added.repeated_units;
        self.stats.dropped_units += added.dropped_units;
        self.stats.waiting_peak.raise_to(self.waiting.len() as u64);
    }

    /// Lets in what has been held back long enough.
    fn release(&mut self, now: Time) {
        while self.held.oldest_since().is_some_and(|ready| ready <= now)
            && let Some((hint, ready)) = self.held.pop()
        {
            self.queue(ready, hint);
        }
    }

    /// Withdraws the announcement of units that a command writes or trims.
    fn withdraw<P: Payload>(&mut self, command: &Command<P>) {
        let Some((lba, sectors)) = command.extent() else { return };
        let (from, to) = (lba.0, lba.0.saturating_add(sectors.into()));
        let (first, end) = match command.op() {
            // A unit written in part is new as a whole.
            Op::Write | Op::WriteZeroes => (from / UNIT_SECTORS, to.div_ceil(UNIT_SECTORS)),
            // Parts of units keep their data on a trim.
            Op::Trim => (from.div_ceil(UNIT_SECTORS), to / UNIT_SECTORS),
            Op::Read
            | Op::Flush
            | Op::WritePrepare
            | Op::ZoneAppend
            | Op::Copy
            | Op::Zone(_)
            | Op::ZoneReport => return,
        };
        if first >= end {
            return;
        }
        for queue in [&mut self.waiting, &mut self.held] {
            if !queue.is_empty() {
                let (withdrawn, dropped) = queue.withdraw(first, end);
                self.stats.withdrawn_units += withdrawn;
                self.stats.dropped_units += dropped;
            }
        }
    }

    /// A command passes: what it changes is withdrawn, and it may take a hint along.
    fn pass<P: Payload>(&mut self, now: Time, command: &mut Command<P>) {
        self.release(now);
        self.withdraw(command);
        if self.config.channel == Channel::Piggyback
            && let Some(place) = command.hint_mut()
            && place.is_none()
        {
            *place = self.waiting.pop().map(|(hint, _)| self.sent(hint));
        }
        self.quiet = self.waiting.is_empty() && self.held.is_empty();
    }

    fn sent(&mut self, hint: Hint) -> Hint {
        self.stats.sent += 1;
        self.stats.sent_units += u64::from(hint.units());
        hint
    }

    /// When a command of its own is due, or something enters the queue for one.
    #[inline]
    fn own_event(&self) -> Option<Time> {
        if self.quiet || !self.has_commands() {
            return None;
        }
        let enters = self.held.oldest_since();
        let first = self.waiting.oldest_since().filter(|_| self.under_way.len() < MOST_COMMANDS);
        let full = self.waiting.len() >= self.config.batch as usize;
        let due = first.map(|since| if full { since } else { since + self.config.max_delay });
        let event = Time::earliest([enters, due]);
        event.map(|event| event.max(self.now))
    }

    /// A command for the ranges that have waited longest.
    fn batch<P: Payload>(&mut self) -> Command<P> {
        let count = self.waiting.len().min(self.config.batch as usize);
        let ranges = (0..count).filter_map(|_| self.waiting.pop().map(|(hint, _)| self.sent(hint)));
        Command::write_prepare(ranges)
    }

    /// Sends what is due.
    fn act<P: Payload>(&mut self, now: Time)
    where
        D: BlockDevice<P>,
    {
        self.now = self.now.max(now);
        self.release(now);
        while !self.waiting.is_empty() && self.own_event().is_some_and(|event| event <= now) {
            let command = self.batch();
            self.stats.commands += 1;
            let id = self.device.submit(now, command);
            self.under_way.push_back(id);
        }
        self.quiet = self.waiting.is_empty() && self.held.is_empty();
    }

    /// Takes the ends of commands of its own out of what has ended since there were `before`.
    fn swallow<P: Payload>(&mut self, before: usize, completions: &mut Vec<Completion<P>>) {
        if self.under_way.is_empty() {
            return;
        }
        let of_its_own = completions.extract_if(before.., |completion| {
            let ids = &mut self.under_way;
            let at = (completion.op == Op::WritePrepare)
                .then(|| ids.iter().position(|&id| id == completion.id));
            at.flatten().and_then(|at| ids.remove(at)).is_some()
        });
        of_its_own.for_each(drop);
    }

    /// As [`BlockDevice::advance`], where the channel has events of its own.
    fn advance_with_commands<P: Payload>(&mut self, now: Time, completions: &mut Vec<Completion<P>>)
    where
        D: BlockDevice<P>,
    {
        let mut before = completions.len();
        // The drive's own events at an instant come before new commands.
        while let Some(event) = self.own_event().filter(|&event| event <= now) {
            self.device.advance(event, completions);
            self.swallow(before, completions);
            before = completions.len();
            self.act(event);
        }
        self.device.advance(now, completions);
        self.swallow(before, completions);
        self.now = self.now.max(now);
    }
}

impl<P: Payload, D: BlockDevice<P>> BlockDevice<P> for HintChannel<D> {
    #[inline]
    fn submit(&mut self, now: Time, mut command: Command<P>) -> CommandId {
        if !self.quiet {
            self.now = self.now.max(now);
            self.pass(now, &mut command);
        }
        self.device.submit(now, command)
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        match (self.device.next_event(), self.own_event()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    #[inline]
    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<P>>) {
        if self.has_commands() {
            self.advance_with_commands(now, completions);
        } else {
            self.device.advance(now, completions);
        }
    }

    #[inline]
    fn step(&mut self, now: Time, limit: Time, completions: &mut Vec<Completion<P>>) -> Time {
        if self.has_commands() {
            self.advance(now, completions);
            now
        } else {
            self.device.advance_until_completion(now, limit, completions)
        }
    }

    fn announce(&mut self, now: Time, hint: Hint) {
        if self.config.channel == Channel::Off {
            return;
        }
        self.now = self.now.max(now);
        self.stats.announced += 1;
        self.stats.announced_units += u64::from(hint.units());
        let capacity = self.device.capacity_sectors() / UNIT_SECTORS;
        if u64::from(hint.first_unit()) + u64::from(hint.units()) > capacity {
            self.stats.beyond_end_units += u64::from(hint.units());
            return;
        }
        let units = capacity.min(1 << 32);
        self.waiting.reserve(units);
        if self.is_late() {
            self.held.reserve(units);
        }
        if self.config.missing.as_ppm() > 0 && self.rng.chance(self.config.missing) {
            self.stats.missing_units += u64::from(hint.units());
        } else {
            self.take_in(now, hint);
        }
        if self.config.false_share.as_ppm() > 0 && self.rng.chance(self.config.false_share) {
            let places = (capacity - u64::from(hint.units()) + 1).min(1 << 32);
            let mistaken =
                Hint::covering(Lba(self.rng.below(places) * UNIT_SECTORS), hint.sectors());
            for hint in mistaken {
                self.stats.false_hints += 1;
                self.stats.false_units += u64::from(hint.units());
                self.take_in(now, hint);
            }
        }
    }

    #[inline]
    fn expect(&self, reads: impl Iterator<Item = Lba>) {
        self.device.expect(reads);
    }

    #[inline]
    fn capacity_sectors(&self) -> u64 {
        self.device.capacity_sectors()
    }
}
