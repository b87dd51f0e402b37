//! The drive's time from the wall's.

use std::time::{Duration, Instant};

use leyden_sim::{Span, Time};

/// How fast the drive's time goes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// So many times as fast as the wall's: 1 for a drive as it is.
    Times(f64),
    /// As fast as it can: a command ends as soon as what it takes has been computed.
    Untimed,
}

/// The only clock of a drive.
#[derive(Debug)]
pub(crate) struct Clock {
    pace: Pace,
    /// When the drive's clock showed `base`.
    began: Instant,
    base: Time,
}

impl Clock {
    pub(crate) fn new(pace: Pace, base: Time) -> Self {
        Self { pace, began: wall(), base }
    }

    /// The drive's time now. `reached` is how far it has come: untimed, it is there.
    pub(crate) fn now(&self, reached: Time) -> Time {
        match self.pace {
            Pace::Untimed => reached,
            Pace::Times(pace) => {
                let ns = self.began.elapsed().as_nanos() as f64 * pace;
                (self.base + Span::from_ns(ns as u64)).max(reached)
            }
        }
    }

    /// How long it is until the drive's time is `time`.
    pub(crate) fn until(&self, time: Time, reached: Time) -> Duration {
        match self.pace {
            Pace::Untimed => Duration::ZERO,
            Pace::Times(pace) => {
                let ns = time.since(self.now(reached)).as_ns() as f64 / pace;
                Duration::from_nanos(ns as u64)
            }
        }
    }

    /// How much of the wall's time it is from `from` to `to`; nothing, untimed.
    pub(crate) fn between(&self, from: Time, to: Time) -> Duration {
        match self.pace {
            Pace::Untimed => Duration::ZERO,
            Pace::Times(pace) => {
                Duration::from_nanos((to.since(from).as_ns() as f64 / pace) as u64)
            }
        }
    }

    /// By how much of the wall's time it is later than the drive's `time`; nothing, untimed.
    pub(crate) fn late(&self, time: Time, reached: Time) -> Duration {
        match self.pace {
            Pace::Untimed => Duration::ZERO,
            Pace::Times(pace) => {
                let ns = self.now(reached).since(time).as_ns() as f64 / pace;
                Duration::from_nanos(ns as u64)
            }
        }
    }

    /// How long ago `then` was; nothing, untimed.
    pub(crate) fn wait_since(&self, then: Instant) -> Duration {
        if self.is_untimed() { Duration::ZERO } else { wall().saturating_duration_since(then) }
    }

    pub(crate) const fn is_untimed(&self) -> bool {
        matches!(self.pace, Pace::Untimed)
    }
}

/// The wall clock.
#[expect(
    clippy::disallowed_methods,
    reason = "a served drive lives in real time; this is where it reads it"
)]
pub(crate) fn wall() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untimed_drive_is_where_it_has_come() {
        let clock = Clock::new(Pace::Untimed, Time::ZERO);
        let reached = Time::from_ns(77);
        assert_eq!(
            (clock.now(reached), clock.until(Time::from_ns(99), reached)),
            (reached, Duration::ZERO)
        );
    }

    #[test]
    fn time_goes_at_its_pace_and_never_back() {
        let clock = Clock::new(Pace::Times(0.001), Time::from_ns(5));
        let far = Time::from_ns(1 << 50);
        assert_eq!(clock.now(far), far);
        assert!(clock.now(Time::ZERO) < far);
        assert!(clock.until(Time::from_ns(1_000_000), Time::ZERO) > Duration::from_millis(500));
    }
}
