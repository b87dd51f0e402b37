//! The drive's history before the run.

use std::path::PathBuf;

use leyden_sim::{ConfigError, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The drive's history before the run. Flash operations of preconditioning take no simulated
/// time, and none of it is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PreconditionConfig {
    /// How far it goes.
    pub kind: PreconditionKind,
    /// Where `steady` writes.
    pub distribution: Distribution,
    /// Treatment of addresses that the workload does not write, by `steady` with the distribution `workload`.
    #[serde(skip_serializing_if = "is_default")]
    pub rest: Rest,
    /// How much the write amplification may still change and count as settled.
    pub tolerance: Ratio,
    /// `steady` gives up, with a warning, once it has written the logical capacity this often.
    #[schemars(range(min = 1, max = 1000))]
    pub max_passes: u32,
    /// How much `sampled` writes once the state is drawn, as a share of the logical capacity, for effects
    /// outside of the theory, like collections in progress.
    pub settle: Ratio,
    /// A file that keeps the drive's state: loaded if it is there and was made by the same
    /// configuration and seed, else made and saved. Relative to the file that says so.
    pub snapshot: Option<String>,
    /// The same, from the current folder.
    #[serde(skip)]
    pub snapshot_file: Option<PathBuf>,
}

impl Default for PreconditionConfig {
    fn default() -> Self {
        Self {
            kind: PreconditionKind::default(),
            distribution: Distribution::default(),
            rest: Rest::default(),
            tolerance: Ratio::from_percent(1),
            max_passes: 20,
            settle: Ratio::from_percent(2),
            snapshot: None,
            snapshot_file: None,
        }
    }
}

/// How far preconditioning goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreconditionKind {
    /// A new drive: nothing has been written.
    #[default]
    None,
    /// Every logical address written once, in order. Zoned drives: and every zone reset, so that the run begins
    /// with empty zones on flash that has been used.
    Fill,
    /// Filled, then overwritten until the write amplification settles. Overwriting goes in chunks:
    /// one ends when the drive has erased a quarter as many blocks as it has, or written its
    /// logical capacity once; a trace's passes are not cut. Settled means that the last quarter of
    /// the chunks so far and the quarter before have means that differ by no more than `tolerance`,
    /// at two chunks in a row, of more than eight.
    Steady,
    /// The steady state of uniform random writes, drawn as theory says that it is, and overwritten for as
    /// long as `settle` says. Takes a small part of the time that `steady` takes. For one stream of data
    /// and the victim policies `greedy`, `fifo` and `d_choices`.
    Sampled,
}

/// Where preconditioning to the steady state writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Mapping units anywhere, each as likely as any other.
    #[default]
    Uniform,
    /// The workload's own writes, repeated (a trace: looped).
    Workload,
}

/// Treatment of addresses that the workload does not write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// It writes every logical address once before the workload's own writes.
    #[default]
    Written,
    /// It leaves them unmapped: their share of the flash is spare.
    Unwritten,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_default(rest: &Rest) -> bool {
    *rest == Rest::default()
}

impl PreconditionConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong =
            |key: &str, problem: String| Err(ConfigError::new(key, problem).within("precondition"));
        if self.tolerance == Ratio::ZERO || self.tolerance > Ratio::from_percent(50) {
            return wrong("tolerance", format!("{} is not above 0 and up to 50 %", self.tolerance));
        }
        if !(1..=1000).contains(&self.max_passes) {
            return wrong("max_passes", format!("{} is not in 1..=1000", self.max_passes));
        }
        let leaves_rest = match self.kind {
            PreconditionKind::None => true,
            PreconditionKind::Steady => self.distribution == Distribution::Workload,
            PreconditionKind::Fill | PreconditionKind::Sampled => false,
        };
        if self.rest == Rest::Unwritten && !leaves_rest {
            let problem = "\"unwritten\" takes distribution = \"workload\" of kind = \"steady\": all else writes \
                           every address";
            return wrong("rest", problem.to_owned());
        }
        if self.settle > Ratio::from_percent(10_000) {
            return wrong("settle", format!("{} is not in 0..=10000 %", self.settle));
        }
        if self.snapshot.as_deref() == Some("") {
            return wrong("snapshot", "the path is empty".into());
        }
        Ok(())
    }
}
