//! Every moment of a short run on tiny block devices of two drives: one for each victim, merge and journal.

use leyden_buffer::Region;
use leyden_device::{Config, Stamp};
use leyden_ftl::zoned::Config as Zones;
use leyden_host::zoned_block::victim::ReclaimConfig;
use leyden_host::zoned_block::{Merge, ZonedBlockConfig};
use leyden_sim::{Bytes, Ratio, Span};

use super::moving::Moving;
use super::{ZonedBlockOptions, device};
use crate::Kind;
use crate::options::{rng, tiny};
use crate::run::Trouble;
use crate::search::Search;

/// Blocks of a zone.
const ZONE_UNITS: u64 = 16;
/// Zones of the conventional member, beside its tables.
const RANDOM_ZONES: u64 = 6;
/// Blocks for the tables.
const TABLES: u64 = 64;

/// All the tiny devices: their policies, and the options of their runs.
pub(crate) fn drives(commands: u32) -> Vec<(String, ZonedBlockOptions)> {
    let mut drives = Vec::new();
    for region in [Region::None, Region::Full] {
        for victim in ReclaimConfig::POLICIES {
            for merge in [Merge::IntoBuffer, Merge::NewZone] {
                for moves in [0, 9] {
                    let Some(victim_of) = ReclaimConfig::by_name(victim.name) else { continue };
                    let Some(options) = options(region, victim_of, merge, moves, commands) else {
                        continue;
                    };
                    let journal = if moves > 0 { "journals" } else { "none" };
                    let name = format!("{region:?}, {}, {merge:?}, {journal}", victim.name);
                    drives.push((name, options));
                }
            }
        }
    }
    drives
}

fn options(
    region: Region,
    victim: ReclaimConfig,
    merge: Merge,
    journal_moves: u32,
    commands: u32,
) -> Option<ZonedBlockOptions> {
    let mut layer = ZonedBlockConfig {
        reserved_zones: 2,
        victim,
        merge,
        low_free: Ratio::from_percent(30),
        high_free: Ratio::from_percent(60),
        idle: Span::from_us(200),
        commit_interval: Span::from_us(500),
        copy_size: Bytes::new(4 * 4_096),
        ..ZonedBlockConfig::default()
    };
    layer.journal.separate = journal_moves > 0;
    let mut run = tiny::options_of_block(commands);
    run.device = conventional(region);
    let options = ZonedBlockOptions { layer, journal_moves, zoned: zoned(region), run };
    device::<Stamp>(&options).is_ok().then_some(options)
}

fn conventional(region: Region) -> Config {
    let mut config = Config::default();
    let nand = &mut config.nand;
    (nand.channels, nand.dies_per_channel) = (1, 2);
    (nand.blocks_per_plane, nand.pages_per_block) = (40, 4);
    nand.page_size = Bytes::new(8_192);
    config.ftl.capacity = Some(Bytes::new((RANDOM_ZONES * ZONE_UNITS + TABLES) * 4_096));
    config.buffer.region = region;
    config.buffer.size = Bytes::new(16 * 4_096);
    config.power = Some(leyden_power::Config::default());
    config
}

fn zoned(region: Region) -> Config {
    let mut config = Config::default();
    let nand = &mut config.nand;
    (nand.channels, nand.dies_per_channel) = (1, 2);
    (nand.blocks_per_plane, nand.pages_per_block) = (24, 4);
    nand.page_size = Bytes::new(8_192);
    let zone = Bytes::new(ZONE_UNITS * 4_096);
    config.zoned = Some(Zones {
        zone_size: zone,
        zone_capacity: Some(zone),
        dies_per_zone: 2,
        max_open: 6,
        max_active: 8,
        spare: Ratio::from_percent(40),
        ..Zones::default()
    });
    config.buffer.region = region;
    config.buffer.size = Bytes::new(32 * 4_096);
    config.power = Some(leyden_power::Config::default());
    config
}

/// Cuts the run of `options` at every event.
pub(crate) fn exhaust(search: &mut Search, options: &ZonedBlockOptions) -> Result<(), Trouble> {
    let on =
        device::<Stamp>(options).map_err(|message| Trouble { kind: Kind::Refused, message })?;
    let journals = rng(options.run.seed, "journals");
    search.run(&options.run, Moving::new(on, options.journal_moves, journals))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few commands, and some of the devices: the whole takes minutes.
    #[test]
    fn every_moment_of_short_runs_keeps_what_was_promised() {
        let drives = drives(20);
        assert!(drives.len() >= 8, "{}", drives.len());
        for (name, options) in drives.iter().step_by(5) {
            let mut search = Search::default();
            exhaust(&mut search, options).unwrap_or_else(|trouble| panic!("{name}: {trouble:?}"));
            assert!(search.events > 20 && search.second_cuts > 50, "{name}: {search:?}");
        }
    }
}
