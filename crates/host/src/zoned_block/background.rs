//! The device's background work: moves of chunks, commits of its tables, resets of zones, and
//! reading the tables back after a power cut.

use std::collections::VecDeque;

use leyden_device::{Op, Payload, Status, Units, ZoneAction};
use leyden_sim::{Span, Time};

use super::config::{IdleOf, ZonedBlockConfig};
use super::layout::Place;
use super::load::{Found, Loader};
use super::map::Entry as ChunkZones;
use super::marks::Due;
use super::members::{Ended, Keep, Purpose};
use super::reclaim::{Move, Next};
use super::requests::{HostRequest, Piece, PieceOp, Stretch};
use super::stored::{Stored, StoredData};
use super::zones::{Use, Zones};
use super::{State, ZonedBlock};
use crate::Powered;

/// When things are due, and who waits for the tables.
#[derive(Clone, Debug)]
pub(super) struct Background {
    idle: Span,
    idle_of: IdleOf,
    commit_interval: Span,
    last_use: Time,
    /// Reclaim looks then whether it is due, unless somebody asks before.
    pub(super) look_at: Option<Time>,
    /// Changed tables are written by then.
    pub(super) commit_at: Option<Time>,
    /// As of the last time that the layer did what had become possible.
    pub(super) due: Due,
    /// Pieces that wait for the tables to be read.
    early: VecDeque<u32>,
}

impl Background {
    pub(super) fn new(config: &ZonedBlockConfig, now: Time) -> Self {
        Self {
            idle: config.idle,
            idle_of: config.idle_of,
            commit_interval: config.commit_interval,
            last_use: now,
            look_at: Some(now),
            commit_at: None,
            due: Due::default(),
            early: VecDeque::new(),
        }
    }

    #[inline]
    pub(super) fn used(&mut self, now: Time) {
        self.last_use = now;
    }

    pub(super) fn wait_for_tables(&mut self, piece: u32) {
        self.early.push_back(piece);
    }

    pub(super) fn is_idle_of_both(&self) -> bool {
        self.idle_of == IdleOf::Both
    }

    /// True after so long without use (`dmz_target_idle`).
    #[inline]
    pub(super) fn is_idle(&self, now: Time) -> bool {
        self.idle > Span::ZERO && now >= self.last_use + self.idle
    }

    #[inline]
    fn is_look_due(&self, now: Time) -> bool {
        self.look_at.is_some_and(|at| at <= now)
    }

    /// Nothing is due: reclaim looks again later.
    fn look_later(&mut self, now: Time) {
        self.look_at = (self.idle > Span::ZERO).then(|| now + self.idle);
    }

    /// Tables are dirty, or are not.
    #[inline]
    fn note_dirty(&mut self, now: Time, is_dirty: bool) {
        if !is_dirty || self.commit_interval == Span::ZERO {
            self.commit_at = None;
        } else if self.commit_at.is_none() {
            self.commit_at = Some(now + self.commit_interval);
        }
    }

    pub(super) fn lose_power(&mut self, now: Time) {
        (self.last_use, self.look_at, self.commit_at) = (now, None, None);
        self.early.clear();
    }
}

