//! How busy each channel and each die was: a row per channel, a cell per die.

use super::{Figure, Size};
use crate::format;
use crate::run::Run;
use crate::table::Table;
use leyden_record::Utilisation;
use serde::Serialize;

/// More dies in a row than this, and the cells carry no numbers.
const MOST_NUMBERED: usize = 16;

/// A grid of busy shares.
#[derive(Serialize)]
pub(crate) struct Heat {
    /// Cells in the longest row.
    columns: usize,
    /// Whether cells are wide enough for a number.
    numbered: bool,
    /// The share that the deepest colour stands for, as text.
    top: String,
    rows: Vec<Row>,
}

/// One channel.
#[derive(Serialize)]
struct Row {
    label: String,
    /// Share of time its bus was busy, as text and as 0..=1.
    bus: Option<(String, f64)>,
    cells: Vec<Cell>,
}

/// One die.
#[derive(Serialize)]
struct Cell {
    title: String,
    text: String,
    /// Of the deepest colour, 0..=1.
    share: f64,
}

/// One grid per run.
pub(crate) fn figures(runs: &[Run]) -> Vec<Figure> {
    let several = runs.len() > 1;
    let size = Size::of_one_in(runs.len());
    let runs = runs.iter().enumerate();
    runs.map(|(i, run)| {
        let (id, title) = if several {
            (format!("dies-{}", i + 1), format!("Busy time by channel and die: {}", run.label))
        } else {
            ("dies".to_owned(), "Busy time by channel and die".to_owned())
        };
        figure(id, title, &run.record.utilisation, size)
    })
    .collect()
}

fn figure(id: String, title: String, busy: &Utilisation, size: Size) -> Figure {
    let mut figure = Figure::new(id, title);
    figure.size = size;
    if busy.dies.is_empty() && busy.channels.is_empty() {
        return figure.nothing("No utilisation was recorded.");
    }
    figure.table = Some(table(busy));
    figure.heat = Some(heat(busy));
    let note = "Share of simulated time busy: the bar is the channel's bus, a cell is a die";
    figure.note(format!("{note}; the deeper, the busier."))
}

/// Die `d` hangs on channel `d % channels`, as in the device's geometry.
fn heat(busy: &Utilisation) -> Heat {
    let channels = busy.channels.len().max(1);
    let columns = busy.dies.len().div_ceil(channels);
    let top = top(&busy.dies);
    let rows = (0..channels).map(|channel| {
        let dies = busy.dies.iter().enumerate().skip(channel);
        let cells = dies.step_by(channels).map(|(die, &share)| Cell {
            title: format!("die {die}: {}", format::percent(share)),
            text: format!("{:.0}", clamped(share) * 100.0),
            share: clamped(share / top),
        });
        let bus = busy.channels.get(channel);
        Row {
            label: bus.map_or_else(|| "dies".to_owned(), |_| format!("ch {channel}")),
            bus: bus.map(|&share| (format::percent(share), clamped(share))),
            cells: cells.collect(),
        }
    });
    let rows = rows.collect();
    Heat { columns, numbered: columns <= MOST_NUMBERED, top: format::percent(top), rows }
}

/// A round share that none of `shares` exceeds: on a scale up to 100 %, dies that are busy for a tenth of
/// the time would all look alike.
fn top(shares: &[f64]) -> f64 {
    let most = shares.iter().copied().map(clamped).fold(0.0, f64::max);
    let rounds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8];
    rounds.into_iter().find(|round| most <= *round).unwrap_or(1.0)
}

/// A share a style sheet can use.
fn clamped(share: f64) -> f64 {
    if share.is_finite() { format::rounded(share.clamp(0.0, 1.0)) } else { 0.0 }
}

fn table(busy: &Utilisation) -> Table {
    let mut table = Table::new(["Part", "Busy"]);
    let channels = busy.channels.iter().enumerate();
    let channels = channels.map(|(i, s)| vec![format!("Channel {i}"), format::percent(*s)]);
    let dies = busy.dies.iter().enumerate();
    let dies = dies.map(|(i, s)| vec![format!("Die {i}"), format::percent(*s)]);
    table.rows = channels.chain(dies).collect();
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dies_stand_in_the_row_of_their_channel() {
        let heat =
            heat(&Utilisation { dies: vec![0.0, 0.1, 0.2, 0.3, 0.4], channels: vec![0.5, 0.6] });
        assert_eq!(heat.columns, 3);
        let titles: Vec<&str> = heat.rows[1].cells.iter().map(|c| &*c.title).collect();
        assert_eq!(titles, ["die 1: 10.0 %", "die 3: 30.0 %"]);
    }

    #[test]
    fn the_scale_ends_just_above_the_busiest_die() {
        let heat = heat(&Utilisation { dies: vec![0.05, 0.11], channels: vec![0.5] });
        assert_eq!(heat.top, "20.0 %");
        assert!((heat.rows[0].cells[1].share - 0.55).abs() < 1e-9);
        assert!((top(&[0.93]) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn dies_without_channels_still_show() {
        let heat = heat(&Utilisation { dies: vec![f64::NAN, 2.0], channels: vec![] });
        assert_eq!(heat.rows.len(), 1);
        assert!(heat.rows[0].bus.is_none());
        assert!((heat.rows[0].cells[1].share - 1.0).abs() < f64::EPSILON);
    }
}
