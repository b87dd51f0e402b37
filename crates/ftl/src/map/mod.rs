//! The mapping table, and the policies of its protection against power loss.

pub mod full;
mod table;

pub use table::{ENTRY_BYTES, MapTable};

leyden_sim::policies! {
    /// How the mapping table is protected against power loss.
    pub enum ProtectionConfig {
        /// Capacitors protect the whole table: it is written only when the power fails.
        /// The baseline of Hexa and Dawid ("Full protection").
        Full(full::Full) = "full",
    }
}

impl Default for ProtectionConfig {
    fn default() -> Self {
        Self::Full(full::Full {})
    }
}
