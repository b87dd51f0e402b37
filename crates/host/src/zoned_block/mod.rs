//! A block device on a conventional and a zoned drive, as Linux's dm-zoned makes one, with journals in zones of
//! their own ("Separating Journal Placement", the paper behind `journal.separate`).
//!
//! **What lives here**: [`ZonedBlock`]: where the blocks of chunks lie ([`map`], [`journal`], [`layout`]), which
//! zones are free ([`zones`]), how requests go through ([`serve`], [`requests`], [`traffic`]), how random zones are
//! freed ([`reclaim`], [`victim`], [`heat`]), how the tables survive power cuts ([`metadata`], [`commit`], [`load`]), and what
//! is shown of all that ([`view`], [`held`]). **What doesn't**: how the members keep what they have been told to keep, and what a file system does.
//!
//! - The device's address space is cut into chunks, as large as a zone. A chunk's first write gets it a random zone, on
//!   the conventional member, where blocks may be written in any order.
//! - When few random zones are free, chunks are moved to sequential zones, on the zoned member.
//! - A write to such a chunk goes there directly if it is for the next block to be written; else to a buffer zone, a
//!   random zone that the chunk gets beside its sequential one.
//! - Blocks of journals may have random zones of their own, block by block, which are never moved.
//!
//! A block is a mapping unit of the members, which must have the same. Parts of blocks are put together here.
//!
//! **Invariants**
//! - What a FLUSH or a write with FUA promises holds when both members lose their power at once: data reaches the
//!   members before the tables that speak of it, and those before what they free is used again ([`commit`], [`zones`]).
//! - Nothing comes back after a power cut but what was read from the members ([`load`]).
//! - A read returns the last write that ended before it came, or a later one.

mod background;
mod commit;
mod config;
pub mod fuzz;
mod heat;
mod held;
mod journal;
mod layout;
mod load;
mod map;
mod marks;
mod members;
mod metadata;
mod powered;
mod reclaim;
mod recognise;
mod requests;
mod serve;
mod stats;
mod stored;
pub mod superblock;
#[cfg(test)]
mod tests;
mod traffic;
pub mod victim;
mod view;
mod zones;

use std::collections::VecDeque;

use leyden_device::{
    BlockDevice, Command, CommandId, Completion, Hint, Payload, Region, SECTOR_BYTES, Status,
    Units, ZoneAction, ZoneShape,
};
use leyden_sim::{ConfigError, Time};

use crate::Powered;
use commit::Committer;
pub use config::{GiveUp, IdleOf, JournalConfig, Merge, Recognise, ZonedBlockConfig};
pub use held::Home;
use layout::{Layout, Place};
use load::Loader;
use map::Map;
use marks::{Due, Marks};
use members::{Keep, Members, Purpose, is_known};
use metadata::{LABEL, Superblock};
use reclaim::Reclaim;
use recognise::Recognition;
use requests::{HostRequest, Requests};
pub use stats::{ZonedBlockStats, flash_of_both};
pub use stored::{MetaBytes, Stored, StoredData};
use traffic::Traffic;
pub use view::{Chunk, ChunkPlace, RandomZone};
use zones::{Use, Zones};

/// The two drives below.
#[derive(Clone, Debug)]
pub struct Pair<C, Z> {
    /// The conventional drive, for random zones and metadata.
    pub conventional: C,
    /// The zoned drive.
    pub zoned: Z,
    /// The shape of its zones.
    pub shape: ZoneShape,
}

/// Whether commands can be served.
#[derive(Clone, Debug)]
enum State<P: Payload> {
    Up,
    /// The tables are being read; commands wait.
    Loading(Box<Loader<P>>),
    /// They could not be read.
    Failed(String),
    /// There is no power.
    Off,
}

/// A block device on two drives. See the module.
#[derive(Clone, Debug)]
pub struct ZonedBlock<P: Payload, C, Z> {
    layout: Layout,
    recognition: Recognition,
    members: Members<P, C, Z>,
    map: Map,
    zones: Zones,
    requests: Requests<P>,
    traffic: Traffic,
    reclaim: Reclaim,
    committer: Committer,
    state: State<P>,
    upkeep: background::Background,
    /// Pieces that wait for a free random zone, in order.
    starved: VecDeque<u32>,
    /// Commands that have ended.
    ended: VecDeque<Completion<P>>,
    now: Time,
    next_id: u64,
    stats: stats::Counters,
}

