//! How the host's requests go through.

use std::sync::Arc;

use leyden_device::{DataKind, Op, Payload, Status};
use leyden_sim::Time;

use super::layout::{Place, ZoneNo};
use super::map::Entry as ChunkZones;
use super::members::{Ended, Keep, Purpose};
use super::requests::{HostRequest, Piece, PieceOp};
use super::stored::{Stored, StoredData};
use super::traffic::Entry;
use super::zones::Use;
use super::{State, ZonedBlock};
use crate::Powered;

impl<P, C, Z> ZonedBlock<P, C, Z>
where
    P: Payload,
    C: Powered<Stored<P>>,
    Z: Powered<Stored<P>>,
{
    /// A request has come.
    pub(super) fn begin(&mut self, now: Time, asked: HostRequest<P>) {
        let (op, status) = (asked.op(), asked.status);
        let pieces = asked.cut(self.layout.zone_blocks);
        let request = self.requests.insert(asked);
        if status != Status::Success {
            return self.complete(now, request);
        }
        if let State::Off = self.state {
            return self.end_with(now, request, Status::NotReady);
        }
        if let State::Failed(_) = self.state {
            let fault = if op == Op::Read { Status::UnrecoveredRead } else { Status::WriteFault };
            return self.end_with(now, request, fault);
        }
        if op == Op::Flush {
            return self.committer.wait(request);
        }
        let count = pieces.clone().count() as u32;
        if count == 0 {
            return self.complete(now, request);
        }
        self.requests.get_mut(request).pieces = count;
        for stretch in pieces {
            let piece = self.requests.insert_piece(Piece::new(request, stretch));
            self.admit(now, piece);
        }
    }

    /// Ends a request that never began.
    fn end_with(&mut self, now: Time, request: u32, status: Status) {
        self.requests.get_mut(request).status = status;
        self.complete(now, request);
    }

    pub(super) fn complete(&mut self, now: Time, request: u32) {
        match self.requests.complete(now, request) {
            Ok(completion) => self.ended.push_back(completion),
            Err(status) => self.recognition.end_move(status == Status::Success),
        }
    }

    /// A piece, new or one that has waited: begins it, unless it has to wait.
    pub(super) fn admit(&mut self, now: Time, id: u32) {
        if let State::Loading(_) = self.state {
            return self.upkeep.wait_for_tables(id);
        }
        let piece = self.requests.piece(id);
        let (chunk, range, changes) = (piece.chunk, piece.range(), piece.changes());
        if changes && self.committer.has_failed() {
            // Nothing could be promised of it.
            let request = piece.request;
            self.requests.get_mut(request).status = Status::WriteFault;
            self.requests.remove_piece(id);
            return self.one_piece_less(now, request);
        }
        let in_journal = (!changes || !self.recognition.is_releasing())
            && (range.0..range.1).all(|at| self.map.is_in_journal(chunk, at));
        self.requests.piece_mut(id).in_journal = in_journal;
        match self.traffic.enter(chunk, id, range, changes, !in_journal) {
            // A write that waits for a zone needs the job to continue.
            Entry::Locked(job) if self.starved.is_empty() => self.reclaim.abort(job),
            Entry::Locked(_) | Entry::Behind => {}
            Entry::Open => self.start(now, id),
        }
    }

    fn start(&mut self, now: Time, id: u32) {
        let piece = self.requests.piece(id);
        if self.is_use(piece) {
            self.upkeep.used(now);
        }
        match piece.does {
            PieceOp::Read => self.read(now, id),
            PieceOp::Trim => {
                let (chunk, first, blocks) = (piece.chunk, piece.first, piece.blocks);
                self.map.settle(chunk, first, blocks, None);
                self.note_changed(chunk, first, blocks);
                self.piece_over(now, id);
            }
            PieceOp::Write | PieceOp::Zero | PieceOp::Destage => self.fill(now, id),
        }
    }

    /// True if a piece that begins keeps the device from being idle (`dmz_reclaim_bio_acc`).
    fn is_use(&self, piece: &Piece<P>) -> bool {
        let data = self.map.chunk(piece.chunk).data;
        let is_of_zoned =
            data.is_some_and(|zone| !self.layout.is_random(zone)) && !piece.in_journal;
        piece.does != PieceOp::Destage && (is_of_zoned || self.upkeep.is_idle_of_both())
    }

    /// Reads what lies on the members; everything else is zeroes.
    fn read(&mut self, now: Time, id: u32) {
        let piece = self.requests.piece(id);
        let (chunk, first, blocks, index) = (piece.chunk, piece.first, piece.blocks, piece.index);
        let request = piece.request;
        let mut runs: Vec<(u32, Place)> = Vec::new();
        for block in 0..blocks {
            match (self.map.find(chunk, first + block), runs.last_mut()) {
                (Some((zone, at)), Some((from, run)))
                    if run.zone == zone
                        && run.at + run.blocks == at
                        && *from + run.blocks == block =>
                {
                    run.blocks += 1;
                }
                (Some((zone, at)), _) => runs.push((block, Place { zone, at, blocks: 1 })),
                (None, _) => {
                    let asked = self.requests.get_mut(request);
                    let part = asked.units.part(index + block);
                    P::gather(&mut asked.read, part, &P::default());
                }
            }
        }
        if runs.is_empty() {
            return self.piece_over(now, id);
        }
        self.requests.piece_mut(id).pending = runs.len() as u32;
        for (from, place) in runs {
            let purpose = Purpose::Read { piece: id, index: index + from };
            self.zones.touch(place.zone);
            self.members.read(now, place, purpose);
        }
    }

    /// Reads what blocks that are written in part hold now.
    fn fill(&mut self, now: Time, id: u32) {
        let piece = self.requests.piece(id);
        let units = self.requests.get(piece.request).units;
        let (chunk, first, index) = (piece.chunk, piece.first, piece.index);
        let is_all = piece.does == PieceOp::Destage;
        let partial = (0..piece.blocks).filter(|block| is_all || units.is_partial(index + block));
        let reads: Vec<_> =
            partial.map(|block| (index + block, self.map.find(chunk, first + block))).collect();
        for (index, place) in reads {
            match place {
                Some((zone, at)) => {
                    self.requests.piece_mut(id).pending += 1;
                    let place = Place { zone, at, blocks: 1 };
                    self.members.read(now, place, Purpose::Fill { piece: id, index });
                }
                None => self.requests.piece_mut(id).old.push((index, P::default())),
            }
        }
        if self.requests.piece(id).pending == 0 {
            self.place(now, id);
        }
    }

    /// Blocks from `at` of `chunk` on, as numbers of the device.
    fn device_blocks(&self, chunk: u32, at: u32, blocks: u32) -> std::ops::Range<u64> {
        let first = u64::from(chunk) * u64::from(self.layout.zone_blocks) + u64::from(at);
        first..first + u64::from(blocks)
    }

    fn note_changed(&mut self, chunk: u32, at: u32, blocks: u32) {
        let blocks = self.device_blocks(chunk, at, blocks);
        self.recognition.wrote(blocks);
    }

    /// Says that block `at` of `chunk` is a journal's.
    fn is_journal(&self, chunk: u32, at: u32, says_log: bool) -> bool {
        self.recognition.is_journal(self.device_blocks(chunk, at, 1).start, says_log)
    }

    /// A random zone for `usage`. Asks whether to reclaim first, as dm-zoned does: so reclaim begins with the zone after
    /// the one that leaves few.
    fn take_random(&mut self, now: Time, usage: Use) -> Option<ZoneNo> {
        self.ask_reclaim(now);
        self.zones.take_random(usage)
    }

    /// Gives the blocks of a journal places in its zones, as far as there are any.
    fn give_slots(&mut self, now: Time, chunk: u32, first: u32, end: u32, says_log: bool) {
        for at in first..end {
            let has_slot = self.map.slot(chunk, at).is_some();
            if self.layout.journal == 0 || has_slot || !self.is_journal(chunk, at, says_log) {
                continue;
            }
            if self.map.journal().wants_zone() {
                let Some(zone) = self.take_random(now, Use::Journal) else { continue };
                self.map.add_journal_zone(zone);
            }
            self.map.add_slot(chunk, at);
        }
    }

    /// The blocks from `at` of `chunk` on that one command writes, before `end`: their number, and their place among
    /// the journal's if they have one and go there. Others are the chunk's own.
    fn run(&self, chunk: u32, at: u32, end: u32, keeps_out: bool) -> (u32, Option<Place>) {
        let slot = |at| if keeps_out { None } else { self.map.slot(chunk, at) };
        let first = slot(at);
        let follows = |n: &u32| match (first, slot(at + n)) {
            (None, None) => true,
            (Some(first), Some(it)) => it.zone == first.zone && it.at == first.at + n,
            _ => false,
        };
        let blocks = 1 + (1..end - at).take_while(follows).count() as u32;
        (blocks, first.map(|it| Place { zone: it.zone, at: it.at, blocks }))
    }

    /// True if a run of blocks goes to the write pointer of the chunk's sequential zone.
    fn is_direct(&self, ChunkZones { data, buffer }: ChunkZones, at: u32, blocks: u32) -> bool {
        let in_buffer = |buffer| (at..at + blocks).any(|block| self.map.is_valid(buffer, block));
        data.is_some_and(|data| {
            !self.layout.is_random(data) && self.zones.pointer(data) == Some(at)
        }) && !buffer.is_some_and(in_buffer)
    }

    /// Sees that the chunk has the zones that `runs` runs of its own blocks need, of which the first is `first`; false
    /// if there is no zone for it now.
    fn provide(&mut self, now: Time, chunk: u32, at: u32, blocks: u32, runs: u32) -> bool {
        let entry = self.map.chunk(chunk);
        let Some(data) = entry.data else {
            let Some(zone) = self.take_random(now, Use::Data(chunk)) else { return false };
            self.map.set_chunk(chunk, ChunkZones { data: Some(zone), buffer: None });
            return true;
        };
        // A second run does not begin at the write pointer that the first one finds.
        let needs_none = runs == 1 && self.is_direct(entry, at, blocks);
        if self.layout.is_random(data) || entry.buffer.is_some() || needs_none {
            return true;
        }
        let Some(zone) = self.take_random(now, Use::Buffer(chunk)) else { return false };
        self.map.set_chunk(chunk, ChunkZones { buffer: Some(zone), ..entry });
        true
    }

    /// Where in its chunk's zones, which it has, a run of blocks is written.
    fn chunk_place(&mut self, chunk: u32, at: u32, blocks: u32) -> Place {
        let entry = self.map.chunk(chunk);
        let data = entry.data.expect("it was provided");
        let zone = if self.is_direct(entry, at, blocks) {
            self.zones.append(data, blocks);
            self.stats.totals.direct_blocks += u64::from(blocks);
            data
        } else {
            entry.buffer.unwrap_or(data)
        };
        Place { zone, at, blocks }
    }

    /// Finds a place for what a piece writes, and writes it there.
    pub(super) fn place(&mut self, now: Time, id: u32) {
        let piece = self.requests.piece(id);
        let (chunk, (first, end)) = (piece.chunk, piece.range());
        let says_log = self.requests.get(piece.request).kind == DataKind::Log;
        // A piece that has not waited for whoever has the chunk keeps out of it.
        let keeps_out = self.recognition.is_releasing() && !piece.in_journal;
        if !keeps_out {
            self.give_slots(now, chunk, first, end, says_log);
        }
        let (mut commands, mut own_runs, mut first_own) = (0, 0, None);
        let mut at = first;
        while at < end {
            let (blocks, slots) = self.run(chunk, at, end, keeps_out);
            if slots.is_none() {
                first_own = first_own.or(Some((at, blocks)));
                own_runs += 1;
            }
            commands += 1;
            at += blocks;
        }
        if first_own.is_some_and(|(at, blocks)| !self.provide(now, chunk, at, blocks, own_runs)) {
            self.stats.totals.starved += 1;
            self.starved.push_back(id);
            return;
        }
        self.requests.piece_mut(id).pending = commands;
        let mut at = first;
        while at < end {
            let (blocks, slots) = self.run(chunk, at, end, keeps_out);
            let place = slots.unwrap_or_else(|| self.chunk_place(chunk, at, blocks));
            self.write(now, id, at, place);
            at += blocks;
        }
    }

    /// Writes a run of a piece's blocks to its place.
    fn write(&mut self, now: Time, id: u32, at: u32, place: Place) {
        let piece = self.requests.piece(id);
        let asked = self.requests.get(piece.request);
        let from = piece.index + (at - piece.first);
        let data = if piece.old.is_empty() {
            StoredData::Host { data: asked.data.clone(), units: asked.units, from }
        } else {
            let unit = |index: u32| {
                let part = asked.units.part(index);
                let old = piece.old.iter().find(|(number, _)| *number == index);
                let data = match old {
                    None => P::written(&asked.data, part),
                    Some((_, old)) => match piece.does {
                        PieceOp::Zero => P::zeroed(old, &asked.data, part),
                        PieceOp::Destage => old.clone(),
                        _ => P::merged(old, &asked.data, part),
                    },
                };
                Stored::Data(data)
            };
            let units: Arc<[Stored<P>]> = (from..from + place.blocks).map(unit).collect();
            StoredData::Units(units)
        };
        let is_protected =
            self.recognition.is_protected() && self.zones.usage(place.zone) == Use::Journal;
        let keep = match asked.fua {
            true => Keep::Fua,
            false if is_protected => Keep::Protected,
            false => Keep::Later,
        };
        self.zones.touch(place.zone);
        self.members.write(now, place, data, keep, Purpose::Write { piece: id, at, place });
    }

    /// A command below has ended.
    pub(super) fn command_ended(&mut self, now: Time, ended: Ended<P>) {
        match ended.purpose {
            Purpose::Read { piece, index } => self.read_ended(now, piece, index, &ended),
            Purpose::Fill { piece, index } => self.filled(now, piece, index, &ended),
            Purpose::Write { piece, at, place } => {
                self.write_ended(now, piece, at, place, ended.status);
            }
            _ => self.upkeep_ended(now, ended),
        }
    }

    fn read_ended(&mut self, now: Time, id: u32, index: u32, ended: &Ended<P>) {
        let request = self.requests.piece(id).request;
        let asked = self.requests.get_mut(request);
        if ended.status == Status::Success {
            for (offset, unit) in ended.read.iter().enumerate() {
                let part = asked.units.part(index + offset as u32);
                P::gather(&mut asked.read, part, &unit.data());
            }
        } else {
            asked.status = ended.status;
        }
        self.one_command_less(now, id);
    }

    fn filled(&mut self, now: Time, id: u32, index: u32, ended: &Ended<P>) {
        let request = self.requests.piece(id).request;
        if ended.status != Status::Success {
            self.requests.get_mut(request).status = ended.status;
        }
        let old = ended.read.first().map_or_else(P::default, Stored::data);
        let piece = self.requests.piece_mut(id);
        piece.old.push((index, old));
        piece.pending -= 1;
        if piece.pending > 0 {
            return;
        }
        // Without the old data, new data cannot be merged with it.
        if self.requests.get(request).status == Status::Success {
            self.place(now, id);
        } else {
            self.piece_over(now, id);
        }
    }

    fn write_ended(&mut self, now: Time, id: u32, at: u32, place: Place, status: Status) {
        let piece = self.requests.piece(id);
        let (chunk, request, does) = (piece.chunk, piece.request, piece.does);
        if status == Status::Success {
            self.map.settle(chunk, at, place.blocks, Some(place));
            if does == PieceOp::Destage {
                self.stats.totals.released_blocks += u64::from(place.blocks);
            } else {
                let said = self.requests.get(request).kind;
                let is_log = self.is_journal(chunk, at, said == DataKind::Log);
                let kind = if is_log { DataKind::Log } else { said };
                self.stats.wrote(chunk, at, place.blocks, kind);
                if self.zones.usage(place.zone) == Use::Journal {
                    self.stats.totals.separated_blocks += u64::from(place.blocks);
                } else {
                    self.reclaim.wrote(chunk, place.blocks);
                }
                self.note_changed(chunk, at, place.blocks);
            }
        } else {
            self.requests.get_mut(request).status = Status::WriteFault;
            if !self.layout.is_random(place.zone) {
                self.zones.close(place.zone);
            }
        }
        self.one_command_less(now, id);
    }

    fn one_command_less(&mut self, now: Time, id: u32) {
        let piece = self.requests.piece_mut(id);
        piece.pending -= 1;
        if piece.pending == 0 {
            self.piece_over(now, id);
        }
    }

    /// A piece is over: others may begin, and its request may be over.
    pub(super) fn piece_over(&mut self, now: Time, id: u32) {
        let piece = self.requests.remove_piece(id);
        let waiting = self.traffic.leave(piece.chunk, piece.range(), piece.changes());
        if piece.changes() && self.traffic.is_quiet(piece.chunk) {
            self.tidy(piece.chunk);
        }
        for id in waiting {
            self.admit(now, id);
        }
        let asked = self.requests.get(piece.request);
        let needs_tables = asked.fua
            && asked.status == Status::Success
            && !self.map.is_durable(piece.chunk, piece.first, piece.blocks);
        if needs_tables {
            self.requests.get_mut(piece.request).needs_tables = true;
        }
        self.one_piece_less(now, piece.request);
    }

    pub(super) fn one_piece_less(&mut self, now: Time, request: u32) {
        let asked = self.requests.get_mut(request);
        asked.pieces -= 1;
        if asked.pieces > 0 {
            return;
        }
        if asked.needs_tables && asked.status == Status::Success {
            self.committer.wait(request);
        } else {
            self.complete(now, request);
        }
    }

    /// Gives up zones of a quiet chunk in which nothing is valid.
    fn tidy(&mut self, chunk: u32) {
        let ChunkZones { data, buffer } = self.map.chunk(chunk);
        let Some(data) = data else { return };
        match buffer {
            Some(buffer) if self.map.weight(buffer) == 0 => {
                self.map.set_chunk(chunk, ChunkZones { data: Some(data), buffer: None });
                self.zones.give_up(buffer);
                self.tidy(chunk);
            }
            Some(buffer) if self.map.weight(data) == 0 => {
                let entry = ChunkZones { data: Some(buffer), buffer: None };
                self.map.set_chunk(chunk, entry);
                self.zones.set_use(buffer, Use::Data(chunk));
                self.zones.give_up(data);
            }
            None if self.map.weight(data) == 0 => {
                self.map.set_chunk(chunk, ChunkZones::default());
                self.zones.give_up(data);
            }
            _ => {}
        }
    }
}
