//! Writes that hints had announced.
//!
//! **What lives here**: which units are announced and not yet written, and how many writes were.
//! **What doesn't**: what a drive makes of hints.
//!
//! **Invariants**: a write or a trim of a unit takes its announcement back.

use super::extents::Cover;
use super::sample::Sample;

/// Announcements, and what came of them.
#[derive(Default)]
pub(super) struct Announced {
    /// Units that are announced and not yet written.
    pending: Cover,
    /// By the class's number: units written, and how many of them were announced.
    written: Vec<(u64, u64)>,
    /// Units overwritten that were announced.
    overwritten: u64,
}

impl Announced {
    /// A hint names `begin..end`.
    pub(super) fn hint(&mut self, begin: u64, end: u64) {
        self.pending.add(begin, end);
    }

    /// How many extents are kept.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Leaves out what is not in `sample`.
    pub(super) fn thin(&mut self, sample: Sample) {
        self.pending.thin(sample);
    }

    /// `begin..end` is overwritten, each of its units standing for `weight`; to be told before [`Self::write`].
    pub(super) fn overwrite(&mut self, begin: u64, end: u64, weight: u64) {
        self.overwritten += self.pending.overlap(begin, end) * weight;
    }

    /// `begin..end` is written, with data of a class; what is announced counts `weight` times.
    pub(super) fn write(&mut self, class: u8, begin: u64, end: u64, weight: u64) {
        let class = usize::from(class);
        if self.written.len() <= class {
            self.written.resize(class + 1, (0, 0));
        }
        let (written, announced) = &mut self.written[class];
        *written += end - begin;
        *announced += self.pending.remove(begin, end) * weight;
    }

    /// Trims units that lie wholly within `begin..end`.
    pub(super) fn trim(&mut self, begin: u64, end: u64) {
        if begin < end {
            self.pending.remove(begin, end);
        }
    }

    /// Units written that were announced.
    pub(super) fn units(&self) -> u64 {
        self.written.iter().map(|(_, announced)| announced).sum()
    }

    /// Units overwritten that were announced.
    pub(super) fn overwritten_units(&self) -> u64 {
        self.overwritten
    }

    /// By class, in order: units written, and how many of them were announced.
    pub(super) fn by_class(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.written.iter().copied()
    }
}
