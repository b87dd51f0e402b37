//! The array of dies and channels on one timeline.

use std::collections::VecDeque;

use leyden_sim::{Ratio, Rng, Span, Time};

use crate::die::{Die, Stage};
use crate::timeline::{Timeline, Wake};
use crate::{ChannelId, Config, DieId, FaultConfig, Geometry, Kind, Operation};

/// An operation that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The operation.
    pub operation: Operation,
    /// The die that did it.
    pub die: DieId,
    /// When it ended.
    pub time: Time,
    /// True if the program or erase failed.
    pub failed: bool,
}

/// An operation that a power cut has found on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupted {
    /// The operation.
    pub operation: Operation,
    /// The die that was to do it.
    pub die: DieId,
    /// When it would end if it went on; `None` if it has not begun, and so changed nothing.
    pub end: Option<Time>,
}

/// Dies and channels at work. Operations go in by [`Flash::submit`]; outcomes come out of
/// [`Flash::next_outcome`] in the order of `(time, sequence)`.
#[derive(Clone, Debug)]
pub struct Flash {
    geometry: Geometry,
    dies: Vec<Die>,
    timeline: Timeline,
    /// Ended untimed, not yet handed out.
    outcomes: VecDeque<Outcome>,
    faults: FaultConfig,
    rng: Rng,
    /// Operations end as soon as they are submitted.
    untimed: bool,
}

impl Flash {
    /// Idle flash of `geometry`, which `config` yielded.
    pub fn new(config: &Config, geometry: Geometry, seed: u64) -> Self {
        Self {
            geometry,
            dies: (0..geometry.dies())
                .map(|die| Die::new(geometry.channel_of(DieId(die))))
                .collect(),
            timeline: Timeline::new(config, &geometry),
            outcomes: VecDeque::new(),
            faults: config.faults.clone(),
            rng: Rng::new(seed, "nand.faults"),
            untimed: false,
        }
    }

    /// Lets operations end as soon as they are submitted, to precondition a drive quickly.
    ///
    /// # Panics
    /// If anything is in progress.
    pub fn set_untimed(&mut self, untimed: bool) {
        assert!(self.is_idle(), "the flash is at work");
        self.untimed = untimed;
    }

    /// True if nothing is in progress or waiting to be handed out.
    pub fn is_idle(&self) -> bool {
        self.timeline.is_empty() && self.outcomes.is_empty()
    }

    /// True if `die` would accept an operation other than a host read.
    #[inline]
    pub fn accepts(&self, die: DieId) -> bool {
        self.dies[die.index()].accepts()
    }

    /// Hands an operation to its die at `now`. Host reads are always accepted.
    ///
    /// # Panics
    /// If the die does not accept it (see [`Flash::accepts`]).
    #[inline]
    pub fn submit(&mut self, now: Time, operation: Operation) {
        let die_id = match operation.kind {
            Kind::HostRead(page) | Kind::Read(page) | Kind::Program(page) => {
                self.geometry.die_of_page(page)
            }
            Kind::Erase(block) => self.geometry.die_of(block),
        };
        if self.untimed {
            self.submit_untimed(now, die_id, operation);
            return;
        }
        let die = &mut self.dies[die_id.index()];
        if let Kind::HostRead(_) = operation.kind {
            if die.stage != Stage::Idle || !die.host_reads.is_empty() {
                self.queue_host_read(now, die_id, operation);
                return;
            }
        } else {
            assert!(die.accepts(), "{die_id:?} accepts no more");
            if die.stage != Stage::Idle {
                die.accepted = Some(operation);
                return;
            }
        }
        self.timeline.start(now, die_id, die, operation);
    }

    #[inline(never)]
    fn submit_untimed(&mut self, now: Time, die: DieId, operation: Operation) {
        if !matches!(operation.kind, Kind::HostRead(_)) {
            // Until it is handed out: the issuer does not know yet how it ended.
            self.dies[die.index()].accepted = Some(operation);
        }
        let outcome = self.finish(now, die, operation);
        self.outcomes.push_back(outcome);
    }

