//! The interface of a kind of drive that is drawn, run, guided, shrunk and kept ([`Run`]), and the
//! kinds by name ([`Subject`]). The kinds themselves are in [`crate::conventional`],
//! [`crate::zoned`] and [`crate::zoned_block`].

use std::fmt::Debug;

use leyden_sim::Rng;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Outcome, Round};

/// A run written out: what a seed draws, a file keeps, and shrinking makes small.
pub trait Run:
    Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The kind of its drive.
    const SUBJECT: Subject;

    /// The options that `seed` draws.
    fn drawn(seed: u64) -> Self;
    /// The seed that its commands are drawn from.
    fn seed(&self) -> u64;
    /// Whether a run of this is possible at all.
    ///
    /// # Errors
    /// Says why not.
    fn checked(&self) -> Result<(), String>;
    /// Runs it once; the story of its last rounds too, if it `tells`.
    fn play(&self, tells: bool) -> (Outcome, Vec<String>);
    /// The same run with every feature off, every policy the first, and every number as small as it may be: where
    /// shrinking leads to.
    #[must_use]
    fn plain(&self) -> Self;
    /// Changes that shrinking cannot find by itself.
    fn reductions() -> &'static [fn(&mut Self)] {
        &[]
    }
    /// Rounds that can be left out one by one.
    fn rounds(&self) -> &[Round] {
        &[]
    }
    /// The same, to change them.
    fn rounds_mut(&mut self) -> Option<&mut Vec<Round>> {
        None
    }
    /// Ends the run after so many power cuts.
    fn end_after(&mut self, cuts: u64);
    /// How much there is left of it, for a message.
    fn extent(&self) -> String;

    /// Takes parts of `blind`, which its seed draws.
    fn cross(&mut self, blind: Self, rng: &mut Rng);
    /// Aims its cuts at events.
    fn aim(&mut self, rng: &mut Rng);
    /// Every name that a campaign should reach.
    fn names() -> Vec<String>;
}

/// A kind of drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// A conventional drive, and what stands on it.
    #[default]
    Conventional,
    /// A zoned drive.
    Zoned,
    /// A block device on a conventional and a zoned drive.
    ZonedBlock,
}

impl Subject {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Conventional, Self::Zoned, Self::ZonedBlock];

    /// Its name in lists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conventional => "conventional",
            Self::Zoned => "zoned",
            Self::ZonedBlock => "zoned-block",
        }
    }

    /// The argument of `leyden torture` that asks for it, with a space before it.
    pub const fn argument(self) -> &'static str {
        match self {
            Self::Conventional => "",
            Self::Zoned => " --zoned",
            Self::ZonedBlock => " --zoned-block",
        }
    }
}
