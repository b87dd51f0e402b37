//! Placement: which dies a zone gets blocks on.
//!
//! Asked when a zone gets a set of blocks, for each of its lanes in turn. A policy sees the dies that have
//! enough free blocks and are not in the set yet; the mechanism ([`super::Blocks`]) takes the blocks that
//! were free longest.

use leyden_nand::DieId;

leyden_sim::policies! {
    /// Which dies a zone gets.
    pub enum PlaceConfig: PlacePolicy {
        /// The next die after the one that was chosen last.
        RoundRobin(round_robin::RoundRobin) = "round_robin",
        /// The die whose next free block was erased least often; of equals the next one.
        LeastWorn(least_worn::LeastWorn) = "least_worn",
        /// The die on which the fewest zones are being written; of equals the next one.
        LeastBusy(least_busy::LeastBusy) = "least_busy",
    }
}

impl Default for PlaceConfig {
    fn default() -> Self {
        Self::RoundRobin(round_robin::RoundRobin {})
    }
}

/// A die that could take a lane of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieView {
    /// Which.
    pub die: DieId,
    /// How many dies it lies after the one that was chosen last, from 0.
    pub distance: u32,
    /// Erases of its free block that is used next.
    pub erases: u32,
    /// Sets on it that are being filled.
    pub open_sets: u32,
}

/// Chooses dies.
pub trait PlacePolicy: std::fmt::Debug + Send + Sync {
    /// The one of `dies` to take; `None` only if there is none.
    fn die(&self, dies: &[DieView]) -> Option<DieId>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dies() -> Vec<DieView> {
        let view = |die, distance, erases, open_sets| DieView {
            die: DieId(die),
            distance,
            erases,
            open_sets,
        };
        vec![view(0, 2, 1, 0), view(1, 0, 3, 2), view(2, 1, 1, 0)]
    }

    #[test]
    fn each_takes_what_it_is_named_for() {
        let chosen = |name: &str| PlaceConfig::by_name(name).unwrap().policy().die(&dies());
        assert_eq!(chosen("round_robin"), Some(DieId(1)));
        assert_eq!(chosen("least_worn"), Some(DieId(2)));
        assert_eq!(chosen("least_busy"), Some(DieId(2)));
        for info in PlaceConfig::POLICIES {
            assert_eq!(PlaceConfig::by_name(info.name).unwrap().policy().die(&[]), None);
        }
    }
}
