//! The host's commands, the drive's answers and the program's promises, in one order.

use leyden_device::SECTOR_BYTES;
use leyden_oracle::{Atomic, Effect, Op, Request};
use leyden_sim::Time;

use crate::store::{Content, Store};

/// Something that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A command was submitted that changes something, or a flush.
    Submitted(Request),
    /// The command of an earlier event has ended, well or not.
    Ended {
        /// The event of its submission.
        command: usize,
        /// It was acknowledged.
        is_done: bool,
    },
    /// The software acknowledged something to its own clients: the number of the line.
    Acknowledged(usize),
}

impl Event {
    /// True of the submission of a flush.
    pub fn is_flush(&self) -> bool {
        matches!(self, Self::Submitted(request) if request.op == Op::Flush)
    }

    /// True of the submission of a write that is a flush of its own.
    pub fn is_fua(&self) -> bool {
        matches!(self, Self::Submitted(request) if request.op != Op::Flush && request.fua)
    }

    /// The event's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Submitted(request) => match request.op {
                Op::Read => "read",
                Op::Write => "write",
                Op::Flush => "flush",
                Op::Sync => "flush of a file",
                Op::Trim => "trim",
                Op::WriteZeroes => "write of zeroes",
            },
            Self::Ended { .. } => "end",
            Self::Acknowledged(_) => "acknowledgement",
        }
    }
}

/// A version of an atom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// The event of the command that made it; `None` for what was there in the beginning.
    pub event: Option<u32>,
    /// Its bytes.
    pub content: Content,
}

/// A run of a host's software, as its drive saw it.
///
/// *Atoms* are what the drive keeps or loses as a whole: its mapping units, or parts of them.
#[derive(Clone, Debug)]
pub struct Timeline {
    atom_bytes: u32,
    store: Store,
    base: Vec<Content>,
    events: Vec<(Time, Event)>,
    /// For each atom the versions since the beginning, in the order of their submission.
    versions: Vec<Vec<Version>>,
    acks: Vec<String>,
    /// The first event at which a power cut is of interest.
    begin: usize,
    /// The first event that is no part of the run; none if the run is all that was recorded.
    end: Option<usize>,
    /// The unfinished line of the last mark.
    begun: String,
    /// The writes that the drive keeps or loses as a whole, if any.
    atomic: Option<Atomic>,
}

impl Timeline {
    /// A run on a drive of `capacity_bytes` that holds zeroes.
    ///
    /// # Panics
    /// If an atom is not a whole number of sectors, or the capacity not a whole number of atoms.
    pub fn new(capacity_bytes: u64, atom_bytes: u32) -> Self {
        let atom = u64::from(atom_bytes);
        assert!(atom > 0 && atom.is_multiple_of(SECTOR_BYTES), "atoms are whole sectors");
        assert!(capacity_bytes.is_multiple_of(atom), "the drive is whole atoms");
        let atoms = (capacity_bytes / atom) as usize;
        Self {
            atom_bytes,
            store: Store::new(atom_bytes as usize),
            base: vec![Content::ZEROES; atoms],
            events: Vec::new(),
            versions: vec![Vec::new(); atoms],
            acks: Vec::new(),
            begin: 0,
            end: None,
            begun: String::new(),
            atomic: None,
        }
    }

    /// The drive keeps or loses such writes as a whole.
    #[must_use]
    pub const fn with_atomic(mut self, atomic: Option<Atomic>) -> Self {
        self.atomic = atomic;
        self
    }

    /// True if the drive keeps or loses what `request` writes as a whole.
    pub(crate) fn is_atomic(&self, request: &Request) -> bool {
        self.atomic.is_some_and(|atomic| atomic.survives(request))
    }

