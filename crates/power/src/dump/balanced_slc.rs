//! Balanced dump into blocks used with one bit per cell: programs are several times as fast, and a
//! block holds a fraction of the pages.

use leyden_sim::{ConfigError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// As `balanced`, with one bit per cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BalancedSlc {
    /// Bits that a cell usually holds, 1 to 5: a block of the dump has this many times fewer pages.
    pub bits_per_cell: u32,
    /// Array time of a program with one bit per cell.
    pub program: Span,
}

impl Default for BalancedSlc {
    fn default() -> Self {
        // The default flash is MLC. Data sheets of SLC NAND give 200 to 300 us (Numonyx NAND256-A,
        // Micron MT29F2G08A).
        Self { bits_per_cell: 2, program: Span::from_us(200) }
    }
}

impl BalancedSlc {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=5).contains(&self.bits_per_cell) {
            let problem = format!("{} is not in 1..=5", self.bits_per_cell);
            return Err(ConfigError::new("dump.bits_per_cell", problem));
        }
        if self.program == Span::ZERO || self.program > Span::from_ms(60_000) {
            let problem = format!("{} is not in 1 ns..=60 s", self.program);
            return Err(ConfigError::new("dump.program", problem));
        }
        Ok(())
    }
}
