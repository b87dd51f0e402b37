//! The judgement of what is left of zones after a power cut.

use super::held::{Earlier, Write, is_prefix, is_zeroes, reads_as};
use super::{
    Zone, ZoneChange, ZoneOracle, ZoneProblem, ZoneSeen, ZoneStands, ZoneViolation, violation,
};

impl Zone {
    /// The zeroes that were written to a unit, now or, if the zone table was lost, earlier.
    fn zeroes_at(&self, at: usize) -> Option<u64> {
        let before = self.before.iter().rev().filter(|_| self.is_uncertain);
        let mut all = std::iter::once(&self.units).chain(before.map(|earlier| &earlier.units));
        all.find_map(|units| units.get(at).copied().filter(|&unit| is_zeroes(unit)))
    }

    /// Units that are kept of a zone without holes, if it holds a part of `units`.
    fn kept_of(units: &[u64], seen: &ZoneSeen<'_>) -> usize {
        let end = seen.write_pointer.map_or(seen.content.len(), |end| end as usize);
        let is_zero = |at: usize| units.get(at).is_some_and(|&unit| is_zeroes(unit));
        let is_there = |&(at, &stamp): &(usize, &u64)| stamp != 0 || at < end && is_zero(at);
        seen.content.iter().enumerate().take_while(is_there).count()
    }
}

impl ZoneOracle {
    /// Judges what is left of `zone` after a power cut, and goes on from there.
    ///
    /// # Errors
    /// If that can't be.
    pub fn judge(&mut self, zone: u32, seen: ZoneSeen<'_>) -> Result<(), Box<ZoneViolation>> {
        let it = &self.zones[zone as usize];
        let offline = seen.stands == ZoneStands::Offline;
        let was_reset = it.changing == Some(ZoneChange::Reset);
        let kept = match &it.area {
            _ if offline => 0,
            Some(_) => self.judge_area(zone, &seen)?,
            None => self.judge_prefix(zone, &seen)?,
        };
        let broken = |problem| {
            violation(zone, problem, format!("{kept} units are kept, {seen:?}, of {it:?}"))
        };
        let is_written = matches!(seen.stands, ZoneStands::Empty | ZoneStands::Active);
        if is_written && it.area.is_none() && seen.write_pointer != Some(kept) {
            return Err(broken(ZoneProblem::Pointer));
        }
        let ends = it.is_full || it.changing == Some(ZoneChange::Finish);
        let last = it
            .writes
            .iter()
            .any(|write| write.first.is_none_or(|first| first + write.units == self.capacity))
            || kept == self.capacity;
        let may_be_full = ends || last || it.is_uncertain;
        let must_be_full = it.is_full && !was_reset && !it.is_uncertain;
        // An area stays with its zone, unless that was reset or finished, or the zone table was lost.
        let keeps_area =
            it.area.is_some() && it.changing.is_none() && seen.stands == ZoneStands::Active;
        if keeps_area && !seen.has_area && !it.is_uncertain {
            return Err(broken(ZoneProblem::State));
        }
        let is_right = match seen.stands {
            ZoneStands::Full => may_be_full,
            ZoneStands::Empty => kept == 0 && !must_be_full,
            ZoneStands::Active => !must_be_full,
            ZoneStands::ReadOnly | ZoneStands::Offline => true,
        };
        if !is_right {
            return Err(broken(ZoneProblem::State));
        }
        self.go_on(zone, kept, &seen);
        Ok(())
    }

    /// The units that are kept of a zone without an area.
    fn judge_prefix(&self, zone: u32, seen: &ZoneSeen<'_>) -> Result<u32, Box<ZoneViolation>> {
        let it = &self.zones[zone as usize];
        if it.had_area {
            return self.judge_with_holes(zone, seen);
        }
        // Contents of the time when it had an area may come back with their holes, if the drive
        // forgot its zones.
        let end = seen.end();
        let with_holes = |earlier: &&Earlier| earlier.had_area && earlier.begins(seen.content, end);
        if it.is_uncertain && it.before.iter().any(|earlier| with_holes(&earlier)) {
            return Ok(end);
        }
        // If the zone table was lost, it may hold what it held before. Zeroes that were written read as nothing does: of
        // two contents that read the same it is the one that ends at the write pointer.
        let ends_at = |kept: usize| seen.write_pointer.is_none_or(|end| end as usize == kept);
        let is_there = |earlier: &&Earlier| {
            let kept = Zone::kept_of(&earlier.units, seen);
            ends_at(kept)
                && earlier.begins(seen.content, kept as u32)
                && seen.content[kept..].iter().all(|&stamp| stamp == 0)
        };
        let earlier = it.before.iter().filter(|_| it.is_uncertain).rfind(is_there);
        let mut kept = Zone::kept_of(&it.units, seen);
        let is_this = is_prefix(&it.units, &it.appends(), &seen.content[..kept]);
        let is_clean = seen.content[kept..].iter().all(|&stamp| stamp == 0);
        if let (false, Some(earlier)) = (is_this && is_clean && ends_at(kept), earlier) {
            kept = Zone::kept_of(&earlier.units, seen);
        }
        if let Some(above) = seen.content[kept..].iter().find(|&&stamp| stamp != 0) {
            let message = format!("#{above} lies above its end at {kept}, {seen:?}, of {it:?}");
            return Err(violation(zone, ZoneProblem::Above, message));
        }
        let was_reset = it.changing == Some(ZoneChange::Reset);
        let promised = it.lost_from.map_or(it.promised, |lost| it.promised.min(lost));
        let promised = if was_reset || it.is_uncertain { 0 } else { promised };
        if (kept as u32) < promised && !(was_reset && kept == 0) {
            let message = format!("it ends at {kept}, and was promised up to {promised}: {it:?}");
            return Err(violation(zone, ZoneProblem::Lost, message));
        }
        let content = &seen.content[..kept];
        if !is_this && earlier.is_none() {
            let same = |at: usize| it.units.get(at).is_some_and(|&it| reads_as(it, content[at]));
            let differs = (0..kept).find(|&at| !same(at));
            let message = format!(
                "it holds {kept} units, and differs from {differs:?} on: {seen:?}, of {it:?}"
            );
            return Err(violation(zone, ZoneProblem::Wrong, message));
        }
        Ok(kept as u32)
    }

