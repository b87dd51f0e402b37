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
use leyden_sim::{Span, Time};
use serde::Serialize;

use crate::faulty::FaultLog;
use crate::options::{mixed, tiny};
use crate::panics::caught;
use crate::run::Trouble;
use crate::run::runner::Runner;
use crate::{Failure, Kind, Options, Verify};

/// How long the power is off: longer than any dump, and shorter than most.
const OFF: [Span; 2] = [Span::from_ms(1_000), Span::from_ns(1)];

/// What was done to one drive.
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
    /// What went wrong, if anything; the drive was left there.
    pub failure: Option<Failure>,
}

/// All the tiny drives: their policies, and the options of their runs.
pub fn drives(commands: u32) -> Vec<(String, Options)> {
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

/// Cuts the run of `options` at every event.
pub fn exhaust(drive: &str, options: &Options) -> Exhausted {
    let mut search = Search { events: 0, cuts: 0, second_cuts: 0 };
    let result = caught(|| search.run(options))
        .unwrap_or_else(|panic| Err(Trouble { kind: Kind::Panicked, message: panic }));
    let failure =
        result.err().map(|Trouble { kind, message }| Failure { kind, cuts: search.cuts, message });
    let Search { events, cuts, second_cuts } = search;
    Exhausted { drive: drive.to_owned(), events, cuts, second_cuts, failure }
}

type TinyRunner<'a> = Runner<'a, Stamp, Ssd<Stamp>>;

struct Search {
    events: u64,
    cuts: u64,
    second_cuts: u64,
}

impl Search {
    fn run(&mut self, options: &Options) -> Result<(), Trouble> {
        let drive = Ssd::new(&options.device, mixed(options.seed))
            .map_err(|error| Trouble { kind: Kind::Refused, message: error.to_string() })?;
        let mut runner = Runner::new(options, drive, FaultLog::default(), false);
        runner.fill()?;
        let count = u64::from(options.rounds[0].commands);
        let mut left = (0..count).map(|n| runner.command(0, n)).collect::<Vec<_>>().into_iter();
        loop {
            while !runner.is_full()
                && let Some(request) = left.next()
            {
                runner.submit(request);
            }
            let Some(at) = runner.next_event() else { break };
            self.events += 1;
            self.cut(&runner, at)?; // what is due at that very moment has not happened
            runner.advance(at)?;
            self.cut(&runner, at)?;
        }
        runner.verify(0, Verify::All)
    }

    /// Cuts copies of `runner` at `at`.
    fn cut(&mut self, runner: &TinyRunner<'_>, at: Time) -> Result<(), Trouble> {
        let off = OFF[(self.events % 2) as usize];
        let mut cut = runner.clone();
        cut.cut(at)?;
        self.cuts += 1;
        let back = at + off;
        let dump_end = cut.dump_end();
        let ready = cut.restore(at, off)?;
        for second in boundaries(back, dump_end, &cut) {
            if second < ready {
                self.cut_again(&cut, second)?;
            }
        }
        look(&mut cut, ready)
    }

    fn cut_again(&mut self, recovering: &TinyRunner<'_>, at: Time) -> Result<(), Trouble> {
        let mut cut = recovering.clone();
        cut.advance(at)?;
        cut.cut(at)?;
        self.cuts += 1;
        self.second_cuts += 1;
        let ready = cut.restore(at, OFF[0])?;
        look(&mut cut, ready)
    }
}

/// The moments at which a recovery that began at `back` is cut again.
fn boundaries(back: Time, dump_end: Time, cut: &TinyRunner<'_>) -> Vec<Time> {
    let mut moments = vec![back];
    let mut at = back.max(dump_end);
    if at > back {
        moments.push(back + Span::from_ns(at.since(back).as_ns() / 2));
        moments.push(at);
    }
    for step in cut.recovery_steps() {
        at += step;
        moments.extend([Time::from_ns(at.as_ns() - 1), at]);
    }
    moments.retain(|&moment| moment >= back);
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// Reads everything, and asks the drive whether it believes itself.
fn look(runner: &mut TinyRunner<'_>, ready: Time) -> Result<(), Trouble> {
    runner.advance(ready)?;
    runner.drive.check();
    runner.verify(0, Verify::All)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of the commands, and an eighth of the drives: the whole takes minutes.
    #[test]
    fn every_moment_of_short_runs_keeps_what_was_promised() {
        let drives = drives(20);
        assert!(drives.len() >= 60, "{}", drives.len());
        for (name, options) in drives.iter().step_by(8) {
            let exhausted = exhaust(name, options);
            assert_eq!(exhausted.failure, None, "{name}");
            assert!(exhausted.events > 20 && exhausted.second_cuts > 100, "{exhausted:?}");
        }
    }
}
