//! Possible contents of a zone: writes in flight, and earlier content.

/// Marks zeroes that were written, beside the stamp of what has written them.
const ZEROES: u64 = 1 << 63;

/// The content of a unit that Write Zeroes with `stamp` has written.
pub(super) const fn zeroes(stamp: u64) -> u64 {
    stamp | ZEROES
}

pub(super) const fn is_zeroes(unit: u64) -> bool {
    unit & ZEROES != 0
}

/// True if a unit that holds `known` reads as `found`.
pub(super) const fn reads_as(known: u64, found: u64) -> bool {
    known == found || is_zeroes(known) && found == 0
}

/// A write under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Write {
    pub(super) stamp: u64,
    /// The content of its first unit then: the stamp, but of a copy.
    pub(super) head: u64,
    /// `None` of an append, whose place only its end tells.
    pub(super) first: Option<u32>,
    pub(super) units: u32,
    pub(super) at_once: bool,
}

/// The units submitted to a zone when it was reset, or when the power failed.
#[derive(Clone, Default)]
pub(super) struct Earlier {
    pub(super) units: Vec<u64>,
    /// Appends that were under way.
    pub(super) appends: Vec<Write>,
    /// It had a Zone Random Write Area: of what was committed some may never have been written.
    pub(super) had_area: bool,
}

impl Earlier {
    /// True if `content` may be a beginning of it, up to unit `end`.
    pub(super) fn begins(&self, content: &[u64], end: u32) -> bool {
        let (kept, above) = content.split_at(end as usize);
        if self.had_area {
            let same = kept.len() <= self.units.len()
                && self.units.iter().zip(kept).all(|(&known, &found)| reads_as(known, found));
            same && above.iter().all(|&stamp| stamp == 0)
        } else {
            is_prefix(&self.units, &self.appends, kept)
        }
    }
}

impl Write {
    pub(super) const fn is_append(&self) -> bool {
        self.first.is_none()
    }
}

/// True if `content` may be the beginning of a zone: known units, then appends that were under way, in some
/// order.
pub(super) fn is_prefix(units: &[u64], appends: &[Write], content: &[u64]) -> bool {
    let mut left = appends.to_vec();
    let mut at = 0;
    while at < content.len() {
        let stamp = content[at];
        match units.get(at) {
            Some(&known) if reads_as(known, stamp) => at += 1,
            Some(&known) if known != 0 => return false,
            _ => {
                let Some(which) = left.iter().position(|write| write.stamp == stamp) else {
                    return false;
                };
                let units = left.swap_remove(which).units as usize;
                let run = &content[at..(at + units).min(content.len())];
                if run.iter().any(|&other| other != stamp) {
                    return false;
                }
                at += run.len();
            }
        }
    }
    true
}
