//! What is told while something runs, on standard error: progress on a terminal, and notes. With `--quiet`
//! neither.

use std::fmt;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Whether `--quiet` was given; set once, before anything is told.
static QUIET: OnceLock<bool> = OnceLock::new();
/// Steps of a bar that shows a share.
const STEPS: u64 = 1000;
/// A rate says nothing of the time that is left before so much of it is known.
const SURE_AFTER: Duration = Duration::from_secs(2);

/// Nothing is told from here on but results, warnings and errors.
pub(crate) fn be_quiet(is_quiet: bool) {
    let _ = QUIET.set(is_quiet); // set twice by tests only
}

fn is_quiet() -> bool {
    QUIET.get().copied().unwrap_or(false)
}

/// Says that a result was written to `path`. A device needs no such note: what was written is seen there.
pub(crate) fn wrote(path: &Path) {
    if !is_quiet() && std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        anstream::eprintln!("wrote {}", path.display());
    }
}

/// A note on standard error.
pub(crate) fn note(text: &str) {
    if !is_quiet() {
        let style = anstyle::Style::new().bold();
        anstream::eprintln!("{style}note{style:#}: {text}");
    }
}

/// A bar for one run, or for many.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(name: &str) -> Self {
        let bar = bar(STEPS, "{prefix}: {msg:<16} {wide_bar} {percent:>3} %  {left}");
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_secs(1));
        Self(bar)
    }

    /// A bar for `runs` runs, made side by side.
    pub(crate) fn of_runs(runs: usize) -> Self {
        let bar = bar(runs as u64, "{pos}/{len} runs {wide_bar} {elapsed} gone, {left}  {msg}");
        bar.enable_steady_tick(Duration::from_secs(1));
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

    /// The run is in a phase, perhaps a new one.
    pub(crate) fn phase(&self, name: &'static str) {
        if self.0.message() != name {
            self.what(name);
            self.0.set_position(0);
            self.0.reset_eta();
            self.0.reset_elapsed();
        }
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
        self.0.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }

    /// A line above the bar that stays.
    pub(crate) fn line(&self, text: &str) {
        self.0.suspend(|| note(text));
    }
}

/// A bar up to `end`, on a terminal.
fn bar(end: u64, template: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() && !is_quiet() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(end), target);
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.with_key("left", left));
    bar
}

/// The time that is left, once there is something to tell it from.
fn left(state: &ProgressState, out: &mut dyn fmt::Write) {
    if state.pos() == 0 || state.elapsed() < SURE_AFTER {
        return;
    }
    let done = state.fraction();
    let whole_s = state.elapsed().as_secs_f64() / f64::from(done).max(1e-6);
    let left_s = (whole_s - state.elapsed().as_secs_f64()).max(0.0).round() as u64;
    let _ = match (left_s / 3600, left_s / 60 % 60, left_s % 60) {
        (0, 0, s) => write!(out, "{s} s to go"),
        (0, m, s) => write!(out, "{m} min {s:02} s to go"),
        (h, m, _) => write!(out, "{h} h {m:02} min to go"),
    };
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
