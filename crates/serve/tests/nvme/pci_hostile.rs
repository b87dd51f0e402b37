//! Clients of vfio-user that do not keep to the protocol, drivers that do not, and memory that goes away: the right status
//! or the right end; others go on.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;

use leyden_sim::Rng;

use crate::host::Entry;
use crate::machine::*;
use crate::{BLOCK, PLAIN, Served, filled};

/// EINVAL.
const INVALID: u32 = 22;

#[test]
fn what_is_no_message_ends_its_connection_and_no_other() {
    let served = Served::new();
    let mut good = Machine::enabled(&served.socket(), 1, 64);
    let ends = |client: &mut Client| {
        let mut rest = Vec::new();
        let kind = client.0.read_to_end(&mut rest).err().map(|error| error.kind());
        // A reset is an end, too; silence is none.
        assert!([None, Some(ErrorKind::ConnectionReset)].contains(&kind), "{kind:?}");
    };
    let wrong: [&[u32]; 4] = [
        &[9 << 16, 15, 0, 0],      // shorter than its header
        &[9 << 16, 1 << 20, 0, 0], // longer than anything
        &[9 << 16, u32::MAX, 0, 0],
        &[9 << 16, 16, 1, 0], // a reply, to nothing
    ];
    for message in wrong {
        let mut client = Client::open(&served.socket());
        client.greet();
        client.send_bytes(&words(message), &[]);
        ends(&mut client);
    }
    // No version, another one, and one that wants no reply.
    for (command, flags, body) in [(4, 0, 16), (1, 0, 1), (1, 1 << 4, 0)] {
        let mut client = Client::open(&served.socket());
        client.send(command, flags, &words(&[body, 0]), &[]);
        ends(&mut client);
    }
    let mut half = Client::open(&served.socket());
    half.0.write_all(&[1, 2, 3]).unwrap();
    drop(half);
    good.flush(1, PLAIN).good();
}

#[test]
fn requests_that_cannot_be_are_refused_and_the_client_goes_on() {
    let served = Served::new();
    let mut machine = Machine::enabled(&served.socket(), 1, 64);
    let client = &mut machine.client;
    let mut ask = |command, body: &[u32]| client.ask(command, &words(body), &[]);
    assert_eq!(ask(1, &[0]), Err(INVALID), "a second version");
    assert_eq!(ask(6, &[0; 8]), Err(95));
    assert_eq!(ask(15, &[0; 8]), Err(95));
    assert_eq!(ask(5, &[32, 0, 9, 0]), Err(INVALID));
    assert_eq!(ask(READ, &[0x4000, 0, 0, 4]), Err(INVALID));
    assert_eq!(ask(READ, &[0, 0, 7, 257]), Err(INVALID));
    assert_eq!(ask(READ, &[0, 0]), Err(INVALID));
    assert_eq!(ask(SET_IRQS, &[20, 0x24, 2, 16, 2]), Err(INVALID));
    assert_eq!(ask(MAP, &[32, 3, 0, 0, 0, 0, 0x1000, 0]), Err(17), "it is there");
    assert_eq!(ask(UNMAP, &[24, 0, 0x1000, 0, 0x1000, 0]), Err(INVALID), "a part of a range");
    // Files that are no memory, or too many of them.
    let (pipe, _other) = std::io::pipe().unwrap();
    let map = words(&[32, 3, 0, 0, 0, 1, 0x1000, 0]);
    assert_eq!(client.ask(MAP, &map, &[pipe.as_fd()]), Err(INVALID));
    let short = file(0xfff);
    assert_eq!(client.ask(MAP, &map, &[short.as_fd()]), Err(INVALID));
    let whole = file(0x1000);
    let many = vec![whole.as_fd(); 60];
    assert_eq!(client.ask(MAP, &map, &many), Ok(Vec::new()), "the others are closed");
    let irqs = words(&[20, 0x24, 2, 0, 1]);
    assert_eq!(client.ask(SET_IRQS, &irqs, &many), Err(INVALID), "another number of files");
    // Without a wish for a reply there is none, not even of an error.
    client.send(READ, 1 << 4, &words(&[0, 0, 3, 4]), &[]);
    assert_eq!(client.register(CSTS), 1);
    machine.flush(1, PLAIN).good();
}

