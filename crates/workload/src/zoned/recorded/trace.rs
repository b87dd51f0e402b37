//! The recording of a file system's calls, as text: what the RocksDB plugin writes with `trace:FILE`.
//!
//! The first line is `leyden-files 1`, the last one `end`. A line between is what a thread did one or several times
//! over: sequence, thread, nanoseconds of processor time before, operation, file, how often, bytes in all, and of `c`
//! and `n` the path. Lines are in the order of their ends; the sequence is that of their beginnings.

use std::io::{BufRead, BufReader};

use thiserror::Error;

/// A call of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileOp {
    /// Made a file.
    Create,
    /// Appended.
    Append,
    /// Read.
    Read,
    /// Synced.
    Sync,
    /// Closed what it had written.
    Close,
    /// Deleted a name.
    Delete,
    /// Changed a name.
    Rename,
}

/// The role of a file, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// A write-ahead log.
    Log,
    /// A table.
    Table,
    /// The list of tables.
    Manifest,
    /// Anything else that is small: CURRENT, OPTIONS, IDENTITY.
    #[default]
    Other,
}

/// A line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// In the order of beginnings.
    pub sequence: u64,
    /// Whose.
    pub thread: u32,
    /// Its processor time before, of all of `count` together.
    pub work_ns: u64,
    /// What.
    pub op: FileOp,
    /// To which file.
    pub file: u32,
    /// The file's role.
    pub role: Role,
    /// How often.
    pub count: u64,
    /// Bytes in all.
    pub bytes: u64,
}

/// A recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileTrace {
    /// By sequence.
    pub(super) events: Vec<Event>,
    pub(super) threads: u32,
    pub(super) files: u32,
}

/// Why there is no recording.
#[derive(Debug, Error)]
pub enum FileTraceError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is something else.
    #[error("it does not begin with `{HEAD}`: name a file that the plugin wrote with trace:FILE")]
    Foreign,
    /// It ends early.
    #[error("it has no line `end`: its program was killed; record it again")]
    Unfinished,
    /// A line is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The error.
        problem: String,
    },
}

/// A Zstandard frame begins so (RFC 8878, 3.1.1).
const ZSTD_MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
const HEAD: &str = "leyden-files 1";
/// More threads or files are no recording of ours.
const MOST: u32 = 1 << 24;

impl FileTrace {
    /// Reads a recording, plain or compressed with zstd.
    ///
    /// # Errors
    /// If it is none, or damaged.
    pub fn read(bytes: &[u8]) -> Result<Self, FileTraceError> {
        if bytes.starts_with(&ZSTD_MAGIC) {
            Self::of_lines(BufReader::new(zstd::Decoder::with_buffer(bytes)?))
        } else {
            Self::of_lines(bytes)
        }
    }

    fn of_lines(from: impl BufRead) -> Result<Self, FileTraceError> {
        let mut lines = from.lines();
        if lines.next().transpose()?.as_deref() != Some(HEAD) {
            return Err(FileTraceError::Foreign);
        }
        let mut roles: Vec<Role> = Vec::new();
        let mut events = Vec::new();
        let mut threads = 0;
        let mut is_whole = false;
        for (number, line) in lines.enumerate() {
            let line = line?;
            if is_whole {
                return Err(wrong(number, "there is something behind `end`"));
            }
            if line == "end" {
                is_whole = true;
                continue;
            }
            let event =
                Event::parse(&line, &mut roles).map_err(|problem| wrong(number, problem))?;
            threads = threads.max(event.thread + 1);
            events.push(event);
        }
        if !is_whole {
            return Err(FileTraceError::Unfinished);
        }
        events.sort_by_key(|event| event.sequence);
        Ok(Self { events, threads, files: roles.len() as u32 })
    }

    /// Its puts: appends to logs.
    pub fn puts(&self) -> u64 {
        let is_put = |event: &&Event| event.role == Role::Log && event.op == FileOp::Append;
        self.events.iter().filter(is_put).map(|event| event.count).sum()
    }
}

/// The error of the line that is `number` lines behind the head.
fn wrong(number: usize, problem: impl Into<String>) -> FileTraceError {
    FileTraceError::Line { line: number + 2, problem: problem.into() }
}

