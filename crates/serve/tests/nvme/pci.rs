//! Drives as a PCI function: data by pages of all kinds, queues, interrupts, events and power cuts.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use leyden_buffer::Region;
use leyden_serve::{CutMode, Limits, Pace};

use crate::host::{Entry, Queue};
use crate::machine::*;
use crate::{BLOCK, Options, PLAIN, Served, ZONED, filled};

#[test]
fn data_of_every_size_and_place_comes_back() {
    let served = Served::new();
    let mut machine = Machine::enabled(&served.socket(), 2, 64);
    // One page, two, a list, and a list that goes on in another.
    for (blocks, offset) in
        [(1, 0), (1, 512), (2, 0), (3, 0), (3, 4), (16, 0), (18, 8), (256, 4_092)]
    {
        let data = filled(blocks * BLOCK, blocks as u64 + offset);
        let at = (1, offset);
        let write = Entry::blocks(1, PLAIN, 3, blocks as u32);
        machine.ask_at(at, write, &data, 0).good();
        let read = Entry::blocks(2, PLAIN, 3, blocks as u32);
        let back = machine.ask_at((2, offset), read, &[], data.len()).good().data;
        assert!(back == data, "{blocks} blocks at {offset}");
        machine.flush(2, PLAIN).good();
    }
}

#[test]
fn a_driver_finds_what_linux_looks_for() {
    let served = Served::new();
    let mut machine = Machine::new(&served.socket());
    let client = &mut machine.client;
    let info = client.ask(4, &words(&[16, 0, 0, 0]), &[]).unwrap();
    assert_eq!(info, words(&[16, 3, 9, 5]));
    let region = |client: &mut Client, index| {
        client.ask(5, &words(&[32, 0, index, 0, 0, 0, 0, 0]), &[]).unwrap()
    };
    assert_eq!(region(client, 0)[16..20], words(&[16 << 10]));
    assert_eq!(region(client, 7)[16..20], words(&[256]));
    assert_eq!(region(client, 1)[16..20], words(&[0]));
    let vectors = client.ask(7, &words(&[16, 0, 2, 0]), &[]).unwrap();
    assert_eq!(vectors, words(&[16, 9, 2, 17]));
    assert_eq!(client.read(7, 8, 4)[1..], [2, 8, 1], "the class");
    machine.enable(1, 64);
    let page = machine.identify(1, 0, 0).good().data;
    assert_eq!((page[77], page[536], page[111], page[512]), (8, 0, 1, 0x66), "PRPs only");
    // Linux would hold the commands of a drive that is gone until it is removed.
    assert_eq!((page[76], machine.identify(0, PLAIN, 0).good().data[30]), (0, 0), "no other path");
    assert_eq!(machine.identify(2, 0, 0).good().data[..12], words(&[1, 2, 0]));
    for nsid in [PLAIN, ZONED] {
        let set = if nsid == ZONED { 2 } else { 0 };
        assert_eq!(machine.identify(3, nsid, 0).good().data[24], set as u8);
        assert_eq!(machine.identify(0, nsid, 0).good().data[130], 12);
        machine.identify(5, nsid, set).good();
    }
    let log = |page: u32, bytes: u32| Entry::new(2, u32::MAX).u32(40, page | (bytes / 4 - 1) << 16);
    let health = machine.ask(0, log(2, 512), &[], 512).good().data;
    assert_eq!((health[3], health[112]), (100, 1));
    let effects = machine.ask(0, log(5, 4_096), &[], 4_096).good().data;
    assert_eq!([effects[0], effects[4], effects[16], effects[20]], [1; 4], "queues are made");
    let queues = machine.raw(0, Entry::new(9, 0).u32(40, 7).u32(44, 0x000f_000f)).good();
    assert_eq!(queues.result, 0x000f_000f);
    let other = machine.ask(0, Entry::new(9, 0).u32(40, 0x16), &[1; 512], 0).good();
    assert_eq!(other.result, 0);
    let set = machine.ask(0, Entry::new(10, 0).u32(40, 0x16), &[], 512).good().data;
    assert_eq!(set, [1; 512]);
}

