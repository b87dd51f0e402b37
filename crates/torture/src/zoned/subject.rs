//! Runs of zoned drives as torture has them of any kind.

use leyden_device::provision_of_zones;
use leyden_ftl::zoned::Config as Zones;
use leyden_sim::{Ratio, Rng};

use super::options::MOST_ZONES;
use super::{ZonedOptions, reached, tell};
use crate::Outcome;
use crate::options::plain_device;
use crate::subject::{Run, Subject};

/// Mapping units of flash, at most.
const MOST_UNITS: u32 = 1 << 22;
/// Commands under way, between two cuts, and units of a command, at most.
const MOST: u32 = 1 << 16;

impl Run for ZonedOptions {
    const SUBJECT: Subject = Subject::Zoned;

    fn drawn(seed: u64) -> Self {
        Self::draw(seed)
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn checked(&self) -> Result<(), String> {
        let geometry = self.device.nand.geometry(self.device.ftl.mapping_unit);
        let units = geometry.map_or(0, |geometry| geometry.units());
        if units > MOST_UNITS {
            return Err(format!(
                "its drive has {units} mapping units, and more than {MOST_UNITS} are not tortured"
            ));
        }
        let zones =
            provision_of_zones(&self.device).map_err(|error| error.to_string())?.zones.zones;
        let most = zones.min(MOST_ZONES);
        if self.zones == 0 || self.zones > most {
            return Err(format!("zones: {} is not in 1..={most}, which the drive has", self.zones));
        }
        for (key, value) in [
            ("queue_depth", self.queue_depth),
            ("commands", self.commands),
            ("largest", self.largest),
        ] {
            if value == 0 || value > MOST {
                return Err(format!("{key}: {value} is not in 1..={MOST}"));
            }
        }
        Ok(())
    }

    fn play(&self, tells: bool) -> (Outcome, Vec<String>) {
        tell(self, tells)
    }

    fn plain(&self) -> Self {
        let mut device = plain_device(&self.device);
        device.zoned = Some(Zones::default());
        Self {
            seed: self.seed,
            device,
            zones: 1,
            queue_depth: 1,
            cuts: 1,
            commands: 1,
            largest: 1,
            plp: Ratio::ZERO,
            fua: Ratio::ZERO,
            again: Ratio::ZERO,
            copies: Ratio::ZERO,
            others: Ratio::ZERO,
            aimed: Ratio::ZERO,
        }
    }

    fn end_after(&mut self, cuts: u64) {
        self.cuts = self.cuts.min(u32::try_from(cuts).unwrap_or(u32::MAX).max(1));
    }

    fn extent(&self) -> String {
        format!("up to {} commands before each of {} cuts", self.commands, self.cuts)
    }

    fn cross(&mut self, blind: Self, rng: &mut Rng) {
        self.seed = blind.seed;
        // The flag is for drives with a protected region: its share stays with the drive.
        match rng.below(3) {
            0 => (self.queue_depth, self.largest) = (blind.queue_depth, blind.largest),
            1 => (self.commands, self.cuts, self.again) = (blind.commands, blind.cuts, blind.again),
            _ => (self.copies, self.others, self.fua) = (blind.copies, blind.others, blind.fua),
        }
    }

    fn aim(&mut self, rng: &mut Rng) {
        self.aimed = Ratio::from_percent(50 + rng.below(50));
    }

    fn names() -> Vec<String> {
        reached::names()
    }
}
