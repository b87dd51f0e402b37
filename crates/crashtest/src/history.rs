//! The interface of a recorded run to a crash test: commands of a drive, or calls on files.

use std::fmt;

use crate::cut::{Cut, Flushes};
use crate::files::Persistence;
use crate::state::State;

/// A sync of a run: a flush of a drive, or an `fsync` of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sync {
    /// Its number among all syncs of the recording, from 0.
    pub number: usize,
    /// The event with which it ended well.
    pub ended: usize,
    /// When that was, by the clock of the recording.
    pub time_ns: u64,
    /// The call, in words.
    pub call: String,
}

/// One recorded run, and the states that power cuts in it may leave.
pub trait History: fmt::Debug {
    /// Persistence rules of the files; `None` if a drive was recorded.
    fn files(&self) -> Option<Persistence> {
        None
    }

    /// Bytes that are kept or lost as a whole.
    fn atom_bytes(&self) -> u32;

    /// The lines that were acknowledged, in order.
    fn acks(&self) -> &[String];

    /// How many lines had been acknowledged when the events before `at` had happened.
    fn acks_before(&self, at: usize) -> usize;

    /// The moment after everything: nothing of the software's is lost then.
    fn closed(&self) -> usize;

    /// The moments at which a power cut matters, in order: just before each sync ends, and after everything.
    fn moments(&self) -> Vec<usize>;

    /// The moments that are looked at if the sync that `ended` then is left out: those that its loss may last to.
    fn moments_after(&self, ended: usize) -> Vec<usize>;

    /// Possible losses at each of the moments that `wanted` names by their event.
    fn cuts(&self, flushes: Flushes, wanted: &dyn Fn(usize) -> bool) -> Vec<Cut>;

    /// The syncs that ended well, in the order of their beginnings.
    fn syncs(&self) -> Vec<Sync>;

    /// Syncs of the run, and writes that are syncs of their own.
    fn sync_counts(&self) -> (usize, usize);

    /// Takes out of `state` what is lost by name only: the image is the same without it.
    fn normalize(&self, state: &mut State);

    /// Checks that a state is one of this run's; the error describes the fault.
    ///
    /// # Errors
    /// If the run has no such state.
    fn check(&self, state: &State) -> Result<(), String>;

    /// The keys of images.
    fn keys(&self) -> Box<dyn Keys + '_>;
}

/// Keys that distinguish the images of a run's states.
pub trait Keys: fmt::Debug {
    /// Equal for equal images, and otherwise different.
    fn of(&self, state: &State) -> u128;
}
