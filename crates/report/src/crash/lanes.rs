//! The timeline of a crash test: one lane under the other over the drive's time, as SVG.

use std::fmt::Write as _;

use super::{CrashModel, CrashRun};
use crate::table::Table;
use crate::{format, html};

/// Colours of the palette.
const WRITTEN: usize = 0;
const FLUSHED: usize = 7;
const ACKED: usize = 3;
const HELD: usize = 2;
pub(super) const LOST: usize = 1;
const BROKEN: usize = 6;

/// The drawing's size, in its own units.
const WIDTH: usize = 1_180;
const LEFT: usize = 150;
const LANE: usize = 46;
const GAP: usize = 14;
const FOOT: usize = 24;
/// Columns of the drawing, and rows of its table.
const COLUMNS: usize = 206;
const ROWS: usize = 40;

/// A lane: what each column holds, stacked from below.
struct Lane<'a> {
    name: &'a str,
    /// The parts of a column, and their colours.
    parts: Vec<(&'static str, usize)>,
    columns: Vec<Vec<u64>>,
    is_bytes: bool,
}

/// Which of `columns` columns a moment falls in.
fn column(run: &CrashRun, time_ns: u64, columns: usize) -> usize {
    let (begin, end) = run.span_ns;
    let length = end.saturating_sub(begin).max(1);
    let at = time_ns.saturating_sub(begin).min(length);
    ((u128::from(at) * columns as u128 / u128::from(length)) as usize).min(columns - 1)
}

fn lanes<'a>(run: &CrashRun, models: &'a [CrashModel], columns: usize) -> Vec<Lane<'a>> {
    let count = |times: &mut dyn Iterator<Item = (u64, Vec<u64>)>, parts: usize| {
        let mut counted = vec![vec![0; parts]; columns];
        for (time, values) in times {
            let column = &mut counted[column(run, time, columns)];
            column.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        counted
    };
    let once = |times: &[u64]| count(&mut times.iter().map(|&time| (time, vec![1])), 1);
    let syncs = if run.is_of_files { "syncs" } else { "flushes" };
    let mut lanes = vec![
        Lane {
            name: "written",
            parts: vec![("written", WRITTEN)],
            columns: count(&mut run.writes.iter().map(|&(time, bytes)| (time, vec![bytes])), 1),
            is_bytes: true,
        },
        Lane {
            name: syncs,
            parts: vec![(syncs, FLUSHED)],
            columns: once(&run.flushes),
            is_bytes: false,
        },
        Lane {
            name: "acknowledged",
            parts: vec![("acknowledged", ACKED)],
            columns: once(&run.acks),
            is_bytes: false,
        },
    ];
    lanes.extend(models.iter().map(|model| {
        Lane {
            name: model.name,
            parts: vec![("held", HELD), ("acknowledged lost", LOST), ("broken", BROKEN)],
            columns: count(
                &mut model
                    .tallies
                    .iter()
                    .map(|&(time, states)| (time, states.map(|count| count as u64).to_vec())),
                3,
            ),
            is_bytes: false,
        }
    }));
    lanes
}

impl Lane<'_> {
    fn most(&self) -> u64 {
        self.columns.iter().map(|column| column.iter().sum()).max().unwrap_or(0)
    }

    fn amount(&self, value: u64) -> String {
        if self.is_bytes { format::bytes(value) } else { format::count(value) }
    }

    fn draw(&self, top: usize, run: &CrashRun, out: &mut String) {
        let most = self.most().max(1);
        let middle = top + LANE / 2 + 4;
        let name = html::escape(self.name);
        let _ = write!(out, "<text x=\"0\" y=\"{middle}\" class=\"name\">{name}</text>");
        let most_told = self.amount(self.most());
        let below = middle + 15;
        let _ = write!(out, "<text x=\"0\" y=\"{below}\" class=\"tick\">up to {most_told}</text>");
        let foot = top + LANE;
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{foot}\" y2=\"{foot}\" class=\"rule\"/>"
        );
        let width = (WIDTH - LEFT) as f64 / COLUMNS as f64;
        for (at, column) in self.columns.iter().enumerate() {
            let mut below = 0;
            for (&value, (part, colour)) in column.iter().zip(&self.parts) {
                if value == 0 {
                    continue;
                }
                // The smallest value is still visible.
                let height = (LANE as f64 * value as f64 / most as f64).max(1.5);
                let y = foot as f64 - LANE as f64 * below as f64 / most as f64 - height;
                let x = LEFT as f64 + at as f64 * width;
                let title = format!("{} {part}, {}", self.amount(value), begins(run, at, COLUMNS));
                let _ = write!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
                     class=\"c{colour}\"><title>{}</title></rect>",
                    width - 0.5,
                    html::escape(&title)
                );
                below += value;
            }
        }
    }
}

