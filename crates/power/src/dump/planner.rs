//! The dump itself: which page goes to which die at which time, until all is done or the budget is
//! spent.
//!
//! Pages are added in the order of their importance. Of the dies that have something to do, the one
//! that is free first goes next, so starts are found in the order in which the hardware would make
//! them, and a channel is asked for in the order of `free_at`: first come, first served, as in
//! normal operation.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use leyden_nand::DieId;
use leyden_sim::Span;

use super::Failures;
use crate::{Budget, Costs, DumpConfig};

/// A die at the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieLoad {
    /// When it is free, since the cut: its program in flight has ended, or its erase is broken off.
    pub free_at: Span,
    /// Pages that a dump can put on it.
    pub room: u32,
}

/// A page of the dump on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The page, as it was added.
    pub page: u32,
    /// The die that it goes to.
    pub die: DieId,
    /// When its transfer begins, since the cut.
    pub start: Span,
    /// When its program ends.
    pub end: Span,
    /// It fails: what it holds cannot be read, and the page is programmed again.
    pub failed: bool,
}

/// The next step of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It programs a page.
    Program(Program),
    /// It stops: the budget does not reach for the page that would be next.
    Spent,
    /// Every page that was added is programmed, unless programs have failed and no die has room for it.
    Done,
}

/// A dump under way.
///
/// ```
/// use leyden_nand::DieId;
/// use leyden_power::{Budget, Config, Costs, DieLoad, Dump, Step};
/// use leyden_sim::{Bytes, Energy, Span};
/// let (config, nand) = (Config::default(), leyden_nand::Config::default());
/// let costs = Costs::new(&config, &nand, nand.geometry(Bytes::new(4096)).unwrap());
/// let idle = vec![DieLoad { free_at: Span::ZERO, room: 10 }; 64];
/// let mut dump = Dump::new(&config.dump, costs, idle, vec![Span::ZERO; 8]);
/// let mut budget = Budget::new(Energy::from_uj(10_000), config.base_power);
/// assert!(dump.add(7, DieId(3)));
/// let Step::Program(program) = dump.next(&mut budget) else { panic!() };
/// assert_eq!((program.page, program.end), (7, costs.dump_time()));
/// assert_eq!(dump.next(&mut budget), Step::Done);
/// ```
#[derive(Clone, Debug)]
pub struct Dump {
    costs: Costs,
    in_place: bool,
    failures: Failures,
    dies: Vec<Die>,
    /// When each channel is free.
    channels: Vec<Span>,
    /// Pages that any die may take.
    shared: VecDeque<u32>,
    /// Dies that may have something to do, by when they are free.
    ready: BinaryHeap<Reverse<(Span, u32)>>,
    /// Dies that had nothing to do when their turn came, and are not in `ready`.
    idle: Vec<u32>,
    /// Pages whose programs have failed, and that no die has room for.
    unplaced: Vec<u32>,
    /// Pages that can still be added.
    room: u64,
    /// For each die, one that is nearer to the next die with room; itself if it has room.
    next_with_room: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Die {
    free_at: Span,
    /// Pages that it can take beside its own.
    room: u32,
    /// Pages that only this die may take, and since when it may.
    own: VecDeque<(u32, Span)>,
    is_idle: bool,
}

impl Dump {
    /// A dump without pages on dies and channels as they are at the cut.
    ///
    /// # Panics
    /// If there are not as many of them as the geometry says.
    pub fn new(
        policy: &DumpConfig,
        costs: Costs,
        dies: impl IntoIterator<Item = DieLoad>,
        channels: impl IntoIterator<Item = Span>,
    ) -> Self {
        let dies: Vec<Die> = dies
            .into_iter()
            .map(|DieLoad { free_at, room }| Die {
                free_at,
                room,
                own: VecDeque::new(),
                is_idle: false,
            })
            .collect();
        let channels: Vec<Span> = channels.into_iter().collect();
        assert_eq!(dies.len(), costs.geometry.dies() as usize, "a load for each die");
        assert_eq!(channels.len(), costs.geometry.channels() as usize, "a time for each channel");
        let all = 0..dies.len() as u32;
        let next_with_room = |die: u32| {
            let next = if die + 1 == dies.len() as u32 { 0 } else { die + 1 };
            if dies[die as usize].room > 0 { die } else { next }
        };
        Self {
            costs,
            in_place: policy.is_in_place(),
            failures: Failures::none(),
            channels,
            shared: VecDeque::new(),
            ready: all.clone().map(|die| Reverse((dies[die as usize].free_at, die))).collect(),
            idle: Vec::new(),
            unplaced: Vec::new(),
            room: dies.iter().map(|die| u64::from(die.room)).sum(),
            next_with_room: all.map(next_with_room).collect(),
            dies,
        }
    }

    /// The same dump, in which programs fail.
    #[must_use]
    pub fn with_failures(self, failures: Failures) -> Self {
        Self { failures, ..self }
    }

