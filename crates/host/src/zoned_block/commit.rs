//! Commits: how the tables get to the members, so that a power cut at any moment leaves a whole set.
//!
//! In this order, each step when the one before has ended:
//! 1. FLUSH both members: no table may speak of data that could be lost.
//! 2. Write what has changed to the one set, FLUSH, write its superblock with FUA and the next generation. From
//!    here on the tables survive, and what waited for that ends.
//! 3. The same for the other set. From here on zones that were given up before are free.
//!
//! The tables are those of the moment at which the commit begins: a write that ends later is in the next one.
//! dm-zoned does it likewise (drivers/md/dm-zoned-metadata.c, `dmz_flush_metadata`).

use leyden_device::{Payload, Status};
use leyden_sim::Time;

use super::layout::{Layout, Member};
use super::map::{Map, Snapshot};
use super::members::{Keep, Members, Purpose};
use super::metadata::{Superblock, digest, encode_block};
use super::stored::{MetaBytes, Stored, StoredData};
use crate::Powered;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Idle,
    /// Both members are flushed.
    Data,
    /// Blocks of the tables are written to the first or second set.
    Blocks(usize),
    /// They are flushed.
    Settle(usize),
    /// The set's superblock is written.
    Super(usize),
}

/// The result of a step of a commit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Reached {
    /// Requests whose promise can be kept from now on; or, if it failed, can't.
    pub(super) requests: Vec<u32>,
    /// The commit is over.
    pub(super) is_over: bool,
}

/// The cost of commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Cost {
    pub(super) commits: u64,
    /// Blocks written, superblocks among them.
    pub(super) blocks: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Committer {
    layout: Layout,
    identity: u64,
    generation: u64,
    /// The set that is written second: the one that surely holds the newest tables.
    newest: usize,
    crcs: Vec<u32>,
    stage: Stage,
    /// Commands of this stage that are under way.
    pending: u32,
    has_failed: bool,
    snapshot: Snapshot,
    /// The blocks of the snapshot as they are written.
    encoded: Vec<(u32, MetaBytes)>,
    /// Requests that this commit is for, and those that wait for the next one.
    served: Vec<u32>,
    waiting: Vec<u32>,
    is_wanted: bool,
    cost: Cost,
}

impl Committer {
    /// For tables that no set holds yet.
    pub(super) fn new(layout: Layout, identity: u64) -> Self {
        Self {
            layout,
            identity,
            generation: 0,
            newest: 0,
            crcs: vec![0; layout.table_blocks() as usize],
            stage: Stage::Idle,
            pending: 0,
            has_failed: false,
            snapshot: Snapshot { blocks: Vec::new() },
            encoded: Vec::new(),
            served: Vec::new(),
            waiting: Vec::new(),
            is_wanted: false,
            cost: Cost::default(),
        }
    }

    /// After a recovery from set `newest`, whose blocks have `crcs`.
    pub(super) fn resume(&mut self, superblock: &Superblock, newest: usize, crcs: Vec<u32>) {
        *self = Self {
            generation: superblock.generation,
            newest,
            crcs,
            cost: self.cost,
            is_wanted: !self.waiting.is_empty(),
            waiting: std::mem::take(&mut self.waiting),
            ..Self::new(self.layout, superblock.identity)
        };
    }

    /// Forgets commits in flight and their waiters.
    pub(super) fn lose_power(&mut self) {
        *self = Self { cost: self.cost, ..Self::new(self.layout, self.identity) };
    }

