//! The promises of a zoned drive: the model of [`crate::Oracle`], for zones.
//!
//! A zone's *content* is a prefix: what was written from its beginning on, unit by unit. One change of a zone
//! that is not a write is under way at a time, and no write with it; writes may be, in order, and appends in
//! any.
//!
//! - Once a write has been acknowledged whose promise is kept at once, the zone is promised up to its end,
//!   everything below it included; a FLUSH promises each zone up to the end of what was acknowledged when it
//!   was submitted.
//! - After a power cut a zone holds a prefix of what was submitted, and no less than what was promised. Above
//!   it there is nothing. The write pointer stands at its end, where it tells anything.
//! - A zone whose reset was acknowledged never holds again what it held before. If the power failed before
//!   the end of a reset or a finish, it may have happened or not.
//! - What a Zone Random Write Area holds is promised with its acknowledgement. Of a write that the power cut
//!   off, each unit is there or not.
//! - Zeroes that Write Zeroes has left read as what was never written does. A unit of them counts as kept below the
//!   write pointer, and, where that tells nothing, as long as it continues the zone.
//! - What the drive says that it lost may end a zone earlier; if it says that it may have forgotten its zones,
//!   a zone may hold any prefix of what was ever submitted to it between two resets or power cuts. Appends that a
//!   power cut had cut off are among that, in any order: nobody was told where they lie, and a scan of flash finds
//!   them as it finds everything else that the lost zone table had given up.

mod held;
mod judge;
mod seen;

use std::fmt;

use held::{Earlier, Write, reads_as, zeroes};
pub use seen::{ZoneChange, ZoneProblem, ZoneSeen, ZoneStands, ZoneViolation};

#[derive(Clone, Default)]
struct Zone {
    /// The submitted units whose place is known; 0 where an append is in flight or failed.
    units: Vec<u64>,
    /// The end of what was acknowledged.
    acknowledged: u32,
    /// The end of what must be kept.
    promised: u32,
    writes: Vec<Write>,
    changing: Option<ZoneChange>,
    is_full: bool,
    /// A Zone Random Write Area: where it begins. `units` holds what is in it, too.
    area: Option<u32>,
    /// It has or had one since it was empty.
    had_area: bool,
    /// Earlier contents, for drives that may forget their zones.
    before: Vec<Earlier>,
    /// The loss that the drive reported: from this unit on.
    lost_from: Option<u32>,
    is_uncertain: bool,
}

impl Zone {
    /// Appends under way.
    fn appends(&self) -> Vec<Write> {
        self.writes.iter().filter(|write| write.is_append()).copied().collect()
    }

    /// Earlier contents, with what it is now as the last of them.
    fn with_what_was(&mut self) -> Vec<Earlier> {
        let mut before = std::mem::take(&mut self.before);
        let (appends, had_area) = (self.appends(), self.had_area);
        before.push(Earlier { appends, units: std::mem::take(&mut self.units), had_area });
        before
    }
}

