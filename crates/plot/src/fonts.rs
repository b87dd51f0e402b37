//! The fonts of the machine: which is used for a family, and how wide text is in it.

use std::sync::Arc;

use resvg::usvg::fontdb::{Database, FaceInfo, Family, ID, Query, Weight};
use ttf_parser::Face;

/// Width of text where no font is known, as a share of its size.
const USUAL_EM: f64 = 0.54;
/// The stand-ins for "sans-serif" and "serif": the first that is installed.
const SANS: [&str; 5] = ["Liberation Sans", "Arial", "Helvetica", "DejaVu Sans", "Noto Sans"];
const SERIF: [&str; 5] =
    ["Liberation Serif", "Times New Roman", "Times", "DejaVu Serif", "Noto Serif"];

/// The installed fonts.
#[derive(Clone, Debug)]
pub struct Fonts {
    faces: Arc<Database>,
}

impl Fonts {
    /// The fonts that the system has.
    pub fn installed() -> Self {
        let mut faces = Database::new();
        faces.load_system_fonts();
        Self::of(faces)
    }

    fn of(mut faces: Database) -> Self {
        let first = |names: &[&str], faces: &Database| {
            let is_there = |name: &&&str| faces.faces().any(|face| family(face) == **name);
            let any = || faces.faces().next().map(|face| family(face).to_owned());
            names.iter().find(is_there).map(|name| (*name).to_owned()).or_else(any)
        };
        let (sans, serif) = (first(&SANS, &faces), first(&SERIF, &faces));
        if let (Some(sans), Some(serif)) = (sans, serif) {
            faces.set_sans_serif_family(sans);
            faces.set_serif_family(serif);
        }
        Self { faces: Arc::new(faces) }
    }

    pub(crate) fn faces(&self) -> Arc<Database> {
        Arc::clone(&self.faces)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.faces.is_empty()
    }

    /// Width of `text` over its size, in the first of the `families` that is installed.
    pub fn width_em(&self, text: &str, families: &str, bold: bool) -> f64 {
        let usual = || text.chars().count() as f64 * USUAL_EM;
        let Some(id) = self.face(families, bold) else { return usual() };
        let width = self.faces.with_face_data(id, |data, index| {
            let face = Face::parse(data, index).ok()?;
            let advance = |c| face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph));
            let units: f64 = text.chars().map(|c| advance(c).map_or(0.0, f64::from)).sum();
            Some(units / f64::from(face.units_per_em()))
        });
        width.flatten().unwrap_or_else(usual)
    }

    fn face(&self, families: &str, bold: bool) -> Option<ID> {
        let names: Vec<&str> =
            families.split(',').map(|name| name.trim().trim_matches(['"', '\''])).collect();
        let families: Vec<Family<'_>> = names
            .iter()
            .map(|name| match *name {
                "serif" => Family::Serif,
                "sans-serif" | "" => Family::SansSerif,
                name => Family::Name(name),
            })
            .chain([Family::SansSerif])
            .collect();
        let weight = if bold { Weight::BOLD } else { Weight::NORMAL };
        self.faces.query(&Query { families: &families, weight, ..Query::default() })
    }
}

fn family(face: &FaceInfo) -> &str {
    face.families.first().map_or("", |(name, _)| name)
}
