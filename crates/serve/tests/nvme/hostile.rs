//! Hosts that do not keep to the protocol: the right status, or the right end; others go on.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use leyden_serve::Limits;
use leyden_sim::Rng;

use crate::host::*;
use crate::{BLOCK, NAME, Options, PLAIN, Served, filled, until};

fn connected(served: &Served, digests: Digests) -> Host {
    served.host(1, digests)
}

#[test]
fn what_ends_a_connection_says_why_and_ends_no_other() {
    let served = Served::new();
    let mut good = served.host(1, 0);
    good.io[0].write(PLAIN, 0, &filled(BLOCK, 1), BLOCK).good();
    let wrong = |digests: Digests, status: u16, spoil: &dyn Fn(&mut Queue)| {
        let mut host = connected(&served, digests);
        spoil(&mut host.io[0]);
        assert!(host.io[0].is_terminated(status), "status {status:#x}");
        host.admin.identify(1, 0, 0).good();
    };
    wrong(0, 1, &|io| io.pdu(5, 0, &[0; 16], &[])); // one of a server's
    wrong(0, 1, &|io| io.pdu(0xff, 0, &[0; 16], &[]));
    wrong(0, 2, &|io| io.pdu(0, 0, &[0; 120], &[])); // a second beginning
    wrong(0, 1, &|io| io.pdu(4, 0, &[0; 60], &[])); // a short command
    wrong(0, 1, &|io| io.pdu(4, 1, &[0; 64], &[])); // a digest that was not agreed on
    wrong(0, 5, &|io| io.pdu(4, 0, &[0; 64], &vec![0; IN_CAPSULE + 1]));
    wrong(0, 1, &|io| io.data(1, 2, 0, &[0; 512], 4)); // nobody has invited it
    wrong(1, 3, &|io| {
        let mut bytes = io.encoded(4, 0, &[0; 64], &[]);
        bytes[30] ^= 1;
        io.stream.write_all(&bytes).unwrap();
    });
    let invited = |io: &mut Queue| {
        io.pdu(4, 0, &Entry::blocks(1, PLAIN, 0, 16).u16(2, 9).sgl(16 * BLOCK, 0x5a).0, &[]);
        let invitation = io.next_pdu().unwrap();
        assert_eq!(invitation.kind, 9);
        u16::from_le_bytes([invitation.header[10], invitation.header[11]])
    };
    wrong(0, 2, &|io| {
        let tag = invited(io);
        io.data(9, tag, 512, &[0; 512], 0); // not in order
    });
    wrong(0, 4, &|io| {
        let tag = invited(io);
        io.data(9, tag, 0, &vec![0; 17 * BLOCK], 4);
    });
    wrong(0, 1, &|io| {
        let tag = invited(io);
        io.data(8, tag, 0, &[0; 512], 0); // another command's
    });
    assert_eq!(good.io[0].read(PLAIN, 0, 1, BLOCK).good().data, filled(BLOCK, 1));
}

#[test]
fn what_is_no_beginning_is_no_connection() {
    let served = Served::new();
    for hostile in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 128], &[0; 128], b"", &[0; 64]] {
        let mut stream = TcpStream::connect(served.at()).unwrap();
        stream.write_all(hostile).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
        assert!(rest.is_empty() || rest[0] == 3, "{rest:?}");
    }
    served.host(1, 0).io[0].read(PLAIN, 0, 1, BLOCK).good();
}

/// Places and deadlines are the session's, whichever its protocol is.
#[test]
fn hosts_that_do_not_negotiate_lock_out_nobody() {
    let served = Served::new();
    let mut early = served.host(1, 0);
    early.io[0].write(PLAIN, 0, &filled(BLOCK, 1), BLOCK).good();
    let silent: Vec<_> = (0..400)
        .map(|number| {
            let mut stream = TcpStream::connect(served.at()).unwrap();
            // Nothing, or some of an ICReq.
            let _ = stream.write_all(&[0, 0, 128, 0, 128, 0, 0, 0][..number % 9]);
            stream
        })
        .collect();
    let mut late = served.host(1, 0);
    assert_eq!(late.io[0].read(PLAIN, 0, 1, BLOCK).good().data, filled(BLOCK, 1));
    assert_eq!(early.io[0].read(PLAIN, 0, 1, BLOCK).good().data, filled(BLOCK, 1));
    drop(silent);
}

