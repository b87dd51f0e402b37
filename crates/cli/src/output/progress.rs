//! Progress on a terminal's standard error; silent anywhere else.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar for one run, or for many.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(name: &str) -> Self {
        let bar = bar(1000, "{prefix}: {msg:<16} {wide_bar} {percent:>3} %");
        bar.set_prefix(name.to_owned());
        Self(bar)
    }

    /// A bar for `runs` runs, made side by side.
    pub(crate) fn of_runs(runs: usize) -> Self {
        let template = "{pos}/{len} runs {wide_bar} {elapsed} gone, {eta} to go  {msg}";
        let bar = bar(runs as u64, template);
        bar.enable_steady_tick(std::time::Duration::from_secs(1));
        Self(bar)
    }

    /// So many runs are done.
    pub(crate) fn runs(&self, done: usize) {
        self.0.set_position(done as u64);
    }

    /// This run was begun.
    pub(crate) fn begun(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    /// The run enters a phase.
    pub(crate) fn phase(&self, name: &'static str) {
        self.what(name);
        self.0.set_position(0);
    }

    /// Says how it goes.
    pub(crate) fn note(&self, text: String) {
        self.0.set_message(text);
    }

    /// Something else goes on; how far things are does not change with it.
    pub(crate) fn what(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    /// This share of the phase is done.
    pub(crate) fn fraction(&self, fraction: f64) {
        self.0.set_position((fraction.clamp(0.0, 1.0) * 1000.0) as u64);
    }
}

/// A bar up to `end`, on a terminal.
fn bar(end: u64, template: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(end), target);
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
