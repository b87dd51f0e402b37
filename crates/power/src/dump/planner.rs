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
use leyden_sim::canary::{Canary, is_planted};

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
}

/// What a dump does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It programs a page.
    Program(Program),
    /// It stops: the budget does not reach for the page that would be next.
    Spent,
    /// Every page that was added is programmed.
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
    dies: Vec<Die>,
    /// When each channel is free.
    channels: Vec<Span>,
    /// Pages that any die may take.
    shared: VecDeque<u32>,
    /// Dies that may have something to do, by when they are free.
    ready: BinaryHeap<Reverse<(Span, u32)>>,
    /// Dies that had nothing to do when their turn came, and are not in `ready`.
    idle: Vec<u32>,
    /// Pages that can still be added.
    room: u64,
    /// For each die, one that is nearer to the next die with room; itself if it has room.
    towards_room: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Die {
    free_at: Span,
    /// Pages that it can take beside its own.
    room: u32,
    /// Pages that only this die may take.
    own: VecDeque<u32>,
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
        let towards_room = |die: u32| {
            let next = if die + 1 == dies.len() as u32 { 0 } else { die + 1 };
            if dies[die as usize].room > 0 { die } else { next }
        };
        Self {
            costs,
            in_place: policy.is_in_place(),
            channels,
            shared: VecDeque::new(),
            ready: all.clone().map(|die| Reverse((dies[die as usize].free_at, die))).collect(),
            idle: Vec::new(),
            room: dies.iter().map(|die| u64::from(die.room)).sum(),
            towards_room: all.map(towards_room).collect(),
            dies,
        }
    }

    /// Adds `page`, whose address names `home`, behind all others; false if no die has room for it.
    #[must_use]
    pub fn add(&mut self, page: u32, home: DieId) -> bool {
        if self.room == 0 {
            return false;
        }
        if self.in_place {
            let die = self.next_with_room(home);
            self.give(page, die);
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
        let Some(id) = self.next_die() else {
            return Step::Done;
        };
        let die = &self.dies[id as usize];
        let channel = self.costs.geometry.channel_of(DieId(id));
        let mut start = die.free_at.max(self.channels[channel.index()]);
        if is_planted(Canary::ChannelFree) {
            start = die.free_at;
        }
        let end = start + self.costs.dump_time();
        if !budget.commit(end, self.costs.dump_energy) {
            return Step::Spent;
        }
        self.ready.pop();
        let die = &mut self.dies[id as usize];
        let page = die.own.pop_front().unwrap_or_else(|| {
            take_room(die, id, &mut self.towards_room);
            self.shared.pop_front().expect("a die that has something to do")
        });
        die.free_at = end;
        self.channels[channel.index()] = start + self.costs.transfer;
        self.ready.push(Reverse((end, id)));
        Step::Program(Program { page, die: DieId(id), start, end })
    }

    /// The pages that were added and are not programmed: what is lost if the budget is spent.
    pub fn left(&self) -> impl Iterator<Item = u32> {
        self.dies.iter().flat_map(|die| &die.own).chain(&self.shared).copied()
    }

    /// The die that goes next: it stays at the head of `ready`.
    fn next_die(&mut self) -> Option<u32> {
        while let Some(&Reverse((_, id))) = self.ready.peek() {
            let die = &mut self.dies[id as usize];
            if !die.own.is_empty() || die.room > 0 && !self.shared.is_empty() {
                return Some(id);
            }
            die.is_idle = true;
            self.idle.push(id);
            self.ready.pop();
        }
        None
    }

    /// Gives `page` to `die`, which has room, as one of its own.
    fn give(&mut self, page: u32, id: DieId) {
        let die = &mut self.dies[id.index()];
        take_room(die, id.0, &mut self.towards_room);
        die.own.push_back(page);
        self.room -= 1;
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
        let dies = self.dies.len() as u32;
        let next = (home.0 + 1) % dies;
        if is_planted(Canary::NextDoorInPlace) && self.dies[next as usize].room > 0 {
            return DieId(next);
        }
        let mut die = home.0;
        while self.towards_room[die as usize] != die {
            // Path halving: what was walked once is not walked again.
            let next = self.towards_room[die as usize];
            self.towards_room[die as usize] = self.towards_room[next as usize];
            die = self.towards_room[die as usize];
        }
        DieId(die)
    }
}

/// Takes a page of `die`'s room; a die without room points to the next one.
fn take_room(die: &mut Die, id: u32, towards_room: &mut [u32]) {
    die.room -= 1;
    if die.room == 0 {
        towards_room[id as usize] = if id as usize + 1 == towards_room.len() { 0 } else { id + 1 };
    }
}
