//! Which zones are free, and what the others are for.
//!
//! A zone that is given up is not free at once: the metadata that survives a power cut may still point to it.
//! It is free when a commit that began after it was given up has ended, nobody uses it any more, and, if it is
//! sequential, it has been reset.
//!
//! **Invariants**
//! - A zone is in one list at most.
//! - No more sequential zones are written in part than the zoned member allows.
//! - `active` counts them: what a zone is only changes through [`Zones::change`].

use std::collections::VecDeque;

use super::layout::{Layout, ZoneNo};

/// The use of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Metadata, or a label.
    Kept,
    Free,
    /// The data of a chunk.
    Data(u32),
    /// The buffer of a chunk.
    Buffer(u32),
    Journal,
    /// Reclaim writes it.
    Target,
    /// Given up, and not free yet.
    GivenUp,
    /// It can't be written any more.
    Bad,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    usage: Use,
    /// The next block to write, if it is sequential.
    pointer: u32,
    /// It takes no more writes before it is reset.
    is_closed: bool,
    /// When it was last used: a count of uses.
    used: u64,
}

impl Zone {
    /// A sequential zone that is written in part.
    const fn is_active(&self, blocks: u32) -> bool {
        let is_begun = matches!(self.usage, Use::Target) || self.pointer > 0;
        is_begun && !self.is_closed && self.pointer < blocks
    }
}

/// Figures of which one changes when a zone becomes free, or is taken.
#[derive(PartialEq, Eq)]
pub(super) struct ZoneMarks {
    random: usize,
    sequential: usize,
    releasing: usize,
    uses: u64,
}

/// Zones for random writes: those that are free, and those for data and journals in all.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomZones {
    pub(super) free: u32,
    pub(super) all: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Zones {
    layout: Layout,
    all: Vec<Zone>,
    free_random: VecDeque<ZoneNo>,
    free_sequential: VecDeque<ZoneNo>,
    /// Given up since the last commit began.
    given_up: Vec<ZoneNo>,
    /// Given up before the commit that is under way began.
    committing: Vec<ZoneNo>,
    /// No metadata points to them any more.
    releasing: Vec<ZoneNo>,
    uses: u64,
    /// Random zones that are a journal's.
    journal: u32,
    /// Sequential zones that are written in part.
    active: u32,
}

impl Zones {
    /// All zones for data are free, and sequential ones empty.
    pub(super) fn new(layout: Layout) -> Self {
        let kept = Zone { usage: Use::Kept, pointer: 0, is_closed: false, used: 0 };
        let mut all = vec![kept; layout.zones() as usize];
        for zone in layout.random_zones().chain(layout.sequential_zones()) {
            all[zone.0 as usize].usage = Use::Free;
        }
        Self {
            layout,
            all,
            free_random: layout.random_zones().collect(),
            free_sequential: layout.sequential_zones().collect(),
            given_up: Vec::new(),
            committing: Vec::new(),
            releasing: Vec::new(),
            uses: 0,
            journal: 0,
            active: 0,
        }
    }

    #[inline]
    fn get(&self, zone: ZoneNo) -> &Zone {
        &self.all[zone.0 as usize]
    }

    /// Changes what `zone` is; returns what it was.
    #[inline]
    fn change(&mut self, zone: ZoneNo, change: impl FnOnce(&mut Zone)) -> Zone {
        let (blocks, is_random) = (self.layout.zone_blocks, self.layout.is_random(zone));
        let it = &mut self.all[zone.0 as usize];
        let before = *it;
        change(it);
        if !is_random {
            self.active += u32::from(it.is_active(blocks));
            self.active -= u32::from(before.is_active(blocks));
        }
        before
    }

    #[inline]
    fn use_for(&mut self, zone: ZoneNo, usage: Use) {
        self.change(zone, |it| it.usage = usage);
    }

    /// After a recovery: `zone`, which was free, is for `usage`.
    pub(super) fn claim(&mut self, zone: ZoneNo, usage: Use) {
        self.use_for(zone, usage);
        self.journal += u32::from(usage == Use::Journal);
        self.free_random.retain(|&it| it != zone);
        self.free_sequential.retain(|&it| it != zone);
    }

