//! A trace and the hints that were captured beside it, as one stream.
//!
//! **What lives here**: merging by time. **What doesn't**: what hints mean to a drive.
//!
//! **Invariants**
//! - Both files tell the time of the same clock, which is not that of the merged stream: that
//!   begins at zero with the first record of either.
//! - Of records of the same time, hints come last. A hint follows from what the host has changed;
//!   where a page is changed again while it is being written, its write and the hint of the next one
//!   bear the same time, and the other order would take the hint for one of the write beside it. In
//!   the PostgreSQL traces of this project that is so for all but 1 % of the equal times.
//! - A class has one name, whichever file it comes from.
//! - Memory doesn't grow with either file.

use std::path::PathBuf;

use leyden_device::Op;
use leyden_sim::Time;

use crate::Request;

use super::error::{ErrorKind, TraceError};
use super::reader::Reader;

/// A trace, with or without a file of hints merged into it.
pub struct Merged {
    trace: Reader,
    hints: Option<Hints>,
    ended: bool,
}

/// The hints, and the records of both files that come next.
struct Hints {
    path: PathBuf,
    reader: Reader,
    /// Next of the trace and of the hints, with the time of their own clock.
    next: [Option<Request>; 2],
    /// Where the merged stream's time begins, once known.
    zero: Option<Time>,
    /// Hints handed out.
    count: u64,
    /// Of those, how many lie within the time of the trace.
    within: u64,
}

impl From<Reader> for Merged {
    fn from(trace: Reader) -> Self {
        Self { trace, hints: None, ended: false }
    }
}

impl Merged {
    /// Merges `hints` into `trace`. Nothing was read of either yet.
    pub fn new(trace: Reader, mut hints: Reader) -> Self {
        hints.name_classes_by(trace.classes());
        let hints = Hints {
            path: hints.path().to_owned(),
            reader: hints,
            next: [None; 2],
            zero: None,
            count: 0,
            within: 0,
        };
        Self { trace, hints: Some(hints), ended: false }
    }

    /// The reader of the trace.
    pub fn trace(&self) -> &Reader {
        &self.trace
    }

    /// Warnings about the requests read so far, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = self.trace.warnings();
        let Some(hints) = &self.hints else { return all };
        let name = hints.path.display();
        all.extend(hints.reader.warnings().iter().map(|warning| format!("{name}: {warning}")));
        if hints.count > 0 && hints.within == 0 && self.ended {
            all.push(format!(
                "{name}: none of its hints lies within the trace's time: are both times of the \
                 same clock?"
            ));
        }
        all
    }

    /// The next record of either file.
    fn merged(&mut self) -> Result<Option<Request>, TraceError> {
        let Some(hints) = &mut self.hints else {
            return self.trace.next().transpose();
        };
        if hints.zero.is_none() {
            hints.next = [following(&mut self.trace)?, following(&mut hints.reader)?];
            hints.zero = hints.next.iter().flatten().map(|first| first.at).min();
        }
        let [command, hint] = hints.next;
        let is_hint = match (command, hint) {
            (Some(command), Some(hint)) => hint.at < command.at,
            (command, _) => command.is_none(),
        };
        let Some(mut next) = (if is_hint { hint } else { command }) else { return Ok(None) };
        if is_hint {
            hints.count += 1;
            if next.op != Op::WritePrepare {
                let kind = ErrorKind::NotAHint { number: hints.count };
                return Err(TraceError::file(&hints.path, kind));
            }
            let begun = self.trace.base().is_some_and(|base| base <= next.at);
            hints.within += u64::from(begun && command.is_some());
        }
        let reader = if is_hint { &mut hints.reader } else { &mut self.trace };
        hints.next[usize::from(is_hint)] = following(reader)?;
        let zero = hints.zero.unwrap_or(Time::ZERO);
        next.at = Time::from_ns(next.at.as_ns() - zero.as_ns());
        Ok(Some(next))
    }
}

/// The next record of a file, with the time of the file's own clock.
fn following(reader: &mut Reader) -> Result<Option<Request>, TraceError> {
    let Some(mut request) = reader.next().transpose()? else { return Ok(None) };
    let base = reader.base().unwrap_or(Time::ZERO);
    request.at = Time::from_ns(request.at.as_ns() + base.as_ns());
    Ok(Some(request))
}

impl Iterator for Merged {
    type Item = Result<Request, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.hints.is_none() {
            return self.trace.next();
        }
        if self.ended {
            return None;
        }
        let next = self.merged().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::path::Path;

    use super::*;
    use crate::trace::{Cut, OpenOptions, Profile, profile};

    fn reader(name: &str, text: &str) -> Reader {
        let bytes = Box::new(Cursor::new(text.to_owned()));
        Reader::new(Path::new(name), bytes, &OpenOptions::default()).unwrap()
    }

    fn csv(lines: &str) -> String {
        format!("time_us,op,lba,len,flags,class\n{lines}")
    }

    fn merged(trace: &str, hints: &str) -> Merged {
        Merged::new(reader("trace", &csv(trace)), reader("hints", &csv(hints)))
    }

    /// Time in us, operation and address of each record.
    fn shown(merged: &mut Merged) -> Vec<(u64, Op, u64)> {
        let requests = merged.map(Result::unwrap);
        requests.map(|r| (r.at.as_ns() / 1_000, r.op, r.lba.0)).collect()
    }