#[test]
fn a_wrong_data_digest_fails_its_command_and_no_more() {
    let served = Served::new();
    let mut host = connected(&served, 2);
    let io = &mut host.io[0];
    io.write(PLAIN, 0, &filled(BLOCK, 1), BLOCK).good();
    let write = Entry::blocks(1, PLAIN, 0, 1).u16(2, 5).sgl(BLOCK, 1);
    let mut bytes = io.encoded(4, 0, &write.0, &filled(BLOCK, 2));
    let end = bytes.len() - 1;
    bytes[end] ^= 1;
    io.stream.write_all(&bytes).unwrap();
    let ended = io.next_end().unwrap();
    assert_eq!((ended.cid, ended.status), (5, 0x0022), "it may be tried again");
    // Of invited data, too, in its first piece.
    io.pdu(4, 0, &Entry::blocks(1, PLAIN, 0, 16).u16(2, 6).sgl(16 * BLOCK, 0x5a).0, &[]);
    let invitation = io.next_pdu().unwrap();
    let tag = u16::from_le_bytes([invitation.header[10], invitation.header[11]]);
    let (first, second) = (filled(8 * BLOCK, 3), filled(8 * BLOCK, 4));
    let mut header = vec![6, 0];
    header.extend(tag.to_le_bytes());
    header.extend([0; 4]);
    header.extend((8 * BLOCK as u32).to_le_bytes());
    header.extend([0; 4]);
    let mut bytes = io.encoded(6, 0, &header, &first);
    bytes[100] ^= 1;
    io.stream.write_all(&bytes).unwrap();
    io.data(6, tag, 8 * BLOCK as u32, &second, 4);
    let ended = io.next_end().unwrap();
    assert_eq!((ended.cid, ended.status), (6, 0x0022));
    assert_eq!(io.read(PLAIN, 0, 1, BLOCK).good().data, filled(BLOCK, 1), "nothing was written");
}

#[test]
fn commands_that_cannot_be_have_their_status() {
    let served = Served::new();
    let mut host = connected(&served, 0);
    let io = &mut host.io[0];
    let mut ask = |entry: Entry, data: &[u8]| {
        io.pdu(4, 0, &entry.0, data);
        io.next_end().unwrap().status
    };
    let write = Entry::blocks(1, PLAIN, 0, 1);
    assert_eq!(ask(write.sgl(BLOCK, 0x02), &[0; BLOCK]), 0x4011, "no such descriptor");
    assert_eq!(ask(write.sgl(BLOCK, 0x01).u64(24, 8), &[0; BLOCK]), 0x4016);
    assert_eq!(ask(write.sgl(BLOCK + 1, 0x01), &[0; BLOCK]), 0x400f);
    assert_eq!(ask(write.sgl(2 * BLOCK, 0x01), &[0; 2 * BLOCK]), 0x400f, "more than one block");
    assert_eq!(ask(write.sgl(BLOCK, 0x5a), &[0; BLOCK]), 0x400f, "along with it, and not");
    assert_eq!(ask(Entry::blocks(2, PLAIN, 0, 1).sgl(512, 0x5a), &[]), 0x400f);
    assert_eq!(ask(Entry::blocks(2, PLAIN, 0, 257).sgl(257 * BLOCK, 0x5a), &[]), 0x4002);
    let mut fused = write.sgl(BLOCK, 0x01);
    fused.0[1] = 0x41;
    assert_eq!(ask(fused, &[0; BLOCK]), 0x4002);
    fused.0[1] = 0x00;
    assert_eq!(ask(fused, &[0; BLOCK]), 0x4002, "PRPs have no place here");
    assert_eq!(ask(Entry::fabrics(1).sgl(1_024, 1), &[0; 1_024]), 0x400c, "it is connected");
    assert_eq!(ask(Entry::fabrics(9).sgl(0, 0x5a), &[]), 0x4001);
    for opcode in [0x03, 0x06, 0x0d, 0x0e, 0x11, 0x1a, 0x79, 0x80, 0xff] {
        assert_eq!(ask(Entry::new(opcode, PLAIN).sgl(0, 0x5a), &[]), 0x4001, "{opcode:#x}");
    }
}

