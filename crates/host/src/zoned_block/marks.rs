//! Marks of progress: figures of which one changes whenever the layer has done something. And when
//! it has something to do next.

use leyden_device::Payload;
use leyden_sim::Time;

use super::ZonedBlock;
use super::stored::Stored;
use super::zones::ZoneMarks;
use crate::Powered;

/// When the layer has something to do if no command begins or ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// Something of its own.
    pub(super) own: Option<Time>,
    /// Nothing up to and including then, whatever happens below; `None` if something is left to be done.
    pub(super) quiet: Option<Time>,
}

/// See the module.
#[derive(PartialEq, Eq)]
pub(super) struct Marks {
    /// Jobs that were begun and ended at once.
    jobs: (u64, u64),
    sent: u64,
    ended: usize,
    starved: usize,
    zones: ZoneMarks,
    is_reclaim_asked: bool,
    commit: (u32, bool),
    due: (Option<Time>, Option<Time>),
    release: (bool, bool),
}

impl Marks {
    #[inline]
    pub(super) fn of<P, C, Z>(device: &ZonedBlock<P, C, Z>) -> Self
    where
        P: Payload,
        C: Powered<Stored<P>>,
        Z: Powered<Stored<P>>,
    {
        Self {
            jobs: (device.stats.totals.reclaimed, device.stats.totals.aborted),
            sent: device.members.count(),
            ended: device.ended.len(),
            starved: device.starved.len(),
            zones: device.zones.marks(),
            is_reclaim_asked: device.reclaim.is_asked(),
            commit: (device.committer.stage(), device.committer.is_wanted()),
            due: (device.upkeep.look_at, device.upkeep.commit_at),
            release: (device.recognition.is_releasing(), device.recognition.is_release_due()),
        }
    }
}
