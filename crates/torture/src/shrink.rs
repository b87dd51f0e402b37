//! Makes a failing run small: fewer rounds, fewer commands, fewer features, default policies and smaller numbers;
//! the same kind of failure.

use leyden_buffer::schedule::ScheduleConfig;
use leyden_ftl::Copies;
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::logs::LogConfig;
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::place::PlacementConfig;
use leyden_host::{Channel, HintChannelConfig};
use leyden_nand::FaultConfig;
use leyden_power::DumpConfig;
use leyden_sim::{Bytes, Ratio, Span};

use crate::{Cut, Failure, Grain, Options, Outcome, Round, Verify};

/// A run made small.
#[derive(Clone, PartialEq, Debug)]
pub struct Shrunk {
    /// The run.
    pub options: Options,
    /// How it fails.
    pub failure: Failure,
    /// Runs that this took.
    pub attempts: u32,
}

/// Makes `options` small; `attempt` runs options once, and at most `most_attempts` are made. `None`
/// if they do not fail.
pub fn shrink(
    options: &Options,
    most_attempts: u32,
    mut attempt: impl FnMut(&Options) -> Outcome,
) -> Option<Shrunk> {
    let failure = attempt(options).failure?;
    let mut shrinking = Shrinking {
        best: Shrunk { options: options.clone(), failure, attempts: 1 },
        most_attempts,
        attempt: &mut attempt,
    };
    loop {
        let before = shrinking.best.options.clone();
        shrinking.rounds();
        shrinking.features();
        shrinking.commands();
        if shrinking.best.options == before || shrinking.is_over() {
            return Some(shrinking.best);
        }
    }
}

struct Shrinking<'a> {
    best: Shrunk,
    most_attempts: u32,
    attempt: &'a mut dyn FnMut(&Options) -> Outcome,
}

