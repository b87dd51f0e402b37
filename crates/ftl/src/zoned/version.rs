//! Versions of the pages of zones.

/// The version of what a zone's page holds, by which a scan tells what is newer: the zone's generation, then how
/// often the power had failed, then which of the generation's pages it was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Version(pub(super) u64);

impl Version {
    const ORDER_BITS: u32 = 22;
    const EPOCH_BITS: u32 = 20;

    /// Numbers that are too large for their bits wrap around.
    #[inline]
    pub(super) const fn new(generation: u32, epoch: u64, order: u32) -> Self {
        let order = order as u64 & ((1 << Self::ORDER_BITS) - 1);
        let epoch = epoch & ((1 << Self::EPOCH_BITS) - 1);
        Self(
            (generation as u64) << (Self::ORDER_BITS + Self::EPOCH_BITS)
                | epoch << Self::ORDER_BITS
                | order,
        )
    }

    pub(super) const fn generation(self) -> u32 {
        (self.0 >> (Self::ORDER_BITS + Self::EPOCH_BITS)) as u32
    }

    pub(super) const fn epoch(self) -> u32 {
        (self.0 >> Self::ORDER_BITS) as u32 & ((1 << Self::EPOCH_BITS) - 1)
    }

    pub(super) const fn order(self) -> u32 {
        self.0 as u32 & ((1 << Self::ORDER_BITS) - 1)
    }
}
