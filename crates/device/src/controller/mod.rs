//! The controller: when a command enters and leaves, and whether there is power.
//!
//! **What lives here**: the clock of a drive, its commands ([`CommandTable`]), and its power ([`power`]). **What
//! doesn't**: what a command means; that is the namespace's ([`Namespace`]), one per controller, known when
//! compiling.

mod built;
mod commands;
mod frontend;
mod namespace;
mod ops;
pub(crate) mod power;
mod requests;

use std::io::{Read, Write};

use leyden_buffer::Region;
use leyden_nand::{Geometry, Medium};
use leyden_sim::{ConfigError, Digest, Time};

pub(crate) use built::{Built, drive_ops, ops};
pub use commands::CommandTable;
pub use namespace::{Namespace, ToDump};
pub use ops::DriveOps;
pub use requests::{Request, RequestId};

use crate::lba::SECTOR_BYTES;
use crate::{
    BlockDevice, Command, CommandId, Completion, Config, FaultRule, FaultRules, FaultTarget,
    FrontendConfig, Lba, Payload, SnapshotError, Status,
};
use frontend::FrontendEvent;
use power::{PowerState, PowerSupply};

/// A drive: a controller in front of a namespace.
#[derive(Clone, Debug)]
pub struct Controller<P: Payload, N> {
    now: Time,
    commands: CommandTable<P>,
    namespace: N,
    power_state: PowerState,
    /// `None` if the power is never cut.
    power: Option<PowerSupply>,
    /// When the dump of the last cut has ended. It goes on if the power returns before.
    dump_end: Time,
    cuts: u64,
    /// Which commands are made to fail: the host's doing, and no part of a snapshot.
    faults: Option<Box<FaultRules>>,
}

impl<P: Payload, N: Namespace<P>> Controller<P, N> {
    /// A drive whose power is on.
    pub(crate) fn with(
        frontend: &FrontendConfig,
        power: Option<PowerSupply>,
        namespace: N,
    ) -> Self {
        Self {
            now: Time::ZERO,
            commands: CommandTable::new(frontend),
            namespace,
            power_state: PowerState::On,
            power,
            dump_end: Time::ZERO,
            cuts: 0,
            faults: None,
        }
    }

    /// Saves the drive's state, in a stream: no copy of it is made.
    ///
    /// # Panics
    /// If the drive is not idle.
    pub fn save(&self, to: &mut impl Write) -> Result<(), SnapshotError> {
        (N::ops().save)(self, to)
    }

    /// A drive with a saved state. `config` and `seed` are those it was saved with.
    pub fn load(config: &Config, seed: u64, from: &mut impl Read) -> Result<Self, SnapshotError> {
        (N::ops().load)(Self::new(config, seed)?, from)
    }

    /// An empty drive. Everything random in it comes from `seed`.
    ///
    /// # Errors
    /// If a value is impossible, or the drive could not keep its promises at a power cut.
    pub fn new(config: &Config, seed: u64) -> Result<Self, ConfigError> {
        let drive = (N::ops().build)(config, seed)?;
        drive.check_dump_room()?;
        Ok(drive)
    }

    /// A drive without power on a medium that holds data, which another drive has left
    /// ([`crate::Ssd::into_medium`]), in this process or in another. It is as good as new once the power has returned
    /// ([`Controller::restore_power`]).
    ///
    /// # Errors
    /// As [`Controller::new`].
    pub fn on_medium(config: &Config, medium: Medium<P>) -> Result<Self, ConfigError> {
        let mut drive = (N::ops().on_medium)(config, medium)?;
        drive.power_off();
        Ok(drive)
    }