    /// Bytes of an atom.
    pub const fn atom_bytes(&self) -> u32 {
        self.atom_bytes
    }
    /// Sectors of an atom.
    pub fn atom_sectors(&self) -> u32 {
        self.atom_bytes / SECTOR_BYTES as u32
    }
    /// Atoms of the drive.
    pub fn atoms(&self) -> u32 {
        self.base.len() as u32
    }
    /// The events of the run, with the drive's times.
    pub fn events(&self) -> &[(Time, Event)] {
        &self.events[..self.end.unwrap_or(self.events.len())]
    }
    /// The same, and what followed the run: the file system was unmounted.
    pub fn all_events(&self) -> &[(Time, Event)] {
        &self.events
    }
    /// Bytes that were written in the run, and those that were written only when the file system was unmounted: what the
    /// software had not synced, and what the kernel had not written back by itself, is in no state.
    pub fn written_bytes(&self) -> (u64, u64) {
        let bytes = |events: &[(Time, Event)]| {
            let sectors = events.iter().filter_map(|(_, event)| match event {
                Event::Submitted(request) if request.op == Op::Write => {
                    Some(u64::from(request.sectors))
                }
                _ => None,
            });
            sectors.sum::<u64>() * SECTOR_BYTES
        };
        (bytes(self.events()), bytes(&self.events[self.events().len()..]))
    }
    /// The lines that were acknowledged, in order.
    pub fn acks(&self) -> &[String] {
        &self.acks
    }
    /// The first event at which a power cut is of interest: what was before prepared the run.
    pub const fn begin(&self) -> usize {
        self.begin
    }
    /// From here on power cuts are of interest.
    pub fn set_begin(&mut self) {
        self.begin = self.events.len();
    }
    /// Ends the run: later events are no part of it.
    pub fn set_end(&mut self) {
        self.end = Some(self.events.len());
    }
    /// The moment after everything, when the file system has been unmounted: nothing of the software's is lost then.
    pub fn closed(&self) -> usize {
        self.events.len()
    }
    /// The bytes of everything.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// How many lines had been acknowledged when the events before `at` had happened.
    pub fn acks_before(&self, at: usize) -> usize {
        let before = self.events[..at].iter().rev();
        let mut acks = before.filter_map(|(_, event)| match event {
            Event::Acknowledged(line) => Some(line + 1),
            _ => None,
        });
        acks.next().unwrap_or(0)
    }

    /// The versions of an atom that were submitted before event `at`, the first of them last.
    pub fn versions_before(
        &self,
        atom: u32,
        at: usize,
    ) -> impl DoubleEndedIterator<Item = Version> + '_ {
        let versions = &self.versions[atom as usize];
        let count = versions
            .partition_point(|version| version.event.is_some_and(|event| (event as usize) < at));
        let first = Version { event: None, content: self.base[atom as usize] };
        std::iter::once(first).chain(versions[..count].iter().copied()).rev()
    }

    /// The newest version of an atom before event `at`.
    pub fn newest(&self, atom: u32, at: usize) -> Version {
        self.versions_before(atom, at).next().expect("there is always the first")
    }

    /// The version that the command of `event` made of an atom.
    pub fn version_of(&self, atom: u32, event: Option<u32>) -> Option<Version> {
        let Some(event) = event else {
            return Some(Version { event: None, content: self.base[atom as usize] });
        };
        let versions = &self.versions[atom as usize];
        let at = versions.binary_search_by_key(&Some(event), |version| version.event).ok()?;
        Some(versions[at])
    }

    /// Atoms that anything was written to.
    pub fn touched(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.atoms()).filter(|&atom| !self.versions[atom as usize].is_empty())
    }

    /// Sets the drive's content at the beginning.
    ///
    /// # Panics
    /// If something has happened already.
    pub fn set_base(&mut self, atom: u32, bytes: &[u8]) {
        assert!(self.events.is_empty(), "the beginning is over");
        self.base[atom as usize] = self.store.put(bytes);
    }

    /// A command is submitted; `data` are a write's bytes. Returns the event's number.
    ///
    /// # Panics
    /// If it reaches beyond the drive, or `data` has another length.
    pub fn submit(&mut self, time: Time, request: Request, data: &[u8]) -> usize {
        let event = self.events.len();
        for (atom, effect) in request.effects(self.atom_sectors()) {
            let content = match effect {
                Effect::Zeroes => Content::ZEROES,
                Effect::Stamp => {
                    // A partly written atom keeps the rest of its old content.
                    let newest = self.newest(atom, event).content;
                    let mut bytes = self.store.bytes(newest).to_vec();
                    let begin = u64::from(atom) * u64::from(self.atom_bytes);
                    overlay(&mut bytes, begin, &request, data);
                    self.store.put(&bytes)
                }
            };
            let version = Version { event: Some(event as u32), content };
            self.versions[atom as usize].push(version);
        }
        self.events.push((time, Event::Submitted(request)));
        event
    }

    /// The command of event `command` ends.
    pub fn end(&mut self, time: Time, command: usize, is_done: bool) {
        self.events.push((time, Event::Ended { command, is_done }));
    }

    /// The software writes to its file of acknowledgements: whole lines count, in order.
    pub fn mark(&mut self, time: Time, text: &str) {
        if self.end.is_some() {
            return; // of a program that was ended with the run
        }
        self.begun.push_str(text);
        while let Some((line, rest)) = self.begun.split_once('\n') {
            let line = line.trim();
            let line = line.strip_prefix("ack ").unwrap_or(line).to_owned();
            let rest = rest.to_owned();
            if !line.is_empty() {
                self.events.push((time, Event::Acknowledged(self.acks.len())));
                self.acks.push(line);
            }
            self.begun = rest;
        }
    }
}

