//! The host's requests that are under way, cut into pieces: what a request has of one chunk.
//!
//! **Invariants**: a request ends once, when all its pieces have.

use leyden_device::{
    Action, Command, CommandId, Completion, DataKind, Op, Output, Payload, Status, Units,
};
use leyden_sim::Time;

/// The operation of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PieceOp {
    Read,
    Write,
    /// Writes zeroes to a part of a block.
    Zero,
    /// Makes whole blocks zeroes.
    Trim,
    /// Writes what the blocks hold to their chunk's zones: a journal has left them.
    Destage,
}

/// A request's part in one chunk.
#[derive(Clone, Debug)]
pub(super) struct Piece<P> {
    pub(super) request: u32,
    pub(super) does: PieceOp,
    pub(super) chunk: u32,
    /// The first block, counted from the chunk's.
    pub(super) first: u32,
    pub(super) blocks: u32,
    /// Which of the request's units the first block is.
    pub(super) index: u32,
    /// Commands below that it waits for.
    pub(super) pending: u32,
    /// All its blocks were in the journal's zones when it began: a job has not kept it from its chunk.
    pub(super) in_journal: bool,
    /// Old contents of the blocks that it writes in part, with their number in the request.
    pub(super) old: Vec<(u32, P)>,
}

impl<P> Piece<P> {
    /// The piece of `request` in `stretch`.
    pub(super) fn new(request: u32, stretch: Stretch) -> Self {
        let Stretch { does, chunk, first, blocks, index } = stretch;
        let (pending, in_journal, old) = (0, false, Vec::new());
        Self { request, does, chunk, first, blocks, index, pending, in_journal, old }
    }

    /// Its blocks, up to, not including, the second.
    pub(super) fn range(&self) -> (u32, u32) {
        (self.first, self.first + self.blocks)
    }

    pub(super) fn changes(&self) -> bool {
        self.does != PieceOp::Read
    }
}

/// A command of the host's.
#[derive(Clone, Debug)]
pub(super) struct HostRequest<P: Payload> {
    /// `None`: the layer's own.
    id: Option<CommandId>,
    op: Op,
    tag: u32,
    submitted: Time,
    pub(super) units: Units,
    pub(super) data: P::WriteData,
    pub(super) fua: bool,
    pub(super) kind: DataKind,
    pub(super) read: P::ReadData,
    /// Pieces that are not over.
    pub(super) pieces: u32,
    pub(super) status: Status,
    /// It has FUA, and the tables that say where its data lies do not survive a power cut yet.
    pub(super) needs_tables: bool,
}

impl<P: Payload> HostRequest<P> {
    pub(super) fn new(id: CommandId, now: Time, command: &Command<P>, units: Units) -> Self {
        Self {
            id: Some(id),
            op: command.op(),
            tag: command.tag,
            submitted: now,
            units,
            data: command.data().cloned().unwrap_or_default(),
            fua: command.is_fua(),
            kind: match command.action {
                Action::Write { kind, .. } => kind,
                _ => DataKind::Data,
            },
            read: P::ReadData::default(),
            pieces: 0,
            status: Status::Success,
            needs_tables: false,
        }
    }

    /// The layer's own, to move what `units` hold.
    pub(super) fn own(now: Time, units: Units) -> Self {
        let command = Command::flush();
        Self { id: None, op: Op::Write, pieces: 1, ..Self::new(CommandId(0), now, &command, units) }
    }

    pub(super) const fn op(&self) -> Op {
        self.op
    }

