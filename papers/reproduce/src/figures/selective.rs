//! The figures of Selective-PLP, redrawn: bandwidth by the size of the buffer and of its protected region, the
//! time of a dump, what the ratios hang on, and what the published order of syncs exposes.

use crate::selective::{CHANGES, REGIONS_COMPARED, StoreCell};
use leyden_record::{RunRecord, Store};
use leyden_report::figures::Table;
use leyden_report::figures::spec::{self, Across, Chart, Line, Points, Stroke, Unit};
use leyden_report::figures::{Figure, Section, Size};
use leyden_report::format;
use serde_json::json;

/// A finished run.
pub type Finished<'a> = (StoreCell, &'a RunRecord);

/// A figure of the paper.
struct Drawn {
    number: u32,
    title: &'static str,
    axis: &'static str,
    unit: Unit,
    of: fn(&RunRecord) -> f64,
    /// Which runs are in it.
    has: fn(&StoreCell) -> bool,
    /// The name of a line.
    line: fn(&StoreCell) -> &'static str,
    x: fn(&StoreCell) -> u32,
}

const DRAWN: [Drawn; 4] = [
    Drawn {
        number: 10,
        title: "fillseq, by the size of the buffer",
        axis: "buffer (MiB)",
        unit: Unit::MibPerS,
        of: bandwidth,
        has: StoreCell::is_of_fillseq,
        line: |cell| cell.region,
        x: |cell| cell.buffer,
    },
    Drawn {
        number: 11,
        title: "overwrite, by the size of the buffer",
        axis: "buffer (MiB)",
        unit: Unit::MibPerS,
        of: bandwidth,
        has: StoreCell::is_of_overwrite,
        line: |cell| cell.region,
        x: |cell| cell.buffer,
    },
    Drawn {
        number: 12,
        title: "fillseq, by the size of the protected region",
        axis: "protected region (MiB); 32 MiB beside it",
        unit: Unit::MibPerS,
        of: bandwidth,
        has: StoreCell::is_of_regions,
        line: |cell| cell.region,
        x: |cell| cell.protected,
    },
    Drawn {
        number: 13,
        title: "time of a dump, by the size of the protected region",
        axis: "protected region (MiB); 32 MiB beside it",
        unit: Unit::Seconds,
        of: |record| record.power.as_ref().map_or(f64::NAN, |power| power.dump_ms.mean / 1e3),
        has: StoreCell::is_of_dumps,
        line: |cell| cell.dump,
        x: |cell| cell.protected,
    },
];

fn store(record: &RunRecord) -> Option<&Store> {
    record.zones.as_ref()?.store.as_ref()
}

fn bandwidth(record: &RunRecord) -> f64 {
    store(record).map_or(f64::NAN, |store| store.mib_per_s)
}