    /// Queues a host read for a die that is at work. It goes before a program that has not begun its transfer.
    #[inline(never)]
    fn queue_host_read(&mut self, now: Time, id: DieId, operation: Operation) {
        let die = &mut self.dies[id.index()];
        if die.can_be_pushed_aside() {
            assert!(die.accepted.is_none(), "two operations accepted by one die");
            die.accepted = die.current.take();
            die.ticket += 1;
            die.stage = Stage::Idle;
        }
        die.host_reads.push_back(operation);
        if die.stage == Stage::Idle {
            self.timeline.start_next(now, id, die);
        }
    }

    /// When something next happens; [`Time::MAX`] if nothing will, or only at the end of time.
    #[inline]
    pub fn next_time(&self) -> Time {
        if self.untimed {
            return self.outcomes.front().map_or(Time::MAX, |outcome| outcome.time);
        }
        self.timeline.next_time()
    }

    /// The next operation to end at or before `now`. Its die is free again when this returns.
    // Always inlined: in a program with several kinds of drive the compiler would not, and each event passes here.
    #[inline(always)]
    pub fn next_outcome(&mut self, now: Time) -> Option<Outcome> {
        if self.untimed {
            return self.next_untimed();
        }
        loop {
            match self.timeline.pop_until(now)? {
                (time, Wake::Die(die)) => {
                    if let Some(operation) =
                        self.timeline.step(time, die, &mut self.dies[die.index()])
                    {
                        return Some(self.finish(time, die, operation));
                    }
                }
                (time, Wake::Channel(channel)) => {
                    self.timeline.wake_channel(time, channel, &mut self.dies);
                }
            }
        }
    }

    /// The next of those that ended when they were submitted.
    #[inline(never)]
    fn next_untimed(&mut self) -> Option<Outcome> {
        let outcome = self.outcomes.pop_front()?;
        if !matches!(outcome.operation.kind, Kind::HostRead(_)) {
            self.dies[outcome.die.index()].accepted = None;
        }
        Some(outcome)
    }

    /// The operations in flight at `now`: at most one in progress and one more for each die, host
    /// reads that wait left out.
    pub fn on_the_way(&self) -> impl Iterator<Item = Interrupted> {
        let ended = |outcome: &Outcome| Interrupted {
            operation: outcome.operation,
            die: outcome.die,
            end: Some(outcome.time),
        };
        let of_die = |(id, die): (DieId, &'_ Die)| {
            let current = die.current.map(|operation| {
                let begun = die.stage != Stage::WaitingForChannel;
                let end = begun.then(|| die.began + self.timeline.span_of(&operation));
                Interrupted { operation, die: id, end }
            });
            let accepted = die.accepted.filter(|_| !self.untimed);
            let accepted = accepted.map(|operation| Interrupted { operation, die: id, end: None });
            current.into_iter().chain(accepted)
        };
        let dies = (0..self.geometry.dies()).map(DieId).zip(&self.dies);
        self.outcomes.iter().map(ended).chain(dies.flat_map(of_die))
    }

    /// The power fails: whatever is on its way stops here.
    pub fn cut_power(&mut self, now: Time) {
        self.outcomes.clear();
        self.timeline.stop(now);
        for die in &mut self.dies {
            die.current = None;
            die.accepted = None;
            die.host_reads.clear();
            die.stage = Stage::Idle;
            die.ticket += 1;
        }
    }

    /// Erases a block while the drive recovers, when nothing else is under way: the caller knows how
    /// long it takes ([`Flash::erase_time`]). True if it failed.
    pub fn erase_now(&mut self) -> bool {
        self.faults.erase_failures > Ratio::ZERO && self.rng.chance(self.faults.erase_failures)
    }

    /// How long an erase takes.
    pub const fn erase_time(&self) -> Span {
        self.timeline.erase_time()
    }