#[test]
fn wrong_pages_have_their_status() {
    let served = Served::new();
    let mut machine = Machine::enabled(&served.socket(), 1, 64);
    let with = |opcode: u8, blocks, first: u64, second: u64| {
        Entry::blocks(opcode, PLAIN, 0, blocks).u64(24, first).u64(32, second)
    };
    for opcode in [1, 2] {
        let mut status =
            |blocks, first, second| machine.raw(1, with(opcode, blocks, first, second)).status;
        assert_eq!(status(1, DATA + 2, 0), 0x4013);
        assert_eq!(status(2, DATA, DATA + 8), 0x4013, "the second page has an offset");
        assert_eq!(status(3, DATA, DATA + 4), 0x4013, "a list that is not aligned");
        assert_eq!(status(1, MEMORY, 0), 0x0004, "no memory there");
        assert_eq!(status(1, MEMORY - 2_048, MEMORY), 0x0004, "half of it");
        assert_eq!(status(3, DATA, u64::MAX - 7), 0x0004);
        assert_eq!(status(1, u64::MAX - 3, 0), 0x0004);
        status(256, DATA, DATA); // the data is its own list
    }
    // Data of admin commands, too.
    assert_eq!(machine.raw(0, Entry::new(6, 0).u32(40, 1).u64(24, MEMORY)).status, 0x0004);
    let long = Entry::new(2, 0).u32(40, 0xffff_0002).u32(44, 0xffff).u64(24, DATA);
    assert_eq!(machine.raw(0, long).status, 0x4002, "a log page that is longer than a transfer");
    machine.write(1, PLAIN, 0, &filled(BLOCK, 1)).good();
}

#[test]
fn queues_that_cannot_be_are_refused_with_their_status() {
    let served = Served::new();
    let mut machine = Machine::enabled(&served.socket(), 1, 64);
    let make = |opcode, queue: u32, size: u32, cdw11: u32, base: u64| {
        Entry::new(opcode, 0).u64(24, base).u32(40, queue | size << 16).u32(44, cdw11)
    };
    let mut status = |entry| machine.raw(0, entry).status;
    assert_eq!(status(make(5, 1, 3, 3, DATA)), 0x4101, "it is there");
    assert_eq!(status(make(5, 2, 0, 3, DATA)), 0x4102);
    assert_eq!(status(make(5, 2, 3, 3 | 17 << 16, DATA)), 0x4108);
    assert_eq!(status(make(5, 2, 3, 2, DATA)), 0x4002);
    assert_eq!(status(make(1, 2, 3, 1 | 2 << 16, DATA)), 0x4100);
    assert_eq!(status(make(4, 1, 0, 0, 0)), 0x410c, "it is in use");
    assert_eq!(status(make(0, 9, 0, 0, 0)), 0x4101);
    assert_eq!(status(make(0, 1, 0, 0, 0)), 0);
    assert_eq!(status(make(4, 1, 0, 0, 0)), 0);
    machine.client.set(0x1008, 1); // the doorbell of what is gone
    assert_eq!(machine.client.register(CSTS), 1);
}

#[test]
fn wrong_doorbells_are_events_and_do_nothing() {
    let served = Served::new();
    let mut machine = Machine::enabled(&served.socket(), 1, 64);
    let event = machine.submit(0, Entry::new(0xc, 0));
    machine.client.set(0x1008, 64);
    let told = machine.next_end(0).good();
    assert_eq!((told.cid, told.result), (event, 0x0001_0100), "a value that cannot be");
    let read = Entry::new(2, 0).u32(40, 1 | 15 << 16);
    machine.ask(0, read, &[], 64).good();
    let event = machine.submit(0, Entry::new(0xc, 0));
    machine.client.set(0x1010, 1);
    let told = machine.next_end(0).good();
    assert_eq!((told.cid, told.result), (event, 0x0001_0000), "a queue that there is not");
    machine.client.set(0x100c, 63); // more completions than there are
    machine.client.set(0x1ffc, 5);
    machine.client.write(0, 0x1008, &[1, 0]); // half a doorbell
    machine.flush(1, PLAIN).good();
}

