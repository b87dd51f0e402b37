//! Crash tests of other programs.

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use leyden_config::Set;
use leyden_crashtest::{Model, Persistence};
use leyden_serve::FaultRule;
use leyden_sim::{Bytes, Span};

use super::parse_set;
use super::served::{PaceArgs, parse_sector, parse_size};

pub(crate) const EXAMPLES: &str = "\
Examples:
  leyden crashtest init sqlite && sh sqlite/run.sh          a database that is known
  leyden crashtest --files --work ./work.sh --check ./check.sh --out crash      without root, at the level of files
  leyden crashtest devices/tlc-datacenter --size '64 MiB' --work ./work.sh --check ./check.sh --out crash
  leyden crashtest run crash --states 5000                  the same recording, longer
  leyden crashtest shrink crash crash/findings/adversarial-1.json
  leyden crashtest replay crash crash/findings/adversarial-1.json --shell

The scripts find in their environment:
  LEYDEN_MOUNT   the mounted file system; with --fs none there is none, but the device: LEYDEN_DEV
  LEYDEN_ACK     in the work: a file; a line written to it, as in `echo ack 17 >>$LEYDEN_ACK`, is a promise
  LEYDEN_ACKS    in the check: a file with what had been promised when the power failed, a line each, without `ack`
  LEYDEN_TMP     a folder that is no part of the drive

A check ends with 0 if everything is as it must be, with 77 if it has no opinion, and with anything else if not;
a line `lost ...` that it prints names what had been promised and is gone.

Two controls are made each time: the check must pass where nothing is lost, and must fail on a drive that
ignores flushes.

Exit codes:
  0    everything held
  1    something broke that a lawful drive may do
  2    bad usage, a script that cannot be run or fails, or a machine that lacks something
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

/// What there is to do, one by one.
#[derive(Debug, Subcommand)]
pub(crate) enum CrashtestCommand {
    /// Record a run of your software on a modelled drive
    Record(RecordArgs),
    /// Cut the power of a recorded run at many moments, and check what is left
    Run {
        /// The folder of the recording
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Another check than the one that was recorded
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
    /// Say what share of power cuts loses something, against the capacitance of the recorded drive
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
    /// Make a finding small: few lost sectors, at the earliest moment, named by file
    Shrink(SeedArgs),
    /// Try a finding again
    Replay {
        #[command(flatten)]
        seed: SeedArgs,
        #[command(flatten)]
        how: ReplayHow,
    },
    /// Take a run that dm-log-writes has recorded, on a modelled drive: its commands, one after the other
    Import(ImportArgs),
    /// Write a recorded run as a log of dm-log-writes
    Export {
        /// The folder of the recording
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The log, which must not be there
        #[arg(value_name = "LOG")]
        log: PathBuf,
        /// Write what was on the device before to this file
        #[arg(long, value_name = "FILE")]
        base: Option<PathBuf>,
    },
    /// Say what was recorded, and what came out of the last run
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
    /// `sh NAME/run.sh` then records and runs it on a modelled drive, `sh NAME/run.sh --files` at the level of files. Without a
    /// name, what there is is listed.
    Init {
        /// The software: bbolt, gdbm, git, leveldb, lmdb, mariadb, postgresql, redis, rocksdb or sqlite
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// The new folder; NAME if not given
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Say what of this machine is needed, and what is there
    Doctor {
        /// The file system that is to be used
        #[arg(long, value_name = "FS", default_value = "ext4")]
        fs: String,
        /// What crash tests at the level of files need (crashtest --files)
        #[arg(long, conflicts_with = "fs")]
        files: bool,
    },
    /// Do what standard input says, in namespaces of its own
    #[command(hide = true)]
    Worker {
        /// The folder of the recording
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// What is recorded.
///
/// What clap asks for is optional here all the same: with a command of its own, `leyden crashtest` needs none of it.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// The drive: a scenario file, or the name of a bundled one, of which the drive is taken; it is scaled
    /// down to --size, its parallelism, times, buffer and capacitors kept
    #[arg(value_name = "DRIVE", required_unless_present = "files")]
    drive: Option<String>,
    /// Record calls on files, in a folder in memory, and no drive: without root, and many times as fast
    ///
    /// RULES says what the files promise: "xfs" or "ext4" as Linux keeps it, "posix" as the standard asks and no more.
    #[arg(
        long, value_enum, value_name = "RULES", num_args = 0..=1, require_equals = true, default_missing_value = "xfs",
        conflicts_with_all = [
            "drive", "set", "size", "mkfs", "sector", "base", "fs", "options", "fsck", "latency", "speed",
        ]
    )]
    pub(crate) files: Option<RulesArg>,
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// The size of the device that the software sees
    #[arg(long, value_name = "SIZE", default_value = "64 MiB", value_parser = parse_size)]
    pub(crate) size: Bytes,
    /// One more argument for mkfs; may be repeated
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) mkfs: Vec<String>,
    /// Bytes of the device's sectors: what the kernel writes at once
    #[arg(long, value_name = "BYTES", default_value_t = 4_096, value_parser = parse_sector)]
    pub(crate) sector: u32,
    /// Begin with this raw file on the device, and not with a new file system: `crashtest replay --raw` writes one
    #[arg(long, value_name = "FILE", conflicts_with = "mkfs")]
    pub(crate) base: Option<PathBuf>,
    /// A shell command that prepares the file system, before the recording
    #[arg(long, value_name = "COMMAND")]
    pub(crate) setup: Option<String>,
    /// A shell command that does the work, which is recorded
    #[arg(long, value_name = "COMMAND", required = true)]
    work: Option<String>,
    /// Lines of the work's standard output that begin so are promises, too
    #[arg(long, value_name = "TEXT")]
    pub(crate) ack_lines: Option<String>,
    /// I/O errors that the work meets, as `leyden fault` takes them; may be repeated
    ///
    /// The work may fail then: what it had promised must be there all the same. With --files calls fail: reads, writes, and
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

/// What files promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RulesArg {
    /// What the standard and the manual pages promise, and no more
    Posix,
    /// XFS of Linux
    Xfs,
    /// ext4 of Linux with its default options
    Ext4,
}

