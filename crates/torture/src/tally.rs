//! Counts of a run.

use serde::{Deserialize, Serialize};

macro_rules! tally {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of a run.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Tally {
            $($(#[$doc])* #[serde(default)] pub $name: u64,)*
        }

        impl Tally {
            /// All of its numbers.
            pub(crate) fn numbers(&self) -> Vec<u64> {
                vec![$(self.$name),*]
            }

            /// Adds another run's.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

tally! {
    /// Power cuts.
    cuts,
    /// Those of them that interrupted a recovery.
    cuts_in_recovery,
    /// Those that came before the dump of the cut before them had ended, the power having been back.
    cuts_in_dump,
    /// Those whose losses and costs were held against a model of their own.
    cuts_checked,
    /// Commands submitted, those that only look after a cut included.
    commands,
    /// Commands in flight at cuts.
    cut_off,
    /// Commands that ended with a write fault.
    write_faults,
    /// Cuts of drives that could only be read, because blocks had gone bad.
    read_only_cuts,
    /// Units whose promised content the drive said that it lost, as it must.
    reported_losses,
    /// Units whose place the drive said that it forgot, as it must: it found some version of them.
    uncertain_units,
    /// Those of all of them that were seen to be lost.
    confirmed_losses,
    /// Units that were dirty in a page cache, or being written out of it, at cuts.
    cached_losses,
    /// Units that a page cache could not write out.
    unwritten_units,
    /// Drives that were saved and loaded amid their run.
    reloads,
}
