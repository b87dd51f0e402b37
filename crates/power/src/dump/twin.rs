//! The dump against an obvious implementation, and against the bound.

use leyden_nand::DieId;
use leyden_sim::{Bytes, BytesPerSec, Energy, Power, Ratio, Span, Time};
use proptest::prelude::*;

use super::{DieLoad, Dump, DumpConfig, Failures, Program, Step};
use crate::{Budget, Config, Costs, Demand, worst_case};

/// A drive, its dies at the cut, and the homes of the pages.
#[derive(Clone, Debug)]
struct Case {
    nand: leyden_nand::Config,
    config: Config,
    free_at: Vec<u64>,
    room: Vec<u32>,
    channels: Vec<u64>,
    homes: Vec<u32>,
    failures: Failures,
}

impl Case {
    fn costs(&self) -> Costs {
        let geometry = self.nand.geometry(Bytes::new(4096)).unwrap();
        Costs::new(&self.config, &self.nand, geometry)
    }

    fn loads(&self) -> Vec<DieLoad> {
        let load = |(&free_at, &room)| DieLoad { free_at: Span::from_ns(free_at), room };
        self.free_at.iter().zip(&self.room).map(load).collect()
    }

    fn channels(&self) -> Vec<Span> {
        self.channels.iter().copied().map(Span::from_ns).collect()
    }

    fn dump(&self) -> Dump {
        let dump = Dump::new(&self.config.dump, self.costs(), self.loads(), self.channels());
        dump.with_failures(self.failures.clone())
    }
}

fn case() -> impl Strategy<Value = Case> {
    let shape = (1_u32..4, 1_u32..4, 1_u64..30, 1_u64..60, 0_u64..100, 0_usize..3);
    shape.prop_flat_map(|(channels, per_channel, transfer, program, reset, policy)| {
        let nand = leyden_nand::Config {
            channels,
            dies_per_channel: per_channel,
            page_size: Bytes::new(4096),
            program: Span::from_ns(program * 1_000),
            channel_rate: BytesPerSec::new(4_096_000_000 / transfer),
            ..leyden_nand::Config::default()
        };
        let name = DumpConfig::POLICIES[policy].name;
        let config = Config {
            dump: DumpConfig::by_name(name).unwrap(),
            reset: Span::from_ns(reset * 1_000),
            ..Config::default()
        };
        let dies = (channels * per_channel) as usize;
        let geometry = nand.geometry(Bytes::new(4096)).unwrap();
        let costs = Costs::new(&config, &nand, geometry);
        let latest = costs.latest_free().as_ns();
        let busy = costs.transfer.as_ns();
        (
            proptest::collection::vec(0..=latest, dies),
            proptest::collection::vec(0_u32..12, dies),
            proptest::collection::vec(0..=busy, channels as usize),
            proptest::collection::vec(0..dies as u32, 0..40),
            prop_oneof![Just(0), 1_u32..8],
            (1_u64..=50, any::<u64>()),
        )
            .prop_map(move |(free_at, room, channels, homes, failed_programs, draw)| {
                Case {
                    nand: nand.clone(),
                    config: Config { failed_programs, ..config.clone() },
                    failures: Failures::new(
                        Ratio::from_percent(draw.0),
                        failed_programs,
                        Time::from_ns(draw.1),
                    ),
                    free_at,
                    room,
                    channels,
                    homes,
                }
            })
    })
}

/// Looks through all dies for each page. Also returns how many pages were refused, and how many have found no room
/// after a program had failed.
fn twin(case: &Case) -> (Vec<Program>, usize, usize) {
    let costs = case.costs();
    let mut failures = case.failures.clone();
    let mut unplaced = 0;
    let mut dies = case.loads();
    let mut channels = case.channels();
    let mut own: Vec<Vec<(u32, Span)>> = vec![Vec::new(); dies.len()];
    let mut shared = Vec::new();
    let mut refused = 0;
    for (page, &home) in (0..).zip(&case.homes) {
        let free: u32 = dies.iter().map(|die| die.room).sum();
        if free as usize <= shared.len() {
            refused += 1;
        } else if case.config.dump.is_in_place() {
            let count = dies.len();
            let from_home = (0..count).map(|step| (home as usize + step) % count);
            let die = from_home.into_iter().find(|&die| dies[die].room > 0).unwrap();
            dies[die].room -= 1;
            own[die].push((page, Span::ZERO));
        } else {
            shared.push(page);
        }
    }
    let mut programs = Vec::new();
    loop {
        // When each die can go on: at once with a shared page, or when one of its own is there.
        let ready = |die: usize| {
            let free_at = dies[die].free_at;
            let takes_shared = dies[die].room > 0 && !shared.is_empty();
            let own = own[die].first().map(|&(_, since)| free_at.max(since));
            if takes_shared { Some(free_at) } else { own }
        };
        let next = (0..dies.len()).filter_map(|die| Some((ready(die)?, die))).min();
        let Some((ready_at, die)) = next else {
            return (programs, refused, unplaced + shared.len());
        };
        let has_own = own[die].first().is_some_and(|&(_, since)| since <= ready_at);
        let page = if has_own {
            own[die].remove(0).0
        } else {
            dies[die].room -= 1;
            shared.remove(0)
        };
        let channel = die % channels.len();
        let start = ready_at.max(channels[channel]);
        let end = start + costs.transfer + costs.dump_program;
        channels[channel] = start + costs.transfer;
        dies[die].free_at = end;
        let failed = failures.next();
        programs.push(Program { page, die: DieId(die as u32), start, end, failed });
        if failed {
            let from_die = (0..dies.len()).map(|step| (die + step) % dies.len());
            match from_die.into_iter().find(|&die| dies[die].room > 0) {
                Some(next) => {
                    dies[next].room -= 1;
                    let place = if next == die { 0 } else { own[next].len() };
                    own[next].insert(place, (page, end));
                }
                None => unplaced += 1,
            }
        }
    }
}