#[test]
fn nothing_is_done_before_connect_and_no_queue_is_stolen() {
    let served = Served::new();
    let mut queue = Queue::open(served.at(), 0);
    for entry in [Entry::blocks(2, PLAIN, 0, 1), Entry::new(6, 0), Entry::fabrics(4)] {
        assert_eq!(queue.ask(entry, &[], 0).status, 0x400c);
    }
    // The refused are still there, and may connect.
    queue.connect(&Connect::admin(NAME)).good();
    assert_eq!(queue.identify(1, 0, 0).status, 0x400c, "not enabled yet");
    let victim = served.host(1, 0);
    let steal = |to: Connect<'_>| Queue::open(served.at(), 0).connect(&to);
    let to = Connect { controller: victim.controller, queue: 1, ..Connect::admin(NAME) };
    assert_eq!(steal(to).status, 0x400c, "it is connected");
    let to = Connect { queue: 2, host: "nqn.2026-01.local.leyden:thief", ..to };
    let refused = steal(to);
    assert_eq!((refused.status, refused.result), (0x4182, 512 | 1 << 16));
    assert_eq!(steal(Connect { host: HOST, host_id: [8; 16], ..to }).status, 0x4182);
    assert_eq!(steal(Connect { host: HOST, queue: 17, ..to }).result, 42);
    assert_eq!(steal(Connect { host: HOST, controller: 0x7777, ..to }).result, 16 | 1 << 16);
    assert_eq!(steal(Connect { host: HOST, size: 1, ..to }).result, 44);
    let mut wild = Queue::open(served.at(), 0);
    assert_eq!(wild.connect(&Connect::admin("nqn.2026-01.local.leyden:other")).status, 0x4182);
    drop(victim);
    until(|| served.host(1, 0).io[0].read(PLAIN, 0, 1, BLOCK).status == 0);
}

#[test]
fn who_is_invited_and_sends_nothing_is_in_nobodys_way() {
    let limits = Limits::new(64 << 20, 12).unwrap();
    let served = Served::with(Options { limits, ..Options::default() });
    let mut hostile: Vec<Host> = (0..3)
        .map(|number| {
            let host_id = [number + 1; 16];
            let to = Connect { size: 128, host_id, ..Connect::admin(NAME) };
            Host::connect(served.at(), &to, 1, 0)
        })
        .collect();
    for host in &mut hostile {
        for cid in 0..100 {
            let entry = Entry::blocks(1, PLAIN, 0, 256).u16(2, cid).sgl(1 << 20, 0x5a);
            host.io[0].pdu(4, 0, &entry.0, &[]);
        }
    }
    let mut honest = served.host(1, 0);
    for at in 0..50 {
        honest.io[0].write(PLAIN, at, &filled(BLOCK, at), BLOCK).good();
        assert_eq!(honest.io[0].read(PLAIN, at, 1, BLOCK).good().data, filled(BLOCK, at));
    }
    drop(hostile);
    let large = filled(1 << 20, 7);
    honest.io[0].write(PLAIN, 0, &large, BLOCK).good();
}

