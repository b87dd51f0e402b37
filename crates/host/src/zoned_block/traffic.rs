//! Users of chunks: requests in flight there, and a job of reclaim.
//!
//! **Invariants**
//! - A chunk that a job moves is used by nobody else.
//! - Changes of the same blocks follow each other.

use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
struct Chunk {
    /// Pieces of requests that are under way.
    in_flight: u32,
    /// The blocks, from the first up to, not including, the second, that pieces under way change.
    changes: Vec<(u32, u32)>,
    /// Pieces that wait for others, or for a job.
    waiting: VecDeque<u32>,
    job: Option<u32>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    chunks: Vec<Chunk>,
}

/// May a piece begin?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    /// It is under way from now on.
    Open,
    /// It waits: others change its blocks.
    Behind,
    /// It waits: a job has the chunk.
    Locked(u32),
}

impl Traffic {
    pub(super) fn new(chunks: u32) -> Self {
        Self { chunks: vec![Chunk::default(); chunks as usize] }
    }

    /// Piece `piece` wants to use blocks `first..end` of `chunk`, and to change them or not. One that has nothing
    /// to do with the chunk's zones does not mind a job there.
    pub(super) fn enter(
        &mut self,
        chunk: u32,
        piece: u32,
        (first, end): (u32, u32),
        changes: bool,
        minds_jobs: bool,
    ) -> Entry {
        let chunk = &mut self.chunks[chunk as usize];
        if let Some(job) = chunk.job.filter(|_| minds_jobs) {
            chunk.waiting.push_back(piece);
            return Entry::Locked(job);
        }
        let overlaps = |&(other, others_end): &(u32, u32)| first < others_end && other < end;
        if changes && chunk.changes.iter().any(overlaps) {
            chunk.waiting.push_back(piece);
            return Entry::Behind;
        }
        chunk.in_flight += 1;
        if changes {
            chunk.changes.push((first, end));
        }
        Entry::Open
    }

    /// A piece that was under way is over; returns those that may try again.
    pub(super) fn leave(&mut self, chunk: u32, range: (u32, u32), changes: bool) -> VecDeque<u32> {
        let chunk = &mut self.chunks[chunk as usize];
        chunk.in_flight -= 1;
        if !changes {
            return VecDeque::new();
        }
        let at = chunk.changes.iter().position(|&it| it == range).expect("a change under way");
        chunk.changes.swap_remove(at);
        std::mem::take(&mut chunk.waiting)
    }

    /// True if nothing of `chunk` is under way.
    #[inline]
    pub(super) fn is_quiet(&self, chunk: u32) -> bool {
        let chunk = &self.chunks[chunk as usize];
        chunk.in_flight == 0 && chunk.job.is_none()
    }

    /// A job takes the chunk, which is quiet.
    pub(super) fn lock(&mut self, chunk: u32, job: u32) {
        assert!(self.is_quiet(chunk), "chunk {chunk} is in use");
        self.chunks[chunk as usize].job = Some(job);
    }

    /// Forgets all users.
    pub(super) fn clear(&mut self) {
        self.chunks.fill(Chunk::default());
    }

    /// The job lets go; returns the pieces that may try again.
    pub(super) fn unlock(&mut self, chunk: u32) -> VecDeque<u32> {
        let chunk = &mut self.chunks[chunk as usize];
        chunk.job = None;
        std::mem::take(&mut chunk.waiting)
    }
}
