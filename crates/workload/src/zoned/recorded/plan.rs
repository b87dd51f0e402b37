//! Dependencies between the events of a recording.
//!
//! A recording says in which order things happened on one machine, not why. Here something waits for what came before
//! it in its thread, and for these of other threads:
//! - whoever uses a file waits for what was done to it before; whoever deletes it, for its reads too;
//! - RocksDB's flush of a memtable waits until the next log was made, for that is when its memtable is complete;
//! - any other job in the background waits for the last flush that was installed before it began;
//! - the first put of a log waits until memtables are few enough: for an earlier flush.
//!
//! A job is what a thread does up to and including a sync of the MANIFEST, and the deletions behind that. One that
//! makes a table, and reads less of others than half of what it writes, is a flush.
//!
//! **Invariant**: things wait for what was earlier in the recording only, so all of it can be done.

use std::collections::BTreeSet;

use super::trace::{Event, FileOp, FileTrace, Role};

/// How things wait for each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// For each event those that it waits for, beside the one before it in its thread.
    pub(super) after: Vec<Vec<u32>>,
    /// For each event by how much it changes the number of tables that wait to be compacted.
    pub(super) waiting: Vec<i32>,
    /// How many waited in the recording when an event had ended. A writer is not stopped by fewer: what could take them
    /// away comes later.
    pub(super) waited: Vec<i32>,
    /// The events that install a flush, in order.
    pub(super) flushes: Vec<u32>,
    /// The events that end a job which wrote tables out of others.
    pub(super) compactions: Vec<u32>,
    /// Files that a flush made.
    pub(super) is_fresh: Vec<bool>,
}

/// A job: its events, and what it does.
#[derive(Debug, Default)]
struct Job {
    events: Vec<u32>,
    /// Its sync of the MANIFEST.
    installed: Option<u32>,
    made: Vec<u32>,
    /// Tables of others.
    read: Vec<u32>,
    read_bytes: u64,
    written_bytes: u64,
}

impl Job {
    fn is_flush(&self) -> bool {
        !self.made.is_empty() && self.read_bytes < self.written_bytes / 2
    }
}

impl Plan {
    pub(super) fn new(trace: &FileTrace, write_buffers: u32) -> Self {
        let events = &trace.events;
        let mut plan = Self {
            after: by_files(trace),
            waiting: vec![0; events.len()],
            is_fresh: vec![false; trace.files as usize],
            ..Self::default()
        };
        let jobs = jobs(trace);
        for job in jobs.iter().filter(|job| job.is_flush()) {
            plan.flushes.extend(job.installed);
            job.made.iter().for_each(|&file| plan.is_fresh[file as usize] = true);
        }
        plan.flushes.sort_unstable();
        let logs: Vec<u32> = (0..events.len() as u32)
            .filter(|&at| is(&events[at as usize], FileOp::Create, Role::Log))
            .collect();
        for job in &jobs {
            let first = job.events[0];
            let causes = if job.is_flush() { &logs } else { &plan.flushes };
            plan.after[first as usize].extend(last_before(causes, first));
        }
        plan.bound_memtables(events, write_buffers);
        plan.count_waiting(&jobs);
        let mut waiting = 0;
        let sums = plan.waiting.iter().map(|change| {
            waiting += change;
            waiting
        });
        plan.waited = sums.collect();
        plan
    }

    /// With two memtables at most, the first put of a log waits for the last flush that was installed before it; with
    /// each one more, for that of a log earlier. Not the log: it is made when a memtable is complete, and the writer
    /// stops then. And not a flush that had only begun: on a slow drive the next one begins when one is installed.
    fn bound_memtables(&mut self, events: &[Event], write_buffers: u32) {
        let mut begun: Vec<u32> = Vec::new();
        let mut seen = BTreeSet::new();
        for (at, event) in (0..).zip(events) {
            if is(event, FileOp::Append, Role::Log) && seen.insert(event.file) {
                begun.push(at);
            }
        }
        for (at, &first) in begun.iter().enumerate() {
            let Some(before) = at.checked_sub(write_buffers as usize - 2) else { continue };
            self.after[first as usize].extend(last_before(&self.flushes, begun[before]));
        }
    }

