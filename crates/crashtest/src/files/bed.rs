//! States as folders: a served folder shows one after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::BackgroundSession;

use super::history::FileHistory;
use super::recording::RecordedFiles;
use super::served::Served;
use super::surviving::SurvivingFiles;
use crate::attach::Attachment;
use crate::error::CrashError;
use crate::history::History;
use crate::locate::Place;
use crate::processes::Processes;
use crate::session::SessionPaths;
use crate::state::State;
use crate::test_bed::{Entered, TestBed};

/// A served folder, mounted where the software had its own.
#[derive(Debug)]
pub(crate) struct InFolder {
    history: Arc<FileHistory>,
    served: Served,
    folder: PathBuf,
    #[expect(dead_code, reason = "what it does, it does when it is dropped")]
    mount: BackgroundSession,
}

impl InFolder {
    pub(crate) fn new(recorded: RecordedFiles, room: &SessionPaths) -> Result<Self, CrashError> {
        let served = Served::of_states(recorded.owners);
        let folder = room.mnt();
        let mount = served.mount(&folder).map_err(CrashError::io(&folder))?;
        Ok(Self { history: Arc::new(recorded.history), served, folder, mount })
    }
}

impl TestBed for InFolder {
    fn history(&self) -> &dyn History {
        &*self.history
    }

    fn device(&self) -> &Path {
        &self.folder
    }

    fn attachment(&self) -> Option<&Attachment> {
        None
    }

    fn show(&mut self, state: &State) -> Result<(), CrashError> {
        self.served.show(SurvivingFiles::new(Arc::clone(&self.history), state));
        Ok(())
    }

    fn enter(&self, _: Processes) -> Result<Result<Entered, String>, CrashError> {
        Ok(Ok(Entered::Served))
    }

    fn take_reads(&mut self) -> Option<Vec<u32>> {
        None
    }

    fn locate(&self, _: &[u32], _: u64) -> Vec<Place> {
        Vec::new()
    }
}
