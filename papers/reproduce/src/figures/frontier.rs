//! The frontier of designs: throughput over capacitance, and every design with what dominates it.

use crate::frontier::{Point, TABLES};
use crate::hexa::Workload;
use leyden_report::figures::Table;
use leyden_report::figures::spec::{self, Across, Chart, Line, Points, Stroke, Unit};
use leyden_report::figures::{Figure, Section, Size};
use leyden_report::format;
use serde_json::json;

/// A section for each workload; none without points.
pub(crate) fn sections(frontiers: &[(Workload, Vec<Point>)]) -> Vec<Section> {
    let found = frontiers.iter().filter(|(_, points)| !points.is_empty());
    found
        .map(|(workload, points)| {
            let (id, title) = match workload.name {
                "random writes" => ("frontier-random", "Designs: random writes"),
                "JESD219" => ("frontier-jesd219", "Designs: JESD219"),
                _ => ("frontier-tpcc", "Designs: TPC-C"),
            };
            Section::new(id, title, vec![chart_of(id, points), table_of(id, points)])
        })
        .collect()
}

/// The designs on the frontier, coloured by what is protected of the mapping table.
fn chart_of(id: &str, points: &[Point]) -> Figure {
    let on_frontier = |point: &&Point| point.dominated_by.is_none();
    let lines: Vec<Line> = TABLES
        .into_iter()
        .enumerate()
        .filter_map(|(colour, table)| {
            let of_table = points.iter().filter(on_frontier);
            let of_table: Vec<&Point> =
                of_table.filter(|point| point.design.table == table).collect();
            let column = |of: fn(&Point) -> f64| {
                of_table.iter().map(|point| format::rounded(of(point))).collect::<Vec<f64>>()
            };
            let x = column(|point| point.figures.capacitance_uf);
            let y = column(|point| point.figures.iops);
            let points = Points::Here { x, y };
            (!of_table.is_empty()).then(|| Line {
                label: table.name(),
                colour,
                stroke: Stroke::Solid,
                points,
            })
        })
        .collect();
    let x = spec::x_axis(
        &json!({"type": "log", "nice": true}),
        &json!({"title": "capacitance for the largest dump (µF; logarithmic)", "format": "~s"}),
    );
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.here().1).copied().collect();
    let y = spec::y_axis(Unit::Iops, &values);
    let mut spec = spec::line_spec(&lines, &x, &y, "linear", "IOPS over capacitance");
    spec["mark"] = json!({"type": "point", "filled": true, "size": 48, "opacity": 0.9});
    let mut figure = Figure::new(format!("{id}-chart"), "Designs that none dominates");
    figure.size = Size::Wide;
    let chart =
        Chart { across: Across::Capacitance, unit: Unit::Iops, lines, rows: Vec::new(), spec };
    figure
        .note("By the protected share of the mapping table. The table below has all designs.")
        .chart(chart)
}

/// All designs, from the least capacitance to the most.
fn table_of(id: &str, points: &[Point]) -> Figure {
    let mut table = Table::new([
        "Protected, schedule, dump",
        "IOPS",
        "Writes, 99 %",
        "Write amplification",
        "Recovery",
        "Capacitance",
        "Dominated by",
    ]);
    for point in points {
        let figures = &point.figures;
        table.rows.push(vec![
            point.design.name(),
            format::count(figures.iops),
            format::latency(figures.write_p99_us),
            format::number(figures.waf),
            format!("{} ms", format::number(figures.recovery_ms)),
            format!("{} µF", format::count(figures.capacitance_uf)),
            point.dominated_by.map_or_else(|| format::DASH.to_owned(), |design| design.name()),
        ]);
    }
    let mut figure = Figure::new(format!("{id}-table"), "All designs");
    figure.size = Size::Wide;
    figure.table = Some(table);
    figure.note(
        "A design is dominated by one that is worse in none of the five figures, and better in one, by more than 0.5 %; \
         of several, the one with the most IOPS is named.",
    )
}
