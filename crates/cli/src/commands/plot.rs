//! `leyden plot`: a figure of a report as a file for print.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use leyden_plot::{FigureData, Format, Paper, PlotError};

use super::swept;
use crate::args::{Length, PlotArgs};
use crate::failure::Failure;
use crate::output::atomic;
use crate::output::place::{self, Kind};
use crate::output::progress;

/// Widths beyond these are mistakes: a stamp, and a poster.
const WIDTHS_MM: std::ops::RangeInclusive<f64> = 20.0..=1200.0;
/// Sizes of text beyond these are, too.
const SIZES_PT: std::ops::RangeInclusive<f64> = 3.0..=72.0;

/// `leyden plot`.
pub(crate) fn plot(args: &PlotArgs) -> Result<(), Failure> {
    let paper = paper(args)?;
    let target = match &args.output {
        Some(path) => Some((path, format_of(path)?)),
        None => None,
    };
    if let Some((path, format)) = target {
        place::check(path, Kind::Figure(format))?;
    }
    let data = read(args)?;
    let (Some(figure), Some((path, format))) = (&args.figure, target) else {
        return list(&data);
    };
    let figure = leyden_plot::plot(&data, figure, &paper, format).map_err(|error| match error {
        PlotError::NoFigure { .. } => Failure::usage(error),
        _ => Failure::failed(error),
    })?;
    atomic::write(path, &figure)?;
    progress::wrote(path);
    Ok(())
}

/// The data of all inputs: records, or one page.
fn read(args: &PlotArgs) -> Result<FigureData, Failure> {
    if let [path] = &args.inputs[..]
        && swept::is_table(path)
    {
        return swept::figures(path);
    }
    let mut records = Vec::new();
    for path in &args.inputs {
        let text = super::read_record(path)?;
        if !text.trim_start().starts_with('<') {
            records.extend(super::records_in(path, &text)?);
        } else if args.inputs.len() > 1 {
            return Err(Failure::usage(anyhow::anyhow!(
                "{} is a page: a page is plotted alone\n  help: name the runs' records instead",
                path.display()
            )));
        } else {
            let data = FigureData::of_page(&text).with_context(|| path.display().to_string());
            return data.map_err(Failure::usage);
        }
    }
    FigureData::of_records(&records).map_err(Failure::usage)
}

/// Names and titles of the figures.
fn list(data: &FigureData) -> Result<(), Failure> {
    let widest = data.figures().iter().map(|(id, _)| id.len()).max().unwrap_or(0);
    let mut out = std::io::stdout().lock();
    for (id, title) in data.figures() {
        writeln!(out, "{id:widest$}  {title}")?;
    }
    Ok(())
}

fn paper(args: &PlotArgs) -> Result<Paper, Failure> {
    let within = |name: &str, value: f64, range: &std::ops::RangeInclusive<f64>, unit: &str| {
        if range.contains(&value) {
            return Ok(());
        }
        let (least, most) = (range.start(), range.end());
        Err(Failure::usage(anyhow::anyhow!(
            "{name} is {value:.1} {unit}: it must be from {least} to {most} {unit}"
        )))
    };
    let Length { mm } = args.width;
    let points = args.size.points();
    within("the width", mm, &WIDTHS_MM, "mm")?;
    within("the size of text", points, &SIZES_PT, "pt")?;
    let font = args.font.clone();
    if !font.chars().all(|c| c.is_alphanumeric() || " -".contains(c)) {
        return Err(Failure::usage(anyhow::anyhow!(
            "`{font}` is no name of a font\n  help: a family as the system lists it: --font 'DejaVu Sans'"
        )));
    }
    Ok(Paper { width_mm: mm, text_pt: points, font })
}

fn format_of(path: &Path) -> Result<Format, Failure> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    Format::of_ending(ending).ok_or_else(|| {
        Failure::usage(anyhow::anyhow!(
            "{}: the ending says the format, and it must be .svg, .pdf or .png",
            path.display()
        ))
    })
}