/// When a column begins, from the first event on.
fn begins(run: &CrashRun, at: usize, columns: usize) -> String {
    let length = run.span_ns.1.saturating_sub(run.span_ns.0);
    format::seconds(length as f64 / 1e9 * at as f64 / columns as f64)
}

/// The lanes.
pub(super) fn svg(run: &CrashRun, models: &[CrashModel]) -> String {
    let lanes = lanes(run, models, COLUMNS);
    let height = lanes.len() * (LANE + GAP) + FOOT;
    let mut out = format!(
        "<svg class=\"lanes\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"The run over time; the table below has its numbers\">"
    );
    for (number, lane) in lanes.iter().enumerate() {
        lane.draw(number * (LANE + GAP), run, &mut out);
    }
    let length = run.span_ns.1.saturating_sub(run.span_ns.0);
    for at_ns in ticks(length) {
        let x = LEFT
            + ((WIDTH - LEFT) as u128 * u128::from(at_ns) / u128::from(length.max(1))) as usize;
        let anchor = if at_ns == 0 { "start" } else { "middle" };
        let time = format::seconds(at_ns as f64 / 1e9);
        let y = height - 4;
        let _ = write!(
            out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" class=\"tick\">{time}</text>"
        );
    }
    out.push_str("</svg>");
    out
}

/// Round times within `length`, four to ten of them, and not so near its end that their text is cut.
pub(crate) fn ticks(length_ns: u64) -> Vec<u64> {
    let mut step = 1;
    for factor in [2, 5, 10].into_iter().cycle() {
        if length_ns / step <= 8 {
            break;
        }
        let decade = 10_u64.pow(step.ilog10());
        step = decade * factor;
    }
    (0..=8).map(|at| at * step).take_while(|&at| at <= length_ns - length_ns / 40).collect()
}

/// The same in numbers.
pub(super) fn table(run: &CrashRun, models: &[CrashModel]) -> Table {
    let lanes = lanes(run, models, ROWS);
    let mut head = vec!["from".to_owned()];
    for lane in &lanes {
        let has_parts = lane.parts.len() > 1;
        let name = |part: &str| format!("{}: {part}", lane.name);
        head.extend(
            lane.parts
                .iter()
                .map(|(part, _)| if has_parts { name(part) } else { (*part).to_owned() }),
        );
    }
    let row = |at: usize| {
        let mut row = vec![begins(run, at, ROWS)];
        for lane in &lanes {
            row.extend(lane.columns[at].iter().map(|&value| lane.amount(value)));
        }
        row
    };
    Table { head, rows: (0..ROWS).map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_fall_into_their_columns() {
        let run = CrashRun { span_ns: (100, 300), ..CrashRun::default() };
        let columns = [0, 100, 149, 150, 299, 300, 999].map(|time| column(&run, time, 4));
        assert_eq!(columns, [0, 0, 0, 1, 3, 3, 3]);
        let nothing = CrashRun::default();
        assert_eq!(column(&nothing, 7, 4), 3);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            ticks(1_468_000_000),
            [0, 200, 400, 600, 800, 1_000, 1_200, 1_400].map(|ms| ms * 1_000_000)
        );
        assert_eq!(ticks(40), [0, 5, 10, 15, 20, 25, 30, 35]);
        assert_eq!(ticks(7), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(ticks(0), [0]);
    }

    #[test]
    fn columns_add_up() {
        let run = CrashRun {
            is_of_files: false,
            span_ns: (0, 1_000),
            writes: vec![(0, 4_096), (1, 4_096), (999, 512)],
            flushes: vec![500],
            acks: Vec::new(),
        };
        let lanes = lanes(&run, &[], 10);
        let sum = |lane: &Lane<'_>| lane.columns.iter().flatten().sum::<u64>();
        assert_eq!(lanes.iter().map(sum).collect::<Vec<_>>(), [8_704, 1, 0]);
        assert_eq!((lanes[0].columns[0][0], lanes[0].most()), (8_192, 8_192));
    }
}
