//! The zone buffer against what its documentation says.

use leyden_nand::Content;
use leyden_sim::{Bytes, Ratio};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::PoolKind;
use crate::{Config, Region};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Number(u32);

const SHAPE: BufferShape = BufferShape { zones: 4, capacity: 64, page_units: 2 };

impl Content for Number {}

fn buffer(protected: u32, plain: u32) -> ZoneBuffer<Number> {
    let sizes = ZonePoolSizes { protected, plain, zrwa: 0 };
    ZoneBuffer::new(Ratio::from_percent(50), Ratio::ZERO, sizes, SHAPE)
}

#[test]
fn a_pool_is_drained_from_its_threshold_on() {
    let mut buffer = buffer(0, 8);
    (0..3).for_each(|n| buffer.push(1, PoolKind::Plain, Number(n)));
    assert_eq!(buffer.next_page(1), None, "three of eight are not half");
    buffer.push(2, PoolKind::Plain, Number(9));
    let page = buffer.next_page(1).unwrap();
    assert_eq!(page, NextPage { first: 0, units: 2 });
    assert_eq!(buffer.next_page(2), None, "half a page, and nobody waits");
    buffer.start(1, page);
    assert_eq!(buffer.next_page(1), None);
    assert!(buffer.force(2, 1) && buffer.force(1, 3));
    assert_eq!(buffer.next_page(2), Some(NextPage { first: 0, units: 1 }));
    assert_eq!(buffer.next_page(1), Some(NextPage { first: 2, units: 1 }));
    buffer.check().unwrap();
}

#[test]
fn a_zone_is_settled_prefix_by_prefix() {
    let mut buffer = buffer(0, 8);
    (0..6).for_each(|n| buffer.push(0, PoolKind::Plain, Number(n)));
    for _ in 0..3 {
        let page = buffer.next_page(0).unwrap();
        buffer.start(0, page);
        if page.first == 2 {
            break;
        }
    }
    assert!(!buffer.ended(0, 2, false), "what is below is not on flash");
    assert_eq!((buffer.settled(0), buffer.pool(PoolKind::Plain).used()), (0, 6));
    assert!(!buffer.ended(0, 0, true));
    let again = buffer.next_page(0).unwrap();
    assert_eq!(again, NextPage { first: 0, units: 2 });
    buffer.start(0, again);
    assert!(buffer.ended(0, 0, false));
    assert_eq!((buffer.settled(0), buffer.pool(PoolKind::Plain).used()), (4, 2));
    buffer.check().unwrap();
}

#[test]
fn what_is_below_a_protected_unit_is_protected() {
    let mut buffer = buffer(4, 8);
    (0..3).for_each(|n| buffer.push(0, PoolKind::Plain, Number(n)));
    assert_eq!((buffer.kept(0), buffer.unprotected(0)), (0, 3));
    assert!(buffer.promote(0));
    buffer.push(0, PoolKind::Protected, Number(3));
    buffer.push(0, PoolKind::Plain, Number(4));
    assert_eq!((buffer.kept(0), buffer.unprotected(0)), (4, 1));
    assert!(!buffer.promote(0), "the pool is full");
    let kept: Vec<u32> = buffer.kept_units(0).1.map(|number| number.0).collect();
    assert_eq!(kept, [0, 1, 2, 3]);
    buffer.discard(0);
    assert_eq!(buffer.stats().discarded_protected_units, 4);
    assert_eq!(buffer.stats().discarded_plain_units, 1);
    buffer.check().unwrap();
}

#[test]
fn an_area_slides_over_what_it_commits() {
    let sizes = ZonePoolSizes { protected: 8, plain: 0, zrwa: 4 };
    let mut buffer = ZoneBuffer::new(Ratio::from_percent(50), Ratio::ZERO, sizes, SHAPE);
    buffer.open_window(3, 4);
    assert_eq!(buffer.pool(PoolKind::Protected).room(), 4, "the area has its room");
    buffer.write_window(3, 0, Number(1));
    buffer.write_window(3, 2, Number(2));
    buffer.write_window(3, 0, Number(3));
    assert_eq!(buffer.read(3, 0, 0), Some(Number(3)));
    buffer.commit_window(3, 2);
    assert_eq!((buffer.read(3, 0, 2), buffer.read(3, 1, 2)), (Some(Number(3)), Some(Number(0))));
    assert_eq!((buffer.read(3, 2, 2), buffer.read(3, 3, 2)), (Some(Number(2)), None));
    assert_eq!(buffer.stats().overwritten_units, 1);
    buffer.discard(3);
    assert_eq!(buffer.pool(PoolKind::Protected).room(), 4);
    buffer.check().unwrap();
}

