//! When what dies do ends, and who has the channels meanwhile.

use leyden_sim::{EventQueue, Span, Time};

use crate::channel::{Channel, Urgency};
use crate::die::{Die, Stage};
use crate::{ChannelId, Config, DieId, Geometry, Kind, Operation};

/// The subject of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wake {
    /// The die is at the end of a stage.
    Die(DieId),
    /// The transfer in progress has ended, and dies wait.
    Channel(ChannelId),
}

/// Events of one kind lie one span ahead, and have a lane of the queue for themselves. Those of
/// channels lie anywhere within a transfer.
mod lane {
    pub(super) const READ: usize = 0;
    /// Of one unit, and of more.
    pub(super) const TRANSFERS: [usize; 2] = [1, 2];
    pub(super) const PROGRAM: usize = 3;
    pub(super) const ERASE: usize = 4;
    pub(super) const CHANNEL: usize = 5;
}

/// The times of the flash, its channels, and what comes next.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    read: Span,
    program: Span,
    erase: Span,
    /// Transfer time by mapping units moved: what a channel carries is a whole number of units.
    transfer: Vec<Span>,
    channels: Vec<Channel>,
    /// When each busy die next changes its stage, and when waiting dies get their channel.
    events: EventQueue<Wake>,
}

impl Timeline {
    pub(crate) fn new(config: &Config, geometry: &Geometry) -> Self {
        let transfer = (0..=geometry.units_per_page())
            .map(|units| config.channel_rate.time_for(u64::from(units * geometry.unit_bytes())))
            .collect();
        Self {
            read: config.read,
            program: config.program,
            erase: config.erase,
            transfer,
            channels: vec![Channel::default(); geometry.channels() as usize],
            events: EventQueue::default(),
        }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    #[inline]
    pub(crate) const fn next_time(&self) -> Time {
        self.events.next_time_or_max()
    }

    /// The next event, if it comes at or before `now`.
    #[inline(always)]
    pub(crate) fn pop_until(&mut self, now: Time) -> Option<(Time, Wake)> {
        self.events.pop_until(now)
    }

    /// How long an erase takes.
    pub(crate) const fn erase_time(&self) -> Span {
        self.erase
    }

    /// Array time of a page read, and the time to transfer `units` of its mapping units.
    pub(crate) fn read_times(&self, units: u32) -> (Span, Span) {
        (self.read, self.transfer[units as usize])
    }

    /// How long `operation` is in the array after it has begun, but for what a read transfers then.
    pub(crate) fn span_of(&self, operation: &Operation) -> Span {
        match operation.kind {
            Kind::HostRead(_) | Kind::Read(_) => self.read,
            Kind::Program(_) => self.transfer[operation.units as usize] + self.program,
            Kind::Erase(_) => self.erase,
        }
    }

    /// Time each channel has been busy with transfers that have begun.
    pub(crate) fn channel_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.channels.iter().map(|channel| channel.busy_time)
    }

    pub(crate) fn channel_busy_until(&self, channel: ChannelId) -> Time {
        self.channels[channel.index()].busy_until()
    }

    /// The power fails: nothing comes any more.
    pub(crate) fn stop(&mut self, now: Time) {
        self.events.clear();
        self.channels.iter_mut().for_each(|channel| channel.reset(now));
    }

    /// `die` begins what it is to do next, if there is anything.
    #[inline]
    pub(crate) fn start_next(&mut self, now: Time, id: DieId, die: &mut Die) {
        let Some(operation) = die.take_next() else {
            die.stage = Stage::Idle;
            return;
        };
        self.start(now, id, die, operation);
    }

    /// `die`, which is idle and has nothing else to do first, begins `operation`.
    #[inline]
    pub(crate) fn start(&mut self, now: Time, id: DieId, die: &mut Die, operation: Operation) {
        die.current = Some(operation);
        die.began = now;
        match operation.kind {
            Kind::HostRead(_) | Kind::Read(_) => {
                die.stage = Stage::Array;
                self.events.schedule_in(lane::READ, now + self.read, Wake::Die(id));
            }
            Kind::Erase(_) => {
                die.stage = Stage::Array;
                self.events.schedule_in(lane::ERASE, now + self.erase, Wake::Die(id));
            }
            Kind::Program(_) => self.want_channel(now, id, die, operation, Urgency::Program),
        }
    }

    /// `die` has reached the end of a stage: yields its operation if that has ended.
    // Always inlined: its result would go through memory.
    #[inline(always)]
    pub(crate) fn step(&mut self, now: Time, id: DieId, die: &mut Die) -> Option<Operation> {
        let operation = die.current.expect("an event of an idle die");
        match (operation.kind, die.stage) {
            (Kind::HostRead(_), Stage::Array) => {
                self.want_channel(now, id, die, operation, Urgency::HostRead);
                None
            }
            (Kind::Read(_), Stage::Array) => {
                self.want_channel(now, id, die, operation, Urgency::Read);
                None
            }
            (Kind::HostRead(_) | Kind::Read(_) | Kind::Program(_), Stage::Transferring)
            | (Kind::Erase(_), Stage::Array) => {
                die.current = None;
                die.busy_time += now - die.began;
                self.start_next(now, id, die);
                Some(operation)
            }
            (kind, stage) => unreachable!("{kind:?} in {stage:?}"),
        }
    }

    /// Starts the transfer of `operation`, which is the die's, or queues the die for its channel.
    #[inline]
    fn want_channel(
        &mut self,
        now: Time,
        id: DieId,
        die: &mut Die,
        operation: Operation,
        urgency: Urgency,
    ) {
        if self.channels[die.channel.index()].is_free(now) {
            self.start_transfer(now, id, die, operation);
        } else {
            self.wait_for_channel(id, die, urgency);
        }
    }

    #[inline(never)]
    fn wait_for_channel(&mut self, id: DieId, die: &mut Die, urgency: Urgency) {
        die.stage = Stage::WaitingForChannel;
        let channel = &mut self.channels[die.channel.index()];
        if let Some(time) = channel.wait(id, die.ticket, urgency) {
            self.events.schedule_in(lane::CHANNEL, time, Wake::Channel(die.channel));
        }
    }

    /// Starts the die's transfer: a read ends with it, and a program goes on in the array.
    #[inline]
    fn start_transfer(&mut self, now: Time, id: DieId, die: &mut Die, operation: Operation) {
        let span = self.transfer[operation.units as usize];
        self.channels[die.channel.index()].begin(now, span);
        if die.stage == Stage::WaitingForChannel {
            die.ticket += 1;
        }
        die.stage = Stage::Transferring;
        let (end, event) = (now + span, Wake::Die(id));
        if let Kind::Program(_) = operation.kind {
            // A program holds its die from the transfer on; it has only waited until now.
            die.began = now;
            self.events.schedule_in(lane::PROGRAM, end + self.program, event);
        } else {
            let lane = lane::TRANSFERS[usize::from(operation.units > 1)];
            self.events.schedule_in(lane, end, event);
        }
    }

    /// A transfer has ended on `channel` for which some of `dies` have waited.
    pub(crate) fn wake_channel(&mut self, now: Time, channel: ChannelId, dies: &mut [Die]) {
        let next =
            self.channels[channel.index()].wake(|die, ticket| dies[die.index()].ticket == ticket);
        if let Some(id) = next {
            let die = &mut dies[id.index()];
            let operation = die.current.expect("a transfer of nothing");
            self.start_transfer(now, id, die, operation);
            if let Some(time) = self.channels[channel.index()].wake_again() {
                self.events.schedule_in(lane::CHANNEL, time, Wake::Channel(channel));
            }
        }
    }
}
