//! Lines that lie on each other: only the front one would be seen, and the other seem to be missing.

use super::spec::{Line, Points, Stroke, Unit};
use crate::run::Run;

/// Places along the axis at which lines are compared.
const PLACES: usize = 80;
/// Distance below which two lines look like one, as a share of the axis: 2 of its 220 pixels.
const NEAR: f64 = 0.01;
/// Share of a line's places near another line from which it is dashed.
const MOSTLY: f64 = 0.5;

/// Dashes each line that mostly lies on one before it, and tells which; empty if all lie apart.
pub(super) fn dash(runs: &[Run], lines: &mut [Line], unit: Unit) -> String {
    let drawn: Vec<Drawn<'_>> = lines.iter().map(|line| Drawn::of(runs, line)).collect();
    let ends = drawn.iter().filter_map(Drawn::ends);
    let Some((left, right)) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
        return String::new();
    };
    let place = |i: usize| left + (right - left) * (i as f64 + 0.5) / PLACES as f64;
    let values = |line: &Drawn<'_>| -> Vec<Option<f64>> {
        (0..PLACES).map(|i| line.at(place(i)).map(|value| on_axis(unit, value))).collect()
    };
    let values: Vec<Vec<Option<f64>>> = drawn.iter().map(values).collect();
    let all = || values.iter().flatten().flatten().copied();
    let low = if unit == Unit::Latency { all().fold(f64::INFINITY, f64::min) } else { 0.0 };
    let near = (all().fold(f64::MIN, f64::max) - low) * NEAR;
    let mut told = Vec::new();
    for later in 1..lines.len() {
        if lines[later].stroke != Stroke::Solid {
            continue;
        }
        let shares = (0..later).map(|front| (front, shared(&values[front], &values[later], near)));
        let Some((front, share)) = shares.max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        if share >= MOSTLY {
            lines[later].stroke = Stroke::Dashed;
            let how = if share >= 1.0 { "lies on" } else { "mostly lies on" };
            told.push(format!("\"{}\" {how} \"{}\".", lines[later].label, lines[front].label));
        }
    }
    told.join(" ")
}

/// The share of the later line's places at which the front line is near it.
fn shared(front: &[Option<f64>], later: &[Option<f64>], near: f64) -> f64 {
    let places = later.iter().zip(front).filter_map(|(later, front)| later.map(|it| (it, *front)));
    let (mut all, mut close) = (0_u32, 0_u32);
    for (later, front) in places {
        all += 1;
        close += u32::from(front.is_some_and(|front| (front - later).abs() <= near));
    }
    if all == 0 { 0.0 } else { f64::from(close) / f64::from(all) }
}

/// A value where it stands on the axis: latencies are on a logarithmic one.
fn on_axis(unit: Unit, value: f64) -> f64 {
    if unit == Unit::Latency { value.max(1e-3).ln() } else { value }
}

/// The points of a line, wherever they are kept.
enum Drawn<'a> {
    /// A run's column.
    Column(&'a [f64], Option<&'a Vec<Option<f64>>>),
    /// The line's own.
    Here(&'a [f64], &'a [f64]),
}

impl<'a> Drawn<'a> {
    fn of(runs: &'a [Run], line: &'a Line) -> Self {
        match &line.points {
            Points::Column { run, column } => {
                let columns = &runs[*run].columns;
                Self::Column(&columns.time, columns.values.get(column))
            }
            Points::Here { x, y } => Self::Here(x, y),
        }
    }

    fn xs(&self) -> &[f64] {
        match self {
            Self::Column(x, _) | Self::Here(x, _) => x,
        }
    }

    fn ends(&self) -> Option<(f64, f64)> {
        let xs = self.xs();
        Some((*xs.first()?, *xs.last()?))
    }

    /// The value of the first point from `x` on: a step ends at its point.
    fn at(&self, x: f64) -> Option<f64> {
        let index = self.xs().partition_point(|&it| it < x);
        match self {
            Self::Column(_, values) => values.as_ref()?.get(index).copied().flatten(),
            Self::Here(_, y) => y.get(index).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, y: &[f64]) -> Line {
        let x = (0..y.len()).map(|i| i as f64).collect();
        let points = Points::Here { x, y: y.to_vec() };
        Line { label: label.into(), colour: 0, stroke: Stroke::Solid, points }
    }

    fn strokes(lines: &[Line]) -> Vec<Stroke> {
        lines.iter().map(|line| line.stroke).collect()
    }

    #[test]
    fn the_later_of_two_that_coincide_is_dashed_and_named() {
        let rising = [1.0, 2.0, 3.0, 4.0];
        let mut lines = [line("a", &rising), line("b", &[4.0, 3.0, 2.0, 1.0]), line("c", &rising)];
        assert_eq!(dash(&[], &mut lines, Unit::Iops), "\"c\" lies on \"a\".");
        assert_eq!(strokes(&lines), [Stroke::Solid, Stroke::Solid, Stroke::Dashed]);
    }

    #[test]
    fn lines_apart_stay_as_they_are() {
        let mut lines = [line("a", &[10.0; 9]), line("b", &[10.5; 9])];
        assert_eq!(dash(&[], &mut lines, Unit::Iops), "");
        // A millisecond and 1.01 ms are close on an axis of a decade.
        let mut lines = [line("a", &[1e3, 1e3, 1e4]), line("b", &[1e3, 1.01e3, 1.01e4])];
        assert_eq!(dash(&[], &mut lines, Unit::Latency), "\"b\" lies on \"a\".");
    }

    #[test]
    fn half_of_a_line_is_mostly() {
        let mut lines =
            [line("a", &[1.0; 8]), line("b", &[1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0])];
        assert_eq!(dash(&[], &mut lines, Unit::Factor), "\"b\" mostly lies on \"a\".");
        let mut lines =
            [line("a", &[1.0; 8]), line("b", &[1.0, 1.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0])];
        assert_eq!(dash(&[], &mut lines, Unit::Factor), "");
    }
}
