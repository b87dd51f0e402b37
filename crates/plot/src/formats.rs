//! SVG, PDF and PNG.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::{Fonts, PlotError};

/// The mark by which a figure of ours is known: in an SVG near its beginning, in a PDF at its end, in a PNG
/// after its header.
pub const MADE_BY: &str = "Made by Leyden";
/// Pixels of a PNG in an inch.
const DOTS_PER_INCH: f64 = 300.0;
/// Pixels of CSS in an inch.
const CSS_PER_INCH: f64 = 96.0;
/// Bytes of a PNG's signature and header.
const PNG_HEAD_BYTES: usize = 8 + 25;

/// The kind of a figure's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text, for the web and for editing.
    Svg,
    /// For LaTeX; fonts are embedded.
    Pdf,
    /// Pixels, 300 an inch.
    Png,
}

impl Format {
    /// The format that a file's ending asks for.
    pub fn of_ending(ending: &str) -> Option<Self> {
        match ending.to_ascii_lowercase().as_str() {
            "svg" => Some(Self::Svg),
            "pdf" => Some(Self::Pdf),
            "png" => Some(Self::Png),
            _ => None,
        }
    }
}

/// The figure in that format.
pub(crate) fn encode(svg: &str, format: Format, fonts: &Fonts) -> Result<Vec<u8>, PlotError> {
    if format == Format::Svg {
        return Ok(svg.replacen("<rect", &format!("<desc>{MADE_BY}</desc><rect"), 1).into_bytes());
    }
    if fonts.is_empty() {
        return Err(PlotError::NoFont);
    }
    let options = Options { fontdb: fonts.faces(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|it| PlotError::Convert(it.to_string()))?;
    match format {
        Format::Png => png(&tree),
        _ => pdf(&tree),
    }
}

fn pdf(tree: &Tree) -> Result<Vec<u8>, PlotError> {
    let options = svg2pdf::ConversionOptions::default();
    // A pixel of CSS is 0.75 points.
    let page = svg2pdf::PageOptions { dpi: CSS_PER_INCH as f32 };
    let mut pdf = svg2pdf::to_pdf(tree, options, page)
        .map_err(|error| PlotError::Convert(error.to_string()))?;
    pdf.extend(format!("\n% {MADE_BY}\n").into_bytes());
    Ok(pdf)
}

fn png(tree: &Tree) -> Result<Vec<u8>, PlotError> {
    let scale = DOTS_PER_INCH / CSS_PER_INCH;
    let pixels = |length: f32| (f64::from(length) * scale).ceil() as u32;
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    let mut pixmap = Pixmap::new(width, height)
        .ok_or_else(|| PlotError::Convert(format!("{width} x {height} pixels")))?;
    let scale = Transform::from_scale(scale as f32, scale as f32);
    resvg::render(tree, scale, &mut pixmap.as_mut());
    let mut png = pixmap.encode_png().map_err(|error| PlotError::Convert(error.to_string()))?;
    png.splice(PNG_HEAD_BYTES..PNG_HEAD_BYTES, software_chunk());
    Ok(png)
}

/// The chunk that names the program (PNG, third edition, 11.3.3.2), and its pixels in a metre.
fn software_chunk() -> Vec<u8> {
    let mut chunks = Vec::new();
    let mut put = |kind: &[u8; 4], data: &[u8]| {
        chunks.extend((data.len() as u32).to_be_bytes());
        let mut body = kind.to_vec();
        body.extend(data);
        chunks.extend(&body);
        chunks.extend(crc32fast::hash(&body).to_be_bytes());
    };
    put(b"tEXt", format!("Software\0{MADE_BY}").as_bytes());
    let per_metre = (DOTS_PER_INCH / 0.0254).round() as u32;
    let mut physical = Vec::new();
    physical.extend(per_metre.to_be_bytes());
    physical.extend(per_metre.to_be_bytes());
    physical.push(1); // the unit is the metre
    put(b"pHYs", &physical);
    chunks
}
