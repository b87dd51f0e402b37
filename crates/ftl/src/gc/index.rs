//! Blocks that could be collected, by how much of them is valid.
//!
//! Each die has a first-in first-out list for every count of valid units ([`Lists`]). A block that loses a unit
//! moves to the end of the next lower list, so each list is ordered by the time of the last change. If ages count from
//! the last write ([`AgeOf::LastWrite`](super::AgeOf)), it is not ordered by age.
//! That gives `greedy` its victim without a scan (the head of the first list that has one), and
//! `cost_benefit` its exact maximum from one block per list. For `z_greedy` the lists are those of
//! what the policy maximises instead ([`Order::Score`]), so that its victim is the first head too.
//! For policies that draw blocks at random, each die's blocks can also be had by number ([`Members`]).
//!
//! Invariants: a block is in the index exactly while it is closed and not being collected; lists of
//! [`Order::Valid`] are ordered by [`Candidate::changed`], ascending, when they are looked at, unless ages count from the
//! last write.

use leyden_nand::{BlockId, DieId, Geometry};
use leyden_sim::{Span, Time};
use serde::{Deserialize, Serialize};

use super::Order;
use super::lists::{self, Candidate, Lists};
use super::members::Members;

/// The victims-to-be of all dies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VictimIndex {
    #[serde(serialize_with = "lists::save", deserialize_with = "lists::load")]
    lists: Lists,
    /// Not in any order.
    members: Members,
    /// Units that are not valid in the blocks of each die.
    garbage: Vec<u64>,
    /// How long before they come true hints are given.
    lead: Option<Span>,
}

impl VictimIndex {
    /// An empty index.
    pub fn new(geometry: &Geometry, order: Order) -> Self {
        Self {
            lists: Lists::new(geometry, order),
            members: Members::new(geometry),
            garbage: vec![0; geometry.dies() as usize],
            lead: None,
        }
    }

    /// Units of a block.
    pub const fn units_per_block(&self) -> u32 {
        self.lists.units_per_block()
    }

    /// The lists of `die`, to look at them.
    pub(super) fn settled(&mut self, die: DieId) -> &Self {
        self.lists.settle(die);
        self
    }

    /// The lists, once those of the die wanted are [settled](Self::settled).
    pub(super) const fn lists(&self) -> &Lists {
        &self.lists
    }

    /// The block of `die` that was filled first.
    pub fn first_filled(&self, die: DieId) -> Option<BlockId> {
        self.lists.first_filled(die)
    }

    /// How many blocks of `die` could be collected.
    #[inline]
    pub fn len(&self, die: DieId) -> u32 {
        self.members.count(die)
    }

    /// The block of `die` with number `n`, in no particular order.
    ///
    /// # Panics
    /// If it has no more than `n`.
    #[inline]
    pub fn nth(&self, die: DieId, n: u32) -> Candidate {
        self.lists.candidate(self.members.nth(die, n).0)
    }

    /// Units that are not valid in the blocks of `die` that could be collected.
    pub fn garbage_units(&self, die: DieId) -> u64 {
        self.garbage[die.index()]
    }

    /// True if `block` could be collected.
    pub fn contains(&self, block: BlockId) -> bool {
        self.valid(block).is_some()
    }

    /// Valid units of `block`; `None` if it can't be collected.
    #[inline]
    pub fn valid(&self, block: BlockId) -> Option<u32> {
        self.lists.valid(block)
    }

    /// The zombies that `block` is ranked for; `None` if it can't be collected.
    pub fn zombies(&self, block: BlockId) -> Option<u32> {
        self.lists.zombies(block)
    }

    /// Adds a block that has just been filled.
    #[inline(never)]
    pub fn insert(&mut self, block: BlockId, valid: u32, zombies: u32, now: Time) {
        assert!(!self.contains(block), "{block:?} is in the index already");
        self.lists.add(block, valid, zombies, now);
        self.members.add(block);
        let die = self.lists.die_of(block).index();
        self.garbage[die] += u64::from(self.units_per_block() - valid);
    }

    /// Takes a block out, to collect it, and says how many valid units it holds. `None` if it is not
    /// in the index.
    pub fn remove(&mut self, block: BlockId) -> Option<u32> {
        let valid = self.valid(block)?;
        self.lists.remove(block);
        self.members.remove(block);
        let die = self.lists.die_of(block).index();
        self.garbage[die] -= u64::from(self.units_per_block() - valid);
        Some(valid)
    }

    /// Brings near what is kept of `block`.
    #[inline]
    pub fn expect(&self, block: BlockId) {
        self.lists.expect(block);
    }

    /// Notes that `block` has lost a valid unit; its age counts from `changed` now, if that is given. False if it is not
    /// in the index.
    #[inline(always)]
    pub fn lost_unit(&mut self, block: BlockId, changed: Option<Time>) -> bool {
        let Some(die) = self.lists.lost_unit(block, changed) else { return false };
        self.garbage[die.index()] += 1;
        true
    }

    /// Notes that `block` holds `zombies` zombies, if it is in the index. Not a change of its data: with
    /// [`Order::Valid`] it keeps its place.
    #[inline]
    pub fn set_zombies(&mut self, block: BlockId, zombies: u32) {
        self.lists.set_zombies(block, zombies);
    }

    /// How long before they come true hints are given, on average: `None` as long as none has, or for
    /// policies that do not ask.
    pub const fn lead(&self) -> Option<Span> {
        self.lead
    }

    /// Notes how long before they come true hints are given.
    #[inline]
    pub const fn set_lead(&mut self, lead: Option<Span>) {
        self.lead = lead;
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.lists.memory_bytes() + self.members.memory_bytes()
    }

    /// True if this was made for `geometry`.
    pub(crate) fn fits(&self, geometry: &Geometry) -> bool {
        self.lists.fits(geometry)
            && self.garbage.len() == geometry.dies() as usize
            && self.members.fits(geometry, |block| self.contains(block))
    }
}
