//! The machine that runs the simulation: its clock and memory, which only `sim.*` of a record
//! speaks of.

use std::time::Instant;

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

/// Peak resident memory of this process, MiB; 0 where the system does not tell.
pub(super) fn peak_rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
