//! Static wear levelling while the host writes between the steps of each move.

mod support;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use leyden_ftl::Config;
use leyden_ftl::gc::level::{LevelConfig, least_worn::LeastWorn};
use leyden_ftl::page_mapped::{BlockState, Durability, Ftl, GcStep, UserUnit};
use leyden_ftl::place::StreamId;
use leyden_nand::{BlockId, DieId, Lpn};
use leyden_sim::{Bytes, Rng, Time};
use support::{Nothing, end};

const DIE: DieId = DieId(0);
const BLOCKS: u32 = 24;
const SPREAD: u32 = 4;
/// Logical units: 16 of 24 blocks.
const UNITS: u32 = 16 * 16;
/// Where data goes that is moved for wear.
const LEVEL: StreamId = StreamId(1);
/// Units that are overwritten all the time: one block.
const HOT_UNITS: u32 = 16;

fn ftl(levelling: LevelConfig) -> Ftl<Nothing> {
    let nand = leyden_nand::Config {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_plane: BLOCKS,
        pages_per_block: 4,
        page_size: Bytes::new(16 << 10),
        ..leyden_nand::Config::default()
    };
    let capacity = Some(Bytes::new(u64::from(UNITS) * 4096));
    let mut config = Config { capacity, ..Config::default() };
    config.gc.levelling = levelling;
    // Free blocks to choose from.
    config.gc.soft_free_blocks = 4;
    let geometry = nand.geometry(config.mapping_unit).unwrap();
    let mut ftl = Ftl::new(&config, &nand, geometry, 1, Durability::default()).unwrap();
    ftl.set_untimed(true);
    ftl
}

fn block_of(ftl: &Ftl<Nothing>, lpn: Lpn) -> BlockId {
    ftl.geometry().block_of(ftl.map().get(lpn).expect("it was written"))
}

fn lpns_in(ftl: &Ftl<Nothing>, block: BlockId) -> impl Iterator<Item = Lpn> {
    (0..UNITS).map(Lpn).filter(move |&lpn| block_of(ftl, lpn) == block)
}

fn collectable(ftl: &Ftl<Nothing>) -> Vec<BlockId> {
    let blocks = (0..BLOCKS).map(BlockId);
    blocks.filter(|&block| ftl.blocks().state(block) == BlockState::Closed).collect()
}

/// Up to nine pages of the host's, as far as it may have them, then a step of collection. With `strays`, a write in 64 goes
/// to data that is not overwritten otherwise: blocks that are moved hold any number of valid units.
///
/// # Panics
/// If data is moved to a block that was not erased `SPREAD` times more than the one that it leaves.
fn work(levelling: LevelConfig, seed: u64, strays: bool) -> Ftl<Nothing> {
    let mut ftl = ftl(levelling);
    let mut rng = Rng::new(seed, "levelling");
    let mut written = 0;
    // Units in flight, each with the block that it leaves.
    let mut moved = BTreeMap::new();
    let mut erases_before = vec![0; BLOCKS as usize];
    for _ in 0..60_000 {
        for _ in 0..rng.below(4) * rng.below(4) {
            if !ftl.may_program(DIE, StreamId(0)) {
                break;
            }
            let first = match written {
                cold if cold < UNITS => cold,
                _ if strays && rng.below(64) == 0 => rng.below(u64::from(UNITS) - 3) as u32,
                _ => 4 * rng.below(u64::from(HOT_UNITS / 4)) as u32,
            };
            written += 4;
            let units: Vec<_> = (first..first + 4)
                .map(|lpn| UserUnit { lpn: Lpn(lpn), content: Nothing, source: lpn })
                .collect();
            ftl.program(Time::ZERO, DIE, StreamId(0), units.into_iter());
            end(&mut ftl);
        }
        let moves = ftl.stats().gc.wear_moves;
        let closed = collectable(&ftl);
        if ftl.gc_step(Time::ZERO, DIE) == GcStep::Started {
            if ftl.stats().gc.wear_moves > moves {
                let victim = |&block: &BlockId| ftl.blocks().state(block) == BlockState::Collected;
                let victim = closed.into_iter().find(victim).expect("a move begins with a victim");
                moved.extend(lpns_in(&ftl, victim).map(|lpn| (lpn, victim)));
                erases_before[victim.index()] = ftl.medium().erases(victim);
            }
            end(&mut ftl);
            moved.retain(|&lpn, &mut from| {
                let block = block_of(&ftl, lpn);
                if block != from && ftl.blocks().stream(block) == LEVEL {
                    let (was, is) = (erases_before[from.index()], ftl.medium().erases(block));
                    assert!(is >= was + SPREAD, "moved from {was} erases to {is}");
                }
                block == from
            });
        }
    }
    ftl.check().unwrap();
    ftl
}

