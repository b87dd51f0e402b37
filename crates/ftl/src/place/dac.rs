//! `dac`: dynamic data clustering.
//!
//! Chiang, Lee and Chang, "Using data clustering to improve cleaning performance for flash memory"
//! (1999). Region 0 is the coldest. The time threshold for switching is zero, as in the Zombie
//! Chasing paper (section 5.1): every overwrite promotes and every copy demotes. A unit's region is
//! that of the block it lies in, so no state per unit is needed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StreamId;

/// Regions from cold to hot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dac {
    /// Number of regions, 2 to 8.
    #[schemars(range(min = 2, max = 8))]
    pub regions: u8,
}

impl Default for Dac {
    fn default() -> Self {
        Self { regions: 3 }
    }
}

impl Dac {
    #[inline]
    pub(super) fn for_host(&self, old: Option<StreamId>) -> StreamId {
        // First writes start cold: nothing is known of them.
        StreamId(old.map_or(0, |old| (old.0 + 1).min(self.regions - 1)))
    }

    #[inline]
    #[expect(clippy::unused_self, reason = "a policy's rules read alike")]
    pub(super) fn for_gc(&self, from: StreamId) -> StreamId {
        StreamId(from.0.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwrites_promote_and_copies_demote() {
        let dac = Dac::default();
        assert_eq!(dac.for_host(None), StreamId(0));
        assert_eq!(dac.for_host(Some(StreamId(0))), StreamId(1));
        assert_eq!(dac.for_host(Some(StreamId(2))), StreamId(2));
        assert_eq!(dac.for_gc(StreamId(2)), StreamId(1));
        assert_eq!(dac.for_gc(StreamId(0)), StreamId(0));
    }
}
