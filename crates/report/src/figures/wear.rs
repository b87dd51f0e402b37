//! How often blocks have been erased: a histogram per run, with common axes.

use super::spec::{self, Across, Chart, Unit};
use super::{Figure, Size};
use crate::format;
use crate::run::Run;
use crate::table::Table;
use leyden_record::Wear;
use serde_json::{Value, json};

/// One histogram per run.
pub(crate) fn figures(runs: &[Run]) -> Vec<Figure> {
    let wears = || runs.iter().map(|run| &run.record.wear);
    let bars = || wears().flat_map(bars);
    let left = bars().map(|b| b.0).min().unwrap_or(0);
    let right = bars().map(|b| b.1).max().unwrap_or(1);
    let top = bars().map(|b| b.2).max().unwrap_or(1);
    let several = runs.len() > 1;
    let size = Size::of_one_in(runs.len());
    let runs = runs.iter().enumerate();
    runs.map(|(i, run)| {
        let (id, title) = if several {
            (format!("wear-{}", i + 1), format!("Erases per block: {}", run.label))
        } else {
            ("wear-histogram".to_owned(), "Erases per block".to_owned())
        };
        let wear = &run.record.wear;
        let mut figure = Figure::new(id, title.clone());
        figure.size = size;
        if wear.histogram.iter().all(|(_, blocks)| *blocks == 0) {
            return figure.nothing("No wear was recorded.");
        }
        figure.table = Some(table(wear));
        figure.note(note(wear)).chart(chart(
            wear,
            [left, right],
            top,
            i * usize::from(several),
            &title,
        ))
    })
    .collect()
}

/// The bars as `(from, to, blocks)`. A record says where they start; all are equally wide, and where
/// there is only one, it is one erase wide.
fn bars(wear: &Wear) -> Vec<(u64, u64, u64)> {
    let starts = wear.histogram.windows(2);
    let width = starts.map(|w| w[1].0.saturating_sub(w[0].0)).min();
    let width = width.unwrap_or(1).max(1);
    let bars = wear.histogram.iter();
    bars.map(|&(from, blocks)| (from, from.saturating_add(width), blocks)).collect()
}

fn note(wear: &Wear) -> String {
    let bad = match wear.bad_blocks {
        0 => "no bad block".to_owned(),
        1 => "1 bad block".to_owned(),
        n => format!("{} bad blocks", format::count(n as f64)),
    };
    format!(
        "At the end of the run: {} to {} erases, {} on average; {bad}.",
        format::count(wear.min as f64),
        format::count(wear.max as f64),
        format::number(wear.mean),
    )
}

fn chart(wear: &Wear, across: [u64; 2], top: u64, colour: usize, title: &str) -> Chart {
    let rows =
        bars(wear).into_iter().map(|(from, to, blocks)| json!({"x": from, "x2": to, "v": blocks}));
    let rows: Vec<Value> = rows.collect();
    let mut x = spec::x_axis(
        &json!({"domain": across, "nice": false, "zero": false}),
        &json!({"title": "erases of a block", "labelExpr": spec::NUMBER, "tickMinStep": 1}),
    );
    x["bin"] = json!("binned");
    let mut y = spec::y_axis(Unit::Blocks, &[top as f64]);
    y["axis"]["tickMinStep"] = json!(1);
    let colour = colour % super::COLOURS;
    Chart {
        across: Across::Erases,
        unit: Unit::Blocks,
        lines: Vec::new(),
        rows,
        spec: json!({
            "description": title,
            "width": "container",
            "height": 200,
            "data": {"name": "rows"},
            "mark": {"type": "bar", "binSpacing": 1, "color": format!("var(--c{colour})")},
            "encoding": {"x": x, "x2": {"field": "x2"}, "y": y},
        }),
    }
}

fn table(wear: &Wear) -> Table {
    let mut table = Table::new(["Erases", "Blocks"]);
    let rows = bars(wear).into_iter().map(|(from, to, blocks)| {
        let last = to - 1;
        let erases = if from == last {
            format::count(from as f64)
        } else {
            format!("{} to {}", format::count(from as f64), format::count(last as f64))
        };
        vec![erases, format::count(blocks as f64)]
    });
    table.rows = rows.collect();
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_equally_wide_even_where_some_are_left_out() {
        let wear = Wear { histogram: vec![(0, 4), (3, 9), (9, 1)], ..Wear::default() };
        assert_eq!(bars(&wear), [(0, 3, 4), (3, 6, 9), (9, 12, 1)]);
    }

    #[test]
    fn a_lone_bar_has_a_width() {
        let wear = Wear { histogram: vec![(7, 100)], ..Wear::default() };
        assert_eq!(bars(&wear), [(7, 8, 100)]);
        assert_eq!(table(&wear).rows, [["7", "100"]]);
    }
}
