//! Zoned drives: a map of the zones, their states and the buffer's fill over time, and what flushes waited for.

use super::spec::{self, Line, Points, Stroke, Unit};
use super::{Figure, Key, Size};
use crate::format::{self, rounded};
use crate::run::Run;
use crate::table::Table;
use leyden_record::{ZoneMoment, ZoneState, Zones};
use serde::Serialize;

/// Most cells of a map: on drives with more zones, a cell stands for several.
const MOST_CELLS: usize = 2048;
/// Cells in a row.
const COLUMNS: usize = 64;

/// The label of a state, and its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Look {
    label: &'static str,
    colour: usize,
}

/// The states that a map tells apart, those most worth noticing last.
const LOOKS: [Look; 5] = [
    Look { label: "Empty", colour: 7 },
    Look { label: "Full", colour: 0 },
    Look { label: "Closed", colour: 2 },
    Look { label: "Open", colour: 1 },
    Look { label: "Failed", colour: 3 },
];

/// Which of [`LOOKS`] a state has.
const fn look(state: ZoneState) -> usize {
    match state {
        ZoneState::Empty => 0,
        ZoneState::Full => 1,
        ZoneState::Closed => 2,
        ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen => 3,
        ZoneState::ReadOnly | ZoneState::Offline => 4,
    }
}

/// A map of zones.
#[derive(Serialize)]
pub(crate) struct ZoneMap {
    /// Cells in a row.
    columns: usize,
    cells: Vec<Cell>,
}

impl ZoneMap {
    /// A map of `cells`, in rows.
    pub(super) fn new(cells: Vec<Cell>) -> Self {
        Self { columns: COLUMNS.min(cells.len()), cells }
    }
}

/// A zone, or some neighbours.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    pub(super) title: String,
    /// Index into the palette.
    pub(super) colour: usize,
    /// The share that is written, 0..=1.
    pub(super) share: f64,
}

/// The figures of every run on a zoned drive; none for others.
pub(crate) fn figures(runs: &[Run]) -> Vec<Figure> {
    let several = runs.len() > 1;
    let mut figures = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let Some(zones) = &run.record.zones else { continue };
        let named = |id: &str, title: &str| {
            if several {
                Figure::new(format!("{id}-{}", index + 1), format!("{title}: {}", run.label))
            } else {
                Figure::new(id, title)
            }
        };
        figures.push(map(named("zone-map", "Zones at the end of the run"), zones));
        let moments = Moments::of(run, zones);
        figures.push(states(named("zone-states", "Zones by state, over time"), runs, &moments));
        figures.push(fill(named("pools", "The buffer's regions over time"), runs, &moments));
        figures.push(waits(named("flush-waits", "Data that flushes waited for"), zones));
    }
    figures
}

fn map(mut figure: Figure, zones: &Zones) -> Figure {
    figure.size = Size::Wide;
    let states: Option<Vec<ZoneState>> =
        zones.state_codes.iter().map(|&code| ZoneState::with_code(code)).collect();
    let states = states.unwrap_or_default();
    if states.is_empty() || states.len() != zones.written_per_mille.len() {
        return figure.nothing("The states of the zones were not recorded.");
    }
    let each = states.len().div_ceil(MOST_CELLS);
    let cells = states.chunks(each).zip(zones.written_per_mille.chunks(each));
    let cells: Vec<Cell> = cells
        .enumerate()
        .map(|(number, (states, written))| cell(number * each, states, written))
        .collect();
    let mut table = Table::new(["State", "Zones"]);
    for (at, it) in LOOKS.iter().enumerate() {
        let count = states.iter().filter(|&&state| look(state) == at).count();
        if count > 0 {
            figure.keys.push(Key {
                label: it.label.to_owned(),
                colour: it.colour,
                thin: false,
                dashed: false,
            });
            table.rows.push(vec![it.label.to_owned(), format::count(count as f64)]);
        }
    }
    figure.table = Some(table);
    figure.zones = Some(ZoneMap::new(cells));
    let grouped = match each {
        1 => "A cell is a zone".to_owned(),
        _ => format!(
            "A cell is {each} zones, in the colour of the one among them most worth noticing"
        ),
    };
    figure.note(format!(
        "{grouped} of {}, filled as far as it is written; in rows, from the first to the last.",
        format::bytes(zones.capacity_bytes as f64)
    ))
}

