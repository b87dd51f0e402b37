//! What an FTL is made to stand.

/// What an FTL must be ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// The power may be cut: what flash holds is kept apart from what DRAM holds.
    pub power_cuts: bool,
    /// A dump may not reach the whole mapping table: out-of-band areas hold versions.
    pub may_lose_map: bool,
    /// Blocks of each die to keep back for dumps.
    pub dump_blocks_per_die: u32,
}