    /// A drive that has just been made, without power.
    pub(crate) const fn power_off(&mut self) {
        self.power_state = PowerState::Off;
    }
    /// The drive after a power cut.
    ///
    /// # Panics
    /// If the power is on.
    pub(crate) fn into_namespace(self) -> N {
        assert!(self.power_state == PowerState::Off, "the power is on");
        self.namespace
    }
    /// True if the drive has been given nothing to do yet.
    pub(crate) fn is_new(&self) -> bool {
        self.is_idle() && self.commands.state().0 == 0
    }
    pub(crate) const fn namespace_mut(&mut self) -> &mut N {
        &mut self.namespace
    }
    /// The capacitors; `None` if the power is never cut.
    pub(crate) const fn power(&self) -> Option<&PowerSupply> {
        self.power.as_ref()
    }
    /// The data of writes in flight, and the data that reads in flight have got so far.
    pub fn in_flight(&self) -> impl Iterator<Item = (Option<&P::WriteData>, &P::ReadData)> {
        self.commands.in_flight()
    }
    /// How many commands are under way.
    pub fn pending(&self) -> usize {
        self.commands.pending()
    }
    /// The namespace, which gives commands their meaning.
    pub const fn namespace(&self) -> &N {
        &self.namespace
    }
    /// The latest time the drive has been told. A new driver begins here.
    pub const fn now(&self) -> Time {
        self.now
    }
    /// The flash's shape.
    pub fn geometry(&self) -> &Geometry {
        self.namespace.geometry()
    }
    /// The protected region of the buffer.
    pub fn region(&self) -> Region {
        self.namespace.region()
    }
    /// Mapping units that can be addressed.
    pub fn mapping_units(&self) -> u32 {
        self.namespace.mapping_units()
    }
    /// Fingerprint of everything the flash did and every command that ended.
    pub const fn digest(&self) -> Digest {
        self.commands.digest()
    }
    /// Bytes of memory that grow with capacity.
    pub fn memory_bytes(&self) -> u64 {
        self.namespace.memory_bytes()
    }
    /// Power cuts so far.
    pub const fn cuts(&self) -> u64 {
        self.cuts
    }
    /// True if no command and no flash operation is under way.
    pub fn is_idle(&self) -> bool {
        self.power_state == PowerState::On && self.commands.is_idle() && self.namespace.is_idle()
    }
    /// Lets flash operations take no time, to precondition a drive quickly. Everything else, like
    /// placement and garbage collection, is as ever.
    ///
    /// # Panics
    /// If the drive is not idle.
    pub fn set_untimed(&mut self, untimed: bool) {
        assert!(self.is_idle(), "the drive is at work");
        self.namespace.set_untimed(untimed);
    }

    /// Peaks of the statistics count from here on: what the drive was brought into its state by is no part of a run, and a
    /// drive that was loaded has forgotten it.
    pub fn forget_peaks(&mut self) {
        self.namespace.forget_peaks();
    }

    /// Makes commands fail, from now on. A command counts, and fails, when it arrives.
    ///
    /// # Panics
    /// If there are more than [`FaultRules::MOST`] rules.
    pub fn make_fail(&mut self, rules: &[FaultRule]) {
        let mut faults = FaultRules::default();
        for &rule in rules {
            assert!(faults.add(rule, self.now.as_ns()), "too many rules");
        }
        self.faults = (!faults.is_empty()).then(|| Box::new(faults));
    }

    /// The rules of [`Controller::make_fail`], if there are any.
    pub fn fault_rules(&self) -> Option<&FaultRules> {
        self.faults.as_deref()
    }

    /// A command has arrived, which may be made to fail.
    #[cold]
    #[inline(never)]
    fn arrive_or_fail(&mut self, time: Time, id: RequestId) {
        let target = FaultTarget::of(&self.commands.request(id).action);
        let faults = self.faults.as_mut();
        match faults.zip(target).and_then(|(faults, it)| faults.fails(it, time.as_ns())) {
            Some(status) => self.commands.complete(time, id, status),
            None => self.namespace.arrive(time, id, &mut self.commands),
        }
    }

    /// Asserts that the drive's structures agree with each other and that every page programmed is
    /// accounted for. Costs a pass over the drive's state.
    ///
    /// # Panics
    /// If they do not: a bug of ours.
    pub fn check(&self) {
        if let Err(violation) = (N::ops().check)(&self.namespace) {
            panic!("broken invariant: {violation}");
        }
    }

    /// When something next happens; [`Time::MAX`] if nothing will, or only at the end of time.
    #[inline]
    fn next_time(&self) -> Time {
        if !matches!(self.power_state, PowerState::On)
            && let Some(time) = self.next_without_power()
        {
            return time;
        }
        self.commands.next_time().min(self.namespace.next_time())
    }

