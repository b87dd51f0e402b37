//! How long before it comes the host announces a write, on average.
//!
//! A host that writes by a schedule (Linux's flusher, the checkpoints of a database) writes what it has
//! announced within a time that the drive can learn: the age that hints have when they come true. The
//! mean is of the last few thousand of them, so that it follows a host that changes.
//!
//! Invariant: nothing is kept unless a policy asks for it, nor before the first hint.

use leyden_nand::Lpn;
use leyden_sim::{Span, Time};
use serde::{Deserialize, Serialize};

/// Announced writes that the mean is of: enough for a schedule of minutes, forgotten in minutes.
const SAMPLES: u32 = 4_096;
/// Announcements are remembered to 2^16 ns (66 us), and for three days: a longer wait counts as what
/// is left of it after those.
const STEP_SHIFT: u32 = 16;

/// When writes were announced, and how long that was before they came.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Lead {
    /// For each logical unit, the step in which its write was announced. Empty if no policy asks.
    announced: Vec<u32>,
    /// How many announced writes have come, up to [`SAMPLES`].
    samples: u32,
    mean_ns: u64,
}

impl Lead {
    /// Remembers announcements of `lpns` units from now on.
    pub(crate) fn begin(&mut self, lpns: u32) {
        self.announced = vec![0; lpns as usize];
    }

    /// The write of `lpn` is announced.
    #[inline]
    pub(crate) fn announced(&mut self, now: Time, lpn: Lpn) {
        if let Some(announced) = self.announced.get_mut(lpn.index()) {
            *announced = step(now);
        }
    }

    /// The announced write of `lpn` has come.
    #[inline]
    pub(crate) fn came(&mut self, now: Time, lpn: Lpn) {
        if let Some(&announced) = self.announced.get(lpn.index()) {
            let lead_ns = u64::from(step(now).wrapping_sub(announced)) << STEP_SHIFT;
            let before = u64::from(self.samples.min(SAMPLES - 1));
            self.samples = before as u32 + 1;
            self.mean_ns = (self.mean_ns * before + lead_ns) / (before + 1);
        }
    }

    /// The mean, once an announced write has come.
    #[inline]
    pub(crate) fn mean(&self) -> Option<Span> {
        (self.samples > 0).then_some(Span::from_ns(self.mean_ns))
    }

    pub(crate) const fn fits(&self, lpns: u32) -> bool {
        self.announced.is_empty() || self.announced.len() == lpns as usize
    }

    pub(crate) const fn memory_bytes(&self) -> usize {
        size_of_val(self.announced.as_slice())
    }
}

#[inline]
const fn step(now: Time) -> u32 {
    (now.as_ns() >> STEP_SHIFT) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Announces and writes `times` times, `lead` before.
    fn hear(learnt: &mut Lead, now: &mut Time, lead: Span, times: u32) {
        for _ in 0..times {
            learnt.announced(*now, Lpn(3));
            *now += lead;
            learnt.came(*now, Lpn(3));
        }
    }

    fn mean_ms(lead: &Lead) -> f64 {
        lead.mean().unwrap().as_ns() as f64 / 1e6
    }

    #[test]
    fn the_mean_is_of_all_that_came_and_follows_a_host_that_changes() {
        let (mut lead, mut now) = (Lead::default(), Time::ZERO);
        hear(&mut lead, &mut now, Span::from_ms(100), 1);
        assert_eq!(lead.mean(), None, "nobody asks");
        lead.begin(8);
        hear(&mut lead, &mut now, Span::from_ms(100), 1);
        assert!((mean_ms(&lead) - 100.0).abs() < 0.1, "{lead:?}");
        hear(&mut lead, &mut now, Span::from_ms(300), 3);
        assert!((mean_ms(&lead) - 250.0).abs() < 0.1, "{lead:?}");
        hear(&mut lead, &mut now, Span::from_ms(900), 10 * SAMPLES);
        assert!((mean_ms(&lead) - 900.0).abs() < 0.1, "{lead:?}");
    }

    #[test]
    fn the_clock_of_announcements_goes_round() {
        let mut lead = Lead::default();
        lead.begin(8);
        let mut now = Time::from_ns((u64::from(u32::MAX) << STEP_SHIFT) - 1_000);
        hear(&mut lead, &mut now, Span::from_ms(500), 1);
        assert!((mean_ms(&lead) - 500.0).abs() < 0.1, "{lead:?}");
    }
}
