//! What a client may have under way.

use std::sync::{Condvar, Mutex, PoisonError};

/// Commands, and bytes of their data, that are under way for one client.
#[derive(Debug, Default)]
pub(crate) struct Window {
    taken: Mutex<(usize, usize)>,
    changed: Condvar,
}

/// As many as a queue of an NVMe drive has, or so.
const COMMANDS_MOST: usize = 1_024;
/// Twice the largest request.
const BYTES_MOST: usize = 64 << 20;

impl Window {
    /// Waits until a command with so many bytes fits; calls `before` if it has to wait.
    pub(crate) fn enter(&self, bytes: usize, before: impl FnOnce()) {
        let is_full =
            |taken: &mut (usize, usize)| taken.0 >= COMMANDS_MOST || taken.1 + bytes > BYTES_MOST;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if is_full(&mut taken) {
            drop(taken);
            before();
            taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken = self.changed.wait_while(taken, is_full).unwrap_or_else(PoisonError::into_inner);
        }
        taken.0 += 1;
        taken.1 += bytes;
    }

    /// So many commands that entered with so many bytes in all have been answered.
    pub(crate) fn leave(&self, commands: usize, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.0 -= commands;
        taken.1 -= bytes;
        drop(taken);
        self.changed.notify_all();
    }

    /// Waits until nothing is under way.
    pub(crate) fn drain(&self) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(taken, |taken| taken.0 > 0));
    }
}
