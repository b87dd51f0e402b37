//! The pages that a flush waits for: every page that was dirty or being written out when it came.
//!
//! Pages become dirty in an epoch; a flush ends the epoch. It is done when no page of its epoch or an
//! older one is left.

use std::collections::VecDeque;

/// An epoch's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Epoch(u64);

/// How many pages each open epoch has left.
#[derive(Clone, Debug)]
pub(super) struct Epochs {
    oldest: u64,
    left: VecDeque<u32>,
}

impl Epochs {
    pub(super) fn new() -> Self {
        Self { oldest: 1, left: VecDeque::from([0]) }
    }

    /// The epoch in which pages become dirty now.
    #[inline]
    pub(super) fn current(&self) -> Epoch {
        Epoch(self.oldest + self.left.len() as u64 - 1)
    }

    /// A page has become dirty; returns its epoch.
    #[inline]
    pub(super) fn add(&mut self) -> Epoch {
        let current = self.current();
        self.left[(current.0 - self.oldest) as usize] += 1;
        current
    }

    /// A page of `epoch` is written, or not wanted any more.
    #[inline]
    pub(super) fn remove(&mut self, epoch: Epoch) {
        self.left[(epoch.0 - self.oldest) as usize] -= 1;
        while self.left.len() > 1 && self.left[0] == 0 {
            self.left.pop_front();
            self.oldest += 1;
        }
    }

    /// Ends the epoch, if it has pages; returns the last one that a flush has to wait for.
    pub(super) fn end(&mut self) -> Epoch {
        let current = self.current();
        if self.left[(current.0 - self.oldest) as usize] == 0 {
            return Epoch(current.0 - 1);
        }
        self.left.push_back(0);
        current
    }

    /// True if no page of `epoch` or an older one is left.
    pub(super) fn is_done(&self, epoch: Epoch) -> bool {
        self.oldest > epoch.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_its_epoch_and_all_before() {
        let mut epochs = Epochs::new();
        let nothing = epochs.end();
        assert!(epochs.is_done(nothing));
        let (a, b) = (epochs.add(), epochs.add());
        let first = epochs.end();
        let again = epochs.end();
        assert_eq!(first, again, "nothing has become dirty in between");
        let c = epochs.add();
        let second = epochs.end();
        epochs.remove(c);
        epochs.remove(a);
        assert!(!epochs.is_done(first) && !epochs.is_done(second));
        epochs.remove(b);
        assert!(epochs.is_done(first) && epochs.is_done(second));
    }
}
