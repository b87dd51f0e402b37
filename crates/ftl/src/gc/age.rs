//! The age of blocks: its origin and its clock.

use leyden_sim::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The origin of a block's age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgeOf {
    /// The last invalidation of one of its units, or its last write if none has been since (Kawaguchi et al., USENIX
    /// 1995).
    #[default]
    LastInvalidation,
    /// The last write to it (Rosenblum and Ousterhout, TOCS 1992: the age of the youngest data of a segment).
    LastWrite,
}

/// The clock of block ages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgeClock {
    /// Simulated time.
    #[default]
    Time,
    /// The units that the host has written to flash: a pause ages no block. Each counts as a microsecond.
    Writes,
}

/// A write, on the clock of writes.
const WRITE: Span = Span::from_us(1);

/// The clock of one drive.
#[derive(Clone, Copy, Debug)]
pub struct Ages {
    of: AgeOf,
    clock: AgeClock,
    tick_ns: u64,
    writes: u64,
    /// It shows simulated time as that is.
    is_time: bool,
}

impl Default for Ages {
    fn default() -> Self {
        Self::new(AgeOf::default(), AgeClock::default(), Span::ZERO)
    }
}

impl Ages {
    /// Ages from `of` by a clock that ticks every `tick`; always, if that is no time at all.
    pub const fn new(of: AgeOf, clock: AgeClock, tick: Span) -> Self {
        let tick_ns = tick.as_ns();
        let is_time = matches!(clock, AgeClock::Time) && tick_ns == 0;
        Self { of, clock, tick_ns, writes: 0, is_time }
    }

    /// Their origin.
    pub const fn of(&self) -> AgeOf {
        self.of
    }

    /// The reading from which the age of a block counts that has lost a unit at `now`; nothing if that does not change it.
    #[inline]
    pub const fn at_loss(&self, now: Time) -> Option<Time> {
        match self.of {
            AgeOf::LastInvalidation => Some(self.at(now)),
            AgeOf::LastWrite => None,
        }
    }

    /// The same clock, when so many units have been written.
    #[must_use]
    pub const fn after(self, writes: u64) -> Self {
        Self { writes, ..self }
    }

    /// The host's unit has been written.
    #[inline]
    pub const fn count(&mut self) {
        self.writes += 1;
    }

    /// The reading of this clock at `now`.
    #[inline(always)]
    pub const fn at(&self, now: Time) -> Time {
        if self.is_time { now } else { self.shown_at(now) }
    }

    #[inline(never)]
    const fn shown_at(&self, now: Time) -> Time {
        let shown = match self.clock {
            AgeClock::Time => now.as_ns(),
            AgeClock::Writes => self.writes * WRITE.as_ns(),
        };
        if self.tick_ns == 0 {
            Time::from_ns(shown)
        } else {
            Time::from_ns(shown - shown % self.tick_ns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_ticks_and_that_of_writes_stands_still_between_them() {
        let at = |clock, tick, writes, ns| {
            let ages = Ages::new(AgeOf::default(), clock, Span::from_ns(tick));
            ages.after(writes).at(Time::from_ns(ns)).as_ns()
        };
        assert_eq!(at(AgeClock::Time, 0, 7, 12_345), 12_345);
        assert_eq!(at(AgeClock::Time, 1_000, 7, 12_345), 12_000);
        assert_eq!(at(AgeClock::Writes, 0, 7, 12_345), 7_000);
        assert_eq!(at(AgeClock::Writes, 5_000, 7, 12_345), 5_000);
        let resumed = Ages::new(AgeOf::LastWrite, AgeClock::Writes, Span::ZERO).after(9);
        assert_eq!(resumed.at_loss(Time::ZERO), None);
        assert_eq!(resumed.at(Time::ZERO).as_ns(), 9_000);
    }
}
