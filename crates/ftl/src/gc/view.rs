//! A policy's view when it chooses: the blocks of one die, and the time.

use leyden_nand::{BlockId, DieId};
use leyden_sim::{Span, Time};

use super::{AgeOf, Candidate, Order, VictimIndex};

/// The blocks of a die that could be collected now. Read only.
#[derive(Clone, Copy, Debug)]
pub struct DieView<'a> {
    index: &'a VictimIndex,
    die: DieId,
    now: Time,
    ages: AgeOf,
}

impl<'a> DieView<'a> {
    /// The blocks of `die` at `now`, with this origin of their ages.
    pub fn new(index: &'a mut VictimIndex, die: DieId, now: Time, ages: AgeOf) -> Self {
        Self { index: index.settled(die), die, now, ages }
    }

    /// The time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Units of a block.
    pub const fn units_per_block(&self) -> u32 {
        self.index.units_per_block()
    }

    /// How many blocks there are to choose from.
    pub fn len(&self) -> u32 {
        self.index.len(self.die)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The block with number `n`, in no particular order: for policies that draw blocks. Constant time.
    ///
    /// # Panics
    /// If `n` is not below [`DieView::len`].
    pub fn nth(&self, n: u32) -> Candidate {
        self.index.nth(self.die, n)
    }

    /// The first block of each rank, the lowest rank first: with
    /// [`Order::Valid`] the longest unchanged block of each utilisation.
    pub fn by_rank(&self) -> impl Iterator<Item = Candidate> + 'a {
        self.index.lists().firsts(self.die)
    }

    /// The blocks of the same rank as `first` and after it in their list.
    pub fn after(&self, first: Candidate) -> impl Iterator<Item = Candidate> + 'a {
        self.index.lists().after(first)
    }

    /// The block with the fewest valid units.
    pub fn least_utilised(&self) -> Option<BlockId> {
        let first = match self.index.lists().order() {
            Order::Valid => self.by_rank().next(),
            Order::Score => self
                .by_rank()
                .flat_map(|first| std::iter::once(first).chain(self.after(first)))
                .min_by_key(|candidate| candidate.valid),
        };
        first.map(|candidate| candidate.block)
    }

    /// The origin of the oldest block's age, where the blocks of a rank are not in the order of age; nothing where they
    /// are.
    pub(super) fn oldest_of_any_rank(&self) -> Option<Time> {
        match self.ages {
            AgeOf::LastInvalidation => None,
            AgeOf::LastWrite => {
                self.first_filled().map(|block| self.index.lists().candidate(block.0).changed)
            }
        }
    }

    /// The block that was filled first.
    pub fn first_filled(&self) -> Option<BlockId> {
        self.index.first_filled(self.die)
    }

    /// How long before they come true hints are given, on average: `None` as long as none has, or for
    /// policies that do not ask.
    pub const fn lead(&self) -> Option<Span> {
        self.index.lead()
    }
}
