//! The figures of Hexa and Dawid, redrawn: throughput, write traffic and hit ratio by the protected
//! share of the mapping table; and Dawid's tables of workloads.

use super::beside;
use crate::hexa::{self, BUFFERS, SCHEDULES, WORKLOADS, Workload};
use crate::{Cell, ClaimResult, WorkloadRow};
use leyden_record::RunRecord;
use leyden_report::figures::Table;
use leyden_report::figures::spec::{self, Across, Chart, Line, Points, Stroke, Unit};
use leyden_report::figures::{Bar, Figure, Key, Section, Segment, Size};
use leyden_report::format;
use serde_json::json;

/// A finished run of the matrix.
pub type Finished<'a> = (Cell, &'a RunRecord);

/// A cause of programs: its name, and how to count it.
type Cause = (&'static str, fn(&RunRecord) -> u64);

/// The parts of a bar of write traffic, in the papers' order and with Hexa's names (figure 4).
const TRAFFIC: [Cause; 4] = [
    ("User data", |record| record.flash.programs.user),
    ("Mapping data", |record| record.flash.programs.map),
    ("Collected user data", |record| record.flash.programs.gc_user),
    ("Collected mapping data", |record| record.flash.programs.gc_map),
];

/// The sections with figures of `cells`; none without cells.
pub(crate) fn sections(
    cells: &[Finished<'_>],
    workloads: &[WorkloadRow],
    claims: &[ClaimResult],
) -> Vec<Section> {
    let mut sections = Vec::new();
    if !cells.is_empty() {
        let each = |of: &dyn Fn(Panel<'_>) -> Figure| -> Vec<Figure> {
            let panels = WORKLOADS.into_iter().flat_map(|w| BUFFERS.map(|buffer| (w, buffer)));
            panels.map(|(workload, buffer)| of(Panel { cells, workload, buffer })).collect()
        };
        let hits = |panel: Panel<'_>| {
            let of = |record: &RunRecord| record.map.hit_ratio;
            panel.lines("hits", Unit::Hits, of)
        };
        let iops = |panel: Panel<'_>| panel.lines("iops", Unit::Iops, |record| record.host.iops);
        sections.extend([
            Section::new(
                "iops",
                "IOPS (Hexa, figure 3)",
                std::iter::once(over_full(cells, claims)).chain(each(&iops)).collect(),
            ),
            Section::new(
                "traffic",
                "Write traffic (Hexa, figure 4; Dawid, figures 3 and 4)",
                each(&|panel| panel.traffic()),
            ),
            Section::new(
                "hits",
                "Hit ratio in the protected mapping pages (Dawid, figure 2)",
                each(&hits),
            ),
        ]);
    }
    if !workloads.is_empty() {
        let figures = vec![
            workload_table(workloads, true, "Recorded workloads (Dawid, table 1)"),
            workload_table(workloads, false, "Generated workloads (Dawid, table 2)"),
        ];
        sections.push(Section::new("workloads", "Workloads", figures));
    }
    sections
}

/// IOPS of each schedule over those of full protection, means over workloads and buffers, with the paper's figures
/// beside them.
fn over_full(cells: &[Finished<'_>], claims: &[ClaimResult]) -> Figure {
    let title = "IOPS over full protection, mean over workloads and buffers";
    let figure = Figure::new("iops-over-full", title);
    let iops = |wanted: &Cell| {
        cells.iter().find(|(cell, _)| cell == wanted).map(|(_, record)| record.host.iops)
    };
    // A mean over fewer than all panels would be another figure.
    let mean = |schedule: &'static str, share: u32| -> Option<f64> {
        let panels = WORKLOADS.into_iter().flat_map(|w| BUFFERS.map(|buffer| (w, buffer)));
        let ratio = |(workload, buffer)| {
            let at = |schedule, share| {
                let table = hexa::Table::Share(share);
                iops(&Cell { workload, buffer, schedule, table })
            };
            Some(at(schedule, share)? / at("fifo", 100)?)
        };
        let ratios: Option<Vec<f64>> = panels.map(ratio).collect();
        ratios.map(|ratios| ratios.iter().sum::<f64>() / ratios.len() as f64)
    };
    let mut lines = Vec::new();
    for (colour, (schedule, _)) in SCHEDULES.iter().enumerate() {
        let points = hexa::SHARES.into_iter().filter_map(|share| {
            Some((f64::from(share) / 100.0, format::rounded(mean(schedule, share)?)))
        });
        let (x, y): (Vec<f64>, Vec<f64>) = points.unzip();
        let label = (*schedule).to_owned();
        if !x.is_empty() {
            lines.push(Line {
                label,
                colour,
                stroke: Stroke::Solid,
                points: Points::Here { x, y },
            });
        }
    }
    if lines.is_empty() {
        return figure.nothing("Not all of these runs were made.");
    }
    for (colour, (schedule, _)) in SCHEDULES.iter().enumerate() {
        let [one, ten] = ["1pct", "10pct"].map(|share| format!("{schedule}.iops_vs_full.{share}"));
        lines.extend(beside::line(claims, schedule, colour, &[(0.01, &one), (0.1, &ten)]));
    }
    let mut figure = figure.note("Dashed: the paper, where its text has a number.");
    figure.size = Size::Wide;
    figure.table = Some(table(&lines, Unit::Factor));
    let mut chart = chart(lines, Unit::Factor, title);
    chart.spec["encoding"]["y"]["axis"]["title"] = json!("IOPS / IOPS of full protection");
    figure.chart(chart)
}

/// One workload with one buffer size.
#[derive(Clone, Copy)]
struct Panel<'a> {
    cells: &'a [Finished<'a>],
    workload: Workload,
    buffer: &'static str,
}

