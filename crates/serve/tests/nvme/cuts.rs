//! Power cuts as hosts see them, in each of the ways that a server can be told.

use std::time::Duration;

use leyden_buffer::Region;
use leyden_serve::{CutMode, Pace};

use crate::host::*;
use crate::{BLOCK, NAME, Options, PLAIN, Served, ZONED, filled, until};

fn served(cut: CutMode) -> Served {
    Served::with(Options { cut, ..Options::default() })
}

/// Slow enough for commands to be under way when the power fails.
fn slow(cut: CutMode) -> Served {
    let (region, pace) = (Region::None, Pace::Times(0.001));
    Served::with(Options { cut, region, pace, ..Options::default() })
}

fn under_way(served: &Served, io: &mut Queue) -> Vec<u16> {
    let data = filled(BLOCK, 1);
    let fua = |at: u64| Entry::blocks(1, PLAIN, at, 1).u32(48, 1 << 30);
    let sent = (0..8).map(|at| io.send(fua(at), &data, 0)).collect();
    until(|| served.pending(PLAIN) == 8);
    sent
}

#[test]
fn a_box_without_power_drops_its_connections_and_takes_none() {
    let served = slow(CutMode::Lost);
    let mut host = served.host(2, 0);
    under_way(&served, &mut host.io[0]);
    served.cut(PLAIN);
    assert!(host.io[0].next_end().is_none(), "commands under way never end");
    assert!(host.io[1].next_end().is_none() && host.admin.next_end().is_none(), "nor do others");
    // The other drive has power: its host may come back, and finds this one not ready.
    let mut host = served.host(1, 0);
    assert_eq!(host.io[0].read(PLAIN, 0, 1, BLOCK).status, 0x0082, "it may try again");
    host.io[0].read(ZONED, 0, 1, BLOCK).good();
    served.cut(ZONED);
    assert!(host.io[0].next_end().is_none());
    assert!(Queue::try_open(served.at(), 0).is_err(), "a box without power");
    served.restore(ZONED);
    served.restore(PLAIN);
    let mut host = served.host(1, 0);
    host.io[0].read(PLAIN, 0, 1, BLOCK).good();
    let health = host.admin.log(2, PLAIN, 512, 0).good().data;
    assert_eq!((health[112], health[144]), (2, 1), "an unsafe shutdown");
}

#[test]
fn what_was_flushed_is_there_again_and_the_namespaces_are_the_same() {
    for cut in [CutMode::Lost, CutMode::Error, CutMode::Hang, CutMode::Dead] {
        let served = served(cut);
        let mut host = served.host(1, 0);
        let (old, new) = (filled(16 * BLOCK, 1), filled(16 * BLOCK, 2));
        host.io[0].write(PLAIN, 0, &old, BLOCK).good();
        host.io[0].flush(PLAIN).good();
        host.io[0].write(PLAIN, 0, &new, BLOCK).good();
        let name = host.admin.identify(3, PLAIN, 0).good().data;
        served.cut(PLAIN);
        served.restore(PLAIN);
        drop(host);
        let mut host = served.host(1, 0);
        assert_eq!(host.admin.identify(3, PLAIN, 0).good().data, name);
        let read = host.io[0].read(PLAIN, 0, 16, BLOCK).good().data;
        for (at, block) in read.chunks(BLOCK).enumerate() {
            let either = [&old, &new].map(|it| &it[at * BLOCK..(at + 1) * BLOCK]);
            assert!(either.contains(&block), "{cut:?}: block {at}");
        }
        assert_eq!(read, old, "no capacitor protects what was not flushed");
    }
}