impl Event {
    /// The event of a line. `roles` are those of all files so far.
    fn parse(line: &str, roles: &mut Vec<Role>) -> Result<Self, String> {
        let mut words = line.splitn(8, ' ');
        let mut next = || words.next().ok_or_else(|| "fewer than seven fields".to_owned());
        let (sequence, thread) = (number(next()?, u64::MAX)?, number(next()?, MOST.into())? as u32);
        let work_ns = number(next()?, 1 << 50)?;
        let op = op_of(next()?)?;
        let file = number(next()?, MOST.into())? as u32;
        let (count, bytes) = (number(next()?, 1 << 40)?, number(next()?, 1 << 50)?);
        if count == 0 {
            return Err("it says that something was done 0 times".to_owned());
        }
        let at = file as usize;
        if roles.len() <= at {
            roles.resize(at + 1, Role::default());
        }
        if matches!(op, FileOp::Create | FileOp::Rename) {
            roles[at] = role_of(words.next().ok_or("a file without a name")?);
        }
        Ok(Self { sequence, thread, work_ns, op, file, role: roles[at], count, bytes })
    }
}

fn number(word: &str, most: u64) -> Result<u64, String> {
    let number = word.parse().ok().filter(|&number| number <= most);
    number.ok_or_else(|| format!("`{word}` is not a number up to {most}"))
}

fn op_of(word: &str) -> Result<FileOp, String> {
    Ok(match word {
        "c" => FileOp::Create,
        "a" => FileOp::Append,
        "r" => FileOp::Read,
        "s" => FileOp::Sync,
        "x" => FileOp::Close,
        "d" => FileOp::Delete,
        "n" => FileOp::Rename,
        _ => return Err(format!("`{word}` is none of the operations c, a, r, s, x, d and n")),
    })
}

fn role_of(path: &str) -> Role {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "log" => Role::Log,
        "sst" => Role::Table,
        _ if name.starts_with("MANIFEST-") => Role::Manifest,
        _ => Role::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FileTrace, FileTraceError> {
        FileTrace::read(text.as_bytes())
    }

    #[test]
    fn lines_are_read_in_the_order_of_their_beginnings() {
        let text = "leyden-files 1\n1 1 5 c 1 1 0 /a b/000007.sst\n0 0 9 c 0 1 0 /db/000004.log\n\
                    2 0 30 a 0 3 2775\n3 0 1 n 1 1 0 /db/MANIFEST-000001\nend\n";
        let trace = read(text).unwrap();
        assert_eq!((trace.threads, trace.files, trace.puts()), (2, 2, 3));
        let roles: Vec<_> = trace.events.iter().map(|event| event.role).collect();
        assert_eq!(roles, [Role::Log, Role::Table, Role::Log, Role::Manifest]);
        assert_eq!(trace.events[2].work_ns, 30);
    }

    #[test]
    fn wrong_recordings_are_refused_with_their_line() {
        let of = |text: &str| read(text).unwrap_err().to_string();
        assert!(of("").contains("does not begin with"));
        assert!(of("leyden-files 2\nend\n").contains("does not begin with"));
        assert!(of("leyden-files 1\n0 0 0 a 0 1 9\n").contains("no line `end`"));
        assert!(of("leyden-files 1\n0 0 0 q 0 1 9\nend\n").contains("line 2: `q` is none"));
        assert!(of("leyden-files 1\n0 0 0 a 0 1\nend\n").contains("fewer than seven"));
        assert!(of("leyden-files 1\n0 0 0 a 0 0 9\nend\n").contains("0 times"));
        assert!(of("leyden-files 1\n0 0 0 c 0 1 9\nend\n").contains("without a name"));
        assert!(of("leyden-files 1\n0 0 0 a 99999999999 1 9\nend\n").contains("not a number"));
        let packed = zstd::encode_all(&b"leyden-files 1\nend\n"[..], 1).unwrap();
        assert_eq!(FileTrace::read(&packed).unwrap().puts(), 0);
        assert!(FileTrace::read(&packed[..packed.len() - 3]).is_err());
        assert!(of("leyden-files 1\nend\n0 0 0 a 0 1 9\n").contains("line 3: there is something"));
    }
}
