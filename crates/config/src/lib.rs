//! The configuration of a run: a drive, the work it is given, and how the run is made.
//!
//! **What lives here**: the types that a scenario's TOML is read into, and how: files that extend
//! each other, overrides, and messages that name key, file, line and remedy. **What doesn't**: what
//! a drive or a job can be, which their own crates' `Config` types say; running.
//!
//! **Invariants**
//! - A key that is not known is refused, wherever it was written.
//! - Everything that a value means is in the value: the environment and the folder a run is started
//!   in change nothing, but for the files that `--set` names.

mod blame;
pub mod bundled;
mod command;
mod cut;
mod de;
mod diagnostic;
mod explain;
pub mod fuzz;
mod host;
mod kind;
mod load;
#[cfg(any(test, feature = "packed-traces"))]
#[cfg_attr(not(test), expect(dead_code, reason = "the build script packs"))]
mod packed;
mod policies;
mod precondition;
mod replay;
mod sampled;
mod saved;
mod source;
pub mod stationary;
mod texts;
mod tree;
mod workload;

use std::num::NonZeroU32;

use leyden_device::{FaultRule, FaultRules};
use leyden_sim::{ConfigError, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use replay::{BeyondEnd, OnZones, Pace, Ramp, Replay, ZoneProtection};

pub use command::{quote, run_command};
pub use cut::CutConfig;
pub use diagnostic::{At, Diagnostic, Place};
pub use explain::nearest;
pub use host::HostConfig;
pub use kind::DriveKind;
pub use load::{Loaded, Set, Template};
pub use policies::{Parameter, Policy, PolicyFolder, policies};
pub use precondition::{Distribution, PreconditionConfig, PreconditionKind, Rest};
pub use saved::{IN_REPORT, Saved};
pub use source::TraceSource;
pub use texts::LoadError;
pub use workload::{MAX_WINDOW, ReplayMode, Requests, TraceConfig, WorkloadConfig, devices};

/// A scenario: a drive, its work, and how the run is made. Sizes, times and shares are written with
/// their unit: `"64 MiB"`, `"60 us"`, `"7 %"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Leyden scenario")]
pub struct Scenario {
    /// Another file that this one builds on: its path relative to this file, or the name of a
    /// bundled scenario. Tables merge key by key, everything else is replaced; naming another kind
    /// of workload, or another policy, replaces the other file's settings for it.
    #[serde(skip_serializing)]
    pub extends: Option<String>,
    /// The run's name in tables and reports; the file's name if empty.
    pub name: String,
    /// The purpose, in a sentence.
    pub description: String,
    /// The seed of all random numbers. Same scenario, same seed: same result, to the bit.
    pub seed: u64,
    /// Capacity of the drive: its flash is made smaller or larger to this capacity. Channels, dies, planes,
    /// page size,
    /// times, buffer and capacitors stay; `leyden check` prints the blocks and the over-provisioning that result.
    #[serde(skip_serializing)]
    pub size: Option<leyden_sim::Bytes>,
    /// The drive.
    pub device: leyden_device::Config,
    /// Layers between software and drive.
    #[serde(skip_serializing_if = "HostConfig::is_bare")]
    pub host: HostConfig,
    /// The workload.
    pub workload: WorkloadConfig,
    /// The drive's history before the run.
    pub precondition: PreconditionConfig,
    /// How the run is made and measured.
    pub run: RunConfig,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            extends: None,
            name: String::new(),
            description: String::new(),
            seed: 1,
            size: None,
            device: leyden_device::Config::default(),
            host: HostConfig::default(),
            workload: WorkloadConfig::default(),
            precondition: PreconditionConfig::default(),
            run: RunConfig::default(),
        }
    }
}

/// How the run is made and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// The beginning of the run, which is left out of the measurement.
    pub ramp: Ramp,
    /// Run the workload this number of times in a row on the same drive; the last run is measured, and the
    /// record has the write amplification of each. A trace is replayed again; random jobs continue with other
    /// requests. On a zoned drive every zone is
    /// reset before the next time.
    pub repeat: NonZeroU32,
    /// Keep 8 bytes per mapping unit to tell which write produced it, and verify the content of
    /// every read. Costs memory and some speed.
    pub stamps: bool,
    /// Whether the drive's own invariants are checked after the run.
    pub check: Check,
    /// Commands that the drive makes fail, from the beginning of the measured run on: `["write:nth=40"]`. A
    /// rule of `leyden fault`: `read`, `write`, `flush`, `trim`, `zone` or `any`, then `nth`, `times` (or
    /// `all`), `lba`
    /// (first sector and how many) and `for` (simulated time). Reads end with Unrecovered Read Error, others
    /// with Write
    /// Fault, and change nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultRule>,
    /// Power cuts at stated times, one `[[run.cut]]` each. Without any, a drive with capacitors has its
    /// power cut once, when the run has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<CutConfig>,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            ramp: Ramp::default(),
            repeat: NonZeroU32::MIN,
            stamps: true,
            check: Check::Auto,
            faults: Vec::new(),
            cut: Vec::new(),
        }
    }
}