fn erases(ftl: &Ftl<Nothing>) -> Vec<u32> {
    (0..BLOCKS).map(|block| ftl.medium().erases(BlockId(block))).collect()
}

#[test]
fn no_block_is_worn_far_ahead_of_another() {
    let levelling =
        || LevelConfig::LeastWorn(LeastWorn { spread: NonZeroU32::new(SPREAD).unwrap() });
    for seed in 1..=3 {
        for strays in [false, true] {
            let ftl = work(levelling(), seed, strays);
            let of = erases(&ftl);
            let (least, most) = (*of.iter().min().unwrap(), *of.iter().max().unwrap());
            let gc = ftl.stats().gc;
            assert!(most - least <= SPREAD + 2, "{of:?}");
            assert!(4 * gc.wear_moves < gc.collections, "{gc:?}");
        }
    }
}

/// The most steps of collection before a page of the host's, over many of them. `None` if the host waits for ever.
fn longest_wait(units: u32, seed: u64) -> Option<u32> {
    let nand = leyden_nand::Config {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_plane: 16,
        pages_per_block: 24,
        page_size: Bytes::new(4 << 10),
        ..leyden_nand::Config::default()
    };
    let capacity = Some(Bytes::new(u64::from(units) * 4096));
    let mut config = Config { capacity, ..Config::default() };
    config.gc.levelling = LevelConfig::LeastWorn(LeastWorn { spread: NonZeroU32::MIN });
    (config.gc.soft_free_blocks, config.gc.hard_free_blocks) = (5, 2);
    let geometry = nand.geometry(config.mapping_unit).unwrap();
    let mut ftl = Ftl::<Nothing>::new(&config, &nand, geometry, 1, Durability::default()).unwrap();
    ftl.set_untimed(true);
    let (mut rng, mut longest) = (Rng::new(seed, "levelling"), 0);
    for written in 0..4_000 {
        let mut steps = 0;
        while ftl.gc_goes_first(DIE) && ftl.gc_step(Time::ZERO, DIE) == GcStep::Started {
            end(&mut ftl);
            steps += 1;
            if steps > 20_000 {
                return None;
            }
        }
        longest = longest.max(steps);
        if !ftl.may_program(DIE, StreamId(0)) {
            return None;
        }
        let lpn = if written < units { written } else { rng.below(units.into()) as u32 };
        let unit = UserUnit { lpn: Lpn(lpn), content: Nothing, source: lpn };
        ftl.program(Time::ZERO, DIE, StreamId(0), std::iter::once(unit));
        end(&mut ftl);
    }
    ftl.check().unwrap();
    Some(longest)
}

/// A die with a spread of 1, on which moves that close a block with pages left would give up what collections gain: then the
/// host waits for more than 430 steps.
#[test]
fn moves_for_wear_leave_the_host_what_collections_gain() {
    for (units, seed) in [(200, 1), (215, 2), (230, 3), (245, 4)] {
        let wait = longest_wait(units, seed);
        assert!(wait.is_some_and(|steps| steps < 200), "{units} units, seed {seed}: {wait:?}");
    }
}