impl<P, C, Z> ZonedBlock<P, C, Z>
where
    P: Payload,
    C: Powered<Stored<P>>,
    Z: Powered<Stored<P>>,
{
    /// When something of its own is due.
    #[inline]
    pub(super) fn next_own_event(&self) -> Option<Time> {
        let commit = self.upkeep.commit_at.filter(|_| self.committer.is_idle());
        let look = self
            .upkeep
            .look_at
            .filter(|_| self.reclaim.is_idle() && self.zones.has_mapped_random());
        Time::earliest([self.reclaim.next_event(), commit, look])
    }

    /// Until when time alone makes nothing due, if the next event of its own is `own`.
    #[inline]
    pub(super) fn nothing_due_until(&self, own: Option<Time>) -> Time {
        // Whether reclaim is due is asked at the first instant after `look_at`, whatever else is under way.
        let due = Time::earliest([own, self.upkeep.look_at]);
        due.map_or(Time::MAX, |due| Time::from_ns(due.as_ns().saturating_sub(1)))
    }

    /// Does what has become possible.
    pub(super) fn do_possible(&mut self, now: Time) {
        self.free_zones(now);
        while let Some(number) = self.reclaim.rested(now) {
            self.step_job(now, number);
        }
        self.begin_jobs(now);
        self.release_journal(now);
        self.commit(now);
        // Those who have waited behind a writer that gives up may wait for a zone next.
        while !self.starved.is_empty() && !self.can_wait() {
            self.give_up(now);
        }
    }

    /// Frees zones, and gives them to those who wait.
    fn free_zones(&mut self, now: Time) {
        let members = &self.members;
        for zone in self.zones.release(|zone| members.is_busy(zone)) {
            self.stats.totals.resets += 1;
            self.members.manage(now, zone, ZoneAction::Reset, Purpose::Reset { zone });
        }
        if self.starved.is_empty() || self.zones.random().free == 0 {
            return;
        }
        for piece in std::mem::take(&mut self.starved) {
            self.place(now, piece);
        }
    }

    /// Begins a commit, if one is due.
    fn commit(&mut self, now: Time) {
        let needs_zones = !self.starved.is_empty() || self.zones.free_sequential() == 0;
        if needs_zones && self.zones.waits_for_commit() {
            self.committer.want();
        }
        if self.upkeep.commit_at.is_some_and(|at| at <= now) {
            self.committer.want();
        }
        if self.committer.is_due() {
            self.zones.commit_begins();
            self.committer.begin(now, &mut self.map, &mut self.members);
            self.upkeep.note_dirty(now, false);
        }
        let can_commit = !self.committer.has_failed();
        self.upkeep.note_dirty(now, can_commit && self.map.is_dirty());
        for request in self.committer.take_hopeless() {
            self.requests.get_mut(request).status = Status::WriteFault;
            self.complete(now, request);
        }
    }

    /// Asks whether zones should be reclaimed (`dmz_schedule_reclaim`): if so, that is done now, and not when reclaim would
    /// have looked.
    pub(super) fn ask_reclaim(&mut self, now: Time) {
        if self.reclaim.ask(self.zones.random_soon(), self.upkeep.is_idle(now)) {
            self.upkeep.look_at = None;
        }
    }

    /// Reclaim looks whether it is due (`dmz_reclaim_work`). It has looked for the last time when it finds something to
    /// do: then only those ask who take a zone, and moves that end.
    fn look(&mut self, now: Time) {
        let is_asked_in_vain = self.reclaim.is_idle() && self.reclaim.is_asked();
        if self.upkeep.is_look_due(now) || is_asked_in_vain {
            self.ask_reclaim(now);
            if !self.reclaim.is_asked() {
                self.upkeep.look_later(now);
            }
        }
    }

    /// Begins to move chunks, as long as more random zones should be free.
    fn begin_jobs(&mut self, now: Time) {
        self.look(now);
        while self.begin_job(now) {}
    }

    /// Begins to move a chunk, if more random zones should be free, and one can be moved.
    fn begin_job(&mut self, now: Time) -> bool {
        let is_waited_for = !self.starved.is_empty();
        if self.committer.has_failed()
            || !self.reclaim.may_begin()
            || !self.zones.has_mapped_random()
            || !self.reclaim.is_due(|| self.zones.random_soon(), is_waited_for)
        {
            return false;
        }
        let members = &self.members;
        let Ok(to_finish) = self.zones.to_finish(|zone| members.is_busy(zone)) else {
            return false;
        };
        let begun = self.reclaim.begin(now, &self.map, &mut self.zones, &mut self.traffic);
        let Some(number) = begun else { return false };
        let begins_zone = self.reclaim.job(number).chunk_move.new_zone().is_some();
        match to_finish.filter(|_| begins_zone) {
            Some(zone) => {
                self.stats.totals.finishes += 1;
                self.zones.close(zone);
                let purpose = Purpose::Finish { job: number };
                self.members.manage(now, zone, ZoneAction::Finish, purpose);
            }
            None => self.step_job(now, number),
        }
        true
    }

    /// Starts the next step of job `number`.
    fn step_job(&mut self, now: Time, number: u32) {
        if self.reclaim.ends(number) {
            return self.end_job(now, number);
        }
        match self.reclaim.next(now, number, &self.map, &self.zones) {
            Next::Fill(place) => {
                self.zones.append(place.zone, place.blocks);
                self.stats.totals.filled_blocks += u64::from(place.blocks);
                self.members.write_zeroes(now, place, Purpose::CopyWrite { job: number });
            }
            Next::Copy(from, _) => {
                self.members.read(now, from, Purpose::CopyRead { job: number });
            }
            Next::Done => self.finish_job(now, number),
        }
    }

    /// The data that job `number` moves has been read.
    fn copy_read(&mut self, now: Time, number: u32, ended: Ended<P>) {
        let copying = self.reclaim.job(number).copying;
        let Some(place) = copying.filter(|_| !self.reclaim.ends_amid_copy(number)) else {
            return self.end_job(now, number);
        };
        if ended.status != Status::Success {
            return self.fail_job(now, number);
        }
        if !self.layout.is_random(place.zone) {
            let at = self.zones.append(place.zone, place.blocks);
            assert_eq!(at, place.at, "a copy goes to the write pointer");
        }
        let data = StoredData::Units(ended.read.into());
        self.members.write(now, place, data, Keep::Later, Purpose::CopyWrite { job: number });
    }

    /// It has been written, or zeroes before it have.
    fn copy_written(&mut self, now: Time, number: u32, status: Status) {
        if status != Status::Success {
            return self.fail_job(now, number);
        }
        let job = *self.reclaim.job(number);
        if let Some(Place { at, blocks, .. }) = job.copying {
            self.stats.copied(job.chunk, at, blocks);
        }
        let (random, is_idle) = (self.zones.random_soon(), self.upkeep.is_idle(now));
        let until = self.reclaim.copied(now, number, random, is_idle);
        if until <= now || self.reclaim.ends(number) {
            self.step_job(now, number);
        }
    }

    /// A member did not do what the job asked for.
    fn fail_job(&mut self, now: Time, number: u32) {
        let chunk_move = self.reclaim.job(number).chunk_move;
        if let Some(zone) = chunk_move.new_zone() {
            self.zones.close(zone);
        } else if let Move::Append { to, .. } = chunk_move {
            self.zones.close(to);
        }
        self.reclaim.failed();
        self.end_job(now, number);
    }

    /// A job ends before its time: it has changed nothing.
    fn end_job(&mut self, now: Time, number: u32) {
        let job = self.reclaim.end(number);
        self.ask_reclaim(now);
        self.stats.totals.aborted += 1;
        if let Some(zone) = job.chunk_move.new_zone() {
            self.zones.drop_target(zone);
        }
        for piece in self.traffic.unlock(job.chunk) {
            self.admit(now, piece);
        }
    }

    /// All of a chunk is moved.
    fn finish_job(&mut self, now: Time, number: u32) {
        for zone in self.reclaim.settle(number, &mut self.map) {
            self.zones.give_up(zone);
        }
        let job = self.reclaim.end(number);
        match job.chunk_move {
            Move::Out { to, .. } | Move::Merge { to, .. } => {
                self.zones.set_use(to, Use::Data(job.chunk));
            }
            Move::Into { buffer, .. } => {
                self.stats.totals.merged_into_buffer += 1;
                self.zones.set_use(buffer, Use::Data(job.chunk));
            }
            Move::Drop { .. } | Move::Append { .. } => {}
        }
        self.stats.totals.reclaimed += 1;
        self.committer.want();
        let writers_first = self.reclaim.draw_writers_first();
        if !writers_first {
            self.ask_reclaim(now);
        }
        for piece in self.traffic.unlock(job.chunk) {
            self.admit(now, piece);
        }
        if writers_first {
            self.ask_reclaim(now);
        }
    }

    /// Moves what a journal has left in its zones, a part at a time; frees them when nothing is there any more.
    fn release_journal(&mut self, now: Time) {
        if !self.recognition.is_release_due() || self.committer.has_failed() {
            return;
        }
        let Some((chunk, first, blocks)) = self.map.next_in_journal(self.reclaim.most_blocks())
        else {
            let is_written = |zone| self.members.is_busy(zone);
            if !self.map.journal().zones().any(is_written) {
                for zone in self.map.clear_journal() {
                    self.zones.give_up(zone);
                }
                self.recognition.released();
                self.committer.want();
            }
            return;
        };
        self.recognition.begin_move();
        let unit_sectors = self.layout.unit_sectors();
        let block = u64::from(chunk) * u64::from(self.layout.zone_blocks) + u64::from(first);
        let units =
            Units::new(block * unit_sectors, u64::from(blocks) * unit_sectors, unit_sectors);
        let request = self.requests.insert(HostRequest::own(now, units));
        let stretch = Stretch { does: PieceOp::Destage, chunk, first, blocks, index: 0 };
        let piece = self.requests.insert_piece(Piece::new(request, stretch));
        self.admit(now, piece);
    }

    /// True if something is under way that may free a zone.
    fn can_wait(&self) -> bool {
        let is_moving = !self.reclaim.is_idle() || !self.members.is_idle();
        // Asked last: it looks at every zone.
        is_moving
            || !self.committer.is_idle()
            || !self.committer.has_failed() && self.zones.is_freeing()
    }

    /// Writers that wait for a zone, and can get none, hear so.
    fn give_up(&mut self, now: Time) {
        for piece in std::mem::take(&mut self.starved) {
            let request = self.requests.piece(piece).request;
            self.requests.get_mut(request).status = Status::WriteFault;
            self.piece_over(now, piece);
        }
    }

    /// A command that no request waits for has ended.
    pub(super) fn upkeep_ended(&mut self, now: Time, ended: Ended<P>) {
        match ended.purpose {
            Purpose::CopyRead { job } => self.copy_read(now, job, ended),
            Purpose::CopyWrite { job } => self.copy_written(now, job, ended.status),
            Purpose::Finish { job } => self.step_job(now, job),
            Purpose::Reset { zone } => {
                self.zones.was_reset(zone, ended.status == Status::Success);
            }
            Purpose::Commit => self.commit_ended(now, ended.status),
            Purpose::Load { step } => self.load_ended(now, step, ended),
            Purpose::Read { .. } | Purpose::Fill { .. } | Purpose::Write { .. } => {
                unreachable!("a request waits for it")
            }
        }
    }

    fn commit_ended(&mut self, now: Time, status: Status) {
        let reached = self.committer.ended(now, status, &mut self.map, &mut self.members);
        let has_failed = self.committer.has_failed();
        for request in reached.requests {
            if has_failed {
                self.requests.get_mut(request).status = Status::WriteFault;
            }
            self.complete(now, request);
        }
        if reached.is_over && !has_failed {
            self.zones.commit_ended();
        }
    }

    /// Begins to read the tables.
    pub(super) fn load(&mut self, now: Time) {
        let loader = Loader::start(now, self.layout, &mut self.members);
        self.state = State::Loading(Box::new(loader));
    }

    fn load_ended(&mut self, now: Time, step: u32, ended: Ended<P>) {
        let State::Loading(loader) = &mut self.state else { return };
        match loader.ended(now, step, ended, &mut self.members) {
            None => {}
            Some(Ok(found)) => self.loaded(now, found),
            Some(Err(problem)) => self.load_failed(now, problem),
        }
    }

    /// The tables are back.
    fn loaded(&mut self, now: Time, found: Found) {
        let Found { map, superblock, set, crcs, zones } = found;
        self.map = map;
        self.zones = Zones::new(self.layout);
        for chunk in 0..self.layout.chunks {
            let ChunkZones { data, buffer } = self.map.chunk(chunk);
            if let Some(zone) = data {
                self.zones.claim(zone, Use::Data(chunk));
            }
            if let Some(zone) = buffer {
                self.zones.claim(zone, Use::Buffer(chunk));
            }
        }
        let journal: Vec<_> = self.map.journal().zones().collect();
        for zone in journal {
            self.zones.claim(zone, Use::Journal);
        }
        for (zone, written, can_be_written) in zones {
            self.zones.found(zone, written, can_be_written);
        }
        self.committer.resume(&superblock, set, crcs);
        // The other set has not been read, and may be older or damaged: both are written anew, that one first.
        self.map.set_all_dirty();
        self.committer.want();
        self.stats.totals.recoveries += 1;
        self.state = State::Up;
        self.recognition.review(self.map.journal().runs());
        self.upkeep.used(now);
        self.upkeep.look_at = Some(now);
        for piece in std::mem::take(&mut self.upkeep.early) {
            self.admit(now, piece);
        }
    }

    /// The tables cannot be read: every command fails.
    fn load_failed(&mut self, now: Time, problem: String) {
        self.state = State::Failed(problem);
        for piece in std::mem::take(&mut self.upkeep.early) {
            let request = self.requests.piece(piece).request;
            let is_read = self.requests.get(request).op() == Op::Read;
            let fault = if is_read { Status::UnrecoveredRead } else { Status::WriteFault };
            self.requests.get_mut(request).status = fault;
            self.requests.remove_piece(piece);
            self.one_piece_less(now, request);
        }
        for request in self.committer.take_waiting() {
            self.requests.get_mut(request).status = Status::WriteFault;
            self.complete(now, request);
        }
    }

    /// Everything in memory is gone.
    pub(super) fn forget(&mut self, now: Time) {
        self.requests.clear();
        self.traffic.clear();
        self.reclaim.clear();
        self.committer.lose_power();
        self.upkeep.lose_power(now);
        self.starved.clear();
        self.recognition.forget();
        self.ended.clear();
        self.state = State::Off;
        self.now = now;
        self.settle(now);
    }
}