impl From<RulesArg> for Persistence {
    fn from(arg: RulesArg) -> Self {
        match arg {
            RulesArg::Posix => Self::Posix,
            RulesArg::Xfs => Self::Xfs,
            RulesArg::Ext4 => Self::Ext4,
        }
    }
}

impl RecordArgs {
    pub(crate) fn drive(&self) -> &str {
        given(self.drive.as_deref())
    }
    pub(crate) fn work(&self) -> &str {
        given(self.work.as_deref())
    }
    pub(crate) fn out(&self) -> &Path {
        given(self.out.as_deref())
    }
}

/// What is on the drive, and how a state of it is checked.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The file system, or "none"
    #[arg(long, value_name = "FS", default_value = "ext4")]
    pub(crate) fs: String,
    /// Options of the file system's mount, separated by commas
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) options: Option<String>,
    /// A shell command that checks what is left after a power cut
    #[arg(long, value_name = "COMMAND", required = true)]
    check: Option<String>,
    /// The check stays: it reads a line for each state, and answers with "ok", "skip", "lost ..." or what is wrong
    #[arg(long)]
    pub(crate) check_server: bool,
    /// Check the file system, too, with its own program
    #[arg(long)]
    pub(crate) fsck: bool,
    /// A check that takes longer hangs
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub(crate) timeout: Span,
}

impl CheckArgs {
    pub(crate) fn check(&self) -> &str {
        given(self.check.as_deref())
    }
}

/// A run that somebody else has recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// The drive that it is run on: a scenario file, or the name of a bundled one, scaled down to --size
    #[arg(value_name = "DRIVE")]
    pub(crate) drive: String,
    /// The log, as dm-log-writes, xfstests and QEMU's blklogwrites write it
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// What was on the device when the log begins, as a raw file; zeroes without
    #[arg(long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
    /// The size of the device; that of the base without
    #[arg(long, value_name = "SIZE", required_unless_present = "base", value_parser = parse_size)]
    pub(crate) size: Option<Bytes>,
    /// Cut the power behind this mark of the log only
    #[arg(long, value_name = "MARK")]
    pub(crate) begin: Option<String>,
    /// Marks that begin so are promises, as those that begin with "ack " are
    #[arg(long, value_name = "TEXT")]
    pub(crate) ack_lines: Option<String>,
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    #[command(flatten)]
    pub(crate) checked: CheckArgs,
    /// The folder for the recording and all results, which must hold no other recording
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

fn given<T>(argument: Option<T>) -> T {
    argument.expect("clap has asked for it")
}

/// What is tried.
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
    /// Stop each model after this time, whatever is left; then what is tried depends on the machine's speed
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<Span>,
    /// Fail, with exit code 8, if a model tried fewer states
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) require_states: Option<u64>,
    /// Cut the power again while states recover: try so many states of each, where 2 cuts may leave it
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) again: u32,
    /// Try each state, also if all that was read in an earlier one is the same in it
    #[arg(long)]
    pub(crate) try_all: bool,
    /// The recorded drive with so much capacitance, in microfarads (model "realistic")
    #[arg(long, value_name = "UF", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) capacitance_uf: Option<u64>,
    #[command(flatten)]
    pub(crate) common: RunCommon,
}

/// How states are tried.
#[derive(Debug, clap::Args)]
pub(crate) struct RunCommon {
    /// What random choices come from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Bytes that a drive keeps or loses as a whole, at least a sector; those of its mapping unit if not given
    #[arg(long, value_name = "BYTES", value_parser = parse_sector)]
    pub(crate) atom: Option<u32>,
    /// States tried at once; as many as there are cores if not given
    ///
    /// What is found does not depend on it.
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
    /// Take the files out of an image with e2fsprogs, and mount nothing; so it is without root
    ///
    /// For ext2, ext3, ext4 and --fs none.
    #[arg(long)]
    pub(crate) extract: bool,
    /// Run the commands of a folder that somebody else has recorded, now and later
    ///
    /// `plan.json` holds them. They run with your rights.
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

/// What is done with a state, in place of the check.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayHow {
    /// Mount it, and give me a shell there
    #[arg(long, conflicts_with_all = ["run", "copy", "json"])]
    pub(crate) shell: bool,
    /// Mount it, and run this shell command there: what it prints and its exit code are this command's
    #[arg(long, value_name = "COMMAND", conflicts_with = "json")]
    pub(crate) run: Option<String>,
    /// Write the device as it is in that state to this new file: `crashtest record --base` begins with it
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) raw: Option<PathBuf>,
    /// Copy its files to this new folder; with --fs none the device, as device.img there
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    pub(crate) copy: Option<PathBuf>,
}

/// Where states come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelArg {
    /// Whatever a drive with a volatile cache may lose: any of what was not flushed
    Adversarial,
    /// What the recorded drive loses: run again to the bit, and cut
    Realistic,
    /// What a drive may lose that ignores flushes
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
