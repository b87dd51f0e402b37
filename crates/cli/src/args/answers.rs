//! `leyden lifetime` and `leyden timeline`.

use std::path::PathBuf;

use clap::ValueEnum;
use leyden_config::Set;
use leyden_sim::Span;

use super::parse_set;

pub(super) const LIFETIME_EXAMPLES: &str = "\
Examples:
  leyden lifetime tpcc --cycles 3000
  leyden lifetime tpcc --cycles 3000 --warranty 3 --set device.ftl.over_provisioning=28%";

/// `leyden lifetime`.
#[derive(Debug, clap::Args)]
pub(crate) struct LifetimeArgs {
    /// The scenario: a file, or the name of a bundled one
    pub(crate) file: String,
    /// Endurance of a block in erases; default: device.nand.endurance_cycles
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cycles: Option<u64>,
    /// Years over which drive writes a day are rated
    #[arg(long, value_name = "YEARS", default_value_t = 5.0, value_parser = parse_years)]
    pub(crate) warranty: f64,
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// Precondition the drive anew
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Shorthand for --set seed=N
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) const TIMELINE_EXAMPLES: &str = "\
Examples:
  leyden timeline tpcc --output slow.json
  leyden timeline hot-cold --of write --before 5ms --output slow.json
  leyden timeline tpcc --at 120s --after 10ms --output at.json";

/// The subject of a timeline.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TimelineOf {
    /// The slowest read
    Read,
    /// The slowest write
    Write,
    /// The slowest flush
    Flush,
    /// The slowest command
    Any,
}

/// `leyden timeline`.
#[derive(Debug, clap::Args)]
pub(crate) struct TimelineArgs {
    /// The scenario: a file, or the name of a bundled one
    pub(crate) file: String,
    /// The file to write: a page (.html), or a trace for Perfetto (.json)
    #[arg(short, long, value_name = "FILE.html|FILE.json")]
    pub(crate) output: PathBuf,
    /// The command to follow
    #[arg(long, value_enum, default_value_t = TimelineOf::Any)]
    pub(crate) of: TimelineOf,
    /// Show this time of the run instead of a command
    #[arg(long, value_name = "TIME", conflicts_with = "of")]
    pub(crate) at: Option<Span>,
    /// Time to show before the command arrived
    #[arg(long, value_name = "TIME", default_value = "2 ms")]
    pub(crate) before: Span,
    /// Time to show after it completed
    #[arg(long, value_name = "TIME", default_value = "500 us")]
    pub(crate) after: Span,
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// Precondition the drive anew
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Shorthand for --set seed=N
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
}

fn parse_years(text: &str) -> Result<f64, String> {
    let years = text.parse().ok().filter(|years| *years > 0.0 && *years <= 1000.0);
    years.ok_or_else(|| "a number of years above 0 and up to 1000 is expected".to_owned())
}
