//! When a round's power cut comes: after how much work, and at which moment.

use std::collections::BTreeSet;

use leyden_host::Powered;
use leyden_oracle::{Op, Request};
use leyden_sim::Time;

use super::runner::Runner;
use super::{Inspected, Trouble};
use crate::traced::TracedPayload;
use crate::{Cut, Round};

/// The most commands with which a round goes on while it waits for its cut.
const MOST_EXTRA: u64 = 2_000;

const FLUSH: Request = Request { op: Op::Flush, lba: 0, sectors: 0, fua: false, plp: false };

impl<P, D> Runner<'_, P, D>
where
    P: TracedPayload,
    D: Powered<P>,
    D::Drive: Inspected<P>,
{
    /// The round's commands; yields the moment of the cut.
    pub(crate) fn work(&mut self, round: &Round) -> Result<Option<Time>, Trouble> {
        let commands = self.commands.clone();
        let number = round.number;
        let left_out = |n: u32| round.skip.iter().any(|&(first, last)| (first..=last).contains(&n));
        let kept = (0..round.commands).filter(|&n| !left_out(n));
        self.play(kept.map(|n| commands.command(number, u64::from(n))))?;
        let rest = (u64::from(round.commands)..).map(|n| commands.command(number, n));
        let mut rest = rest.take(MOST_EXTRA as usize);
        match round.cut {
            Cut::Never => return Ok(None),
            Cut::After(span) => {
                let at = self.drive.now() + span;
                self.go_on(&mut rest, |_, next| next.is_none_or(|next| next > at))?;
                self.advance(at)?;
            }
            Cut::AtEvent { events, before } => {
                let mut left = events;
                self.go_on(&mut rest, |_, _| {
                    left = left.saturating_sub(1);
                    left == 0
                })?;
                match self.drive.next_event() {
                    Some(at) if before => return Ok(Some(at)),
                    Some(at) => self.advance(at)?,
                    None => {}
                }
            }
            Cut::AtTablePage { pages } => {
                let mut begun = BTreeSet::new();
                self.go_on(&mut rest, |runner, _| {
                    begun.extend(runner.table_programs());
                    begun.len() >= pages as usize
                })?;
            }
            Cut::AtStage { stages } => {
                let (mut last, mut left) = (self.drive.drive().stage(), stages);
                self.go_on(&mut rest, |runner, _| {
                    let stage = runner.drive.drive().stage();
                    let has_begun = std::mem::replace(&mut last, stage) != stage && stage > 0;
                    left = left.saturating_sub(u32::from(has_begun));
                    left == 0
                })?;
            }
            Cut::AtCopy { pages } => {
                let mut copied = self.copied_units();
                let mut begun = 0;
                self.go_on(&mut rest, |runner, _| {
                    let before = std::mem::replace(&mut copied, runner.copied_units());
                    begun += u32::from(copied > before);
                    begun >= pages
                })?;
            }
            Cut::AfterFailure { events } => {
                let before = self.failed_programs();
                let mut left = events;
                self.go_on(&mut rest, |runner, _| {
                    let has_failed = runner.failed_programs() > before;
                    let ends = has_failed && left == 0;
                    left -= u32::from(has_failed && !ends);
                    ends
                })?;
            }
            Cut::AfterTrims { trims } => {
                let begin = u64::from(round.commands);
                let trim = |n| Request { op: Op::Trim, fua: false, ..commands.command(number, n) };
                let is_range = |request: &Request| request.sectors > 0;
                let ranges = (begin..).take(MOST_EXTRA as usize).map(trim).filter(is_range);
                self.drain()?;
                self.submit(FLUSH);
                self.drain()?;
                self.play(ranges.take(trims as usize))?;
                self.drain()?;
                self.submit(FLUSH);
                self.drain()?;
            }
            Cut::AfterFlush(span) => {
                let flush = commands.flush(number, u64::from(round.commands));
                self.host.awaited = Some(self.submit(flush));
                self.go_on(&mut rest, |runner, _| runner.host.awaited.is_none())?;
                let at = self.drive.now() + span;
                self.go_on(&mut rest, |_, next| next.is_none_or(|next| next > at))?;
                self.advance(at)?;
            }
            Cut::Idle(span) => {
                self.drain()?;
                self.advance(self.drive.now() + span)?;
                self.drive.check();
            }
        }
        Ok(Some(self.drive.now()))
    }

    /// Programs that have failed since the drive was made, or loaded.
    fn failed_programs(&self) -> u64 {
        self.ssd().map_or(0, |ssd| ssd.stats().ftl.program_failures)
    }

    /// Goes on with `requests`, if there are, until `ends` says so; it is asked before each step and
    /// told when the next event is.
    fn go_on(
        &mut self,
        requests: &mut dyn Iterator<Item = Request>,
        mut ends: impl FnMut(&Self, Option<Time>) -> bool,
    ) -> Result<(), Trouble> {
        loop {
            while self.host.in_flight < self.options.work.queue_depth
                && let Some(request) = requests.next()
            {
                self.submit(request);
            }
            let next = self.drive.next_event();
            if ends(self, next) {
                return Ok(());
            }
            let Some(at) = next else { return Ok(()) };
            self.advance(at)?;
        }
    }

    /// Units whose copies have begun to be programmed since then.
    fn copied_units(&self) -> u64 {
        self.ssd().map_or(0, |ssd| ssd.stats().ftl.gc.copied_units)
    }
}