#[test]
fn the_same_drives_are_there_over_tcp_and_as_a_function() {
    let served = Served::new();
    let mut host = served.host(1, 0);
    let mut machine = Machine::enabled(&served.socket(), 1, 64);
    let data = filled(4 * BLOCK, 7);
    host.io[0].write(PLAIN, 9, &data, BLOCK).good();
    assert_eq!(machine.read(1, PLAIN, 9, 4).good().data, data);
    let append = Entry::blocks(0x7d, ZONED, 0, 2);
    let place = machine.ask(1, append, &data[..2 * BLOCK], 0).good().result;
    assert_eq!(place, 0);
    assert_eq!(host.io[0].read(ZONED, 0, 2, BLOCK).good().data, data[..2 * BLOCK]);
    let report = Entry::new(0x7a, ZONED).u32(48, 1_023);
    let zones = machine.ask(1, report, &[], 4_096).good().data;
    assert_eq!(zones[64 + 24..64 + 32], 2_u64.to_le_bytes(), "the write pointer");
    let guid = |page: Vec<u8>| page[104..120].to_vec();
    let there = guid(host.admin.identify(0, PLAIN, 0).good().data);
    assert_eq!(guid(machine.identify(0, PLAIN, 0).good().data), there);
}

#[test]
fn each_command_of_the_nvm_set_does_what_it_says() {
    let served = Served::new();
    let mut machine = Machine::enabled(&served.socket(), 1, 64);
    let data = filled(8 * BLOCK, 5);
    machine.write(1, PLAIN, 0, &data).good();
    machine.ask(1, Entry::blocks(5, PLAIN, 0, 8), &data, 0).good();
    let mut other = data.clone();
    other[5 * BLOCK] ^= 1;
    assert_eq!(machine.ask(1, Entry::blocks(5, PLAIN, 0, 8), &other, 0).status, 0x4285);
    machine.raw(1, Entry::blocks(0xc, PLAIN, 0, 8)).good();
    machine.raw(1, Entry::blocks(8, PLAIN, 1, 2)).good();
    let mut now = data;
    now[BLOCK..3 * BLOCK].fill(0);
    let ranges = words(&[0, 1, 4, 0, 0, 2, 6, 0]);
    machine.ask(1, Entry::new(9, PLAIN).u32(40, 1).u32(44, 4), &ranges, 0).good();
    now[4 * BLOCK..5 * BLOCK].fill(0);
    now[6 * BLOCK..].fill(0);
    assert!(machine.read(1, PLAIN, 0, 8).good().data == now);
    machine.flush(1, u32::MAX).good();
    let status = |machine: &mut Machine, entry: Entry| machine.raw(1, entry).status;
    assert_eq!(status(&mut machine, Entry::blocks(4, PLAIN, 0, 1)), 0x4001);
    assert_eq!(status(&mut machine, Entry::blocks(2, PLAIN, 1 << 40, 1)), 0x4080);
    assert_eq!(status(&mut machine, Entry::blocks(2, 3, 0, 1)), 0x400b);
    let mut sgl = Entry::blocks(2, PLAIN, 0, 1);
    sgl.0[1] = 0x80; // an SGL segment
    assert_eq!(status(&mut machine, sgl), 0x4002);
    let errors = Entry::new(2, u32::MAX).u32(40, 1 | 15 << 16);
    let errors = machine.ask(0, errors, &[], 64).good().data;
    assert_eq!((errors[0], errors[8]), (5, 1), "five commands of queue 1 have failed");
}

#[test]
fn queues_of_every_size_are_filled_and_each_command_ends_once() {
    let served = Served::new();
    let mut machine = Machine::enabled(&served.socket(), 0, 64);
    for (queue, size) in [(1, 2), (2, 16), (3, 1_024)] {
        machine.add(queue, size).good();
        let write = machine.with_pages(Entry::blocks(1, PLAIN, 0, 1), 0, BLOCK);
        for _ in 0..2 {
            let mut sent: Vec<u16> = (1..size)
                .map(|at| machine.submit(queue, write.u64(40, u64::from(at) % 300)))
                .collect();
            while !sent.is_empty() {
                let ended = machine.next_end(queue).good();
                let at = sent.iter().position(|cid| *cid == ended.cid).expect("once, and ours");
                sent.swap_remove(at);
            }
        }
        assert!(machine.poll(queue).is_none());
    }
}

