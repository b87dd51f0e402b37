//! A drive in one state after another, for a loop device: what is written to it is forgotten with the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leyden_device::{Lba, SECTOR_BYTES, Status};
use leyden_serve::{Answer, Ask, Blocks, Failure};

use crate::state::{Image, State};
use crate::timeline::Timeline;

/// A drive whose state can be set.
#[derive(Clone, Debug)]
pub(crate) struct View {
    timeline: Arc<Timeline>,
    shown: Arc<Mutex<Shown>>,
    /// The block that a mount reads first.
    superblock: Lba,
}

/// The drive's current contents.
#[derive(Debug)]
struct Shown {
    state: State,
    /// The bytes of atoms that were lost or that somebody has written to since.
    changed: BTreeMap<u32, Box<[u8]>>,
    /// True if the superblock was read since the state was set.
    is_begun: bool,
    reads: Reads,
    /// The writes since the state was set, if they are noted.
    written: Option<Vec<Written>>,
}

/// A write, or a flush, of the software's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Written {
    Data { lba: Lba, data: Vec<u8>, fua: bool },
    Zeroes { lba: Lba, sectors: u32 },
    Flush,
}

/// Atoms that were read as the state has them, and not as somebody has written them since.
#[derive(Debug, Default)]
struct Reads {
    /// In the order of their first reading.
    order: Vec<u32>,
    all: BTreeSet<u32>,
    /// Written as a whole before anything of them was read.
    hidden: BTreeSet<u32>,
}

impl Reads {
    fn note(&mut self, atom: u32) {
        if !self.hidden.contains(&atom) && self.all.insert(atom) {
            self.order.push(atom);
        }
    }

    fn hide(&mut self, atom: u32) {
        if !self.all.contains(&atom) {
            self.hidden.insert(atom);
        }
    }
}