    /// True if something is still to happen, be it at the end of time.
    #[cold]
    #[inline(never)]
    fn has_pending(&self) -> bool {
        !matches!(self.power_state, PowerState::On) && self.next_without_power().is_some()
            || self.commands.has_passages()
            || self.namespace.has_events()
    }

    /// Lets everything happen until commands have ended, or up to and including `limit`; returns the time
    /// reached. What is overdue at `now` happens then, all of it.
    fn run(&mut self, mut now: Time, limit: Time, until_completion: bool) -> Time {
        let mut has_happened = false;
        loop {
            let next = self.next_time();
            if next > now {
                if until_completion && has_happened && !self.commands.done.is_empty() {
                    self.now = now;
                    return now;
                }
                if next > limit {
                    break;
                }
            }
            if next == Time::MAX && !self.has_pending() {
                break;
            }
            now = now.max(next);
            has_happened = true;
            self.at(next);
        }
        if has_happened {
            self.now = now;
        }
        limit
    }

    /// Processes events of the instant `time`: the flash goes first, then commands that pass the
    /// front end.
    #[inline(always)]
    fn at(&mut self, time: Time) {
        self.now = time;
        if !matches!(self.power_state, PowerState::On) && self.advance_without_power(time) {
            return;
        }
        while self.namespace.next_time() <= time
            && self.namespace.next_ended(time, &mut self.commands)
        {}
        while let Some(passage) = self.commands.next_passage(time) {
            match passage {
                FrontendEvent::Arrived(id) if self.faults.is_some() => {
                    self.arrive_or_fail(time, id);
                }
                FrontendEvent::Arrived(id) => self.namespace.arrive(time, id, &mut self.commands),
                FrontendEvent::Delivered(id) => self.commands.complete(time, id, Status::Success),
            }
        }
        self.namespace.instant_ended(time, &mut self.commands);
    }

    #[inline]
    fn unit_sectors(&self) -> u64 {
        u64::from(self.geometry().unit_bytes()) / SECTOR_BYTES
    }

    /// The controller's state for a snapshot.
    pub(crate) const fn state(&self) -> ControllerState {
        let (next_id, digest) = self.commands.state();
        ControllerState { now: self.now, next_id, digest }
    }

    /// Goes on from a snapshot; hands the namespace out to do so, too.
    pub(crate) const fn restore(&mut self, state: &ControllerState) -> &mut N {
        self.now = state.now;
        self.commands.restore((state.next_id, state.digest));
        &mut self.namespace
    }
}

/// The state of a controller in a snapshot.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ControllerState {
    now: Time,
    next_id: u64,
    digest: Digest,
}

impl<P: Payload, N: Namespace<P>> BlockDevice<P> for Controller<P, N> {
    #[inline]
    fn submit(&mut self, now: Time, command: Command<P>) -> CommandId {
        assert!(now >= self.now, "time ran backwards");
        self.now = now;
        if self.power_state == PowerState::Off {
            return self.commands.refuse(now, &command);
        }
        self.namespace.expect(&command.action);
        self.commands.submit(now, command)
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        let next = self.next_time();
        (next != Time::MAX || self.has_pending()).then_some(next)
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<P>>) {
        assert!(now >= self.now, "time ran backwards");
        // Commands end into the caller's list.
        std::mem::swap(&mut self.commands.done, completions);
        self.run(now, now, false);
        self.now = now;
        std::mem::swap(&mut self.commands.done, completions);
    }

    /// Without leaving for every instant in between.
    fn advance_until_completion(
        &mut self,
        now: Time,
        limit: Time,
        completions: &mut Vec<Completion<P>>,
    ) -> Time {
        assert!(now >= self.now, "time ran backwards");
        std::mem::swap(&mut self.commands.done, completions);
        let reached = self.run(now, limit, true);
        std::mem::swap(&mut self.commands.done, completions);
        reached
    }

    #[inline]
    fn expect(&self, reads: impl Iterator<Item = Lba>) {
        self.namespace.expect_reads(reads);
    }

    #[inline]
    fn capacity_sectors(&self) -> u64 {
        u64::from(self.mapping_units()) * self.unit_sectors()
    }
}
