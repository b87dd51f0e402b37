//! The watch: each second a reading of every drive, kept for all who look.
//!
//! **Invariants**
//! - A drive's thread is asked once a second, however many clients there are and whatever they send.
//! - Samples, readings and cuts that are kept have a bound.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::reading::Reading;
use super::reply::{NOTHING_NEW, SILENCE, event};
use super::sample::Sample;
use crate::clock::wall;
use crate::owner::Handle;

/// Between two readings.
const EVERY: Duration = Duration::from_secs(1);
/// Samples that are kept: five minutes.
const KEPT: usize = 300;
/// No sample is longer.
const SAMPLE_MOST: usize = 2 << 10;
/// The list of cuts is not longer.
const CUTS_MOST: usize = 64 << 10;
/// Readings over which write amplification is taken: a buffer that is written out makes single seconds jump.
const AMPLIFIED_OVER: usize = 10;
/// Characters of a drive's name that are shown.
const NAME_MOST: usize = 64;

/// New samples that a client receives at once; one that lags behind by more misses some.
const NEW_MOST: usize = 30;

/// All events that are kept of a drive have fewer bytes.
pub(super) const EVENTS_MOST: usize = KEPT * SAMPLE_MOST + CUTS_MOST;
/// So have new ones.
pub(super) const NEWS_MOST: usize = NEW_MOST * SAMPLE_MOST + CUTS_MOST;

/// The watched drives.
pub(crate) struct Watch {
    pub(super) names: Vec<String>,
    began: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    drives: Vec<Watched>,
    /// A switch was thrown: its client wants to see that now.
    is_asked: bool,
    is_over: bool,
}

/// A drive.
struct Watched {
    reading: Arc<Reading>,
    samples: VecDeque<Arc<str>>,
    /// Samples that were ever taken.
    taken: u64,
    amplified: VecDeque<(u64, u64)>,
    cuts: Arc<str>,
    is_gone: bool,
}

/// The last events that a client has.
#[derive(Default)]
pub(crate) struct Position {
    taken: u64,
    cuts: Option<Arc<str>>,
}

impl Watch {
    /// Takes the first readings; `None` if a drive is gone.
    pub(super) fn new(handles: &[Handle]) -> Option<Self> {
        let mut names = Vec::new();
        let mut drives = Vec::new();
        for handle in handles {
            let reading = handle.look(Reading::of)??;
            names.push(unlike(&names, &reading.status.name));
            drives.push(Watched::new(reading));
        }
        let state = Mutex::new(State { drives, is_asked: false, is_over: false });
        Some(Self { names, began: wall(), state, changed: Condvar::new() })
    }

    // Each change leaves the state whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all drives each second, until none is left or the watch is over.
    pub(super) fn run(&self, handles: &[Handle]) {
        let mut next = wall() + EVERY;
        loop {
            let left = next.saturating_duration_since(wall());
            let waits = |state: &mut State| !state.is_asked && !state.is_over;
            let waited = self.changed.wait_timeout_while(self.lock(), left, waits);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.is_over {
                return;
            }
            state.is_asked = false;
            drop(state);
            next = wall() + EVERY;
            for (number, handle) in handles.iter().enumerate() {
                // Drives' threads are waited for without the lock.
                let reading = handle.look(Reading::of);
                let drive = &mut self.lock().drives[number];
                match reading {
                    None => drive.is_gone = true,
                    Some(None) => {} // the old one is better than none
                    Some(Some(reading)) => drive.take(reading, self.began),
                }
            }
            self.changed.notify_all();
            if self.lock().drives.iter().all(|drive| drive.is_gone) {
                return;
            }
        }
    }

    /// Has a reading taken at once.
    pub(super) fn look_now(&self) {
        self.lock().is_asked = true;
        self.changed.notify_all();
    }

