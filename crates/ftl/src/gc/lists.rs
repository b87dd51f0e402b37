//! The lists of the blocks of each rank, and the order in which blocks were filled.
//!
//! A block loses hundreds of units between two collections of its die, and nobody looks at the lists in
//! between. So a change is only noted, and blocks move when their die's lists are looked at ([`Lists::settle`]):
//! each once, in the order of its last change, which leaves the lists as if it had moved with every change.
//!
//! **Invariants**: a block of the index is in the list of [`Lists::ranks`], or in none yet; that is its rank unless a
//! change is noted. What is saved is settled.

use leyden_nand::{BlockId, DieId, Geometry};
use leyden_sim::{BitSet, Divisor, Time, prefetch};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::order::Order;

/// No block: the end of a list.
const NONE: u32 = u32::MAX;
/// The valid units of a block that is not in the index; the rank of one that is in no list.
const ABSENT: u32 = u32::MAX;
/// How many changes of each die are noted before its blocks move: about as many as there are between two of
/// its collections.
const NOTED: u32 = if cfg!(test) { 5 } else { 512 };

/// A block that could be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub block: BlockId,
    /// How many of its units are valid.
    pub valid: u32,
    /// How many of those are zombies.
    pub zombies: u32,
    /// The origin of its age ([`AgeOf`](super::AgeOf)).
    pub changed: Time,
}

/// One block's places: in the list of its rank and in the order of filling.
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

/// The blocks of all dies by rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Lists {
    order: Order,
    units_per_block: u32,
    blocks_per_die: Divisor,
    nodes: Vec<Node>,
    /// A list for each rank, per die.
    by_rank: Vec<Ends>,
    /// One bit per list that is not empty, `words_per_die` words a die.
    occupied: Vec<u64>,
    words_per_die: u32,
    /// In the order of filling, per die.
    filled: Vec<Ends>,
    /// The rank of the list that each block is in.
    #[serde(skip)]
    ranks: Vec<u32>,
    /// Blocks that have changed, [`NOTED`] places a die, in the order of the changes.
    #[serde(skip)]
    noted: Vec<u32>,
    /// How many of those places are in use, by die.
    #[serde(skip)]
    noted_counts: Vec<u32>,
    /// Of no meaning but while blocks move.
    #[serde(skip)]
    seen: BitSet,
}

impl Lists {
    pub(super) fn new(geometry: &Geometry, order: Order) -> Self {
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
        let mut lists = Self {
            order,
            units_per_block: geometry.units_per_block(),
            blocks_per_die: Divisor::new(geometry.blocks_per_die()),
            nodes: vec![node; geometry.blocks() as usize],
            by_rank: vec![EMPTY; (dies * lists_per_die) as usize],
            occupied: vec![0; (dies * words_per_die) as usize],
            words_per_die,
            filled: vec![EMPTY; dies as usize],
            ranks: Vec::new(),
            noted: Vec::new(),
            noted_counts: Vec::new(),
            seen: BitSet::default(),
        };
        lists.resume();
        lists
    }

    /// Makes what is not saved: each block is in the list of its rank. Whether what was loaded [fits](Self::fits) is
    /// asked later.
    fn resume(&mut self) {
        let blocks = self.nodes.len() as u32;
        let dies = self.blocks_per_die.divide(blocks) as usize;
        let (order, units) = (self.order, self.units_per_block);
        let is_sound = |node: &Node| {
            node.valid <= units && node.zombies <= units && units.checked_mul(2).is_some()
        };
        let rank = |node: &Node| order.rank(units, node.valid, node.zombies);
        let ranks = self.nodes.iter().map(|node| if is_sound(node) { rank(node) } else { ABSENT });
        self.ranks = ranks.collect();
        self.noted = vec![0; dies * NOTED as usize];
        self.noted_counts = vec![0; dies];
        self.seen = BitSet::new(blocks);
    }

    pub(super) const fn order(&self) -> Order {
        self.order
    }

    pub(super) const fn units_per_block(&self) -> u32 {
        self.units_per_block
    }

    #[inline]
    pub(super) const fn die_of(&self, block: BlockId) -> DieId {
        DieId(self.blocks_per_die.divide(block.0))
    }

    #[inline]
    pub(super) fn candidate(&self, block: u32) -> Candidate {
        let Node { valid, zombies, changed, .. } = self.nodes[block as usize];
        Candidate { block: BlockId(block), valid, zombies, changed }
    }

