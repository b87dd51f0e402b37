//! `leyden size`, `leyden lifetime` and `leyden timeline`.

use std::path::PathBuf;

use clap::ValueEnum;
use leyden_config::Set;
use leyden_sim::Span;

use super::parse_set;

pub(super) const SIZE_EXAMPLES: &str = "\
Examples:
  leyden size power-loss
  leyden size power-loss --set device.power.bank.part=aluminium --json
  leyden size power-loss --set device.power.bank.capacitance='8 mF' --allow-underprovisioned
  leyden size devices/tlc-datacenter --worst --set size='1.92 TB' --csv banks.csv
  leyden size power-loss --fleet 100000
  leyden size power-loss --report size.html

Without --worst or --fleet it makes about 20 short runs, each with its own preconditioning. Without a \
terminal, progress is a line a minute.";

/// `leyden size`.
#[derive(Debug, clap::Args)]
pub(crate) struct SizeArgs {
    /// The scenario: a file, or the name of a bundled one
    pub(crate) file: String,
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// Shorthand for --set seed=N
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Commands to run on each drive
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) commands: u64,
    /// Accept a bank that is too small for the worst case, and report its losses
    #[arg(long)]
    pub(crate) allow_underprovisioned: bool,
    /// Parallel runs; default: the number of cores, as memory allows
    ///
    /// Results do not depend on it; wall times do.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// Compute the bank of every protection, dump and part, and the weight of each assumption; runs nothing
    #[arg(long)]
    pub(crate) worst: bool,
    /// Estimate how many of N drives fall below the worst case as their capacitors age; runs nothing
    #[arg(long, value_name = "N", conflicts_with = "worst", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) fleet: Option<u64>,
    /// Write the banks of --worst as a table, a line for each
    #[arg(long, value_name = "FILE.csv", requires = "worst")]
    pub(crate) csv: Option<PathBuf>,
    /// Write a page with plots: loss by capacitance or over the fleet, the bank, boards, the weight of each assumption
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

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
    /// Write a page with plots: years by drive writes a day, wear, write amplification
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) const TIMELINE_EXAMPLES: &str = "\
Examples:
  leyden timeline tpcc --output slow.html
  leyden timeline hot-cold --of write --before 5ms --output slow.pftrace
  leyden timeline tpcc --at 120s --after 10ms --output at.pftrace";

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
    /// The file to write: a page (.html), or a trace for Perfetto (.pftrace)
    #[arg(short, long, value_name = "FILE.html|FILE.pftrace")]
    pub(crate) output: PathBuf,
    /// The command to follow
    #[arg(long, value_enum, default_value_t = TimelineOf::Any)]
    pub(crate) of: TimelineOf,
    /// Show this time of the run instead of a command
    #[arg(long, value_name = "TIME", conflicts_with = "of")]
    pub(crate) at: Option<Span>,
    /// Time to show before the command arrived
    #[arg(long, value_name = "TIME", default_value_t = Self::BEFORE)]
    pub(crate) before: Span,
    /// Time to show after it completed
    #[arg(long, value_name = "TIME", default_value_t = Self::AFTER)]
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

impl TimelineArgs {
    pub(crate) const BEFORE: Span = Span::from_ms(2);
    pub(crate) const AFTER: Span = Span::from_us(500);
}

fn parse_years(text: &str) -> Result<f64, String> {
    let years = text.parse().ok().filter(|years| *years > 0.0 && *years <= 1000.0);
    years.ok_or_else(|| "a number of years above 0 and up to 1000 is expected".to_owned())
}
