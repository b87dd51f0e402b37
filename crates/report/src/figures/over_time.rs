//! Lines over simulated time: throughput, latency, write amplification, busy shares.

use super::coincide;
use super::spec::{self, Line, Points, Stroke, Unit};
use super::{Figure, Size};
use crate::format;
use crate::run::Run;
use crate::series;
use crate::table::Table;

/// Most rows of a table over time.
const TABLE_ROWS: usize = 16;

/// Lines that belong together.
pub(super) struct Subject {
    id: &'static str,
    title: &'static str,
    pub(super) unit: Unit,
    parts: &'static [Part],
    /// Spans the page when it is one figure.
    wide: bool,
}

/// One of its lines.
#[derive(Clone, Copy)]
pub(super) struct Part {
    id: &'static str,
    /// In the legend of a single run, and after the title where runs are overlaid.
    label: &'static str,
    pub(super) column: &'static str,
    colour: usize,
    stroke: Stroke,
    /// The note for a run that has none of it.
    nothing: &'static str,
}

const fn part(
    id: &'static str,
    label: &'static str,
    column: &'static str,
    colour: usize,
    nothing: &'static str,
) -> Part {
    Part { id, label, column, colour, stroke: Stroke::Solid, nothing }
}

const fn thin(part: Part) -> Part {
    Part { stroke: Stroke::Thin, ..part }
}

const fn dashed(part: Part) -> Part {
    Part { stroke: Stroke::Dashed, ..part }
}

const NO_SERIES: &str = "The record was saved without series.";
const NO_READS: &str = "Nothing was read.";
const NO_WRITES: &str = "Nothing was written.";
const NO_FLUSHES: &str = "Nothing was flushed.";
const TOO_FEW: &str = "Too few commands a point for a 99th percentile.";

static IOPS: Subject = Subject {
    id: "iops",
    title: "IOPS over time",
    unit: Unit::Iops,
    parts: &[
        part("reads", "Reads", "read_iops", 0, NO_READS),
        part("writes", "Writes", "write_iops", 1, NO_WRITES),
    ],
    wide: false,
};

static BANDWIDTH: Subject = Subject {
    id: "bandwidth",
    title: "Bandwidth over time",
    unit: Unit::MibPerS,
    parts: &[
        part("reads", "Reads", "read_mib_per_s", 0, NO_READS),
        part("writes", "Writes", "write_mib_per_s", 1, NO_WRITES),
    ],
    wide: false,
};

static READ_LATENCY: Subject = Subject {
    id: "read-latency",
    title: "Read latency over time",
    unit: Unit::Latency,
    parts: &[
        part("p50", "Median", "read_p50_us", 0, NO_READS),
        dashed(part("p99", "p99", "read_p99_us", 0, NO_READS)),
        thin(part("max", "Maximum", "read_max_us", 0, NO_READS)),
    ],
    wide: false,
};

static WRITE_LATENCY: Subject = Subject {
    id: "write-latency",
    title: "Write latency over time",
    unit: Unit::Latency,
    parts: &[
        part("p50", "Median", "write_p50_us", 1, NO_WRITES),
        dashed(part("p99", "p99", "write_p99_us", 1, NO_WRITES)),
        thin(part("max", "Maximum", "write_max_us", 1, NO_WRITES)),
    ],
    wide: false,
};

static FLUSH_LATENCY: Subject = Subject {
    id: "flush-latency",
    title: "Flush latency over time",
    unit: Unit::Latency,
    parts: &[
        part("p50", "Median", "flush_p50_us", 2, NO_FLUSHES),
        dashed(part("p99", "p99", "flush_p99_us", 2, NO_FLUSHES)),
        thin(part("max", "Maximum", "flush_max_us", 2, NO_FLUSHES)),
    ],
    wide: false,
};

static WAF: Subject = Subject {
    id: "waf",
    title: "Write amplification over time",
    unit: Unit::Factor,
    parts: &[part("", "", "waf", 7, NO_WRITES)],
    wide: true,
};