impl<P, C, Z> ZonedBlock<P, C, Z>
where
    P: Payload,
    C: Powered<Stored<P>>,
    Z: Powered<Stored<P>>,
{
    /// Makes a device on two drives, which lose what they hold. `identity` tells the pair from others.
    ///
    /// # Errors
    /// If there can be no such device.
    pub fn format(
        config: &ZonedBlockConfig,
        pair: Pair<C, Z>,
        identity: u64,
    ) -> Result<Self, ConfigError> {
        let mut device = Self::on(config, pair, identity)?;
        device.write_label(identity)?;
        device.map.set_all_dirty();
        device.committer.want();
        device.settle(device.now);
        device.run_until(|device| device.committer.is_idle());
        if device.committer.has_failed() {
            return Err(ConfigError::new("conventional", "the drive does not take the metadata"));
        }
        Ok(device)
    }

    /// Opens the device that was made on two drives.
    ///
    /// # Errors
    /// If there can be no such device, or there is none: the metadata cannot be read, or the drives do not belong
    /// together.
    pub fn open(config: &ZonedBlockConfig, pair: Pair<C, Z>) -> Result<Self, ConfigError> {
        let mut device = Self::on(config, pair, 0)?;
        device.now = device.members.come_to_rest(device.now);
        device.load(device.now);
        device.run_until(|device| !matches!(device.state, State::Loading(_)));
        match device.problem() {
            Some(problem) => Err(ConfigError::new("zoned_block", problem)),
            None => Ok(device),
        }
    }

    fn on(config: &ZonedBlockConfig, pair: Pair<C, Z>, identity: u64) -> Result<Self, ConfigError> {
        let Pair { conventional, zoned, shape } = pair;
        let unit_bytes =
            |units: u32, sectors: u64| (sectors * SECTOR_BYTES / u64::from(units.max(1))) as u32;
        let unit = unit_bytes(conventional.mapping_units(), conventional.capacity_sectors());
        let other = unit_bytes(zoned.mapping_units(), zoned.capacity_sectors());
        if unit != other {
            let problem = format!(
                "the conventional member has mapping units of {unit} B and the zoned one of {other} B: \
                 give them the same"
            );
            return Err(ConfigError::new("conventional.ftl.mapping_unit", problem));
        }
        config.check(unit)?;
        if config.journal.protect && conventional.region() == Region::None {
            let problem = "the conventional member protects nothing: give its buffer.region \"selective\" or \"full\", \
                           or turn this off";
            return Err(ConfigError::new("journal.protect", problem));
        }
        let layout = Layout::new(config, unit, conventional.capacity_sectors(), &shape)?;
        let now = conventional.now().max(zoned.now());
        Ok(Self {
            recognition: Recognition::new(&config.journal, &layout),
            members: Members::new(conventional, zoned, layout),
            map: Map::new(layout),
            zones: Zones::new(layout),
            requests: Requests::new(),
            traffic: Traffic::new(layout.chunks),
            reclaim: Reclaim::new(config, layout, identity),
            committer: Committer::new(layout, identity),
            state: State::Up,
            upkeep: background::Background::new(config, now),
            starved: VecDeque::new(),
            ended: VecDeque::new(),
            now,
            next_id: 0,
            stats: stats::Counters::new(&layout),
            layout,
        })
    }

    /// Writes the label of the zoned member, and nothing else to its zone.
    fn write_label(&mut self, identity: u64) -> Result<(), ConfigError> {
        let (layout, now) = (self.layout, self.now);
        let zone = layout.label();
        let label = Superblock { role: LABEL, generation: 0, identity, digest: 0 };
        let bytes = Stored::Meta(label.encode(&layout).into());
        let purpose = Purpose::Load { step: 0 };
        self.members.manage(now, zone, ZoneAction::Reset, purpose);
        let place = Place { zone, at: 0, blocks: 1 };
        self.members.write(now, place, StoredData::Units([bytes].into()), Keep::Fua, purpose);
        let mut failed = false;
        self.run_members(|ended| failed |= ended.status != Status::Success);
        self.members.manage(self.now, zone, ZoneAction::Finish, purpose);
        for zone in layout.sequential_zones() {
            self.members.manage(self.now, zone, ZoneAction::Reset, purpose);
        }
        self.run_members(|ended| failed |= ended.status != Status::Success);
        if failed {
            return Err(ConfigError::new("zoned", "the drive does not take its label"));
        }
        Ok(())
    }

    /// Lets the members end what they have been told.
    fn run_members(&mut self, mut each: impl FnMut(&members::Ended<P>)) {
        while let Some(time) = self.members.next_event().filter(|_| !self.members.is_idle()) {
            self.now = self.now.max(time);
            self.members.advance(self.now);
            while let Some(ended) = self.members.take_ended() {
                each(&ended);
            }
        }
    }

    /// Lets time pass until `is_over`, or nothing more happens.
    fn run_until(&mut self, is_over: impl Fn(&Self) -> bool) {
        let mut ended = Vec::new();
        while !is_over(self) {
            let Some(time) = self.next_event() else { return };
            self.advance(time, &mut ended);
        }
    }

    /// Why the device could not be brought back after a power cut; `None` if it could. Every command fails.
    pub fn problem(&self) -> Option<&str> {
        match &self.state {
            State::Failed(problem) => Some(problem),
            State::Up | State::Loading(_) | State::Off => None,
        }
    }

    /// Does what has become possible. What is done may make more possible: that is done at the next instant at which
    /// anything happens, in the layer or below it.
    fn settle(&mut self, now: Time) {
        if !matches!(self.state, State::Up) {
            self.upkeep.due = Due { own: None, quiet: Some(Time::MAX) };
            return;
        }
        let before = Marks::of(self);
        self.do_possible(now);
        let own = self.next_own_event();
        let quiet = (before == Marks::of(self)).then(|| self.nothing_due_until(own));
        self.upkeep.due = Due { own, quiet };
    }

    /// Checks the tables' and the zones' invariants, and describes the first that does not hold.
    fn check_tables(&self) -> Result<(), String> {
        self.map.check()?;
        self.zones.check()?;
        for (zone, usage) in self.zones.all() {
            let owner = match usage {
                Use::Data(chunk) => self.map.chunk(chunk).data,
                Use::Buffer(chunk) => self.map.chunk(chunk).buffer,
                Use::Journal => self.map.journal().zones().find(|&it| it == zone),
                Use::Kept | Use::Free | Use::Target | Use::GivenUp | Use::Bad => {
                    if self.map.weight(zone) > 0 {
                        return Err(format!("{zone:?} is {usage:?} and has valid blocks"));
                    }
                    continue;
                }
            };
            if owner != Some(zone) {
                return Err(format!("{zone:?} is {usage:?}, and the tables say {owner:?}"));
            }
        }
        Ok(())
    }

    /// Whether the journal is looked for in superblocks: then somebody has to ([`Self::found_journal`]).
    pub fn needs_superblocks(&self) -> bool {
        self.recognition.is_by_superblock()
    }

    /// True once after a superblock has changed, or what else the journal was found by: it is to be looked for again.
    pub fn take_superblock_changed(&mut self) -> bool {
        self.recognition.take_changed()
    }

    /// The journal is here from now on, found by the bytes in `sources` ([`superblock::find`]). If it has left blocks that
    /// lie in its zones, they move to their chunks, and the zones become free. Unless the journal is to be recognised
    /// by its superblock, nothing comes of it.
    pub fn found_journal(
        &mut self,
        now: Time,
        sources: Vec<std::ops::Range<u64>>,
        journal: superblock::Journal,
    ) {
        assert!(now >= self.now, "time ran backwards");
        self.now = now;
        self.recognition.found(sources, journal, self.map.journal().runs());
        self.settle(now);
    }

    /// True while blocks leave the journal's zones.
    pub fn is_releasing(&self) -> bool {
        self.recognition.is_releasing()
    }

    /// Where the journal is, if anybody has said so.
    pub const fn journal(&self) -> Option<&superblock::Journal> {
        self.recognition.journal()
    }

    /// The stage of the commit that is under way, from 1 on; 0 if none is.
    pub const fn commit_stage(&self) -> u32 {
        self.committer.stage()
    }

    /// The conventional drive.
    pub const fn conventional(&self) -> &C {
        &self.members.conventional
    }

    /// The zoned drive.
    pub const fn zoned(&self) -> &Z {
        &self.members.zoned
    }

    /// Both drives, for whoever takes the device apart.
    pub fn into_members(self) -> (C, Z) {
        (self.members.conventional, self.members.zoned)
    }

    /// Counts since the device was made.
    pub fn stats(&self) -> ZonedBlockStats {
        let cost = self.committer.cost();
        ZonedBlockStats { commits: cost.commits, metadata_blocks: cost.blocks, ..self.stats.totals }
    }

    /// Every chunk, in order.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> + '_ {
        let copied = self.stats.copied_of_chunks();
        (0..).zip(copied).map(|(chunk, copied)| view::chunk(&self.layout, &self.map, chunk, copied))
    }

    /// The use of each zone of the conventional member, in order.
    pub fn random_zones(&self) -> impl Iterator<Item = RandomZone> + '_ {
        view::random_zones(&self.layout, &self.zones)
    }

    /// Blocks that a zone holds, and a chunk.
    pub const fn zone_blocks(&self) -> u32 {
        self.layout.zone_blocks
    }

    /// The units of a command, or the status that rejects it.
    fn units(&self, command: &Command<P>) -> Result<Units, Status> {
        if !is_known(&command.action) {
            return Err(Status::InvalidOpcode);
        }
        let Some((lba, sectors)) = command.extent() else { return Ok(Units::NONE) };
        match lba.0.checked_add(sectors.into()) {
            _ if sectors == 0 => Err(Status::InvalidField),
            Some(end) if end <= self.capacity_sectors() => {
                Ok(Units::new(lba.0, sectors.into(), self.layout.unit_sectors()))
            }
            _ => Err(Status::LbaOutOfRange),
        }
    }
}

