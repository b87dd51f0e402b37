//! Hexa, figure 1: seven writes, and how often each schedule makes the mapping table be written.
//!
//! Four entries per mapping page, five mapping pages, m0 dirty, two pages protected. A write that
//! dirties a third page first writes back the least recently used dirty one.

use leyden_buffer::schedule::{ScheduleConfig, Shape};
use leyden_buffer::{Config, PoolKind, PoolSize, WriteBuffer, Written};
use leyden_nand::{Content, Lpn};
use serde::{Deserialize, Serialize};

const REQUESTS: [u32; 7] = [4, 17, 12, 2, 6, 18, 7];
const PROTECTED_PAGES: usize = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Nothing;

impl Content for Nothing {}

/// The order in which the writes leave the buffer, and the mapping pages written back.
fn play(policy: &str, batch_units: u32) -> (Vec<u32>, Vec<u32>) {
    let schedule = ScheduleConfig::by_name(policy).expect("a policy");
    let shape = Shape {
        slots: 8,
        mapping_pages: 5,
        entries_per_mapping_page: 4,
        batch_units,
        is_table_protected: false,
    };
    let pools = [PoolSize { slots: 8, threshold: 4, low: 4 }, PoolSize::default()];
    let mut buffer: WriteBuffer<Nothing> =
        WriteBuffer::new(&Config { schedule, ..Config::default() }, shape, &pools);
    // The least recently used page first.
    let mut dirty = vec![0];
    buffer.note_map_page(0, true);
    for lpn in REQUESTS {
        assert!(matches!(
            buffer.write(Lpn(lpn), Nothing, PoolKind::Protected),
            Written::Inserted(_)
        ));
    }

    let (mut order, mut written_back) = (Vec::new(), Vec::new());
    loop {
        let mut next = None;
        buffer.take_next(1, |slot, lpn| next = Some((slot, lpn)));
        let Some((slot, lpn)) = next else { break };
        order.push(lpn.0);
        buffer.start(slot);
        assert!(buffer.settle(slot).is_some());
        let page = lpn.0 / 4;
        if let Some(at) = dirty.iter().position(|&other| other == page) {
            dirty.remove(at);
        } else if dirty.len() == PROTECTED_PAGES {
            let least_recent = dirty.remove(0);
            written_back.push(least_recent);
            buffer.note_map_page(least_recent, false);
        }
        dirty.push(page);
        buffer.note_map_page(page, true);
    }
    (order, written_back)
}

#[test]
fn fifo_writes_five_mapping_pages_back() {
    let (order, written_back) = play("fifo", 1);
    assert_eq!(order, REQUESTS);
    assert_eq!(written_back, [0, 1, 4, 3, 0]);
}

#[test]
fn hexa_writes_two_back_whatever_the_batch() {
    for batch_units in 1..=8 {
        let (order, written_back) = play("hexa", batch_units);
        assert_eq!(order, [2, 4, 6, 7, 17, 18, 12], "batches of {batch_units}");
        assert_eq!(written_back, [0, 1], "batches of {batch_units}");
    }
}

#[test]
fn dawid_writes_two_back() {
    let (order, written_back) = play("dawid", 1);
    assert_eq!(order, [2, 4, 6, 7, 17, 18, 12]);
    assert_eq!(written_back, [0, 1]);
}
