//! Cuts of a run of block commands at every event, and again in the recovery from each.

use leyden_device::Stamp;
use leyden_host::Powered;
use leyden_sim::{Span, Time};

use crate::faulty::FaultLog;
use crate::run::runner::Runner;
use crate::run::{Inspected, Trouble};
use crate::{Options, Verify};

/// How long the power is off: longer than any dump, and shorter than most.
pub(crate) const OFF: [Span; 2] = [Span::from_ms(1_000), Span::from_ns(1)];

/// The counts so far.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) events: u64,
    pub(crate) cuts: u64,
    pub(crate) second_cuts: u64,
}

impl Search {
    /// Cuts the run of `options` on `drive` at every event.
    pub(crate) fn run<D>(&mut self, options: &Options, drive: D) -> Result<(), Trouble>
    where
        D: Powered<Stamp> + Clone,
        D::Drive: Inspected<Stamp>,
    {
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
    fn cut<D>(&mut self, runner: &Runner<'_, Stamp, D>, at: Time) -> Result<(), Trouble>
    where
        D: Powered<Stamp> + Clone,
        D::Drive: Inspected<Stamp>,
    {
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

    fn cut_again<D>(&mut self, recovering: &Runner<'_, Stamp, D>, at: Time) -> Result<(), Trouble>
    where
        D: Powered<Stamp> + Clone,
        D::Drive: Inspected<Stamp>,
    {
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
fn boundaries<D>(back: Time, dump_end: Time, cut: &Runner<'_, Stamp, D>) -> Vec<Time>
where
    D: Powered<Stamp>,
    D::Drive: Inspected<Stamp>,
{
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
fn look<D>(runner: &mut Runner<'_, Stamp, D>, ready: Time) -> Result<(), Trouble>
where
    D: Powered<Stamp>,
    D::Drive: Inspected<Stamp>,
{
    runner.advance(ready)?;
    runner.drive.check();
    runner.verify(0, Verify::All)
}
