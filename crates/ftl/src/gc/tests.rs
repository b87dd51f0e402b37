//! The index and the policies against their slow twin: a list of blocks, looked through every time.

use leyden_nand::{BlockId, Config, DieId, Geometry};
use leyden_sim::{Bytes, Span, Time};
use proptest::prelude::*;

use super::{AgeClock, AgeOf, Ages, Chooser, DieView, VictimConfig, VictimIndex};
use crate::GcConfig;

/// Two dies of 6 blocks, 8 units in each.
pub(super) fn geometry() -> Geometry {
    let config = Config {
        channels: 1,
        dies_per_channel: 2,
        blocks_per_plane: 6,
        pages_per_block: 4,
        ..Config::default()
    };
    config.geometry(Bytes::new(4096)).unwrap()
}

pub(super) const BLOCKS_PER_DIE: u32 = 6;
pub(super) const UNITS: u32 = 8;

/// A block, as the list has it.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub(super) id: u32,
    pub(super) valid: u32,
    pub(super) zombies: u32,
    pub(super) changed: u64,
    /// Counts changes, so that of blocks that changed at the same time the earlier is known.
    pub(super) moved: usize,
    /// The same, of what `z_greedy` looks at.
    pub(super) scored: usize,
    pub(super) filled: usize,
}

impl Block {
    pub(super) fn invalid(&self) -> u64 {
        (UNITS - self.valid).into()
    }

    pub(super) fn age(&self, now: u64) -> u64 {
        now - self.changed + 1
    }

    /// i - min(z, i / 2), in halves.
    pub(super) fn score(&self) -> u64 {
        2 * self.invalid() - (2 * u64::from(self.zombies)).min(self.invalid())
    }

    /// age x (1 - u) / 2u, as a fraction; a block that is empty has an infinite benefit.
    pub(super) fn benefit(&self, now: u64) -> (u64, u64) {
        (self.age(now) * self.invalid(), self.valid.into())
    }
}

/// A die, as a policy's twin sees it: all its blocks that could be collected, in a list.
#[derive(Debug)]
pub struct Twin<'a> {
    pub(super) blocks: Vec<&'a Block>,
    pub(super) now: u64,
    /// How long before they come true hints are given.
    pub(super) lead: Option<u64>,
}

impl Twin<'_> {
    /// The block with the smallest key.
    pub(super) fn first_by<K: Ord>(&self, key: impl Fn(&Block) -> K) -> u32 {
        self.blocks.iter().min_by_key(|block| key(block)).expect("a block").id
    }

    /// True if no block is worth more than `chosen`, by what `worth` makes of a block and the time. One
    /// without valid units is worth more than all that have some.
    pub(super) fn has_none_above(
        &self,
        chosen: &Block,
        worth: impl Fn(&Block, u64) -> (u64, u64),
    ) -> bool {
        let is_more = |a: (u64, u64), b: (u64, u64)| a.0 * b.1 > b.0 * a.1;
        let chosen_is_worth = worth(chosen, self.now);
        chosen.valid == 0
            || !self
                .blocks
                .iter()
                .any(|block| block.valid == 0 || is_more(worth(block, self.now), chosen_is_worth))
    }
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
    /// Saved and loaded.
    Save,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..2 * BLOCKS_PER_DIE, 0..=UNITS).prop_map(|(block, valid)| Step::Fill(block, valid)),
        6 => (0..2 * BLOCKS_PER_DIE).prop_map(Step::Lose),
        4 => (0..2 * BLOCKS_PER_DIE, 0..=UNITS).prop_map(|(block, z)| Step::Hint(block, z)),
        1 => (1..200_u64).prop_map(Step::Lead),
        1 => (0..2 * BLOCKS_PER_DIE).prop_map(Step::Remove),
        1 => Just(Step::Save),
        2 => (0..50_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..200)
}

