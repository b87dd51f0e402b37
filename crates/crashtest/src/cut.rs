//! A moment at which the power may fail, and what may be lost then.

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
}

impl Cut {
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
            && state.lost.iter().all(may_be_lost)
    }
}
