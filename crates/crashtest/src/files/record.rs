//! Recording calls on files: a served folder, the user's scripts, and the receiver of their promises.

use std::ffi::OsString;

use leyden_serve::{Answer, Ask, Blocks, Failure, Mount};

use super::operation::Entry;
use super::recording::Recorder;
use super::served::Served;
use super::syncs;
use crate::check::Environment;
use crate::error::CrashError;
use crate::processes::Processes;
use crate::record::alone;
use crate::scripts::{Promised, Scripts, with_faults};
use crate::session::{Plan, Session};

/// Records a run into the session's folder. Returns the bytes of the recording.
pub(crate) fn record_files(
    session: &Session,
    plan: &Plan,
    processes: Processes,
) -> Result<u64, CrashError> {
    let _alone = alone(session)?;
    let (room, path) = (session.room(), session.files_recording());
    let scripts = Scripts::new(session, plan)?;
    let served = Served::recorded(Recorder::create(&path)?);
    served.make_drives(plan.drives).map_err(CrashError::io(&path))?;
    let folder = served.mount(&room.mnt()).map_err(CrashError::io(room.mnt()))?;
    let acks =
        Mount::new(&room.view(), Acks(served.clone())).map_err(CrashError::io(room.view()))?;
    syncs::notice(served.clone(), &room.mnt())?;
    let environment = |phase: &str| -> Environment {
        vec![
            ("LEYDEN_PHASE", OsString::from(phase)),
            ("LEYDEN_MOUNT", room.mnt().into_os_string()),
            ("LEYDEN_ACK", room.view().join("marks").into_os_string()),
            ("LEYDEN_TMP", room.scratch().into_os_string()),
            ("LEYDEN_DRIVES", plan.drives.to_string().into()),
        ]
    };
    let worked = scripts_run(&scripts, plan, &served, environment);
    // Later calls of the software's processes are not part of the run.
    let recorder = served.take_recorder();
    processes.end_others(None);
    drop((acks, folder));
    worked?;
    let recorder = recorder.map_err(CrashError::io(&path))?.expect("it was not taken before");
    // A recording without a plan would be of no use.
    session.set_plan(plan)?;
    recorder.end(&path)
}

fn scripts_run(
    scripts: &Scripts<'_>,
    plan: &Plan,
    served: &Served,
    environment: impl Fn(&str) -> Environment,
) -> Result<(), CrashError> {
    if let Some(setup) = &plan.setup {
        scripts.run("setup", setup, &environment("setup"), None)?;
    }
    served.note(Entry::Begun);
    let promised: Promised = {
        let served = served.clone();
        Box::new(move |line| served.note(Entry::Acknowledged(line.to_owned())))
    };
    served.set_faults(&plan.faults);
    let worked = scripts.run("work", &plan.work, &environment("work"), Some(promised));
    with_faults(plan, worked, &served.take_faults())
}

/// The file `marks`: what is written to it is a promise.
#[derive(Clone, Debug)]
struct Acks(Served);

impl Blocks for Acks {
    fn capacity_sectors(&self) -> u64 {
        0
    }
    fn unit_bytes(&self) -> u32 {
        4_096
    }
    fn is_recorded(&self) -> bool {
        true
    }
    fn ask(&self, ask: Ask, reply: impl FnOnce(Answer) + Send + 'static) {
        let Ask::Mark(text) = ask else {
            return reply(Answer::Failed(Failure::Drive(leyden_device::Status::InvalidOpcode)));
        };
        for line in String::from_utf8_lossy(&text).lines() {
            if let Some(promise) = line.strip_prefix("ack ") {
                self.0.note(Entry::Acknowledged(promise.to_owned()));
            }
        }
        reply(Answer::Done);
    }
}