    /// Requests that wait for the next commit.
    pub(super) fn take_waiting(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.waiting)
    }

    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// 0 when no commit is under way; stages of one have numbers from 1 on, in their order.
    pub(super) const fn stage(&self) -> u32 {
        match self.stage {
            Stage::Idle => 0,
            Stage::Data => 1,
            Stage::Blocks(set) => 2 + 3 * set as u32,
            Stage::Settle(set) => 3 + 3 * set as u32,
            Stage::Super(set) => 4 + 3 * set as u32,
        }
    }

    /// A commit could not be written: nothing can be promised any more.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    pub(super) fn cost(&self) -> Cost {
        self.cost
    }

    /// `request` waits for a commit that begins after now.
    pub(super) fn wait(&mut self, request: u32) {
        self.waiting.push(request);
        self.is_wanted = true;
    }

    /// Asks for a commit before long.
    pub(super) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// True if somebody needs a commit that has not begun.
    #[inline]
    pub(super) const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// True if a commit is to begin now.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_wanted && self.stage == Stage::Idle && !self.has_failed
    }

    /// Requests that wait for a commit that can't be.
    #[inline]
    pub(super) fn take_hopeless(&mut self) -> Vec<u32> {
        if self.has_failed && self.stage == Stage::Idle {
            std::mem::take(&mut self.waiting)
        } else {
            Vec::new()
        }
    }

    /// Begins a commit.
    pub(super) fn begin<P, C, Z>(
        &mut self,
        now: Time,
        map: &mut Map,
        members: &mut Members<P, C, Z>,
    ) where
        P: Payload,
        C: Powered<Stored<P>>,
        Z: Powered<Stored<P>>,
    {
        self.is_wanted = false;
        self.served = std::mem::take(&mut self.waiting);
        self.snapshot = map.snapshot();
        self.encoded.clear();
        for (number, words) in &self.snapshot.blocks {
            let (bytes, crc) = encode_block(&self.layout, *number, words);
            self.crcs[*number as usize] = crc;
            self.encoded.push((*number, bytes.into()));
        }
        self.stage = Stage::Data;
        self.pending = 2;
        members.flush(now, Member::Conventional, Purpose::Commit);
        members.flush(now, Member::Zoned, Purpose::Commit);
    }

    /// A command of the commit has ended.
    pub(super) fn ended<P, C, Z>(
        &mut self,
        now: Time,
        status: Status,
        map: &mut Map,
        members: &mut Members<P, C, Z>,
    ) -> Reached
    where
        P: Payload,
        C: Powered<Stored<P>>,
        Z: Powered<Stored<P>>,
    {
        self.pending -= 1;
        self.has_failed |= status != Status::Success;
        if self.pending > 0 {
            return Reached::default();
        }
        if self.has_failed {
            map.not_committed(&self.snapshot);
            return self.over();
        }
        match self.stage {
            Stage::Idle => unreachable!("no commit is under way"),
            Stage::Data if self.encoded.is_empty() => self.over(),
            Stage::Data => {
                self.generation += 1;
                self.cost.commits += 1;
                self.write_blocks(now, 0, members);
                Reached::default()
            }
            Stage::Blocks(turn) => {
                self.stage = Stage::Settle(turn);
                self.pending = 1;
                members.flush(now, Member::Conventional, Purpose::Commit);
                Reached::default()
            }
            Stage::Settle(turn) => {
                self.write_superblock(now, turn, members);
                Reached::default()
            }
            Stage::Super(0) => {
                map.committed(&self.snapshot);
                self.write_blocks(now, 1, members);
                Reached { requests: std::mem::take(&mut self.served), is_over: false }
            }
            Stage::Super(_) => self.over(),
        }
    }

    fn over(&mut self) -> Reached {
        self.stage = Stage::Idle;
        self.encoded.clear();
        Reached { requests: std::mem::take(&mut self.served), is_over: true }
    }

    /// The set that is written first or second: a set is only touched while the other one is whole and newer, or
    /// as new.
    fn set(&self, turn: usize) -> usize {
        (self.newest + 1 + turn) % 2
    }

    fn write_blocks<P, C, Z>(&mut self, now: Time, turn: usize, members: &mut Members<P, C, Z>)
    where
        P: Payload,
        C: Powered<Stored<P>>,
        Z: Powered<Stored<P>>,
    {
        self.stage = Stage::Blocks(turn);
        let set = self.set(turn);
        for (number, bytes) in &self.encoded {
            let place = self.layout.meta_place(set, 1 + number);
            let data = StoredData::Units([Stored::Meta(bytes.clone())].into());
            members.write(now, place, data, Keep::Later, Purpose::Commit);
            self.pending += 1;
        }
        self.cost.blocks += u64::from(self.pending);
    }

    fn write_superblock<P, C, Z>(&mut self, now: Time, turn: usize, members: &mut Members<P, C, Z>)
    where
        P: Payload,
        C: Powered<Stored<P>>,
        Z: Powered<Stored<P>>,
    {
        let set = self.set(turn);
        let superblock = Superblock {
            role: set as u32,
            generation: self.generation,
            identity: self.identity,
            digest: digest(&self.crcs),
        };
        let bytes = Stored::Meta(superblock.encode(&self.layout).into());
        let place = self.layout.meta_place(set, 0);
        members.write(now, place, StoredData::Units([bytes].into()), Keep::Fua, Purpose::Commit);
        (self.stage, self.pending) = (Stage::Super(turn), 1);
        self.cost.blocks += 1;
    }
}
