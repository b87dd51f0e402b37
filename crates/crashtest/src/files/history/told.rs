//! A history in words: losses of a state, and the time of each event.

use super::{Atom, Event, FileHistory, PAGE_BYTES};
use crate::state::State;

impl FileHistory {
    /// The losses of a state in words: for each part the first call that is missing.
    pub fn lost_words(&self, state: &State) -> Vec<String> {
        let parts = self.lost_parts(state);
        if self.drives() == 1 || parts.is_empty() {
            return parts.into_iter().map(|(_, words)| words).collect();
        }
        let mut all = Vec::new();
        for drive in 0..self.drives() {
            let own = parts.iter().filter(|(atom, _)| self.drive_of_atom(*atom) == drive);
            let before = all.len();
            all.extend(own.map(|(_, words)| format!("drive {} {words}", drive + 1)));
            if all.len() == before {
                all.push(format!("drive {} lost: nothing", drive + 1));
            }
        }
        all
    }

    /// The same, with the number of each part.
    pub fn lost_parts(&self, state: &State) -> Vec<(u32, String)> {
        let missing = |&(atom, event): &(u32, Option<u32>)| {
            let first = event.map_or(0, |event| event + 1);
            let mut later = first..state.at as u32;
            let missing = later.find(|event| self.has_version(atom, *event))?;
            let word = self.word(missing);
            let words = match &self.atoms[atom as usize] {
                Atom::Journal(_) => format!("lost: {word}, and later entries of the journal"),
                Atom::Name(_, name) => format!("lost: name `{name}`, {word}"),
                Atom::Xattr(..) => format!("lost: {word}"),
                Atom::Found(_) => {
                    format!("log: empty before the {word}, since a transaction had the bytes")
                }
                Atom::Log(_) => format!("lost: bytes and length at the {word}"),
                Atom::Length(_) => format!("lost: length, {word}"),
                Atom::Page(_, page) => format!("lost: page {page}, {word}"),
                Atom::Piece(_, page, piece) => {
                    let begin =
                        u64::from(*page) * PAGE_BYTES + u64::from(piece * self.tear_bytes());
                    let last = begin + u64::from(self.tear_bytes()) - 1;
                    format!("lost: bytes {begin} to {last}, {word}")
                }
            };
            Some((atom, words))
        };
        state.lost.iter().filter_map(missing).collect()
    }

    /// Something was promised.
    pub(crate) fn acknowledge(&mut self, line: &str) {
        self.acks.events.push(self.events.len() as u32);
        self.acks.lines.push(line.to_owned());
        self.push(Event::Acknowledged, format!("acknowledged {line}").into());
    }

    /// The lines that were acknowledged.
    pub(crate) fn acks(&self) -> &[String] {
        &self.acks.lines
    }

    /// How many of them before event `at`.
    pub(crate) fn acks_before(&self, at: usize) -> usize {
        self.acks.events.partition_point(|&event| (event as usize) < at)
    }

    /// Whether the work left all files as they were.
    pub fn is_unchanged(&self) -> bool {
        let is_log = |atom: &u32| matches!(self.atoms[*atom as usize], Atom::Log(_));
        let changes = |event: &Event| match event {
            Event::Step { atoms, is_entry, .. } => *is_entry || !atoms.iter().all(is_log),
            Event::Sync { .. } | Event::Acknowledged => false,
        };
        !self.events[self.begin as usize..].iter().any(changes)
    }

    /// Writes of the work: when, and bytes of a page each.
    pub fn writes(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let is_page = |atom: &u32| matches!(self.atoms[*atom as usize], Atom::Page(..));
        (self.begin as usize..self.events.len()).filter_map(move |at| match &self.events[at] {
            Event::Step { atoms, .. } => {
                let pages = atoms.iter().filter(|atom| is_page(atom)).count();
                (pages > 0).then(|| (self.time_ns(at), pages as u64 * PAGE_BYTES))
            }
            Event::Sync { .. } | Event::Acknowledged => None,
        })
    }

    /// When each promise was made.
    pub fn ack_times_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.acks.events.iter().map(|&event| self.time_ns(event as usize))
    }
}