/// The cell of zones from number `first` on.
fn cell(first: usize, states: &[ZoneState], written: &[u32]) -> Cell {
    let share = written.iter().map(|&it| f64::from(it)).sum::<f64>() / written.len() as f64 / 1e3;
    let shown = states.iter().map(|&state| look(state)).max().unwrap_or(0);
    let title = if let [state] = states {
        format!("zone {first}: {}, {} written", state.name(), format::percent(share))
    } else {
        let last = first + states.len() - 1;
        format!("zones {first} to {last}: {} written", format::percent(share))
    };
    Cell { title, colour: LOOKS[shown].colour, share: rounded(share) }
}

/// The moments of a run from the beginning of its measurement on, and the seconds of the axis of time.
struct Moments<'a> {
    at: Vec<f64>,
    all: Vec<&'a ZoneMoment>,
    zones: f64,
}

impl<'a> Moments<'a> {
    fn of(run: &Run, zones: &'a Zones) -> Self {
        let start = run.record.series.start_s;
        let all: Vec<_> = zones.moments.iter().filter(|moment| moment.at_s >= start).collect();
        let at = all.iter().map(|moment| rounded(moment.at_s - start)).collect();
        Self { at, all, zones: zones.zones as f64 }
    }

    fn line(&self, label: &str, colour: usize, of: impl Fn(&ZoneMoment) -> f64) -> Line {
        let y = self.all.iter().map(|moment| of(moment)).collect();
        let points = Points::Here { x: self.at.clone(), y };
        Line { label: label.to_owned(), colour, stroke: Stroke::Solid, points }
    }
}

/// Peaks and means of lines, as text.
fn peaks(lines: &[Line], show: fn(f64) -> String) -> Table {
    let mut table = Table::new(["", "Mean of the moments", "Peak"]);
    for line in lines {
        let values = line.points.here().1;
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let peak = values.iter().copied().fold(0.0, f64::max);
        table.rows.push(vec![line.label.clone(), show(mean), show(peak)]);
    }
    table
}

fn states(mut figure: Figure, runs: &[Run], moments: &Moments<'_>) -> Figure {
    if moments.all.is_empty() {
        return figure.nothing("The run was too short to look at its zones.");
    }
    let count = |of: fn(&ZoneMoment) -> u32| move |moment: &ZoneMoment| f64::from(of(moment));
    let [_, full, closed, open, failed] = LOOKS;
    let lines = vec![
        moments.line(open.label, open.colour, count(|it| it.open)),
        moments.line(closed.label, closed.colour, count(|it| it.active - it.open)),
        moments.line(full.label, full.colour, count(|it| it.full)),
        moments.line(failed.label, failed.colour, count(|it| it.failed)),
    ];
    figure.table = Some(peaks(&lines, format::number));
    let note = format!("The rest of {} zones is empty.", format::count(moments.zones));
    let top = moments.all.iter().map(|it| it.active + it.full + it.failed).max().unwrap_or(0);
    let description = figure.title.clone();
    let top = f64::from(top);
    figure.note(note).chart(spec::stack_over_time(runs, lines, Unit::Zones, top, &description))
}

fn fill(mut figure: Figure, runs: &[Run], moments: &Moments<'_>) -> Figure {
    let lines = vec![
        moments.line("Protected", 0, |moment| moment.protected_bytes as f64),
        moments.line("Unprotected", 1, |moment| moment.plain_bytes as f64),
    ];
    let is_used = |line: &Line| line.points.here().1.iter().any(|&value| value > 0.0);
    let (used, empty): (Vec<Line>, Vec<Line>) = lines.into_iter().partition(is_used);
    if used.is_empty() {
        return figure.nothing("Nothing was in the buffer when it was looked at.");
    }
    let absent = empty.iter().map(|line| format!("{}: nothing.", line.label));
    let note = absent.chain([spec::key_to_marks(runs).to_owned()]).collect::<Vec<_>>().join(" ");
    figure.table = Some(peaks(&used, |value| format::bytes(value.round())));
    let description = figure.title.clone();
    let chart = spec::lines_over_time(runs, used, Unit::Bytes, &description);
    figure.note(note.trim()).chart(chart)
}