/// FLUSH of one namespace and of all, force unit access of writes and of zeroes.
#[test]
fn what_was_flushed_or_forced_out_is_there_after_a_cut() {
    let served = served(CutMode::Error);
    let mut host = served.host(2, 0);
    let data = |seed: u64| filled(BLOCK, seed);
    for at in 0..6 {
        host.io[0].write(PLAIN, at, &data(at), BLOCK).good();
    }
    host.io[0].flush(PLAIN).good();
    host.io[0].write(PLAIN, 0, &data(10), BLOCK).good();
    host.io[0].write(ZONED, 0, &data(11), BLOCK).good();
    host.io[1].flush(u32::MAX).good(); // of all, and what another queue has written
    let forced = |opcode: u8, at: u64| Entry::blocks(opcode, PLAIN, at, 1).u32(48, 1 << 30);
    host.io[0].ask(forced(1, 1), &data(12), BLOCK).good();
    host.io[0].ask(forced(8, 2), &[], 0).good();
    // Not promised.
    host.io[0].write(PLAIN, 3, &data(13), BLOCK).good();
    for nsid in [PLAIN, ZONED] {
        served.cut(nsid);
        served.restore(nsid);
    }
    let io = &mut host.io[0];
    let zeroes = vec![0; BLOCK];
    for (at, expected) in [data(10), data(12), zeroes, data(3), data(4), data(5)].iter().enumerate()
    {
        assert!(io.read(PLAIN, at as u64, 1, BLOCK).good().data == *expected, "block {at}");
    }
    assert!(io.read(ZONED, 0, 1, BLOCK).good().data == data(11));
}

#[test]
fn commands_that_never_end_do_not_end_after_the_power_returns_either() {
    let served = slow(CutMode::Hang);
    let mut host = served.host(1, 0);
    under_way(&served, &mut host.io[0]);
    served.cut(PLAIN);
    let late = host.io[0].send(Entry::blocks(2, PLAIN, 0, 1), &[], BLOCK);
    // The controller and the other drive go on.
    host.admin.identify(1, 0, 0).good();
    host.io[0].ask(Entry::blocks(2, ZONED, 0, 1), &[], BLOCK).good();
    served.restore(PLAIN);
    let ended = host.io[0].ask(Entry::blocks(2, PLAIN, 0, 1), &[], BLOCK).good();
    assert_ne!(ended.cid, late, "what was asked without power has no end");
    host.io[0].stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut byte = [0];
    assert!(std::io::Read::read(&mut host.io[0].stream, &mut byte).is_err(), "nothing more comes");
}

#[test]
fn a_device_that_was_pulled_out_reads_as_all_ones() {
    let served = served(CutMode::Dead);
    let mut host = served.host(1, 0);
    served.cut(PLAIN);
    assert_eq!(host.admin.property(0x1c, false).good().result, 1, "half of it is there");
    served.cut(ZONED);
    assert_eq!(host.admin.property(0x1c, false).good().result, u64::from(u32::MAX));
    assert_eq!(host.admin.property(0, true).good().result, u64::MAX);
    let mut again = Queue::open(served.at(), 0);
    again.connect(&Connect::admin(NAME)).good();
    assert_eq!(again.property(0x1c, false).good().result, u64::from(u32::MAX));
    served.restore(PLAIN);
    assert_eq!(host.admin.property(0x1c, false).good().result, 1);
}

#[test]
fn commands_can_end_with_what_has_happened_to_them() {
    let served = slow(CutMode::Error);
    let mut host = served.host(1, 0);
    host.admin.ask(Entry::new(9, 0).u32(40, 0x0b).u32(44, 1 << 8), &[], 0).good();
    let event = host.admin.send(Entry::new(0xc, 0), &[], 0);
    let sent = under_way(&served, &mut host.io[0]);
    served.cut(PLAIN);
    for _ in &sent {
        let ended = host.io[0].next_end().unwrap();
        assert_eq!(ended.status, 0x0005, "aborted due to power loss, and may be tried again");
        assert!(sent.contains(&ended.cid));
    }
    assert_eq!(host.io[0].read(PLAIN, 0, 1, BLOCK).status, 0x0082);
    let told = host.admin.next_end().unwrap();
    assert_eq!((told.cid, told.result), (event, 0x0004_0002), "a namespace has changed");
    assert_eq!(host.admin.log(2, PLAIN, 512, 0).status, 0x0082, "nobody knows how it is");
    assert_eq!(host.admin.log(4, u32::MAX, 4_096, 0).good().data[..4], [1, 0, 0, 0]);
    let event = host.admin.send(Entry::new(0xc, 0), &[], 0);
    served.restore(PLAIN);
    assert_eq!(host.admin.next_end().unwrap().cid, event, "it has changed again");
}
