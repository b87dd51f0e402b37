//! `leyden trace info` and `leyden trace convert`.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, anyhow};
use leyden_config::{TraceSource, devices};
use leyden_sim::Bytes;
use leyden_workload::trace::{
    self, BlkAction, Compression, ErrorKind, Format, Merged, OpenOptions, Profile, TraceError,
    Unsorted, WriteOptions, Writer,
};

use leyden_report::format::{bytes, count, number, percent, seconds};

use super::{Cancel, print_json, warn};
use crate::args::{ActionArg, ConvertArgs, InfoArgs, ReadArgs, TraceCommand};
use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::output::table::Table;

pub(crate) fn main(command: &TraceCommand, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        TraceCommand::Info(args) => info(args, cancel),
        TraceCommand::Convert(args) => convert(args, cancel),
    }
}

fn info(args: &InfoArgs, cancel: &Cancel) -> Result<(), Failure> {
    let mut watched = Watched::open(&args.file, &args.read, cancel)?;
    watched.stops = true;
    let classes = watched.requests.trace().classes().clone();
    let profile = trace::profile(&mut watched, &classes);
    if cancelled(cancel) {
        return Err(Failure::interrupted("a profile of a part would mislead"));
    }
    let (format, warnings) = (watched.requests.trace().format(), watched.requests.warnings());
    drop(watched);
    let profile = profile.map_err(|error| failure(&error))?;
    if args.json {
        print_json(
            &serde_json::json!({ "format": format.name(), "warnings": &warnings, "profile": &profile }),
        )?;
    } else {
        show(&args.file, format, &profile)?;
    }
    for warning in warnings {
        warn(&warning);
    }
    Ok(())
}

fn convert(args: &ConvertArgs, cancel: &Cancel) -> Result<(), Failure> {
    let format = target(args)?;
    for read in std::iter::once(&args.input).chain(&args.read.hints) {
        if is_same_file(read, &args.output) {
            return Err(Failure::usage(anyhow!(
                "{}: this is the trace that is read; losses on writing would be permanent\n  help: give the new trace a name of its own",
                args.output.display()
            )));
        }
    }
    let mut watched = Watched::open(&args.input, &args.read, cancel)?;
    let options = WriteOptions {
        compression: compression(&args.output),
        overwrite: args.force,
        classes: watched.requests.trace().classes().clone(),
        ..WriteOptions::new(format)
    };
    let writer = Writer::create(&args.output, &options).map_err(|error| failure(&error))?;
    let written = trace::convert(&mut watched, writer, &mut |_| {}, cancel);
    let warnings = watched.requests.warnings();
    drop(watched);
    let written = written.map_err(|error| failure(&error))?;
    for warning in warnings.iter().chain(&written.lost.sentences()) {
        warn(warning);
    }
    let (requests, size) = (count(written.requests - written.hints), bytes(written.file_bytes));
    let hints = match written.hints {
        0 => String::new(),
        hints => format!(", {} hints", count(hints)),
    };
    let summary = format!("{}: {requests} requests{hints}, {size}", args.output.display());
    if std::fs::metadata(&args.output).is_ok_and(|found| found.is_file()) {
        writeln!(anstream::stdout(), "{summary}")?;
    } else {
        anstream::eprintln!("{summary}"); // the output may be standard output
    }
    Ok(())
}

/// Whether both paths lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let one = if one == Path::new("-") { Path::new("/dev/stdin") } else { one };
    let found = |path: &Path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    let place = |file: std::fs::Metadata| (file.dev(), file.ino());
    found(one).map(place).is_some_and(|one| found(other).map(place) == Some(one))
}

/// The format to write: as told, or as the name says.
fn target(args: &ConvertArgs) -> Result<Format, Failure> {
    if let Some(format) = args.to {
        return Ok(format);
    }
    let name = args.output.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let stem = name.trim_end_matches(".gz").trim_end_matches(".zst");
    match stem.rsplit_once('.').map(|(_, extension)| extension) {
        Some("csv") => Ok(Format::Csv),
        Some("leyden") => Ok(Format::Compact),
        _ => Err(Failure::usage(anyhow!(
            "{}: the name does not tell the format\n  help: name it with --to, or end the name in .csv or .leyden",
            args.output.display()
        ))),
    }
}

fn compression(path: &Path) -> Compression {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Compression::Gzip,
        Some("zst") => Compression::Zstd,
        _ => Compression::None,
    }
}

/// A reader with a progress bar.
struct Watched<'a> {
    requests: Merged,
    bar: Progress,
    file_bytes: u64,
    cancel: &'a Cancel,
    /// Whether Ctrl-C ends the requests; a conversion looks for itself, lest it keep a part.
    stops: bool,
    read: u64,
}

fn cancelled(cancel: &Cancel) -> bool {
    cancel.load(std::sync::atomic::Ordering::Relaxed)
}

impl<'a> Watched<'a> {
    fn open(path: &Path, args: &ReadArgs, cancel: &'a Cancel) -> Result<Self, Failure> {
        let options = OpenOptions {
            format: args.from,
            columns: args.columns.clone(),
            skip_lines: args.skip_lines,
            devices: devices(args.device.as_deref(), args.overlay, args.stack),
            blkparse_action: match args.action {
                ActionArg::Queue => BlkAction::Queue,
                ActionArg::Issue => BlkAction::Issue,
                ActionArg::Complete => BlkAction::Complete,
            },
            unsorted: Unsorted::within(args.window),
            without: args.without.clone(),
            ..OpenOptions::default()
        };
        let open = |path: &Path, options: &OpenOptions| {
            let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
            let opened = TraceSource::called(path).open(&path.display().to_string(), options);
            opened.map_err(|error| failure(&error))
        };
        let trace = open(path, &options)?;
        let requests = match &args.hints {
            Some(hints) => Merged::new(trace, open(hints, &OpenOptions::default())?),
            None => Merged::from(trace),
        };
        let bar = Progress::new(&path.display().to_string());
        bar.phase("reading");
        Ok(Self {
            requests,
            bar,
            file_bytes: std::fs::metadata(path).map_or(0, |found| found.len()),
            cancel,
            stops: false,
            read: 0,
        })
    }
}

