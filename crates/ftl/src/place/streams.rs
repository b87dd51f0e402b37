//! All streams of a drive: those of its placement policy, and those set aside for data of a kind.

use super::{PlacementConfig, StreamId};
use crate::logs::LogConfig;

/// Which stream each unit goes to.
#[derive(Clone, Debug)]
pub struct Streams {
    policy: PlacementConfig,
    /// Streams of the policy: the first ones.
    regions: u8,
    /// Where logs go, if not where other data does.
    log: Option<StreamId>,
    /// Where copies of zombies go, if not where other copies do. After those that the host writes to.
    zombie: Option<StreamId>,
    /// Where data goes whose block is emptied for its wear, if any is. The last one.
    level: Option<StreamId>,
}

impl Streams {
    /// One stream for everything, as a place holder until a drive's own are known.
    pub(crate) fn none() -> Self {
        Self {
            policy: PlacementConfig::default(),
            regions: 1,
            log: None,
            zombie: None,
            level: None,
        }
    }

    /// Those of a drive: its placement policy's, one for logs if they are told apart, one for copies
    /// of zombies if those are kept apart, and one for data moved to level wear if `levels`.
    pub fn new(
        placement: &PlacementConfig,
        log_stream: &LogConfig,
        zombie_block: bool,
        levels: bool,
    ) -> Self {
        let regions = placement.streams();
        let has_log = !matches!(log_stream, LogConfig::Off(_));
        let log = has_log.then_some(StreamId(regions));
        let zombie = zombie_block.then_some(StreamId(regions + u8::from(has_log)));
        let before = regions + u8::from(has_log) + u8::from(zombie_block);
        let level = levels.then_some(StreamId(before));
        Self { policy: placement.clone(), regions, log, zombie, level }
    }

    /// How many there are.
    #[inline]
    pub fn count(&self) -> u8 {
        self.of_host() + u8::from(self.zombie.is_some()) + u8::from(self.level.is_some())
    }

    /// How many of them the host writes to: the first ones.
    #[inline]
    pub const fn of_host(&self) -> u8 {
        self.regions + self.log.is_some() as u8
    }

    /// Where logs go, if it is a stream of its own.
    #[inline]
    pub const fn log(&self) -> Option<StreamId> {
        self.log
    }

    /// Where copies of zombies go, if it is a stream of its own.
    #[inline]
    pub const fn zombie(&self) -> Option<StreamId> {
        self.zombie
    }

    /// Where data goes whose block is emptied for its wear, if any is.
    #[inline]
    pub const fn level(&self) -> Option<StreamId> {
        self.level
    }

    /// The stream for a unit the host wrote, which is no log, and whose older version is of stream `old`,
    /// if there is one. A log and a zombie block tell nothing of what lies in them.
    #[inline]
    pub fn for_host(&self, old: Option<StreamId>) -> StreamId {
        self.policy.for_host(old.filter(|old| old.0 < self.regions))
    }

    /// The stream for a unit that garbage collection copies out of a block of stream `from`, and that
    /// is no zombie. A log that lives to be copied does not go round: it is cold.
    #[inline]
    pub fn for_gc(&self, from: StreamId) -> StreamId {
        self.policy.for_gc(self.region(from))
    }

    /// The policy's stream that data of `stream` is known to be of; the coldest if that is none of them.
    #[inline]
    pub fn region(&self, stream: StreamId) -> StreamId {
        if stream.0 < self.regions { stream } else { StreamId(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dac::Dac;
    use super::*;

    #[test]
    fn a_zombie_block_is_no_region() {
        let placement = PlacementConfig::Dac(Dac { regions: 3 });
        let streams = Streams::new(&placement, &LogConfig::default(), true, false);
        assert_eq!((streams.of_host(), streams.count()), (3, 4));
        assert_eq!(streams.zombie(), Some(StreamId(3)));
        assert_eq!(streams.for_host(Some(StreamId(3))), StreamId(0));
        assert_eq!(streams.for_host(Some(StreamId(0))), StreamId(1));
        assert_eq!(streams.for_gc(StreamId(3)), StreamId(0));
        assert_eq!(streams.for_gc(StreamId(2)), StreamId(1));
    }

    #[test]
    fn logs_come_before_zombies_and_are_cold_when_copied() {
        let placement = PlacementConfig::Dac(Dac { regions: 3 });
        let log_stream = LogConfig::by_name("recognised").unwrap();
        let streams = Streams::new(&placement, &log_stream, true, true);
        assert_eq!((streams.of_host(), streams.count()), (4, 6));
        assert_eq!(streams.level(), Some(StreamId(5)));
        assert_eq!(
            streams.for_gc(StreamId(5)),
            StreamId(0),
            "what was not overwritten for so long is cold"
        );
        assert_eq!((streams.log(), streams.zombie()), (Some(StreamId(3)), Some(StreamId(4))));
        assert_eq!(streams.for_host(Some(StreamId(3))), StreamId(0));
        assert_eq!(streams.for_gc(StreamId(3)), StreamId(0));
    }
}