impl View {
    /// A drive in which nothing is written yet.
    pub(crate) fn new(timeline: Arc<Timeline>, superblock: Lba) -> Self {
        let state = State::new(0, Vec::new());
        let shown = Shown {
            state,
            changed: BTreeMap::new(),
            is_begun: false,
            reads: Reads::default(),
            written: None,
        };
        Self { timeline, shown: Arc::new(Mutex::new(shown)), superblock }
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Shows another state; what was written to the last one is forgotten.
    pub(crate) fn show(&self, state: &State) {
        let image = Image::new(&self.timeline, state);
        let after = state.after.iter().map(|(atom, _)| *atom);
        let changed = state.lost.iter().map(|&(atom, _)| atom).chain(after);
        let changed = changed.map(|atom| (atom, image.atom(atom).into()));
        let changed = changed.collect();
        let reads = Reads::default();
        let written = None;
        *self.lock() = Shown { state: state.clone(), changed, is_begun: false, reads, written };
    }

    /// Shows the same state anew.
    pub(crate) fn again(&self) {
        let (state, is_noted) = {
            let shown = self.lock();
            (shown.state.clone(), shown.written.is_some())
        };
        self.show(&state);
        if is_noted {
            self.note_writes();
        }
    }

    /// From now on what is written to the state is noted.
    pub(crate) fn note_writes(&self) {
        self.lock().written = Some(Vec::new());
    }

    /// The writes since, in order.
    pub(crate) fn take_writes(&self) -> Option<Vec<Written>> {
        self.lock().written.take()
    }

    fn note(&self, what: impl FnOnce() -> Written) {
        if let Some(written) = &mut self.lock().written {
            written.push(what());
        }
    }

    /// The atoms that were read since the state was set, in the order of their first reading; those that were
    /// written as a whole before are left out.
    pub(crate) fn take_reads(&self) -> Vec<u32> {
        std::mem::take(&mut self.lock().reads).order
    }

    /// True if the superblock was read since the state was set. Who mounts a file system and has not read it
    /// has found it in a cache: of another state.
    pub(crate) fn is_begun(&self) -> bool {
        self.lock().is_begun
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `each` with each atom of a range, and the bytes of it that are meant.
    fn parts(
        &self,
        lba: Lba,
        length: usize,
        mut each: impl FnMut(u32, std::ops::Range<usize>, usize),
    ) {
        let atom_bytes = self.timeline.atom_bytes() as usize;
        let from = (lba.0 * SECTOR_BYTES) as usize;
        let mut done = 0;
        while done < length {
            let at = from + done;
            let begin = at % atom_bytes;
            let part = (atom_bytes - begin).min(length - done);
            each((at / atom_bytes) as u32, begin..begin + part, done);
            done += part;
        }
    }

    pub(crate) fn read(&self, lba: Lba, sectors: u32) -> Vec<u8> {
        let mut data = vec![0; sectors as usize * SECTOR_BYTES as usize];
        let mut shown = self.lock();
        let shown = &mut *shown;
        shown.is_begun |= (lba.0..lba.0 + u64::from(sectors)).contains(&self.superblock.0);
        let at = shown.state.at;
        self.parts(lba, data.len(), |atom, part, done| {
            shown.reads.note(atom);
            let bytes = match shown.changed.get(&atom) {
                Some(changed) => &changed[..],
                None => self.timeline.store().bytes(self.timeline.newest(atom, at).content),
            };
            data[done..done + part.len()].copy_from_slice(&bytes[part]);
        });
        data
    }

    /// Changes sectors: with `data`, or to zeroes.
    pub(crate) fn change(&self, lba: Lba, length: usize, data: Option<&[u8]>) {
        let mut shown = self.lock();
        let shown = &mut *shown;
        let at = shown.state.at;
        self.parts(lba, length, |atom, part, done| {
            if part.len() == self.timeline.atom_bytes() as usize {
                shown.reads.hide(atom);
            }
            let bytes = shown.changed.entry(atom).or_insert_with(|| {
                self.timeline.store().bytes(self.timeline.newest(atom, at).content).into()
            });
            match data {
                Some(data) => {
                    let length = part.len();
                    bytes[part].copy_from_slice(&data[done..done + length]);
                }
                None => bytes[part].fill(0),
            }
        });
    }
}

impl Blocks for View {
    fn capacity_sectors(&self) -> u64 {
        u64::from(self.timeline.atoms()) * u64::from(self.timeline.atom_sectors())
    }
    fn unit_bytes(&self) -> u32 {
        4_096
    }
    fn is_recorded(&self) -> bool {
        false
    }
    fn ask(&self, ask: Ask, reply: impl FnOnce(Answer) + Send + 'static) {
        reply(match ask {
            Ask::Read(lba, sectors) => Answer::Data(self.read(lba, sectors)),
            Ask::Write(lba, data, flags) => {
                self.note(|| Written::Data {
                    lba,
                    data: data.clone(),
                    fua: flags.fua || flags.plp,
                });
                self.change(lba, data.len(), Some(&data));
                Answer::Done
            }
            Ask::Trim(lba, sectors) | Ask::WriteZeroes(lba, sectors, _) => {
                self.note(|| Written::Zeroes { lba, sectors });
                self.change(lba, sectors as usize * SECTOR_BYTES as usize, None);
                Answer::Done
            }
            Ask::Extents(_, sectors) => Answer::Extents(vec![(sectors, false)]),
            Ask::Flush => {
                self.note(|| Written::Flush);
                Answer::Done
            }
            Ask::Mark(_) | Ask::WritePrepare(_) => Answer::Done,
            Ask::Append(..) | Ask::Zone(_) | Ask::Zones(..) => {
                Answer::Failed(Failure::Drive(Status::InvalidOpcode))
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use leyden_oracle::{Op, Request};
    use leyden_sim::Time;

    use super::*;

    fn byte(view: &View, atom: u64) -> u8 {
        view.read(Lba(atom * 8), 8)[100]
    }

    #[test]
    fn writes_to_one_state_are_not_in_the_next() {
        let mut timeline = Timeline::new(16_384, 4_096);
        timeline.set_base(0, &[1; 4_096]);
        let request = Request { op: Op::Write, lba: 0, sectors: 8, fua: false, plp: false };
        timeline.submit(Time::ZERO, request, &[2; 4_096]);
        let view = View::new(Arc::new(timeline), Lba(0));
        view.show(&State::new(1, Vec::new()));
        assert_eq!((byte(&view, 0), byte(&view, 1)), (2, 0));
        view.change(Lba(0), 4_096 * 2, Some(&[9; 8_192]));
        assert_eq!((byte(&view, 0), byte(&view, 1)), (9, 9));
        view.show(&State::new(1, vec![(0, None)]));
        assert!(!view.is_begun());
        assert_eq!((byte(&view, 0), byte(&view, 1)), (1, 0));
        assert!(view.is_begun());
        view.change(Lba(1), 512, None);
        assert_eq!(view.read(Lba(0), 3)[511..513], [1, 0]);
    }

    #[test]
    fn atoms_written_whole_are_not_reads_of_the_state() {
        let view = View::new(Arc::new(Timeline::new(65_536, 4_096)), Lba(0));
        view.show(&State::new(0, Vec::new()));
        view.change(Lba(16), 4_096, Some(&[9; 4_096]));
        view.change(Lba(24), 512, Some(&[9; 512]));
        view.read(Lba(23), 10);
        view.read(Lba(0), 8);
        view.change(Lba(0), 4_096, None);
        view.read(Lba(0), 32);
        assert_eq!(view.take_reads(), [3, 4, 0, 1]);
        view.show(&State::new(0, Vec::new()));
        assert!(view.take_reads().is_empty());
    }
}