    /// Time each die has been busy with operations that have ended.
    pub fn die_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.dies.iter().map(|die| die.busy_time)
    }

    /// Time each channel has been busy with transfers that have begun.
    pub fn channel_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.timeline.channel_busy()
    }

    /// Array time of a page read, and the time to transfer `units` of its mapping units.
    pub fn read_times(&self, units: u32) -> (Span, Span) {
        self.timeline.read_times(units)
    }

    pub(crate) const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(crate) fn dies(&self) -> impl Iterator<Item = &Die> {
        self.dies.iter()
    }

    pub(crate) fn span_of(&self, operation: &Operation) -> Span {
        self.timeline.span_of(operation)
    }

    /// When the transfer that is on `channel`, or was the last on it, ends.
    pub(crate) fn channel_busy_until(&self, channel: ChannelId) -> Time {
        self.timeline.channel_busy_until(channel)
    }

    /// The generator that faults are drawn from, for a snapshot.
    pub const fn rng(&self) -> &Rng {
        &self.rng
    }

    /// Continues from a snapshot's generator.
    pub fn set_rng(&mut self, rng: Rng) {
        self.rng = rng;
    }

    #[inline]
    fn finish(&mut self, now: Time, die: DieId, operation: Operation) -> Outcome {
        let share = match operation.kind {
            Kind::Program(_) => self.faults.program_failures,
            Kind::Erase(_) => self.faults.erase_failures,
            Kind::HostRead(_) | Kind::Read(_) => Ratio::ZERO,
        };
        let failed = share > Ratio::ZERO && self.draw(share);
        Outcome { operation, die, time: now, failed }
    }

    #[cold]
    #[inline(never)]
    fn draw(&mut self, share: Ratio) -> bool {
        self.rng.chance(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockId, Ppn};
    use leyden_sim::{Bytes, BytesPerSec};

    const US: u64 = 1_000;

    /// Two channels, two dies each, 8 KiB pages at 10 us a page.
    fn flash() -> Flash {
        let config = Config {
            channels: 2,
            dies_per_channel: 2,
            blocks_per_plane: 4,
            pages_per_block: 8,
            channel_rate: BytesPerSec::new(819_200_000),
            ..Config::default()
        };
        let geometry = config.geometry(Bytes::new(4096)).unwrap();
        Flash::new(&config, geometry, 1)
    }

    /// A page on `die`.
    fn page(die: u32) -> Ppn {
        Ppn(die * 4 * 8)
    }

    fn operation(kind: Kind, tag: u32) -> Operation {
        Operation { kind, units: if let Kind::Erase(_) = kind { 0 } else { 2 }, tag }
    }

    /// Runs everything to its end: `(tag, time in us)`.
    fn run(flash: &mut Flash) -> Vec<(u32, u64)> {
        std::iter::from_fn(|| flash.next_outcome(Time::MAX))
            .map(|outcome| (outcome.operation.tag, outcome.time.as_ns() / US))
            .collect()
    }

    #[test]
    fn unloaded_operations_take_the_sum_of_their_parts() {
        let mut flash = flash();
        flash.submit(Time::ZERO, operation(Kind::Read(page(0)), 1));
        flash.submit(Time::ZERO, operation(Kind::Program(page(1)), 2));
        flash.submit(Time::ZERO, operation(Kind::Erase(BlockId(2 * 4)), 3));
        assert_eq!(run(&mut flash), [(1, 60 + 10), (2, 10 + 700), (3, 3_500)]);
        let busy: Vec<u64> = flash.die_busy().map(|span| span.as_ns() / US).collect();
        assert_eq!(busy, [70, 710, 3_500, 0]);
        assert!(flash.is_idle());
    }

    #[test]
    fn a_partial_read_transfers_only_what_is_wanted() {
        let mut flash = flash();
        let half = Operation { units: 1, ..operation(Kind::HostRead(page(0)), 1) };
        flash.submit(Time::ZERO, half);
        assert_eq!(run(&mut flash), [(1, 65)]);
    }

    #[test]
    fn a_channel_carries_one_transfer_at_a_time() {
        let mut flash = flash();
        // Dies 0 and 2 share channel 0; die 1 hangs on channel 1.
        for die in [0, 2, 1] {
            flash.submit(Time::ZERO, operation(Kind::Program(page(die)), die));
        }
        assert_eq!(run(&mut flash), [(0, 710), (1, 710), (2, 720)]);
        let busy: Vec<u64> = flash.channel_busy().map(|span| span.as_ns() / US).collect();
        assert_eq!(busy, [20, 10]);
    }

    #[test]
    fn host_reads_wait_only_for_what_has_begun() {
        let mut flash = flash();
        flash.submit(Time::ZERO, operation(Kind::Program(page(0)), 1));
        let at = |us| Time::from_ns(us * US);
        flash.submit(at(20), operation(Kind::HostRead(page(0)), 2));
        flash.submit(at(30), operation(Kind::HostRead(page(0)), 3));
        assert!(!flash.accepts(DieId(0)), "the program is still in progress");
        assert_eq!(flash.next_outcome(at(710)).unwrap().operation.tag, 1);
        // Work that is accepted while a host read is in progress lets the queued one go first.
        flash.submit(at(710), operation(Kind::Erase(BlockId(0)), 4));
        assert_eq!(run(&mut flash), [(2, 780), (3, 850), (4, 850 + 3_500)]);
    }

    #[test]
    fn a_host_read_pushes_aside_a_program_that_waits_for_the_channel() {
        let mut flash = flash();
        flash.submit(Time::ZERO, operation(Kind::Program(page(0)), 1));
        flash.submit(Time::ZERO, operation(Kind::Program(page(2)), 2));
        flash.submit(Time::from_ns(5 * US), operation(Kind::HostRead(page(2)), 3));
        // Read 5..65, transfer 65..75; then the program's transfer 75..85.
        assert_eq!(run(&mut flash), [(3, 75), (1, 710), (2, 785)]);
    }

    #[test]
    fn host_data_goes_first_on_the_channel() {
        let mut config = Config { channels: 1, dies_per_channel: 3, ..Config::default() };
        (config.blocks_per_plane, config.pages_per_block) = (4, 8);
        config.channel_rate = BytesPerSec::new(81_920_000); // 100 us a page
        let geometry = config.geometry(Bytes::new(4096)).unwrap();
        let mut flash = Flash::new(&config, geometry, 1);
        // Die 0's program is on the channel until 100; the reads' data is ready at 60 and at 70.
        flash.submit(Time::ZERO, operation(Kind::Program(page(0)), 1));
        flash.submit(Time::ZERO, operation(Kind::Read(page(1)), 2));
        flash.submit(Time::from_ns(10 * US), operation(Kind::HostRead(page(2)), 3));
        assert_eq!(run(&mut flash), [(3, 200), (2, 300), (1, 800)]);
    }

    #[test]
    fn untimed_operations_end_at_once_in_order() {
        let mut flash = flash();
        flash.set_untimed(true);
        flash.submit(Time::ZERO, operation(Kind::HostRead(page(0)), 1));
        flash.submit(Time::ZERO, operation(Kind::Program(page(0)), 2));
        flash.submit(Time::ZERO, operation(Kind::Program(page(1)), 3));
        assert_eq!(flash.next_outcome(Time::ZERO).unwrap().operation.tag, 1);
        assert!(!flash.accepts(DieId(0)), "its program has not been handed out");
        assert_eq!(run(&mut flash), [(2, 0), (3, 0)]);
        assert!(flash.accepts(DieId(0)));
    }

    #[test]
    fn faults_hit_their_share_of_programs() {
        let mut flash = flash();
        flash.faults.program_failures = Ratio::from_percent(10);
        flash.set_untimed(true);
        let mut failed = 0;
        for _ in 0..10_000 {
            flash.submit(Time::ZERO, operation(Kind::Program(page(0)), 0));
            failed += u32::from(flash.next_outcome(Time::ZERO).unwrap().failed);
        }
        assert!((900..1_100).contains(&failed), "{failed}");
    }
}
