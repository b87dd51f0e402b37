//! JEDEC's enterprise endurance workload, ready made.
//!
//! JEDEC Standard JESD219 (and 219A), "Solid-State Drive (SSD) Endurance Workloads", section on the
//! enterprise workload: the payload sizes, 40 % reads to 60 % writes, and 50 % of the accesses to
//! the first 5 % of the user LBA space, 30 % to the next 15 %, 20 % to the remaining 80 %. SNIA's
//! Composite Block Workload and fio's `examples/jesd219.fio` use the same figures; as the latter
//! we begin every request at a multiple of 4 KiB, so that sizes below 4 KiB rewrite the head of a
//! unit and none crosses into the next.

use leyden_sim::{Bytes, Ratio};

use super::{BlockSize, Distribution, JobConfig, Pattern, WeightedSize, Zone, Zones};

/// Payload size in bytes, percent of requests.
const SIZES: [(u64, u32); 12] = [
    (512, 4),
    (1024, 1),
    (1536, 1),
    (2048, 1),
    (2560, 1),
    (3072, 1),
    (3584, 1),
    (4096, 67),
    (8192, 10),
    (16_384, 7),
    (32_768, 3),
    (65_536, 3),
];

/// Percent of the space, percent of requests.
const ZONES: [(u64, u64); 3] = [(5, 50), (15, 30), (80, 20)];

impl JobConfig {
    /// The enterprise workload with `self`'s threads, pacing, region and limits.
    pub(super) fn with_jesd219(&self) -> Self {
        let sizes =
            SIZES.iter().map(|&(bytes, weight)| WeightedSize { size: Bytes::new(bytes), weight });
        let zones = ZONES.iter().map(|&(space, accesses)| Zone {
            space: Ratio::from_percent(space),
            accesses: Ratio::from_percent(accesses),
        });
        Self {
            pattern: Pattern::Random,
            read_share: Ratio::from_percent(40),
            block_size: BlockSize::Mix(sizes.collect()),
            align: Some(Bytes::new(4096)),
            distribution: Distribution::Zones(Zones { zones: zones.collect(), scatter: false }),
            ..self.clone()
        }
    }
}
