//! Reclaim: random zones are freed by moving what they hold to sequential ones.
//!
//! A *job* moves one chunk. Nobody else uses the chunk meanwhile: whoever comes makes the job end early, where
//! [`GiveUp`] lets it, and waits until then; while writers wait for a zone, the job goes on and they wait for it. The
//! tables change when all is moved, so a job that ends early has changed nothing.
//!
//! How a chunk is moved (drivers/md/dm-zoned-reclaim.c, `dmz_do_reclaim`):
//! - its data lies in a random zone: to a new sequential zone;
//! - it has a buffer zone whose blocks all lie beyond the write pointer of its sequential zone: behind that;
//! - else as [`Merge`] says.
//!
//! A sequential zone has no holes: what is not valid below the next block is filled with zeroes.

use std::sync::Arc;

use leyden_sim::{Ratio, Rng, Span, Time};

use super::config::{GiveUp, Merge, ZonedBlockConfig};
use super::heat::Heat;
use super::layout::{Layout, Place, ZoneNo};
use super::map::{Entry, Map};
use super::traffic::Traffic;
use super::victim::{Candidate, ReclaimPolicy};
use super::zones::{RandomZones, Use, Zones};

/// The source and the target of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Move {
    /// Nothing is valid in the chunk's random zone.
    Drop { zone: ZoneNo },
    /// From the chunk's random zone to a new sequential one.
    Out { from: ZoneNo, to: ZoneNo },
    /// From the buffer to the end of what is written of the sequential zone.
    Append { buffer: ZoneNo, to: ZoneNo },
    /// From the sequential zone into the buffer, which is the data zone then.
    Into { data: ZoneNo, buffer: ZoneNo },
    /// From both to a new sequential zone.
    Merge { data: ZoneNo, buffer: ZoneNo, to: ZoneNo },
}

impl Move {
    fn sources(self) -> [Option<ZoneNo>; 2] {
        match self {
            Self::Drop { .. } => [None, None],
            Self::Out { from, .. } => [Some(from), None],
            Self::Append { buffer, .. } => [Some(buffer), None],
            Self::Into { data, .. } => [Some(data), None],
            Self::Merge { data, buffer, .. } => [Some(data), Some(buffer)],
        }
    }

    fn target(self) -> Option<ZoneNo> {
        match self {
            Self::Drop { .. } => None,
            Self::Out { to, .. } | Self::Append { to, .. } | Self::Merge { to, .. } => Some(to),
            Self::Into { buffer, .. } => Some(buffer),
        }
    }

