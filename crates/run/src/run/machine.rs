//! The machine that runs the simulation: its clock and memory, which only `sim.*` of a record
//! speaks of.

use std::time::{Duration, Instant};

use leyden_device::Config;
use rustix::time::{ClockId, clock_gettime};

use super::{RunError, in_device, subject};
use crate::driver::Measured;
use leyden_config::Scenario;
use leyden_record::RunRecord;
use leyden_sim::Bytes;

/// The least that a drive needs for each unit of its flash: an entry of the map, and the way back.
const UNIT_BYTES: u64 = 8;
/// What the model of its promises needs for each, if the run cuts the power.
pub(super) const MODEL_UNIT_BYTES: u64 = 144;

/// From here on a run says before what memory it takes.
const MUCH_BYTES: u64 = 1 << 30;

/// What verifying reads needs for each.
pub(super) const STAMP_BYTES: u64 = 8;

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

/// What a run took of the machine: seconds, never zero.
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

/// Refuses a drive that cannot fit in memory; without, the system would end the process.
pub(super) fn has_room_for(scenario: &Scenario) -> Result<(), RunError> {
    let is_modelled = scenario.run.stamps && !scenario.run.cut.is_empty();
    let geometry = scenario.device.geometry().map_err(in_device)?;
    let least = u64::from(geometry.units()) * UNIT_BYTES;
    let bytes = subject::needs_bytes(scenario).max(least);
    let mut memory = Vec::<u8>::new();
    let room = usize::try_from(bytes).is_ok_and(|bytes| memory.try_reserve_exact(bytes).is_ok());
    std::hint::black_box(&memory);
    if room {
        return Ok(());
    }
    let problem = format!(
        "the drive takes more than {} MiB of memory, and there is less; shrink the geometry, \
         raise ftl.mapping_unit{}",
        bytes >> 20,
        if is_modelled { ", or verify nothing (run.stamps = false)" } else { "" }
    );
    Err(RunError::config("device.nand", problem))
}

/// Refuses a buffer larger than all of the flash behind it; but the default, which nobody asked for.
pub(super) fn has_sizes_that_fit(scenario: &Scenario) -> Result<(), RunError> {
    let geometry = scenario.device.geometry().map_err(in_device)?;
    let flash = u64::from(geometry.units()) * u64::from(geometry.unit_bytes());
    let buffer = scenario.device.buffer.size;
    if buffer.get() <= flash || buffer == Config::default().buffer.size {
        return Ok(());
    }
    let problem = format!(
        "{buffer} are more than the drive's flash, which is {}; give the buffer less, or device.nand more",
        Bytes::new(flash)
    );
    Err(RunError::config("device.buffer.size", problem))
}

/// What is worth saying before a run that takes much memory.
pub(super) fn much_memory(scenario: &Scenario) -> Option<String> {
    let bytes = subject::needs_bytes(scenario);
    (bytes >= MUCH_BYTES).then(|| format!("the run takes about {} MiB of memory", bytes >> 20))
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