/// Adds every page, and runs the dump to its end: the programs, and the pages refused.
fn run(case: &Case, budget: &mut Budget) -> (Vec<Program>, usize, Dump) {
    let mut dump = case.dump();
    let homes = (0..).zip(&case.homes);
    let refused = homes.filter(|&(page, &home)| !dump.add(page, DieId(home))).count();
    let mut programs = Vec::new();
    while let Step::Program(program) = dump.next(budget) {
        programs.push(program);
    }
    (programs, refused, dump)
}

const PLENTY: Energy = Energy::MAX;

proptest! {
    #[test]
    fn it_does_what_its_twin_does(case in case()) {
        let mut budget = Budget::new(PLENTY, Power::ZERO);
        let (programs, refused, dump) = run(&case, &mut budget);
        prop_assert_eq!((programs, refused, dump.left().count()), twin(&case));
    }

    #[test]
    fn a_die_and_a_channel_do_one_thing_at_a_time(case in case()) {
        let costs = case.costs();
        let mut budget = Budget::new(PLENTY, Power::ZERO);
        let (programs, ..) = run(&case, &mut budget);
        for (i, a) in programs.iter().enumerate() {
            prop_assert!(a.start >= Span::from_ns(case.free_at[a.die.index()]));
            for b in &programs[..i] {
                prop_assert!(a.die != b.die || a.start >= b.end);
                let shares = costs.geometry.channel_of(a.die) == costs.geometry.channel_of(b.die);
                prop_assert!(!shares || a.start >= b.start + costs.transfer);
            }
        }
    }

    #[test]
    fn energy_spent_and_left_are_all_there_was(case in case(), reach in 0_u64..20) {
        let costs = case.costs();
        let energy = costs.dump_energy.saturating_mul(reach);
        let mut budget = Budget::new(energy, Power::from_mw(1));
        let (programs, refused, mut dump) = run(&case, &mut budget);
        prop_assert!(budget.used() <= energy);
        let good = programs.iter().filter(|program| !program.failed);
        let mut pages: Vec<u32> = good.map(|program| program.page).collect();
        pages.extend(dump.left());
        pages.sort_unstable();
        prop_assert_eq!(pages.len() + refused, case.homes.len());
        pages.dedup();
        prop_assert_eq!(pages.len() + refused, case.homes.len());
        // Pages are left for want of energy, or, where programs have failed, because all room is used up.
        let has_room = programs.len() as u32 != case.room.iter().sum::<u32>();
        let last = if dump.left().count() > 0 && has_room { Step::Spent } else { Step::Done };
        prop_assert_eq!(dump.next(&mut budget), last);
    }

    /// Within its demand, a dump never needs more time or energy than the bound says, with any
    /// operations in flight, and a bank of that energy is never spent.
    #[test]
    fn the_bound_holds(mut case in case()) {
        let costs = case.costs();
        let busiest = (0..costs.geometry.dies())
            .map(|die| case.homes.iter().filter(|&&home| home == die).count() as u64)
            .max()
            .unwrap_or(0);
        let demand = Demand {
            mapping_pages: case.homes.len() as u64,
            most_on_one_die: Some(busiest),
            ..Demand::default()
        };
        let need = worst_case(&demand, &costs, &case.config);
        for room in &mut case.room {
            *room = (*room).max(need.room_per_die as u32);
        }
        let mut budget = Budget::new(need.energy, case.config.base_power);
        for &free_at in &case.free_at {
            prop_assert!(budget.commit(Span::from_ns(free_at), costs.program_energy));
        }
        let mut dump = case.dump();
        for (page, &home) in (0..).zip(&case.homes) {
            prop_assert!(dump.add(page, DieId(home)));
        }
        let mut programmed = 0;
        loop {
            match dump.next(&mut budget) {
                Step::Program(program) => programmed += usize::from(!program.failed),
                Step::Spent => prop_assert!(false, "spent after {programmed} programs"),
                Step::Done => break,
            }
        }
        prop_assert_eq!(programmed, case.homes.len());
        prop_assert!(budget.latest_end() <= need.time, "{:?} {need:?}", budget.latest_end());
        prop_assert!(budget.used() <= need.energy);
    }
}