/// Puts what of a write, or of zeroes, falls on the atom that begins at byte `begin` into its `bytes`.
fn overlay(bytes: &mut [u8], begin: u64, request: &Request, data: &[u8]) {
    let from = request.lba * SECTOR_BYTES;
    let to = from + u64::from(request.sectors) * SECTOR_BYTES;
    let (first, end) = (begin.max(from), (begin + bytes.len() as u64).min(to));
    let part = &mut bytes[(first - begin) as usize..(end - begin) as usize];
    match request.op {
        Op::Write => part.copy_from_slice(&data[(first - from) as usize..(end - from) as usize]),
        _ => part.fill(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: Op, lba: u64, sectors: u32) -> Request {
        Request { op, lba, sectors, fua: false, plp: false }
    }

    #[test]
    fn atoms_written_in_part_keep_the_rest() {
        let mut timeline = Timeline::new(16_384, 4_096);
        timeline.set_base(0, &[7; 4_096]);
        let write = timeline.submit(Time::ZERO, request(Op::Write, 7, 2), &[1; 1_024]);
        let bytes = |atom: u32, at: usize| {
            timeline.store().bytes(timeline.newest(atom, at).content).to_vec()
        };
        assert_eq!(bytes(0, write), vec![7; 4_096]);
        assert_eq!((bytes(0, write + 1)[3_583], bytes(0, write + 1)[3_584]), (7, 1));
        assert_eq!((bytes(1, write + 1)[511], bytes(1, write + 1)[512]), (1, 0));
        assert_eq!(timeline.touched().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn writes_of_the_unmount_are_counted_apart() {
        let mut timeline = Timeline::new(16_384, 4_096);
        timeline.submit(Time::ZERO, request(Op::Write, 0, 8), &[1; 4_096]);
        timeline.submit(Time::ZERO, request(Op::Flush, 0, 0), &[]);
        assert_eq!(timeline.written_bytes(), (4_096, 0));
        timeline.set_end();
        timeline.submit(Time::ZERO, request(Op::Write, 8, 16), &[1; 8_192]);
        assert_eq!(timeline.written_bytes(), (4_096, 8_192));
    }

    #[test]
    fn trims_and_zeroes_make_zeroes() {
        let mut timeline = Timeline::new(16_384, 4_096);
        timeline.set_base(0, &[7; 4_096]);
        timeline.set_base(1, &[8; 4_096]);
        // A trim leaves atoms alone that it touches in part.
        let trim = timeline.submit(Time::ZERO, request(Op::Trim, 4, 12), &[]);
        assert_eq!(timeline.newest(0, trim + 1).event, None);
        assert_eq!(timeline.newest(1, trim + 1).content, Content::ZEROES);
        let zero = timeline.submit(Time::ZERO, request(Op::WriteZeroes, 0, 1), &[]);
        let of = timeline.newest(0, zero + 1).content;
        assert_eq!((timeline.store().bytes(of)[511], timeline.store().bytes(of)[512]), (0, 7));
    }

    #[test]
    fn acknowledgements_are_whole_lines_in_order() {
        let mut timeline = Timeline::new(4_096, 512);
        timeline.mark(Time::ZERO, "ack 1\nack");
        let flush = timeline.submit(Time::ZERO, request(Op::Flush, 0, 0), &[]);
        timeline.mark(Time::ZERO, " 2 two\n\nfree text\n");
        assert_eq!(timeline.acks(), ["1", "2 two", "free text"]);
        assert_eq!(timeline.acks_before(flush), 1);
        assert_eq!(timeline.acks_before(timeline.events().len()), 3);
    }
}