/// Checks the index's answers for each die, and the policy's choice.
fn check(
    config: &GcConfig,
    chooser: &mut Chooser,
    index: &mut VictimIndex,
    all: &[Block],
    now: u64,
) -> Result<(), TestCaseError> {
    for die in 0..2 {
        let blocks: Vec<&Block> = all.iter().filter(|b| b.id / BLOCKS_PER_DIE == die).collect();
        check_numbers(index, DieId(die), &blocks)?;
        let victim =
            chooser.victim(&DieView::new(index, DieId(die), Time::from_ns(now), config.age_of));
        let chosen = blocks.iter().find(|b| Some(BlockId(b.id)) == victim).copied();
        prop_assert_eq!(chosen.is_some(), !blocks.is_empty(), "chose {:?}", victim);
        let Some(chosen) = chosen else { continue };
        let least = blocks.iter().map(|b| b.valid).min();
        let view = DieView::new(index, DieId(die), Time::from_ns(now), config.age_of);
        let found = view.least_utilised().unwrap().0;
        prop_assert_eq!(all.iter().find(|b| b.id == found).map(|b| b.valid), least);
        let garbage: u32 = blocks.iter().map(|b| UNITS - b.valid).sum();
        prop_assert_eq!(index.garbage_units(DieId(die)), u64::from(garbage));
        let twin = Twin { blocks, now, lead: index.lead().map(Span::as_ns) };
        prop_assert!(config.victim.policy().is_right(chosen, &twin), "{:?} of {:?}", chosen, twin);
    }
    Ok(())
}

/// Each block of the die has one number, and is found as it is.
fn check_numbers(index: &VictimIndex, die: DieId, blocks: &[&Block]) -> Result<(), TestCaseError> {
    prop_assert_eq!(index.len(die) as usize, blocks.len());
    let mut numbered: Vec<_> = (0..index.len(die)).map(|n| index.nth(die, n)).collect();
    numbered.sort_by_key(|candidate| candidate.block);
    let mut listed = blocks.to_vec();
    listed.sort_by_key(|block| block.id);
    for (found, block) in numbered.iter().zip(listed) {
        let known = (block.id, block.valid, block.zombies, Time::from_ns(block.changed));
        prop_assert_eq!((found.block.0, found.valid, found.zombies, found.changed), known);
    }
    Ok(())
}

proptest! {
    #[test]
    fn victims_are_those_of_a_list(
        steps in steps(),
        policy in 0..VictimConfig::POLICIES.len(),
        // The lists are looked at after every change, or after some.
        changes in 1_usize..12,
        age_of in prop_oneof![Just(AgeOf::LastInvalidation), Just(AgeOf::LastWrite)],
    ) {
        let victim = VictimConfig::by_name(VictimConfig::POLICIES[policy].name).unwrap();
        let config = GcConfig { victim, age_of, ..GcConfig::default() };
        let ages = Ages::new(age_of, AgeClock::Time, Span::ZERO);
        let mut chooser = Chooser::new(&config, 1);
        let mut index = VictimIndex::new(&geometry(), chooser.order());
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
                        index.lost_unit(BlockId(id), ages.at_loss(Time::from_ns(now))); // of no block: ignored
                    }
                    if let Some(block) = block.filter(|b| b.valid > 0) {
                        block.valid -= 1;
                        if age_of == AgeOf::LastInvalidation {
                            block.changed = now;
                        }
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
                Step::Save => {
                    let saved = serde_json::to_string(&index).unwrap();
                    index = serde_json::from_str(&saved).unwrap();
                }
                Step::Lead(lead) => index.set_lead(Some(Span::from_ns(lead))),
                Step::Wait(span) => now += span,
            }
            prop_assert!((0..12).all(|id| index.contains(BlockId(id)) == twin.iter().any(|b| b.id == id)));
            if count % changes == 0 {
                check(&config, &mut chooser, &mut index, &twin, now)?;
            }
        }
        prop_assert!(index.fits(&geometry()));
    }
}

#[test]
fn a_damaged_index_is_loaded_and_fits_nowhere() {
    let mut index = VictimIndex::new(&geometry(), super::Order::Score);
    index.insert(BlockId(3), UNITS, 2, Time::ZERO);
    let saved = serde_json::to_value(&index).unwrap();
    for (field, damaged) in
        [("units_per_block", u32::MAX), ("units_per_block", 1), ("words_per_die", 0)]
    {
        let mut saved = saved.clone();
        let value = &mut saved["lists"][field];
        assert!(value.is_u64(), "{field} is not saved");
        *value = damaged.into();
        let loaded: VictimIndex = serde_json::from_value(saved).unwrap();
        assert!(!loaded.fits(&geometry()), "{field}");
    }
}
