//! A zoned namespace: every command in every state, over the wire.

use crate::host::*;
use crate::{BLOCK, Served, ZONE, ZONED, filled, source};

const OPEN: u32 = 3;
const CLOSE: u32 = 1;
const FINISH: u32 = 2;
const RESET: u32 = 4;
const OFFLINE: u32 = 5;
const ALL: u32 = 1 << 8;
const WITH_AREA: u32 = 1 << 9;

const EMPTY: u8 = 1;
const IMPLICIT: u8 = 2;
const EXPLICIT: u8 = 3;
const CLOSED: u8 = 4;
const FULL: u8 = 0xe;

/// State and write pointer, counted from the zone's first block.
fn state(io: &mut Queue, zone: u64) -> (u8, u64) {
    let report = Entry::new(0x7a, ZONED).u64(40, zone * ZONE).u32(48, 31).u32(52, 1 << 16);
    let data = io.ask(report, &[], 128).good().data;
    let at = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    assert_eq!((at(0), data[64], at(64 + 16)), (1, 2, zone * ZONE));
    (data[65] >> 4, at(64 + 24).wrapping_sub(zone * ZONE))
}

fn append(io: &mut Queue, zone: u64, data: &[u8]) -> Ended {
    let blocks = (data.len() / BLOCK) as u32;
    io.ask(Entry::blocks(0x7d, ZONED, zone * ZONE, blocks), data, 0)
}

/// Zone 0 in this state, by the shortest way.
fn bring(io: &mut Queue, wanted: u8) {
    io.zone(ZONED, 0, RESET | ALL).good();
    let block = filled(BLOCK, 1);
    match wanted {
        EMPTY => {}
        EXPLICIT => drop(io.zone(ZONED, 0, OPEN).good()),
        FULL => drop(io.zone(ZONED, 0, FINISH).good()),
        _ => drop(io.write(ZONED, 0, &block, BLOCK).good()),
    }
    if wanted == CLOSED {
        io.zone(ZONED, 0, CLOSE).good();
    }
    assert_eq!(state(io, 0).0, wanted);
}

/// ZNS 1.1, 2.1.1.3 and 3.4.3.1: by state, what each command makes of it, or its status.
#[test]
fn every_command_in_every_state_gives_the_tables_status() {
    type Cell = Result<u8, u16>;
    const NO: Cell = Err(0x41bf);
    let table: [(u8, [Cell; 5]); 5] = [
        //        Open         Close       Finish    Reset       Offline
        (EMPTY, [Ok(EXPLICIT), NO, Ok(FULL), Ok(EMPTY), NO]),
        (IMPLICIT, [Ok(EXPLICIT), Ok(CLOSED), Ok(FULL), Ok(EMPTY), NO]),
        (EXPLICIT, [Ok(EXPLICIT), Ok(CLOSED), Ok(FULL), Ok(EMPTY), NO]),
        (CLOSED, [Ok(EXPLICIT), Ok(CLOSED), Ok(FULL), Ok(EMPTY), NO]),
        (FULL, [NO, NO, Ok(FULL), Ok(EMPTY), NO]),
    ];
    let served = Served::new();
    let mut host = served.host(1, 0);
    let io = &mut host.io[0];
    for (from, cells) in table {
        for (action, cell) in [OPEN, CLOSE, FINISH, RESET, OFFLINE].into_iter().zip(cells) {
            bring(io, from);
            let status = io.zone(ZONED, 0, action).status;
            let after = state(io, 0).0;
            // An explicitly opened zone in which nothing was written is empty when it is closed.
            let closed_unwritten = from == EXPLICIT && action == CLOSE;
            match cell {
                Ok(to) if closed_unwritten => {
                    assert!(status == 0 && (after == to || after == EMPTY));
                }
                Ok(to) => assert_eq!((status, after), (0, to), "{from} {action}"),
                Err(refused) => assert_eq!((status, after), (refused, from), "{from} {action}"),
            }
        }
        bring(io, from);
        let at = u64::from(from == IMPLICIT || from == CLOSED);
        let written = io.write(ZONED, at, &filled(BLOCK, 2), BLOCK).status;
        assert_eq!(written, if from == FULL { 0x41b9 } else { 0 }, "{from}");
    }
}

#[test]
fn writes_and_appends_meet_the_write_pointer() {
    let served = Served::new();
    let mut host = served.host(1, 3);
    let io = &mut host.io[0];
    let data = filled(8 * BLOCK, 4);
    io.write(ZONED, 0, &data, BLOCK).good();
    assert_eq!(io.write(ZONED, 0, &data, BLOCK).status, 0x41bc, "not at the write pointer");
    assert_eq!(append(io, 0, &data[..BLOCK]).good().result, 8, "where it was written");
    assert_eq!(append(io, 1, &data).good().result, ZONE);
    assert_eq!(io.ask(Entry::blocks(0x7d, ZONED, 3, 1), &data[..BLOCK], 0).status, 0x4002);
    assert_eq!(state(io, 0), (IMPLICIT, 9));
    assert_eq!(io.read(ZONED, 0, 8, BLOCK).good().data, data);
    assert_eq!(io.read(ZONED, ZONE - 1, 2, BLOCK).status, 0x41b8, "across zones");
    assert_eq!(io.read(ZONED, 20, 1, BLOCK).good().data, [0; BLOCK], "above the write pointer");
    let rest = filled((ZONE as usize - 9) * BLOCK, 6);
    assert_eq!(append(io, 0, &[&rest[..], &data[..BLOCK]].concat()).status, 0x41b8);
    append(io, 0, &rest).good();
    assert_eq!(state(io, 0).0, FULL);
    assert_eq!(append(io, 0, &data[..BLOCK]).status, 0x41b9);
    // Three open, four active.
    io.zone(ZONED, 0, RESET | ALL).good();
    for zone in 0..3 {
        io.zone(ZONED, zone * ZONE, OPEN).good();
    }
    assert_eq!(io.zone(ZONED, 3 * ZONE, OPEN).status, 0x41be);
    for zone in 0..4 {
        io.write(ZONED, zone * ZONE, &data[..BLOCK], BLOCK);
        io.zone(ZONED, zone * ZONE, CLOSE);
    }
    io.write(ZONED, 3 * ZONE + 1, &data[..BLOCK], BLOCK).good();
    assert_eq!(io.write(ZONED, 4 * ZONE, &data[..BLOCK], BLOCK).status, 0x41bd);
}

