//! A moment at which the power may fail, and what may be lost then.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::state::State;

/// Which flushes the drive does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flushes {
    /// All: a lawful drive with a volatile cache.
    All,
    /// All but this one, counted from zero: it is answered and not done.
    Without(usize),
    /// None: a drive that lies. Force unit access is left out, too.
    None,
}

impl Flushes {
    /// Whether the flush with this number, counted from zero, is done.
    pub(crate) const fn does(self, number: usize) -> bool {
        match self {
            Self::All => true,
            Self::Without(ignored) => number != ignored,
            Self::None => false,
        }
    }
}

/// An atom that may be one of several versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsettled {
    /// The atom.
    pub atom: u32,
    /// The events that made its versions, the newest first; `None` for what was there in the beginning.
    pub versions: Vec<Option<u32>>,
}

/// A moment at which the power may fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The events before it have happened.
    pub at: usize,
    /// Possible losses at that moment, by atom.
    pub unsettled: Vec<Unsettled>,
    /// Commands that are kept or lost as a whole, in the order of their submission.
    pub whole: Vec<Whole>,
    /// The drive of each unsettled atom, from 0; empty if there is one drive.
    pub drives: Vec<u32>,
}

/// A command that a drive has promised to keep or lose as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whole {
    /// The event of its submission.
    pub event: u32,
    /// The atoms that it writes.
    pub atoms: Range<u32>,
}

impl Cut {
    /// Gives back what is `lost` of commands of which another atom shows: no more than that was lost of them. What is newer
    /// than such a command stays.
    pub(crate) fn make_whole(&self, lost: &mut Vec<(u32, Option<u32>)>) {
        for Whole { event, atoms } in self.whole.iter().rev() {
            let of_it = || self.unsettled.iter().filter(|it| atoms.contains(&it.atom));
            let shows = |unsettled: &Unsettled, lost: &[(u32, Option<u32>)]| {
                let older = lost.binary_search_by_key(&unsettled.atom, |&(atom, _)| atom);
                older.map_or(unsettled.versions[0], |at| lost[at].1)
            };
            if !of_it().any(|unsettled| shows(unsettled, lost) == Some(*event)) {
                continue;
            }
            let is_older = |it: &&Unsettled| shows(it, lost) < Some(*event);
            for unsettled in of_it().filter(is_older).collect::<Vec<_>>() {
                lost.retain(|&(atom, _)| atom != unsettled.atom);
                if unsettled.versions[0] != Some(*event) {
                    let at = lost.partition_point(|&(atom, _)| atom < unsettled.atom);
                    lost.insert(at, (unsettled.atom, Some(*event)));
                }
            }
        }
    }

    /// True if `state` has all or nothing of each command that is kept or lost as a whole.
    pub(crate) fn is_whole(&self, state: &State) -> bool {
        let mut lost = state.lost.clone();
        self.make_whole(&mut lost);
        lost == state.lost
    }

    /// Whether the power may leave `state`, if it fails once, at this moment.
    pub(crate) fn allows(&self, state: &State) -> bool {
        let may_be_lost = |&(atom, event): &(u32, Option<u32>)| {
            let of = self.unsettled.iter().find(|unsettled| unsettled.atom == atom);
            of.is_some_and(|of| of.versions[1..].contains(&event))
        };
        let is_sorted = state.lost.is_sorted_by(|one, next| one.0 < next.0);
        state.at == self.at
            && state.after.is_empty()
            && is_sorted
            && self.is_whole(state)
            && state.lost.iter().all(may_be_lost)
    }
}