    /// A flush adds a table, and who reads it takes it out. A job that neither makes nor reads tables moves those that
    /// wait to the next level: all of them, since fillseq's do not overlap (which ones is not recorded).
    fn count_waiting(&mut self, jobs: &[Job]) {
        let mut ended: Vec<(u32, &Job)> =
            jobs.iter().filter_map(|job| Some((job.installed?, job))).collect();
        ended.sort_by_key(|&(installed, _)| installed);
        let mut there: Vec<u32> = Vec::new();
        for (installed, job) in ended {
            let before = there.len();
            if job.is_flush() {
                there.extend(&job.made);
            } else if job.made.is_empty() {
                there.clear();
            } else {
                there.retain(|file| !job.read.contains(file));
                self.compactions.push(installed);
            }
            self.waiting[installed as usize] = there.len() as i32 - before as i32;
        }
    }
}

fn is(event: &Event, op: FileOp, role: Role) -> bool {
    event.op == op && event.role == role
}

/// The last of `events`, which are in order, before `at`.
fn last_before(events: &[u32], at: u32) -> Option<u32> {
    let end = events.partition_point(|&event| event < at);
    end.checked_sub(1).map(|last| events[last])
}

/// The events that each event waits for because of its file.
fn by_files(trace: &FileTrace) -> Vec<Vec<u32>> {
    // Of each file the last event of each thread that changed it, and that read it since.
    let mut changed: Vec<Option<u32>> = vec![None; trace.files as usize];
    let mut read: Vec<Vec<u32>> = vec![Vec::new(); trace.files as usize];
    let thread = |at: u32| trace.events[at as usize].thread;
    let mut after = Vec::with_capacity(trace.events.len());
    for (at, event) in (0..).zip(&trace.events) {
        let file = event.file as usize;
        let mut waits = Vec::new();
        waits.extend(changed[file]);
        match event.op {
            FileOp::Read => read[file].push(at),
            FileOp::Delete => waits.append(&mut read[file]),
            _ => {}
        }
        if event.op != FileOp::Read {
            changed[file] = Some(at);
        }
        waits.retain(|&other| thread(other) != event.thread);
        after.push(waits);
    }
    after
}

/// The work of threads that write no logs, job by job.
fn jobs(trace: &FileTrace) -> Vec<Job> {
    let mut is_writer = vec![false; trace.threads as usize];
    for event in &trace.events {
        is_writer[event.thread as usize] |= is(event, FileOp::Append, Role::Log);
    }
    let mut open: Vec<Job> = (0..trace.threads).map(|_| Job::default()).collect();
    let mut jobs = Vec::new();
    for (at, event) in (0..).zip(&trace.events) {
        if is_writer[event.thread as usize] {
            continue;
        }
        let job = &mut open[event.thread as usize];
        let is_tail = matches!(event.op, FileOp::Delete | FileOp::Close);
        if job.installed.is_some() && !is_tail {
            jobs.push(std::mem::take(job));
        }
        job.events.push(at);
        match (event.op, event.role) {
            (FileOp::Create, Role::Table) => {
                job.made.push(event.file);
            }
            (FileOp::Read, Role::Table) if !job.made.contains(&event.file) => {
                job.read_bytes += event.bytes;
                if !job.read.contains(&event.file) {
                    job.read.push(event.file);
                }
            }
            (FileOp::Append, Role::Table) => job.written_bytes += event.bytes,
            (FileOp::Sync, Role::Manifest) => job.installed = Some(at),
            _ => {}
        }
    }
    jobs.extend(open.into_iter().filter(|job| !job.events.is_empty()));
    jobs.sort_by_key(|job| job.events[0]);
    jobs
}
