//! Which blocks are a journal's, and what becomes of those that were.
//!
//! With [`Recognise::Superblock`] somebody who can read bytes looks for the journal ([`super::superblock::find`]) and
//! says where it is ([`super::ZonedBlock::found_journal`]): after a power cut, and whenever what it was found by has
//! changed. A journal that is elsewhere then, or in fewer blocks, leaves its zones: what is valid there moves to its
//! chunks, and the zones are free. Until all has moved, no block gets a place in the journal's zones.
//!
//! **Invariants**: while nobody has said where the journal is, no further block is a journal's, and none of those that
//! have a place in its zones loses it.

use std::ops::Range;

use super::config::{JournalConfig, Recognise};
use super::layout::Layout;
use super::superblock::{HEAD, Journal};

/// The fate of the journal's zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Release {
    /// The journal has them.
    None,
    /// They are to be left.
    Due,
    /// Blocks of theirs are being moved.
    Moving,
    /// A block could not be moved: they stay as they are until the journal is looked for again.
    GivenUp,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Recognition {
    config: JournalConfig,
    unit_bytes: u64,
    journal: Option<Journal>,
    /// The bytes that it was found by.
    sources: Vec<Range<u64>>,
    has_changed: bool,
    release: Release,
}

impl Recognition {
    pub(super) fn new(config: &JournalConfig, layout: &Layout) -> Self {
        Self {
            config: config.clone(),
            unit_bytes: layout.unit_bytes.into(),
            journal: None,
            sources: vec![HEAD],
            has_changed: false,
            release: Release::None,
        }
    }

    /// Whether the journal is looked for in superblocks.
    pub(super) fn is_by_superblock(&self) -> bool {
        self.config.recognise == Recognise::Superblock
    }

    /// Whether its zones are to be protected by the conventional member.
    #[inline]
    pub(super) const fn is_protected(&self) -> bool {
        self.config.protect
    }

    /// Where the journal is, as far as anybody has said so.
    pub(super) const fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Whether `block` of the device is a journal's; `says_log`: the command that writes it says so.
    pub(super) fn is_journal(&self, block: u64, says_log: bool) -> bool {
        let byte = block * self.unit_bytes;
        match self.config.recognise {
            Recognise::Class => says_log,
            Recognise::Range => {
                let (first, size) = (self.config.offset.get(), self.config.size.get());
                (first..first + size).contains(&byte)
            }
            Recognise::Superblock => self.journal().is_some_and(|it| it.contains(byte)),
        }
    }

    /// `blocks` of the device have changed.
    pub(super) fn wrote(&mut self, blocks: Range<u64>) {
        if self.is_by_superblock() && !self.has_changed {
            let (first, end) = (blocks.start * self.unit_bytes, blocks.end * self.unit_bytes);
            self.has_changed = self.sources.iter().any(|it| it.start < end && first < it.end);
        }
    }

    /// True once after what the journal was found by has changed.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// The journal is here, as `sources` say; blocks that are `mapped` have places in its zones.
    pub(super) fn found(
        &mut self,
        sources: Vec<Range<u64>>,
        journal: Journal,
        mapped: impl Iterator<Item = Range<u64>>,
    ) {
        (self.sources, self.journal) = (sources, Some(journal));
        self.review(mapped);
    }

    /// Lets go of the journal's zones if they hold what is not the journal's. Then all of it leaves: slots are given out
    /// in order, and a journal that has moved is written anew from end to end anyway.
    pub(super) fn review(&mut self, mut mapped: impl Iterator<Item = Range<u64>>) {
        let Some(journal) = self.journal.as_ref().filter(|_| self.is_by_superblock()) else {
            return;
        };
        let bytes = |it: Range<u64>| it.start * self.unit_bytes..(it.end - 1) * self.unit_bytes + 1;
        let is_left = mapped.any(|blocks| !journal.contains_all(&bytes(blocks)));
        self.release = match self.release {
            Release::None if is_left => Release::Due,
            Release::GivenUp => Release::Due,
            other => other,
        };
    }

    /// True while blocks leave the journal's zones: none gets a place there.
    #[inline]
    pub(super) fn is_releasing(&self) -> bool {
        self.release != Release::None
    }

    /// True if blocks should be moved now.
    #[inline]
    pub(super) fn is_release_due(&self) -> bool {
        self.release == Release::Due
    }

    pub(super) fn begin_move(&mut self) {
        self.release = Release::Moving;
    }

    /// Blocks have been moved, or could not be.
    pub(super) fn end_move(&mut self, well: bool) {
        self.release = if well { Release::Due } else { Release::GivenUp };
    }

    /// The journal's zones have been left.
    pub(super) fn released(&mut self) {
        self.release = Release::None;
    }

    /// The power is gone, and all that was known.
    pub(super) fn forget(&mut self) {
        (self.journal, self.sources) = (None, vec![HEAD]);
        (self.has_changed, self.release) = (false, Release::None);
    }
}
