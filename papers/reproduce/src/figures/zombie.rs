//! The figures of Zombie Chasing, redrawn: write amplification and elapsed time by the locality of
//! writes and by reads per write; what the drive knows of the cache; what announcing costs; and
//! databases.

use super::beside;
use crate::ClaimResult;
use crate::zombie::{
    ALL, BANKS, BLOCK_ALONE, CACHES, CHANNELS, Cell, DATABASES, DatabaseCell, POLICIES, Policy,
    WITHOUT_BLOCK,
};
use leyden_record::RunRecord;
use leyden_report::figures::Table;
use leyden_report::figures::spec::{self, Across, Chart, Line, Points, Stroke, Unit};
use leyden_report::figures::{Figure, Section, Size};
use leyden_report::format;
use serde_json::{Value, json};

/// A finished run of the micro-benchmark.
pub type Finished<'a> = (Cell, &'a RunRecord);
/// A finished run of a database's trace.
pub type FinishedDatabase<'a> = (DatabaseCell, &'a RunRecord);

/// The quantity on a line.
type Quantity = (Unit, fn(&RunRecord) -> f64, &'static str);

const QUANTITIES: [Quantity; 2] = [
    (Unit::Factor, |record| record.flash.waf, "write amplification"),
    (Unit::Seconds, |record| record.host.elapsed_s, "elapsed time"),
];

/// The sections; none without runs.
pub(crate) fn sections(
    cells: &[Finished<'_>],
    databases: &[FinishedDatabase<'_>],
    claims: &[ClaimResult],
) -> Vec<Section> {
    let mut sections = Vec::new();
    if !cells.is_empty() {
        sections.push(Section::new(
            "zombie-locality",
            "Locality of writes (Zombie Chasing, figures 5 to 7)",
            std::iter::once(cuts(cells, claims)).chain(by_locality(cells)).collect(),
        ));
        sections.push(Section::new(
            "zombie-reads",
            "Reads per write (figure 8, table 3)",
            by_reads(cells, claims),
        ));
        sections.push(Section::new(
            "zombie-block",
            "Victims and the zombie block, each alone (figure 9)",
            without_block(cells),
        ));
        sections.push(Section::new(
            "zombie-channel",
            "Cost of announcing (section 5.2.5)",
            vec![channels(cells)],
        ));
    }
    if !databases.is_empty() {
        let figures = DATABASES.iter().map(|it| database(it.name, databases)).collect();
        let title = "PostgreSQL (in place of section 5.3)";
        sections.push(Section::new("zombie-databases", title, figures));
    }
    sections
}

/// Figure 5's cells but for what is drawn across.
fn is_plain(cell: &Cell) -> bool {
    cell.channel == "piggyback" && cell.reads == 5 && !cell.is_cold
}

/// How much of the write amplification knowing zombies takes away, with the paper's figures beside it.
fn cuts(cells: &[Finished<'_>], claims: &[ClaimResult]) -> Figure {
    let title = "Write amplification cut, 4 banks, page cache of 4 GiB";
    let figure = Figure::new("zombie-cuts", title);
    let chosen = |cell: &Cell| is_plain(cell) && (cell.banks, cell.cache) == (4, CACHES[0]);
    let of = |policy| {
        points(cells, policy, chosen, |cell| f64::from(cell.locality) / 100.0, QUANTITIES[0])
    };
    let claimed = ["zombie.waf_cut.z_greedy.h6.4gib", "zombie.waf_cut.z_cost_benefit.h6.4gib"];
    let mut lines = Vec::new();
    // Each policy that knows zombies follows the one that does not.
    for (colour, (pair, id)) in POLICIES.chunks(2).zip(claimed).enumerate() {
        let [base, policy] = pair else { continue };
        let bases = of(*base);
        let cut = of(*policy).into_iter().filter_map(|(x, waf)| {
            let (_, base) = bases.iter().find(|(at, _)| at.total_cmp(&x).is_eq())?;
            Some((x, format::rounded(1.0 - waf / base)))
        });
        let (x, y): (Vec<f64>, Vec<f64>) = cut.unzip();
        if x.is_empty() {
            continue;
        }
        let label = policy.name.to_owned();
        lines.push(Line { label, colour, stroke: Stroke::Solid, points: Points::Here { x, y } });
        lines.extend(beside::line(claims, policy.name, colour, &[(0.06, id)]));
    }
    if lines.is_empty() {
        return figure.nothing("None of these runs was made.");
    }
    let mut figure = figure.note("Over the same policy without hints. Single points: the paper, where its text has a number.");
    figure.size = Size::Wide;
    figure.table = Some(table(&lines, Across::Locality));
    let mut chart = chart(lines, Across::Locality, Unit::Factor, title);
    chart.spec["encoding"]["y"]["axis"]["title"] = json!("share of the write amplification");
    figure.chart(chart)
}

fn by_locality(cells: &[Finished<'_>]) -> Vec<Figure> {
    let panels = [(4, CACHES[0]), (4, CACHES[1]), (16, CACHES[0])];
    let mut figures = Vec::new();
    for (number, (banks, cache)) in (5..).zip(panels) {
        for quantity in QUANTITIES {
            let chosen = |cell: &Cell| is_plain(cell) && (cell.banks, cell.cache) == (banks, cache);
            let id = format!("zombie-figure{number}");
            let title = format!("{banks} banks, page cache of {cache}");
            figures.push(lines(&id, &title, Across::Locality, quantity, &ALL, |policy| {
                points(cells, policy, chosen, |cell| f64::from(cell.locality) / 100.0, quantity)
            }));
        }
    }
    debug_assert_eq!(BANKS.map(|(banks, _)| banks), [4, 16]);
    figures
}

fn by_reads(cells: &[Finished<'_>], claims: &[ClaimResult]) -> Vec<Figure> {
    let chosen = |cell: &Cell| {
        (cell.banks, cell.cache, cell.locality) == (4, CACHES[0], 6)
            && cell.channel == "piggyback"
            && !cell.is_cold
    };
    let reads = |cell: &Cell| f64::from(cell.reads) / 10.0;
    let mut figures: Vec<Figure> = QUANTITIES
        .map(|quantity| {
            let title = "h = 6, page cache of 4 GiB";
            lines("zombie-figure8", title, Across::ReadsPerWrite, quantity, &POLICIES, |policy| {
                points(cells, policy, chosen, reads, quantity)
            })
        })
        .into();
    let mut figure = Figure::new("zombie-table3", "The drive's knowledge of the cache (table 3)");
    let mut table =
        Table::new(["Reads per write", "Zombie data", "Of the dirty data", "The paper"]);
    let known = [
        (0, "zombie.known_share.reads_per_write_0"),
        (5, "zombie.known_share.reads_per_write_half"),
    ];
    let mut rows: Vec<_> = cells.iter().filter(|(cell, _)| cell.is_cold).collect();
    rows.sort_by_key(|(cell, _)| cell.reads);
    for (cell, record) in rows {
        let Some(hints) = &record.hints else { continue };
        table.rows.push(vec![
            format::number(reads(cell)),
            format::bytes(hints.zombie_bytes_mean),
            share(hints.known_dirty_share),
            share(known.iter().find(|(reads, _)| *reads == cell.reads).and_then(|(_, id)| {
                claims.iter().find(|claim| claim.id == *id).map(|claim| claim.paper.numbers()[0])
            })),
        ]);
    }
    figure.size = Size::Wide;
    figures.push(with_table(
        figure,
        table,
        "Means over a run that begins with an empty page cache, with ZGC-GD.",
    ));
    figures
}

fn without_block(cells: &[Finished<'_>]) -> Vec<Figure> {
    let chosen = |cell: &Cell| is_plain(cell) && (cell.banks, cell.cache) == (4, CACHES[0]);
    let [greedy, cost_benefit] =
        [0, 1].map(|at| [POLICIES[2 * at + 1], WITHOUT_BLOCK[at], BLOCK_ALONE[at]]);
    let policies = [greedy, cost_benefit].concat();
    QUANTITIES
        .map(|quantity| {
            let title = "4 banks, page cache of 4 GiB";
            lines("zombie-figure9", title, Across::Locality, quantity, &policies, |policy| {
                points(cells, policy, chosen, |cell| f64::from(cell.locality) / 100.0, quantity)
            })
        })
        .into()
}

/// Elapsed times by how zombies are announced.
fn channels(cells: &[Finished<'_>]) -> Figure {
    let mut figure =
        Figure::new("zombie-channels", "h = 6, page cache of 4 GiB, 0.5 reads per write");
    figure.size = Size::Wide;
    let mut table =
        Table::new(["Announced", "Policy", "Elapsed", "Write amplification", "Writes, 99 %"]);
    for channel in CHANNELS {
        for policy in POLICIES {
            let wanted = Cell { channel, ..Cell::figure5(6, policy) };
            let Some((_, record)) = cells.iter().find(|(cell, _)| *cell == wanted) else {
                continue;
            };
            table.rows.push(vec![
                channel.to_owned(),
                policy.name.to_owned(),
                format!("{} s", format::number(record.host.elapsed_s)),
                format::number(record.flash.waf),
                format::latency(record.host.write_latency_us.p99),
            ]);
        }
    }
    with_table(
        figure,
        table,
        "With a hint in a read or write, and with one in a command of its own.",
    )
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| format::DASH.to_owned(), format::percent)
}

/// The policies on one database's trace, with and without a log stream.
fn database(name: &str, runs: &[FinishedDatabase<'_>]) -> Figure {
    let mut figure = Figure::new(format!("zombie-{}", leyden_report::figures::plain(name)), name);
    figure.size = Size::Wide;
    let mut table = Table::new([
        "Policy",
        "Log stream",
        "Write amplification",
        "Zombies, of the drive",
        "Zombies copied",
        "Writes, mean",
        "Writes, 99 %",
        "Overwrites announced",
    ]);
    for (cell, record) in runs.iter().filter(|(cell, _)| cell.database == name) {
        let known = record.hints.as_ref().and_then(|hints| hints.known_overwrite_share);
        let zombies = record.hints.as_ref().zip(record.drive.as_ref());
        let zombies = zombies.map(|(hints, it)| hints.zombie_bytes_mean / it.capacity_bytes as f64);
        table.rows.push(vec![
            cell.policy.name.to_owned(),
            cell.log.to_owned(),
            format::number(record.flash.waf),
            share(zombies),
            format::count(record.gc.copied_zombie_pages),
            format::latency(record.host.write_latency_us.mean),
            format::latency(record.host.write_latency_us.p99),
            share(known),
        ]);
    }
    with_table(figure, table, "")
}

fn with_table(mut figure: Figure, table: Table, note: &str) -> Figure {
    if table.rows.is_empty() {
        return figure.nothing("None of these runs was made.");
    }
    figure.table = Some(table);
    figure.note(note)
}

/// The points of `policy` among the cells that are `chosen`, ascending.
fn points(
    cells: &[Finished<'_>],
    policy: Policy,
    chosen: impl Fn(&Cell) -> bool,
    x: impl Fn(&Cell) -> f64,
    (_, of, _): Quantity,
) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = cells
        .iter()
        .filter(|(cell, _)| cell.policy == policy && chosen(cell))
        .map(|(cell, record)| (x(cell), format::rounded(of(record))))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// A line for each policy.
fn lines(
    id: &str,
    title: &str,
    across: Across,
    (unit, _, what): Quantity,
    policies: &[Policy],
    of: impl Fn(Policy) -> Vec<(f64, f64)>,
) -> Figure {
    let figure = Figure::new(
        format!("{id}-{}", leyden_report::figures::plain(what)),
        format!("{title}: {what}"),
    );
    let mut lines = Vec::new();
    for (colour, policy) in policies.iter().enumerate() {
        let (x, y): (Vec<f64>, Vec<f64>) = of(*policy).into_iter().unzip();
        if !x.is_empty() {
            let label = policy.name.to_owned();
            lines.push(Line {
                label,
                colour,
                stroke: Stroke::Solid,
                points: Points::Here { x, y },
            });
        }
    }
    if lines.is_empty() {
        return figure.nothing("None of these runs was made.");
    }
    let mut figure = figure;
    figure.table = Some(table(&lines, across));
    let chart = chart(lines, across, unit, &figure.title);
    figure.chart(chart)
}

fn chart(lines: Vec<Line>, across: Across, unit: Unit, title: &str) -> Chart {
    let y: Vec<f64> = lines.iter().flat_map(|line| line.points.here().1).copied().collect();
    let mut spec =
        spec::line_spec(&lines, &x_axis(&lines, across), &spec::y_axis(unit, &y), "linear", title);
    spec["mark"]["point"] = json!({"size": 24, "filled": true});
    Chart { across, unit, lines, rows: Vec::new(), spec }
}

fn x_axis(lines: &[Line], across: Across) -> Value {
    let mut xs: Vec<f64> = lines.iter().flat_map(|line| line.points.here().0).copied().collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let (first, last) = (xs[0], xs[xs.len() - 1]);
    let (scale, title, format) = match across {
        Across::ReadsPerWrite => ("linear", "reads per write", "~r"),
        // A logarithmic axis needs two ends.
        _ => ("log", "share of the drive that takes most of the writes (h)", "~%"),
    };
    let first = if first < last { first } else { first / 2.0 };
    spec::x_axis(
        &json!({"type": scale, "domain": [first, last], "nice": false, "zero": false}),
        &json!({"title": title, "format": format, "values": xs}),
    )
}

/// Rows are what is drawn across, columns are policies.
fn table(lines: &[Line], across: Across) -> Table {
    let mut xs: Vec<f64> = lines.iter().flat_map(|line| line.points.here().0).copied().collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let head = if across == Across::ReadsPerWrite { "Reads per write" } else { "h" };
    let labels = lines.iter().map(|line| line.label.clone());
    let mut table = Table::new(std::iter::once(head.to_owned()).chain(labels));
    for x in xs {
        let cells = lines.iter().map(|line| {
            let (at, values) = line.points.here();
            let found = at.iter().position(|other| other.total_cmp(&x).is_eq());
            found.map_or_else(|| format::DASH.to_owned(), |found| format::number(values[found]))
        });
        let label =
            if across == Across::ReadsPerWrite { format::number(x) } else { format::percent(x) };
        table.rows.push(std::iter::once(label).chain(cells).collect());
    }
    table
}
