//! Every moment of a short run on tiny drives: no draws, no gaps.
//!
//! For each region, protection, dump and schedule there is a drive of two dies. It is given 200 commands. At
//! every event a copy of it loses its power just before the event and just after, and is looked at whole once it
//! has recovered. From the first of these cuts further copies are cut again: amid the dump, and around the end of
//! each step of the recovery.

use leyden_buffer::Region;
use leyden_buffer::schedule::ScheduleConfig;
use leyden_device::{Ssd, Stamp};
use leyden_ftl::map::ProtectionConfig;
use leyden_power::DumpConfig;
use serde::Serialize;

use crate::case::Case;
use crate::options::{mixed, tiny};
use crate::panics::caught;
use crate::run::Trouble;
use crate::search::Search;
use crate::subject::Subject;
use crate::{Failure, Kind, Options, zoned, zoned_block};

/// The runs of one drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Exhausted {
    /// Its policies.
    pub drive: String,
    /// Events of its run.
    pub events: u64,
    /// Power cuts, first and second ones.
    pub cuts: u64,
    /// Those of them that were second ones.
    pub second_cuts: u64,
    /// The failure, if there is one; the drive was left there.
    pub failure: Option<Failure>,
}

/// All the tiny drives of a kind: their policies, and their runs.
pub fn drives(subject: Subject, commands: u32) -> Vec<(String, Case)> {
    fn cases<R: Into<Case>>(drives: Vec<(String, R)>) -> Vec<(String, Case)> {
        drives.into_iter().map(|(name, run)| (name, run.into())).collect()
    }
    match subject {
        Subject::Conventional => cases(conventional(commands)),
        Subject::Zoned => cases(zoned::drives(commands)),
        Subject::ZonedBlock => cases(zoned_block::drives(commands)),
    }
}

fn conventional(commands: u32) -> Vec<(String, Options)> {
    let mut drives = Vec::new();
    for region in [Region::None, Region::Full, Region::Selective] {
        for protection in ProtectionConfig::POLICIES {
            for dump in DumpConfig::POLICIES {
                for schedule in ScheduleConfig::POLICIES {
                    let policies = tiny::Policies {
                        region,
                        protection: ProtectionConfig::by_name(protection.name),
                        dump: DumpConfig::by_name(dump.name),
                        schedule: ScheduleConfig::by_name(schedule.name),
                    };
                    let Some(options) = tiny::options(&policies, commands) else { continue };
                    let (protection, dump) = (protection.name, dump.name);
                    let schedule = schedule.name;
                    drives.push((format!("{region:?}, {protection}, {dump}, {schedule}"), options));
                }
            }
        }
    }
    drives
}

/// Cuts the run of `case` at every event.
pub fn exhaust(drive: &str, case: &Case) -> Exhausted {
    let mut search = Search::default();
    let result = caught(|| match case {
        Case::Conventional(options) => self::search(&mut search, options),
        Case::Zoned(options) => zoned::exhaust(&mut search, options),
        Case::ZonedBlock(options) => zoned_block::exhaust(&mut search, options),
    })
    .unwrap_or_else(|panic| Err(Trouble { kind: Kind::Panicked, message: panic }));
    let failure =
        result.err().map(|Trouble { kind, message }| Failure { kind, cuts: search.cuts, message });
    let Search { events, cuts, second_cuts } = search;
    Exhausted { drive: drive.to_owned(), events, cuts, second_cuts, failure }
}

fn search(search: &mut Search, options: &Options) -> Result<(), Trouble> {
    let drive = Ssd::<Stamp>::new(&options.device, mixed(options.seed))
        .map_err(|error| Trouble { kind: Kind::Refused, message: error.to_string() })?;
    search.run(options, drive)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of the commands, and an eighth of the drives: the whole takes minutes.
    #[test]
    fn every_moment_of_short_runs_keeps_what_was_promised() {
        let drives = drives(Subject::Conventional, 20);
        assert!(drives.len() >= 60, "{}", drives.len());
        for (name, options) in drives.iter().step_by(8) {
            let exhausted = exhaust(name, options);
            assert_eq!(exhausted.failure, None, "{name}");
            assert!(exhausted.events > 20 && exhausted.second_cuts > 100, "{exhausted:?}");
        }
    }
}
