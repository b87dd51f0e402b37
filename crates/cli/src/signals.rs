//! Ctrl-C, termination, and the file size limit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

/// The handlers of Ctrl-C and SIGTERM.
#[derive(Debug)]
pub(crate) struct Signals {
    cancel: Arc<AtomicBool>,
    /// No command looks at `cancel` yet: the first signal ends the process.
    ends_at_once: Arc<AtomicBool>,
}

impl Signals {
    /// The flag that the first signal sets, for a command that looks at it from now on. The second signal ends the
    /// process at once.
    pub(crate) fn watched(&self) -> &Arc<AtomicBool> {
        self.ends_at_once.store(false, Ordering::Release);
        &self.cancel
    }
}

/// Installs the handlers. A signal ends the process at once, until a command [watches](Signals::watched) for it.
pub(crate) fn install() -> io::Result<Signals> {
    let cancel = Arc::new(AtomicBool::new(false));
    let ends_at_once = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag set and exits, the first sets it.
        let code = i32::from(crate::failure::INTERRUPTED);
        flag::register_conditional_shutdown(signal, code, Arc::clone(&ends_at_once))?;
        flag::register_conditional_shutdown(signal, code, Arc::clone(&cancel))?;
        flag::register(signal, Arc::clone(&cancel))?;
    }
    // Handled at all, a file that grows beyond `ulimit -f` is an error of its write and not the end
    // of the process.
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(Signals { cancel, ends_at_once })
}