    /// Valid units of `block`; `None` if it is not in the index.
    #[inline]
    pub(super) fn valid(&self, block: BlockId) -> Option<u32> {
        let valid = self.nodes[block.index()].valid;
        (valid != ABSENT).then_some(valid)
    }

    /// Zombies of `block`; `None` if it is not in the index.
    pub(super) fn zombies(&self, block: BlockId) -> Option<u32> {
        let Node { valid, zombies, .. } = self.nodes[block.index()];
        (valid != ABSENT).then_some(zombies)
    }

    /// The block of `die` that was filled first.
    pub(super) fn first_filled(&self, die: DieId) -> Option<BlockId> {
        let first = self.filled[die.index()].first;
        (first != NONE).then_some(BlockId(first))
    }

    /// Adds a block that is in no list, and has just been filled.
    pub(super) fn add(&mut self, block: BlockId, valid: u32, zombies: u32, now: Time) {
        let die = self.die_of(block);
        let last = std::mem::replace(&mut self.filled[die.index()].last, block.0);
        if last == NONE {
            self.filled[die.index()].first = block.0;
        } else {
            self.nodes[last as usize].next_filled = block.0;
        }
        let node = &mut self.nodes[block.index()];
        (node.previous_filled, node.next_filled) = (last, NONE);
        (node.valid, node.zombies, node.changed) = (valid, zombies, now);
        self.note(die, block);
    }

    /// Takes out a block that has been added.
    pub(super) fn remove(&mut self, block: BlockId) {
        let die = self.die_of(block);
        self.settle(die);
        self.unlink(die.0, block.0);
        let node = &mut self.nodes[block.index()];
        node.valid = ABSENT;
        let (previous, next) = (node.previous_filled, node.next_filled);
        if previous == NONE {
            self.filled[die.index()].first = next;
        } else {
            self.nodes[previous as usize].next_filled = next;
        }
        if next == NONE {
            self.filled[die.index()].last = previous;
        } else {
            self.nodes[next as usize].previous_filled = previous;
        }
    }

    /// Brings near what is kept of `block`.
    #[inline]
    pub(super) fn expect(&self, block: BlockId) {
        prefetch(&self.nodes, block.index());
    }

    /// `block` has lost a valid unit; its age counts from `changed` now, if that is given. Says on which die it lies; `None`
    /// if it is not in the index.
    #[inline]
    pub(super) fn lost_unit(&mut self, block: BlockId, changed: Option<Time>) -> Option<DieId> {
        let node = &mut self.nodes[block.index()];
        if node.valid == ABSENT {
            return None;
        }
        node.valid -= 1;
        node.changed = changed.unwrap_or(node.changed);
        let die = self.die_of(block);
        self.note(die, block);
        Some(die)
    }

    /// `block` holds so many zombies, if it is in the index. Not a change of its data: with [`Order::Valid`] it
    /// keeps its place.
    #[inline]
    pub(super) fn set_zombies(&mut self, block: BlockId, zombies: u32) {
        let node = &mut self.nodes[block.index()];
        if node.valid == ABSENT {
            return;
        }
        node.zombies = zombies;
        if self.order == Order::Score {
            self.note(self.die_of(block), block);
        }
    }

    /// Notes that `block`, which lies on `die`, is to move to the end of the list of its rank.
    #[inline]
    fn note(&mut self, die: DieId, block: BlockId) {
        if self.noted_counts[die.index()] == NOTED {
            self.settle(die);
        }
        let count = &mut self.noted_counts[die.index()];
        self.noted[(die.0 * NOTED + *count) as usize] = block.0;
        *count += 1;
    }

    /// Moves the blocks of `die` to where they belong.
    #[inline(never)]
    pub(super) fn settle(&mut self, die: DieId) {
        let count = std::mem::take(&mut self.noted_counts[die.index()]);
        let places = (die.0 * NOTED) as usize..(die.0 * NOTED + count) as usize;
        // Only the last change of a block counts: from behind, it is the first one seen.
        let mut kept = places.end;
        for at in places.clone().rev() {
            let block = self.noted[at];
            if self.seen.insert(block) {
                kept -= 1;
                self.noted[kept] = block;
            }
        }
        for at in kept..places.end {
            let block = self.noted[at];
            self.seen.remove(block);
            if self.ranks[block as usize] != ABSENT {
                self.unlink(die.0, block);
            }
            self.link(die.0, block);
        }
    }

