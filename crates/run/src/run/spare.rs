//! Whether the blocks of a drive are so few that open and free ones take a good part of its spare.

use leyden_config::Scenario;
use leyden_device::{Config, provision_of};

/// Open and free blocks may take so much of the spare before a drive of few blocks is warned of.
const MOST_HELD: f64 = 0.1;

/// The blocks of a die that no garbage can lie in, and those that the host cannot fill.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Spare {
    /// Free blocks where collections begin, and half of each open one.
    held_blocks: f64,
    /// Blocks beyond what the logical capacity fills, but for those kept back for dumps and mapping pages.
    spare_blocks: f64,
}

impl Spare {
    fn of(device: &Config) -> Option<Self> {
        let provision = provision_of(device).ok()?;
        let geometry = device.geometry().ok()?;
        let die_units = f64::from(provision.mapping_units) / f64::from(geometry.dies());
        let data_blocks = f64::from(provision.blocks_per_die - provision.kept_blocks_per_die);
        let streams = device.ftl.streams().count();
        Some(Self {
            held_blocks: f64::from(device.ftl.gc.soft_free_blocks) + 0.5 * f64::from(streams),
            spare_blocks: data_blocks - die_units / f64::from(geometry.units_per_block()),
        })
    }

    fn held_share(&self) -> f64 {
        self.held_blocks / self.spare_blocks
    }
}

/// A warning if garbage collection worked with less spare than the over-provisioning says: of a drive to scale,
/// with all its blocks, that share is small.
pub(super) fn warning(scenario: &Scenario, collections: u64) -> Option<String> {
    if collections == 0 {
        return None;
    }
    let spare = Spare::of(&scenario.device).filter(|spare| spare.held_share() > MOST_HELD)?;
    let Spare { held_blocks, spare_blocks } = spare;
    Some(format!(
        "free and open blocks hold {held_blocks:.1} of the {spare_blocks:.1} spare blocks of each die, so garbage collection \
         copies more than on a larger drive with the same over-provisioning; a drive to scale has more blocks \
         (device.nand.blocks_per_plane) of fewer pages (device.nand.pages_per_block)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_config::Loaded;

    fn of(name: &str, sets: &[&str]) -> Scenario {
        let sets: Vec<_> = sets.iter().map(|set| set.parse().unwrap()).collect();
        Loaded::new(name, &sets).unwrap().scenario
    }

    #[test]
    fn a_drive_of_few_blocks_is_warned_of_where_it_collects() {
        // 64 blocks at 28 %: 14 are spare. Two are free, and half of the open one is.
        let few = of("bench/random-write", &["device.nand.blocks_per_plane=64"]);
        let told = warning(&few, 1).unwrap();
        assert!(told.contains("2.5 of the 14.0 spare"), "{told}");
        assert_eq!(warning(&few, 0), None);
        // 320 of 50 pages have as much room, and 70 to spare.
        let sets = ["device.nand.blocks_per_plane=320", "device.nand.pages_per_block=50"];
        assert_eq!(warning(&of("bench/random-write", &sets), 1), None);
    }

    #[test]
    fn drives_that_stand_for_present_ones_are_to_scale() {
        for name in ["devices/tlc-datacenter", "devices/qlc"] {
            let spare = Spare::of(&of(name, &[]).device).unwrap();
            assert!(spare.held_share() < 0.05, "{name}: {spare:?}");
        }
    }
}