    /// Ends it, and the connections of all who follow a drive.
    pub(super) fn stop(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// The newest reading of each drive.
    pub(super) fn readings(&self) -> Vec<Arc<Reading>> {
        self.lock().drives.iter().map(|drive| Arc::clone(&drive.reading)).collect()
    }

    /// Waits until a client at `position` can be told something; false if there will be nothing more.
    pub(super) fn wait_for(&self, drive: usize, position: &Position) -> bool {
        let state = self.lock();
        let waits = |state: &mut State| {
            let it = &state.drives[drive];
            !state.is_over && !it.is_gone && it.taken == position.taken && position.cuts.is_some()
        };
        let waited = self.changed.wait_timeout_while(state, SILENCE, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_over && !state.drives[drive].is_gone
    }

    /// The events that a client at `position` has not got; a comment if there are none.
    pub(super) fn events_since(&self, drive: usize, position: &mut Position) -> String {
        let mut text = String::new();
        let (samples, cuts, taken, reading) = {
            let state = self.lock();
            let it = &state.drives[drive];
            let most = if position.cuts.is_none() { KEPT } else { NEW_MOST };
            let new = it.samples.len().min((it.taken - position.taken) as usize).min(most);
            let samples: Vec<_> = it.samples.range(it.samples.len() - new..).cloned().collect();
            (samples, Arc::clone(&it.cuts), it.taken, Arc::clone(&it.reading))
        };
        if position.cuts.is_none() {
            let (kind, capacity) = (reading.kind, reading.status.capacity_bytes);
            let about = json!({ "names": self.names, "kind": kind, "capacity_bytes": capacity });
            event(&mut text, "about", &about.to_string());
        }
        for sample in samples {
            event(&mut text, "sample", &sample);
        }
        if position.cuts.as_ref().is_none_or(|known| *known != cuts) {
            event(&mut text, "cuts", &cuts);
        }
        *position = Position { taken, cuts: Some(cuts) };
        if text.is_empty() { NOTHING_NEW.to_owned() } else { text }
    }
}

/// A drive's name, of bounded length and unlike those that are there.
fn unlike(names: &[String], name: &str) -> String {
    let name: String = name.chars().take(NAME_MOST).collect();
    let others = || (2..).map(|number| format!("{name} ({number})"));
    let mut all = std::iter::once(name.clone()).chain(others());
    all.find(|it| !names.contains(it)).unwrap_or(name)
}

impl Watched {
    fn new(reading: Reading) -> Self {
        let cuts = cuts_of(&reading);
        let amplified = VecDeque::from([reading.amplified()]);
        let samples = VecDeque::new();
        Self { reading: Arc::new(reading), samples, taken: 0, amplified, cuts, is_gone: false }
    }

    /// Takes what the drive's thread has said.
    fn take(&mut self, reading: Reading, began: Instant) {
        let before = self.amplified.front().copied().unwrap_or_default();
        let sample = Sample::new(&self.reading, &reading, began, before);
        let sample = serde_json::to_string(&sample).unwrap_or_default();
        debug_assert!(sample.len() <= SAMPLE_MOST, "{sample}");
        if self.samples.len() == KEPT {
            self.samples.pop_front();
        }
        self.samples.push_back(sample.into());
        self.taken += 1;
        if self.amplified.len() == AMPLIFIED_OVER {
            self.amplified.pop_front();
        }
        self.amplified.push_back(reading.amplified());
        self.cuts = cuts_of(&reading);
        self.reading = Arc::new(reading);
    }
}

fn cuts_of(reading: &Reading) -> Arc<str> {
    let text = serde_json::to_string(&reading.cuts).unwrap_or_default();
    debug_assert!(text.len() <= CUTS_MOST, "{text}");
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_of_one_name_are_told_apart() {
        let mut names = Vec::new();
        for name in ["disk", "disk", "other", "disk", &"x".repeat(1_000)] {
            names.push(unlike(&names, name));
        }
        assert_eq!(names[..4], ["disk", "disk (2)", "other", "disk (3)"]);
        assert_eq!(names[4].len(), NAME_MOST);
    }
}
