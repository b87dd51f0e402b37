//! `leyden plot`.

use std::path::PathBuf;
use std::str::FromStr;

/// `leyden plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlotArgs {
    /// Run records (JSON), or one report (HTML)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,
    /// The figure; `--list` prints the names
    #[arg(long = "what", value_name = "FIGURE", required_unless_present = "list")]
    pub(crate) figure: Option<String>,
    /// The file; its ending says whether SVG, PDF or PNG (300 dpi)
    #[arg(short, long, value_name = "FILE", required_unless_present = "list")]
    pub(crate) output: Option<PathBuf>,
    /// Width of the figure, in mm, cm, in or pt
    #[arg(long, value_name = "LENGTH", default_value = "84mm")]
    pub(crate) width: Length,
    /// Size of the text, in pt, mm, cm or in
    #[arg(long, value_name = "LENGTH", default_value = "8pt")]
    pub(crate) size: Length,
    /// Font: sans, serif, or a family's name
    #[arg(long, value_name = "FONT", default_value = "sans")]
    pub(crate) font: String,
    /// List the figures of the input, and write none
    #[arg(long, conflicts_with_all = ["figure", "output"])]
    pub(crate) list: bool,
}

const EXAMPLES: &str = "\
Examples:
  leyden run hot-cold --json > hot-cold.json
  leyden plot hot-cold.json --list
  leyden plot hot-cold.json --what waf -o waf.pdf
  leyden plot greedy.json fifo.json --what iops-writes --font serif -o iops.svg
  leyden plot report.html --what percentiles --width 175mm -o latency.png";

/// A length on paper, millimetres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Length {
    pub(crate) mm: f64,
}

impl Length {
    /// In points of print, 72 an inch.
    pub(crate) fn points(self) -> f64 {
        self.mm / MM_PER_INCH * 72.0
    }
}

const MM_PER_INCH: f64 = 25.4;

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let mm_each = match unit.trim() {
            "mm" => 1.0,
            "cm" => 10.0,
            "in" => MM_PER_INCH,
            "pt" => MM_PER_INCH / 72.0,
            "" => return Err("a length needs a unit: mm, cm, in or pt".into()),
            other => return Err(format!("there is no unit `{other}`: use mm, cm, in or pt")),
        };
        match number.parse::<f64>() {
            Ok(number) if number > 0.0 => Ok(Self { mm: number * mm_each }),
            _ => Err("a length is a number above 0 and a unit: 88mm".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_number_and_a_unit() {
        let mm = |text: &str| text.parse::<Length>().map(|length| length.mm);
        for (text, expected) in [("88mm", 88.0), (" 8.8 cm", 88.0), ("72pt", 25.4), ("3.5in", 88.9)]
        {
            assert!((mm(text).unwrap() - expected).abs() < 1e-9, "{text}");
        }
        assert!(("8pt".parse::<Length>().unwrap().points() - 8.0).abs() < 1e-9);
        for wrong in ["", "88", "mm", "-3mm", "0pt", "3px", "1e3mm", "1.2.3mm"] {
            assert!(mm(wrong).is_err(), "{wrong}");
        }
    }
}
