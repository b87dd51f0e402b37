//! Errors on the way from data to a file.

/// Why a figure was not drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The data has no figure of that name.
    #[error("there is no figure `{id}`; {}", if known.is_empty() { "the input has none".to_owned() } else { format!("there are {known}") })]
    NoFigure {
        /// The name asked for.
        id: String,
        /// The names that the data has.
        known: String,
    },
    /// Text of a PDF or PNG needs a font of the machine.
    #[error(
        "no font is installed, and text of a PDF or PNG needs one; install one (Debian: fonts-dejavu-core), or write SVG"
    )]
    NoFont,
    /// The chart library failed.
    #[error("the figure was not drawn: {0}")]
    Draw(String),
    /// The interpreter failed: a bug in here.
    #[error("the interpreter of the chart library failed: {0}")]
    Engine(#[from] rquickjs::Error),
    /// The SVG was not understood.
    #[error("the SVG was not converted: {0}")]
    Convert(String),
}
