//! A workload that is run several times in a row on one drive: what each run came to.

use super::drift::MOST_DRIFT;
use leyden_config::Scenario;
use leyden_record::{Repetition, RunRecord};

/// The work of one of several runs in a row.
#[derive(Clone, Copy)]
pub(super) struct Round<'s> {
    pub(super) scenario: &'s Scenario,
    /// Counted from 0.
    pub(super) number: u32,
}

impl<'s> Round<'s> {
    pub(super) const fn first(scenario: &'s Scenario) -> Self {
        Self { scenario, number: 0 }
    }

    /// Whether it is the one that is measured.
    pub(super) const fn is_last(self) -> bool {
        self.number + 1 == self.scenario.run.repeat.get()
    }

    /// The seed of its jobs. A trace is the same each time; random jobs continue with other numbers.
    pub(super) fn seed(self) -> u64 {
        self.scenario.seed ^ u64::from(self.number).rotate_left(32)
    }
}

/// The results of one run that are compared between repetitions.
pub(super) fn repetition(record: &RunRecord) -> Repetition {
    let host = &record.host;
    Repetition {
        commands: host.reads + host.writes + host.flushes + host.trims,
        iops: host.iops,
        waf: record.flash.waf,
    }
}

/// A warning if the last run saw another drive than the one before it.
pub(super) fn warning(repetitions: &[Repetition]) -> Option<String> {
    let [.., before, last] = repetitions else { return None };
    let drift = (last.waf - before.waf) / last.waf.max(f64::MIN_POSITIVE);
    if last.waf == 0.0 || drift.abs() <= MOST_DRIFT {
        return None;
    }
    Some(format!(
        "the drive was not in a steady state: write amplification went from {:.2} in the last run but one to {:.2} in \
         the last; raise run.repeat",
        before.waf, last.waf
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_two_are_compared() {
        let run = |waf| Repetition { waf, ..Repetition::default() };
        assert_eq!(warning(&[run(1.0)]), None);
        assert_eq!(warning(&[run(1.0), run(2.0), run(2.05)]), None);
        let told = warning(&[run(2.0), run(2.5)]).unwrap();
        assert!(
            told.contains("2.00") && told.contains("2.50") && told.contains("run.repeat"),
            "{told}"
        );
        assert_eq!(warning(&[run(1.0), run(0.0)]), None, "nothing was written");
    }
}
