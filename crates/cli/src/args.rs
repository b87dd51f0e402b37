//! The command line. Doc comments are the help texts.

mod answers;
#[cfg(feature = "crashtest")]
pub(crate) mod crashtest;
#[cfg(feature = "serve")]
mod http;
#[cfg(feature = "serve")]
pub(crate) mod nvme;
#[cfg(feature = "plot")]
mod plot;
pub(crate) mod reproduce;
#[cfg(feature = "serve")]
pub(crate) mod served;
mod sweep;
mod traces;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use leyden_config::Set;

pub(crate) use answers::{LifetimeArgs, SizeArgs, TimelineArgs, TimelineOf};
#[cfg(feature = "plot")]
pub(crate) use plot::{Length, PlotArgs};
pub(crate) use reproduce::ReproduceArgs;
pub(crate) use sweep::{CacheCommand, SweepArgs, SweepCommand};
pub(crate) use traces::{ActionArg, ConvertArgs, InfoArgs, ReadArgs, TraceCommand};

use crate::version::VERSION;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "leyden",
    version = VERSION,
    about = "A software-defined flash SSD whose power can be cut at any nanosecond",
    after_help = EXAMPLE,
    after_long_help = AFTER_LONG,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Args {
    /// Suppress progress and notes
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLE: &str = "\
Begin with:
  leyden run tpcc --report tpcc.html
  leyden crashtest doctor

leyden COMMAND --help has examples of each command.";

const AFTER_LONG: &str = "\
Begin with:
  leyden run tpcc --report tpcc.html    replay a TPC-C trace: a table, and a page with plots
  leyden run --list                     list the bundled scenarios
  leyden crashtest doctor               check whether this machine can run crash tests

Exit codes:
  0    done
  1    the run failed, a read returned wrong data, or a guarantee was broken
  2    bad usage, input or configuration
  3    a result could not be written, or a file could not be read to its end
  4    a drive wore out: no flash left for a write; results are kept
  5    nothing was measured; results are kept
  6    no verdict of a crash test: its check passes a drive that ignores all flushes
  7    no verdict of a crash test: its check fails where nothing is lost
  8    no verdict of a crash test: fewer states were tried than --require-states
  70   Leyden itself failed, and nothing was found out
  130  interrupted; finished results are kept (a second Ctrl-C keeps nothing)

Colour is used on terminals only; NO_COLOR=1 turns it off.";

/// The command to run.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a workload: latency, throughput, flash operations
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Validate a scenario and print it with every default filled in
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Compare configurations on one workload, as a table of ratios
    #[command(after_long_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Run a plan of many configurations, in shards, as one table
    ///
    /// The table is Parquet: a line for each run, with its varied keys as numbers, its figures and its warnings. pandas, Polars
    /// and DuckDB read it.
    #[command(after_long_help = sweep::SWEEP_EXAMPLES)]
    Sweep(SweepArgs),
    /// Show or clear the cache of preconditioned drives
    ///
    /// `run`, `compare`, `sweep`, `timeline` and `lifetime` begin with a drive of the cache where an earlier command of the same
    /// build has made it. Results are the same with and without.
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Measure the papers' claims beside the published figures
    #[command(after_long_help = reproduce::EXAMPLES)]
    Reproduce(ReproduceArgs),
    /// Estimate endurance: write amplification, drive writes a day, years
    #[command(after_long_help = answers::LIFETIME_EXAMPLES)]
    Lifetime(LifetimeArgs),
    /// Trace the drive around its slowest command, for Perfetto
    ///
    /// The run is made twice: to find the command, and to follow host, channels and dies around it.
    /// Open the file at ui.perfetto.dev, or with another viewer of Chrome's trace events.
    #[command(after_long_help = answers::TIMELINE_EXAMPLES)]
    Timeline(TimelineArgs),
    /// Find the capacitance a drive needs, and the data lost with less
    ///
    /// The worst case follows from the configuration. What the workload needs is measured in short runs:
    /// with every protection of the mapping table, and with every place for dumps. All of these drives
    /// have the same capacity and the same spare blocks.
    #[command(after_long_help = answers::SIZE_EXAMPLES)]
    Size(SizeArgs),
    /// Profile or convert block traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Cut the power of random drives and check every guarantee
    #[command(after_long_help = TORTURE_EXAMPLES)]
    Torture(TortureArgs),
    /// Test whether your software keeps its data over power cuts
    ///
    /// Records one run of your software on a modelled drive with a file system, then tries the states that a
    /// power cut may leave: each is mounted, recovered by the file system and by your software, and checked.
    /// Requires root, /dev/fuse and loop devices; `leyden crashtest doctor` reports what is missing.
    #[cfg(feature = "crashtest")]
    #[command(after_long_help = crashtest::EXAMPLES)]
    Crashtest(Box<crashtest::CrashtestArgs>),
    /// Manage RocksDB's file system on a zoned image
    ///
    /// Runs `leyden-fs`, a program of the RocksDB plugin (docs/rocksdb.md), found beside this one, in PATH,
    /// or named by LEYDEN_FS: `mkfs`, `info`, `ls`, `check`, `export` and `import`. Its exit code is the
    /// command's.
    #[cfg(feature = "serve")]
    #[command(disable_help_flag = true, after_long_help = FS_EXAMPLES)]
    Fs {
        /// Arguments of leyden-fs
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        args: Vec<std::ffi::OsString>,
    },
    /// Create, inspect, check and copy drives in files
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    Image(served::ImageCommand),
    /// Serve a drive over NBD and FUSE, in real time
    #[cfg(feature = "serve")]
    #[command(after_long_help = served::SERVE_EXAMPLES)]
    Serve(Box<served::ServeArgs>),
    /// Mount a file system on a drive, until Ctrl-C
    #[cfg(feature = "serve")]
    #[command(after_long_help = served::MOUNT_EXAMPLES)]
    Mount(served::MountArgs),
    /// Inspect the commands of a served drive and replay them
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    Recording(served::RecordingCommand),
    /// Cut the power of a served drive
    #[cfg(feature = "serve")]
    Cut(served::ImageArgs),
    /// Restore the power of a served drive
    #[cfg(feature = "serve")]
    Restore(served::RestoreArgs),
    /// Make commands of a served drive fail, for a time
    #[cfg(feature = "serve")]
    #[command(after_help = served::FAULT_EXAMPLES)]
    Fault(served::FaultArgs),
    /// Show the state and statistics of a served drive
    #[cfg(feature = "serve")]
    Status(served::ImageArgs),
    /// List the policies a configuration can choose from
    Policies {
        /// Print JSON, and nothing else, on standard output
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON schema of scenarios or run records
    ///
    /// Editors that know it complete keys and check values while a scenario is written.
    Schema {
        /// Of what
        #[arg(value_enum, default_value_t = SchemaOf::Scenario)]
        of: SchemaOf,
    },
    /// Render run records as one HTML page with plots
    ///
    /// The file is self-contained: it needs no network and no other file.
    Report(ReportArgs),
    #[cfg(feature = "plot")]
    /// Draw one figure of records or a report, as SVG, PDF or PNG
    Plot(PlotArgs),
    /// Print a shell completion script
    ///
    /// For bash: leyden completions bash > ~/.local/share/bash-completion/completions/leyden
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages
    ///
    /// To read one: leyden man . && man ./leyden-run.1
    Man {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Write the generated pages of docs/reference
    #[command(hide = true)]
    Reference {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// The subject of a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaOf {
    /// The input of a run: its scenario
    Scenario,
    /// The output of a run: its record
    Record,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  leyden check mine.toml
  leyden check mine.toml --set device.ftl.over_provisioning=28% > full.toml
  leyden check tpcc --json | jq .device.ftl";

/// `leyden check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The scenario: a file, the name of a bundled one, or - for standard input
    pub(crate) file: String,
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// Print JSON instead of TOML
    #[arg(long)]
    pub(crate) json: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  leyden run tpcc --report tpcc.html
  leyden run mine.toml --set device.ftl.over_provisioning=28% --seed 7
  leyden run bench/random-write --json | jq .host.iops
  leyden run records/tpcc.json          re-run a saved record or report

Bundled scenarios run for seconds (tpcc: 5 s on one core, preconditioning included), those with 1tib \
in their name for minutes.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  leyden compare hot-cold --vary device.ftl.placement=single,dac
  leyden compare tpcc --vary device.ftl.gc.victim=greedy,cost_benefit --report gc.html
  leyden compare tpcc --device devices/hexa --device devices/tlc-datacenter
  leyden compare hot-cold --vary device.ftl.over_provisioning=7%,15%,28% --csv sweep.csv
  leyden compare hot-cold --vary device.ftl.gc.victim=greedy,fifo --vary seed=1..5

Whole numbers can be given as a range: 1..5. Runs differing only in seed are shown as mean and 95 % \
confidence interval. Runs whose drives begin alike share their preconditioning.";

const TORTURE_EXAMPLES: &str = "\
Examples:
  leyden torture --seeds 20000 --state campaign.json    again, to continue after Ctrl-C
  leyden torture --seed 17                              one seed, as a campaign prints it
  leyden torture --seed 17 --shrink small.json          shrink its failure and keep it
  leyden torture --replay small.json

A thousand seeds take about five minutes of processor time.

Exit codes: 1 if a drive lost promised data or failed otherwise.";

/// `leyden run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The scenario: a file, the name of a bundled one, or - for standard input; or a run record or report
    /// to re-run. FILE#NAME selects one of several runs
    #[arg(required_unless_present = "list")]
    pub(crate) file: Option<String>,
    /// List the bundled scenarios
    #[arg(long, exclusive = true)]
    pub(crate) list: bool,
    /// Accept a bank that is too small for the worst case, and report its losses: --set
    /// device.power.allow_underprovisioned=true
    #[arg(long)]
    pub(crate) allow_underprovisioned: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// `leyden compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// The scenarios: files, or names of bundled ones; the first is what ratios are over
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Run with each of these values of a key; several keys give every combination
    ///
    /// Values are separated by commas outside of brackets and quotes; 1..5 stands for 1,2,3,4,5.
    #[arg(long, value_name = "KEY=A,B,...")]
    pub(crate) vary: Vec<String>,
    /// Run on each of these devices: files, or names of bundled ones, whose `device` table
    /// replaces the scenario's
    #[arg(long, value_name = "FILE")]
    pub(crate) device: Vec<String>,
    /// Parallel runs; default: the number of cores, as memory allows
    ///
    /// Results do not depend on it; wall times do.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options that `run` and `compare` share.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Common {
    /// Override a key of the configuration; may be repeated
    ///
    /// The value is TOML, or else text, so units need no quotes:
    /// --set device.nand.read=45us. A list's items are numbered: workload.job.0.queue_depth=8.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// Shorthand for --set seed=N
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Repeat every run with this many seeds; prints the mean, its 95 % confidence interval and, for
    /// ratios, minimum and maximum
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) seeds: u16,
    /// Precondition each drive anew
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Print the run record (or all of them) as JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Save each run record as NAME.json in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Leave the series out of the records of --json and --out
    ///
    /// Such a record has the configuration, every figure and the warnings. A report on it has no plots over time.
    #[arg(long)]
    pub(crate) no_series: bool,
    /// Write a report with plots
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Write the metrics as a table, a line for each run
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) csv: Option<PathBuf>,
}

#[cfg(feature = "serve")]
const FS_EXAMPLES: &str = "\
Examples:
  leyden fs mkfs rocks.leyden
  leyden fs ls rocks.leyden /bench
  leyden fs check rocks.leyden
  leyden fs export rocks.leyden /bench bench";

/// `leyden torture`.
#[derive(Debug, clap::Args)]
pub(crate) struct TortureArgs {
    /// Number of random drives
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) start: u64,
    /// Parallel drives; default: the number of processors
    ///
    /// Findings do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Keep the campaign's state in this file, and resume from it
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Torture zoned drives: zones, appends, resets, Zone Random Write Areas
    #[arg(long, conflicts_with_all = ["replay", "explain"])]
    pub(crate) zoned: bool,
    /// Torture block devices on a conventional and a zoned drive, with journals that move
    #[arg(long, conflicts_with_all = ["replay", "zoned", "explain"])]
    pub(crate) zoned_block: bool,
    /// Run this seed only
    #[arg(long, value_name = "SEED",
          conflicts_with_all = ["seeds", "start", "jobs", "state", "replay"])]
    pub(crate) seed: Option<u64>,
    /// Run a failure saved by --shrink
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "start", "jobs", "state"])]
    pub(crate) replay: Option<PathBuf>,
    /// Shrink the first failure and save it in this file
    ///
    /// The result fails in the same way with fewer commands, cuts and features.
    #[arg(long, value_name = "FILE")]
    pub(crate) shrink: Option<PathBuf>,
    /// Print a saved run as a timeline: commands, power cuts, dumps and recoveries
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["seeds", "start", "jobs", "state", "seed", "replay", "shrink"])]
    pub(crate) explain: Option<PathBuf>,
    /// Mutate the seeds that reached new states (half of the runs), and aim the cuts
    ///
    /// The first 256 seeds run unmutated.
    #[arg(long, conflicts_with_all = ["seed", "replay"])]
    pub(crate) guided: bool,
    /// Print the coverage of states; fail if a reachable one was missed
    #[arg(long, conflicts_with_all = ["seed", "replay", "explain"])]
    pub(crate) coverage: bool,
    #[command(flatten)]
    pub(crate) tiny: TinyArgs,
    /// Write a page: the verdict, power cuts, losses, coverage, and each failure with its command
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["explain", "replay", "seed"])]
    pub(crate) report: Option<PathBuf>,
    /// Show the campaign on a page at HOST:PORT, or PORT of the loopback interface: rate, failures, coverage
    ///
    /// /metrics has OpenMetrics for Prometheus.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS", value_parser = http::parse_address,
          conflicts_with_all = ["seed", "replay", "explain", "exhaustive"])]
    pub(crate) http: Option<leyden_serve::Listen>,
    /// Print the summary as JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tiny drives that torture cuts at every moment.
#[derive(Debug, clap::Args)]
pub(crate) struct TinyArgs {
    /// Cut short runs of tiny drives, one for each combination of policies, at every moment
    #[arg(long, conflicts_with_all = ["seeds", "start", "state", "seed", "replay", "shrink", "explain",
                                      "guided", "coverage"])]
    pub(crate) exhaustive: bool,
    /// Commands of each of these runs
    #[arg(long, value_name = "N", default_value_t = 200, requires = "exhaustive",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) commands: u32,
}

/// `leyden report`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Run records, written by `leyden run --json` or `--out`
    #[arg(required = true, value_name = "RECORD.json")]
    pub(crate) records: Vec<PathBuf>,
    /// The report
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: PathBuf,
    /// Its title; default: the runs' names
    #[arg(long)]
    pub(crate) title: Option<String>,
}

fn parse_set(text: &str) -> Result<Set, String> {
    text.parse::<Set>().map_err(|problem| problem.to_string())
}