#[test]
fn pools_that_cannot_work_are_refused() {
    let config = |region, size: u64, protected: u64| Config {
        region,
        size: Bytes::new(size << 10),
        protected_size: Bytes::new(protected << 10),
        ..Config::default()
    };
    let pools = |config: &Config, active, zrwa| config.pools(4096, 4, active, zrwa, 1);
    let whole = config(Region::Full, 64, 0);
    assert_eq!(pools(&whole, 4, 0).unwrap(), ZonePoolSizes { protected: 16, plain: 0, zrwa: 0 });
    assert_eq!(pools(&whole, 5, 0).unwrap_err().key, "size");
    let halves = config(Region::Selective, 128, 64);
    assert_eq!(pools(&halves, 4, 0).unwrap(), ZonePoolSizes { protected: 16, plain: 16, zrwa: 0 });
    assert_eq!(pools(&halves, 4, 1).unwrap_err().key, "protected_size");
    assert_eq!(pools(&config(Region::Selective, 64, 64), 1, 0).unwrap_err().key, "protected_size");
    assert_eq!(pools(&config(Region::None, 64, 0), 1, 1).unwrap_err().key, "region");
}

/// Steps of the buffer, by zone: units pushed, programmed, and ended.
#[derive(Clone, Debug)]
enum Step {
    Push(u32, bool),
    Program(u32),
    End(u32, bool),
    Reset(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u32..4, any::<bool>()).prop_map(|(zone, plp)| Step::Push(zone, plp)),
        3 => (0_u32..4).prop_map(Step::Program),
        3 => (any::<u32>(), prop::bool::weighted(0.2)).prop_map(|(which, failed)| Step::End(which, failed)),
        1 => (0_u32..4).prop_map(Step::Reset),
    ]
}

proptest! {
    /// After any steps, a read finds the pushed units, and no zone is settled above a hole.
    #[test]
    fn nothing_is_lost_in_between(steps in proptest::collection::vec(step(), 1..120)) {
        let mut buffer = buffer(12, 12);
        let mut zones: Vec<Vec<u32>> = vec![Vec::new(); 4];
        let mut on_flash: Vec<Vec<bool>> = vec![Vec::new(); 4];
        let mut in_flight: Vec<(u32, NextPage)> = Vec::new();
        for (number, step) in (1..).zip(steps) {
            match step {
                Step::Push(zone, plp) => {
                    let kind = if plp { PoolKind::Protected } else { PoolKind::Plain };
                    let fits = buffer.end(zone) < 64
                        && (!plp || buffer.promote(zone))
                        && buffer.pool(kind).room() > 0;
                    if fits {
                        buffer.push(zone, kind, Number(number));
                        zones[zone as usize].push(number);
                        on_flash[zone as usize].push(false);
                    }
                }
                Step::Program(zone) => {
                    buffer.force(zone, buffer.end(zone));
                    if let Some(page) = buffer.next_page(zone) {
                        let units: Vec<u32> = buffer.units_of(zone, page).map(|it| it.0).collect();
                        let range = page.first as usize..(page.first + page.units) as usize;
                        prop_assert_eq!(&units[..], &zones[zone as usize][range]);
                        buffer.start(zone, page);
                        in_flight.push((zone, page));
                    }
                }
                Step::End(which, failed) if !in_flight.is_empty() => {
                    let (zone, page) = in_flight.swap_remove(which as usize % in_flight.len());
                    buffer.ended(zone, page.first, failed);
                    if !failed {
                        let range = page.first as usize..(page.first + page.units) as usize;
                        on_flash[zone as usize][range].fill(true);
                    }
                }
                Step::End(..) => {}
                Step::Reset(zone) => {
                    buffer.discard(zone);
                    zones[zone as usize].clear();
                    on_flash[zone as usize].clear();
                    in_flight.retain(|&(other, _)| other != zone);
                }
            }
            buffer.check().unwrap();
            for zone in 0..4 {
                let units = &zones[zone as usize];
                let prefix = on_flash[zone as usize].iter().take_while(|&&it| it).count() as u32;
                prop_assert_eq!(buffer.settled(zone), prefix);
                for (unit, &number) in (0..).zip(units) {
                    let found = buffer.read(zone, unit, units.len() as u32);
                    let expected = (unit >= prefix).then_some(Number(number));
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
