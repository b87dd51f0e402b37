//! Torture of block devices on a conventional and a zoned drive, whose power fails at the same moment.
//!
//! **What lives here**: drawing two drives, the layer on them and its work from a seed ([`ZonedBlockOptions`]), and
//! running that ([`run()`]). **What doesn't**: the work, the cuts and the oracle: those are the conventional drive's,
//! for the device promises what any block device does.

mod moving;
mod options;
mod subject;
mod tiny;

use leyden_device::{Config, SectorStamps, Ssd, Stamp, ZnsSsd, ZoneState};
use leyden_host::ZonedBlock;
use leyden_host::zoned_block::{Pair, Stored};

pub use options::ZonedBlockOptions;

use crate::Outcome;
use crate::coverage::Point;
use crate::options::{mixed, rng};
use crate::run::{Inspected, on_stack, twice};
use crate::traced::{Grain, TracedPayload};
use crate::zoned::cause::{has_lost_blocks, lacks_blocks};
use moving::Moving;
pub(crate) use tiny::{drives, exhaust};

/// A device on two drives of ours.
type OnOurs<P> = ZonedBlock<P, Ssd<Stored<P>>, ZnsSsd<Stored<P>>>;

impl<P: TracedPayload> Inspected<P> for OnOurs<P> {
    /// Nothing fails by itself: the conventional member, which is of `config`, has too few good blocks; or the zoned one
    /// has lost some, and with them zones, its room for a dump, or the blocks for another zone.
    fn may_fault(&self, config: &Config) -> bool {
        let zoned = self.zoned();
        let is_short = zoned.is_read_only()
            || lost_zones(zoned) > 0
            || lacks_blocks(zoned, zoned.zone_resources().1 + 1);
        crate::run::may_fault(config, self.conventional()) || has_lost_blocks(zoned) && is_short
    }

    fn points(&self) -> Vec<Point> {
        let stats = self.stats();
        let counts = [
            (stats.reclaimed, Point::BlockReclaimed),
            (stats.merged_into_buffer, Point::BlockMerged),
            (stats.aborted, Point::BlockAborted),
            (stats.starved, Point::BlockStarved),
            (stats.resets, Point::BlockResets),
            (stats.separated_blocks, Point::BlockSeparated),
            (stats.released_blocks, Point::BlockReleased),
            (stats.filled_blocks, Point::BlockFilled),
        ];
        let reached = counts.into_iter().filter(|&(count, _)| count > 0).map(|(_, point)| point);
        let zones: u32 = self.zoned().zones_in_state().iter().sum();
        let alive = zones - lost_zones(self.zoned());
        reached.chain(std::iter::repeat_n(Point::ZoneAlive, alive as usize)).collect()
    }

    fn stage(&self) -> u32 {
        self.commit_stage()
    }

    /// Zones that cannot be written, and a member that can only be read, need blocks that have gone bad.
    fn judge(&self) -> Result<(), String> {
        let zoned = self.zoned();
        if has_lost_blocks(zoned) {
            return Ok(());
        }
        match lost_zones(zoned) {
            _ if zoned.is_read_only() => {
                Err("the zoned member can only be read, and all its blocks are good".to_owned())
            }
            0 => Ok(()),
            lost => Err(format!(
                "{lost} zones of the zoned member cannot be written, and all its blocks are good"
            )),
        }
    }
}

/// Zones that cannot be written any more.
fn lost_zones<P: leyden_device::Payload>(zoned: &ZnsSsd<P>) -> u32 {
    let states = zoned.zones_in_state();
    states[ZoneState::ReadOnly as usize] + states[ZoneState::Offline as usize]
}

/// Runs `options` once.
pub fn run(options: &ZonedBlockOptions) -> Outcome {
    tell(options, false).0
}

/// Runs `options` twice; that the two agree is part of the outcome.
pub fn run_twice(options: &ZonedBlockOptions) -> Outcome {
    twice(|| run(options))
}

/// As [`run()`]; also yields the story of the run's last rounds as a timeline, if it `tells`.
pub(crate) fn tell(options: &ZonedBlockOptions, tells: bool) -> (Outcome, Vec<String>) {
    let (mut outcome, story) = match options.run.grain {
        Grain::Unit => on::<Stamp>(options, tells),
        Grain::Sector => on::<SectorStamps>(options, tells),
    };
    outcome.coverage = subject::reached(options, &outcome.coverage);
    (outcome, story)
}

fn on<P: TracedPayload>(options: &ZonedBlockOptions, tells: bool) -> (Outcome, Vec<String>) {
    match device::<P>(options) {
        Ok(device) => {
            let rng = rng(options.run.seed, "journals");
            on_stack(&options.run, Moving::new(device, options.journal_moves, rng), tells)
        }
        Err(message) => (crate::run::refused(message), Vec::new()),
    }
}

fn device<P: TracedPayload>(options: &ZonedBlockOptions) -> Result<OnOurs<P>, String> {
    let seed = mixed(options.run.seed);
    let conventional = Ssd::new(&options.run.device, seed)
        .map_err(|error| format!("the conventional member: {error}"))?;
    let zoned =
        ZnsSsd::new(&options.zoned, !seed).map_err(|error| format!("the zoned member: {error}"))?;
    let shape = *zoned.zone_shape();
    ZonedBlock::format(&options.layer, Pair { conventional, zoned, shape }, seed)
        .map_err(|error| format!("the device: {error}"))
}
