//! How far a dump gets: a look at every die for every page.
//!
//! One page at a time on each die and each channel. Of the dies that have a page to program, the one that is
//! free first goes next. The first page that the energy does not reach for ends the dump (docs/power.md).

/// What is left in the bank.
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

/// Where pages go, and when dies and channels are free.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    die_free_ns: Vec<u128>,
    channel_free_ns: Vec<u128>,
    /// By die, the pages that only it may take, last first.
    own: Vec<Vec<usize>>,
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
        let mut homeless = Vec::new();
        for (page, home) in homes.enumerate() {
            if left == 0 {
                homeless.push(page);
                continue;
            }
            left -= 1;
            if is_in_place {
                let from_home = (home..dies).chain(0..home);
                let mut with_room = from_home.filter(|&die| self.room[die] > 0);
                let die = with_room.next().expect("there is room somewhere");
                self.room[die] -= 1;
                self.own[die].push(page);
            } else {
                self.shared.push(page);
            }
        }
        self.shared.reverse();
        self.own.iter_mut().for_each(|pages| pages.reverse());
        homeless
    }

    /// Programs page after page; yields how many, and the pages that are left.
    pub(super) fn run(
        mut self,
        bank: &mut Bank,
        transfer_ns: u128,
        program_ns: u128,
        program_pj: u128,
    ) -> (u64, Vec<usize>) {
        let mut saved = 0;
        loop {
            let has_work = |&die: &usize| {
                !self.own[die].is_empty() || self.room[die] > 0 && !self.shared.is_empty()
            };
            let dies = (0..self.die_free_ns.len()).filter(has_work);
            let Some(die) = dies.min_by_key(|&die| self.die_free_ns[die]) else { break };
            let channel = die % self.channel_free_ns.len();
            let start_ns = self.die_free_ns[die].max(self.channel_free_ns[channel]);
            let end_ns = start_ns + transfer_ns + program_ns;
            if !bank.start(end_ns, program_pj) {
                break;
            }
            if self.own[die].pop().is_none() {
                self.shared.pop();
                self.room[die] -= 1;
            }
            self.die_free_ns[die] = end_ns;
            self.channel_free_ns[channel] = start_ns + transfer_ns;
            saved += 1;
        }
        let left = self.own.into_iter().flatten().chain(self.shared);
        (saved, left.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four dies on two channels, 10 a transfer, 100 a program; five pages.
    fn run(is_in_place: bool, energy: Option<u128>) -> (u64, Vec<usize>, u128) {
        let mut plan = Plan::new(4, 2);
        let homeless = plan.place([0, 0, 0, 0, 2].into_iter(), &[9; 4], is_in_place);
        assert!(homeless.is_empty());
        let mut bank = Bank::new(energy, 1);
        let (saved, left) = plan.run(&mut bank, 10, 100, 7);
        (saved, left, bank.used_pj())
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
