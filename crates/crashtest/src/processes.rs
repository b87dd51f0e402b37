//! The processes of a namespace of its own: whatever a script starts ends with the state.

use std::collections::BTreeSet;
use std::fs;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::error::CrashError;

/// The namespace of which this process is the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processes {
    /// This process, which is left alone.
    first: u32,
}

impl Processes {
    /// # Errors
    /// If this process is not the first of a namespace: then others here are somebody else's.
    pub(crate) fn new() -> Result<Self, CrashError> {
        let first = std::process::id();
        if first == 1 {
            return Ok(Self { first });
        }
        let problem =
            "this process has no namespace of its own: `leyden crashtest run` starts it in one";
        Err(CrashError::Input(problem.to_owned()))
    }

    /// Ends all processes but this one and those of the group `keep`. Returns how many there were that ran.
    pub(crate) fn end_others(self, keep: Option<u32>) -> usize {
        let mut killed = BTreeSet::new();
        // Until a pass finds none: a process may start another while it is killed.
        for _ in 0..1_000 {
            let mut is_quiet = true;
            for process in others(self.first) {
                if keep.is_some_and(|group| process.group == group) {
                    continue;
                }
                let pid = Pid::from_raw(process.id as i32);
                if process.is_dead {
                    // Of those that this process has started, it is asked for in time where they were started.
                    let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
                    continue;
                }
                is_quiet = false;
                killed.insert(process.id);
                let _ = kill(pid, Signal::SIGKILL); // it may be gone by now
            }
            if is_quiet {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        killed.len()
    }
}

/// From now on this thread, and what it starts, runs on one core: the one with this number of those that it may have,
/// counted around.
///
/// The check, the kernel's file system and the view wait for each other all the time. On one core that is a switch
/// between processes; on two, each wait ends by waking an idle core, which takes longer than the work.
pub(crate) fn stay_on(core: usize) {
    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(this) else { return };
    let cores = || (0..CpuSet::count()).filter(|&core| allowed.is_set(core).unwrap_or(false));
    let Some(chosen) = cores().nth(core % cores().count().max(1)) else { return };
    let mut one = CpuSet::new();
    if one.set(chosen).is_ok() {
        let _ = sched_setaffinity(this, &one); // without, it is slower
    }
}

struct Other {
    id: u32,
    group: u32,
    is_dead: bool,
}

fn others(than: u32) -> Vec<Other> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|&id: &u32| id != than).filter_map(other).collect()
}

/// proc_pid_stat(5): the name stands in brackets and may hold any character; then state, parent, group.
fn other(id: u32) -> Option<Other> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let group = fields.nth(1)?.parse().ok()?;
    Some(Other { id, group, is_dead })
}