#[test]
fn a_copy_is_a_write_of_its_target_zone() {
    let served = Served::new();
    let mut host = served.host(1, 3);
    let io = &mut host.io[0];
    let data = filled(8 * BLOCK, 4);
    io.write(ZONED, 0, &data, BLOCK).good();
    let copy = Entry::new(0x19, ZONED).u64(40, ZONE).u32(48, 1);
    let ranges = [source(4, 4), source(0, 1)].concat();
    io.ask(copy, &ranges, 0).good();
    assert_eq!(state(io, 1), (IMPLICIT, 5));
    let copied = [&data[4 * BLOCK..], &data[..BLOCK]].concat();
    assert_eq!(io.read(ZONED, ZONE, 5, BLOCK).good().data, copied);
    assert_eq!(io.ask(copy, &ranges, 0).status, 0x41bc, "not at the write pointer");
    assert_eq!(state(io, 1), (IMPLICIT, 5));
}

#[test]
fn an_area_takes_writes_in_any_order_and_is_committed() {
    let served = Served::new();
    let mut host = served.host(1, 0);
    let io = &mut host.io[0];
    let page = host.admin.identify(5, ZONED, 2).good().data;
    assert_eq!((page[2] & 2, page[44], page[50], page[52]), (2, 2, 8, 1));
    io.zone(ZONED, 0, OPEN | WITH_AREA).good();
    let (a, b) = (filled(BLOCK, 1), filled(BLOCK, 2));
    io.write(ZONED, 5, &a, BLOCK).good();
    io.write(ZONED, 1, &b, BLOCK).good();
    io.write(ZONED, 5, &b, BLOCK).good();
    assert_eq!(state(io, 0), (EXPLICIT, 0));
    assert_eq!(append(io, 0, &a).status, 0x41b6);
    io.zone(ZONED, 5, 0x11).good();
    assert_eq!(state(io, 0), (EXPLICIT, 6));
    assert_eq!(io.read(ZONED, 5, 1, BLOCK).good().data, b);
    assert_eq!(io.zone(ZONED, 3, 0x11).status, 0x41b6, "committed already");
}

#[test]
fn the_plp_bit_reaches_the_drive() {
    let served = Served::with(crate::Options {
        cut: leyden_serve::CutMode::Error,
        ..crate::Options::default()
    });
    let mut host = served.host(1, 0);
    let io = &mut host.io[0];
    let data = filled(BLOCK, 8);
    io.ask(Entry::blocks(1, ZONED, 0, 1).u32(12, 1), &data, 0).good();
    io.write(ZONED, ZONE, &data, BLOCK).good();
    let refused = io.ask(Entry::blocks(1, crate::PLAIN, 0, 1).u32(12, 1), &data, 0);
    assert_eq!(refused.status, 0x4002, "a drive that protects nothing");
    served.cut(ZONED);
    served.restore(ZONED);
    assert_eq!(io.read(ZONED, 0, 1, BLOCK).good().data, data, "acknowledged with the bit");
    assert_eq!(state(io, 0), (CLOSED, 1));
    assert_eq!(state(io, 1), (EMPTY, 0), "and without");
}

#[test]
fn reports_filter_count_and_go_on() {
    let served = Served::new();
    let mut host = served.host(1, 0);
    let io = &mut host.io[0];
    io.zone(ZONED, 2 * ZONE, FINISH).good();
    io.zone(ZONED, 5 * ZONE, FINISH).good();
    let mut report = |start: u64, bytes: usize, option: u32| {
        let entry = Entry::new(0x7a, ZONED).u64(40, start).u32(48, bytes as u32 / 4 - 1);
        let data = io.ask(entry.u32(52, option), &[], bytes).good().data;
        assert_eq!(data.len(), bytes);
        (u64::from_le_bytes(data[..8].try_into().unwrap()), data)
    };
    let (all, _) = report(0, 64, 0);
    let page = host.admin.identify(0, ZONED, 0).good().data;
    assert_eq!(all * ZONE, u64::from_le_bytes(page[..8].try_into().unwrap()));
    let (count, data) = report(0, 4_096, 5 << 8);
    assert_eq!(count, 2);
    assert_eq!(data[64 + 16..64 + 24], (2 * ZONE).to_le_bytes());
    assert_eq!(data[128 + 16..128 + 24], (5 * ZONE).to_le_bytes());
    assert_eq!(report(3 * ZONE + 7, 4_096, 5 << 8).0, 1, "from a block within a zone on");
    assert_eq!(report(0, 64 * 4, 1 << 16).0, 3, "partial: those that there was room for");
    assert_eq!(io.ask(Entry::new(0x7a, ZONED).u32(48, 14), &[], 60).status, 0x4002);
}
