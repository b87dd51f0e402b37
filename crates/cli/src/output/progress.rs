//! Progress on a terminal's standard error; silent anywhere else.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar for one run.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(name: &str) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        let style = ProgressStyle::with_template("{prefix}: {msg:<16} {wide_bar} {percent:>3} %")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        bar.set_prefix(name.to_owned());
        Self(bar)
    }

    /// The run enters a phase.
    pub(crate) fn phase(&self, name: &'static str) {
        self.0.set_message(name);
        self.0.set_position(0);
    }

    /// This share of the phase is done.
    pub(crate) fn fraction(&self, fraction: f64) {
        self.0.set_position((fraction.clamp(0.0, 1.0) * 1000.0) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
