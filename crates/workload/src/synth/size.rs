//! How long requests are.

use leyden_device::SECTOR_BYTES;
use leyden_sim::Rng;

use super::WeightedSize;

/// Draws sizes by their weights.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// Sectors, and the sum of the weights up to and including this size; heaviest first, so that
    /// most searches end at the first entry.
    cumulative: Vec<(u32, u64)>,
    total: u64,
    rng: Rng,
}

impl Sizes {
    /// A sampler of `sizes`, which are checked already.
    pub(super) fn new(sizes: &[WeightedSize], rng: Rng) -> Self {
        let mut sizes = sizes.to_vec();
        sizes.sort_by_key(|size| std::cmp::Reverse(size.weight));
        let mut total = 0;
        let cumulative = sizes
            .iter()
            .map(|size| {
                total += u64::from(size.weight);
                ((size.size.get() / SECTOR_BYTES) as u32, total)
            })
            .collect();
        Self { cumulative, total, rng }
    }

    /// A size, in sectors.
    #[inline]
    pub(super) fn draw(&mut self) -> u32 {
        if let [(sectors, _)] = self.cumulative[..] {
            return sectors;
        }
        let point = self.rng.below(self.total);
        let found = self.cumulative.iter().find(|(_, until)| point < *until);
        found.map_or(self.cumulative[0].0, |(sectors, _)| *sectors)
    }
}