    /// After a recovery: how far sequential `zone` is written. One that is nobody's is to be reset.
    pub(super) fn found(&mut self, zone: ZoneNo, pointer: u32, can_be_written: bool) {
        self.change(zone, |it| (it.pointer, it.is_closed) = (pointer, !can_be_written));
        if self.usage(zone) == Use::Free && (pointer > 0 || !can_be_written) {
            self.use_for(zone, Use::GivenUp);
            self.free_sequential.retain(|&it| it != zone);
            self.releasing.push(zone);
        }
    }

    /// `zone` can't be written any more, and is nobody's.
    pub(super) fn set_bad(&mut self, zone: ZoneNo) {
        self.use_for(zone, Use::Bad);
        self.free_sequential.retain(|&it| it != zone);
    }

    /// A random zone for `usage`.
    pub(super) fn take_random(&mut self, usage: Use) -> Option<ZoneNo> {
        let zone = self.free_random.pop_front()?;
        self.use_for(zone, usage);
        self.journal += u32::from(usage == Use::Journal);
        self.touch(zone);
        Some(zone)
    }

    /// An empty sequential zone for reclaim.
    pub(super) fn take_sequential(&mut self) -> Option<ZoneNo> {
        let zone = self.free_sequential.pop_front()?;
        self.use_for(zone, Use::Target);
        Some(zone)
    }

    pub(super) fn set_use(&mut self, zone: ZoneNo, usage: Use) {
        self.use_for(zone, usage);
        self.touch(zone);
    }

    #[inline]
    pub(super) fn usage(&self, zone: ZoneNo) -> Use {
        self.get(zone).usage
    }

    /// Gives up `zone`, whose contents are not needed once the tables that say so survive a power
    /// cut.
    pub(super) fn give_up(&mut self, zone: ZoneNo) {
        self.journal -= u32::from(self.usage(zone) == Use::Journal);
        self.use_for(zone, Use::GivenUp);
        self.given_up.push(zone);
    }

    /// Drops the zone that reclaim wrote, to which no tables ever pointed.
    pub(super) fn drop_target(&mut self, zone: ZoneNo) {
        self.use_for(zone, Use::GivenUp);
        self.releasing.push(zone);
    }

    /// A commit begins.
    pub(super) fn commit_begins(&mut self) {
        self.committing.append(&mut self.given_up);
    }

    /// It has ended: no metadata points to what was given up before.
    pub(super) fn commit_ended(&mut self) {
        self.releasing.append(&mut self.committing);
    }

