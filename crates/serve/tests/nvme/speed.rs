//! How fast it is, by a host of ours on a core of its own, and nbdkit's memory plugin in the same run:
//! `cargo test --release --workspace --test nvme speed -- --ignored --nocapture`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::host::*;
use crate::{BLOCK, Connect, NAME, PLAIN, Served, filled};

/// Commands of a measurement at queue depth 1 and at more.
const COMMANDS: [u64; 2] = [50_000, 200_000];
/// Blocks that are written and read.
const BLOCKS: u64 = 500;
const ROUNDS: usize = 5;
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

/// A connection that takes commands, and how its protocol spells them.
trait Target {
    fn stream(&mut self) -> &mut TcpStream;
    /// Puts a command for a block behind `out`.
    fn put(&self, out: &mut Vec<u8>, number: u64, block: u64, is_write: bool, data: &[u8]);
    /// Takes the commands that have ended well off the front of what has come; says how many.
    fn take(&self, come: &mut Vec<u8>, is_write: bool) -> u64;
    /// Processor time of the server, whose threads may be of this process.
    fn server_cpu_s(&self) -> f64;
}

struct Ours {
    host: Host,
    /// Goes after its host.
    _served: Served,
}

impl Ours {
    fn start() -> Self {
        pin(1);
        let served = Served::new();
        pin(0);
        let to = Connect { size: 128, keep_alive_ms: 0, ..Connect::admin(NAME) };
        let mut host = Host::connect(served.at(), &to, 1, 0);
        for at in 0..BLOCKS {
            host.io[0].write(PLAIN, at, &filled(BLOCK, at), BLOCK).good();
        }
        Self { host, _served: served }
    }
}

impl Target for Ours {
    fn stream(&mut self) -> &mut TcpStream {
        &mut self.host.io[0].stream
    }

    fn put(&self, out: &mut Vec<u8>, number: u64, block: u64, is_write: bool, data: &[u8]) {
        let entry = Entry::blocks(if is_write { 1 } else { 2 }, PLAIN, block, 1);
        let entry = entry.u16(2, number as u16);
        let entry = if is_write { entry.sgl(BLOCK, 0x01) } else { entry.sgl(BLOCK, 0x5a) };
        let data = if is_write { data } else { &[] };
        out.extend(self.host.io[0].encoded(4, 0, &entry.0, data));
    }

    fn take(&self, come: &mut Vec<u8>, _: bool) -> u64 {
        ended(come)
    }

    fn server_cpu_s(&self) -> f64 {
        cpu_s("/proc/self/stat") - cpu_s("/proc/thread-self/stat")
    }
}

/// nbdkit's memory plugin, over NBD.
struct Nbdkit {
    stream: TcpStream,
    child: Child,
}

