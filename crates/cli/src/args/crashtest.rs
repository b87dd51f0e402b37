//! Crash tests of other programs.

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use leyden_config::Set;
use leyden_crashtest::{DRIVES_MOST, Model, Persistence};
use leyden_serve::{FaultRule, Listen};
use leyden_sim::{Bytes, Span};

use super::parse_set;
use super::served::{PaceArgs, parse_sector, parse_size};

pub(crate) const EXAMPLES: &str = "\
Examples:
  leyden crashtest --files --work ./work.sh --check ./check.sh --out crash
  leyden crashtest devices/hexa --work ./work.sh --check ./check.sh --out crash
  leyden crashtest --db sqlite --out crash
  leyden crashtest init sqlite && sh sqlite/run.sh
  leyden crashtest run crash --states 5000
  leyden crashtest shrink crash crash/findings/adversarial-1.json
  leyden crashtest replay crash crash/findings/adversarial-1.json --shell

Environment of the scripts:
  LEYDEN_MOUNT   the mounted file system
  LEYDEN_DEV     the device; with --fs none there is no file system
  LEYDEN_ACK     work: a file; each line appended (echo ack 17 >>$LEYDEN_ACK) is a promise
  LEYDEN_ACKS    check: a file with the promises before the cut, without `ack`
  LEYDEN_TMP     a folder outside of the drive
  LEYDEN_DRIVES  with --files: the number of drives

A check exits with 0 (held), 77 (no opinion) or another code (broken). A printed line `lost ...` names lost data.

Each run makes two controls: the check must pass where nothing is lost, and fail on a drive that ignores flushes.

Exit codes:
  0    everything held
  1    a lawful drive breaks a promise
  2    bad usage, a failing script, or a missing tool
  3    a file cannot be read or written
  6    no verdict: the check passes a drive that ignores all flushes
  7    no verdict: the check fails where nothing is lost
  8    no verdict: fewer states were tried than --require-states
  70   no verdict: Leyden itself failed
  130  interrupted";

/// `leyden crashtest`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct CrashtestArgs {
    #[command(subcommand)]
    pub(crate) command: Option<CrashtestCommand>,
    // Without a command: record and run.
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// The steps of a crash test, one command each.
#[derive(Debug, Subcommand)]
pub(crate) enum CrashtestCommand {
    /// Record a run of your software on a modelled drive
    Record(RecordArgs),
    /// Cut the power of a recorded run at many moments, and check each state
    Run {
        /// The folder of the recording
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// A check that replaces the recorded one
        #[arg(long, value_name = "COMMAND")]
        check: Option<String>,
        #[command(flatten)]
        options: RunOptions,
    },
    /// Find redundant flushes: drop each in turn and check again
    Audit {
        /// The folder of the recording
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// States to try without each flush
        #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        states: u32,
        #[command(flatten)]
        common: RunCommon,
    },
    /// Print the share of power cuts that lose data, by capacitance of the drive
    Capacitor {
        /// The folder of the recording
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Capacitances, in microfarads
        #[arg(long, value_name = "UF", value_delimiter = ',', required = true,
              value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
        uf: Vec<u64>,
        /// Power cuts for each, at random moments
        #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
        cuts: u32,
        #[command(flatten)]
        common: RunCommon,
    },
    /// Shrink a finding: the needed lost sectors, at the earliest moment, named by file
    Shrink(SeedArgs),
    /// Try a finding again, or inspect its files
    Replay {
        #[command(flatten)]
        seed: SeedArgs,
        #[command(flatten)]
        how: ReplayHow,
    },
    /// Run a log of dm-log-writes on a modelled drive
    Import(ImportArgs),
    /// Write a recorded run as a log of dm-log-writes
    Export {
        /// The folder of the recording
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The log, which must not be there
        #[arg(value_name = "LOG")]
        log: PathBuf,
        /// Write the device's initial content to this file
        #[arg(long, value_name = "FILE")]
        base: Option<PathBuf>,
    },
    /// Show a recording and the result of its last run
    Show {
        /// The folder of the recording
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Print JSON, and nothing else, on standard output
        #[arg(long)]
        json: bool,
    },
    /// Write the scripts of a crash test of well-known software into a new folder
    ///
    /// `sh NAME/run.sh` then records and runs it on a modelled drive, `sh NAME/run.sh --files` at the level
    /// of files. Without a name, lists the software.
    Init {
        /// The software: bbolt, etcd, gdbm, git, leveldb, lmdb, mariadb, postgresql, redis, rocksdb or sqlite
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// The new folder; NAME if not given
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Check whether this machine can run crash tests
    Doctor {
        /// The file system to be used
        #[arg(long, value_name = "FS", default_value = "ext4")]
        fs: String,
        /// Check the needs of crash tests of files (crashtest --files)
        #[arg(long, conflicts_with = "fs")]
        files: bool,
    },
    /// Serve a coordinator over standard input, in its own namespaces
    #[command(hide = true)]
    Worker {
        /// The folder of the recording
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Options of a recording.
///
/// Required options are optional here: `leyden crashtest` with a command needs none of them.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// The drive of this scenario (a file or a bundled name), scaled down to --size with the same
    /// parallelism, times, buffer and capacitors
    #[arg(value_name = "DRIVE", required_unless_present_any = ["files", "db"])]
    drive: Option<String>,
    /// Test this software with the scripts of `crashtest init`, at the level of files unless there is a DRIVE
    ///
    /// The scripts go to the folder `db` in --out.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["setup", "work", "check", "ack_lines", "check_server"])]
    pub(crate) db: Option<String>,
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// Size of the device for the software; default: 64 MiB, or what the scripts of --db need
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) size: Option<Bytes>,
    /// One more argument for mkfs; may be repeated
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) mkfs: Vec<String>,
    /// Bytes of the device's sectors, the unit of the kernel's writes
    #[arg(long, value_name = "BYTES", default_value_t = 4_096, value_parser = parse_sector)]
    pub(crate) sector: u32,
    /// Begin with this raw device instead of a new file system; `crashtest replay --raw` writes one
    #[arg(long, value_name = "FILE", conflicts_with = "mkfs")]
    pub(crate) base: Option<PathBuf>,
    /// A shell command that prepares the file system, before the recording
    #[arg(long, value_name = "COMMAND")]
    pub(crate) setup: Option<String>,
    /// A shell command that does the work to be recorded
    #[arg(long, value_name = "COMMAND", required_unless_present = "db")]
    work: Option<String>,
    /// A shell command that checks the state after a power cut
    #[arg(long, value_name = "COMMAND", required_unless_present = "db")]
    check: Option<String>,
    /// Lines of the work's output with this beginning are promises too
    #[arg(long, value_name = "TEXT")]
    pub(crate) ack_lines: Option<String>,
    /// Make I/O of the work fail, with rules of `leyden fault`; may be repeated
    ///
    /// The work may fail; its promises must hold. With --files calls fail: reads, writes, and
    /// for "flush" fsync and fdatasync.
    #[arg(long, value_name = "RULE")]
    pub(crate) fault: Vec<FaultRule>,
    #[command(flatten)]
    pub(crate) checked: CheckArgs,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    /// The folder for the recording and all results, which must hold no other recording
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,
}

