//! Blocks that do not keep what is programmed into them: a program in them has failed, they are worn, or bad.

use leyden_nand::{
    BlockId, BlockUse, Config, Content, FaultTarget, Geometry, Keeps, Lpn, Medium, MetaPage,
    Occasion, PageKind, Ppa,
};
use leyden_sim::{Bytes, Time};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Number(u64);

impl Content for Number {}

const DATA: BlockUse = BlockUse { kind: PageKind::Data, stream: 0 };

fn medium(change: impl FnOnce(&mut Config)) -> (Medium<Number>, Geometry) {
    let mut config = Config { channels: 1, dies_per_channel: 1, ..Config::default() };
    (config.blocks_per_plane, config.pages_per_block) = (4, 8);
    change(&mut config);
    let geometry = config.geometry(Bytes::new(8 << 10)).unwrap();
    (Medium::new(&config, geometry, 1, Keeps { meta: true, versions: false }), geometry)
}

/// Programs the next page of block 0; yields what is read of it then.
fn program(medium: &mut Medium<Number>) -> Option<u64> {
    let page = medium.next_page(BlockId(0)).unwrap();
    let unit = medium.geometry().first_unit(page);
    medium.write_units(unit, 0, std::iter::once((Lpn(7), Number(5))));
    medium.program(Time::ZERO, page, 1, DATA, 0);
    medium.next_outcome(Time::MAX).unwrap();
    read(medium, unit)
}

fn read(medium: &Medium<Number>, unit: Ppa) -> Option<u64> {
    medium.lpn(unit).map(|_| medium.content(unit).0)
}

fn erase(medium: &mut Medium<Number>) {
    medium.erase(Time::ZERO, BlockId(0));
    medium.next_outcome(Time::MAX).unwrap();
}

#[test]
fn a_block_in_which_a_program_failed_keeps_nothing_more() {
    let second = Occasion { what: FaultTarget::Data, nth: 2 };
    let (mut medium, geometry) = medium(|config| config.faults.occasions = vec![second]);
    assert_eq!([program(&mut medium), program(&mut medium)], [Some(5), None]);
    assert_eq!(program(&mut medium), None, "this program says that it has succeeded");
    assert_eq!(read(&medium, geometry.first_unit(geometry.page(BlockId(0), 0))), Some(5));
}

#[test]
fn a_worn_block_and_a_bad_one_keep_nothing() {
    let (mut worn, _) = medium(|config| config.endurance_cycles = 2);
    erase(&mut worn);
    assert_eq!(program(&mut worn), Some(5));
    erase(&mut worn);
    assert_eq!(program(&mut worn), None);
    let (mut bad, _) = medium(|_| ());
    assert_eq!(program(&mut bad), Some(5));
    bad.retire(BlockId(0));
    assert_eq!(program(&mut bad), None);
    let (mut laid, _) = medium(|config| config.endurance_cycles = 2);
    laid.lay_erases(BlockId(0), 1);
    assert_eq!(program(&mut laid), Some(5));
    laid.lay_erases(BlockId(0), 2);
    assert_eq!(program(&mut laid), None);
}

#[test]
fn a_block_whose_erase_was_broken_off_keeps_nothing_until_it_is_erased() {
    let (mut medium, _) = medium(|_| ());
    assert_eq!(program(&mut medium), Some(5));
    medium.erase(Time::ZERO, BlockId(0));
    let on_the_way: Vec<_> = medium.on_the_way().map(|it| (it, false)).collect();
    medium.cut_power(Time::ZERO, &on_the_way);
    assert_eq!(program(&mut medium), None);
    erase(&mut medium);
    assert_eq!(program(&mut medium), Some(5));
}

#[test]
fn a_block_that_was_saved_as_unsound_is_so_when_it_is_loaded() {
    let (mut saved, _) = medium(|_| ());
    saved.retire(BlockId(0));
    let bytes = serde_json::to_vec(&saved.state()).unwrap();
    let (mut loaded, _) = medium(|_| ());
    assert!(loaded.restore(serde_json::from_slice(&bytes).unwrap()));
    assert_eq!(loaded.bad_blocks(), 1);
    assert_eq!(program(&mut loaded), None);
}

#[test]
fn a_dump_goes_on_in_a_block_that_fails_and_not_in_a_worn_one() {
    let dumped = |medium: &mut Medium<Number>, page: u32| {
        let page = medium.geometry().page(BlockId(0), page);
        let unit = medium.geometry().first_unit(page);
        medium.write_units(unit, 0, std::iter::once((Lpn(7), Number(5))));
        let (kind, bytes) = (PageKind::Dump, Box::default());
        medium.program_dump(page, 1, MetaPage { kind, number: 0, sequence: 1, bytes });
        read(medium, unit).filter(|_| medium.meta_page(page).is_some())
    };
    let (mut failing, geometry) = medium(|_| ());
    failing.fail_dump(geometry.page(BlockId(0), 0));
    assert_eq!(dumped(&mut failing, 1), Some(5));
    let (mut worn, _) = medium(|config| config.endurance_cycles = 1);
    erase(&mut worn);
    assert_eq!(dumped(&mut worn, 0), None);
}