impl Nbdkit {
    /// `None` if it is not installed.
    fn start() -> Option<Self> {
        let port = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        pin(1);
        let mut nbdkit = Command::new("nbdkit");
        nbdkit.args(["-f", "-i", "127.0.0.1", "-p", &port.to_string(), "memory", "64M"]);
        let child = nbdkit.spawn();
        pin(0);
        let child = child.ok()?;
        let mut stream = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            TcpStream::connect(("127.0.0.1", port)).ok()
        })?;
        stream.set_nodelay(true).unwrap();
        // The protocol's `doc/proto.md`: fixed newstyle, no zeroes; the option EXPORT_NAME of the export "".
        stream.read_exact(&mut [0; 18]).unwrap();
        stream.write_all(&3_u32.to_be_bytes()).unwrap();
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        let mut it = Self { stream, child };
        for at in 0..BLOCKS {
            let mut out = Vec::new();
            it.put(&mut out, at, at, true, &filled(BLOCK, at));
            it.stream.write_all(&out).unwrap();
            it.stream.read_exact(&mut [0; 16]).unwrap();
        }
        Some(it)
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Target for Nbdkit {
    fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    fn put(&self, out: &mut Vec<u8>, number: u64, block: u64, is_write: bool, data: &[u8]) {
        out.extend(0x2560_9513_u32.to_be_bytes());
        out.extend(u32::from(is_write).to_be_bytes());
        out.extend(number.to_be_bytes());
        out.extend((block * BLOCK as u64).to_be_bytes());
        out.extend((BLOCK as u32).to_be_bytes());
        out.extend(if is_write { data } else { &[] });
    }

    fn take(&self, come: &mut Vec<u8>, is_write: bool) -> u64 {
        let length = if is_write { 16 } else { 16 + BLOCK };
        let whole = come.len() / length;
        for reply in come.chunks_exact(length) {
            assert_eq!(
                reply[..8],
                [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0],
                "a simple reply, no error"
            );
        }
        come.drain(..whole * length);
        whole as u64
    }

    fn server_cpu_s(&self) -> f64 {
        cpu_s(&format!("/proc/{}/stat", self.child.id()))
    }
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
fn measure(target: &mut impl Target, depth: u64, is_write: bool) -> Speed {
    let commands = COMMANDS[usize::from(depth > 1)];
    let data = filled(BLOCK, 1);
    let (mut out, mut come, mut piece) = (Vec::new(), Vec::new(), vec![0; 256 << 10]);
    let (server, own) = (target.server_cpu_s(), cpu_s("/proc/thread-self/stat"));
    #[expect(clippy::disallowed_methods, reason = "it is a measurement")]
    let began = Instant::now();
    let (mut sent, mut done) = (0, 0);
    while done < commands {
        out.clear();
        while sent < commands && sent - done < depth {
            target.put(&mut out, sent, sent * 7 % BLOCKS, is_write, &data);
            sent += 1;
        }
        target.stream().write_all(&out).unwrap();
        let count = target.stream().read(&mut piece).unwrap();
        assert!(count > 0, "the server has hung up");
        come.extend(&piece[..count]);
        done += target.take(&mut come, is_write);
    }
    let seconds = began.elapsed().as_secs_f64();
    let each_us = |cpu_s: f64| cpu_s * 1e6 / commands as f64;
    Speed {
        commands_per_s: commands as f64 / seconds,
        server_us: each_us(target.server_cpu_s() - server),
        host_us: each_us(cpu_s("/proc/thread-self/stat") - own),
    }
}

/// The median, the least and the most.
fn spread(mut all: Vec<f64>) -> String {
    all.sort_by(f64::total_cmp);
    format!("{:.1} ({:.1} to {:.1})", all[all.len() / 2], all[0], all[all.len() - 1])
}

#[expect(clippy::print_stderr, reason = "figures are what it is for")]
fn print(name: &str, what: &str, speeds: &[Speed]) {
    let of = |part: fn(&Speed) -> f64| spread(speeds.iter().map(part).collect());
    eprintln!(
        "{name}, {what}: {} k/s; server {} us a command, host {} us",
        of(|it| it.commands_per_s / 1e3),
        of(|it| it.server_us),
        of(|it| it.host_us)
    );
}

#[test]
#[ignore = "it measures, and takes a machine to itself"]
#[expect(clippy::print_stderr, reason = "figures are what it is for")]
fn speed() {
    let mut ours = Ours::start();
    let mut nbdkit = Nbdkit::start();
    if nbdkit.is_none() {
        eprintln!("SKIPPED: nbdkit is not installed, and not measured beside");
    }
    for (depth, is_write) in [(32, true), (32, false), (1, true), (1, false)] {
        let what = format!("4 KiB {} QD {depth}", if is_write { "writes" } else { "reads" });
        let (mut of_ours, mut of_nbdkit) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            of_ours.push(measure(&mut ours, depth, is_write));
            of_nbdkit.extend(nbdkit.as_mut().map(|it| measure(it, depth, is_write)));
        }
        print("Leyden, NVMe/TCP", &what, &of_ours);
        if !of_nbdkit.is_empty() {
            print("nbdkit memory, NBD over TCP", &what, &of_nbdkit);
        }
        assert!(of_ours.iter().all(|it| it.commands_per_s > 1_000.0), "{what}");
    }
}