fn waits(mut figure: Figure, zones: &Zones) -> Figure {
    let waits = &zones.flush_waits;
    if waits.flushes == 0 {
        return figure.nothing("No flush had to wait for data.");
    }
    let mean = |sum: u64| sum as f64 / waits.flushes as f64;
    let mut table = Table::new(["Flushes that waited", &format::count(waits.flushes as f64)]);
    let mut row = |label: &str, value: String| table.rows.push(vec![label.to_owned(), value]);
    row(
        "Unprotected data that had to get to flash, mean",
        format::bytes(mean(waits.bytes).round()),
    );
    row("Most", format::bytes(waits.bytes_peak as f64));
    row("Zones that it lay in, mean", format::number(mean(waits.zones)));
    row("Protected data left in the buffer, mean", format::bytes(mean(waits.passed_bytes).round()));
    figure.size = Size::Wide;
    figure.table = Some(table);
    figure.note("A flush waits for the unprotected data of its moment, and skips protected data.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::{FlushWaits, RunRecord};

    fn record(states: &[ZoneState]) -> RunRecord {
        let zones = Zones {
            zones: states.len() as u64,
            capacity_bytes: 1 << 20,
            state_codes: states.iter().map(|state| state.code()).collect(),
            written_per_mille: states.iter().map(|state| *state as u32 * 100).collect(),
            moments: vec![ZoneMoment {
                at_s: 0.5,
                open: 1,
                active: 3,
                full: 2,
                ..Default::default()
            }],
            flush_waits: FlushWaits { flushes: 2, bytes: 8192, zones: 3, ..Default::default() },
            ..Zones::default()
        };
        RunRecord { zones: Some(zones), ..RunRecord::default() }
    }

    #[test]
    fn a_zone_has_the_colour_of_its_state_and_is_filled_as_far_as_it_is_written() {
        let records = [record(&ZoneState::ALL)];
        let figures = figures(&Run::all(&records));
        let map = figures[0].zones.as_ref().unwrap();
        let cells: Vec<_> = map.cells.iter().map(|cell| (cell.colour, cell.share)).collect();
        let [empty, full, closed, open, failed] = LOOKS.map(|look| look.colour);
        let colours = [empty, open, open, closed, full, failed, failed];
        let shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
        assert_eq!(cells, colours.into_iter().zip(shares).collect::<Vec<_>>());
        assert_eq!(map.cells[1].title, "zone 1: implicitly open, 10.0 % written");
        let rows = |at: usize| figures[at].table.as_ref().unwrap().rows.clone();
        assert_eq!(rows(1)[1], ["Closed", "2.000", "2.000"], "active zones that are not open");
        assert!(figures[2].nothing.is_some(), "nothing was buffered");
        assert_eq!(rows(3)[0][1], "4 KiB");
    }

    #[test]
    fn many_zones_share_cells_and_a_failed_one_shows() {
        let mut states = vec![ZoneState::Full; 3 * MOST_CELLS];
        states[7] = ZoneState::Offline;
        let records = [record(&states)];
        let figures = figures(&Run::all(&records));
        let cells = &figures[0].zones.as_ref().unwrap().cells;
        assert_eq!(cells.len(), MOST_CELLS);
        assert_eq!((cells[1].colour, cells[2].colour), (LOOKS[1].colour, LOOKS[4].colour));
    }

    #[test]
    fn a_run_on_another_drive_has_no_zones() {
        assert!(figures(&Run::all(&[RunRecord::default()])).is_empty());
    }
}