impl Iterator for Watched<'_> {
    type Item = Result<leyden_workload::Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read += 1;
        if self.read.is_multiple_of(1 << 16) {
            if self.stops && cancelled(self.cancel) {
                return None;
            }
            let read = self.requests.trace().position().bytes() as f64;
            self.bar.fraction(read / self.file_bytes.max(1) as f64);
        }
        self.requests.next()
    }
}

/// A trace's error with the exit code that suits it.
pub(crate) fn failure(error: &TraceError) -> Failure {
    let text = anyhow!("{}", message(error));
    match error.kind() {
        ErrorKind::Cancelled => Failure::interrupted("no partial file was left"),
        ErrorKind::Write(_) => Failure::io(text),
        // The system could not read on; not to find the file is bad usage.
        ErrorKind::Read(cause) if cause.raw_os_error().is_some() && !is_usage(cause) => {
            Failure::io(text)
        }
        _ => Failure::usage(text),
    }
}

/// Whether the path was wrong, and not what is behind it.
fn is_usage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{IsADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | IsADirectory | PermissionDenied)
}

/// The error with its remedy on a line of its own, as all our errors have it.
fn message(error: &TraceError) -> String {
    let text = error.to_string();
    match error.kind().remedy() {
        Some(remedy) => {
            let problem = text.strip_suffix(&format!(". {remedy}.")).unwrap_or(&text);
            format!("{problem}\n  help: {remedy}")
        }
        None => text,
    }
}

fn show(path: &Path, format: Format, p: &Profile) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let bold = anstyle::Style::new().bold();
    writeln!(out, "{bold}{}{bold:#}  {format}: {}\n", path.display(), format.description())?;
    let mut table = Table::default();
    table.head(["requests", "number", "data", "mean size"]);
    let mean = |bytes_in_all: u64, number: u64| match number {
        0 => "-".to_owned(),
        _ => bytes(bytes_in_all / number),
    };
    let rows = [
        ("reads", p.reads, p.bytes_read),
        ("writes", p.writes, p.bytes_written),
        ("trims", p.trims, p.bytes_trimmed),
        ("write zeroes", p.write_zeroes, p.bytes_zeroed),
        ("hints", p.hints, p.bytes_announced),
    ];
    for (name, number, size) in rows.into_iter().filter(|(_, number, _)| *number > 0) {
        table.row([name, &count(number), &bytes(size), &mean(size, number)]);
    }
    table.row(["flushes", &count(p.flushes)]);
    table.row(["with forced unit access", &count(p.fua)]);
    table.head(["time", ""]);
    table.row(["duration", &seconds(p.duration_s)]);
    table.row(["requests a second", &number(p.mean_iops)]);
    table.row(["MiB a second", &number(p.mean_mib_per_s)]);
    places(p, &mut table);
    announced(p, &mut table);
    table.head(["sizes, up to", "reads", "writes"]);
    let mut sizes: Vec<u64> = p.read_sizes.keys().chain(p.write_sizes.keys()).copied().collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let of = |sizes: &std::collections::BTreeMap<u64, u64>| {
            count(sizes.get(&size).copied().unwrap_or(0))
        };
        table.row([bytes(size), of(&p.read_sizes), of(&p.write_sizes)]);
    }
    if p.bytes_written_by_class.len() > 1 {
        table.head(["written, by class", ""]);
        for (class, written) in &p.bytes_written_by_class {
            table.row([class.clone(), bytes(*written)]);
        }
    }
    table.write(&mut out).context("standard output").map_err(Failure::io)
}

/// The gains by hints.
fn announced(p: &Profile, table: &mut Table) {
    if p.hints == 0 {
        return;
    }
    table.head(["announced by a hint before", ""]);
    table.row(["units written", &percent(p.announced_share)]);
    for (class, &share) in &p.announced_share_by_class {
        table.row([format!("  {class}"), percent(share)]);
    }
    table.row(["units written that are overwrites", &percent(p.announced_overwrite_share)]);
}

fn places(p: &Profile, table: &mut Table) {
    table.head(["addresses", ""]);
    table.row(["smallest drive that holds it", &bytes(p.end_byte)]);
    table.row(["  packed (pack = true)", &Bytes::new(p.packed_bytes).to_string()]);
    if p.one_address_in > 1 {
        let sample = format!("one address in {}", count(p.one_address_in));
        table.row(["footprints and overwrites, estimated from", &sample]);
    }
    table.row(["footprint", &bytes(p.footprint_bytes)]);
    table.row(["  written", &bytes(p.footprint_written_bytes)]);
    table.row(["  read", &bytes(p.footprint_read_bytes)]);
    table.row(["sequential", &percent(p.sequential_share)]);
    table.row(["aligned to 4 KiB", &percent(p.aligned_share)]);
    table.row(["units written that are overwrites", &percent(p.overwrite_share)]);
    let d = &p.overwrite_distances;
    if d.count > 0 {
        table.row(["written between overwrites, 5 %", &bytes(d.p5_bytes)]);
        table.row(["  median", &bytes(d.p50_bytes)]);
        table.row(["  95 %", &bytes(d.p95_bytes)]);
    }
}
