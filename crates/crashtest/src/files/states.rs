//! Calls on files as a history: their syncs, and the states that power cuts leave.

use super::atom::Atom;
use super::durable::Walk;
use super::history::FileHistory;
use super::rules::Persistence;
use super::surviving::{Choice, key_of_image};
use crate::cut::{Cut, Flushes};
use crate::history::{History, Keys, Sync};
use crate::state::State;

/// Moments that are looked at for a sync that was left out.
const AUDITED_MOST: usize = 64;

impl History for FileHistory {
    fn files(&self) -> Option<Persistence> {
        Some(self.rules())
    }

    fn atom_bytes(&self) -> u32 {
        self.tear_bytes()
    }

    fn acks(&self) -> &[String] {
        self.acks()
    }

    fn acks_before(&self, at: usize) -> usize {
        self.acks_before(at)
    }

    fn closed(&self) -> usize {
        self.events().len()
    }

    fn moments(&self) -> Vec<usize> {
        let begin = self.begin() as usize;
        self.syncs_done().filter(|&at| at >= begin).chain([self.events().len()]).collect()
    }

    fn moments_after(&self, ended: usize) -> Vec<usize> {
        // A sync of another file does not make up for it.
        self.moments().into_iter().filter(|&at| at > ended).take(AUDITED_MOST).collect()
    }

    fn cuts(&self, flushes: Flushes, wanted: &dyn Fn(usize) -> bool) -> Vec<Cut> {
        let moments: Vec<usize> = self.moments().into_iter().filter(|at| wanted(*at)).collect();
        let mut walk = Walk::new(self, flushes);
        moments.into_iter().map(|at| walk.cut(at)).collect()
    }

    fn syncs(&self) -> Vec<Sync> {
        let all = self.syncs_done().enumerate();
        let run = all.filter(|(_, at)| *at >= self.begin() as usize);
        run.map(|(number, ended)| {
            let call = self.word(ended as u32).to_owned();
            Sync { number, ended, time_ns: self.time_ns(ended), call }
        })
        .collect()
    }

    fn sync_counts(&self) -> (usize, usize) {
        (self.syncs().len(), 0)
    }

    fn normalize(&self, state: &mut State) {
        let mut is = Choice::new(self, state);
        if self.rules().logs_files() {
            set_ended(self, state, &is);
        }
        let count = state.lost.len();
        // Findings of a sync matter for the names that its file got later.
        state.lost.retain(|(atom, _)| match self.atom(*atom) {
            Some(Atom::Found(file)) => self.logs().may_find_nothing(*file, is.journal(self, *file)),
            _ => true,
        });
        if state.lost.len() < count {
            is = Choice::new(self, state);
        }
        state.lost.retain(|&(atom, event)| {
            // Which of two names of a moved folder is hidden depends on all names.
            let is_hiding =
                |part: &Atom| matches!(part, Atom::Name(..)) && self.has_moved_folders();
            let part = self.atom(atom).expect("a part of the history");
            let before = is.shows(self, part);
            is.put_back(atom);
            let is_lost = matches!(part, Atom::Journal(_) | Atom::Found(_))
                || is_hiding(part)
                || before != is.shows(self, part);
            if is_lost {
                is.lose(atom, event);
            }
            is_lost
        });
    }

    fn check(&self, state: &State) -> Result<(), String> {
        if state.at > self.events().len() {
            return Err(format!("there is no event {}", state.at));
        }
        let is_sorted = state.lost.is_sorted_by(|one, next| one.0 < next.0);
        if !is_sorted || !state.after.is_empty() {
            return Err("this is a state of a drive".to_owned());
        }
        for &(atom, event) in &state.lost {
            let is_there =
                |event: u32| (event as usize) < state.at && self.has_version(atom, event);
            if self.atom(atom).is_none() || !event.is_none_or(is_there) {
                return Err(format!("part {atom} has no version of event {event:?}"));
            }
        }
        Ok(())
    }

    fn keys(&self) -> Box<dyn Keys + '_> {
        Box::new(ImageKeys(self))
    }
}

/// Journals of a state end where syncs have ended transactions.
fn set_ended(history: &FileHistory, state: &mut State, is: &Choice) {
    for drive in 0..history.drives() {
        let ended = is.last_entry(drive);
        let newest = history.last_entry(drive, state.at as u32);
        for part in state.lost.iter_mut().filter(|part| part.0 == drive) {
            part.1 = ended;
        }
        state.lost.retain(|part| part.0 != drive || ended != newest);
    }
}

#[derive(Debug)]
struct ImageKeys<'a>(&'a FileHistory);

impl Keys for ImageKeys<'_> {
    fn of(&self, state: &State) -> u128 {
        key_of_image(self.0, state)
    }
}
