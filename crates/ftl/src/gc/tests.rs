//! The index and the policies against their slow twin: a list of blocks, looked through every time.

use leyden_nand::{BlockId, Config, DieId, Geometry};
use leyden_sim::{Bytes, Span, Time};
use proptest::prelude::*;

use super::{VictimConfig, VictimIndex};

/// Two dies of 6 blocks, 8 units in each.
fn geometry() -> Geometry {
    let config = Config {
        channels: 1,
        dies_per_channel: 2,
        blocks_per_plane: 6,
        pages_per_block: 4,
        ..Config::default()
    };
    config.geometry(Bytes::new(4096)).unwrap()
}

const BLOCKS_PER_DIE: u32 = 6;
const UNITS: u32 = 8;

#[derive(Clone, Copy, Debug)]
struct Block {
    id: u32,
    valid: u32,
    zombies: u32,
    changed: u64,
    /// Counts changes, so that of blocks that changed at the same time the earlier is known.
    moved: usize,
    /// The same, of what `z_greedy` looks at.
    scored: usize,
    filled: usize,
}

impl Block {
    /// age x (1 - u) / 2u, as a fraction; a block that is empty has an infinite benefit.
    fn benefit(&self, now: u64) -> (u64, u64) {
        ((now - self.changed + 1) * u64::from(UNITS - self.valid), u64::from(self.valid))
    }

    /// i - min(z, i / 2), in halves.
    fn score(&self) -> u64 {
        let invalid = u64::from(UNITS - self.valid);
        2 * invalid - (2 * u64::from(self.zombies)).min(invalid)
    }

    /// The same as `benefit` with that in place of the invalid units, in halves.
    fn zombie_benefit(&self, now: u64) -> (u64, u64) {
        ((now - self.changed + 1) * self.score(), u64::from(self.valid))
    }

    /// age x (1 - u) / 2u x i / (i + z x age / lead), to 1/256 of the last.
    fn benefit_by(&self, lead: u64, now: u64) -> (u64, u64) {
        let (benefit, cost) = self.benefit(now);
        let (age, invalid) = (now - self.changed + 1, u64::from(UNITS - self.valid));
        let die_anyway = 256 * u64::from(self.zombies) * age / (lead * invalid.max(1));
        (256 * benefit, cost * (256 + die_anyway))
    }
}

/// True if fraction `a` is the larger one.
fn is_more(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 * b.1 > b.0 * a.1
}

#[derive(Clone, Debug)]
enum Step {
    Fill(u32, u32),
    Lose(u32),
    /// So many of a block's valid units are zombies.
    Hint(u32, u32),
    /// Hints come true so long after they are given.
    Lead(u64),
    Remove(u32),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..2 * BLOCKS_PER_DIE, 0..=UNITS).prop_map(|(block, valid)| Step::Fill(block, valid)),
        6 => (0..2 * BLOCKS_PER_DIE).prop_map(Step::Lose),
        4 => (0..2 * BLOCKS_PER_DIE, 0..=UNITS).prop_map(|(block, z)| Step::Hint(block, z)),
        1 => (1..200_u64).prop_map(Step::Lead),
        1 => (0..2 * BLOCKS_PER_DIE).prop_map(Step::Remove),
        2 => (0..50_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..200)
}

