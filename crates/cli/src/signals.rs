//! Ctrl-C, termination, and the file size limit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

/// Installs the handlers; the flag is set by the first Ctrl-C (or SIGTERM). The second ends the
/// process at once.
pub(crate) fn install() -> io::Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag set and exits, the first sets it.
        let code = i32::from(crate::failure::INTERRUPTED);
        flag::register_conditional_shutdown(signal, code, Arc::clone(&cancel))?;
        flag::register(signal, Arc::clone(&cancel))?;
    }
    // Handled at all, a file that grows beyond `ulimit -f` is an error of its write and not the end
    // of the process.
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(cancel)
}
