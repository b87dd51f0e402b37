//! How fast it is, by a host of ours on a core of its own: `cargo test --release --workspace --test nvme speed -- --ignored --nocapture`.

use std::io::{Read as _, Write as _};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::host::*;
use crate::{BLOCK, Connect, NAME, PLAIN, Served, filled};

const COMMANDS: u64 = 200_000;
/// Seconds of a tick of `/proc/*/stat`.
const TICK_S: f64 = 0.01;

/// Speed and processor time of a measurement.
struct Speed {
    commands_per_s: f64,
    /// Processor time of the server's threads for a command.
    server_us: f64,
    /// The host's.
    host_us: f64,
}

/// From now on this thread and those that it starts run on this core.
fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).unwrap();
}

/// Processor time of all threads, or of this one.
fn cpu_s(stat: &str) -> f64 {
    let stat = std::fs::read_to_string(stat).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) * TICK_S
}

/// Commands that have ended well in what has come; PDUs that are not whole stay.
fn ended(bytes: &mut Vec<u8>) -> u64 {
    let (mut at, mut ended) = (0, 0);
    while bytes.len() >= at + 8 {
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        let Some(pdu) = bytes.get(at..at + length) else { break };
        match (pdu[0], pdu[1]) {
            // Data, and with it success.
            (7, flags) => ended += u64::from(flags & 8 != 0),
            (5, _) => {
                assert_eq!(u16::from_le_bytes([pdu[22], pdu[23]]), 0, "status");
                ended += 1;
            }
            other => panic!("a PDU {other:?}"),
        }
        at += length;
    }
    bytes.drain(..at);
    ended
}

/// A queue that is kept `depth` commands deep. What can be sent at once is one write.
fn measure(depth: u64, entry: impl Fn(u64) -> Entry, data: &[u8], room: usize) -> Speed {
    pin(1);
    let served = Served::new();
    pin(0);
    let to = Connect { size: 128, ..Connect::admin(NAME) };
    let mut host = Host::connect(served.at(), &to, 1, 0);
    let io = &mut host.io[0];
    for at in 0..500 {
        io.write(PLAIN, at, &filled(BLOCK, at), BLOCK).good();
    }
    let (mut out, mut come, mut piece) = (Vec::new(), Vec::new(), vec![0; 256 << 10]);
    let (all, own) = (cpu_s("/proc/self/stat"), cpu_s("/proc/thread-self/stat"));
    #[expect(clippy::disallowed_methods, reason = "it is a measurement")]
    let began = Instant::now();
    let (mut sent, mut done) = (0, 0);
    while done < COMMANDS {
        out.clear();
        while sent < COMMANDS && sent - done < depth {
            let entry = entry(sent * 7 % 500).u16(2, sent as u16);
            let entry =
                if data.is_empty() { entry.sgl(room, 0x5a) } else { entry.sgl(data.len(), 0x01) };
            out.extend(io.encoded(4, 0, &entry.0, data));
            sent += 1;
        }
        io.stream.write_all(&out).unwrap();
        let count = io.stream.read(&mut piece).unwrap();
        assert!(count > 0, "the server has hung up");
        come.extend(&piece[..count]);
        done += ended(&mut come);
    }
    let seconds = began.elapsed().as_secs_f64();
    let own = cpu_s("/proc/thread-self/stat") - own;
    let server = cpu_s("/proc/self/stat") - all - own;
    let each_us = |cpu_s: f64| cpu_s * 1e6 / COMMANDS as f64;
    Speed {
        commands_per_s: COMMANDS as f64 / seconds,
        server_us: each_us(server),
        host_us: each_us(own),
    }
}

#[test]
#[ignore = "it measures, and takes a machine to itself"]
#[expect(clippy::print_stderr, reason = "figures are what it is for")]
fn speed() {
    let data = filled(BLOCK, 1);
    for depth in [1, 32] {
        let write = measure(depth, |at| Entry::blocks(1, PLAIN, at, 1), &data, 0);
        let read = measure(depth, |at| Entry::blocks(2, PLAIN, at, 1), &[], BLOCK);
        for (what, Speed { commands_per_s, server_us, host_us }) in
            [("write", write), ("read", read)]
        {
            eprintln!(
                "4 KiB {what}, queue depth {depth}: {commands_per_s:.0}/s; processor time a command: server {server_us:.1} us, host {host_us:.1} us"
            );
            assert!(commands_per_s > 1_000.0, "{what} {depth}: {commands_per_s}");
        }
    }
}
