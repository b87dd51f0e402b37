//! Which random zone is reclaimed next.
//!
//! Policies decide, the mechanism ([`super::reclaim`]) moves: a policy sees the zones that could be reclaimed, and
//! names one.

leyden_sim::policies! {
    /// Which random zone is reclaimed next.
    pub enum ReclaimConfig: ReclaimPolicy {
        /// As dm-zoned: of the zones that hold a chunk's data the one used longest ago; if there is none, the
        /// buffer zone of the chunk with the most valid blocks in its sequential zone.
        Lru(lru::Lru) = "lru",
        /// The zone with the largest age x (1 - u) / 2u, u being the share of a zone that has to be copied, and
        /// age the uses of zones since it was last used (Kawaguchi et al., USENIX 1995).
        CostBenefit(cost_benefit::CostBenefit) = "cost_benefit",
        /// The zone of the coldest chunk: the fewest blocks written lately, be it to this zone or to those that the
        /// chunk had before. Of equals, the one used longest ago.
        Coldest(coldest::Coldest) = "coldest",
    }
}

impl Default for ReclaimConfig {
    fn default() -> Self {
        Self::Lru(lru::Lru {})
    }
}

/// A random zone that could be reclaimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The chunk that it belongs to.
    pub chunk: u32,
    /// It is a buffer, and not the only zone of its chunk.
    pub is_buffer: bool,
    /// Uses of zones since it was last used.
    pub age: u64,
    /// Blocks written to the chunk lately: halved whenever as much was written as the random zones hold.
    pub heat: u64,
    /// Blocks that are copied to free it.
    pub to_copy: u32,
    /// Valid blocks of the chunk's data zone.
    pub data_blocks: u32,
    /// Blocks of a zone.
    pub zone_blocks: u32,
}

/// Chooses zones.
pub trait ReclaimPolicy: std::fmt::Debug + Send + Sync {
    /// The number of the one to reclaim; `None` if there is none. They come in the order of their zones.
    fn victim(&self, candidates: &[Candidate]) -> Option<usize>;
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Candidate = Candidate {
        chunk: 0,
        is_buffer: false,
        age: 10,
        heat: 100,
        to_copy: 8,
        data_blocks: 8,
        zone_blocks: 16,
    };

    #[test]
    fn lru_takes_plain_zones_before_buffers() {
        let policy = ReclaimConfig::default();
        let policy = policy.policy();
        let buffer = Candidate { is_buffer: true, age: 1_000, data_blocks: 3, ..PLAIN };
        let heavy = Candidate { data_blocks: 9, age: 1, ..buffer };
        let older = Candidate { age: 11, ..PLAIN };
        assert_eq!(policy.victim(&[]), None);
        assert_eq!(policy.victim(&[buffer, PLAIN, older, heavy]), Some(2));
        assert_eq!(policy.victim(&[buffer, heavy]), Some(1));
    }

    #[test]
    fn the_coldest_is_the_least_written_one_however_long_ago_it_was_used() {
        let policy = ReclaimConfig::by_name("coldest").unwrap();
        let policy = policy.policy();
        let cold = Candidate { heat: 99, age: 1, is_buffer: true, ..PLAIN };
        let older = Candidate { age: 11, ..PLAIN };
        assert_eq!(policy.victim(&[PLAIN, cold, older]), Some(1));
        assert_eq!(policy.victim(&[PLAIN, older]), Some(1));
        assert_eq!(policy.victim(&[]), None);
    }

    #[test]
    fn cost_benefit_weighs_age_against_copies() {
        let policy = ReclaimConfig::by_name("cost_benefit").unwrap();
        let policy = policy.policy();
        let cheap = Candidate { to_copy: 1, ..PLAIN };
        let old = Candidate { age: 1_000, ..PLAIN };
        assert_eq!(policy.victim(&[PLAIN, cheap]), Some(1));
        assert_eq!(policy.victim(&[cheap, old]), Some(1), "16 / 1 x 11 against 9 / 8 x 1,001");
        assert_eq!(policy.victim(&[PLAIN, Candidate { to_copy: 0, age: 0, ..PLAIN }]), Some(1));
        assert_eq!(policy.victim(&[]), None);
    }
}