    /// The sequential zone that it begins.
    pub(super) fn new_zone(self) -> Option<ZoneNo> {
        match self {
            Self::Out { to, .. } | Self::Merge { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// The next step of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// Fill this with zeroes.
    Fill(Place),
    /// Copy the first to the second.
    Copy(Place, Place),
    /// All is moved.
    Done,
}

/// A chunk that is moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Job {
    pub(super) chunk: u32,
    pub(super) chunk_move: Move,
    /// Blocks of the chunk below this are moved.
    at: u32,
    /// Where what is being copied goes.
    pub(super) copying: Option<Place>,
    /// Since when this step goes on.
    begun: Time,
    /// It rests until then.
    rests: Option<Time>,
    /// A request waits for the chunk.
    is_contended: bool,
    /// Whether the next copy continues the run of blocks that was copied last, or filled.
    is_amid_run: bool,
}

impl Job {
    fn next(&self, map: &Map, zones: &Zones, layout: &Layout, most: u32) -> Next {
        let first = self.chunk_move.sources().into_iter().flatten();
        let first = first.filter_map(|zone| Some((map.next_valid(zone, self.at)?, zone))).min();
        let (Some((at, zone)), Some(target)) = (first, self.chunk_move.target()) else {
            return Next::Done;
        };
        if !layout.is_random(target) && zones.written(target) < at {
            let written = zones.written(target);
            return Next::Fill(Place { zone: target, at: written, blocks: at - written });
        }
        let end = (at + most).min(layout.zone_blocks);
        let blocks = (at..end).take_while(|&at| map.is_valid(zone, at)).count() as u32;
        Next::Copy(Place { zone, at, blocks }, Place { zone: target, at, blocks })
    }

    /// True if it ends here, because somebody wants to use the chunk.
    #[inline]
    fn ends(&self, give_up: GiveUp) -> bool {
        self.is_contended
            && match give_up {
                GiveUp::AfterCopy => true,
                GiveUp::AfterRun => {
                    !self.is_amid_run && !matches!(self.chunk_move, Move::Append { .. })
                }
            }
    }

    /// All is moved: the tables say so. Returns the zones that nobody needs any more.
    fn settle(&self, map: &mut Map) -> Vec<ZoneNo> {
        if let Some(target) = self.chunk_move.target() {
            for source in self.chunk_move.sources().into_iter().flatten() {
                take_valid(map, source, |map, at, blocks| {
                    map.set_valid(Place { zone: target, at, blocks }, true);
                });
            }
        }
        let (entry, freed) = match self.chunk_move {
            Move::Drop { zone } => {
                let Entry { data, .. } = map.chunk(self.chunk);
                (Entry { data: data.filter(|&data| data != zone), buffer: None }, vec![zone])
            }
            Move::Out { from, to } => (Entry { data: Some(to), buffer: None }, vec![from]),
            Move::Append { buffer, to } => (Entry { data: Some(to), buffer: None }, vec![buffer]),
            Move::Into { data, buffer } => (Entry { data: Some(buffer), buffer: None }, vec![data]),
            Move::Merge { data, buffer, to } => {
                (Entry { data: Some(to), buffer: None }, vec![data, buffer])
            }
        };
        map.set_chunk(self.chunk, entry);
        freed
    }
}

/// No block of `zone` is valid any more; calls `each` with each run that was: its first block, and their number.
fn take_valid(map: &mut Map, zone: ZoneNo, mut each: impl FnMut(&mut Map, u32, u32)) {
    let mut next = 0;
    while let Some(at) = map.next_valid(zone, next) {
        let end = map.layout().zone_blocks;
        let blocks = (at..end).take_while(|&at| map.is_valid(zone, at)).count() as u32;
        map.set_valid(Place { zone, at, blocks }, false);
        each(map, at, blocks);
        next = at + blocks;
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Reclaim {
    layout: Layout,
    policy: Arc<dyn ReclaimPolicy>,
    merge: Merge,
    give_up: GiveUp,
    writers_first: Ratio,
    rng: Rng,
    low_free: Ratio,
    high_free: Ratio,
    most_blocks: u32,
    jobs: Vec<Option<Job>>,
    candidates: Vec<Candidate>,
    heat: Heat,
    /// Jobs in a row that a member failed.
    failures: u32,
    /// The answer to the last question.
    is_asked: bool,
}

fn are_few(zones: RandomZones, limit: Ratio) -> bool {
    // One is none (`dmz_reclaim_percentage`).
    let is_last = zones.free <= 1 && limit > Ratio::ZERO;
    is_last || u64::from(zones.free) * 1_000_000 <= limit.as_ppm() * u64::from(zones.all)
}

/// So many, and nothing is reclaimed any more until the power has come back.
const MOST_FAILURES: u32 = 16;

impl Reclaim {
    pub(super) fn new(config: &ZonedBlockConfig, layout: Layout, seed: u64) -> Self {
        Self {
            layout,
            policy: config.victim.policy().into(),
            merge: config.merge,
            give_up: config.give_up,
            writers_first: config.writers_first,
            rng: Rng::new(seed, "reclaim"),
            low_free: config.low_free,
            high_free: config.high_free,
            most_blocks: (config.copy_size.get() / u64::from(layout.unit_bytes)) as u32,
            jobs: vec![None; config.reclaims as usize],
            candidates: Vec::new(),
            heat: Heat::new(&layout),
            failures: 0,
            is_asked: false,
        }
    }

    /// The host has written blocks of `chunk` to its zones.
    pub(super) fn wrote(&mut self, chunk: u32, blocks: u32) {
        self.heat.wrote(chunk, blocks);
    }

    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.iter().all(Option::is_none)
    }

    /// Blocks that are moved with one read and one write at most.
    pub(super) fn most_blocks(&self) -> u32 {
        self.most_blocks
    }

    #[inline]
    pub(super) fn job(&self, number: u32) -> &Job {
        self.jobs[number as usize].as_ref().expect("a job under way")
    }

    #[inline]
    fn job_mut(&mut self, number: u32) -> &mut Job {
        self.jobs[number as usize].as_mut().expect("a job under way")
    }

    /// Everything is forgotten.
    pub(super) fn clear(&mut self) {
        self.jobs.fill(None);
        self.heat.clear();
        self.failures = 0;
        self.is_asked = false;
    }

    /// A member did not do what a job asked for.
    pub(super) fn failed(&mut self) {
        self.failures += 1;
    }

    /// Asks whether zones should be reclaimed (`dmz_should_reclaim`), with so many of all random zones free: when a writer takes
    /// one (`dmz_alloc_zone` asks before it takes one), and when a job has ended (`dmz_reclaim_work`).
    #[inline]
    pub(super) fn ask(&mut self, zones: RandomZones, is_idle: bool) -> bool {
        self.is_asked = is_idle || are_few(zones, self.low_free);
        self.is_asked
    }

    /// Zones should have been reclaimed when that was asked last.
    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Whether a job should begin now.
    #[inline]
    pub(super) fn is_due(&self, zones: impl FnOnce() -> RandomZones, is_waited_for: bool) -> bool {
        is_waited_for || self.is_asked || !self.is_idle() && are_few(zones(), self.high_free)
    }

    /// How long a job rests after a step that took `elapsed` (`dmz_reclaim_work`: the copies' throttle).
    fn rest(&self, elapsed: Span, zones: RandomZones, is_idle: bool) -> Span {
        let percent = u64::from(zones.free) * 100 / u64::from(zones.all.max(1));
        let low = self.low_free.as_ppm() / 10_000;
        let share = if is_idle || percent < low / 2 { 100 } else { (100 - percent / 2).min(75) };
        Span::from_ns(elapsed.as_ns() * (100 - share) / share)
    }

    /// Zones that could be reclaimed.
    fn find_candidates(&mut self, map: &Map, zones: &Zones, traffic: &Traffic) {
        self.candidates.clear();
        for zone in self.layout.random_zones() {
            let (Use::Data(chunk) | Use::Buffer(chunk)) = zones.usage(zone) else { continue };
            if !traffic.is_quiet(chunk) {
                continue;
            }
            let Entry { data, buffer } = map.chunk(chunk);
            let is_buffer = buffer == Some(zone);
            let data_blocks = data.map_or(0, |data| map.weight(data));
            let to_copy = match self.merge {
                _ if !is_buffer => data_blocks,
                Merge::IntoBuffer => 2 * data_blocks + map.weight(zone),
                Merge::NewZone => data_blocks + map.weight(zone),
            };
            self.candidates.push(Candidate {
                chunk,
                is_buffer,
                age: zones.age(zone),
                heat: self.heat.of(chunk),
                to_copy,
                data_blocks,
                zone_blocks: self.layout.zone_blocks,
            });
        }
    }

    /// True if another job can be under way, and members have not failed too many.
    #[inline]
    pub(super) fn may_begin(&self) -> bool {
        self.failures < MOST_FAILURES && self.jobs.iter().any(Option::is_none)
    }

    /// Begins a job, if there is one to begin; returns its number.
    pub(super) fn begin(
        &mut self,
        now: Time,
        map: &Map,
        zones: &mut Zones,
        traffic: &mut Traffic,
    ) -> Option<u32> {
        let number = self.jobs.iter().position(Option::is_none).filter(|_| self.may_begin())?;
        self.find_candidates(map, zones, traffic);
        if zones.free_sequential() == 0 {
            // Only what needs no new zone: as dm-zoned takes a buffered zone when none is reserved.
            let merge = self.merge;
            let layout = self.layout;
            self.candidates.retain(|it| {
                !plan(map, zones, &layout, it.chunk, merge).is_none_or(Plan::needs_zone)
            });
        }
        let victim = self.policy.victim(&self.candidates)?;
        let chunk = self.candidates[victim].chunk;
        let plan = plan(map, zones, &self.layout, chunk, self.merge)?;
        let chunk_move = match plan {
            Plan::Ready(chunk_move) => chunk_move,
            Plan::Out { from } => Move::Out { from, to: zones.take_sequential()? },
            Plan::Merge { data, buffer } => {
                Move::Merge { data, buffer, to: zones.take_sequential()? }
            }
        };
        traffic.lock(chunk, number as u32);
        self.jobs[number] = Some(Job {
            chunk,
            chunk_move,
            at: 0,
            copying: None,
            begun: now,
            rests: None,
            is_contended: false,
            is_amid_run: false,
        });
        Some(number as u32)
    }

    /// The next step of job `number`.
    pub(super) fn next(&mut self, now: Time, number: u32, map: &Map, zones: &Zones) -> Next {
        let (layout, most) = (self.layout, self.most_blocks);
        let job = self.job_mut(number);
        let next = job.next(map, zones, &layout, most);
        (job.begun, job.rests) = (now, None);
        (job.copying, job.is_amid_run) = match next {
            Next::Copy(from, to) => {
                // Where the source ends, nobody is asked any more: all is moved.
                let end = from.at + from.blocks;
                let is_random = layout.is_random(from.zone);
                let source_ends =
                    if is_random { layout.zone_blocks } else { zones.written(from.zone) };
                (Some(to), end >= source_ends || map.is_valid(from.zone, end))
            }
            // A filled range is part of the run that follows.
            Next::Fill(_) => (None, true),
            Next::Done => (None, false),
        };
        next
    }

    /// A copy of job `number` has ended: the job rests until the time returned.
    pub(super) fn copied(
        &mut self,
        now: Time,
        number: u32,
        zones: RandomZones,
        is_idle: bool,
    ) -> Time {
        let job = *self.job(number);
        let rest = self.rest(now - job.begun, zones, is_idle);
        let job = self.job_mut(number);
        if let Some(place) = job.copying.take() {
            job.at = place.at + place.blocks;
        }
        job.rests = Some(now + rest);
        now + rest
    }

    /// Marks the chunk of job `number` as wanted by a request.
    pub(super) fn abort(&mut self, number: u32) {
        self.job_mut(number).is_contended = true;
    }

    /// True if job `number` is to end before it writes what it has read.
    pub(super) fn ends_amid_copy(&self, number: u32) -> bool {
        self.job(number).is_contended && self.give_up == GiveUp::AfterCopy
    }

    /// True if job `number` is to end now, before all is moved.
    pub(super) fn ends(&self, number: u32) -> bool {
        self.job(number).ends(self.give_up)
    }

    /// The tables take over the chunk that job `number` has moved; returns the zones that are free now.
    pub(super) fn settle(&mut self, number: u32, map: &mut Map) -> Vec<ZoneNo> {
        self.failures = 0;
        self.job(number).settle(map)
    }

    /// Job `number` is over. Who calls this asks next, or admits those who have waited for the chunk and asks then.
    pub(super) fn end(&mut self, number: u32) -> Job {
        self.jobs[number as usize].take().expect("a job under way")
    }

    /// True if writers that have waited for a moved chunk take their zones before [`Reclaim::ask`].
    pub(super) fn draw_writers_first(&mut self) -> bool {
        self.rng.chance(self.writers_first)
    }

    /// A job that has rested until `now`, or is to stop resting.
    #[inline]
    pub(super) fn rested(&self, now: Time) -> Option<u32> {
        let is_over =
            |job: &Job| job.rests.is_some_and(|until| until <= now || job.ends(self.give_up));
        let number = self.jobs.iter().position(|job| job.as_ref().is_some_and(is_over));
        number.map(|number| number as u32)
    }

    #[inline]
    pub(super) fn next_event(&self) -> Option<Time> {
        self.jobs.iter().flatten().filter_map(|job| job.rests).min()
    }
}

/// The plan for a chunk, before a zone is taken for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    Ready(Move),
    Out { from: ZoneNo },
    Merge { data: ZoneNo, buffer: ZoneNo },
}

impl Plan {
    fn needs_zone(self) -> bool {
        !matches!(self, Self::Ready(_))
    }
}

fn plan(map: &Map, zones: &Zones, layout: &Layout, chunk: u32, merge: Merge) -> Option<Plan> {
    let Entry { data, buffer } = map.chunk(chunk);
    let data = data?;
    let Some(buffer) = buffer else {
        if !layout.is_random(data) {
            return None;
        }
        let is_empty = map.weight(data) == 0;
        return Some(if is_empty {
            Plan::Ready(Move::Drop { zone: data })
        } else {
            Plan::Out { from: data }
        });
    };
    let Some(first) = map.next_valid(buffer, 0) else {
        return Some(Plan::Ready(Move::Drop { zone: buffer }));
    };
    if zones.pointer(data).is_some_and(|pointer| pointer <= first) {
        return Some(Plan::Ready(Move::Append { buffer, to: data }));
    }
    Some(match merge {
        Merge::IntoBuffer => Plan::Ready(Move::Into { data, buffer }),
        Merge::NewZone => Plan::Merge { data, buffer },
    })
}
