//! The index and the policies against their slow twin: a list of blocks, looked through every time.

use leyden_nand::{BlockId, Config, DieId, Geometry};
use leyden_sim::{Bytes, Time};
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
    changed: u64,
    /// Counts changes, so that of blocks that changed at the same time the earlier is known.
    moved: usize,
    filled: usize,
}

impl Block {
    /// age x (1 - u) / 2u, as a fraction; a block that is empty has an infinite benefit.
    fn benefit(&self, now: u64) -> (u64, u64) {
        ((now - self.changed + 1) * u64::from(UNITS - self.valid), u64::from(self.valid))
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
    Remove(u32),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..2 * BLOCKS_PER_DIE, 0..=UNITS).prop_map(|(block, valid)| Step::Fill(block, valid)),
        6 => (0..2 * BLOCKS_PER_DIE).prop_map(Step::Lose),
        1 => (0..2 * BLOCKS_PER_DIE).prop_map(Step::Remove),
        2 => (0..50_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..200)
}

fn check(index: &VictimIndex, twin: &[Block], now: u64) -> Result<(), TestCaseError> {
    for die in 0..2 {
        let blocks: Vec<&Block> = twin.iter().filter(|b| b.id / BLOCKS_PER_DIE == die).collect();
        let victim = |name: &str| {
            let policy = VictimConfig::by_name(name).unwrap().policy();
            policy.victim(index, DieId(die), Time::from_ns(now)).map(|block| block.0)
        };
        let greedy = blocks.iter().min_by_key(|b| (b.valid, b.moved)).map(|b| b.id);
        prop_assert_eq!(victim("greedy"), greedy);
        let fifo = blocks.iter().min_by_key(|b| b.filled).map(|b| b.id);
        prop_assert_eq!(victim("fifo"), fifo);

        let chosen = victim("cost_benefit");
        prop_assert_eq!(chosen.is_some(), !blocks.is_empty());
        if let Some(chosen) = blocks.iter().find(|b| Some(b.id) == chosen) {
            let beaten = blocks.iter().find(|b| {
                chosen.valid > 0 && (b.valid == 0 || is_more(b.benefit(now), chosen.benefit(now)))
            });
            prop_assert!(beaten.is_none(), "{:?} beats {:?} at {}", beaten, chosen, now);
        }
        let garbage: u32 = blocks.iter().map(|b| UNITS - b.valid).sum();
        prop_assert_eq!(index.garbage_units(DieId(die)), u64::from(garbage));
    }
    Ok(())
}

proptest! {
    #[test]
    fn victims_are_those_of_a_list(steps in steps()) {
        let mut index = VictimIndex::new(&geometry());
        let mut twin: Vec<Block> = Vec::new();
        let mut now = 0;
        for (count, step) in steps.into_iter().enumerate() {
            match step {
                Step::Fill(id, valid) if !twin.iter().any(|b| b.id == id) => {
                    index.insert(BlockId(id), valid, Time::from_ns(now));
                    twin.push(Block { id, valid, changed: now, moved: count, filled: count });
                }
                Step::Lose(id) => {
                    let block = twin.iter_mut().find(|b| b.id == id);
                    if block.as_ref().is_none_or(|b| b.valid > 0) {
                        index.lost_unit(BlockId(id), Time::from_ns(now)); // of no block: ignored
                    }
                    if let Some(block) = block.filter(|b| b.valid > 0) {
                        (block.valid, block.changed, block.moved) = (block.valid - 1, now, count);
                    }
                }
                Step::Remove(id) if twin.iter().any(|b| b.id == id) => {
                    index.remove(BlockId(id));
                    twin.retain(|b| b.id != id);
                }
                Step::Fill(..) | Step::Remove(_) => {}
                Step::Wait(span) => now += span,
            }
            prop_assert!((0..12).all(|id| index.contains(BlockId(id)) == twin.iter().any(|b| b.id == id)));
            check(&index, &twin, now)?;
        }
    }
}
