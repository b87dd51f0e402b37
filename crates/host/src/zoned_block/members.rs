//! The two drives below, and the layer's commands to them.
//!
//! **Invariants**: every command that was sent ends once, with what it was for.

use leyden_device::{
    Action, Command, Completion, Output, Payload, Status, ZoneAction, ZoneDescriptor,
};
use leyden_sim::Time;

use super::layout::{Layout, Member, Place, ZoneNo};
use super::stored::{Stored, StoredData};
use crate::{Cut, Powered};

/// The purpose of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Reads for a piece of a request, from its unit `index` on.
    Read { piece: u32, index: u32 },
    /// Reads a block that the piece writes a part of.
    Fill { piece: u32, index: u32 },
    /// Writes the piece's blocks from `at` of its chunk on.
    Write { piece: u32, at: u32, place: Place },
    /// Reads what job `job` moves.
    CopyRead { job: u32 },
    /// Writes it, or the zeroes before it.
    CopyWrite { job: u32 },
    /// Makes room among the active zones for job `job`.
    Finish { job: u32 },
    /// A step of a commit.
    Commit,
    /// Makes a zone empty.
    Reset { zone: ZoneNo },
    /// A step of a recovery.
    Load { step: u32 },
}

/// The durability that a write asks of the drive below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keep {
    /// Nothing: a FLUSH will.
    Later,
    /// To protect it in its buffer, where that has a region for it.
    Protected,
    /// To have it on flash, or protected, when it ends.
    Fua,
}

