//! Steps of a line of a recording.

use super::super::lsm_config::rocksdb;
use std::collections::VecDeque;

use leyden_sim::Span;

use super::{Event, FileOp, RecordedConfig, Role};

/// A part of what a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Computes.
    Work(Span),
    /// Computes so long, appends so many bytes to its log, and has made so many puts.
    Put { work: Span, puts: u64, bytes: u64 },
    /// So many puts are made.
    Counted(u64),
    /// Appends so many bytes.
    Append { bytes: u64 },
    /// Reads so many bytes.
    Read { bytes: u64 },
    /// Writes out what is held back of the file.
    Rest,
    /// Waits until the drive holds the table for good, unless it does.
    Flush,
    /// Writes down where the table lies, unless that was done.
    Extents,
    /// Writes down a change of names.
    Name,
    /// The file is gone.
    Gone,
    /// The remainder of a step whose request has been made.
    Nothing,
}

/// The steps of an event.
pub(super) fn steps_of(event: &Event, config: &RecordedConfig) -> VecDeque<Step> {
    let all_ns = config.work.of(event.work_ns);
    let work = Step::Work(Span::from_ns(all_ns));
    match event.op {
        FileOp::Append if event.role == Role::Log => puts_of(event, all_ns, config),
        FileOp::Append => repeated(event, all_ns, |bytes| Step::Append { bytes }),
        FileOp::Read => repeated(event, all_ns, |bytes| Step::Read { bytes }),
        FileOp::Sync | FileOp::Close => [work, Step::Rest, Step::Flush, Step::Extents].into(),
        FileOp::Create | FileOp::Rename => [work, Step::Name].into(),
        FileOp::Delete => [work, Step::Name, Step::Gone].into(),
    }
}

/// Each of many equal operations took the average time and moved the average bytes.
fn repeated(event: &Event, all_ns: u64, step: impl Fn(u64) -> Step) -> VecDeque<Step> {
    let share = |at| {
        let work = Span::from_ns(share(all_ns, at..at + 1, event.count));
        [Step::Work(work), step(share(event.bytes, at..at + 1, event.count))]
    };
    (0..event.count).flat_map(share).collect()
}

/// Puts, as many at once as share a write.
fn puts_of(event: &Event, all_ns: u64, config: &RecordedConfig) -> VecDeque<Step> {
    let at_once = u64::from(rocksdb::PUTS_PER_APPEND);
    let of = |group: u64| {
        let range = group * at_once..(group * at_once + at_once).min(event.count);
        let puts = range.end - range.start;
        let recorded = Span::from_ns(share(all_ns, range.clone(), event.count));
        let work = config.put_time.map_or(recorded, |each| each.saturating_mul(puts));
        Step::Put { work, puts, bytes: share(event.bytes, range, event.count) }
    };
    (0..event.count.div_ceil(at_once)).map(of).collect()
}

/// The part of `all`, spread evenly over `count`, that falls into `range`.
fn share(all: u64, range: std::ops::Range<u64>, count: u64) -> u64 {
    let up_to = |at: u64| (u128::from(all) * u128::from(at) / u128::from(count)) as u64;
    up_to(range.end) - up_to(range.start)
}