    /// The request's stretches, in chunks of `chunk_blocks`.
    pub(super) fn cut(&self, chunk_blocks: u32) -> impl Iterator<Item = Stretch> + Clone + use<P> {
        let (first, count) = (self.units.first().0, self.units.count());
        let (whole, whole_end) = self.units.whole();
        let end = first + count;
        let none = (PieceOp::Trim, 0, 0);
        let ranges = match self.op {
            Op::Read => [(PieceOp::Read, first, end), none, none],
            Op::Write => [(PieceOp::Write, first, end), none, none],
            Op::Trim => [(PieceOp::Trim, whole.0, whole_end.0), none, none],
            Op::WriteZeroes if whole.0 >= whole_end.0 => [(PieceOp::Zero, first, end), none, none],
            Op::WriteZeroes => [
                (PieceOp::Zero, first, whole.0),
                (PieceOp::Trim, whole.0, whole_end.0),
                (PieceOp::Zero, whole_end.0, end),
            ],
            _ => [none; 3],
        };
        ranges.into_iter().flat_map(move |(does, begin, end)| {
            let mut at = begin;
            std::iter::from_fn(move || {
                let blocks = end.checked_sub(at)?.min(chunk_blocks - at % chunk_blocks);
                let (chunk, index) = (at / chunk_blocks, at.wrapping_sub(first));
                let stretch = Stretch { does, chunk, first: at % chunk_blocks, blocks, index };
                at += blocks;
                (blocks > 0).then_some(stretch)
            })
        })
    }
}

/// An operation on blocks of one chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    pub(super) does: PieceOp,
    pub(super) chunk: u32,
    /// The first block, counted from the chunk's.
    pub(super) first: u32,
    pub(super) blocks: u32,
    /// Which of the request's units the first block is.
    pub(super) index: u32,
}

/// Requests and pieces, in slabs.
#[derive(Clone, Debug)]
pub(super) struct Requests<P: Payload> {
    asked: Vec<Option<HostRequest<P>>>,
    free: Vec<u32>,
    pieces: Vec<Option<Piece<P>>>,
    free_pieces: Vec<u32>,
}

fn insert<T>(slab: &mut Vec<Option<T>>, free: &mut Vec<u32>, value: T) -> u32 {
    if let Some(at) = free.pop() {
        slab[at as usize] = Some(value);
        at
    } else {
        slab.push(Some(value));
        slab.len() as u32 - 1
    }
}

impl<P: Payload> Requests<P> {
    pub(super) const fn new() -> Self {
        Self { asked: Vec::new(), free: Vec::new(), pieces: Vec::new(), free_pieces: Vec::new() }
    }

    pub(super) fn insert(&mut self, asked: HostRequest<P>) -> u32 {
        insert(&mut self.asked, &mut self.free, asked)
    }

    pub(super) fn insert_piece(&mut self, piece: Piece<P>) -> u32 {
        insert(&mut self.pieces, &mut self.free_pieces, piece)
    }

    #[inline]
    pub(super) fn get(&self, request: u32) -> &HostRequest<P> {
        self.asked[request as usize].as_ref().expect("a request under way")
    }

    #[inline]
    pub(super) fn get_mut(&mut self, request: u32) -> &mut HostRequest<P> {
        self.asked[request as usize].as_mut().expect("a request under way")
    }

    #[inline]
    pub(super) fn piece(&self, piece: u32) -> &Piece<P> {
        self.pieces[piece as usize].as_ref().expect("a piece under way")
    }

    #[inline]
    pub(super) fn piece_mut(&mut self, piece: u32) -> &mut Piece<P> {
        self.pieces[piece as usize].as_mut().expect("a piece under way")
    }

    /// A piece is over.
    pub(super) fn remove_piece(&mut self, piece: u32) -> Piece<P> {
        self.free_pieces.push(piece);
        self.pieces[piece as usize].take().expect("a piece under way")
    }

    /// A request is over.
    ///
    /// # Errors
    /// With how it has ended, if it was the layer's own.
    pub(super) fn complete(&mut self, now: Time, request: u32) -> Result<Completion<P>, Status> {
        self.free.push(request);
        let asked = self.asked[request as usize].take().expect("a request under way");
        let output = match asked.op {
            Op::Read if asked.status == Status::Success => Output::Read(asked.read),
            _ => Output::None,
        };
        Ok(Completion {
            id: asked.id.ok_or(asked.status)?,
            op: asked.op,
            tag: asked.tag,
            submitted: asked.submitted,
            time: now,
            status: asked.status,
            output,
        })
    }

    /// The requests under way.
    pub(super) fn all(&self) -> impl Iterator<Item = &HostRequest<P>> {
        self.asked.iter().flatten()
    }

    /// Their pieces under way.
    pub(super) fn all_pieces(&self) -> impl Iterator<Item = &Piece<P>> {
        self.pieces.iter().flatten()
    }

    /// All of them are gone.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.asked.len()
    }
}