#[test]
fn completions_that_find_no_room_wait_for_it() {
    let served = Served::new();
    let mut machine = Machine::enabled(&served.socket(), 1, 64);
    // Queue 2 has 64 entries, and completions have room for three at a time.
    let make = |opcode, queue: u64, size: u32, cdw11| {
        let base = if opcode == 5 { completions(2) } else { submissions(2) };
        Entry::new(opcode, 0).u64(24, base).u32(40, queue as u32 | (size - 1) << 16).u32(44, cdw11)
    };
    machine.raw(0, make(5, 2, 4, 3 | 2 << 16)).good();
    machine.raw(0, make(1, 2, 64, 1 | 2 << 16)).good();
    machine.put(completions(2), &[0; 64]);
    for at in 1..=63_u8 {
        machine.put(submissions(2) + u64::from(at - 1) * 64, &{
            let mut entry = Entry::new(0, PLAIN).u16(2, at.into());
            entry.0[1] = 0;
            entry.0
        });
    }
    machine.client.set(0x1010, 63);
    let (mut head, mut phase, mut seen) = (0_u64, 1, Vec::new());
    while seen.len() < 63 {
        let entry = machine.get(completions(2) + head * 16, 16);
        if entry[14] & 1 != phase {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        seen.push(entry[12]);
        head = (head + 1) % 4;
        phase = if head == 0 { 1 - phase } else { phase };
        machine.client.set(0x1014, head as u32);
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=63).collect::<Vec<u8>>());
    machine.flush(1, PLAIN).good();
}

#[test]
fn interrupts_come_with_completions_at_the_vector_of_their_queue() {
    let served = Served::new();
    let mut machine = Machine::enabled(&served.socket(), 2, 64);
    machine.flush(2, PLAIN).good();
    let mut count = [0; 8];
    machine.vectors[2].read_exact(&mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), 1);
    let fire = words(&[20, 0x21, 2, 1, 1]);
    machine.client.ask(SET_IRQS, &fire, &[]).unwrap();
    machine.vectors[1].read_exact(&mut count).unwrap();
    // Without vectors completions come all the same.
    machine.client.ask(SET_IRQS, &words(&[20, 0x21, 2, 0, 0]), &[]).unwrap();
    machine.flush(2, PLAIN).good();
    let mut rest = Vec::new();
    machine.vectors[2].read_to_end(&mut rest).unwrap();
    assert_eq!(rest, [0; 0], "the other end was closed, and nothing more has come");
}

#[test]
fn large_commands_in_any_number_share_what_room_there_is() {
    let limits = Limits::new(64 << 20, 16).unwrap();
    let served = Served::with(Options { limits, ..Options::default() });
    let mut machine = Machine::enabled(&served.socket(), 1, 1_024);
    let mut other = Machine::enabled(&served.socket(), 1, 64);
    let data = filled(1 << 20, 9);
    machine.write(1, PLAIN, 0, &data).good();
    // 200 MiB are asked for at once, while another client writes.
    let write = machine.with_pages(Entry::blocks(1, PLAIN, 0, 256), 0, 1 << 20);
    let sent: Vec<u16> = (0..200).map(|_| machine.submit(1, write)).collect();
    for at in 0..40 {
        let small = filled(BLOCK, at);
        other.write(1, PLAIN, 600 + at, &small).good();
        assert_eq!(other.read(1, PLAIN, 600 + at, 1).good().data, small);
    }
    for _ in &sent {
        machine.next_end(1).good();
    }
    assert!(machine.read(1, PLAIN, 0, 256).good().data == data);
}

#[test]
fn a_reset_forgets_commands_under_way() {
    for by_message in [false, true] {
        let pace = Pace::Times(0.001);
        let served = Served::with(Options { pace, ..Options::default() });
        let mut machine = Machine::enabled(&served.socket(), 1, 64);
        let fua = machine.with_pages(Entry::blocks(1, PLAIN, 0, 1).u32(48, 1 << 30), 0, BLOCK);
        machine.submit(1, fua);
        crate::until(|| served.pending(PLAIN) == 1);
        if by_message {
            machine.client.ask(RESET, &[], &[]).unwrap();
        } else {
            machine.client.set(0x14, 0x0046_0000);
        }
        assert_eq!(machine.client.register(CSTS), 0);
        machine.put(completions(1), &[0; 64]);
        machine.enable(1, 64);
        crate::until(|| served.pending(PLAIN) == 0);
        machine.flush(1, PLAIN).good();
    }
}

