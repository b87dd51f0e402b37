//! What an FTL is made to stand.

use leyden_nand::Keeps;

use crate::Config;
use crate::map::ProtectionConfig;

/// What an FTL must be ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// The power may be cut: the medium holds what recovery reads.
    pub power_cuts: bool,
    /// A dump may not reach the whole mapping table: out-of-band areas hold versions.
    pub may_lose_map: bool,
    /// Blocks of each die to keep back for dumps.
    pub dump_blocks_per_die: u32,
}

impl Durability {
    /// What the medium of a drive with `config` keeps for that.
    pub const fn keeps(self, config: &Config) -> Keeps {
        let finds_by_scan = matches!(config.map.protection, ProtectionConfig::None(_));
        Keeps {
            meta: self.power_cuts,
            versions: self.power_cuts && (self.may_lose_map || finds_by_scan),
        }
    }
}
