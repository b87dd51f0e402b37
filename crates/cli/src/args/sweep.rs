//! `leyden sweep` and `leyden cache`.

use std::path::PathBuf;

use clap::Subcommand;
use leyden_sweep::Shard;

pub(super) const SWEEP_EXAMPLES: &str = "\
Examples:
  leyden sweep plan.toml --out parts
  leyden sweep plan.toml --shard 17/1000 --out parts     one task of a batch system
  leyden sweep status parts
  leyden sweep merge parts --output runs.parquet

A plan:
  base = \"hot-cold\"
  seeds = 3
  [grid]
  device.ftl.gc.victim = [\"greedy\", \"cost_benefit\"]
  device.ftl.over_provisioning = [\"7 %\", \"12 %\", \"28 %\"]

A shard that ended early is resumed. A point that cannot be run is a row that says why.

Exit codes: 1 if a point failed; its row and all others are kept.";

/// `leyden sweep`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SweepArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SweepCommand>,
    /// The plan, or - for standard input
    #[arg(required = true)]
    pub(crate) plan: Option<PathBuf>,
    /// Keep the results in this folder, a Parquet file for each shard
    #[arg(long, value_name = "DIR", required = true)]
    pub(crate) out: Option<PathBuf>,
    /// Run shard K of N: neighbouring points, as many in each shard
    #[arg(long, value_name = "K/N", default_value = "1/1")]
    pub(crate) shard: Shard,
    /// Runs made at once; as many as there are cores if not given, and never more than memory allows
    ///
    /// Results do not depend on it; wall times do.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// Keep what happened in each interval of each run, too
    #[arg(long)]
    pub(crate) series: bool,
    /// Run points again that failed
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Precondition each drive anew
    #[arg(long)]
    pub(crate) no_cache: bool,
}

/// Subcommands of `leyden sweep`.
#[derive(Debug, Subcommand)]
pub(crate) enum SweepCommand {
    /// List the points of a plan
    Points {
        /// The plan, or - for standard input
        plan: PathBuf,
    },
    /// Show how far a sweep is
    Status {
        /// The folder of its results
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Print JSON, and nothing else, on standard output
        #[arg(long)]
        json: bool,
    },
    /// Join the results of all shards into one table
    ///
    /// The bytes are the same however many shards, threads and machines there were.
    Merge {
        /// The folder of its results
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Write the table to this file
        #[arg(short, long, value_name = "FILE.parquet")]
        output: PathBuf,
        /// Write the series to this file: a line for each point, series and interval
        #[arg(long, value_name = "FILE.parquet")]
        series: Option<PathBuf>,
        /// Join the shards that are there
        #[arg(long)]
        partial: bool,
    },
}

/// Subcommands of `leyden cache`.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show where the cache is, and what it holds
    Status {
        /// Print JSON, and nothing else, on standard output
        #[arg(long)]
        json: bool,
    },
    /// Remove all drives
    Clear,
}