/// Recordings of calls on files.
#[derive(Debug, clap::Args)]
pub(crate) struct FilesArgs {
    /// Record calls on files in a folder in memory, without a drive: no root, and much faster
    ///
    /// RULES are the promises of files: "xfs", "ext4" and "btrfs" as in Linux, "posix" as in the standard.
    #[arg(
        id = "files", long, value_enum, value_name = "RULES", num_args = 0..=1, require_equals = true, default_missing_value = "xfs",
        conflicts_with_all = [
            "drive", "set", "size", "mkfs", "sector", "base", "fs", "options", "fsck", "latency", "speed",
        ]
    )]
    rules: Option<RulesArg>,
    /// Drives that lose power together or alone, one for each member of a cluster: the folders 1 to N of $LEYDEN_MOUNT
    ///
    /// All scripts see the loopback network only.
    #[arg(long, value_name = "N", conflicts_with = "drive",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(DRIVES_MOST)))]
    pub(crate) drives: Option<u32>,
}

/// The promises of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RulesArg {
    /// The promises of the standard and the manual pages only
    Posix,
    /// XFS of Linux
    Xfs,
    /// ext4 of Linux with its default options
    Ext4,
    /// Btrfs of Linux with its default options
    Btrfs,
}

impl From<RulesArg> for Persistence {
    fn from(arg: RulesArg) -> Self {
        match arg {
            RulesArg::Posix => Self::Posix,
            RulesArg::Xfs => Self::Xfs,
            RulesArg::Ext4 => Self::Ext4,
            RulesArg::Btrfs => Self::Btrfs,
        }
    }
}

impl RecordArgs {
    pub(crate) fn drive(&self) -> &str {
        given(self.drive.as_deref())
    }
    /// The rules of files, if calls on files are recorded.
    pub(crate) fn rules(&self) -> Option<Persistence> {
        let by_default = self.drive.is_none().then(Persistence::default);
        self.files.rules.map(Persistence::from).or(by_default)
    }
    pub(crate) fn work(&self) -> &str {
        given(self.work.as_deref())
    }
    pub(crate) fn check(&self) -> &str {
        given(self.check.as_deref())
    }
    pub(crate) fn out(&self) -> &Path {
        given(self.out.as_deref())
    }
}

/// The content of the drive, and the check of a state.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The file system, or "none"
    #[arg(long, value_name = "FS", default_value = "ext4")]
    pub(crate) fs: String,
    /// Options of the file system's mount, separated by commas
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) options: Option<String>,
    /// Start the check once: it reads a line for each state and answers "ok", "skip", "lost ..." or a problem
    #[arg(long)]
    pub(crate) check_server: bool,
    /// Run the file system's own check too
    #[arg(long)]
    pub(crate) fsck: bool,
    /// A check that takes longer counts as hung
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub(crate) timeout: Span,
}

