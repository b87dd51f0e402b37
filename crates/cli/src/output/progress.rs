//! Progress and notes on standard error: a bar on a terminal, a line a minute elsewhere. With `--quiet` neither.

use std::fmt;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Whether `--quiet` was given; set once, before anything is told.
static QUIET: OnceLock<bool> = OnceLock::new();
/// Steps of a bar that shows a share.
const STEPS: u64 = 1000;
/// Without a terminal, a log has a line this often.
const LINE_EVERY: Duration = Duration::from_mins(1);
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
pub(crate) struct Progress {
    bar: ProgressBar,
    name: String,
    /// When the next line is due, without a terminal.
    next_line: Mutex<Instant>,
}

impl Progress {
    pub(crate) fn new(name: &str) -> Self {
        let bar = bar(STEPS, "{prefix}: {msg:<16} {wide_bar} {percent:>3} %  {left}");
        bar.set_prefix(name.to_owned());
        Self::with(bar, name.to_owned())
    }

    /// A bar for `runs` runs, made side by side.
    pub(crate) fn of_runs(runs: usize) -> Self {
        let bar = bar(runs as u64, "{pos}/{len} runs {wide_bar} {elapsed} gone, {left}  {msg}");
        Self::with(bar, format!("{runs} runs"))
    }

    fn with(bar: ProgressBar, name: String) -> Self {
        bar.enable_steady_tick(Duration::from_secs(1));
        Self { bar, name, next_line: Mutex::new(now() + LINE_EVERY) }
    }

    /// So many runs are done.
    pub(crate) fn runs(&self, done: usize) {
        self.bar.set_position(done as u64);
        self.tell_if_due(now());
    }

    /// This run was begun.
    pub(crate) fn begun(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    /// The run is in a phase, perhaps a new one.
    pub(crate) fn phase(&self, name: &'static str) {
        if self.bar.message() != name {
            self.what(name);
            self.bar.set_position(0);
            self.bar.reset_eta();
            self.bar.reset_elapsed();
        }
    }

    /// Says how it goes.
    pub(crate) fn note(&self, text: String) {
        self.bar.set_message(text);
    }

    /// Something else goes on; how far things are does not change with it.
    pub(crate) fn what(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    /// This share of the phase is done.
    pub(crate) fn fraction(&self, fraction: f64) {
        self.bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        self.tell_if_due(now());
    }

    fn tell_if_due(&self, now: Instant) {
        if self.bar.is_hidden()
            && !is_quiet()
            && let Some(line) = self.line_at(now)
        {
            note(&line);
        }
    }

    /// The line of a log, if one is due.
    fn line_at(&self, now: Instant) -> Option<String> {
        let mut next = self.next_line.lock().unwrap_or_else(PoisonError::into_inner);
        if now < *next {
            return None;
        }
        *next = now + LINE_EVERY;
        let share = 100 * self.bar.position() / self.bar.length().unwrap_or(STEPS).max(1);
        let phase = self.bar.message();
        let comma = if phase.is_empty() { "" } else { ", " };
        Some(format!("{}{comma}{phase}: {share} %", self.name))
    }

    /// A line above the bar that stays.
    pub(crate) fn line(&self, text: &str) {
        self.bar.suspend(|| note(text));
    }
}

#[expect(clippy::disallowed_methods, reason = "for whoever reads a log")]
fn now() -> Instant {
    Instant::now()
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
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_a_line_a_minute() {
        let (progress, began) = (Progress::new("power-loss"), now());
        progress.what("full, 100 %");
        progress.fraction(0.25);
        assert_eq!(progress.line_at(began), None);
        let after = |seconds| progress.line_at(began + Duration::from_secs(seconds));
        assert_eq!(after(61).as_deref(), Some("power-loss, full, 100 %: 25 %"));
        assert_eq!(after(100), None);
        progress.fraction(1.0);
        assert_eq!(after(122).as_deref(), Some("power-loss, full, 100 %: 100 %"));
        let runs = Progress::of_runs(8);
        runs.runs(2);
        let line = runs.line_at(now() + 2 * LINE_EVERY);
        assert_eq!(line.as_deref(), Some("8 runs: 25 %"));
    }
}
