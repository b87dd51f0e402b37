//! The zoned FTL: zones of blocks, without a mapping table and without garbage collection.
//!
//! **What lives here**: the zone state machine ([`ZoneState`]), zones and the resources they take
//! ([`ZoneTable`]), where their data lies ([`ZonedFtl`]), which blocks they get ([`place`]), and the way
//! back from a power cut. **What doesn't**: commands (the device's), and buffering.
//!
//! **Invariants**
//! - What is programmed for a zone goes to the next page of its set, in the zone's order. Data that had
//!   to be programmed again, or was padded, makes a new extent.
//! - The zone table is part of every dump. Where it is missing, a scan of the out-of-band areas finds
//!   each zone's newest generation.
//! - Bad blocks cost spare blocks first; a zone that gets no block any more is read-only, or offline if
//!   it is empty.

mod blocks;
mod body;
mod config;
mod ftl;
pub mod place;
mod recover;
mod root;
mod saved;
mod scan;
mod state;
mod version;
mod zones;

pub use blocks::Blocks;
pub use config::{Config, ZoneShape, ZrwaConfig};
pub use ftl::{Ended, PageEnded, ZonedFtl};
pub use recover::{RecoveredUnit, RecoveredZones};
pub use root::zone_root_bytes;
pub use saved::ZonedFtlState;
pub use state::{Refusal, ZoneAction, ZoneState};
pub use zones::{Refused, Zone, ZoneTable};

/// A zone, numbered from the first logical block on.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct ZoneId(pub u32);

impl ZoneId {
    /// As an array index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