#[test]
fn the_socket_is_its_owners() {
    let served = Served::new();
    let mode = std::fs::metadata(served.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

fn served(cut: CutMode) -> Served {
    Served::with(Options { cut, ..Options::default() })
}

#[test]
fn a_function_without_power_is_gone_and_comes_back_without_queues() {
    for cut in [CutMode::Lost, CutMode::Dead] {
        let served = served(cut);
        let mut machine = Machine::enabled(&served.socket(), 1, 64);
        let (old, new) = (filled(16 * BLOCK, 1), filled(16 * BLOCK, 2));
        machine.write(1, PLAIN, 0, &old).good();
        machine.flush(1, PLAIN).good();
        machine.write(1, PLAIN, 0, &new).good();
        let name = machine.identify(3, PLAIN, 0).good().data;
        served.cut(PLAIN);
        served.cut(ZONED);
        assert_eq!(machine.client.register(CSTS), u32::MAX, "{cut:?}");
        assert_eq!(machine.client.read(0, 0, 8), [0xff; 8]);
        assert_eq!(machine.client.read(7, 0, 4), [0xff; 4]);
        let read = machine.with_pages(Entry::blocks(2, PLAIN, 0, 1), 0, BLOCK);
        machine.submit(1, read);
        machine.client.set(0x14, 0);
        std::thread::sleep(Duration::from_millis(100));
        assert!(machine.poll(1).is_none(), "nothing ends");
        // Its memory comes and goes all the same, and a new client finds it gone, too.
        machine.client.unmap(0, MEMORY).unwrap();
        let memory = machine.memory.try_clone().unwrap();
        machine.client.map(0, MEMORY, Some(&memory)).unwrap();
        assert_eq!(Machine::new(&served.socket()).client.register(CSTS), u32::MAX);
        served.restore(PLAIN);
        served.restore(ZONED);
        assert_eq!(machine.client.register(CSTS), 0, "{cut:?}: not enabled");
        assert_eq!(machine.client.register(0x14), 0);
        machine.enable(1, 64);
        assert_eq!(machine.identify(3, PLAIN, 0).good().data, name);
        let read = machine.read(1, PLAIN, 0, 16).good().data;
        assert!(read == old, "{cut:?}: no capacitor protects what was not flushed");
    }
}

/// Slow enough for commands to be under way when the power fails.
fn slow(cut: CutMode, pace: f64) -> (Served, Machine, Vec<u16>) {
    let (region, pace) = (Region::None, Pace::Times(pace));
    let served = Served::with(Options { cut, region, pace, ..Options::default() });
    let mut machine = Machine::enabled(&served.socket(), 1, 64);
    let fua = machine.with_pages(Entry::blocks(1, PLAIN, 0, 1).u32(48, 1 << 30), 0, BLOCK);
    let sent = (0..8).map(|_| machine.submit(1, fua)).collect();
    crate::until(|| served.pending(PLAIN) == 8);
    (served, machine, sent)
}

#[test]
fn commands_can_hang_for_ever_and_registers_stay() {
    let (served, mut machine, _) = slow(CutMode::Hang, 0.01);
    served.cut(PLAIN);
    let read = machine.with_pages(Entry::blocks(2, PLAIN, 0, 1), 0, BLOCK);
    machine.submit(1, read);
    std::thread::sleep(Duration::from_millis(200));
    assert!(machine.poll(1).is_none());
    assert_eq!(machine.client.register(CSTS), 1);
    served.restore(PLAIN);
    let flush = machine.submit(1, Entry::new(0, PLAIN));
    assert_eq!(machine.next_end(1).good().cid, flush, "those before have no end");
}

#[test]
fn commands_can_end_with_what_has_happened_to_them() {
    let (served, mut machine, sent) = slow(CutMode::Error, 0.001);
    machine.raw(0, Entry::new(9, 0).u32(40, 0x0b).u32(44, 1 << 8)).good();
    let event = machine.submit(0, Entry::new(0xc, 0));
    served.cut(PLAIN);
    for _ in &sent {
        let ended = machine.next_end(1);
        assert_eq!(ended.status, 0x0005, "aborted due to power loss");
        assert!(sent.contains(&ended.cid));
    }
    let told = machine.next_end(0).good();
    assert_eq!((told.cid, told.result), (event, 0x0004_0002), "a namespace has changed");
    assert_eq!(machine.flush(1, PLAIN).status, 0x0082);
}

#[test]
fn a_cut_that_ends_connections_over_tcp_keeps_those_of_machines() {
    let (served, mut machine, _) = slow(CutMode::Lost, 0.001);
    let mut host = served.host(1, 0);
    served.cut(PLAIN);
    assert!(host.io[0].next_end().is_none(), "its connection has ended");
    // The other drive has power: the function began anew, and has it.
    assert_eq!(machine.client.register(CSTS), 0);
    machine.enable(1, 64);
    machine.flush(1, ZONED).good();
    assert_eq!(machine.flush(1, PLAIN).status, 0x0082);
    served.cut(ZONED);
    assert_eq!(machine.client.register(CSTS), u32::MAX);
    assert!(Queue::try_open(served.at(), 0).is_err());
}
