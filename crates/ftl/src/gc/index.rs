//! Blocks that could be collected, by how much of them is valid.
//!
//! Each die has a first-in first-out list for every count of valid units. A block that loses a unit
//! moves to the end of the next lower list, so each list is ordered by the time of the last change.
//! That gives `greedy` its victim without a scan (the head of the first list that has one), and
//! `cost_benefit` its exact maximum from one block per list. For `z_greedy` the lists are those of
//! what the policy maximises instead ([`Order::Score`]), so that its victim is the first head too.
//! For policies that draw blocks at random, each die's blocks can also be had by number ([`Members`]).
//!
//! Invariants: a block is in the index exactly while it is closed and not being collected; it is in
//! the list of its rank; lists of [`Order::Valid`] are ordered by `changed`, ascending.

use leyden_nand::{BlockId, DieId, Geometry};
use leyden_sim::{Divisor, Span, Time, prefetch};
use serde::{Deserialize, Serialize};

use super::members::Members;

/// No block: the end of a list.
const NONE: u32 = u32::MAX;
/// The list of a block that is in none.
const ABSENT: u32 = u32::MAX;

/// A block that could be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub block: BlockId,
    /// How many of its units are valid.
    pub valid: u32,
    /// How many of those are zombies.
    pub zombies: u32,
    /// When one of its units was last invalidated, or when it was filled.
    pub changed: Time,
}

/// What blocks are ranked by: a lower rank is collected sooner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Order {
    /// Valid units.
    #[default]
    Valid,
    /// How much less than all of a block's units equation 2 of Zombie Chasing gives, in halves.
    Score,
}

impl Order {
    /// Ranks of a block of `units` units.
    const fn ranks(self, units: u32) -> u32 {
        match self {
            Self::Valid => units + 1,
            Self::Score => 2 * units + 1,
        }
    }

    #[inline]
    fn rank(self, units: u32, valid: u32, zombies: u32) -> u32 {
        match self {
            Self::Valid => valid,
            Self::Score => 2 * units - score_in_halves(units - valid, zombies),
        }
    }
}

/// Twice the benefit of collecting a block with `invalid` units, when `zombies` of the others will be
/// dead soon: i - min(z, i / 2) (Zombie Chasing, equation 2).
#[inline]
pub fn score_in_halves(invalid: u32, zombies: u32) -> u32 {
    2 * invalid - invalid.min(2 * zombies)
}

