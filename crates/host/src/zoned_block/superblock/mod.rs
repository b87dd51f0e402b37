//! Where a file system keeps its journal, as its superblock says: ext4 and XFS.
//!
//! **What lives here**: a [`Search`], which asks for bytes of the device and ends with where the journal lies. **What
//! doesn't**: reading the device, and what is done about journals.
//!
//! A superblock decides where blocks are put, never their content: one that lies costs copies, not data.
//!
//! **Invariants**
//! - Any bytes end a search, after [`MAX_READS`] reads at most.
//! - What is found lies on the device; its ranges are in order and do not touch.

mod ext4;
mod fields;
pub mod fuzz;
#[cfg(test)]
mod tests;
mod xfs;

use std::ops::Range;

/// Bytes of the device that both kinds of superblocks lie in.
pub const HEAD: Range<u64> = 0..4096;

/// Reads of a search at most: the superblock, a group descriptor, an inode, and the nodes of its extent tree.
pub const MAX_READS: usize = 64;

/// Ranges of a journal at most: more are not worth their place in the tables.
const MAX_RANGES: usize = 1024;

/// Where a journal is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Journal {
    /// In these bytes of the device.
    At(Vec<Range<u64>>),
    /// Not on this device, or not known.
    Nowhere(Why),
}

impl Journal {
    /// Whether the byte at `at` is a journal's.
    pub fn contains(&self, at: u64) -> bool {
        let Self::At(ranges) = self else { return false };
        let next = ranges.partition_point(|range| range.start <= at);
        next.checked_sub(1).is_some_and(|last| ranges[last].contains(&at))
    }

    /// Whether all of `bytes` are.
    pub fn contains_all(&self, bytes: &Range<u64>) -> bool {
        let Self::At(ranges) = self else { return bytes.is_empty() };
        let next = ranges.partition_point(|range| range.start <= bytes.start);
        next.checked_sub(1).is_some_and(|last| bytes.end <= ranges[last].end)
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::At(ranges) => ranges.iter().map(|range| range.end - range.start).sum(),
            Self::Nowhere(_) => 0,
        }
    }
}

/// Why no journal was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// There is no superblock of ext4 or XFS.
    NoFileSystem,
    /// The file system has none.
    NoJournal,
    /// It is on another device.
    Elsewhere,
    /// The journal's place is impossible, or of a kind that is not read.
    Unbelievable(&'static str),
    /// The device could not be read.
    Unreadable,
}

/// Looks for the journal of a device of `capacity_bytes` whose bytes `read` yields, or cannot yield; returns also which
/// bytes it was found by, or was not.
pub fn find(
    capacity_bytes: u64,
    mut read: impl FnMut(Range<u64>) -> Option<Vec<u8>>,
) -> (Vec<Range<u64>>, Journal) {
    let (mut search, mut range) = Search::begin(capacity_bytes);
    loop {
        let Some(bytes) = read(range) else {
            return (search.wanted, Journal::Nowhere(Why::Unreadable));
        };
        match search.read(&bytes) {
            Next::Read(next) => range = next,
            Next::Found(journal) => return (search.wanted, journal),
        }
    }
}

/// The next step of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// It wants these bytes of the device, for [`Search::read`].
    Read(Range<u64>),
    /// It has ended.
    Found(Journal),
}

/// The next step of a search, or why there is none.
type Step = Result<Next, Why>;

/// A search for the journal. See the module.
#[derive(Clone, Debug)]
pub struct Search {
    capacity_bytes: u64,
    ext4: Option<ext4::Search>,
    wanted: Vec<Range<u64>>,
}

impl Search {
    /// On a device of `capacity_bytes`; yields also the bytes that it wants first.
    pub fn begin(capacity_bytes: u64) -> (Self, Range<u64>) {
        let head = 0..HEAD.end.min(capacity_bytes);
        (Self { capacity_bytes, ext4: None, wanted: vec![head.clone()] }, head)
    }

    /// The bytes that it has asked for so far: if they change, the journal may be elsewhere.
    pub fn wanted(&self) -> &[Range<u64>] {
        &self.wanted
    }

    /// The bytes that it wanted. Fewer count as a lie.
    pub fn read(&mut self, bytes: &[u8]) -> Next {
        let next = self.step(bytes).and_then(|next| match next {
            Next::Read(range) if self.wanted.len() == MAX_READS => {
                let _ = range;
                Err(Why::Unbelievable("the journal's extents take too many reads"))
            }
            Next::Read(range) if range.end > self.capacity_bytes => {
                Err(Why::Unbelievable("the file system ends beyond the device"))
            }
            Next::Read(range) => {
                self.wanted.push(range.clone());
                Ok(Next::Read(range))
            }
            Next::Found(Journal::At(ranges)) => self.believed(ranges),
            found @ Next::Found(_) => Ok(found),
        });
        next.unwrap_or_else(|why| Next::Found(Journal::Nowhere(why)))
    }

    fn step(&mut self, bytes: &[u8]) -> Step {
        if let Some(ext4) = &mut self.ext4 {
            return ext4.read(bytes);
        }
        if let Some(log) = xfs::log(bytes)? {
            return Ok(Next::Found(log));
        }
        let (search, next) = ext4::Search::begin(bytes, self.capacity_bytes)?;
        self.ext4 = Some(search);
        Ok(next)
    }

    /// Puts ranges in order, and neighbours together.
    fn believed(&self, mut ranges: Vec<Range<u64>>) -> Step {
        ranges.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if last.end > range.start => {
                    return Err(Why::Unbelievable("the journal has a block twice"));
                }
                Some(last) if last.end == range.start => last.end = range.end,
                _ => joined.push(range),
            }
        }
        if joined.last().is_none_or(|last| last.end > self.capacity_bytes) {
            return Err(Why::Unbelievable("the journal is empty, or ends beyond the device"));
        }
        if joined.len() > MAX_RANGES {
            return Err(Why::Unbelievable("the journal is in too many pieces"));
        }
        Ok(Next::Found(Journal::At(joined)))
    }
}
