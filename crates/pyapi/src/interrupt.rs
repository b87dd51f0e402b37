//! Work that does not hold the interpreter's lock, tells how far it is, and heeds Ctrl-C.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pyo3::prelude::*;

/// How often signals are looked for, and progress is told.
const EVERY: Duration = Duration::from_millis(50);

/// State that work under way and its caller share.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    cancel: AtomicBool,
    fraction: AtomicU64,
}

impl Watch {
    pub(crate) const fn cancel(&self) -> &AtomicBool {
        &self.cancel
    }

    pub(crate) fn tell(&self, fraction: f64) {
        self.fraction.store(fraction.to_bits(), Ordering::Relaxed);
    }

    fn told(&self) -> f64 {
        f64::from_bits(self.fraction.load(Ordering::Relaxed))
    }
}

/// Does `work` on a thread of its own. `progress` is called with the share that is done, some times a second, and at the end. A
/// signal's exception, or one that `progress` raises, ends the work soon and is raised once it has ended.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send,
) -> PyResult<T> {
    let watch = Watch::default();
    let (result, raised) = py.detach(|| {
        let (ended, has_ended) = sync_channel::<()>(1);
        // An edge: the work is one call of the simulator.
        std::thread::scope(|scope| {
            let shared = &watch;
            let thread = scope.spawn(move || {
                let result = work(shared);
                // The channel has no reader any more if an exception is being raised.
                let _ = ended.send(());
                result
            });
            let mut raised = None;
            while has_ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none() {
                    raised = Python::attach(|py| look(py, progress, &watch)).err();
                    watch.cancel.store(raised.is_some(), Ordering::Relaxed);
                }
            }
            (thread.join(), raised)
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    match result {
        Ok(result) => {
            if let Some(progress) = progress {
                progress.call1(py, (1.0,))?;
            }
            Ok(result)
        }
        Err(_) => Err(crate::errors::NativeRunError::new_err(
            "Leyden itself failed; the message above names the place",
        )),
    }
}

fn look(py: Python<'_>, progress: Option<&Py<PyAny>>, watch: &Watch) -> PyResult<()> {
    py.check_signals()?;
    match progress {
        Some(progress) => progress.call1(py, (watch.told(),)).map(drop),
        None => Ok(()),
    }
}
