//! How far a dump gets: a look at every die for every page.
//!
//! One page at a time on each die and each channel. Of the dies that have a page to program, the one that is
//! free first goes next. The first page that the energy does not reach for ends the dump (docs/power.md). A page
//! whose program fails is programmed again: by the same die, or else by the next one with room.

use leyden_sim::{Ratio, Rng, Time};

/// Chooses the programs that fail, as a drive's configuration says.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    share: Ratio,
    most: u32,
    so_far: u32,
    rng: Rng,
}

impl Fate {
    /// Of the dump of a cut at `at`: `most` programs at most.
    pub(super) fn new(share: Ratio, most: u32, at: Time) -> Self {
        Self { share, most, so_far: 0, rng: Rng::new(at.as_ns(), "dump failures") }
    }

    fn strikes(&mut self) -> bool {
        if self.so_far == self.most || !self.rng.chance(self.share) {
            return false;
        }
        self.so_far += 1;
        true
    }
}

/// The energy left in the bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bank {
    /// `None` is as much as it takes.
    energy_pj: Option<u128>,
    base_mw: u128,
    programs_pj: u128,
    pub(super) latest_end_ns: u128,
}

impl Bank {
    pub(super) const fn new(energy_pj: Option<u128>, base_mw: u128) -> Self {
        Self { energy_pj, base_mw, programs_pj: 0, latest_end_ns: 0 }
    }

    /// Starts a program that ends at `end_ns`, if the bank lasts for that.
    pub(super) fn start(&mut self, end_ns: u128, program_pj: u128) -> bool {
        let latest_ns = self.latest_end_ns.max(end_ns);
        let needed = self.programs_pj + program_pj + self.base_mw * latest_ns;
        let lasts = self.energy_pj.is_none_or(|energy| needed <= energy);
        if lasts {
            self.programs_pj += program_pj;
            self.latest_end_ns = latest_ns;
        }
        lasts
    }

    pub(super) const fn used_pj(&self) -> u128 {
        self.programs_pj + self.base_mw * self.latest_end_ns
    }
}

/// How far a dump got.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    /// Those that failed included.
    pub(super) programs: u64,
    pub(super) failed: u32,
    /// The pages that are left.
    pub(super) left: Vec<usize>,
}

/// Where pages go, and when dies and channels are free.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    die_free_ns: Vec<u128>,
    channel_free_ns: Vec<u128>,
    /// By die, the pages that only it may take, last first, and since when it may.
    own: Vec<Vec<(usize, u128)>>,
    /// The pages that any die may take, last first.
    shared: Vec<usize>,
    /// By die, how many of the shared pages it may take.
    room: Vec<u32>,
}

impl Plan {
    pub(super) fn new(dies: usize, channels: usize) -> Self {
        Self {
            die_free_ns: vec![0; dies],
            channel_free_ns: vec![0; channels],
            own: vec![Vec::new(); dies],
            shared: Vec::new(),
            room: vec![0; dies],
        }
    }

    /// `die` is busy until `die_ns`, and its channel until `channel_ns`.
    pub(super) fn hold(&mut self, die: usize, die_ns: u128, channel_ns: u128) {
        self.die_free_ns[die] = die_ns;
        let channel = die % self.channel_free_ns.len();
        self.channel_free_ns[channel] = self.channel_free_ns[channel].max(channel_ns);
    }

    /// Says which die may take each page; yields the pages that none has room for.
    pub(super) fn place(
        &mut self,
        homes: impl Iterator<Item = usize>,
        room: &[u32],
        is_in_place: bool,
    ) -> Vec<usize> {
        self.room = room.to_vec();
        let dies = room.len();
        let mut left: u32 = room.iter().sum();
        let mut unplaced = Vec::new();
        for (page, home) in homes.enumerate() {
            if left == 0 {
                unplaced.push(page);
                continue;
            }
            left -= 1;
            if is_in_place {
                let from_home = (home..dies).chain(0..home);
                let mut with_room = from_home.filter(|&die| self.room[die] > 0);
                let die = with_room.next().expect("there is room somewhere");
                self.room[die] -= 1;
                self.own[die].push((page, 0));
            } else {
                self.shared.push(page);
            }
        }
        self.shared.reverse();
        self.own.iter_mut().for_each(|pages| pages.reverse());
        unplaced
    }

