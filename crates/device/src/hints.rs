//! What the drive makes of zombie hints: it marks what they name, and counts.
//!
//! Hints cost nothing but the command that they come with. One that says what is not so (data beyond
//! the drive, never written, trimmed) is counted and does no harm.

use leyden_ftl::page_mapped::Announced;
use leyden_nand::Lpn;
use leyden_sim::{Time, counters};
use serde::Serialize;

use crate::requests::RequestId;
use crate::{
    Action, BlockDevice, Completion, Hint, MOST_RANGES, Payload, SECTOR_BYTES, Ssd, Status,
};

/// Bytes of a range in a dataset management command (NVM Command Set 1.0, figure 41).
const RANGE_BYTES: u64 = 16;

counters! {
    /// Hints heard, and what they named. What came of them is counted by the FTL.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct HintStats {
        /// Hints that came with a read or a write.
        pub piggybacked: u64,
        /// Commands of their own.
        pub commands: u64,
        /// Ranges in those.
        pub ranges: u64,
        /// Mapping units that were live and became zombies.
        pub units: u64,
        /// Units that were named again before they were overwritten.
        pub repeated_units: u64,
        /// Units that hold no data: never written, or trimmed. Ignored.
        pub empty_units: u64,
        /// Piggybacked hints that go beyond the drive's end. Ignored whole.
        pub beyond_end: u64,
    }
}

/// Bytes that a command of `ranges` brings with it.
pub(crate) const fn bytes_of(ranges: &[Hint]) -> u64 {
    ranges.len() as u64 * RANGE_BYTES
}

impl<P: Payload> Ssd<P> {
    /// Mapping units that are zombies at the moment: the host has said that it will overwrite them.
    pub fn zombie_units(&self) -> u64 {
        self.ftl.data().zombies().units()
    }

    /// Mapping units whose announced write has not come yet: the zombies, less those whose new version
    /// is in the write buffer already.
    pub fn expected_units(&self) -> u64 {
        self.ftl.data().zombies().expected_units()
    }

    /// A write is in the drive: the host has kept what it announced of these units.
    #[inline]
    pub(crate) fn note_write(&mut self, now: Time, id: RequestId, is_log: bool) {
        if self.ftl.data().follows_writes() {
            let units = self.requests.get(id).units;
            self.ftl.note_write(now, units.first(), units.count(), is_log);
        }
    }

    /// A trim, or zeroes, is in the drive: as [`Ssd::note_write`].
    #[inline]
    pub(crate) fn note_trim(&mut self, id: RequestId) {
        if self.ftl.data().follows_writes() {
            let units = self.requests.get(id).units;
            self.ftl.note_trim_of(units.first(), units.count());
        }
    }

    /// A hint has come with a command, or none.
    #[inline]
    pub(crate) fn hear(&mut self, now: Time, hint: Option<Hint>) {
        let Some(hint) = hint else { return };
        self.counters.hints.piggybacked += 1;
        if self.contains(hint) {
            self.mark(now, hint);
        } else {
            self.counters.hints.beyond_end += 1;
        }
    }

    /// A dataset management command with the attribute "write prepare". Refused whole if a range is
    /// not the drive's.
    pub(crate) fn write_prepare(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        let ranges = self.take_ranges(id);
        let status = if !(1..=MOST_RANGES).contains(&ranges.len()) {
            Status::InvalidField
        } else if !ranges.iter().all(|&hint| self.contains(hint)) {
            Status::LbaOutOfRange
        } else {
            self.counters.hints.commands += 1;
            self.counters.hints.ranges += ranges.len() as u64;
            for &hint in &ranges {
                self.mark(now, hint);
            }
            Status::Success
        };
        self.complete(now, id, status, out);
    }

    /// The ranges that the command brought, taken out of it.
    fn take_ranges(&mut self, id: RequestId) -> Box<[Hint]> {
        match &mut self.requests.get_mut(id).action {
            Action::WritePrepare { ranges } => std::mem::take(ranges),
            _ => Box::default(),
        }
    }

    /// `hint` will be heard when its command is taken in.
    #[inline]
    pub(crate) fn expect_hint(&self, hint: Hint) {
        if self.contains(hint) {
            self.ftl.map().warm(self.units_named(hint));
        }
    }

    /// The units that `hint` names a part of.
    #[inline]
    fn units_named(&self, hint: Hint) -> impl Iterator<Item = Lpn> + use<P> {
        let unit_bytes = self.unit_sectors() * SECTOR_BYTES;
        let (first, end) = (hint.first_byte(), hint.end_byte());
        ((first / unit_bytes) as u32..end.div_ceil(unit_bytes) as u32).map(Lpn)
    }

    fn contains(&self, hint: Hint) -> bool {
        hint.end_byte() <= self.capacity_sectors() * SECTOR_BYTES
    }

    fn mark(&mut self, now: Time, hint: Hint) {
        for lpn in self.units_named(hint) {
            let buffer = &self.writer.buffer;
            let announced = self.ftl.announce(now, lpn, || buffer.read(lpn).is_some());
            let stats = &mut self.counters.hints;
            *match announced {
                Announced::New => &mut stats.units,
                Announced::Again => &mut stats.repeated_units,
                Announced::Nothing => &mut stats.empty_units,
            } += 1;
        }
    }
}