#[test]
fn memory_that_goes_away_is_a_status_or_a_fatal_status_until_the_reset() {
    let served = Served::new();
    let mut other = Machine::enabled(&served.socket(), 1, 64);
    let mut machine = Machine::enabled(&served.socket(), 1, 64);
    // Data of reads whose memory is taken back while the drive works, or before, or after.
    for _ in 0..20 {
        let away = file(0x1000);
        machine.client.map(MEMORY, 0x1000, Some(&away)).unwrap();
        let read = Entry::blocks(2, PLAIN, 0, 1).u64(24, MEMORY);
        machine.submit(1, read);
        machine.client.unmap(MEMORY, 0x1000).unwrap();
        let status = machine.next_end(1).status;
        assert!([0, 4].contains(&status), "{status:#x}");
    }
    // A file that its owner cuts short.
    let short = file(0x1000);
    machine.client.map(MEMORY, 0x1000, Some(&short)).unwrap();
    rustix::fs::ftruncate(&short, 0x800).unwrap();
    let write = Entry::blocks(1, PLAIN, 0, 1).u64(24, MEMORY);
    assert_eq!(machine.raw(1, write).status, 0x0004);
    // The queues themselves.
    machine.client.unmap(0, MEMORY).unwrap();
    machine.client.set(0x1008, 9);
    crate::until(|| machine.client.register(CSTS) == 3);
    let memory = machine.memory.try_clone().unwrap();
    machine.client.map(0, MEMORY, Some(&memory)).unwrap();
    machine.enable(1, 64);
    machine.flush(1, PLAIN).good();
    // All of it at once, with commands under way.
    let write = machine.with_pages(Entry::blocks(1, PLAIN, 0, 256).u32(48, 255), 0, 1 << 20);
    for _ in 0..8 {
        machine.submit(1, write);
    }
    rustix::fs::ftruncate(&machine.memory, 0).unwrap();
    drop(machine);
    other.flush(1, PLAIN).good();
}

#[test]
fn random_entries_and_messages_harm_no_other_client() {
    let served = Served::new();
    let mut good = Machine::enabled(&served.socket(), 1, 64);
    let data = filled(BLOCK, 1);
    let mut rng = Rng::new(7, "vfio-user");
    for round in 0..20_u64 {
        let mut machine = Machine::enabled(&served.socket(), 1, 64);
        for _ in 0..200 {
            let mut entry = [0; 64];
            entry.fill_with(|| if rng.below(3) == 0 { rng.below(256) as u8 } else { 0 });
            // Writes and trims would destroy the good one's data, and are tried elsewhere.
            entry[0] =
                [0, 2, 5, 6, 8, 9, 0x0a, 0x0c, 0x19, 0x79, 0x7a, 0x80][rng.below(12) as usize];
            if entry[0] == 8 || entry[0] == 9 {
                entry[4..8].copy_from_slice(&9_u32.to_le_bytes());
            }
            let queue = rng.below(2) as usize;
            machine.place(queue, &entry);
            while machine.poll(queue).is_some() {}
            let at = [0x14, 0x24, 0x1000, 0x1004, 0x1008, 0x100c, 0x1010][rng.below(7) as usize];
            if rng.below(8) == 0 {
                machine.client.set(at, rng.below(1 << 32) as u32);
            }
        }
        let mut noise: Vec<u8> = (0..200).map(|_| rng.below(256) as u8).collect();
        noise[..16].copy_from_slice(&words(&[rng.below(16) as u32 * 65_536, 200, 0, 0]));
        let _ = machine.client.0.write_all(&noise);
        drop(machine);
        good.write(1, PLAIN, round, &data).good();
        assert_eq!(good.read(1, PLAIN, round, 1).good().data, data);
    }
}