    /// Programs page after page.
    pub(super) fn run(
        mut self,
        bank: &mut Bank,
        mut fate: Fate,
        transfer_ns: u128,
        program_ns: u128,
        program_pj: u128,
    ) -> Ran {
        let mut programs = 0;
        let mut unplaced = Vec::new();
        loop {
            let ready = |die: usize| self.ready_ns(die).map(|ready_ns| (ready_ns, die));
            let Some((ready_ns, die)) = (0..self.die_free_ns.len()).filter_map(ready).min() else {
                break;
            };
            let channel = die % self.channel_free_ns.len();
            let start_ns = ready_ns.max(self.channel_free_ns[channel]);
            let end_ns = start_ns + transfer_ns + program_ns;
            if !bank.start(end_ns, program_pj) {
                break;
            }
            let page = self.take(die, ready_ns);
            self.die_free_ns[die] = end_ns;
            self.channel_free_ns[channel] = start_ns + transfer_ns;
            programs += 1;
            if fate.strikes() {
                unplaced.extend(self.repeat(page, die, end_ns));
            }
        }
        let own = self.own.into_iter().flatten().map(|(page, _)| page);
        let left = own.chain(self.shared).chain(unplaced).collect();
        Ran { programs, failed: fate.so_far, left }
    }

    /// When `die` can begin the next page but for its channel; nothing if there is none for it.
    fn ready_ns(&self, die: usize) -> Option<u128> {
        let free_ns = self.die_free_ns[die];
        if self.room[die] > 0 && !self.shared.is_empty() {
            return Some(free_ns);
        }
        self.own[die].last().map(|&(_, since_ns)| free_ns.max(since_ns))
    }

    /// The page that `die`, which is ready, programs next: one of its own, if it is there by then.
    fn take(&mut self, die: usize, ready_ns: u128) -> usize {
        if let Some(&(page, since_ns)) = self.own[die].last()
            && since_ns <= ready_ns
        {
            self.own[die].pop();
            return page;
        }
        self.room[die] -= 1;
        self.shared.pop().expect("the die has work")
    }

    /// `page` is to be programmed again; yields it if no die has room.
    fn repeat(&mut self, page: usize, die: usize, since_ns: u128) -> Option<usize> {
        let dies = self.room.len();
        let Some(next) = (die..dies).chain(0..die).find(|&die| self.room[die] > 0) else {
            return Some(page);
        };
        self.room[next] -= 1;
        // First of all on the die itself, which was at it; last of all elsewhere.
        let at = if next == die { self.own[next].len() } else { 0 };
        self.own[next].insert(at, (page, since_ns));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four dies on two channels, 10 a transfer, 100 a program; five pages.
    fn run(is_in_place: bool, energy: Option<u128>) -> (u64, Vec<usize>, u128) {
        let mut plan = Plan::new(4, 2);
        let unplaced = plan.place([0, 0, 0, 0, 2].into_iter(), &[9; 4], is_in_place);
        assert!(unplaced.is_empty());
        let mut bank = Bank::new(energy, 1);
        let none = Fate::new(Ratio::ZERO, 0, Time::ZERO);
        let ran = plan.run(&mut bank, none, 10, 100, 7);
        (ran.programs, ran.left, bank.used_pj())
    }

    #[test]
    fn a_program_that_fails_is_repeated() {
        let mut plan = Plan::new(1, 1);
        plan.place([0, 0].into_iter(), &[3], true);
        let mut bank = Bank::new(None, 1);
        // Half of all programs fail, and one may: the third page of room is the last.
        let fate = Fate::new(Ratio::from_percent(50), 1, Time::from_ns(1));
        let ran = plan.clone().run(&mut bank, fate, 10, 100, 7);
        assert!(ran.left.is_empty() && ran.programs == 2 + u64::from(ran.failed));
        let always = (0..1_000).map(|at| Fate::new(Ratio::from_percent(50), 2, Time::from_ns(at)));
        let twice = |fate: &Fate| {
            let mut fate = fate.clone();
            (0..2).all(|_| fate.strikes())
        };
        let fate = always.into_iter().find(twice).unwrap();
        let ran = plan.run(&mut Bank::new(None, 1), fate, 10, 100, 7);
        let found = (ran.programs, ran.failed, ran.left.len());
        assert_eq!(found, (3, 2, 1), "room for three programs, of which two fail");
    }

    #[test]
    fn pages_wait_for_their_die_in_place_only() {
        assert_eq!(run(true, None), (5, vec![], 440 + 5 * 7));
        assert_eq!(run(false, None), (5, vec![], 220 + 5 * 7));
    }

    #[test]
    fn a_picojoule_too_little_leaves_the_last_page() {
        assert_eq!(run(false, Some(220 + 5 * 7)).0, 5);
        assert_eq!(run(false, Some(220 + 5 * 7 - 1)), (4, vec![4], 120 + 4 * 7));
    }

    #[test]
    fn what_has_no_room_is_named() {
        let mut plan = Plan::new(2, 1);
        assert_eq!(plan.place([0, 0, 0, 1].into_iter(), &[1, 2], true), [3]);
    }
}
