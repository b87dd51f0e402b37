//! `leyden trace`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, ValueEnum};
use leyden_config::MAX_WINDOW;
use leyden_sim::Bytes;
use leyden_workload::ClassNames;
use leyden_workload::trace::{Columns, Format};

/// `leyden trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Profile a trace: mix, sizes, footprint, overwrites, sequentiality
    Info(InfoArgs),
    /// Convert a trace to another format
    #[command(after_long_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
}

const CONVERT_EXAMPLES: &str = r#"Examples:
  leyden trace convert msr.csv.gz web.leyden --device web,0
  leyden trace convert msr.csv.gz all.leyden --stack 1TiB
  leyden trace convert db.blktrace db.csv.zst
  leyden trace convert db.csv db.log --to fio-v3
  leyden trace convert nvme.txt nvme.leyden --columns "time:ns lba:4096 len:4096 op:r/w"
  leyden trace convert pg.csv.zst pg.leyden --hints pg.hints.csv.zst"#;

/// An event of a request in a blktrace.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ActionArg {
    /// The file system handed it to the block layer (Q)
    #[value(alias = "Q")]
    Queue,
    /// The block layer handed it to the driver (D)
    #[value(alias = "D")]
    Issue,
    /// The driver completed it (C)
    #[value(alias = "C")]
    Complete,
}

/// How to read a trace.
#[derive(Debug, clap::Args)]
pub(crate) struct ReadArgs {
    /// The format; default: detected from the content
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub(crate) from: Option<Format>,
    /// The columns of text in another format, in order and with their separator
    ///
    /// One word a column: `time:UNIT` (s, ms, us, 100ns, ns), `lba:BYTES` and `len:BYTES` (of a block; 512
    /// if not
    /// given, 1 for bytes), `op:R/W` (names of reads and writes; then flushes, discards, write zeroes),
    /// `device`, `-` (not used), `..` (all the rest).
    #[arg(long, value_name = "COLUMNS", conflicts_with = "from", allow_hyphen_values = true)]
    pub(crate) columns: Option<Columns>,
    /// Lines to skip at the beginning of a text
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    pub(crate) skip_lines: u32,
    /// Use only this device's requests, in a trace of several
    #[arg(long, value_name = "NAME", conflicts_with_all = ["overlay", "stack"])]
    pub(crate) device: Option<String>,
    /// Leave out requests of this class (`wal`, `journal`); may be repeated
    #[arg(long, value_name = "CLASS", value_parser = class_name)]
    pub(crate) without: Vec<String>,
    /// Use all devices' requests as if from one device
    #[arg(long, conflicts_with = "stack")]
    pub(crate) overlay: bool,
    /// Use all devices' requests, with this much room for each device, one after another
    #[arg(long, value_name = "SIZE")]
    pub(crate) stack: Option<Bytes>,
    /// The event that represents a request, in traces of the block layer
    #[arg(long, value_enum, default_value_t = ActionArg::Issue)]
    pub(crate) action: ActionArg,
    /// Reorder window, in records (0: late records are errors)
    #[arg(long, value_name = "RECORDS", default_value_t = 65_536,
          value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_WINDOW)))]
    pub(crate) window: u32,
    /// A file of hints (op H) to merge into it by time
    ///
    /// Both files must use the same clock.
    #[arg(long, value_name = "FILE")]
    pub(crate) hints: Option<PathBuf>,
}

/// `leyden trace info`.
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// The trace, plain or compressed with gzip or zstd
    pub(crate) file: PathBuf,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// `leyden trace convert`.
#[derive(Debug, clap::Args)]
pub(crate) struct ConvertArgs {
    /// The trace, plain or compressed with gzip or zstd
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// The new trace; compressed if its name ends in .gz or .zst
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Its format; default: by the name (.csv, or .leyden for compact)
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub(crate) to: Option<Format>,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// A class's name, as a trace may have it.
fn class_name(name: &str) -> Result<String, String> {
    let named = ClassNames::default().class(name);
    named
        .map(|_| name.to_owned())
        .map_err(|_| "it is no class's name: give one as the trace has it".to_owned())
}

/// The names of trace formats, with their descriptions.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let names =
        Format::ALL.map(|format| PossibleValue::new(format.name()).help(format.description()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}
