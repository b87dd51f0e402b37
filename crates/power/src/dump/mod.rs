//! Where the pages of a dump go, and when each is programmed.

pub mod balanced;
pub mod balanced_slc;
mod failures;
pub mod in_place;
mod planner;
#[cfg(test)]
mod twin;

use leyden_sim::{ConfigError, Span};

pub use failures::Failures;
pub use planner::{DieLoad, Dump, Program, Step};

leyden_sim::policies! {
    /// Where the pages of a dump go.
    pub enum DumpConfig {
        /// To the die that is free first. The home address stands in the out-of-band area, and the
        /// page is put back at recovery (Selective-PLP, section 4.5).
        Balanced(balanced::Balanced) = "balanced",
        /// As `balanced`, with one bit per cell: programs are faster, blocks hold fewer pages.
        BalancedSlc(balanced_slc::BalancedSlc) = "balanced_slc",
        /// To the die its address names; to the next die with room if that one is full.
        InPlace(in_place::InPlace) = "in_place",
    }
}

impl Default for DumpConfig {
    fn default() -> Self {
        Self::Balanced(balanced::Balanced {})
    }
}

impl DumpConfig {
    /// Checks the parameters.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::BalancedSlc(slc) => slc.check(),
            Self::Balanced(_) | Self::InPlace(_) => Ok(()),
        }
    }

    /// Array time of a program of the dump, where one in the flash's own cell mode takes `native`.
    pub fn program(&self, native: Span) -> Span {
        match self {
            Self::BalancedSlc(slc) => slc.program,
            Self::Balanced(_) | Self::InPlace(_) => native,
        }
    }

    /// Pages that a dump can put into a block of `native` pages.
    pub fn pages_per_block(&self, native: u32) -> u32 {
        match self {
            Self::BalancedSlc(slc) => native / slc.bits_per_cell,
            Self::Balanced(_) | Self::InPlace(_) => native,
        }
    }

    /// Whether pages stay on the die that their address names.
    pub const fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slc_is_faster_and_holds_less() {
        let slc = DumpConfig::by_name("balanced_slc").unwrap();
        let native = Span::from_us(700);
        assert_eq!((slc.program(native), slc.pages_per_block(256)), (Span::from_us(200), 128));
        let plain = DumpConfig::default();
        assert_eq!((plain.program(native), plain.pages_per_block(256)), (native, 256));
    }

    #[test]
    fn impossible_parameters_name_their_key() {
        let wrong = |bits_per_cell, program| {
            let slc = balanced_slc::BalancedSlc { bits_per_cell, program };
            DumpConfig::BalancedSlc(slc).check().map_err(|error| error.key)
        };
        assert_eq!(wrong(0, Span::from_us(200)), Err("dump.bits_per_cell".to_owned()));
        assert_eq!(wrong(2, Span::ZERO), Err("dump.program".to_owned()));
        assert_eq!(wrong(4, Span::from_us(200)), Ok(()));
    }
}