/// The sections; none without runs.
pub(crate) fn sections(cells: &[Finished<'_>]) -> Vec<Section> {
    if cells.is_empty() {
        return Vec::new();
    }
    let figures = DRAWN.iter().map(|drawn| drawn.figure(cells)).collect();
    vec![
        Section::new("stores", "A key-value store (Selective-PLP, figures 10 to 13)", figures),
        Section::new(
            "stores-hang-on",
            "Causes of the ratios, and exposed data of the published order",
            vec![changes(cells), exposed(cells)],
        ),
    ]
}

impl Drawn {
    fn figure(&self, cells: &[Finished<'_>]) -> Figure {
        let id = format!("stores-figure{}", self.number);
        let figure = Figure::new(id, format!("Figure {}: {}", self.number, self.title));
        let lines = self.lines(cells);
        if lines.is_empty() {
            return figure.nothing("None of these runs was made.");
        }
        let mut figure = figure;
        figure.table = Some(self.table(&lines));
        let mut xs: Vec<f64> =
            lines.iter().flat_map(|line| line.points.here().0).copied().collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let ends = [xs[0], xs[xs.len() - 1]];
        let y: Vec<f64> = lines.iter().flat_map(|line| line.points.here().1).copied().collect();
        let x = spec::x_axis(
            &json!({"type": "log", "base": 2, "domain": ends, "nice": false, "zero": false}),
            &json!({"title": self.axis, "values": xs}),
        );
        let y = spec::y_axis(self.unit, &y);
        let mut spec = spec::line_spec(&lines, &x, &y, "linear", self.title);
        spec["mark"]["point"] = json!({"size": 24, "filled": true});
        let (across, unit) = (Across::Parameter, self.unit);
        figure
            .chart(Chart { across, unit, lines, rows: Vec::new(), spec })
            .note("Means over the seeds.")
    }

    fn lines(&self, cells: &[Finished<'_>]) -> Vec<Line> {
        let chosen: Vec<&Finished<'_>> =
            cells.iter().filter(|(cell, _)| (self.has)(cell)).collect();
        let mut labels: Vec<&str> = Vec::new();
        for (cell, _) in &chosen {
            let label = (self.line)(cell);
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        let line = |(colour, label): (usize, &str)| {
            let own: Vec<&&Finished<'_>> =
                chosen.iter().filter(|(cell, _)| (self.line)(cell) == label).collect();
            let mut xs: Vec<u32> = own.iter().map(|(cell, _)| (self.x)(cell)).collect();
            xs.sort_unstable();
            xs.dedup();
            let mean = |x: u32| {
                let at: Vec<f64> = own
                    .iter()
                    .filter(|(cell, _)| (self.x)(cell) == x)
                    .map(|(_, record)| (self.of)(record))
                    .collect();
                format::rounded(at.iter().sum::<f64>() / at.len() as f64)
            };
            let y = xs.iter().map(|&x| mean(x)).collect();
            let points = Points::Here { x: xs.into_iter().map(f64::from).collect(), y };
            Line { label: label.to_owned(), colour, stroke: Stroke::Solid, points }
        };
        labels.into_iter().enumerate().map(line).collect()
    }

    /// Rows are sizes, columns are lines.
    fn table(&self, lines: &[Line]) -> Table {
        let labels = lines.iter().map(|line| line.label.clone());
        let mut table = Table::new(std::iter::once(self.axis.to_owned()).chain(labels));
        for (row, x) in lines[0].points.here().0.iter().enumerate() {
            let cells = lines.iter().map(|line| {
                let value = line.points.here().1.get(row).copied();
                value.map_or_else(|| format::DASH.to_owned(), format::number)
            });
            table.rows.push(std::iter::once(format::number(*x)).chain(cells).collect());
        }
        table
    }
}

/// A row for each change of the scenario.
fn changes(cells: &[Finished<'_>]) -> Figure {
    let mut figure =
        Figure::new("stores-changes", "One key changed: a generated fillseq, 128 MiB, one seed");
    figure.size = Size::Wide;
    let mut table = Table::new([
        "Changed",
        "none, MiB/s",
        "selective, MiB/s",
        "full, MiB/s",
        "selective / none",
        "selective / full",
    ]);
    for (name, change) in CHANGES {
        let of = |region: &str| changed(cells, change, region);
        let [Some(none), Some(selective), Some(full)] = REGIONS_COMPARED.map(of) else { continue };
        let over = |base: &Store| format::number(selective.mib_per_s / base.mib_per_s);
        table.rows.push(vec![
            name.to_owned(),
            format::number(none.mib_per_s),
            format::number(selective.mib_per_s),
            format::number(full.mib_per_s),
            over(none),
            over(full),
        ]);
    }
    if table.rows.is_empty() {
        return figure.nothing("None of these runs was made.");
    }
    figure.table = Some(table);
    figure
}

/// The store of the run with one key changed.
fn changed<'a>(cells: &[Finished<'a>], change: &str, region: &str) -> Option<&'a Store> {
    let is_it = |cell: &StoreCell| cell.change == Some(change) && cell.region == region;
    cells.iter().find(|(cell, _)| is_it(cell)).and_then(|(_, record)| store(record))
}

/// Data that the orders of syncs leave exposed.
fn exposed(cells: &[Finished<'_>]) -> Figure {
    let mut figure = Figure::new("stores-exposed", "Data that a power cut could lose");
    figure.size = Size::Wide;
    let mut table = Table::new(["Order of syncs", "Protected", "Exposed, mean", "most", "MiB/s"]);
    let orders = [("sound", CHANGES[0].1), ("published", CHANGES[CHANGES.len() - 1].1)];
    for (order, change) in orders {
        for region in REGIONS_COMPARED {
            let Some(store) = changed(cells, change, region) else { continue };
            table.rows.push(vec![
                order.to_owned(),
                region.to_owned(),
                format::bytes(store.exposed_bytes_mean as u64),
                format::bytes(store.exposed_bytes_peak),
                format::number(store.mib_per_s),
            ]);
        }
    }
    if table.rows.is_empty() {
        return figure.nothing("None of these runs was made.");
    }
    figure.table = Some(table);
    figure.note(
        "Bytes of tables that metadata refers to, whose logs are deleted, and that no FLUSH has made durable. With \
         all of the buffer protected they are durable nevertheless; with none of it, the metadata is not.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selective::cells;
    use leyden_record::{Power, Spread, Zones};

    /// A store that puts as many MiB a second as its buffer has, four times as many with protection; and a dump
    /// of so many milliseconds as its region has MiB, ten times as many in place.
    fn record(cell: &StoreCell) -> RunRecord {
        let factor = if cell.region == "none" { 1.0 } else { 4.0 };
        let store = Store { mib_per_s: factor * f64::from(cell.buffer), ..Store::default() };
        let slow = if cell.dump == "in_place" { 10.0 } else { 1.0 };
        let dump_ms = Spread { mean: slow * f64::from(cell.protected), ..Spread::default() };
        RunRecord {
            zones: Some(Zones { store: Some(store), ..Zones::default() }),
            power: Some(Power { dump_ms, ..Power::default() }),
            ..RunRecord::default()
        }
    }

    #[test]
    fn the_figures_show_what_was_measured() {
        let records: Vec<_> = cells().into_iter().map(|cell| (cell, record(&cell))).collect();
        let runs: Vec<Finished<'_>> =
            records.iter().map(|(cell, record)| (*cell, record)).collect();
        let sections = sections(&runs);
        let rows = |section: usize, figure: usize| {
            &sections[section].figures[figure].table.as_ref().unwrap().rows
        };
        assert_eq!(rows(0, 0)[0], ["64.00", "64.00", "256.0", "256.0"]);
        assert_eq!(rows(0, 1).len(), 4);
        assert_eq!(rows(0, 2)[4], ["128.0", "640.0"]);
        assert_eq!(rows(0, 3)[3][1..], ["0.256", "2.560"]);
        assert_eq!(rows(1, 0).len(), CHANGES.len());
        assert_eq!(rows(1, 0)[0][4..6], ["4.000", "1.000"]);
        assert_eq!((rows(1, 1).len(), rows(1, 1)[3][0].as_str()), (6, "published"));
        assert!(super::sections(&[]).is_empty());
    }
}
