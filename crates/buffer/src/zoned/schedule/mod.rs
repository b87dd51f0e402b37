//! Which zone is written to flash next, of those that have a page for a die that is free.

leyden_sim::policies! {
    /// Which zone is written to flash next.
    pub enum ZoneScheduleConfig: ZoneSchedule {
        /// The zone that has waited longest for its turn.
        Oldest(oldest::Oldest) = "oldest",
        /// As `oldest`, but a zone that was read from is passed over once (the reference bit of
        /// Selective-PLP, section 4.3).
        SecondChance(second_chance::SecondChance) = "second_chance",
        /// The zone with the most data.
        Fullest(fullest::Fullest) = "fullest",
    }
}

impl Default for ZoneScheduleConfig {
    fn default() -> Self {
        Self::Oldest(oldest::Oldest {})
    }
}

/// A zone that has a page to program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneView {
    /// Which.
    pub zone: u32,
    /// When it last had its turn, or got a unit after having none to program; counted in units that came.
    pub since: u64,
    /// Units whose programs have not begun.
    pub dirty: u32,
    /// It was read from since it was last passed over.
    pub is_referenced: bool,
}

/// Chooses zones.
pub trait ZoneSchedule: std::fmt::Debug + Send + Sync {
    /// The one of `zones` to go on with, by its place in the list. There is at least one.
    fn next(&self, zones: &[ZoneView]) -> usize;
}

/// The place of the zone with the smallest key.
fn first_by<K: Ord>(zones: &[ZoneView], key: impl Fn(&ZoneView) -> K) -> usize {
    let places = zones.iter().enumerate().min_by_key(|(_, zone)| key(zone));
    places.map_or(0, |(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_takes_what_it_is_named_for() {
        let view =
            |zone, since, dirty, is_referenced| ZoneView { zone, since, dirty, is_referenced };
        let zones = [view(7, 3, 10, false), view(2, 1, 5, true), view(9, 2, 11, false)];
        let chosen = |name: &str| ZoneScheduleConfig::by_name(name).unwrap().policy().next(&zones);
        assert_eq!((chosen("oldest"), chosen("second_chance"), chosen("fullest")), (1, 2, 2));
        for info in ZoneScheduleConfig::POLICIES {
            let policy = ZoneScheduleConfig::by_name(info.name).unwrap().policy();
            assert_eq!(policy.next(&zones[1..2]), 0, "{}", info.name);
        }
    }
}