/// Replies that nobody takes share the server's memory: the budget is the session's, whichever its protocol is.
#[test]
fn hosts_that_ask_for_much_and_never_read_share_one_budget() {
    let limits = Limits::new(64 << 20, 12).unwrap();
    let served = Served::with(Options { limits, ..Options::default() });
    let mut hostile: Vec<Host> = (0..3)
        .map(|number| {
            let to = Connect { size: 128, host_id: [number + 1; 16], ..Connect::admin(NAME) };
            Host::connect(served.at(), &to, 1, 0)
        })
        .collect();
    for host in &mut hostile {
        for _ in 0..100 {
            host.io[0].send(Entry::blocks(2, PLAIN, 0, 256), &[], 1 << 20);
        }
    }
    let (mut before, mut now) = (u64::MAX, served.reads(PLAIN));
    while before != now {
        std::thread::sleep(Duration::from_millis(500));
        (before, now) = (now, served.reads(PLAIN));
    }
    // 45 MiB that all share, and what the buffers of three connections hold.
    assert!(now > 0 && now < 120, "{now} of 300 reads of 1 MiB were made for hosts that take none");
    let mut honest = served.host(1, 0);
    let large = filled(1 << 20, 7);
    honest.io[0].write(PLAIN, 0, &large, BLOCK).good();
    assert_eq!(honest.io[0].read(PLAIN, 0, 256, BLOCK).good().data, large);
    drop(hostile);
}

#[test]
fn damaged_sessions_end_themselves_and_nothing_else() {
    let served = Served::new();
    let mut honest = served.host(1, 0);
    honest.io[0].write(PLAIN, 900, &filled(BLOCK, 1), BLOCK).good();
    let mut seed = leyden_serve::fuzz::nvme_seed();
    let at = seed.windows(4).position(|it| it == b"fuzz").unwrap();
    seed[at..at + 4].copy_from_slice(b"test"); // the name of this subsystem
    let mut rng = Rng::new(1, "hostile hosts");
    for _ in 0..300 {
        let mut sent = seed.clone();
        for _ in 0..=rng.below(6) {
            let at = rng.below(sent.len() as u64) as usize;
            match rng.below(3) {
                0 => sent[at] = rng.below(256) as u8,
                1 => sent.truncate(at),
                _ => sent[at] ^= 1 << rng.below(8),
            }
            if sent.is_empty() {
                break;
            }
        }
        let mut stream = TcpStream::connect(served.at()).unwrap();
        let _ = stream.write_all(&sent);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    }
    assert_eq!(honest.io[0].read(PLAIN, 900, 1, BLOCK).good().data, filled(BLOCK, 1));
}

#[test]
fn two_dozen_hosts_come_and_go_and_are_killed() {
    let served = Served::new();
    // Of those who have not connected yet 16 wait at most, and the newest throws out the oldest: 24 at once are too many.
    let door = Mutex::new(());
    std::thread::scope(|scope| {
        for number in 0..24_u8 {
            let (served, door) = (&served, &door);
            scope.spawn(move || {
                let name = format!("nqn.2026-01.local.leyden:host{number}");
                let to = Connect { host: &name, host_id: [number + 1; 16], ..Connect::admin(NAME) };
                for round in 0..3_u64 {
                    let turn = door.lock().unwrap();
                    let mut host = Host::connect(served.at(), &to, 2, 0);
                    drop(turn);
                    let start = u64::from(number) * 20;
                    let data = filled(20 * BLOCK, start + round);
                    host.io[1].write(PLAIN, start, &data, BLOCK).good();
                    assert_eq!(host.io[0].read(PLAIN, start, 20, BLOCK).good().data, data);
                    // Half of them go with commands under way.
                    if number % 2 == 0 {
                        for at in 0..16 {
                            host.io[0].send(Entry::blocks(2, PLAIN, start + at, 1), &[], BLOCK);
                        }
                    }
                }
            });
        }
    });
    served.host(1, 0).io[0].read(PLAIN, 0, 1, BLOCK).good();
}
