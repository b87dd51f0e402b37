//! FLUSH: which writes it must wait for.
//!
//! Time is cut into epochs by flushes. A slot belongs to the epoch of the oldest write in it that is
//! not on flash; a flush ends when nothing of its epoch, or before it, is left. An overwrite of a
//! buffered page keeps the older epoch: the flush waits for the page, and gets the newer version.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A stretch of writes between two flushes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Epoch(u64);

/// Counts what is not on flash, by epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Barrier {
    /// Slots not on flash, from the oldest epoch that has any (or the current one) on.
    unsettled: VecDeque<u32>,
    oldest: u64,
    /// Slots of past epochs whose program has not started.
    overdue: u32,
    /// Slots of the current epoch whose program has not started.
    dirty: u32,
}

impl Default for Barrier {
    fn default() -> Self {
        Self { unsettled: VecDeque::from([0]), oldest: 0, overdue: 0, dirty: 0 }
    }
}

impl Barrier {
    /// The epoch of writes now.
    #[inline]
    pub(crate) fn current(&self) -> Epoch {
        Epoch(self.oldest + self.unsettled.len() as u64 - 1)
    }

    /// A slot has become dirty.
    #[inline]
    pub(crate) fn add(&mut self) -> Epoch {
        *self.unsettled.back_mut().expect("there is a current epoch") += 1;
        self.dirty += 1;
        self.current()
    }

    /// A dirty slot's program starts, or it is dropped.
    #[inline]
    pub(crate) fn start(&mut self, epoch: Epoch) {
        if epoch == self.current() {
            self.dirty -= 1;
        } else {
            self.overdue -= 1;
        }
    }

    /// A slot's program has failed: it is dirty again.
    pub(crate) fn restart(&mut self, epoch: Epoch) {
        if epoch == self.current() {
            self.dirty += 1;
        } else {
            self.overdue += 1;
        }
    }

    /// A slot of epoch `from` takes over the place of one of the earlier epoch `to`. `started` tells
    /// whether its own program has.
    pub(crate) fn inherit(&mut self, from: Epoch, to: Epoch, started: bool) {
        if !started {
            self.start(from);
            self.restart(to);
        }
        self.settle(from);
    }

    /// A slot is on flash, or need not be any more.
    #[inline]
    pub(crate) fn settle(&mut self, epoch: Epoch) {
        self.unsettled[(epoch.0 - self.oldest) as usize] -= 1;
        while self.unsettled.len() > 1 && self.unsettled[0] == 0 {
            self.unsettled.pop_front();
            self.oldest += 1;
        }
    }

    /// Begins a flush: `None` if there is nothing to wait for.
    pub(crate) fn begin(&mut self) -> Option<Epoch> {
        let epoch = self.current();
        if self.unsettled.iter().all(|&count| count == 0) {
            return None;
        }
        self.unsettled.push_back(0);
        self.overdue += std::mem::take(&mut self.dirty);
        Some(epoch)
    }

    /// True if everything of `epoch` and before it is on flash.
    #[inline]
    pub(crate) fn is_settled(&self, epoch: Epoch) -> bool {
        self.oldest > epoch.0
    }

    /// True if a flush waits for a slot whose program has not started.
    #[inline]
    pub(crate) fn is_overdue(&self) -> bool {
        self.overdue > 0
    }
}
