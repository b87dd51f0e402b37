//! The machine that runs the simulation: its clock and memory, which only `sim.*` of a record
//! speaks of.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::driver::Measured;
use leyden_record::RunRecord;

/// Wall time.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "an edge: how long a run took decides nothing in it"
    )]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start; never zero, so that rates are finite.
    pub(super) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64().max(1e-9)
    }
}

/// Wall time, and what this thread has had of a processor, user and system. A run is of one thread, so this
/// is the run's, whatever else the machine and this process do meanwhile.
pub(super) struct Clocks {
    wall: Stopwatch,
    cpu: Duration,
}

impl Clocks {
    pub(super) fn start() -> Self {
        Self { wall: Stopwatch::start(), cpu: cpu_time() }
    }

    pub(super) fn stop(self) -> Took {
        let cpu_s = cpu_time().saturating_sub(self.cpu).as_secs_f64().max(1e-9);
        Took { wall_s: self.wall.seconds(), cpu_s }
    }
}

/// The machine's time that a run took: seconds, never zero.
pub(super) struct Took {
    wall_s: f64,
    cpu_s: f64,
}

impl Took {
    /// Fills in the speed of a run in which `measured` was measured, and the memory that it needed.
    pub(super) fn fill(self, measured: &Measured, record: &mut RunRecord) {
        let flash = &record.flash;
        let operations = flash.programs.total() + flash.reads.total() + flash.erases;
        let (ios, operations) = (measured.completions() as f64, operations as f64);
        let sim = &mut record.sim;
        (sim.wall_s, sim.cpu_s) = (self.wall_s, self.cpu_s);
        (sim.host_ios_per_s, sim.flash_ops_per_s) = (ios / self.wall_s, operations / self.wall_s);
        sim.host_ios_per_cpu_s = ios / self.cpu_s;
        sim.flash_ops_per_cpu_s = operations / self.cpu_s;
        sim.peak_rss_mib = peak_rss_mib();
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Memory that several runs may take together: four fifths of what the system, or the group of processes
/// that this one is in, has left. Where neither tells, there is no limit.
pub(super) fn room_bytes() -> u64 {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let meminfo = text("/proc/meminfo");
    let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = available.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let of_system = kib.map_or(u64::MAX, |kib| kib << 10);
    let of_group = |name: &str| text(&format!("/sys/fs/cgroup/memory.{name}")).trim().parse().ok();
    let of_group = match (of_group("max"), of_group("current")) {
        (Some(max), Some(current)) => u64::saturating_sub(max, current),
        _ => u64::MAX,
    };
    match of_system.min(of_group) {
        u64::MAX => u64::MAX,
        left => left / 5 * 4,
    }
}

/// Peak resident memory of this process, MiB; 0 where the system does not tell.
fn peak_rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
