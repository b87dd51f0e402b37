//! Every moment of a short run on tiny zoned drives: one for each combination of policies.

use leyden_buffer::Region;
use leyden_buffer::zoned::schedule::ZoneScheduleConfig;
use leyden_device::{BlockDevice, Config, Stamp, ZnsSsd, provision_of_zones};
use leyden_ftl::zoned::place::PlaceConfig;
use leyden_ftl::zoned::{Config as Zones, ZrwaConfig};
use leyden_power::DumpConfig;
use leyden_sim::{Bytes, Ratio, Span, Time};

use super::ZonedOptions;
use super::run::{Runner, Trouble};
use crate::Kind;
use crate::options::mixed;
use crate::search::{OFF, Search};

/// Draws of a command, at most, until a careful host finds one to send.
const MOST_TRIES: u32 = 50;

/// All the tiny drives: their policies, and the options of their runs.
pub(crate) fn drives(commands: u32) -> Vec<(String, ZonedOptions)> {
    let mut drives = Vec::new();
    for region in [Region::None, Region::Full, Region::Selective] {
        for dump in DumpConfig::POLICIES {
            for schedule in ZoneScheduleConfig::POLICIES {
                for place in PlaceConfig::POLICIES {
                    let policies = (
                        DumpConfig::by_name(dump.name),
                        ZoneScheduleConfig::by_name(schedule.name),
                        PlaceConfig::by_name(place.name),
                    );
                    let (Some(dump_of), Some(schedule_of), Some(place_of)) = policies else {
                        continue;
                    };
                    let Some(options) = options(region, dump_of, schedule_of, place_of, commands)
                    else {
                        continue;
                    };
                    let name =
                        format!("{region:?}, {}, {}, {}", dump.name, schedule.name, place.name);
                    drives.push((name, options));
                }
            }
        }
    }
    drives
}

/// Two dies on a channel, four zones, and `commands` of every kind. `None` if there is no such drive.
fn options(
    region: Region,
    dump: DumpConfig,
    schedule: ZoneScheduleConfig,
    place: PlaceConfig,
    commands: u32,
) -> Option<ZonedOptions> {
    let mut device = Config::default();
    let nand = &mut device.nand;
    (nand.channels, nand.dies_per_channel) = (1, 2);
    (nand.blocks_per_plane, nand.pages_per_block) = (24, 4);
    nand.page_size = Bytes::new(8_192);
    let zone = Bytes::new(2 * 4 * 8_192);
    let area = ZrwaConfig { size: Bytes::new(16_384), granularity: Bytes::new(4_096), count: 1 };
    device.zoned = Some(Zones {
        zone_size: zone,
        zone_capacity: Some(zone),
        dies_per_zone: 2,
        place,
        max_open: 2,
        max_active: 3,
        append_limit: Bytes::new(4 * 4_096),
        spare: Ratio::from_percent(5),
        zrwa: (region != Region::None).then_some(area),
        ..Zones::default()
    });
    device.buffer.region = region;
    device.buffer.size = Bytes::new(24 * 4_096);
    device.buffer.protected_size =
        Bytes::new(if region == Region::Selective { 8 * 4_096 } else { 0 });
    device.buffer.flush_threshold = Ratio::from_percent(50);
    device.buffer.zones.schedule = schedule;
    device.power = Some(leyden_power::Config { dump, ..leyden_power::Config::default() });
    let zones = provision_of_zones(&device).ok()?.zones.zones.min(4);
    Some(ZonedOptions {
        seed: 1,
        device,
        zones,
        queue_depth: 4,
        cuts: 1,
        commands,
        largest: 4,
        plp: Ratio::from_percent(30),
        fua: Ratio::from_percent(15),
        again: Ratio::ZERO,
        copies: Ratio::from_percent(10),
        others: Ratio::from_percent(5),
        aimed: Ratio::ZERO,
    })
}

/// Cuts the run of `options` at every event.
pub(crate) fn exhaust(search: &mut Search, options: &ZonedOptions) -> Result<(), Trouble> {
    let drive = ZnsSsd::<Stamp>::new(&options.device, mixed(options.seed))
        .map_err(|error| Trouble { kind: Kind::Refused, message: error.to_string() })?;
    let mut runner = Runner::new(options, drive, false);
    let mut left = options.commands;
    loop {
        let mut tries = MOST_TRIES;
        while left > 0 && tries > 0 && !runner.is_full() {
            let is_sent = runner.submit_next();
            left -= u32::from(is_sent);
            tries -= 1;
        }
        let Some(at) = runner.drive.next_event() else { break };
        search.events += 1;
        cut(search, &runner, at)?; // what is due at that very moment has not happened
        runner.advance(at)?;
        cut(search, &runner, at)?;
    }
    runner.finish()
}

/// Cuts copies of `runner` at `at`.
fn cut(search: &mut Search, runner: &Runner<'_>, at: Time) -> Result<(), Trouble> {
    let off = OFF[(search.events % 2) as usize];
    let mut cut = runner.clone();
    cut.cut_at(at, off)?;
    search.cuts += 1;
    let back = at + off;
    let ready = cut.drive.next_event().unwrap_or(back);
    let span = ready.since(back).as_ns();
    let mut moments =
        vec![back, back + Span::from_ns(span / 2), back + Span::from_ns(span / 4 * 3)];
    moments.push(Time::from_ns(ready.as_ns().saturating_sub(1)));
    moments.retain(|&moment| moment >= back && moment < ready);
    moments.dedup();
    for moment in moments {
        let mut again = cut.clone();
        again.drive.advance(moment, &mut Vec::new());
        again.cut_at(moment, OFF[0])?;
        search.cuts += 1;
        search.second_cuts += 1;
        again.look()?;
    }
    cut.look()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few commands, and some of the drives: the whole takes minutes.
    #[test]
    fn every_moment_of_short_runs_keeps_what_was_promised() {
        let drives = drives(30);
        assert!(drives.len() >= 20, "{}", drives.len());
        for (name, options) in drives.iter().step_by(5) {
            let mut search = Search::default();
            exhaust(&mut search, options).unwrap_or_else(|trouble| panic!("{name}: {trouble:?}"));
            assert!(search.events > 20 && search.second_cuts > 50, "{name}: {search:?}");
        }
    }
}
