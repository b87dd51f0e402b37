//! One worker's questions about one state.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::CrashError;
use crate::files_view::FileDifference;
use crate::locate::Place;
use crate::pool::{Pool, unexpected};
use crate::state::State;
use crate::timeline::Timeline;
use crate::verdict::Outcome;
use crate::why::{self, Why};
use crate::worker::{Answer, Ask};

impl Pool<'_> {
    /// The files in these atoms, when nothing is lost.
    ///
    /// # Errors
    /// As [`crate::Runner::run`].
    pub fn locate(&mut self, at: usize, atoms: &[u32]) -> Result<Vec<Place>, CrashError> {
        match self.ask(&Ask::Locate { at, atoms: atoms.to_vec() })? {
            Answer::Located(places) => Ok(places),
            other => Err(unexpected(&other)),
        }
    }

    /// The files of `state` that are others in `other`; none if one of them does not mount.
    ///
    /// # Errors
    /// As [`crate::Runner::run`].
    pub fn compare(
        &mut self,
        state: &State,
        other: &State,
    ) -> Result<Vec<FileDifference>, CrashError> {
        match self.ask(&Ask::Compare(state.clone(), other.clone()))? {
            Answer::Compared(files) => Ok(files),
            other => Err(unexpected(&other)),
        }
    }

    /// Why a state breaks, with the files that it is about; `None` if it does not, or passes at no later moment.
    ///
    /// # Errors
    /// As [`crate::Runner::run`].
    pub fn explain(
        &mut self,
        timeline: &Timeline,
        state: &State,
    ) -> Result<Option<Why>, CrashError> {
        let Some(mut why) = why::explain(self, timeline, state)? else { return Ok(None) };
        // With what is needed: at the first moment at which it is all there, or here.
        let enough = why.needed.last().map(|last| last.event + 1).filter(|_| why.is_unsubmitted);
        let whole = State::new(enough.unwrap_or(state.at), Vec::new());
        let atoms: BTreeSet<u32> = why.commands().map(|command| command.atom).collect();
        let atoms: Vec<u32> = atoms.into_iter().collect();
        for place in self.locate(whole.at, &atoms)? {
            for command in why.commands().filter(|command| command.atom == place.atom) {
                command.place = Some(place.clone());
            }
        }
        why.files = self.compare(state, &whole)?;
        Ok(Some(why))
    }

    /// Tries a state in which only the first `acks` promises had been made.
    pub(crate) fn check_promised(
        &mut self,
        state: &State,
        acks: usize,
    ) -> Result<Outcome, CrashError> {
        match self.ask(&Ask::Promised(state.clone(), acks))? {
            Answer::Tried(outcome, _) => Ok(outcome),
            other => Err(unexpected(&other)),
        }
    }

    /// Gives the user a shell in a state.
    ///
    /// # Errors
    /// If there is no terminal, or the state does not mount.
    pub fn shell(&mut self, state: &State) -> Result<(), CrashError> {
        match self.ask(&Ask::Shell(state.clone()))? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Runs a shell command in a state, and tells `said` what it prints, line by line. Returns its exit code; 128 and more
    /// if a signal ended it.
    ///
    /// # Errors
    /// If the state does not mount.
    pub fn run_in(
        &mut self,
        state: &State,
        command: &str,
        said: &mut dyn FnMut(&str),
    ) -> Result<u8, CrashError> {
        self.send_first(&Ask::Run(state.clone(), command.to_owned()));
        loop {
            match self.next_answer()? {
                Answer::Said(line) => said(&line),
                Answer::Ran(code) => return Ok(code),
                other => return Err(unexpected(&other)),
            }
        }
    }

    /// Copies the files of a state to the new folder `to`; without a file system the device, as `device.img` there.
    ///
    /// # Errors
    /// If it is there already or cannot be written, or the state does not mount.
    pub fn copy(&mut self, state: &State, to: &Path) -> Result<(), CrashError> {
        std::fs::create_dir(to).map_err(CrashError::io(to))?;
        let to = to.canonicalize().map_err(CrashError::io(to))?;
        match self.ask(&Ask::Copy(state.clone(), to))? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }
}
