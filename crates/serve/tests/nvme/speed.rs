//! How fast it is, by our own host: `cargo test --release --workspace --test nvme speed -- --ignored --nocapture`.

use std::time::Instant;

use crate::host::*;
use crate::{BLOCK, Connect, NAME, PLAIN, Served, filled};

const COMMANDS: u64 = 100_000;

/// Commands a second at a queue depth, and processor time a command of server and host together, in microseconds.
fn measure(depth: usize, entry: impl Fn(u64) -> Entry, data: &[u8], room: usize) -> (f64, f64) {
    let served = Served::new();
    let to = Connect { size: 128, ..Connect::admin(NAME) };
    let mut host = Host::connect(served.at(), &to, 1, 0);
    let io = &mut host.io[0];
    for at in 0..500 {
        io.write(PLAIN, at, &filled(BLOCK, at), BLOCK).good();
    }
    let cpu = || {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        // Ticks of 10 ms: of the user, and of the system.
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) * 10_000.0
    };
    #[expect(clippy::disallowed_methods, reason = "it is a measurement")]
    let began = Instant::now();
    let (before, mut sent) = (cpu(), 0);
    for ended in 0..COMMANDS {
        while sent < COMMANDS && sent - ended < depth as u64 {
            io.send(entry(sent * 7 % 500), data, room);
            sent += 1;
        }
        io.next_end().unwrap().good();
    }
    let seconds = began.elapsed().as_secs_f64();
    (COMMANDS as f64 / seconds, (cpu() - before) / COMMANDS as f64)
}

#[test]
#[ignore = "it measures, and takes a machine to itself"]
#[expect(clippy::print_stderr, reason = "figures are what it is for")]
fn speed() {
    let data = filled(BLOCK, 1);
    for depth in [1, 32] {
        let write = measure(depth, |at| Entry::blocks(1, PLAIN, at, 1), &data, 0);
        let read = measure(depth, |at| Entry::blocks(2, PLAIN, at, 1), &[], BLOCK);
        for (what, (rate, cpu)) in [("write", write), ("read", read)] {
            eprintln!(
                "4 KiB {what}, queue depth {depth}: {rate:.0}/s, {cpu:.1} us of processor time"
            );
            assert!(rate > 1_000.0, "{what} {depth}: {rate}");
        }
    }
}
