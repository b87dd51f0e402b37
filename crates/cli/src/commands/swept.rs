//! Tables of sweeps as input of `leyden plot` and `leyden report`.

use std::io::Read as _;
use std::path::Path;

#[cfg(feature = "plot")]
use leyden_plot::FigureData;
use leyden_report::figures::{Section, of_swept_runs};
use leyden_report::format::count;
use leyden_report::{AnswerPage, Card, render_answer};
use leyden_sweep::{Swept, read_swept};

use crate::failure::Failure;

/// The beginning of a Parquet file.
const MAGIC: [u8; 4] = *b"PAR1";
/// More runs than these are beyond a page or a figure.
const MOST_RUNS: usize = 5_000;

/// Whether the file at `path` is a table of Parquet.
pub(super) fn is_table(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == MAGIC
}

fn read(path: &Path, all: bool) -> Result<(Swept, Section), Failure> {
    let swept = read_swept(path)?;
    if swept.runs.len() > MOST_RUNS {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} has {} runs, and a figure shows up to {}\n  help: choose rows of it, in Python or DuckDB, and plot those",
            path.display(),
            count(swept.runs.len() as f64),
            count(MOST_RUNS as f64)
        )));
    }
    let section = of_swept_runs(&swept.runs, all);
    if section.figures.is_empty() {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} varies nothing over three values or more: there is nothing to draw",
            path.display()
        )));
    }
    Ok((swept, section))
}

/// One line below each figure.
fn caption(path: &Path, swept: &Swept) -> String {
    let name =
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    format!("{name}, {} runs; Leyden {}.", count(swept.runs.len() as f64), swept.build)
}

/// Every figure of the registry over what the plan varies.
#[cfg(feature = "plot")]
pub(super) fn figures(path: &Path) -> Result<FigureData, Failure> {
    let (swept, section) = read(path, true)?;
    FigureData::of_sections(&[section], &caption(path, &swept)).map_err(Failure::usage)
}

/// The report on a table: the figures that matter, over what the plan varies.
pub(super) fn page(path: &Path, title: Option<&str>) -> Result<String, Failure> {
    let (swept, section) = read(path, false)?;
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in swept.runs.iter().flat_map(|run| &run.values) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let caption = caption(path, &swept);
    let name = path.display().to_string();
    let card = |label, value: usize, note: &str| Card {
        label,
        value: count(value as f64),
        note: note.to_owned(),
        ..Card::default()
    };
    let mut cards = vec![card("Runs", swept.runs.len(), "With results.")];
    if swept.failed > 0 {
        cards.push(card("Failed", swept.failed, "The table's column `error` says why."));
    }
    let command = format!("leyden report {} -o sweep.html", leyden_config::quote(&name));
    render_answer(AnswerPage {
        title: title.map_or_else(|| format!("Sweep over {}", keys.join(", ")), str::to_owned),
        kind: "sweep",
        facts: vec![("Table", name), ("Varied", keys.join(", ")), ("Leyden", swept.build)],
        cards,
        sections: vec![section],
        caption,
        command: &command,
        ..AnswerPage::default()
    })
    .map_err(Failure::failed)
}