static BUSY: Subject = Subject {
    id: "busy",
    title: "Busy time over time",
    unit: Unit::Percent,
    parts: &[
        part("dies", "Dies, mean", "die_busy", 7, "No die did anything."),
        part("channels", "Channels, mean", "channel_busy", 5, "No channel carried anything."),
    ],
    wide: true,
};

static QUEUE: Subject = Subject {
    id: "queue-depth",
    title: "Queue depth over time",
    unit: Unit::Commands,
    parts: &[part("", "", "queue_depth", 7, "No command was outstanding.")],
    wide: false,
};

static BUFFER: Subject = Subject {
    id: "buffer",
    title: "Write buffer over time",
    unit: Unit::Bytes,
    parts: &[part("", "", "buffered_bytes", 7, "Nothing was in the write buffer.")],
    wide: false,
};

static FREE: Subject = Subject {
    id: "free-blocks",
    title: "Free blocks over time",
    unit: Unit::Blocks,
    parts: &[part("", "", "free_blocks", 7, "No block was free, or none was counted.")],
    wide: true,
};

/// Commands outstanding, and what the drive holds of them.
pub(crate) fn levels(runs: &[Run]) -> Vec<Figure> {
    let subjects = [&QUEUE, &BUFFER, &FREE];
    subjects.iter().flat_map(|s| figures(runs, s)).collect()
}

/// IOPS and bandwidth.
pub(crate) fn throughput(runs: &[Run]) -> Vec<Figure> {
    let subjects = [&IOPS, &BANDWIDTH];
    subjects.iter().flat_map(|s| figures(runs, s)).collect()
}

/// Medians, 99th percentiles and maxima of reads, writes and, if there were any, flushes.
pub(crate) fn latency(runs: &[Run]) -> Vec<Figure> {
    let mut subjects = vec![&READ_LATENCY, &WRITE_LATENCY];
    if runs.iter().any(|run| has_values(run, "flush_max_us")) {
        subjects.push(&FLUSH_LATENCY);
    }
    subjects.into_iter().flat_map(|s| figures(runs, s)).collect()
}

/// The write amplification factor.
pub(crate) fn write_amplification(runs: &[Run]) -> Vec<Figure> {
    let mut figures = figures(runs, &WAF);
    if let [run] = runs
        && let Some(figure) = figures.first_mut()
        && run.record.flash.waf > 0.0
    {
        let whole = format!("Over the whole run: {}.", format::factor(run.record.flash.waf));
        figure.note = format!("{whole} {}", figure.note);
    }
    figures
}

/// Mean busy shares of dies and channels.
pub(crate) fn busy(runs: &[Run]) -> Vec<Figure> {
    figures(runs, &BUSY)
}

/// One figure with all parts for one run, one figure per part for several.
fn figures(runs: &[Run], subject: &Subject) -> Vec<Figure> {
    if let [_] = runs {
        return vec![single(runs, subject)];
    }
    let parts = subject.parts.iter();
    parts.map(|part| overlay(runs, subject, part)).collect()
}

/// All parts of a subject of one run.
fn single(runs: &[Run], subject: &Subject) -> Figure {
    let mut figure = Figure::new(subject.id, subject.title);
    if subject.wide {
        figure.size = Size::Wide;
    }
    let (present, absent): (Vec<&Part>, Vec<&Part>) =
        subject.parts.iter().partition(|part| has_values(&runs[0], part.column));
    let mut missing: Vec<&str> = absent.iter().map(|part| reason(&runs[0], part)).collect();
    missing.dedup();
    if present.is_empty() {
        return figure.nothing(missing.join(" "));
    }
    let lines = present.iter().map(|part| Line {
        label: named(part.label, subject.title),
        colour: part.colour,
        stroke: part.stroke,
        points: Points::Column { run: 0, column: part.column },
    });
    let mut lines: Vec<Line> = lines.collect();
    // A lone line needs its name: the legend is only for telling several apart.
    let only = match (&present[..], absent.is_empty()) {
        ([part], false) => format!("{} only.", part.label),
        _ => String::new(),
    };
    figure.table = Some(table(runs, &lines, subject.unit));
    let description = subject.title;
    let coincide = coincide::dash(runs, &mut lines, subject.unit);
    let reading = reading(runs, &lines, subject.unit);
    let note = sentences(&[&only, &missing.join(" "), &coincide, &reading]);
    figure.note(note).chart(spec::lines_over_time(runs, lines, subject.unit, description))
}

