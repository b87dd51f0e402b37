//! Whether a run was in a steady state: how the drive settled before it, and what drifted within it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How steady the drive was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// How write amplification settled when the drive was preconditioned; absent if nothing waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Settling>,
    /// How it settled in the ramp (`run.ramp.settle`); absent if nothing waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Settling>,
    /// Write amplification in each third of the measured part, by bytes written; empty if they are too few.
    #[serde(default)]
    pub waf_by_third: Vec<f64>,
    /// Each of successive runs (`run.repeat`), the measured one last; empty if there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repetitions: Vec<Repetition>,
}

/// One of successive runs of the same work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repetition {
    /// Commands that succeeded.
    pub commands: u64,
    /// Reads and writes a simulated second.
    pub iops: f64,
    /// Write amplification.
    pub waf: f64,
}

/// How write amplification settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settling {
    /// It has; else it was given up.
    pub settled: bool,
    /// Bytes written meanwhile, over the logical capacity.
    pub passes: f64,
    /// Chunks that were compared.
    pub chunks: u64,
    /// Write amplification over the last quarter of them.
    pub waf: f64,
}

impl Steadiness {
    /// By how much write amplification grew from the first third of the measured part to the last, over the
    /// last.
    pub fn drift(&self) -> Option<f64> {
        let (first, last) = (self.waf_by_third.first()?, self.waf_by_third.last()?);
        (*last > 0.0).then(|| (last - first) / last)
    }
}
