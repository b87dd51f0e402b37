//! What the FTL counts. All counters only grow.

/// What the FTL counts since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlStats {
    /// Page programs of user data.
    pub user_programs: u64,
    /// Page programs of copied data.
    pub gc_programs: u64,
    /// Page programs of mapping pages written back, and of the mapping table's journal.
    pub map_programs: u64,
    /// Page programs of mapping pages that garbage collection moved.
    pub gc_map_programs: u64,
    /// Page programs of dumps.
    pub dump_programs: u64,
    /// Page reads for the host.
    pub host_reads: u64,
    /// Page reads to copy.
    pub gc_reads: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Programs that failed (also counted by cause).
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Units of user data programmed.
    pub user_units: u64,
    /// Units copied.
    pub gc_units: u64,
    /// Of those, zombies.
    pub gc_zombie_units: u64,
    /// Units on flash that the host overwrote, and had said that it would.
    pub overwritten_zombie_units: u64,
    /// Units on flash that the host overwrote without having said so, since the first hint.
    pub overwritten_live_units: u64,
    /// Units left empty.
    pub padded_units: u64,
    /// Blocks chosen by garbage collection.
    pub collections: u64,
    /// Valid units in them, when they were chosen.
    pub victim_valid_units: u64,
}