/// The end of a command.
#[derive(Clone, Debug)]
pub(super) struct Ended<P: Payload> {
    pub(super) purpose: Purpose,
    pub(super) status: Status,
    pub(super) read: Vec<Stored<P>>,
    pub(super) zones: Vec<ZoneDescriptor>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    purpose: Purpose,
    zone: Option<ZoneNo>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Members<P: Payload, C, Z> {
    pub(super) conventional: C,
    pub(super) zoned: Z,
    layout: Layout,
    sent: Vec<Option<Sent>>,
    free: Vec<u32>,
    /// Commands that were ever sent.
    count: u64,
    /// Commands to each zone that are under way.
    busy: Vec<u32>,
    /// Completions not taken yet, the last first.
    completions: Vec<Completion<Stored<P>>>,
}

impl<P, C, Z> Members<P, C, Z>
where
    P: Payload,
    C: Powered<Stored<P>>,
    Z: Powered<Stored<P>>,
{
    pub(super) fn new(conventional: C, zoned: Z, layout: Layout) -> Self {
        let busy = vec![0; layout.zones() as usize];
        let (sent, free, completions) = (Vec::new(), Vec::new(), Vec::new());
        Self { conventional, zoned, layout, sent, free, count: 0, busy, completions }
    }

    fn send(
        &mut self,
        now: Time,
        member: Member,
        command: Command<Stored<P>>,
        purpose: Purpose,
        zone: Option<ZoneNo>,
    ) {
        let sent = Some(Sent { purpose, zone });
        self.count += 1;
        let tag = if let Some(tag) = self.free.pop() {
            self.sent[tag as usize] = sent;
            tag
        } else {
            self.sent.push(sent);
            self.sent.len() as u32 - 1
        };
        if let Some(zone) = zone {
            self.busy[zone.0 as usize] += 1;
        }
        let command = command.tag(tag);
        match member {
            Member::Conventional => self.conventional.submit(now, command),
            Member::Zoned => self.zoned.submit(now, command),
        };
    }

    fn sectors(&self, blocks: u32) -> u32 {
        blocks * self.layout.unit_sectors() as u32
    }

    pub(super) fn read(&mut self, now: Time, place: Place, purpose: Purpose) {
        let lba = self.layout.lba(place.zone, place.at);
        let command = Command::read(lba, self.sectors(place.blocks));
        self.send(now, self.layout.member(place.zone), command, purpose, Some(place.zone));
    }

    pub(super) fn write(
        &mut self,
        now: Time,
        place: Place,
        data: StoredData<P>,
        keep: Keep,
        purpose: Purpose,
    ) {
        let lba = self.layout.lba(place.zone, place.at);
        let command = Command::write(lba, self.sectors(place.blocks), data);
        let command = command.fua(keep == Keep::Fua).plp(keep == Keep::Protected);
        self.send(now, self.layout.member(place.zone), command, purpose, Some(place.zone));
    }

    /// Fills blocks of a sequential zone with zeroes.
    pub(super) fn write_zeroes(&mut self, now: Time, place: Place, purpose: Purpose) {
        let lba = self.layout.lba(place.zone, place.at);
        let sectors = self.sectors(place.blocks);
        let command = Command::write_zeroes(lba, sectors, StoredData::default());
        self.send(now, Member::Zoned, command, purpose, Some(place.zone));
    }

    pub(super) fn flush(&mut self, now: Time, member: Member, purpose: Purpose) {
        self.send(now, member, Command::flush(), purpose, None);
    }

    /// Resets or finishes a sequential zone.
    pub(super) fn manage(&mut self, now: Time, zone: ZoneNo, action: ZoneAction, purpose: Purpose) {
        let command = Command::zone(action, self.layout.lba(zone, 0));
        self.send(now, Member::Zoned, command, purpose, Some(zone));
    }

    pub(super) fn report(&mut self, now: Time, purpose: Purpose) {
        let lba = self.layout.lba(self.layout.label(), 0);
        self.send(now, Member::Zoned, Command::zone_report(lba), purpose, None);
    }

    #[inline]
    pub(super) fn next_event(&self) -> Option<Time> {
        Time::earliest([self.conventional.next_event(), self.zoned.next_event()])
    }

    /// Lets the members end what others have told them; returns the time then.
    pub(super) fn come_to_rest(&mut self, mut now: Time) -> Time {
        let mut nobody = Vec::new();
        while let Some(time) = self.next_event() {
            now = now.max(time);
            self.conventional.advance(now, &mut nobody);
            self.zoned.advance(now, &mut nobody);
        }
        now
    }

    /// Lets everything up to `now` happen below, and returns it. What has ended is taken with [`Members::take_ended`], and
    /// is not under way any more.
    pub(super) fn advance(&mut self, now: Time) -> Time {
        let mut completions = self.list();
        if self.conventional.next_event().is_some_and(|event| event <= now) {
            self.conventional.advance(now, &mut completions);
        }
        if self.zoned.next_event().is_some_and(|event| event <= now) {
            self.zoned.advance(now, &mut completions);
        }
        self.note_ended(completions);
        now
    }

    /// The same until commands end, or up to and including `limit`; returns the time of what happened last. What is
    /// overdue happens at `now`. A member runs on as long as nothing is due in the other one.
    pub(super) fn run(&mut self, mut now: Time, limit: Time) -> Time {
        let mut completions = self.list();
        loop {
            let (a, b) = (self.conventional.next_event(), self.zoned.next_event());
            let Some(next) = Time::earliest([a, b]).filter(|&next| next <= limit) else { break };
            now = now.max(next);
            // Until the instant before something is due in the other member.
            let before = |other: Option<Time>| match other {
                Some(other) => limit.min(Time::from_ns(other.as_ns() - 1)),
                None => limit,
            };
            let is_due = |event: Option<Time>| event.is_some_and(|event| event <= now);
            let until = match (is_due(a), is_due(b)) {
                (true, false) => {
                    let until = before(b);
                    now = run_on(&mut self.conventional, now, until, &mut completions);
                    until
                }
                (false, true) => {
                    let until = before(a);
                    now = run_on(&mut self.zoned, now, until, &mut completions);
                    until
                }
                _ => {
                    self.conventional.advance(now, &mut completions);
                    self.zoned.advance(now, &mut completions);
                    now
                }
            };
            if until == limit || !completions.is_empty() {
                break; // nothing more is due, or the layer has something to do
            }
        }
        self.note_ended(completions);
        now
    }

    /// The list of what ends, which is empty.
    #[inline]
    fn list(&mut self) -> Vec<Completion<Stored<P>>> {
        assert!(self.completions.is_empty(), "a completion was not taken");
        std::mem::take(&mut self.completions)
    }

    fn note_ended(&mut self, mut completions: Vec<Completion<Stored<P>>>) {
        completions.reverse();
        self.completions = completions;
    }

    /// The first command that has ended and was not taken yet. It is not under way any more.
    #[inline]
    pub(super) fn take_ended(&mut self) -> Option<Ended<P>> {
        let end = self.completions.pop()?;
        let Sent { purpose, zone } =
            self.sent[end.tag as usize].take().expect("a command ends once");
        self.free.push(end.tag);
        if let Some(zone) = zone {
            self.busy[zone.0 as usize] -= 1;
        }
        let (read, zones) = match end.output {
            Output::Read(read) => (read, Vec::new()),
            Output::Zones(report) => (Vec::new(), report.zones),
            _ => (Vec::new(), Vec::new()),
        };
        Some(Ended { purpose, status: end.status, read, zones })
    }

    /// How many commands were ever sent.
    #[inline]
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// True if a command to `zone` is under way.
    #[inline]
    pub(super) fn is_busy(&self, zone: ZoneNo) -> bool {
        self.busy[zone.0 as usize] > 0
    }

    /// True if no command is under way.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.free.len() == self.sent.len()
    }

    /// No command was ever sent.
    pub(super) fn begin_anew(&mut self) {
        self.sent.clear();
        self.free.clear();
        self.busy.fill(0);
        self.completions.clear();
    }

    /// The power fails below, and with it every command.
    pub(super) fn cut_power(&mut self, now: Time) -> (Cut, Cut) {
        self.begin_anew();
        (self.conventional.cut_power(now), self.zoned.cut_power(now))
    }
}

/// Lets `member` run on until commands of its end, or up to and including `limit`; returns the time of what happened last.
fn run_on<P: Payload, D: Powered<Stored<P>>>(
    member: &mut D,
    now: Time,
    limit: Time,
    completions: &mut Vec<Completion<Stored<P>>>,
) -> Time {
    member.advance_until_completion(now, limit, completions);
    now.max(member.now())
}

/// True if `action` is one that a device with this layer on top takes: zones are the layer's own.
pub(super) const fn is_known<P: Payload>(action: &Action<P>) -> bool {
    matches!(
        action,
        Action::Read { .. }
            | Action::Write { .. }
            | Action::Flush { .. }
            | Action::Trim { .. }
            | Action::WriteZeroes { .. }
            | Action::WritePrepare { .. }
    )
}
