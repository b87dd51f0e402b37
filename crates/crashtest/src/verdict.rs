//! Verdicts on the software in a state.

use serde::{Deserialize, Serialize};

/// The verdict on a state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything that was promised is there.
    Held,
    /// The check has no opinion of it (exit code 77).
    Skipped,
    /// The check found something that was acknowledged and is gone: it printed a line `lost ...`.
    Lost,
    /// The check failed.
    Failed,
    /// The check was killed by a signal.
    Crashed,
    /// The check did not end in time.
    Hung,
    /// The file system's own check finds faults.
    Fsck,
    /// The file system does not mount.
    Unmountable,
}

impl Verdict {
    /// True if the software has not survived.
    pub const fn is_broken(self) -> bool {
        !matches!(self, Self::Held | Self::Skipped)
    }

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Skipped => "skipped",
            Self::Lost => "acknowledged lost",
            Self::Failed => "check failed",
            Self::Crashed => "check crashed",
            Self::Hung => "check hung",
            Self::Fsck => "fsck",
            Self::Unmountable => "does not mount",
        }
    }
}

/// Whether a line names acknowledged data that is gone: `lost`, then another word.
pub(crate) fn says_lost(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix("lost");
    rest.is_some_and(|rest| {
        !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+'))
    })
}

/// A verdict, and what was said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The end of what the check, the kernel or fsck said.
    pub said: String,
}

impl Outcome {
    pub(crate) fn new(verdict: Verdict, said: impl Into<String>) -> Self {
        Self { verdict, said: said.into() }
    }

    /// Of a check in this process, by what it returned.
    pub(crate) fn of(said: Result<(), String>) -> Self {
        match said {
            Ok(()) => Self::new(Verdict::Held, ""),
            Err(said) if says_lost(&said) => Self::new(Verdict::Lost, said),
            Err(said) => Self::new(Verdict::Failed, said),
        }
    }

    /// The common part of outcomes with one cause: the first line said, without its numbers.
    pub fn cause(&self) -> String {
        let lines = || self.said.lines().map(str::trim).filter(|line| !line.is_empty());
        let lost = lines().find(|line| says_lost(line));
        // Programs that fail with a trace of calls name the fault last.
        let is_trace = self.said.contains("Traceback (most recent call last)");
        let line = lost.or_else(|| if is_trace { lines().next_back() } else { lines().next() });
        let mut cause = String::new();
        for c in line.unwrap_or_default().chars().take(120) {
            match c {
                '0'..='9' if cause.ends_with('#') => {}
                '0'..='9' => cause.push('#'),
                c => cause.push(c),
            }
        }
        cause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_named_with_or_without_a_colon() {
        assert!(
            ["lost 17", "lost: counter 3", " lost", "lost\t4", "lost=3"].into_iter().all(says_lost)
        );
        let others = ["lostandfound is empty", "nothing is lost", "loss 3", "lost+found: empty"];
        assert!(!others.into_iter().any(says_lost));
    }

    #[test]
    fn causes_leave_numbers_out() {
        let said = |text: &str| Outcome::new(Verdict::Failed, text).cause();
        assert_eq!(said("row 17 of 400 is gone\nmore"), said("\nrow 3 of 99 is gone"));
        assert_eq!(said("checking\nlost 17"), "lost #");
        assert_eq!(said("Traceback (most recent call last)\n  File\nError: 5"), "Error: #");
        assert_eq!(said(""), "");
    }
}
