//! Whether there is power.

use leyden_sim::Time;

/// Whether there is power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::controller) enum PowerState {
    On,
    Off,
    /// Ready from this time on.
    Recovering(Time),
    /// Recovered, but blocks have gone bad, and there is no room for another dump: the last one stays
    /// where it is, nothing is written any more, and so nothing more needs to be saved.
    ReadOnly,
}