    const TRACE: &str = "100,W,8,16,WS,wal\n105,W,32,16,W,data\n105,R,64,8,R,data\n\
                         120,W,8,16,W,data\n";

    #[test]
    fn hints_find_their_place_and_follow_commands_of_their_time() {
        let mut both = merged(TRACE, "103,H,32,16,-,heap\n105,H,32,16,-,index\n130,H,8,16,-,fsm\n");
        let expected = [
            (0, Op::Write, 8),
            (3, Op::WritePrepare, 32),
            (5, Op::Write, 32),
            (5, Op::Read, 64),
            (5, Op::WritePrepare, 32),
            (20, Op::Write, 8),
            (30, Op::WritePrepare, 8),
        ];
        assert_eq!(shown(&mut both), expected);
        assert!(both.warnings().is_empty(), "{:?}", both.warnings());
        assert!(both.next().is_none());
        // Without hints, as the reader alone.
        let mut alone = Merged::from(reader("trace", &csv(TRACE)));
        assert_eq!(shown(&mut alone).len(), 4);
    }

    #[test]
    fn time_begins_with_the_first_record_of_either() {
        let mut both = merged(TRACE, "90,H,32,16,-,heap\n");
        assert_eq!(shown(&mut both)[..2], [(0, Op::WritePrepare, 32), (10, Op::Write, 8)]);
        let warnings = both.warnings();
        assert!(warnings[0].contains("none of its hints lies within"), "{warnings:?}");
    }

    #[test]
    fn wrong_and_garbled_hints_are_named_with_their_file() {
        let mut both = merged(TRACE, "101,H,8,16,-,heap\n102,W,8,16,W,data\n");
        let errors: Vec<TraceError> = both.by_ref().filter_map(Result::err).collect();
        let text = errors[0].to_string();
        assert!(text.starts_with("hints: record 2 is a command, and no hint"), "{text}");
        assert_eq!(errors.len(), 1);
        let mut both = merged(TRACE, "101,H,8,16,-,heap\n102,H,x,16,-,heap\n");
        let error = both.find_map(Result::err).unwrap();
        assert!(error.to_string().starts_with("hints:3: column `lba`"), "{error}");
    }

    fn profiled(trace: &str, hints: &str) -> Profile {
        let merged = merged(trace, hints);
        let names = merged.trace().classes().clone();
        profile(merged, &names).unwrap()
    }

    #[test]
    fn a_profile_tells_which_writes_were_announced() {
        let hints = "101,H,32,16,-,heap\n101,H,33,1,-,heap\n106,H,96,8,-,heap\n";
        let profile = profiled(TRACE, hints);
        assert_eq!((profile.requests, profile.hints), (4, 3));
        assert_eq!(profile.bytes_announced, (16 + 1 + 8) * 512);
        // Units 1 and 2, 4 and 5, 1 and 2 again: 4 and 5 were announced.
        assert!((profile.announced_share - 2.0 / 6.0).abs() < 1e-9);
        assert!(profile.announced_overwrite_share.abs() < 1e-9);
        assert!((profile.announced_share_by_class["data"] - 0.5).abs() < 1e-9);
        assert!(profile.announced_share_by_class["wal"].abs() < 1e-9);
        assert_eq!(profile.end_byte, 72 * 512, "hints touch nothing");
        let profile = profiled(TRACE, "101,H,8,16,-,heap\n");
        assert!((profile.announced_overwrite_share - 1.0).abs() < 1e-9);
        let trimmed = TRACE.replace("105,R,64,8,R", "105,D,8,8,D");
        let profile = profiled(&trimmed, "101,H,8,16,-,heap\n");
        assert!((profile.announced_overwrite_share - 0.5).abs() < 1e-9);
    }

    /// A trim of a part of a unit, in the middle of what was announced, takes no announcement back.
    #[test]
    fn a_trim_of_less_than_a_unit_leaves_announcements() {
        let trace = "100,R,0,8,R,-\n105,D,9,2,D,-\n110,W,0,24,W,data\n";
        let profile = profiled(trace, "101,H,0,24,-,data\n");
        assert!((profile.announced_share - 1.0).abs() < 1e-9, "{profile:?}");
    }

    #[test]
    fn both_files_name_classes_alike() {
        let trace = "100,W,8,16,WS,index\n105,W,32,16,W,heap\n";
        let mut both = merged(trace, "101,H,32,16,-,heap\n103,H,8,16,-,fsm\n");
        let requests: Vec<Request> = both.by_ref().map(Result::unwrap).collect();
        let names = both.trace().classes();
        let called: Vec<_> = requests.iter().map(|r| names.name(r.class).unwrap()).collect();
        assert_eq!(called, ["index", "heap", "fsm", "heap"]);
        assert_eq!(requests[1].class, requests[3].class);
        let profile = profiled(trace, "101,H,32,16,-,heap\n103,H,8,16,-,fsm\n");
        assert_eq!(profile.bytes_written_by_class["heap"], 16 * 512);
        assert!((profile.announced_share_by_class["heap"] - 1.0).abs() < 1e-9);
        assert!(profile.announced_share_by_class["index"].abs() < 1e-9);
    }

    #[test]
    fn a_cut_counts_commands() {
        let both = merged(TRACE, "101,H,32,16,-,heap\n");
        let cut = Cut { max_requests: Some(2), ..Cut::default() };
        assert_eq!(cut.apply(both).count(), 3);
    }
}