    /// The units that are kept of a zone that had an area, in which some were never written: all of it was
    /// promised, unit by unit.
    fn judge_with_holes(&self, zone: u32, seen: &ZoneSeen<'_>) -> Result<u32, Box<ZoneViolation>> {
        let it = &self.zones[zone as usize];
        let is_empty = seen.content.iter().all(|&stamp| stamp == 0);
        let was_reset = it.changing == Some(ZoneChange::Reset);
        if is_empty && was_reset {
            return Ok(0);
        }
        if it.is_uncertain || it.lost_from.is_some() {
            return Ok(seen.end());
        }
        let kept = seen.write_pointer.unwrap_or(it.promised);
        if kept < it.promised && !was_reset {
            let message = format!("it ends at {kept}: {it:?}");
            return Err(violation(zone, ZoneProblem::Lost, message));
        }
        for (unit, &stamp) in seen.content.iter().enumerate() {
            let known = it.units.get(unit).copied().unwrap_or(0);
            let is_above = unit >= kept as usize;
            let is_gone = is_above && stamp == 0;
            let is_new = known == 0 && it.appends().iter().any(|write| write.stamp == stamp);
            if !reads_as(known, stamp) && !is_gone && !is_new {
                let message = format!("unit {unit} is #{stamp}, not #{known}: {it:?}");
                return Err(violation(zone, ZoneProblem::Lost, message));
            }
        }
        Ok(kept)
    }

    /// The units below the area of a zone that has one.
    fn judge_area(&self, zone: u32, seen: &ZoneSeen<'_>) -> Result<u32, Box<ZoneViolation>> {
        let it = &self.zones[zone as usize];
        if it.is_uncertain || it.lost_from.is_some() {
            return Ok(seen.end());
        }
        let was_reset = it.changing == Some(ZoneChange::Reset);
        let is_empty = seen.content.iter().all(|&stamp| stamp == 0);
        if was_reset && is_empty {
            return Ok(0);
        }
        let was_finished = it.changing == Some(ZoneChange::Finish);
        for (unit, &stamp) in (0..).zip(seen.content) {
            let known = it.units.get(unit as usize).copied().unwrap_or(0);
            let covers = |write: &Write| {
                let first = write.first.unwrap_or(0);
                write.stamp == stamp && (first..first + write.units).contains(&unit)
            };
            let is_new = it.writes.iter().any(covers);
            let is_given_up = was_finished && stamp == 0 && unit >= it.area.unwrap_or(0);
            if !reads_as(known, stamp) && !is_new && !is_given_up {
                let message = format!("unit {unit} of its area is #{stamp}, not #{known}: {it:?}");
                return Err(violation(zone, ZoneProblem::Lost, message));
            }
        }
        Ok(seen.write_pointer.unwrap_or(self.capacity))
    }

    /// The content seen becomes the content known.
    fn go_on(&mut self, zone: u32, kept: u32, seen: &ZoneSeen<'_>) {
        let it = &mut self.zones[zone as usize];
        let full = seen.stands == ZoneStands::Full;
        let area = seen.write_pointer.filter(|_| seen.has_area);
        let length = if area.is_some() { seen.content.len() } else { kept as usize };
        let mut units = seen.content[..length.min(seen.content.len())].to_vec();
        for (at, unit) in units.iter_mut().enumerate().take(kept as usize).filter(|it| *it.1 == 0) {
            *unit = it.zeroes_at(at).unwrap_or(0);
        }
        let gives_up = it.units.len() > kept as usize || it.writes.iter().any(Write::is_append);
        let before = if self.has_history && (it.is_uncertain || gives_up) {
            it.with_what_was()
        } else {
            std::mem::take(&mut it.before)
        };
        while area.is_some() && units.len() > kept as usize && units.last() == Some(&0) {
            units.pop();
        }
        let end = units.len() as u32;
        let had_area = it.had_area || units[..end.min(kept) as usize].contains(&0);
        *it = Zone {
            units,
            acknowledged: end,
            promised: end,
            is_full: full,
            area,
            had_area: had_area && (kept > 0 || area.is_some() || full),
            before,
            ..Zone::default()
        };
    }
}
