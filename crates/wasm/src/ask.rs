//! Questions and answers, as JSON.

use leyden_device::Config;
use leyden_sim::Ratio;
use leyden_workload::synth::JobConfig;
use serde::{Deserialize, Serialize};

use crate::loss::{Cut, Restored};
use crate::sample::Sample;

/// A question.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// The policies that a drive can have.
    Policies {},
    /// A new drive, in place of the one that is there.
    Open(Box<Open>),
    /// Another workload. Commands in flight go on.
    Jobs {
        /// Jobs as in a scenario, under `[[workload.job]]`.
        jobs: Vec<JobConfig>,
    },
    /// Lets simulated time pass.
    Advance {
        /// Length of time at most.
        span_ns: u64,
        /// Number of commands that end at most; those of the last instant may be more.
        commands_most: u64,
    },
    /// Looks at the drive as it is now.
    Look {},
    /// Cuts the power now.
    Cut {},
    /// Brings the power back now.
    Restore {},
}

/// A drive and its host.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The drive as in a scenario, under `[device]`.
    pub device: Config,
    /// Jobs as in a scenario, under `[[workload.job]]`.
    pub jobs: Vec<JobConfig>,
    /// Seed of everything random.
    pub seed: u64,
    /// True if every address is written once, in order, before the first command.
    pub fill: bool,
    /// Share of the capacity that is overwritten at random after that.
    pub overwrite: Ratio,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To [`Ask::Policies`].
    Policies(Policies),
    /// To [`Ask::Open`].
    Opened(Opened),
    /// To [`Ask::Jobs`] and [`Ask::Advance`].
    Advanced {
        /// Simulated time.
        time_ns: u64,
        /// Commands that have ended since the drive was opened.
        ended: u64,
    },
    /// To [`Ask::Look`]. Latencies begin anew.
    Sample(Sample),
    /// To [`Ask::Cut`].
    Cut(Cut),
    /// To [`Ask::Restore`].
    Restored(Restored),
    /// The question was refused; nothing has changed.
    Error {
        /// The fault, and the remedy.
        problem: String,
    },
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policy {
    /// Its name in a configuration.
    pub name: &'static str,
    /// One sentence about it.
    pub summary: String,
}

/// The policies of a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policies {
    /// Of `buffer.schedule`.
    pub schedules: Vec<Policy>,
    /// Of `ftl.map.protection`.
    pub map_protections: Vec<Policy>,
    /// Of `power.dump`.
    pub dumps: Vec<Policy>,
    /// Of `ftl.gc.victim`.
    pub victims: Vec<Policy>,
}

/// A drive that has been opened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Opened {
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// Bytes of flash.
    pub flash_bytes: u64,
    /// Bytes of a mapping unit.
    pub unit_bytes: u64,
    /// Pages of the mapping table.
    pub map_pages: u64,
    /// The bank, and the demand at worst; none without `power`.
    pub bank: Option<Provisioned>,
    /// The drive before the first command.
    pub sample: Sample,
}

/// A bank, and the demand that it has to meet at worst.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Provisioned {
    /// Capacitance of the bank.
    pub capacitance_nf: u64,
    /// Energy of the full bank.
    pub energy_nj: u64,
    /// Capacitance that the drive needs at worst.
    pub worst_capacitance_nf: u64,
    /// Energy that the drive needs at worst.
    pub worst_energy_nj: u64,
}