impl Panel<'_> {
    fn figure(&self, kind: &str) -> Figure {
        let place = format!("{}-{}", self.workload.name, self.buffer);
        let place = leyden_report::figures::plain(&place);
        let title = format!("{}, buffer of {}", self.workload.name, self.buffer);
        Figure::new(format!("{kind}-{place}"), title)
    }

    /// This panel's runs under `schedule`: by share, and then those without one.
    fn of(&self, schedule: &str) -> Vec<(hexa::Table, &RunRecord)> {
        let here = |cell: &Cell| {
            (cell.workload, cell.buffer, cell.schedule) == (self.workload, self.buffer, schedule)
        };
        let mut found: Vec<_> = self
            .cells
            .iter()
            .filter(|(cell, _)| here(cell))
            .map(|(cell, record)| (cell.table, *record))
            .collect();
        found.sort_by_key(|(table, _)| *table);
        found
    }

    /// A line for each schedule, over the protected share.
    fn lines(&self, kind: &str, unit: Unit, of: impl Fn(&RunRecord) -> f64) -> Figure {
        let figure = self.figure(kind);
        let mut lines = Vec::new();
        for (colour, (schedule, _)) in SCHEDULES.iter().enumerate() {
            let found: Vec<_> = self.of(schedule).into_iter().filter_map(with_share).collect();
            if found.is_empty() {
                continue;
            }
            let x = found.iter().map(|(share, _)| f64::from(*share) / 100.0).collect();
            let y = found.iter().map(|(_, record)| format::rounded(of(record))).collect();
            let label = (*schedule).to_owned();
            lines.push(Line {
                label,
                colour,
                stroke: Stroke::Solid,
                points: Points::Here { x, y },
            });
        }
        if lines.is_empty() {
            return figure.nothing("None of these runs was made.");
        }
        let mut figure = figure;
        let mut rows = table(&lines, unit);
        for (name, record) in self.of("fifo").into_iter().filter_map(without_share) {
            let dashes = SCHEDULES[1..].iter().map(|_| format::DASH.to_owned());
            let cells = [name, shown(unit, of(record))];
            rows.rows.push(cells.into_iter().chain(dashes).collect());
        }
        figure.table = Some(rows);
        let title = figure.title.clone();
        figure.chart(chart(lines, unit, &title))
    }

    /// A bar for each run, in pages programmed.
    fn traffic(self) -> Figure {
        let mut figure = self.figure("traffic");
        let mut rows = Vec::new();
        for (schedule, letter) in SCHEDULES {
            for (protected, record) in self.of(schedule) {
                rows.push((protected, *letter, TRAFFIC.map(|(_, of)| of(record))));
            }
        }
        rows.sort_by_key(|(protected, ..)| *protected); // stable: schedules keep their order
        let most = rows.iter().map(|(.., counts)| counts.iter().sum()).max().unwrap_or(0);
        if most == 0 {
            return figure.nothing("None of these runs was made.");
        }
        figure.keys = TRAFFIC
            .iter()
            .enumerate()
            .map(|(colour, (label, _))| Key {
                label: (*label).to_owned(),
                colour,
                thin: false,
                dashed: false,
            })
            .collect();
        figure.bars =
            rows.iter().map(|(table, letter, counts)| bar(*table, letter, counts, most)).collect();
        let mut table = Table::new(
            ["Protected", "Schedule"].into_iter().chain(TRAFFIC.map(|(label, _)| label)),
        );
        for (protected, letter, counts) in &rows {
            let cells = counts.iter().map(|count| format::count(*count as f64));
            let head = [protected.name(), name_of(letter).to_owned()];
            table.rows.push(head.into_iter().chain(cells).collect());
        }
        figure.table = Some(table);
        let letters: Vec<String> =
            SCHEDULES.iter().map(|(name, letter)| format!("{letter} {name}")).collect();
        figure.note(format!("Pages programmed; {}.", letters.join(", ")))
    }
}