/// Four dies on two channels, 10 us a transfer, 100 us a program.
fn small(policy: &str) -> Case {
    let nand = leyden_nand::Config {
        channels: 2,
        dies_per_channel: 2,
        page_size: Bytes::new(4096),
        program: Span::from_us(100),
        channel_rate: BytesPerSec::new(409_600_000),
        ..leyden_nand::Config::default()
    };
    let dump = DumpConfig::by_name(policy).unwrap();
    Case {
        nand,
        config: Config { dump, ..Config::default() },
        free_at: vec![0; 4],
        room: vec![9; 4],
        channels: vec![0; 2],
        homes: vec![0, 0, 0, 0, 2],
        failures: Failures::none(),
    }
}

/// `(page, die, end in us)` of every program.
fn timetable(case: &Case) -> Vec<(u32, u32, u64)> {
    let mut budget = Budget::new(PLENTY, Power::ZERO);
    let (programs, ..) = run(case, &mut budget);
    programs.iter().map(|p| (p.page, p.die.0, p.end.as_ns() / 1_000)).collect()
}

#[test]
fn in_place_waits_for_its_die_and_balanced_does_not() {
    // Page 4 belongs to die 2, whose channel is die 0's.
    let in_place = [(0, 0, 110), (4, 2, 120), (1, 0, 220), (2, 0, 330), (3, 0, 440)];
    assert_eq!(timetable(&small("in_place")), in_place);
    let balanced = [(0, 0, 110), (1, 1, 110), (2, 2, 120), (3, 3, 120), (4, 0, 220)];
    assert_eq!(timetable(&small("balanced")), balanced);
    // 200 us a program with one bit per cell is slower than this flash; what counts is that it is
    // what the policy says.
    assert_eq!(timetable(&small("balanced_slc"))[4], (4, 0, 420));
}

#[test]
fn a_full_home_spills_to_the_next_die_with_room() {
    let mut case = small("in_place");
    case.room = vec![1, 0, 2, 9];
    let dies: Vec<(u32, u32)> =
        timetable(&case).iter().map(|&(page, die, _)| (page, die)).collect();
    assert_eq!(dies, [(0, 0), (1, 2), (3, 3), (4, 3), (2, 2)]);
    case.room = vec![1, 0, 2, 1];
    let mut budget = Budget::new(PLENTY, Power::ZERO);
    assert_eq!(run(&case, &mut budget).1, 1, "room for four");
}

#[test]
fn a_busy_die_gets_its_page_later() {
    let mut case = small("balanced");
    case.free_at = vec![500_000, 0, 300_000, 0];
    let balanced = [(0, 1, 110), (1, 3, 120), (2, 1, 220), (3, 3, 230), (4, 1, 330)];
    assert_eq!(timetable(&case), balanced);
}

#[test]
fn the_dump_stops_where_the_budget_ends() {
    let case = small("balanced");
    let costs = case.costs();
    // Base power until 120 us and four programs, and a picojoule less than the fifth takes.
    let base = case.config.base_power;
    let fifth = base.during(Span::from_us(220)) + costs.dump_energy.saturating_mul(5);
    let mut budget = Budget::new(fifth.saturating_sub(Energy::from_pj(1)), base);
    let (programs, _, mut dump) = run(&case, &mut budget);
    assert_eq!((programs.len(), dump.left().collect::<Vec<_>>()), (4, vec![4]));
    assert_eq!(dump.next(&mut budget), Step::Spent);
    assert_eq!(budget.latest_end(), Span::from_us(120));
    let mut budget = Budget::new(fifth, base);
    assert_eq!(run(&case, &mut budget).0.len(), 5);
    assert_eq!(budget.left(), Energy::ZERO);
}

#[test]
fn a_program_that_fails_is_done_again_on_its_die() {
    let mut case = small("balanced");
    // The first program fails at this moment, and no other may.
    let at = (0..1_000)
        .map(Time::from_ns)
        .find(|&at| Failures::new(Ratio::from_percent(50), 1, at).next());
    case.failures = Failures::new(Ratio::from_percent(50), 1, at.unwrap());
    let balanced = [(0, 0, 110), (1, 1, 110), (2, 2, 120), (3, 3, 120), (0, 0, 220), (4, 1, 220)];
    assert_eq!(timetable(&case), balanced);
    // Without room there, it goes to the next die that has some; where none has, it is left.
    case.room = vec![1, 1, 2, 2];
    let dies: Vec<_> = timetable(&case).iter().map(|&(page, die, _)| (page, die)).collect();
    assert_eq!(dies, [(0, 0), (1, 2), (2, 3), (0, 1), (3, 3), (4, 2)]);
    case.room = vec![1, 1, 2, 1];
    let mut budget = Budget::new(PLENTY, Power::ZERO);
    let (programs, _, dump) = run(&case, &mut budget);
    assert_eq!((programs.len(), dump.left().collect::<Vec<_>>()), (5, vec![4]));
}