impl<P, C, Z> BlockDevice<P> for ZonedBlock<P, C, Z>
where
    P: Payload,
    C: Powered<Stored<P>>,
    Z: Powered<Stored<P>>,
{
    fn submit(&mut self, now: Time, command: Command<P>) -> CommandId {
        assert!(now >= self.now, "time ran backwards");
        self.now = now;
        let id = CommandId(self.next_id);
        self.next_id += 1;
        let units = self.units(&command);
        let mut asked = HostRequest::new(id, now, &command, units.unwrap_or(Units::NONE));
        asked.status = units.err().unwrap_or(Status::Success);
        self.begin(now, asked);
        self.settle(now);
        id
    }

    fn next_event(&self) -> Option<Time> {
        if let Some(first) = self.ended.front() {
            return Some(first.time);
        }
        Time::earliest([self.members.next_event(), self.upkeep.due.own])
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<P>>) {
        assert!(now >= self.now, "time ran backwards");
        while let Some(event) = self.next_event().filter(|&event| event <= now) {
            // Overdue events happen now.
            self.step(event.max(self.now), now, completions);
        }
        self.now = now;
    }

    /// While the layer has nothing to do until a command ends below, the members run on until one does.
    fn step(&mut self, now: Time, limit: Time, completions: &mut Vec<Completion<P>>) -> Time {
        if !self.ended.is_empty() {
            completions.extend(self.ended.drain(..));
            return now;
        }
        let quiet = self.upkeep.due.quiet.filter(|&until| until >= now);
        self.now = match quiet {
            Some(until) => self.members.run(now, until.min(limit)),
            None => self.members.advance(now),
        };
        let mut is_quiet = quiet.is_some();
        while let Some(ended) = self.members.take_ended() {
            self.command_ended(self.now, ended);
            is_quiet = false;
        }
        if !is_quiet {
            self.settle(self.now);
        }
        if !self.ended.is_empty() {
            completions.extend(self.ended.drain(..));
        }
        self.now
    }

    /// Nothing below knows the addresses of this device.
    fn announce(&mut self, _: Time, _: Hint) {}

    fn capacity_sectors(&self) -> u64 {
        u64::from(self.layout.chunks)
            * u64::from(self.layout.zone_blocks)
            * self.layout.unit_sectors()
    }
}