impl fmt::Debug for Zone {
    /// The end of its content and everything else that a message needs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.units.len().saturating_sub(40);
        f.debug_struct("Zone")
            .field("length", &self.units.len())
            .field("last", &&self.units[shown..])
            .field("acknowledged", &self.acknowledged)
            .field("promised", &self.promised)
            .field("writes", &self.writes)
            .field("changing", &self.changing)
            .field("is_full", &self.is_full)
            .field("area", &self.area)
            .field("lost_from", &self.lost_from)
            .field("is_uncertain", &self.is_uncertain)
            .field("had_area", &self.had_area)
            .field("before", &self.before.iter().map(|it| &it.units).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Knows what each zone may be. See the module's documentation.
#[derive(Clone, Debug)]
pub struct ZoneOracle {
    zones: Vec<Zone>,
    capacity: u32,
    /// The next stamp.
    next: u64,
    /// Units whose loss the drive has named.
    pub reported: u64,
    /// Earlier contents are kept.
    has_history: bool,
}

impl ZoneOracle {
    /// For a drive with `zones` empty zones of `capacity` units.
    pub fn new(zones: u32, capacity: u32) -> Self {
        let zones = vec![Zone::default(); zones as usize];
        Self { zones, capacity, next: 1, reported: 0, has_history: true }
    }

    /// The same, of a drive that never says that it may have forgotten its zones: what they held before is not
    /// kept.
    #[must_use]
    pub fn without_history(self) -> Self {
        Self { has_history: false, ..self }
    }

    /// A write to unit `first` of `zone` is submitted, or an append if that is `None`. Returns its stamp.
    /// `at_once` says that its acknowledgement promises it.
    pub fn write(&mut self, zone: u32, first: Option<u32>, units: u32, at_once: bool) -> u64 {
        let stamp = self.next;
        self.next += 1;
        let zone = &mut self.zones[zone as usize];
        if let (Some(first), None) = (first, zone.area) {
            put(&mut zone.units, first, units, stamp);
        }
        zone.writes.push(Write { stamp, head: stamp, first, units, at_once });
        stamp
    }

    /// Write Zeroes to unit `first` of `zone`, which has and had no area, is submitted. Returns what names it.
    pub fn write_zeroes(&mut self, zone: u32, first: u32, units: u32, at_once: bool) -> u64 {
        let stamp = self.next;
        self.next += 1;
        let (zone, head) = (&mut self.zones[zone as usize], zeroes(stamp));
        put(&mut zone.units, first, units, head);
        zone.writes.push(Write { stamp, head, first: Some(first), units, at_once });
        stamp
    }

    /// `zone` has or had a Zone Random Write Area since it was empty.
    pub fn had_area(&self, zone: u32) -> bool {
        self.zones[zone as usize].had_area
    }

    /// A copy of `content` to unit `first` of `zone`, which has no area, is submitted. Returns what names it.
    pub fn copy(&mut self, zone: u32, first: u32, content: &[u64], at_once: bool) -> u64 {
        let stamp = self.next;
        self.next += 1;
        let zone = &mut self.zones[zone as usize];
        let units = content.len() as u32;
        put(&mut zone.units, first, units, 0);
        zone.units[first as usize..][..content.len()].copy_from_slice(content);
        zone.writes.push(Write { stamp, head: content[0], first: Some(first), units, at_once });
        stamp
    }

    /// The contents of units of `zone`, from the first on, as far as they were acknowledged and
    /// written.
    pub fn content(&self, zone: u32, first: u32, units: u32) -> &[u64] {
        let it = &self.zones[zone as usize];
        let end = it.acknowledged.min(first.saturating_add(units)).min(it.units.len() as u32);
        let known = it.units.get(first as usize..end as usize).unwrap_or_default();
        let written = known.iter().take_while(|&&stamp| stamp != 0).count();
        &known[..written]
    }

    /// The write with `stamp` was refused: nothing of it has happened, nor of the writes to the zone that
    /// were submitted after it.
    pub fn refused(&mut self, zone: u32, stamp: u64) {
        let it = &mut self.zones[zone as usize];
        let Some(at) = it.writes.iter().position(|write| write.stamp == stamp) else { return };
        // A write submitted after an earlier refusal may lie there by now.
        let Write { first, head, .. } = it.writes.remove(at);
        if let (Some(first), None) = (first, it.area)
            && it.units.get(first as usize) == Some(&head)
        {
            it.units.truncate(first as usize);
        }
    }

    /// The write with `stamp` has failed: it may have happened, in part.
    pub fn failed(&mut self, zone: u32, stamp: u64) {
        // A write stays what was submitted; of an append the place will never be known.
        let it = &mut self.zones[zone as usize];
        it.writes.retain(|write| write.stamp != stamp || write.first.is_none());
    }

    /// The write with `stamp` has ended well, at unit `first`.
    ///
    /// # Errors
    /// If something else lies there.
    pub fn written(&mut self, zone: u32, stamp: u64, first: u32) -> Result<(), Box<ZoneViolation>> {
        let it = &mut self.zones[zone as usize];
        let Some(at) = it.writes.iter().position(|write| write.stamp == stamp) else {
            return Ok(());
        };
        let write = it.writes.remove(at);
        let end = first + write.units;
        let is_taken = |unit: u32| it.units.get(unit as usize).is_some_and(|&other| other != 0);
        if write.first.is_none() && (first..end).any(is_taken) {
            let message = format!("#{stamp} was appended at {first}, where something lies: {it:?}");
            return Err(violation(zone, ZoneProblem::Wrong, message));
        }
        if write.first.is_none() || it.area.is_some() {
            put(&mut it.units, first, write.units, stamp);
        }
        it.acknowledged = it.acknowledged.max(end);
        if write.at_once || it.area.is_some() {
            it.promised = it.promised.max(end);
        }
        it.is_full |= it.area.is_none() && end == self.capacity;
        Ok(())
    }

    /// Units of `zone` that were submitted.
    pub fn submitted(&self, zone: u32) -> u32 {
        self.zones[zone as usize].units.len() as u32
    }

    /// Where the Zone Random Write Area of `zone` begins, if it has one.
    pub fn area(&self, zone: u32) -> Option<u32> {
        self.zones[zone as usize].area
    }

    /// A zone's Zone Random Write Area begins at `wp` now: a write or a commit has moved it.
    pub fn area_moved(&mut self, zone: u32, wp: u32) {
        let it = &mut self.zones[zone as usize];
        if it.area.is_some() {
            it.area = Some(wp);
            if wp == self.capacity {
                (it.area, it.is_full) = (None, true);
                it.units.resize(self.capacity as usize, 0);
                (it.acknowledged, it.promised) = (self.capacity, self.capacity);
            }
        }
    }

    /// A FLUSH is submitted: what it will promise of each zone.
    pub fn flush(&self) -> Vec<u32> {
        self.zones.iter().map(|zone| zone.acknowledged).collect()
    }

    /// The FLUSH that was to promise this has ended well. Zones that were reset meanwhile are left out.
    pub fn flushed(&mut self, ends: &[u32], resets: impl Fn(u32) -> bool) {
        for ((number, zone), &end) in (0..).zip(&mut self.zones).zip(ends) {
            if !resets(number) {
                zone.promised = zone.promised.max(end);
            }
        }
    }

    /// A change of `zone` is submitted.
    pub fn change(&mut self, zone: u32, change: ZoneChange) {
        self.zones[zone as usize].changing = Some(change);
    }

    /// The change has ended, well or not.
    pub fn changed(&mut self, zone: u32, is_done: bool) {
        let it = &mut self.zones[zone as usize];
        let Some(change) = it.changing.take().filter(|_| is_done) else { return };
        match change {
            ZoneChange::Reset => {
                let before = if self.has_history { it.with_what_was() } else { Vec::new() };
                *it = Zone { before, ..Zone::default() };
            }
            ZoneChange::Finish => {
                if let Some(area) = it.area.take() {
                    it.units.truncate(area as usize);
                    (it.acknowledged, it.promised) = (area, it.promised.min(area));
                }
                it.is_full = true;
            }
            ZoneChange::OpenWithArea => (it.area, it.had_area) = (Some(0), true),
            ZoneChange::Commit(end) => {
                if it.units.len() < end as usize {
                    it.units.resize(end as usize, 0);
                }
                it.promised = it.promised.max(end);
                it.acknowledged = it.acknowledged.max(end);
                self.area_moved(zone, end);
            }
        }
    }

    /// The drive has said that it lost unit `unit` of `zone`.
    pub fn note_lost(&mut self, zone: u32, unit: u32) {
        let it = &mut self.zones[zone as usize];
        it.lost_from = Some(it.lost_from.map_or(unit, |first| first.min(unit)));
        self.reported += 1;
    }

    /// The drive has said that it may have forgotten its zones.
    pub fn note_uncertain(&mut self) {
        self.zones.iter_mut().for_each(|zone| zone.is_uncertain = true);
    }

    /// A read of units of `zone`, from `first` on, while no change of it was under way: every unit that was
    /// acknowledged is there.
    ///
    /// # Errors
    /// If it is not.
    pub fn read(&self, zone: u32, first: u32, found: &[u64]) -> Result<(), Box<ZoneViolation>> {
        let it = &self.zones[zone as usize];
        for (unit, &stamp) in (first..).zip(found) {
            let known = it.units.get(unit as usize).copied().unwrap_or(0);
            let may_be = |write: &Write| {
                let is_there =
                    write.first.is_none_or(|first| (first..first + write.units).contains(&unit));
                write.stamp == stamp && is_there
            };
            let is_pending = it.writes.iter().any(may_be);
            let is_early = unit >= it.acknowledged && stamp == 0;
            if !reads_as(known, stamp) && !is_pending && !is_early {
                let message = format!("unit {unit} reads as #{stamp}, and it is #{known}: {it:?}");
                return Err(violation(zone, ZoneProblem::Wrong, message));
            }
        }
        Ok(())
    }
}

fn put(units: &mut Vec<u64>, first: u32, count: u32, stamp: u64) {
    let end = (first + count) as usize;
    if units.len() < end {
        units.resize(end, 0);
    }
    units[first as usize..end].fill(stamp);
}

#[expect(clippy::unnecessary_box_returns, reason = "as the errors that it is returned as")]
fn violation(zone: u32, problem: ZoneProblem, message: String) -> Box<ZoneViolation> {
    Box::new(ZoneViolation { zone, problem, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(stands: ZoneStands, wp: u32, content: &[u64]) -> ZoneSeen<'_> {
        ZoneSeen { stands, write_pointer: Some(wp), has_area: false, content }
    }

    #[test]
    fn a_promised_prefix_must_be_there() {
        let mut oracle = ZoneOracle::new(1, 4);
        let first = oracle.write(0, Some(0), 1, false);
        let second = oracle.write(0, Some(1), 1, true);
        oracle.written(0, first, 0).unwrap();
        oracle.written(0, second, 1).unwrap();
        let judged = |content: &[u64], wp| {
            let mut oracle = oracle.clone();
            oracle.judge(0, seen(ZoneStands::Active, wp, content)).map_err(|it| it.problem)
        };
        assert_eq!(judged(&[1, 2, 0, 0], 2), Ok(()));
        assert_eq!(judged(&[1, 0, 0, 0], 1), Err(ZoneProblem::Lost));
        assert_eq!(judged(&[1, 2, 0, 0], 3), Err(ZoneProblem::Pointer));
        assert_eq!(judged(&[2, 1, 0, 0], 2), Err(ZoneProblem::Wrong));
        assert_eq!(judged(&[1, 2, 0, 9], 2), Err(ZoneProblem::Above));
        let mut lost = oracle.clone();
        lost.note_lost(0, 1);
        assert_eq!(lost.judge(0, seen(ZoneStands::Active, 1, &[1, 0, 0, 0])), Ok(()));
    }

    #[test]
    fn written_zeroes_are_a_part_of_the_prefix() {
        let mut oracle = ZoneOracle::new(1, 4);
        let first = oracle.write(0, Some(0), 1, false);
        let zeroes = oracle.write_zeroes(0, 1, 2, true);
        let last = oracle.write(0, Some(3), 1, false);
        oracle.written(0, first, 0).unwrap();
        oracle.written(0, zeroes, 1).unwrap();
        oracle.written(0, last, 3).unwrap();
        assert_eq!(oracle.read(0, 0, &[1, 0, 0, 3]).map_err(|it| it.problem), Ok(()));
        assert!(oracle.read(0, 0, &[1, 1, 0, 3]).is_err());
        let judged = |stands, wp, content: &[u64]| {
            let mut oracle = oracle.clone();
            let seen = ZoneSeen { write_pointer: wp, ..seen(stands, 0, content) };
            let judged = oracle.judge(0, seen).map_err(|it| it.problem);
            // The remainder is judged alike at the next cut.
            judged.and_then(|()| oracle.judge(0, seen).map_err(|it| it.problem))
        };
        let full = |content: &[u64]| judged(ZoneStands::Full, None, content);
        assert_eq!(full(&[1, 0, 0, 3]), Ok(()));
        assert_eq!(full(&[1, 0, 0, 0]), Ok(()));
        assert_eq!(full(&[0, 0, 0, 0]), Err(ZoneProblem::Lost));
        assert_eq!(full(&[1, 1, 0, 3]), Err(ZoneProblem::Wrong));

        let mut oracle = ZoneOracle::new(1, 4);
        let zeroes = oracle.write_zeroes(0, 0, 2, false);
        let cut = |wp, content: &[u64]| {
            let mut oracle = oracle.clone();
            oracle.judge(0, seen(ZoneStands::Active, wp, content)).map_err(|it| it.problem)
        };
        assert_eq!([cut(0, &[0; 4]), cut(1, &[0; 4]), cut(2, &[0; 4])], [Ok(()); 3]);
        assert_eq!(cut(3, &[0; 4]), Err(ZoneProblem::Pointer));
        oracle.written(0, zeroes, 0).unwrap();
        oracle.flushed(&oracle.flush(), |_| false);
        let mut lost = oracle.clone();
        let seen = seen(ZoneStands::Active, 1, &[0; 4]);
        assert_eq!(lost.judge(0, seen).map_err(|it| it.problem), Err(ZoneProblem::Lost));
    }

    #[test]
    fn what_was_reset_does_not_come_back() {
        let mut oracle = ZoneOracle::new(1, 4);
        let first = oracle.write(0, Some(0), 2, true);
        oracle.written(0, first, 0).unwrap();
        oracle.change(0, ZoneChange::Reset);
        // Cut off: it may have happened or not.
        for content in [[1, 1, 0, 0], [0; 4]] {
            let (stands, wp) =
                if content[0] == 0 { (ZoneStands::Empty, 0) } else { (ZoneStands::Active, 2) };
            assert_eq!(oracle.clone().judge(0, seen(stands, wp, &content)), Ok(()));
        }
        oracle.changed(0, true);
        let old = oracle.clone().judge(0, seen(ZoneStands::Active, 2, &[1, 1, 0, 0]));
        assert_eq!(old.unwrap_err().problem, ZoneProblem::Wrong);
        oracle.note_uncertain();
        assert_eq!(oracle.judge(0, seen(ZoneStands::Active, 2, &[1, 1, 0, 0])), Ok(()));
    }

    /// Zeroes read as nothing does: the write pointer tells that a drive which forgot its zones has found them again.
    #[test]
    fn zeroes_that_were_reset_come_back_to_a_drive_that_forgot_its_zones() {
        let mut oracle = ZoneOracle::new(1, 4);
        let zeroes = oracle.write_zeroes(0, 0, 2, true);
        oracle.written(0, zeroes, 0).unwrap();
        oracle.change(0, ZoneChange::Reset);
        oracle.changed(0, true);
        let judged = |oracle: &ZoneOracle, wp| {
            let mut oracle = oracle.clone();
            oracle.judge(0, seen(ZoneStands::Active, wp, &[0; 4])).map_err(|it| it.problem)
        };
        assert_eq!(judged(&oracle, 2), Err(ZoneProblem::Pointer), "it has forgotten nothing");
        oracle.note_uncertain();
        assert_eq!([judged(&oracle, 1), judged(&oracle, 2)], [Ok(()); 2]);
        assert_eq!(judged(&oracle, 3), Err(ZoneProblem::Pointer), "more than there were");
    }

    #[test]
    fn a_copy_holds_what_its_sources_hold() {
        let mut oracle = ZoneOracle::new(2, 4);
        for units in [1, 2] {
            let first = oracle.submitted(0);
            let stamp = oracle.write(0, Some(first), units, true);
            oracle.written(0, stamp, first).unwrap();
        }
        assert_eq!(oracle.content(0, 0, 9), [1, 2, 2]);
        assert_eq!(oracle.content(0, 2, 1), [2]);
        assert_eq!((oracle.content(0, 3, 1), oracle.content(1, 0, 4)), (&[][..], &[][..]));
        let content = oracle.content(0, 0, 2).to_vec();
        let refused = oracle.copy(1, 0, &content, false);
        oracle.refused(1, refused);
        assert_eq!(oracle.submitted(1), 0);
        let copy = oracle.copy(1, 0, &content, true);
        let judged = |oracle: &ZoneOracle, content: &[u64], wp| {
            let mut oracle = oracle.clone();
            oracle.judge(1, seen(ZoneStands::Active, wp, content)).map_err(|it| it.problem)
        };
        assert_eq!(judged(&oracle, &[1, 0, 0, 0], 1), Ok(()), "it was cut off");
        assert_eq!(judged(&oracle, &[3, 0, 0, 0], 1), Err(ZoneProblem::Wrong), "not its number");
        oracle.written(1, copy, 0).unwrap();
        assert_eq!(judged(&oracle, &[1, 2, 0, 0], 2), Ok(()));
        assert_eq!(judged(&oracle, &[2, 2, 0, 0], 2), Err(ZoneProblem::Wrong));
        assert_eq!(judged(&oracle, &[1, 0, 0, 0], 1), Err(ZoneProblem::Lost));
    }

    /// Seeds 3323 and 5369 of zoned drives: what a zone with an area held, before it was reset, had holes.
    #[test]
    fn a_drive_that_forgot_its_zones_finds_what_an_area_had_committed() {
        let mut oracle = ZoneOracle::new(1, 6);
        oracle.change(0, ZoneChange::OpenWithArea);
        oracle.changed(0, true);
        let first = oracle.write(0, Some(1), 2, true);
        oracle.written(0, first, 1).unwrap();
        oracle.change(0, ZoneChange::Commit(4));
        oracle.changed(0, true);
        oracle.change(0, ZoneChange::Reset);
        oracle.changed(0, true);
        let judged = |oracle: &ZoneOracle, content: &[u64], wp| {
            let mut oracle = oracle.clone();
            oracle.judge(0, seen(ZoneStands::Active, wp, content)).map_err(|it| it.problem)
        };
        let old = [0, 1, 1, 0, 0, 0];
        assert_eq!(judged(&oracle, &old, 4), Err(ZoneProblem::Above), "it has forgotten nothing");
        oracle.note_uncertain();
        assert_eq!(judged(&oracle, &old, 4), Ok(()));
        assert_eq!(judged(&oracle, &[0, 1, 0, 0, 0, 0], 2), Ok(()), "a prefix of it");
        assert_eq!(judged(&oracle, &[0, 1, 1, 0, 0, 0], 2), Err(ZoneProblem::Above));
        assert_eq!(judged(&oracle, &[0, 2, 1, 0, 0, 0], 3), Err(ZoneProblem::Above));
        // From there on that is what the zone holds.
        oracle.judge(0, seen(ZoneStands::Active, 4, &old)).unwrap();
        assert_eq!(judged(&oracle, &old, 4), Ok(()));
        assert_eq!(judged(&oracle, &[0, 0, 1, 0, 0, 0], 4), Err(ZoneProblem::Lost));
    }

    /// After a cut that had given up appends under way, another loses the zone table.
    #[test]
    fn a_drive_that_forgot_its_zones_finds_what_was_submitted_and_nothing_else() {
        let mut oracle = ZoneOracle::new(1, 6);
        let first = oracle.write(0, Some(0), 1, true);
        oracle.written(0, first, 0).unwrap();
        oracle.write(0, None, 2, false);
        oracle.write(0, None, 1, false);
        oracle.judge(0, seen(ZoneStands::Active, 1, &[1, 0, 0, 0, 0, 0])).unwrap();
        oracle.note_uncertain();
        let judged = |content: &[u64]| {
            let kept = content.iter().take_while(|&&it| it != 0).count() as u32;
            oracle
                .clone()
                .judge(0, seen(ZoneStands::Active, kept, content))
                .map_err(|it| it.problem)
        };
        for right in [[1, 3, 2, 2, 0, 0], [1, 2, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]] {
            assert_eq!(judged(&right), Ok(()), "{right:?}");
        }
        // Never submitted; twice; in another order than the one known unit.
        for wrong in [[1, 9, 0, 0, 0, 0], [1, 3, 3, 0, 0, 0], [2, 2, 1, 0, 0, 0]] {
            assert_eq!(judged(&wrong), Err(ZoneProblem::Wrong), "{wrong:?}");
        }
    }

    #[test]
    fn appends_that_were_cut_off_may_lie_in_any_order() {
        let mut oracle = ZoneOracle::new(1, 6);
        oracle.write(0, None, 2, false);
        oracle.write(0, None, 1, false);
        for content in
            [[1, 1, 2, 0, 0, 0], [2, 1, 1, 0, 0, 0], [2, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
        {
            let kept = content.iter().take_while(|&&it| it != 0).count() as u32;
            let judged = oracle.clone().judge(0, seen(ZoneStands::Active, kept, &content));
            assert_eq!(judged, Ok(()), "{content:?}");
        }
        let twice = oracle.judge(0, seen(ZoneStands::Active, 2, &[2, 2, 0, 0, 0, 0]));
        assert_eq!(twice.unwrap_err().problem, ZoneProblem::Wrong);
    }
}