/// Lines of which many runs have panels.
pub(super) fn looked_at_first() -> [(&'static Subject, &'static Part); 5] {
    let p99 = |subject: &'static Subject| (subject, &subject.parts[1]);
    [
        (&IOPS, &IOPS.parts[0]),
        (&IOPS, &IOPS.parts[1]),
        p99(&READ_LATENCY),
        p99(&WRITE_LATENCY),
        (&WAF, &WAF.parts[0]),
    ]
}

/// The title of a figure of one part.
pub(super) fn title_of(subject: &Subject, part: &Part) -> String {
    if part.label.is_empty() {
        subject.title.to_owned()
    } else {
        format!("{}: {}", subject.title, part.label.to_lowercase())
    }
}

/// Its id.
pub(super) fn id_of(subject: &Subject, part: &Part) -> String {
    format!("{}-{}", subject.id, part.id).trim_end_matches('-').to_owned()
}

/// A column of all runs as text.
pub(super) fn table_of(runs: &[Run], column: &'static str, unit: Unit) -> Table {
    table(runs, &lines_of(runs, 0..runs.len(), column), unit)
}

/// A column of these runs, a line each.
pub(super) fn lines_of(
    runs: &[Run],
    of: impl IntoIterator<Item = usize>,
    column: &'static str,
) -> Vec<Line> {
    let lines = of.into_iter().map(|run| Line {
        label: runs[run].label.clone(),
        colour: run,
        stroke: Stroke::Solid,
        points: Points::Column { run, column },
    });
    lines.collect()
}

/// One part of a subject of all runs.
fn overlay(runs: &[Run], subject: &Subject, part: &Part) -> Figure {
    let title = title_of(subject, part);
    let mut figure = Figure::new(id_of(subject, part), title.clone());
    if subject.wide && subject.parts.len() == 1 {
        figure.size = Size::Wide;
    }
    let (present, absent): (Vec<usize>, Vec<usize>) =
        (0..runs.len()).partition(|&run| has_values(&runs[run], part.column));
    let absences = absences(runs, &absent, part);
    if present.is_empty() {
        return figure.nothing(match &absences[..] {
            [(_, reason)] => (*reason).to_owned(),
            several => told(several),
        });
    }
    let mut lines = lines_of(runs, present.iter().copied(), part.column);
    figure.table = Some(table(runs, &lines, subject.unit));
    let coincide = coincide::dash(runs, &mut lines, subject.unit);
    let reading = reading(runs, &lines, subject.unit);
    figure.note = sentences(&[&told(&absences), &coincide, &reading]);
    figure.chart(spec::lines_over_time(runs, lines, subject.unit, &title))
}

/// How to read the chart, where that is not plain.
fn reading(runs: &[Run], lines: &[Line], unit: Unit) -> String {
    let peaks = match unit {
        Unit::Factor => {
            let values: Vec<f64> = spec::column_values(runs, lines).flatten().copied().collect();
            spec::cut_off(&values)
                .map(|(_, top)| format!("Peaks of up to {} are cut off.", format::factor(top)))
        }
        _ => None,
    };
    let shade = spec::cut_band(runs, lines, unit)
        .map(|(_, top)| format!("The shade reaches {}, beyond the axis.", show(unit, top)));
    let key = spec::key_to_marks(runs);
    sentences(&[peaks.as_deref().unwrap_or(""), shade.as_deref().unwrap_or(""), key])
}