/// A run that another tool has recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// The drive: a scenario file, or the name of a bundled one, scaled down to --size
    #[arg(value_name = "DRIVE")]
    pub(crate) drive: String,
    /// The log, as dm-log-writes, xfstests and QEMU's blklogwrites write it
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// The device before the log, as a raw file; default: zeroes
    #[arg(long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
    /// Size of the device; default: that of --base
    #[arg(long, value_name = "SIZE", required_unless_present = "base", value_parser = parse_size)]
    pub(crate) size: Option<Bytes>,
    /// Cut the power behind this mark of the log only
    #[arg(long, value_name = "MARK")]
    pub(crate) begin: Option<String>,
    /// Marks with this beginning are promises, like those with "ack "
    #[arg(long, value_name = "TEXT")]
    pub(crate) ack_lines: Option<String>,
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// A shell command that checks the state after a power cut
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: String,
    #[command(flatten)]
    pub(crate) checked: CheckArgs,
    /// The folder for the recording and all results, which must hold no other recording
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

fn given<T>(argument: Option<T>) -> T {
    argument.expect("clap has asked for it")
}

/// The states to try.
#[derive(Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// Where states come from; several, separated by commas
    #[arg(
        long,
        value_enum,
        value_name = "MODEL",
        value_delimiter = ',',
        default_value = "adversarial"
    )]
    pub(crate) model: Vec<ModelArg>,
    /// States to try of each model
    #[arg(long, value_name = "N", default_value_t = 500,
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) states: u64,
    /// Stop each model after this time; the number of states then depends on the machine
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<Span>,
    /// Fail, with exit code 8, if a model tried fewer states
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) require_states: Option<u64>,
    /// Cut the power again during recovery: states to try after each first state
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) again: u32,
    /// Try each state, also those that differ only in sectors never read
    #[arg(long)]
    pub(crate) try_all: bool,
    /// Capacitance of the recorded drive, in microfarads (model "realistic")
    #[arg(long, value_name = "UF", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) capacitance_uf: Option<u64>,
    /// Show the run on a page at HOST:PORT, or PORT of the loopback interface: rate, failures, time left
    ///
    /// /metrics has OpenMetrics for Prometheus.
    #[arg(long, value_name = "ADDRESS", value_parser = super::http::parse_address)]
    pub(crate) http: Option<Listen>,
    #[command(flatten)]
    pub(crate) common: RunCommon,
}

/// How states are tried.
#[derive(Debug, clap::Args)]
pub(crate) struct RunCommon {
    /// Seed of random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Bytes that a drive keeps or loses as a whole; default: its mapping unit, with --files 4096
    #[arg(long, value_name = "BYTES", value_parser = parse_sector)]
    pub(crate) atom: Option<u32>,
    /// Parallel states; default: the number of cores
    ///
    /// Findings do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) ground: GroundArgs,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the software gets to its files.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct GroundArgs {
    /// Extract files with e2fsprogs instead of mounting; the default without root
    ///
    /// For ext2, ext3, ext4 and --fs none.
    #[arg(long)]
    pub(crate) extract: bool,
    /// Trust a folder recorded elsewhere, now and later: its commands run with your rights
    ///
    /// Read its `plan.json` first.
    #[arg(long)]
    pub(crate) trust: bool,
}

/// A finding of a recording.
#[derive(Debug, clap::Args)]
pub(crate) struct SeedArgs {
    /// The folder of the recording
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The finding, as runs keep them in the folder `findings`
    #[arg(value_name = "FINDING")]
    pub(crate) finding: PathBuf,
    #[command(flatten)]
    pub(crate) ground: GroundArgs,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// An action on a state instead of the check.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayHow {
    /// Mount it, and open a shell there
    #[arg(long, conflicts_with_all = ["run", "copy", "json"])]
    pub(crate) shell: bool,
    /// Mount it, and run this shell command there; its output and exit code are passed on
    #[arg(long, value_name = "COMMAND", conflicts_with = "json")]
    pub(crate) run: Option<String>,
    /// Write the device in that state to this new file, for `crashtest record --base`
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) raw: Option<PathBuf>,
    /// Copy its files to this new folder; with --fs none the device, as device.img there
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    pub(crate) copy: Option<PathBuf>,
}

/// Where states come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelArg {
    /// All that the contract of a volatile cache allows
    Adversarial,
    /// The losses of the recorded drive: replayed exactly, and cut
    Realistic,
    /// The losses of a drive that ignores flushes
    Lying,
}

impl From<ModelArg> for Model {
    fn from(arg: ModelArg) -> Self {
        match arg {
            ModelArg::Adversarial => Self::Adversarial,
            ModelArg::Realistic => Self::Realistic,
            ModelArg::Lying => Self::Lying,
        }
    }
}