    /// True if a commit would free zones.
    #[inline]
    pub(super) fn waits_for_commit(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// True if zones are on their way to be free.
    pub(super) fn is_freeing(&self) -> bool {
        let waits = [&self.given_up, &self.committing, &self.releasing];
        waits.into_iter().any(|list| !list.is_empty())
            || self.all.iter().any(|zone| zone.usage == Use::GivenUp)
    }

    /// Frees what can be; returns the zones that are to be reset first.
    #[inline]
    pub(super) fn release(&mut self, is_busy: impl Fn(ZoneNo) -> bool) -> Vec<ZoneNo> {
        let mut to_reset = Vec::new();
        if self.releasing.is_empty() {
            return to_reset;
        }
        let all = std::mem::take(&mut self.releasing);
        let (busy, ready): (Vec<_>, Vec<_>) = all.into_iter().partition(|&zone| is_busy(zone));
        self.releasing = busy;
        for zone in ready {
            let it = self.get(zone);
            if self.layout.is_random(zone) {
                self.use_for(zone, Use::Free);
                self.free_random.push_back(zone);
            } else if it.pointer > 0 || it.is_closed {
                to_reset.push(zone);
            } else {
                self.use_for(zone, Use::Free);
                self.free_sequential.push_back(zone);
            }
        }
        to_reset
    }

    /// A reset has ended.
    pub(super) fn was_reset(&mut self, zone: ZoneNo, well: bool) {
        if !well {
            return self.set_bad(zone);
        }
        self.change(zone, |it| (it.usage, it.pointer, it.is_closed) = (Use::Free, 0, false));
        self.free_sequential.push_back(zone);
    }

    /// Blocks are to be written at the write pointer of a sequential zone; returns where that is.
    #[inline]
    pub(super) fn append(&mut self, zone: ZoneNo, blocks: u32) -> u32 {
        self.change(zone, |it| it.pointer += blocks).pointer
    }

    /// The next block to write to a sequential zone; `None` if it takes no more.
    #[inline]
    pub(super) fn pointer(&self, zone: ZoneNo) -> Option<u32> {
        let it = self.get(zone);
        (!it.is_closed && it.pointer < self.layout.zone_blocks).then_some(it.pointer)
    }

    /// How far a sequential zone is written.
    #[inline]
    pub(super) fn written(&self, zone: ZoneNo) -> u32 {
        self.get(zone).pointer
    }

    /// `zone` takes no more writes before it is reset.
    pub(super) fn close(&mut self, zone: ZoneNo) {
        self.change(zone, |it| it.is_closed = true);
    }

    /// The sequential zone to finish before another can be begun: `Ok(None)` if none has to be.
    ///
    /// # Errors
    /// If one has to be, and all that could be are in use.
    #[inline]
    pub(super) fn to_finish(&self, is_busy: impl Fn(ZoneNo) -> bool) -> Result<Option<ZoneNo>, ()> {
        if self.active < self.layout.active {
            return Ok(None);
        }
        let all = self.all.iter().enumerate().skip(self.layout.random as usize);
        let active = all.filter(|(_, zone)| zone.is_active(self.layout.zone_blocks));
        let quiet = active.filter(|(_, it)| matches!(it.usage, Use::Data(_)));
        let quiet = quiet.map(|(number, it)| (it.used, ZoneNo(number as u32)));
        let oldest = quiet.filter(|&(_, zone)| !is_busy(zone)).min();
        oldest.map(|(_, zone)| Some(zone)).ok_or(())
    }

    /// `zone` is used.
    #[inline]
    pub(super) fn touch(&mut self, zone: ZoneNo) {
        self.uses += 1;
        let uses = self.uses;
        self.all[zone.0 as usize].used = uses;
    }

    /// How many uses of zones ago `zone` was used.
    pub(super) fn age(&self, zone: ZoneNo) -> u64 {
        self.uses - self.get(zone).used
    }

    /// Free random zones, and random zones for data and journals in all.
    #[inline]
    pub(super) fn random(&self) -> RandomZones {
        let all = self.layout.random - self.layout.meta;
        RandomZones { free: self.free_random.len() as u32, all }
    }

    /// As [`random`](Self::random), with the zones that are free as soon as the tables say so: dm-zoned counts
    /// a zone as free when it gives it up.
    #[inline]
    pub(super) fn random_soon(&self) -> RandomZones {
        let RandomZones { free, all } = self.random();
        let lists = [&self.given_up, &self.committing, &self.releasing];
        let soon = lists.into_iter().flatten().filter(|&&zone| self.layout.is_random(zone));
        RandomZones { free: free + soon.count() as u32, all }
    }

    /// True if a random zone holds data of a chunk.
    #[inline]
    pub(super) fn has_mapped_random(&self) -> bool {
        let RandomZones { free, all } = self.random();
        free + self.journal < all
    }

    #[inline]
    pub(super) fn marks(&self) -> ZoneMarks {
        let (random, sequential) = (self.free_random.len(), self.free_sequential.len());
        ZoneMarks { random, sequential, releasing: self.releasing.len(), uses: self.uses }
    }

    #[inline]
    pub(super) fn free_sequential(&self) -> u32 {
        self.free_sequential.len() as u32
    }

    /// Says whether the count of zones that are written in part is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let sequential = self.all.iter().skip(self.layout.random as usize);
        let active = sequential.filter(|zone| zone.is_active(self.layout.zone_blocks)).count();
        if active != self.active as usize {
            return Err(format!("{active} zones are written in part, not {}", self.active));
        }
        Ok(())
    }

    /// Every zone, with what it is for.
    pub(super) fn all(&self) -> impl Iterator<Item = (ZoneNo, Use)> + '_ {
        self.all.iter().enumerate().map(|(number, zone)| (ZoneNo(number as u32), zone.usage))
    }
}
