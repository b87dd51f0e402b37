//! Zombie hints: marks the units that they name, and counts them.
//!
//! Hints cost nothing but the command that they come with. An invalid hint (data beyond the drive, never
//! written, trimmed) is counted and ignored.

use leyden_ftl::page_mapped::Announced;
use leyden_nand::Lpn;
use leyden_sim::{Time, counters};
use serde::Serialize;

use super::{Conventional, Ssd};
use crate::controller::{CommandTable, RequestId};
use crate::units::Units;
use crate::{Action, Hint, MOST_RANGES, Payload, SECTOR_BYTES, Status};

counters! {
    /// Hints received, and the units that they named. The FTL counts their effect.
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

impl<P: Payload> Ssd<P> {
    /// Mapping units that are zombies at the moment: the host has said that it will overwrite them.
    pub fn zombie_units(&self) -> u64 {
        self.namespace().ftl.data().zombies().units()
    }

    /// Mapping units whose announced write has not come yet: the zombies, less those whose new version
    /// is in the write buffer already.
    pub fn expected_units(&self) -> u64 {
        self.namespace().ftl.data().zombies().expected_units()
    }
}

impl<P: Payload> Conventional<P> {
    /// A write is in the drive: the host has kept what it announced of these units.
    // Inlined: most drives follow no writes.
    #[inline(always)]
    pub(super) fn note_write(&mut self, now: Time, units: Units, is_log: bool) {
        if self.ftl.data().follows_writes() {
            self.ftl.note_write(now, units.first(), units.count(), is_log);
        }
    }

    /// A trim, or zeroes, is in the drive: as [`Conventional::note_write`].
    #[inline]
    pub(super) fn note_trim(&mut self, units: Units) {
        if self.ftl.data().follows_writes() {
            self.ftl.note_trim_of(units.first(), units.count());
        }
    }

    /// Handles the hint that came with a command, if one did.
    #[inline]
    pub(super) fn on_hint(&mut self, now: Time, hint: Option<Hint>) {
        if let Some(hint) = hint {
            self.hear(now, hint);
        }
    }

    #[inline(never)]
    fn hear(&mut self, now: Time, hint: Hint) {
        self.counters.hints.piggybacked += 1;
        if self.contains(hint) {
            self.mark(now, hint);
        } else {
            self.counters.hints.beyond_end += 1;
        }
    }

    /// A dataset management command with the attribute "write prepare". Refused whole if a range is
    /// not the drive's.
    #[inline(never)]
    pub(super) fn write_prepare(
        &mut self,
        now: Time,
        id: RequestId,
        commands: &mut CommandTable<P>,
    ) {
        let ranges = match &mut commands.request_mut(id).action {
            Action::WritePrepare { ranges } => std::mem::take(ranges),
            _ => Box::default(),
        };
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
        commands.complete(now, id, status);
    }

    /// `hint` will be heard when its command is taken in.
    #[inline]
    pub(super) fn expect_hint(&self, hint: Hint) {
        if self.contains(hint) {
            self.units_named(hint).for_each(|lpn| self.ftl.map().expect(lpn));
        }
    }

    /// The units that `hint` names a part of.
    #[inline]
    fn units_named(&self, hint: Hint) -> impl Iterator<Item = Lpn> + use<P> {
        // A power of two.
        let unit_bytes = self.unit_sectors() * SECTOR_BYTES;
        let shift = unit_bytes.trailing_zeros();
        let (first, end) = (hint.first_byte(), hint.end_byte() + unit_bytes - 1);
        ((first >> shift) as u32..(end >> shift) as u32).map(Lpn)
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
