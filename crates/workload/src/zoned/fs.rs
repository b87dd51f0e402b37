//! A small zoned file system, as ZenFS is one: files in zones, zones by what they hold and how long.
//!
//! **Invariants**: a zone holds files of one kind; it is reset when all of them are gone and nothing is being
//! written to it.

use std::collections::VecDeque;

use super::ZoneLayout;

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FileKind {
    /// A write-ahead log.
    Log,
    /// A table that a memtable was written to: it lives until it is compacted.
    Fresh,
    /// A table out of a compaction.
    Compacted,
    /// The file system's own records, and the MANIFEST.
    Meta,
}

const KINDS: usize = 4;

/// A run of sectors in a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) lba: u64,
    pub(super) sectors: u64,
}

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) runs: Vec<Run>,
}

impl File {
    pub(super) fn sectors(&self) -> u64 {
        self.runs.iter().map(|run| run.sectors).sum()
    }

    /// Where its sectors from `at` on lie, up to `most` of them in one run.
    pub(super) fn at(&self, mut at: u64, most: u64) -> Option<Run> {
        for run in &self.runs {
            if at < run.sectors {
                return Some(Run { lba: run.lba + at, sectors: most.min(run.sectors - at) });
            }
            at -= run.sectors;
        }
        None
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Zone {
    /// Sectors handed out.
    written: u64,
    /// Of those, in files that are there.
    live: u64,
    is_active: bool,
}

/// The zones of a drive.
#[derive(Clone, Debug)]
pub(super) struct Fs {
    layout: ZoneLayout,
    zones: Vec<Zone>,
    free: VecDeque<u32>,
    /// The zone that each kind is being written to.
    active: [Option<u32>; KINDS],
    /// Zones of which nothing is needed, to be reset.
    dead: VecDeque<u32>,
}

impl Fs {
    pub(super) fn new(layout: ZoneLayout) -> Self {
        Self {
            layout,
            zones: vec![Zone::default(); layout.zones as usize],
            free: (0..layout.zones).collect(),
            active: [None; KINDS],
            dead: VecDeque::new(),
        }
    }

    /// Room for up to `most` sectors more of `file`, in one run; `None` if no zone is free.
    pub(super) fn extend(&mut self, file: &mut File, kind: FileKind, most: u64) -> Option<Run> {
        let active = &mut self.active[kind as usize];
        let id = if let Some(id) = *active {
            id
        } else {
            let id = self.free.pop_front()?;
            *active = Some(id);
            self.zones[id as usize].is_active = true;
            id
        };
        let zone = &mut self.zones[id as usize];
        let sectors = most.min(self.layout.capacity - zone.written);
        let lba = u64::from(id) * self.layout.size + zone.written;
        zone.written += sectors;
        zone.live += sectors;
        if zone.written == self.layout.capacity {
            zone.is_active = false;
            self.active[kind as usize] = None;
        }
        // A run ends where its zone does.
        let goes_on = |last: &&mut Run| {
            last.lba + last.sectors == lba && !lba.is_multiple_of(self.layout.size)
        };
        match file.runs.last_mut().filter(goes_on) {
            Some(last) => last.sectors += sectors,
            None => file.runs.push(Run { lba, sectors }),
        }
        Some(Run { lba, sectors })
    }

    /// `file` is gone.
    pub(super) fn delete(&mut self, file: &File) {
        for run in &file.runs {
            let id = (run.lba / self.layout.size) as u32;
            let zone = &mut self.zones[id as usize];
            zone.live -= run.sectors;
            if zone.live == 0 && !zone.is_active {
                self.dead.push_back(id);
            }
        }
    }

    /// A zone to reset, and its first sector.
    pub(super) fn take_dead(&mut self) -> Option<(u32, u64)> {
        let id = self.dead.pop_front()?;
        Some((id, u64::from(id) * self.layout.size))
    }

    /// A zone was reset.
    pub(super) fn reset(&mut self, id: u32) {
        self.zones[id as usize] = Zone::default();
        self.free.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_reset_when_all_its_files_are_gone() {
        let mut fs = Fs::new(ZoneLayout { zones: 3, size: 128, capacity: 100, block: 1 });
        let (mut a, mut b, mut log) = (File::default(), File::default(), File::default());
        assert_eq!(fs.extend(&mut a, FileKind::Fresh, 60), Some(Run { lba: 0, sectors: 60 }));
        assert_eq!(fs.extend(&mut log, FileKind::Log, 9), Some(Run { lba: 128, sectors: 9 }));
        assert_eq!(fs.extend(&mut b, FileKind::Fresh, 60), Some(Run { lba: 60, sectors: 40 }));
        assert_eq!(fs.extend(&mut b, FileKind::Fresh, 20), Some(Run { lba: 256, sectors: 20 }));
        assert_eq!((a.sectors(), b.sectors(), b.runs.len()), (60, 60, 2));
        assert_eq!(b.at(38, 10), Some(Run { lba: 98, sectors: 2 }));
        assert_eq!(b.at(40, 10), Some(Run { lba: 256, sectors: 10 }));
        fs.delete(&a);
        assert_eq!(fs.take_dead(), None);
        fs.delete(&b);
        assert_eq!(fs.take_dead(), Some((0, 0)), "the other zone is still written to");
        assert_eq!(fs.extend(&mut a, FileKind::Meta, 1), None, "no zone is free");
        fs.reset(0);
        assert_eq!(fs.extend(&mut a, FileKind::Meta, 1), Some(Run { lba: 0, sectors: 1 }));
    }
}
