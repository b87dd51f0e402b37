//! States on a loop device, which the kernel mounts.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use leyden_serve::Mount;
use nix::errno::Errno;

use crate::attach::{Attachment, Loop, Mounted};
use crate::clock;
use crate::error::{CrashError, said};
use crate::history::History;
use crate::locate::{self, Place};
use crate::processes::Processes;
use crate::session::{Plan, SessionPaths};
use crate::state::State;
use crate::test_bed::{Entered, TestBed};
use crate::timeline::Timeline;
use crate::view::{View, Written};

/// How long a mount that found another state in a cache is tried again.
const STALE_MOST: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// A view of the drive, as a file of a FUSE mount, below a loop device.
#[derive(Debug)]
pub(crate) struct OnLoop {
    plan: Plan,
    room: SessionPaths,
    // In this order they are dropped.
    device: Loop,
    view: View,
    #[expect(dead_code, reason = "what it does, it does when it is dropped")]
    mount: Mount,
}

impl OnLoop {
    pub(crate) fn new(
        plan: &Plan,
        room: &SessionPaths,
        timeline: Arc<Timeline>,
    ) -> Result<Self, CrashError> {
        let view = View::new(timeline, plan.superblock());
        let mount = Mount::new(&room.view(), view.clone()).map_err(CrashError::io(room.view()))?;
        let device = Loop::new(&room.view().join("disk"), plan.size_bytes, plan.sector_bytes)?;
        Ok(Self { plan: plan.clone(), room: room.clone(), device, view, mount })
    }
}

impl TestBed for OnLoop {
    fn history(&self) -> &dyn History {
        self.view.timeline()
    }

    fn timeline(&self) -> Option<&Timeline> {
        Some(self.view.timeline())
    }

    fn device(&self) -> &Path {
        self.device.device()
    }

    fn attachment(&self) -> Option<&Attachment> {
        Some(self.device.attachment())
    }

    fn show(&mut self, state: &State) -> Result<(), CrashError> {
        self.view.show(state);
        Ok(())
    }

    fn enter(&self, processes: Processes) -> Result<Result<Entered, String>, CrashError> {
        if !self.plan.has_fs() {
            return Ok(Ok(Entered::Device));
        }
        let options = self.plan.mount_options();
        let begun = clock::wall();
        loop {
            let mount =
                Mounted::new(self.device(), &self.room.mnt(), &self.plan.fs, options.as_deref());
            // Another program may have had the device open since the last state, and with it the kernel's
            // cache of it: what was mounted then was not this state.
            let is_this = self.view.is_begun();
            match mount {
                Ok(mounted) if is_this => return Ok(Ok(Entered::Mounted(mounted))),
                Err(error) if is_this => {
                    return Ok(Err(std::io::Error::from(error).to_string()));
                }
                Err(Errno::ENODEV) => {
                    let problem = format!("the kernel knows no file system {}", self.plan.fs);
                    return Err(CrashError::Lacking(problem));
                }
                Ok(mounted) => mounted.end(processes)?,
                Err(_) => {}
            }
            if begun.elapsed() > STALE_MOST {
                let problem = format!(
                    "{}: the kernel shows an earlier state; something holds the device open",
                    self.device().display()
                );
                return Err(CrashError::Lacking(problem));
            }
            // The cache ends with the device's last user, whom this does not wait for. What the kernel has
            // changed in the wrong state, or changes only now, went into this one.
            said(Command::new("blockdev").arg("--flushbufs").arg(self.device()))?;
            self.view.again();
            std::thread::sleep(PAUSE);
        }
    }

    fn take_reads(&mut self) -> Option<Vec<u32>> {
        Some(self.view.take_reads())
    }

    fn note_writes(&mut self) {
        self.view.note_writes();
    }

    fn take_writes(&mut self) -> Option<Vec<Written>> {
        self.view.take_writes()
    }

    fn locate(&self, atoms: &[u32], atom_bytes: u64) -> Vec<Place> {
        let found = locate::files(&self.room.mnt(), atoms, atom_bytes);
        locate::with_metadata(found, atoms, atom_bytes, &self.plan.fs, self.device())
    }
}
