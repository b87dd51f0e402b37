//! Figures of reports as files for print: SVG, PDF and PNG, drawn without a browser.
//!
//! The chart library of the page runs in a small interpreter of JavaScript, with the page's own
//! specifications and the page's own code for figures on paper. So a figure of `leyden plot` is the
//! figure that the page shows.

mod engine;
mod error;
mod fonts;
mod formats;

use serde::Serialize;

pub use error::PlotError;
pub use fonts::Fonts;
pub use formats::{Format, MADE_BY};
pub use leyden_report::FigureData;

/// The size and the type of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paper {
    /// Width of the whole figure, millimetres: 84 fits a column of most journals and proceedings, 175 two.
    #[serde(rename = "millimetres")]
    pub width_mm: f64,
    /// Size of labels, points.
    #[serde(rename = "points")]
    pub text_pt: f64,
    /// `sans`, `serif`, or the name of a family.
    pub font: String,
}

impl Default for Paper {
    fn default() -> Self {
        Self { width_mm: 84.0, text_pt: 8.0, font: "sans".to_owned() }
    }
}

/// The figure named `id` as a file of `format`.
///
/// # Errors
/// [`PlotError::NoFigure`] if the data has none of that name, with those that it has;
/// [`PlotError::NoFont`] if PDF or PNG is asked for where no font is installed;
/// [`PlotError::Draw`] if the chart library refuses the data.
///
/// # Example
/// ```no_run
/// use leyden_plot::{FigureData, Format, Paper, plot};
///
/// let json = std::fs::read_to_string("hot-cold.json")?;
/// let data = FigureData::of_records(&leyden_report::read_records(&json)?)?;
/// std::fs::write("waf.svg", plot(&data, "waf", &Paper::default(), Format::Svg)?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plot(
    data: &FigureData,
    id: &str,
    paper: &Paper,
    format: Format,
) -> Result<Vec<u8>, PlotError> {
    if !data.figures().iter().any(|(known, _)| known == id) {
        let known: Vec<&str> = data.figures().iter().map(|(known, _)| known.as_str()).collect();
        return Err(PlotError::NoFigure { id: id.to_owned(), known: known.join(", ") });
    }
    let fonts = Fonts::installed();
    let svg = engine::draw(data, id, paper, &fonts)?;
    formats::encode(&svg, format, &fonts)
}
