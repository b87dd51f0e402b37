//! The board area of a bank's parts, and their own losses.

use crate::Part;

/// A part's body. Only `leyden size --worst` reckons with it: a dump's budget does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Length on the board.
    pub length_um: u32,
    /// Width on the board.
    pub width_um: u32,
    /// Height above the board.
    pub height_um: u32,
    /// Equivalent series resistance when new.
    pub esr_mohm: u32,
    /// By how much the capacitance of one part may differ from what its sheet says, in percent.
    pub tolerance_percent: u32,
}

impl Part {
    /// The body of one part. docs/power.md says what has a source.
    pub const fn body(self) -> Body {
        match self {
            // Footprint and tolerance: KEMET's codes H and M in T545H187M016. The rest: assumptions.
            Self::TantalumPolymer => Body {
                length_um: 7_300,
                width_um: 6_000,
                height_um: 2_000,
                esr_mohm: 35,
                tolerance_percent: 20,
            },
            // Assumptions, here and below: a can of 10 mm; the case 1210; a module of two cells.
            Self::Aluminium => Body {
                length_um: 10_300,
                width_um: 10_300,
                height_um: 10_500,
                esr_mohm: 80,
                tolerance_percent: 20,
            },
            Self::Ceramic => Body {
                length_um: 3_200,
                width_um: 2_500,
                height_um: 2_500,
                esr_mohm: 5,
                tolerance_percent: 20,
            },
            Self::Supercapacitor => Body {
                length_um: 20_000,
                width_um: 10_000,
                height_um: 14_000,
                esr_mohm: 100,
                tolerance_percent: 20,
            },
        }
    }
}