/// Whether the drive's own invariants are checked after a run: that its tables agree with each other, and
/// that every page programmed is accounted for. That looks at every mapping unit of flash; the results are
/// the same with and without, and `sim.checked` of the record says which it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// If the drive has no more than 262,144 mapping units of flash, or the run, preconditioning included,
    /// has written and read at least four times as many as it has: else the check would be a large part
    /// of the run's cost.
    #[default]
    Auto,
    /// After every run.
    Always,
    /// After none.
    Never,
}

impl Scenario {
    /// Within what write amplification has to settle before the measurement begins, if the ramp waits for that.
    pub fn settling_ramp(&self) -> Option<Ratio> {
        let is_default = self.precondition.kind == PreconditionKind::Steady
            && self.run.ramp.is_open()
            && self.run.repeat == NonZeroU32::MIN
            && self.run.cut.is_empty()
            && self.host.page_cache.is_none()
            && self.workload.is_of_jobs()
            && self.workload.job.iter().any(|job| job.read_share < Ratio::from_percent(100));
        let default = is_default.then_some(self.precondition.tolerance);
        self.run.ramp.settle.or(default).filter(|&settle| settle != Ratio::ZERO)
    }

    /// Gives the drive the size that is asked for.
    fn fit(&mut self) -> Result<(), ConfigError> {
        let Some(size) = self.size.take() else { return Ok(()) };
        if self.host.zoned_block.is_some() {
            let problem = "two drives have no one size; set blocks_per_plane of both";
            return Err(ConfigError::new("size", problem));
        }
        if size.get() < 1 << 20 {
            let problem = format!("{size} are less than a drive has; write at least \"1 MiB\"");
            return Err(ConfigError::new("size", problem));
        }
        leyden_device::fit(&mut self.device, size.get()).map_err(|error| error.within("device"))
    }

    /// Checks what can be checked without building the drive or opening a trace. Keys are whole, and
    /// problems end with their remedy.
    fn check(&self) -> Result<(), ConfigError> {
        self.device.geometry().map_err(|error| error.within("device"))?;
        if self.name.contains(char::is_control) {
            let problem = "there is a control character in it; leave it out";
            return Err(ConfigError::new("name", problem));
        }
        cut::check(&self.run.cut, self.device.power.is_some())?;
        self.run.ramp.check(self.workload.is_of_jobs(), !self.run.cut.is_empty())?;
        self.check_faults()?;
        self.check_repeat()?;
        self.host.check()?;
        self.workload.check()?;
        self.check_announcers()?;
        self.precondition.check()?;
        self.check_kind()?;
        sampled::check(self)
    }

    fn check_faults(&self) -> Result<(), ConfigError> {
        let rules = self.run.faults.len();
        let problem = if rules > FaultRules::MOST {
            format!("{rules} rules are too many; write at most {}", FaultRules::MOST)
        } else if rules > 0 && self.host.is_layered() {
            "devices of two drives do not support it; leave it out".to_owned()
        } else {
            return Ok(());
        };
        Err(ConfigError::new("run.faults", problem))
    }

    fn check_repeat(&self) -> Result<(), ConfigError> {
        let problem = if self.run.repeat == NonZeroU32::MIN {
            return Ok(());
        } else if !self.run.cut.is_empty() {
            "run.cut names times, and it would be unclear of which run; leave one of them out"
        } else {
            return Ok(());
        };
        Err(ConfigError::new("run.repeat", problem))
    }

    /// A page cache announces what it holds; a trace's hints speak of the cache of another host.
    fn check_announcers(&self) -> Result<(), ConfigError> {
        if self.host.page_cache.is_none() {
            return Ok(());
        }
        if self.workload.trace.as_ref().and_then(TraceConfig::hints_path).is_none() {
            return Ok(());
        }
        let problem = "there is a host.page_cache, which announces its dirty pages; remove one of \
                       the two";
        Err(ConfigError::new("workload.trace.hints", problem))
    }

    /// The scenario as TOML, with every default filled in, to be kept in the current folder: it names files
    /// by where they are.
    ///
    /// # Panics
    /// Never: every value of a scenario can be written.
    pub fn to_toml(&self) -> String {
        let mut whole = self.clone();
        if let Some(trace) = &mut whole.workload.trace {
            trace.name_by_place();
        }
        if let Some(file) = &whole.precondition.snapshot_file {
            whole.precondition.snapshot = Some(file.display().to_string());
        }
        toml::to_string(&whole).expect("every value of a scenario can be written")
    }

    /// The published schema of a scenario.
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(Scenario)
    }
}

#[cfg(test)]
mod tests;