    /// The first block of each rank that `die` has, the lowest rank first.
    pub(super) fn firsts(&self, die: DieId) -> impl Iterator<Item = Candidate> + '_ {
        debug_assert_eq!(self.noted_counts[die.index()], 0, "{die:?} has blocks that are to move");
        let words = self.words_per_die as usize;
        let occupied = &self.occupied[die.index() * words..][..words];
        occupied.iter().enumerate().flat_map(move |(i, &word)| {
            Bits(word).map(move |bit| {
                let rank = i as u32 * 64 + bit;
                self.candidate(self.by_rank[self.list(die.0, rank)].first)
            })
        })
    }

    /// The blocks of the same rank as `first` and after it in their list.
    pub(super) fn after(&self, first: Candidate) -> impl Iterator<Item = Candidate> + '_ {
        let next = |&block: &u32| Some(self.nodes[block as usize].next).filter(|&n| n != NONE);
        std::iter::successors(next(&first.block.0), next).map(|block| self.candidate(block))
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let places = size_of_val(self.nodes.as_slice()) + size_of_val(self.by_rank.as_slice());
        let moves = size_of_val(self.ranks.as_slice()) + size_of_val(self.noted.as_slice());
        (places + moves) as u64 + self.seen.memory_bytes()
    }

    /// True if this was made for `geometry`.
    pub(super) fn fits(&self, geometry: &Geometry) -> bool {
        let empty = Self::new(geometry, self.order);
        self.units_per_block == empty.units_per_block
            && self.blocks_per_die == empty.blocks_per_die
            && self.nodes.len() == empty.nodes.len()
            && self.by_rank.len() == empty.by_rank.len()
            && self.words_per_die == empty.words_per_die
            && self.occupied.len() == empty.occupied.len()
            && self.filled.len() == empty.filled.len()
    }

    #[inline]
    const fn list(&self, die: u32, rank: u32) -> usize {
        (die * self.order.ranks(self.units_per_block) + rank) as usize
    }

    /// The word of `occupied` that has the bit of `rank`.
    #[inline]
    const fn word(&self, die: u32, rank: u32) -> usize {
        (die * self.words_per_die + rank / 64) as usize
    }

    /// Appends `block`, which is one of `die`'s, to the list of its rank.
    #[inline]
    fn link(&mut self, die: u32, block: u32) {
        let Node { valid, zombies, .. } = self.nodes[block as usize];
        let rank = self.order.rank(self.units_per_block, valid, zombies);
        let (list, word) = (self.list(die, rank), self.word(die, rank));
        let ends = &mut self.by_rank[list];
        let last = std::mem::replace(&mut ends.last, block);
        if last == NONE {
            ends.first = block;
            self.occupied[word] |= 1 << (rank % 64);
        } else {
            self.nodes[last as usize].next = block;
        }
        let node = &mut self.nodes[block as usize];
        (node.previous, node.next) = (last, NONE);
        self.ranks[block as usize] = rank;
    }

    /// Takes `block`, which is one of `die`'s, out of its list.
    #[inline]
    fn unlink(&mut self, die: u32, block: u32) {
        let Node { previous, next, .. } = self.nodes[block as usize];
        let rank = std::mem::replace(&mut self.ranks[block as usize], ABSENT);
        let (list, word) = (self.list(die, rank), self.word(die, rank));
        let ends = &mut self.by_rank[list];
        if previous == NONE {
            ends.first = next;
            if next == NONE {
                self.occupied[word] &= !(1 << (rank % 64));
            }
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next == NONE {
            ends.last = previous;
        } else {
            self.nodes[next as usize].previous = previous;
        }
    }
}

/// Saves the lists with every block where it belongs: their state at rest does not tell when they were looked at last.
pub(super) fn save<S: Serializer>(lists: &Lists, serializer: S) -> Result<S::Ok, S::Error> {
    let mut settled = lists.clone();
    (0..settled.noted_counts.len() as u32).for_each(|die| settled.settle(DieId(die)));
    settled.serialize(serializer)
}

/// Loads what [`save`] has saved.
pub(super) fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Lists, D::Error> {
    let mut lists = Lists::deserialize(deserializer)?;
    lists.resume();
    Ok(lists)
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
