//! The mapping table, and the policies of its protection against power loss.
//!
//! **What lives here**: the table in DRAM ([`MapTable`]), which of its pages differ from what flash
//! holds and which of them must go there ([`MapStore`]), the log of its changes ([`MapLog`]). **What doesn't**: blocks and programs; those
//! are [`crate::page_mapped`]'s.
//!
//! **Invariants**: with a limit, no more mapping pages are dirty than it says, but for those handed to
//! a die (one each); what a policy does not write while the power is on, a power cut must save or
//! recovery must find.

mod dirty;
pub mod full;
pub mod journal;
mod log;
pub mod none;
pub mod partial;
mod saved;
mod store;
mod table;

pub use log::{LogRoot, MapLog, PageState, Record};
pub use saved::{SavedPage, decode_records, encode_records};
pub use store::{MapStats, MapStore, MapStoreState};
pub use table::{ENTRY_BYTES, MapPage, MapTable};

leyden_sim::policies! {
    /// How the mapping table is protected against power loss.
    pub enum ProtectionConfig {
        /// Capacitors protect the whole table: it is written only when the power fails.
        /// The baseline of Hexa and Dawid ("Full protection").
        Full(full::Full) = "full",
        /// Capacitors protect a share of the table: when more mapping pages are dirty, the least
        /// recently used is written back (Hexa, section III).
        Partial(partial::Partial) = "partial",
        /// Capacitors protect a small journal of the table's changes, which overflows to flash; a running
        /// checkpoint writes back the mapping pages changed longest ago (SpartanSSD's elastic journal).
        Journal(journal::Journal) = "journal",
        /// Nothing protects the table: recovery scans every page's out-of-band area. Trims are
        /// written to flash at once.
        None(none::Unprotected) = "none",
    }
}

impl Default for ProtectionConfig {
    fn default() -> Self {
        Self::Full(full::Full {})
    }
}

impl ProtectionConfig {
    /// True if mapping pages are written to flash while the power is on.
    pub const fn writes_back(&self) -> bool {
        !matches!(self, Self::Full(_))
    }
}