/// The index as `name` wants it, and what the policy chooses.
fn check(name: &str, index: &VictimIndex, twin: &[Block], now: u64) -> Result<(), TestCaseError> {
    let policy = VictimConfig::by_name(name).unwrap().policy();
    for die in 0..2 {
        let blocks: Vec<&Block> = twin.iter().filter(|b| b.id / BLOCKS_PER_DIE == die).collect();
        let victim = policy.victim(index, DieId(die), Time::from_ns(now)).map(|block| block.0);
        let chosen = blocks.iter().find(|b| Some(b.id) == victim);
        prop_assert_eq!(chosen.is_some(), !blocks.is_empty());
        let Some(chosen) = chosen else { continue };
        let least = blocks.iter().map(|b| b.valid).min();
        let found = index.least_utilised(DieId(die)).unwrap().0;
        prop_assert_eq!(twin.iter().find(|b| b.id == found).map(|b| b.valid), least);
        let garbage: u32 = blocks.iter().map(|b| UNITS - b.valid).sum();
        prop_assert_eq!(index.garbage_units(DieId(die)), u64::from(garbage));
        let beats = |worth: &dyn Fn(&Block, u64) -> (u64, u64)| {
            blocks.iter().find(|b| {
                chosen.valid > 0 && (b.valid == 0 || is_more(worth(b, now), worth(chosen, now)))
            })
        };
        match name {
            "greedy" => {
                let first = blocks.iter().min_by_key(|b| (b.valid, b.moved)).map(|b| b.id);
                prop_assert_eq!(victim, first);
            }
            "fifo" => {
                prop_assert_eq!(victim, blocks.iter().min_by_key(|b| b.filled).map(|b| b.id));
            }
            "z_greedy" => {
                let key = |b: &&&Block| (std::cmp::Reverse(b.score()), b.scored);
                prop_assert_eq!(victim, blocks.iter().min_by_key(key).map(|b| b.id));
            }
            "cost_benefit" => {
                let beaten = beats(&Block::benefit);
                prop_assert!(beaten.is_none(), "{:?} beats {:?} at {}", beaten, chosen, now);
            }
            "z_cost_benefit" => {
                let beaten = beats(&Block::zombie_benefit);
                prop_assert!(beaten.is_none(), "{:?} beats {:?} at {}", beaten, chosen, now);
            }
            "z_deadline" => {
                let beaten = match index.lead() {
                    Some(lead) => beats(&|b: &Block, now| b.benefit_by(lead.as_ns(), now)),
                    None => beats(&Block::benefit),
                };
                prop_assert!(beaten.is_none(), "{:?} beats {:?} at {}", beaten, chosen, now);
            }
            other => panic!("{other} has no twin"),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn victims_are_those_of_a_list(steps in steps(), policy in 0..VictimConfig::POLICIES.len()) {
        let name = VictimConfig::POLICIES[policy].name;
        let order = VictimConfig::by_name(name).unwrap().policy().order();
        let mut index = VictimIndex::new(&geometry(), order);
        let mut twin: Vec<Block> = Vec::new();
        let mut now = 0;
        for (count, step) in steps.into_iter().enumerate() {
            match step {
                Step::Fill(id, valid) if !twin.iter().any(|b| b.id == id) => {
                    index.insert(BlockId(id), valid, 0, Time::from_ns(now));
                    let (moved, scored, filled) = (count, count, count);
                    twin.push(Block { id, valid, zombies: 0, changed: now, moved, scored, filled });
                }
                Step::Lose(id) => {
                    let block = twin.iter_mut().find(|b| b.id == id);
                    if block.as_ref().is_none_or(|b| b.valid > 0) {
                        index.lost_unit(BlockId(id), Time::from_ns(now)); // of no block: ignored
                    }
                    if let Some(block) = block.filter(|b| b.valid > 0) {
                        (block.valid, block.changed) = (block.valid - 1, now);
                        (block.moved, block.scored) = (count, count);
                    }
                }
                Step::Hint(id, zombies) => {
                    let block = twin.iter_mut().find(|b| b.id == id);
                    let zombies = zombies.min(block.as_ref().map_or(UNITS, |b| b.valid));
                    index.set_zombies(BlockId(id), zombies);
                    if let Some(block) = block {
                        (block.zombies, block.scored) = (zombies, count);
                    }
                }
                Step::Remove(id) if twin.iter().any(|b| b.id == id) => {
                    index.remove(BlockId(id));
                    twin.retain(|b| b.id != id);
                }
                Step::Fill(..) | Step::Remove(_) => {}
                Step::Lead(lead) => index.set_lead(Some(Span::from_ns(lead))),
                Step::Wait(span) => now += span,
            }
            prop_assert!((0..12).all(|id| index.contains(BlockId(id)) == twin.iter().any(|b| b.id == id)));
            check(name, &index, &twin, now)?;
        }
    }
}