/// Sentences of a note, without those that are empty.
pub(super) fn sentences(all: &[&str]) -> String {
    let said = all.iter().copied().filter(|sentence| !sentence.is_empty());
    said.collect::<Vec<_>>().join(" ")
}

/// The labels of runs that have no line for `part`, by the reason.
fn absences(runs: &[Run], absent: &[usize], part: &Part) -> Vec<(String, &'static str)> {
    let of = |&run: &usize| reason(&runs[run], part);
    let groups = [NO_SERIES, TOO_FEW, part.nothing].map(|reason| {
        let of_it = absent.iter().filter(|run| of(run) == reason);
        let labels: Vec<&str> = of_it.map(|&run| runs[run].label.as_str()).collect();
        (labels.join(", "), reason)
    });
    groups.into_iter().filter(|(labels, _)| !labels.is_empty()).collect()
}

/// Runs and reasons as sentences.
fn told(absences: &[(String, &'static str)]) -> String {
    let sentences =
        absences.iter().map(|(labels, reason)| format!("{labels}: {}", reason.to_lowercase()));
    sentences.collect::<Vec<_>>().join(" ")
}

/// The sentence on a run that has no line for `part`. A run without any command has no series either.
fn reason(run: &Run, part: &Part) -> &'static str {
    let host = &run.record.host;
    let commands = host.reads + host.writes + host.flushes + host.trims;
    let of_kind = match part.nothing {
        NO_READS => host.reads,
        NO_WRITES => host.writes,
        NO_FLUSHES => host.flushes,
        _ => 0,
    };
    match run.record.series.is_empty() {
        true if commands > 0 => NO_SERIES,
        false if of_kind > 0 && part.column.ends_with("p99_us") => TOO_FEW,
        _ => part.nothing,
    }
}

/// Whether a column has anything but zeros and gaps.
fn has_values(run: &Run, column: &str) -> bool {
    let values = run.columns.values.get(column);
    values.is_some_and(|v| v.iter().flatten().any(|v| *v > 0.0))
}

fn named(label: &str, otherwise: &str) -> String {
    let label = if label.is_empty() { otherwise } else { label };
    label.to_owned()
}

/// The lines as text, over a few equal spans of time.
pub(super) fn table(runs: &[Run], lines: &[Line], unit: Unit) -> Table {
    let labels = lines.iter().map(|line| line.label.clone());
    let mut table = Table::new(std::iter::once("Until".to_owned()).chain(labels));
    let longest = runs.iter().map(|r| r.record.series.time_s.len()).max();
    let n = longest.unwrap_or(0).min(TABLE_ROWS);
    let [start, end] = spec::time_domain(runs);
    let edge = |i: usize| start + (end - start) * i as f64 / n as f64;
    for i in 0..n {
        // The very first and last edges are taken wide, against rounding.
        let after = if i == 0 { f64::MIN } else { edge(i) };
        let until = if i + 1 == n { f64::MAX } else { edge(i + 1) };
        let cells = lines.iter().map(|line| {
            let Points::Column { run, column } = line.points else {
                return format::DASH.to_owned();
            };
            let value = series::between(&runs[run].record.series, column, after, until);
            value.map_or_else(|| format::DASH.to_owned(), |v| show(unit, v))
        });
        let until = format::seconds(edge(i + 1));
        table.rows.push(std::iter::once(until).chain(cells).collect());
    }
    table
}

/// A value with its unit.
pub(super) fn show(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Iops | Unit::PagesPerS => format!("{}/s", format::number(value)),
        Unit::MibPerS => format::mib_per_s(value),
        Unit::Latency => format::latency(value),
        Unit::Percent | Unit::Hits => format::percent(value),
        Unit::Factor => format::factor(value),
        Unit::Blocks | Unit::Zones => format::count(value),
        Unit::Seconds => format::seconds(value),
        Unit::Commands => format::number(value),
        Unit::Bytes => format::bytes(value.round()),
        Unit::Energy => format::energy(value),
        Unit::Volts => format!("{} V", format::number(value)),
        Unit::Years => format!("{} years", format::number(value)),
    }
}