/// A run with a share of the table protected, and the share.
fn with_share((table, record): (hexa::Table, &RunRecord)) -> Option<(u32, &RunRecord)> {
    match table {
        hexa::Table::Share(share) => Some((share, record)),
        hexa::Table::Journal | hexa::Table::Nothing => None,
    }
}

/// A run without one, and what it is called.
fn without_share((table, record): (hexa::Table, &RunRecord)) -> Option<(String, &RunRecord)> {
    let has_none = !matches!(table, hexa::Table::Share(_));
    has_none.then(|| (table.name(), record))
}

fn shown(unit: Unit, value: f64) -> String {
    if unit == Unit::Hits { format::percent(value) } else { format::number(value) }
}

fn name_of(letter: &str) -> &'static str {
    SCHEDULES.iter().find(|(_, other)| *other == letter).map_or("", |(name, _)| name)
}

fn bar(table: hexa::Table, letter: &str, counts: &[u64; 4], most: u64) -> Bar {
    let segments = TRAFFIC.iter().zip(counts).enumerate();
    Bar {
        label: format!("{} {letter}", table.name()),
        value: format::count(counts.iter().sum::<u64>() as f64),
        from_percent: 0.0,
        segments: segments
            .filter(|(_, (_, count))| **count > 0)
            .map(|(colour, ((label, _), count))| Segment {
                colour,
                percent: format::rounded(100.0 * *count as f64 / most as f64),
                title: format!("{label}: {}", format::count(*count as f64)),
            })
            .collect(),
    }
}

fn chart(lines: Vec<Line>, unit: Unit, title: &str) -> Chart {
    let shares = || lines.iter().flat_map(|line| line.points.here().0.iter().copied());
    let (low, high) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
    // A logarithmic axis needs two ends.
    let low = if low < high { low } else { high / 10.0 };
    let ticks = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0];
    let x = spec::x_axis(
        &json!({"type": "log", "domain": [low, high], "nice": false}),
        &json!({"title": "protected share of the mapping table", "format": "~%", "values": ticks}),
    );
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.here().1).copied().collect();
    let mut spec = spec::line_spec(&lines, &x, &spec::y_axis(unit, &values), "linear", title);
    spec["mark"]["point"] = json!({"size": 24, "filled": true});
    Chart { across: Across::ProtectedShare, unit, lines, rows: Vec::new(), spec }
}

/// Rows are shares, columns are schedules.
fn table(lines: &[Line], unit: Unit) -> Table {
    let mut shares: Vec<f64> =
        lines.iter().flat_map(|line| line.points.here().0.iter().copied()).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let labels = lines.iter().map(|line| line.label.clone());
    let mut table = Table::new(std::iter::once("Protected".to_owned()).chain(labels));
    for share in shares {
        let cells = lines.iter().map(|line| {
            let (x, y) = line.points.here();
            match x.iter().position(|at| at.total_cmp(&share).is_eq()) {
                Some(at) => shown(unit, y[at]),
                None => format::DASH.to_owned(),
            }
        });
        table.rows.push(std::iter::once(format::percent(share)).chain(cells).collect());
    }
    table
}

fn workload_table(rows: &[WorkloadRow], traced: bool, title: &str) -> Figure {
    let id = if traced { "workloads-traced" } else { "workloads-generated" };
    let mut figure = Figure::new(id, title);
    figure.size = Size::Wide;
    let mut table = Table::new([
        "Workload",
        "Requests",
        "Footprint (D)",
        "Footprint (M)",
        "Total I/O (D)",
        "Total I/O (M)",
        "Map/data ratio",
    ]);
    for row in rows.iter().filter(|row| row.traced == traced) {
        table.rows.push(vec![
            row.name.to_owned(),
            format::count(row.requests as f64),
            format::bytes(row.facts.data_bytes as f64),
            format::bytes(row.facts.map_bytes as f64),
            format::bytes(row.data_bytes as f64),
            format::bytes(row.map_bytes as f64),
            format::percent(row.map_bytes as f64 / row.data_bytes as f64),
        ]);
    }
    if table.rows.is_empty() {
        return figure.nothing("None of these runs was made.");
    }
    figure.table = Some(table);
    figure.note(
        "In order of arrival, 1 % of the mapping table protected. D: data that the host wrote. M: \
         mapping pages. Footprints are of the whole workload, the rest of the measured part.",
    )
}