impl Shrinking<'_> {
    fn is_over(&self) -> bool {
        self.best.attempts >= self.most_attempts
    }

    /// Takes `change` if the run still fails in the same way; true if it does.
    fn try_change(&mut self, change: impl FnOnce(&mut Options)) -> bool {
        let mut options = self.best.options.clone();
        change(&mut options);
        if options == self.best.options || self.is_over() {
            return false;
        }
        self.best.attempts += 1;
        match (self.attempt)(&options).failure {
            Some(failure) if failure.kind == self.best.failure.kind => {
                (self.best.options, self.best.failure) = (options, failure);
                true
            }
            _ => false,
        }
    }

    /// Leaves out rounds: what comes after the failure, then ever shorter stretches.
    fn rounds(&mut self) {
        let count = self.best.options.rounds.len();
        let needed = (self.best.failure.cuts as usize + 1).min(count);
        self.try_change(|options| options.rounds.truncate(needed));
        let mut stretch = self.best.options.rounds.len().div_ceil(2);
        while stretch > 0 {
            let mut first = 0;
            while first < self.best.options.rounds.len() {
                let end = (first + stretch).min(self.best.options.rounds.len());
                if !self.try_change(|options| drop(options.rounds.drain(first..end))) {
                    first = end;
                }
            }
            stretch /= 2;
        }
        // The work of a round without its cut.
        for index in 0..self.best.options.rounds.len() {
            self.try_change(|options| options.rounds[index].cut = Cut::Never);
        }
    }

    /// Turns features off.
    fn features(&mut self) {
        let changes: [fn(&mut Options); 49] = [
            |o| o.host = None,
            |o| o.host.iter_mut().for_each(|host| host.page_cache = None),
            |o| o.host.iter_mut().for_each(|host| host.failing_writes = Ratio::ZERO),
            |o| o.host.iter_mut().for_each(|host| host.file_flushes = Ratio::ZERO),
            |o| o.host.iter_mut().for_each(|host| host.hints = quiet()),
            |o| o.work.fill = Ratio::ZERO,
            |o| o.device.nand.faults = FaultConfig::default(),
            |o| o.device.nand.endurance_cycles = 0,
            |o| o.work.late = Ratio::ZERO,
            |o| o.work.plp = Ratio::ZERO,
            |o| o.work.hints = Ratio::ZERO,
            |o| o.work.mix.write_zeroes = 0,
            |o| o.work.mix.trims = 0,
            |o| o.work.mix.flushes = 0,
            |o| o.work.mix.reads = 0,
            |o| o.work.fua = Ratio::ZERO,
            |o| o.work.unaligned = Ratio::ZERO,
            |o| o.work.sequential = Ratio::ZERO,
            |o| o.work.hot = Ratio::ZERO,
            |o| o.work.queue_depth = 1,
            |o| o.work.queue_depth = o.work.queue_depth.div_ceil(2),
            |o| o.work.largest_units = 1,
            |o| o.work.largest_units = o.work.largest_units.div_ceil(2),
            |o| o.device.nand.multi_plane = false,
            |o| o.device.nand.channels = 1,
            |o| o.device.nand.dies_per_channel = 1,
            |o| o.grain = Grain::Unit,
            |o| o.work.tenants = 1,
            |o| o.work.trace = false,
            |o| o.device.nand.faults.occasions.clear(),
            |o| o.device.nand.faults.program_failures = Ratio::ZERO,
            |o| o.device.nand.faults.erase_failures = Ratio::ZERO,
            |o| o.device.nand.faults.factory_bad_blocks = Ratio::ZERO,
            |o| o.device.ftl.gc.victim = VictimConfig::default(),
            |o| o.device.ftl.placement = PlacementConfig::default(),
            |o| o.device.ftl.log_stream = LogConfig::default(),
            |o| o.device.ftl.zombie_block = false,
            |o| o.device.buffer.schedule = ScheduleConfig::default(),
            |o| o.device.ftl.map.protection = ProtectionConfig::default(),
            |o| o.device.ftl.map.copies = Copies::default(),
            |o| o.device.ftl.map.kept_blocks = None,
            |o| o.device.buffer.drain_to = None,
            default_dump,
            |o| halve(&mut o.device.nand.blocks_per_plane),
            |o| halve(&mut o.device.nand.pages_per_block),
            |o| halve(&mut o.device.nand.planes_per_die),
            |o| o.device.buffer.size = Bytes::new(o.device.buffer.size.get() / 2),
            |o| o.device.ftl.capacity = o.device.ftl.capacity.map(|it| Bytes::new(it.get() / 2)),
            |o| o.work.fill = Ratio::from_ppm(o.work.fill.as_ppm() / 2),
        ];
        for change in changes {
            self.try_change(change);
        }
        let rounds: [fn(&mut Round); 10] = [
            |round| round.again.clear(),
            |round| round.again.truncate(1),
            |round| round.early = false,
            |round| round.verify = Verify::Nothing,
            |round| round.verify = Verify::All,
            |round| round.off = Span::from_ns(1),
            |round| round.reload = false,
            |round| round.check = false,
            |round| halve(&mut round.commands),
            sooner,
        ];
        for index in 0..self.best.options.rounds.len() {
            for change in rounds {
                self.try_change(|options| change(&mut options.rounds[index]));
            }
        }
    }

    /// Leaves out commands: ever shorter stretches of each round.
    fn commands(&mut self) {
        for index in 0..self.best.options.rounds.len() {
            let count = self.best.options.rounds[index].commands;
            let mut stretch = count.div_ceil(2);
            while stretch > 0 && !self.is_over() {
                let mut first = 0;
                while first < count {
                    let last = (first + stretch).min(count) - 1;
                    self.try_change(|options| {
                        let round = &mut options.rounds[index];
                        round.skip = with(&round.skip, (first, last));
                    });
                    first = last + 1;
                }
                stretch /= 2;
            }
        }
    }
}

fn default_dump(options: &mut Options) {
    options.device.power.iter_mut().for_each(|power| power.dump = DumpConfig::default());
}

fn halve(number: &mut u32) {
    *number = number.div_ceil(2);
}

/// The cut comes sooner by half.
fn sooner(round: &mut Round) {
    match &mut round.cut {
        Cut::After(span) | Cut::AfterFlush(span) | Cut::Idle(span) => {
            *span = Span::from_ns(span.as_ns() / 2);
        }
        Cut::AtEvent { events, .. } | Cut::AfterFailure { events } => *events /= 2,
        Cut::AtTablePage { pages: count }
        | Cut::AtCopy { pages: count }
        | Cut::AfterTrims { trims: count } => *count = (*count / 2).max(1),
        Cut::Never => {}
    }
}

/// A way for hints that leads nowhere.
fn quiet() -> HintChannelConfig {
    HintChannelConfig { channel: Channel::Off, ..HintChannelConfig::default() }
}

/// `skip` with `more`, as few stretches as possible.
fn with(skip: &[(u32, u32)], more: (u32, u32)) -> Vec<(u32, u32)> {
    let mut all = skip.to_vec();
    all.push(more);
    all.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::new();
    for (first, last) in all {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_merge() {
        assert_eq!(with(&[], (1, 2)), [(1, 2)]);
        assert_eq!(with(&[(0, 1), (8, 9)], (2, 4)), [(0, 4), (8, 9)]);
        assert_eq!(with(&[(0, 3), (5, 9)], (2, 5)), [(0, 9)]);
    }
}
