//! A small zoned file system, as ZenFS is one: files in zones, zones by what they hold and how long.
//!
//! **Invariants**: a zone holds files of one kind; it is reset when all of them are gone and nothing is being
//! written to it. After a power cut, files end where the drive's write pointers let them.

use std::collections::VecDeque;

use leyden_device::ZoneState;

use super::{ZoneLayout, ZoneLeft};

/// The kind of a file.
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

#[derive(Clone, Copy, Debug)]
struct Zone {
    /// Sectors handed out.
    written: u64,
    /// Of those, in files that are there.
    live: u64,
    is_active: bool,
    /// The drive takes writes to it.
    is_writable: bool,
    /// Nothing can be done with it any more.
    is_failed: bool,
}

impl Zone {
    /// A zone that holds nothing.
    const EMPTY: Self =
        Self { written: 0, live: 0, is_active: false, is_writable: true, is_failed: false };
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
    /// Zones that nothing more will be written to, and that the drive holds active.
    unfinished: VecDeque<u32>,
}

impl Fs {
    pub(super) fn new(layout: ZoneLayout) -> Self {
        Self {
            layout,
            zones: vec![Zone::EMPTY; layout.zones as usize],
            free: (0..layout.zones).collect(),
            active: [None; KINDS],
            dead: VecDeque::new(),
            unfinished: VecDeque::new(),
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

    /// A file of so many sectors is to lie in one zone, if it fits into one: another zone is begun if this one has no
    /// room for it.
    pub(super) fn keep_together(&mut self, kind: FileKind, sectors: u64) {
        let capacity = self.layout.capacity;
        let Some(id) = self.active[kind as usize] else { return };
        let zone = &mut self.zones[id as usize];
        if sectors <= capacity - zone.written || sectors > capacity {
            return;
        }
        zone.is_active = false;
        self.active[kind as usize] = None;
        let ended = if zone.live == 0 { &mut self.dead } else { &mut self.unfinished };
        ended.push_back(id);
    }

    /// Whether nothing can come behind this run in its zone.
    pub(super) const fn ends_zone(&self, run: Run) -> bool {
        run.lba % self.layout.size + run.sectors == self.layout.capacity
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

    /// The first sector of a zone to finish.
    pub(super) fn take_unfinished(&mut self) -> Option<u64> {
        Some(u64::from(self.unfinished.pop_front()?) * self.layout.size)
    }

    /// The power failed, and zones end where `zones` says: what was handed out above is gone. What lies in zones
    /// that have failed counts as gone, too. Files are to be [cut back](Fs::cut_back), and zones [counted
    /// again](Fs::recount).
    pub(super) fn power_failed(&mut self, zones: &[ZoneLeft]) {
        for (zone, found) in self.zones.iter_mut().zip(zones) {
            let state = found.descriptor.state;
            zone.is_writable = state == ZoneState::Empty || state.is_active();
            zone.is_failed = matches!(state, ZoneState::ReadOnly | ZoneState::Offline);
            zone.written = if zone.is_failed { 0 } else { found.held };
        }
    }

    /// Ends `file` where its zones end.
    pub(super) fn cut_back(&self, file: &mut File) {
        let kept = |run: &Run| {
            let (id, at) = (run.lba / self.layout.size, run.lba % self.layout.size);
            run.sectors.min(self.zones[id as usize].written.saturating_sub(at))
        };
        let Some(at) = file.runs.iter().position(|run| kept(run) < run.sectors) else { return };
        file.runs[at].sectors = kept(&file.runs[at]);
        let is_empty = file.runs[at].sectors == 0;
        file.runs.truncate(if is_empty { at } else { at + 1 });
    }

    /// Finds out which zones are free, in use and dead, when there are `files` and no others.
    pub(super) fn recount<'f>(&mut self, files: impl Iterator<Item = &'f File>) {
        self.zones.iter_mut().for_each(|zone| zone.live = 0);
        for run in files.flat_map(|file| &file.runs) {
            self.zones[(run.lba / self.layout.size) as usize].live += run.sectors;
        }
        for active in &mut self.active {
            let is_written = |&id: &u32| {
                let zone = &self.zones[id as usize];
                zone.is_writable && zone.written < self.layout.capacity
            };
            if let Some(id) = active.filter(|id| !is_written(id)) {
                self.zones[id as usize].is_active = false;
                *active = None;
            }
        }
        let was_free = std::mem::take(&mut self.free);
        self.dead.clear();
        self.unfinished.clear();
        let others = (0..self.zones.len() as u32).filter(|id| !was_free.contains(id));
        for id in was_free.iter().copied().chain(others) {
            let zone = &self.zones[id as usize];
            match zone {
                Zone { is_active: true, .. } | Zone { is_failed: true, .. } => {}
                Zone { live: 0, written: 0, is_writable: true, .. } => self.free.push_back(id),
                Zone { live: 0, .. } => self.dead.push_back(id),
                // It was filled, and its last write was cut off.
                Zone { is_writable: true, .. } => self.unfinished.push_back(id),
                _ => {}
            }
        }
    }

    /// A zone was reset.
    pub(super) fn reset(&mut self, id: u32) {
        self.zones[id as usize] = Zone::EMPTY;
        self.free.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_reset_when_all_its_files_are_gone() {
        let mut fs = Fs::new(ZoneLayout {
            zones: 3,
            size: 128,
            capacity: 100,
            block: 1,
            area: 0,
            area_step: 0,
        });
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