/// One block's places: in the list of its utilisation and in the order of filling.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(32))] // in one cache line each
struct Node {
    next: u32,
    previous: u32,
    valid: u32,
    zombies: u32,
    next_filled: u32,
    previous_filled: u32,
    changed: Time,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ends {
    first: u32,
    last: u32,
}

const EMPTY: Ends = Ends { first: NONE, last: NONE };

/// The victims-to-be of all dies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VictimIndex {
    order: Order,
    units_per_block: u32,
    blocks_per_die: Divisor,
    nodes: Vec<Node>,
    /// A list for each rank, per die.
    lists: Vec<Ends>,
    /// One bit per list that is not empty, `words_per_die` words a die.
    occupied: Vec<u64>,
    words_per_die: u32,
    /// In the order of filling, per die.
    filled: Vec<Ends>,
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
        let node = Node {
            next: NONE,
            previous: NONE,
            valid: ABSENT,
            zombies: 0,
            next_filled: NONE,
            previous_filled: NONE,
            changed: Time::ZERO,
        };
        let (dies, lists_per_die) = (geometry.dies(), order.ranks(geometry.units_per_block()));
        let words_per_die = lists_per_die.div_ceil(64);
        Self {
            order,
            units_per_block: geometry.units_per_block(),
            blocks_per_die: Divisor::new(geometry.blocks_per_die()),
            nodes: vec![node; geometry.blocks() as usize],
            lists: vec![EMPTY; (dies * lists_per_die) as usize],
            occupied: vec![0; (dies * words_per_die) as usize],
            words_per_die,
            filled: vec![EMPTY; dies as usize],
            members: Members::new(geometry),
            garbage: vec![0; dies as usize],
            lead: None,
        }
    }

    /// Units of a block.
    pub const fn units_per_block(&self) -> u32 {
        self.units_per_block
    }

    /// The first block of each rank that `die` has, the lowest rank first: with [`Order::Valid`] the
    /// longest unchanged block of each utilisation.
    pub fn candidates(&self, die: DieId) -> impl Iterator<Item = Candidate> + '_ {
        let words = self.words_per_die as usize;
        let occupied = &self.occupied[die.index() * words..][..words];
        occupied.iter().enumerate().flat_map(move |(i, &word)| {
            Bits(word).map(move |bit| {
                let rank = i as u32 * 64 + bit;
                self.candidate(self.lists[self.list(die.0, rank)].first)
            })
        })
    }

    /// The blocks of the same rank as `first` and after it in their list: with [`Order::Valid`] those
    /// of its utilisation that changed later.
    pub fn after(&self, first: Candidate) -> impl Iterator<Item = Candidate> + '_ {
        let next = |&block: &u32| Some(self.nodes[block as usize].next).filter(|&n| n != NONE);
        std::iter::successors(next(&first.block.0), next).map(|block| self.candidate(block))
    }

    /// The block of `die` with the fewest valid units.
    pub fn least_utilised(&self, die: DieId) -> Option<BlockId> {
        let first = match self.order {
            Order::Valid => self.candidates(die).next(),
            Order::Score => self
                .candidates(die)
                .flat_map(|first| std::iter::once(first).chain(self.after(first)))
                .min_by_key(|candidate| candidate.valid),
        };
        first.map(|candidate| candidate.block)
    }

    #[inline]
    fn candidate(&self, block: u32) -> Candidate {
        let Node { valid, zombies, changed, .. } = self.nodes[block as usize];
        Candidate { block: BlockId(block), valid, zombies, changed }
    }

    /// The block of `die` that was filled first.
    pub fn first_filled(&self, die: DieId) -> Option<BlockId> {
        let first = self.filled[die.index()].first;
        (first != NONE).then_some(BlockId(first))
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
        self.candidate(self.members.nth(die, n).0)
    }

    /// Units that are not valid in the blocks of `die` that could be collected.
    pub fn garbage_units(&self, die: DieId) -> u64 {
        self.garbage[die.index()]
    }

    /// True if `block` could be collected.
    pub fn contains(&self, block: BlockId) -> bool {
        self.nodes[block.index()].valid != ABSENT
    }

    /// Valid units of `block`; `None` if it can't be collected.
    #[inline]
    pub fn valid(&self, block: BlockId) -> Option<u32> {
        let valid = self.nodes[block.index()].valid;
        (valid != ABSENT).then_some(valid)
    }

    /// The zombies that `block` is ranked for; `None` if it can't be collected.
    pub fn zombies(&self, block: BlockId) -> Option<u32> {
        let Node { valid, zombies, .. } = self.nodes[block.index()];
        (valid != ABSENT).then_some(zombies)
    }

    /// Adds a block that has just been filled.
    pub fn insert(&mut self, block: BlockId, valid: u32, zombies: u32, now: Time) {
        assert!(!self.contains(block), "{block:?} is in the index already");
        let node = &mut self.nodes[block.index()];
        (node.valid, node.zombies, node.changed) = (valid, zombies, now);
        let die = self.blocks_per_die.divide(block.0);
        self.link(die, block.0);

        let die = die as usize;
        self.garbage[die] += u64::from(self.units_per_block - valid);
        self.members.add(block);
        let last = self.filled[die].last;
        self.nodes[block.index()].previous_filled = last;
        self.nodes[block.index()].next_filled = NONE;
        if last == NONE {
            self.filled[die].first = block.0;
        } else {
            self.nodes[last as usize].next_filled = block.0;
        }
        self.filled[die].last = block.0;
    }

    /// Takes a block out, to collect it, and says how many valid units it holds. `None` if it is not
    /// in the index.
    pub fn remove(&mut self, block: BlockId) -> Option<u32> {
        let valid = self.valid(block)?;
        let Node { next_filled, previous_filled, .. } = self.nodes[block.index()];
        let die = self.blocks_per_die.divide(block.0);
        self.unlink(die, block.0);
        let die = die as usize;
        self.garbage[die] -= u64::from(self.units_per_block - valid);
        self.members.remove(block);
        self.nodes[block.index()].valid = ABSENT;
        if previous_filled == NONE {
            self.filled[die].first = next_filled;
        } else {
            self.nodes[previous_filled as usize].next_filled = next_filled;
        }
        if next_filled == NONE {
            self.filled[die].last = previous_filled;
        } else {
            self.nodes[next_filled as usize].previous_filled = previous_filled;
        }
        Some(valid)
    }

    /// Brings near the lists that change when `block`, which is near, loses a unit.
    #[inline]
    pub fn expect_lists(&self, block: BlockId) {
        let node = &self.nodes[block.index()];
        if node.valid != ABSENT {
            let (_, list, _) = self.place(self.blocks_per_die.divide(block.0), node);
            // The next lower one is beside it.
            prefetch(&self.lists, list.saturating_sub(1));
        }
    }

    /// Brings near what is kept of `block`.
    #[inline]
    pub fn expect(&self, block: BlockId) {
        prefetch(&self.nodes, block.index());
    }

    /// Notes that `block` has lost a valid unit. False if it is not in the index.
    #[inline]
    pub fn lost_unit(&mut self, block: BlockId, now: Time) -> bool {
        let valid = self.nodes[block.index()].valid;
        if valid == ABSENT {
            return false;
        }
        let die = self.blocks_per_die.divide(block.0);
        self.garbage[die as usize] += 1;
        self.unlink(die, block.0);
        let node = &mut self.nodes[block.index()];
        (node.valid, node.changed) = (valid - 1, now);
        self.link(die, block.0);
        true
    }

    /// Notes that `block` holds `zombies` zombies, if it is in the index. Not a change of its data: with
    /// [`Order::Valid`] it keeps its place.
    #[inline]
    pub fn set_zombies(&mut self, block: BlockId, zombies: u32) {
        let node = &mut self.nodes[block.index()];
        if node.valid == ABSENT {
            return;
        }
        if self.order == Order::Valid {
            node.zombies = zombies;
            return;
        }
        let die = self.blocks_per_die.divide(block.0);
        self.unlink(die, block.0);
        self.nodes[block.index()].zombies = zombies;
        self.link(die, block.0);
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
        let ranked = size_of_val(self.nodes.as_slice()) + size_of_val(self.lists.as_slice());
        ranked as u64 + self.members.memory_bytes()
    }

    /// True if this was made for `geometry`.
    pub(crate) fn fits(&self, geometry: &Geometry) -> bool {
        let empty = Self::new(geometry, self.order);
        self.units_per_block == empty.units_per_block
            && self.blocks_per_die == empty.blocks_per_die
            && self.nodes.len() == empty.nodes.len()
            && self.lists.len() == empty.lists.len()
            && self.occupied.len() == empty.occupied.len()
            && self.filled.len() == empty.filled.len()
            && self.garbage.len() == empty.garbage.len()
            && self.members.fits(geometry, |block| self.contains(block))
    }

    /// The rank of a block, and its list and the word of its bit among those of `die`.
    #[inline]
    fn place(&self, die: u32, node: &Node) -> (u32, usize, usize) {
        let rank = self.order.rank(self.units_per_block, node.valid, node.zombies);
        (rank, self.list(die, rank), (die * self.words_per_die + rank / 64) as usize)
    }

    #[inline]
    const fn list(&self, die: u32, rank: u32) -> usize {
        (die * self.order.ranks(self.units_per_block) + rank) as usize
    }

    /// Appends `block`, which is one of `die`'s, to the list of its rank.
    #[inline]
    fn link(&mut self, die: u32, block: u32) {
        let (rank, list, word) = self.place(die, &self.nodes[block as usize]);
        let ends = &mut self.lists[list];
        let last = std::mem::replace(&mut ends.last, block);
        if last == NONE {
            ends.first = block;
            self.occupied[word] |= 1 << (rank % 64);
        } else {
            self.nodes[last as usize].next = block;
        }
        let node = &mut self.nodes[block as usize];
        (node.previous, node.next) = (last, NONE);
    }

    /// Takes `block`, which is one of `die`'s, out of its list.
    #[inline]
    fn unlink(&mut self, die: u32, block: u32) {
        let node = self.nodes[block as usize];
        let (rank, list, word) = self.place(die, &node);
        let ends = &mut self.lists[list];
        if node.previous == NONE {
            ends.first = node.next;
            if node.next == NONE {
                self.occupied[word] &= !(1 << (rank % 64));
            }
        } else {
            self.nodes[node.previous as usize].next = node.next;
        }
        if node.next == NONE {
            ends.last = node.previous;
        } else {
            self.nodes[node.next as usize].previous = node.previous;
        }
    }
}

/// The positions of the bits that are set, ascending.
struct Bits(u64);

impl Iterator for Bits {
    type Item = u32;
    #[inline]
    fn next(&mut self) -> Option<u32> {
        (self.0 != 0).then(|| {
            let bit = self.0.trailing_zeros();
            self.0 &= self.0 - 1;
            bit
        })
    }
}