    /// Adds `page`, whose address names `home`, behind all others; false if no die has room for it.
    #[must_use]
    pub fn add(&mut self, page: u32, home: DieId) -> bool {
        if self.room == 0 {
            return false;
        }
        if self.in_place {
            let die = self.next_with_room(home);
            self.give(page, die, Span::ZERO);
        } else {
            self.room -= 1;
            self.shared.push_back(page);
            while let Some(die) = self.idle.pop() {
                self.make_ready(die);
            }
        }
        true
    }

    /// Programs the next page, if `budget` reaches for it. Once it does not, nothing more is
    /// programmed.
    pub fn next(&mut self, budget: &mut Budget) -> Step {
        let Some((id, is_own)) = self.next_die() else {
            return Step::Done;
        };
        let die = &self.dies[id as usize];
        let channel = self.costs.geometry.channel_of(DieId(id));
        let start = die.free_at.max(self.channels[channel.index()]);
        let end = start + self.costs.dump_time();
        if !budget.commit(end, self.costs.dump_energy) {
            return Step::Spent;
        }
        self.ready.pop();
        let die = &mut self.dies[id as usize];
        let page = if is_own {
            die.own.pop_front().map(|(page, _)| page)
        } else {
            take_room(die, id, &mut self.next_with_room);
            self.shared.pop_front()
        };
        let page = page.expect("a die that has something to do");
        die.free_at = end;
        self.channels[channel.index()] = start + self.costs.transfer;
        self.ready.push(Reverse((end, id)));
        let failed = self.failures.next();
        if failed {
            self.again(page, DieId(id), end);
        }
        Step::Program(Program { page, die: DieId(id), start, end, failed })
    }

    /// The program of `page` on `id` has failed at `since`: the die goes on with it, or, if it has no room, the
    /// next die that has. If none has, the page is left.
    fn again(&mut self, page: u32, id: DieId, since: Span) {
        let die = &mut self.dies[id.index()];
        if die.room > 0 {
            take_room(die, id.0, &mut self.next_with_room);
            self.room = self.room.saturating_sub(1);
            die.own.push_front((page, since));
        } else if self.dies.iter().any(|die| die.room > 0) {
            let next = self.next_with_room(id);
            self.give(page, next, since);
        } else {
            self.unplaced.push(page);
        }
    }

    /// The pages that were added and are not programmed: what is lost if budget or room are spent.
    pub fn left(&self) -> impl Iterator<Item = u32> {
        let own = self.dies.iter().flat_map(|die| &die.own).map(|(page, _)| page);
        own.chain(&self.shared).chain(&self.unplaced).copied()
    }

    /// The die that goes next, and whether with a page of its own: it stays at the head of `ready`.
    fn next_die(&mut self) -> Option<(u32, bool)> {
        while let Some(&Reverse((free_at, id))) = self.ready.peek() {
            let die = &mut self.dies[id as usize];
            let since = die.own.front().map(|&(_, since)| since);
            if since.is_some_and(|since| since <= free_at) {
                return Some((id, true));
            }
            if die.room > 0 && !self.shared.is_empty() {
                return Some((id, false));
            }
            self.ready.pop();
            if let Some(since) = since {
                // Its next page has not failed elsewhere yet.
                die.free_at = since;
                self.ready.push(Reverse((since, id)));
            } else {
                die.is_idle = true;
                self.idle.push(id);
            }
        }
        None
    }

    /// Gives `page` to `die`, which has room, as one of its own.
    fn give(&mut self, page: u32, id: DieId, since: Span) {
        let die = &mut self.dies[id.index()];
        take_room(die, id.0, &mut self.next_with_room);
        die.own.push_back((page, since));
        self.room = self.room.saturating_sub(1);
        if die.is_idle {
            let at = self.idle.iter().position(|&idle| idle == id.0).expect("an idle die");
            self.idle.swap_remove(at);
            self.make_ready(id.0);
        }
    }

    fn make_ready(&mut self, id: u32) {
        let die = &mut self.dies[id as usize];
        die.is_idle = false;
        self.ready.push(Reverse((die.free_at, id)));
    }

    /// `home`, or the next die after it that has room; there is one.
    fn next_with_room(&mut self, home: DieId) -> DieId {
        let mut die = home.0;
        while self.next_with_room[die as usize] != die {
            // Path halving: what was walked once is not walked again.
            let next = self.next_with_room[die as usize];
            self.next_with_room[die as usize] = self.next_with_room[next as usize];
            die = self.next_with_room[die as usize];
        }
        DieId(die)
    }
}

/// Takes a page of `die`'s room; a die without room points to the next one.
fn take_room(die: &mut Die, id: u32, next_with_room: &mut [u32]) {
    die.room -= 1;
    if die.room == 0 {
        next_with_room[id as usize] =
            if id as usize + 1 == next_with_room.len() { 0 } else { id + 1 };
    }
}
