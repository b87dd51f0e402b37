//! Garbage collection comes to rest, and leaves the host what the drive has promised.

mod support;

use leyden_ftl::Config;
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::page_mapped::{Ftl, GcStep, UserUnit};
use leyden_ftl::place::StreamId;
use leyden_nand::{DieId, Lpn};
use leyden_sim::{Bytes, Time};
use support::{Nothing, end};

/// Blocks of `pages` pages of four units.
fn ftl(dies: u32, blocks: u32, pages: u32, units: u64, victim: &str) -> Ftl<Nothing> {
    let nand = leyden_nand::Config {
        channels: 1,
        dies_per_channel: dies,
        blocks_per_plane: blocks,
        pages_per_block: pages,
        page_size: Bytes::new(16 << 10),
        ..leyden_nand::Config::default()
    };
    let mut config = Config { capacity: Some(Bytes::new(units * 4096)), ..Config::default() };
    config.gc.victim = VictimConfig::by_name(victim).unwrap();
    let geometry = nand.geometry(config.mapping_unit).unwrap();
    let mut ftl =
        Ftl::new(&config, &nand, geometry, 1, leyden_ftl::page_mapped::Durability::default())
            .unwrap();
    ftl.set_untimed(true);
    ftl
}

/// Collects on die 0 until there is nothing more to do.
fn collect(ftl: &mut Ftl<Nothing>) {
    for _ in 0..10_000 {
        if ftl.gc_step(Time::ZERO, DieId(0)) == GcStep::Nothing {
            ftl.check().unwrap();
            return;
        }
        end(ftl);
    }
    panic!("the collection never comes to rest");
}

/// Writes a page of `lpns` to die 0, if it may.
fn write(ftl: &mut Ftl<Nothing>, lpns: impl Iterator<Item = u32>) -> bool {
    if !ftl.may_program(DieId(0), StreamId(0)) {
        return false;
    }
    let units: Vec<_> =
        lpns.map(|lpn| UserUnit { lpn: Lpn(lpn), content: Nothing, source: lpn }).collect();
    ftl.program(Time::ZERO, DieId(0), StreamId(0), units.into_iter());
    end(ftl);
    true
}

/// More than a block of garbage in all, but so little of it in each block that going round would
/// only move it, padding the last page of each victim.
#[test]
fn garbage_that_cannot_be_gathered_is_left_alone() {
    for victim in VictimConfig::POLICIES {
        // The other die's share of the promise lets this one be filled up.
        let mut ftl = ftl(2, 14, 2, 119, victim.name);
        let mut lpn = 0;
        for _ in 0..13 {
            assert!(write(&mut ftl, lpn..lpn + 4) && write(&mut ftl, lpn + 4..lpn + 7));
            lpn += 7;
        }
        assert_eq!(ftl.blocks().free(DieId(0)), 1);
        assert!(!write(&mut ftl, lpn..lpn + 4), "the last free block is not the host's");
        collect(&mut ftl);
    }
}

/// Two victims were emptied, but for a unit each that wait for a page to be full; all other blocks
/// are full of valid data. Those two blocks are owed to the host.
#[test]
fn blocks_that_wait_for_a_full_page_are_not_lost_to_the_host() {
    // 8 x 29 - 1 is the most that is possible.
    let mut ftl = ftl(1, 10, 8, 231, "greedy");
    let block = |ftl: &mut Ftl<Nothing>, first: u32| {
        (first..first + 32).step_by(4).all(|lpn| write(ftl, lpn..lpn + 4))
    };
    for first in (0..256).step_by(32).take(7) {
        assert!(block(&mut ftl, first));
    }
    // Leaves one unit valid in each of the first two blocks.
    for first in [0, 32] {
        for lpn in first..first + 31 {
            ftl.trim(Time::ZERO, Lpn(lpn));
        }
    }
    // All that was trimmed, and what was never written: as much as the drive has promised.
    let lpns: Vec<u32> = (0..31).chain(32..63).chain(224..230).collect();
    for page in lpns.chunks(4) {
        assert!(write(&mut ftl, page.iter().copied()), "no room for {page:?}");
        collect(&mut ftl);
    }
    assert_eq!(ftl.map().mapped(), 230);
}

/// The host shares the open block of a collection, but leaves it the pages that the victim needs.
#[test]
fn the_host_leaves_a_collection_its_pages() {
    let mut ftl = ftl(1, 10, 8, 231, "greedy");
    for page in 0..9 * 8 {
        assert!(write(&mut ftl, page * 3..page * 3 + 3));
    }
    while ftl.blocks().free(DieId(0)) > 0 {
        assert_eq!(ftl.gc_step(Time::ZERO, DieId(0)), GcStep::Started);
        end(&mut ftl);
    }
    while write(&mut ftl, 216..220) {}
    collect(&mut ftl);
    assert!(ftl.blocks().free(DieId(0)) > 0, "the victim was erased");
}
