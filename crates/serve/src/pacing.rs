//! Pacing: connections that a listener accepts in a second, at most. Others wait in the kernel's queue, where they take no
//! processor from those that read and write a drive.

use std::time::{Duration, Instant};

/// A token bucket with the tokens of one second.
#[derive(Debug)]
pub(crate) struct Pacing {
    interval: Duration,
    /// The next token comes then; as long ago as there are tokens left.
    next: Instant,
}

impl Pacing {
    /// So many connections per second, and as many at once after a pause.
    pub(crate) fn new(per_s: u32, now: Instant) -> Self {
        Self { interval: Duration::from_secs(1) / per_s, next: now }
    }

    /// Takes a token; yields how long to wait before it is there.
    pub(crate) fn take(&mut self, now: Instant) -> Duration {
        let oldest = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
        self.next = self.next.max(oldest) + self.interval;
        self.next.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::wall;

    const PER_S: u32 = 100;

    /// Connections that are accepted within `time`, if there is always one that waits.
    fn of_a_flood(pacing: &mut Pacing, begin: Instant, time: Duration) -> u32 {
        let (mut now, mut accepted) = (begin, 0);
        loop {
            now += pacing.take(now);
            if now > begin + time {
                return accepted;
            }
            accepted += 1;
        }
    }

    #[test]
    fn a_flood_gets_its_rate_and_the_tokens_of_one_second() {
        let begin = wall();
        let mut pacing = Pacing::new(PER_S, begin);
        assert_eq!(of_a_flood(&mut pacing, begin, Duration::from_secs(10)), 10 * PER_S);
        let later = begin + Duration::from_hours(1);
        assert_eq!(of_a_flood(&mut pacing, later, Duration::from_secs(10)), 11 * PER_S);
    }

    #[test]
    fn who_comes_now_and_then_does_not_wait() {
        let begin = wall();
        let mut pacing = Pacing::new(PER_S, begin);
        for number in 1..1_000 {
            let now = begin + number * Duration::from_millis(10);
            assert_eq!(pacing.take(now), Duration::ZERO, "number {number}");
        }
        // All at once after a pause, as pages that were all open when a server comes back.
        let now = begin + Duration::from_mins(1);
        let waited = (0..PER_S).map(|_| pacing.take(now)).max();
        assert_eq!(waited, Some(Duration::ZERO));
        assert!(pacing.take(now) > Duration::ZERO);
    }
}
