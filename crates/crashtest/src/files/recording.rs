//! A recorded folder as a file: a line of JSON for each entry, with the bytes of a write behind its line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

use leyden_files::NewFile;
use serde::{Deserialize, Serialize};

use super::atom::Ino;
use super::history::{FileHistory, Syncs};
use super::operation::{Entry, Operation, Owner};
use super::tree::{Renaming, Tree};
use crate::clock::wall;
use crate::error::CrashError;

/// The first line.
pub(super) const HEAD: &str = "{\"leyden\":\"recording of files\",\"version\":1}";
/// Bytes of a line, and of a write, at most.
const LINE_MOST: u64 = 1 << 20;
const WRITE_MOST: u32 = 1 << 24;
/// Drives that share a recording at most.
pub const DRIVES_MOST: u32 = 16;

/// An entry with its time, and how many bytes follow.
#[derive(Debug, Serialize, Deserialize)]
struct Line(u64, Entry, #[serde(default)] u32);

/// Writes a recording.
#[derive(Debug)]
pub(crate) struct Recorder {
    out: BufWriter<NewFile>,
    begun: Instant,
    bytes: u64,
    last_sync: Option<Syncs>,
}

impl Recorder {
    /// A recording at `path`, which is there when it has been ended.
    pub(crate) fn create(path: &Path) -> Result<Self, CrashError> {
        let mut out = BufWriter::new(NewFile::create(path)?);
        writeln!(out, "{HEAD}").map_err(CrashError::io(path))?;
        Ok(Self { out, begun: wall(), bytes: 0, last_sync: None })
    }

    /// How long it has been recorded.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn note(&mut self, entry: Entry, data: &[u8]) -> io::Result<()> {
        self.last_sync = match &entry {
            // With O_SYNC some kernels ask for what the write has done already.
            Entry::Synced(syncs) if self.last_sync == Some(*syncs) => return Ok(()),
            Entry::Synced(syncs) => Some(*syncs),
            _ => None,
        };
        let line = serde_json::to_string(&Line(self.now_ns(), entry, data.len() as u32))?;
        if line.len() as u64 >= LINE_MOST {
            let problem = "a promise is longer than a mebibyte";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        self.bytes += (line.len() + data.len()) as u64;
        writeln!(self.out, "{line}")?;
        self.out.write_all(data)
    }

    /// The work has ended. Returns the bytes of the recording.
    pub(crate) fn end(mut self, path: &Path) -> Result<u64, CrashError> {
        self.note(Entry::Ended, &[]).map_err(CrashError::io(path))?;
        let bytes = self.bytes + HEAD.len() as u64;
        let file = self
            .out
            .into_inner()
            .map_err(|error| CrashError::Io(path.to_owned(), error.into_error()))?;
        file.commit()?;
        Ok(bytes)
    }
}

/// A recorded run.
#[derive(Debug)]
pub(crate) struct RecordedFiles {
    pub(crate) history: FileHistory,
    /// Of everything that was ever made: as it was last.
    pub(crate) owners: BTreeMap<Ino, Owner>,
}

/// Reads a recording, for the promises of `rules`.
///
/// # Errors
/// If it cannot be read, or is none, or is damaged.
pub(crate) fn read(path: &Path, history: FileHistory) -> Result<RecordedFiles, CrashError> {
    let file = File::open(path).map_err(CrashError::io(path))?;
    let damaged = |problem: String| CrashError::Input(format!("{}: {problem}", path.display()));
    read_from(BufReader::new(file), history).map_err(damaged)
}

/// As [`read`], from anywhere; the error is without the path.
pub(crate) fn read_from(from: impl BufRead, history: FileHistory) -> Result<RecordedFiles, String> {
    let mut again = Again::new(history);
    each(from, |time_ns, entry, data| {
        again.history.set_time(time_ns);
        again.entry(entry, data)
    })?;
    Ok(RecordedFiles { history: again.history, owners: again.owners })
}

/// Calls `take` with each entry up to the end of the work: its time, and its bytes.
pub(super) fn each(
    mut from: impl BufRead,
    mut take: impl FnMut(u64, Entry, &[u8]) -> io::Result<()>,
) -> Result<(), String> {
    let mut number = 1;
    if line(&mut from)?.as_deref() != Some(HEAD.as_bytes()) {
        return Err("this is no recording of files, or one of another version".to_owned());
    }
    loop {
        number += 1;
        let at = |problem: String| format!("line {number}: {problem}");
        let Some(text) = line(&mut from).map_err(at)? else {
            return Err("the recording ends before the work has ended".to_owned());
        };
        let Line(time_ns, entry, bytes) =
            serde_json::from_slice(&text).map_err(|error| at(error.to_string()))?;
        if bytes > WRITE_MOST {
            return Err(at(format!("a write of {bytes} bytes, and {WRITE_MOST} are the most")));
        }
        let mut data = Vec::new();
        let read = (&mut from).take(bytes.into()).read_to_end(&mut data);
        if read.map_err(|error| at(error.to_string()))? < bytes as usize {
            return Err(at("its bytes are missing".to_owned()));
        }
        if entry == Entry::Ended {
            return Ok(());
        }
        take(time_ns, entry, &data).map_err(|error| at(error.to_string()))?;
    }
}

/// A line without its end; nothing behind the last.
fn line(from: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut text = Vec::new();
    let read = from.take(LINE_MOST).read_until(b'\n', &mut text);
    read.map_err(|error| error.to_string())?;
    match text.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(text)),
        Some(_) => Err("it has no end, or more than a mebibyte".to_owned()),
    }
}

/// Does again what was recorded.
pub(super) struct Again {
    pub(super) tree: Tree,
    history: FileHistory,
    owners: BTreeMap<Ino, Owner>,
    /// The last name of each file and folder.
    names: BTreeMap<Ino, (Ino, String)>,
}

impl Again {
    /// Into a history in which nothing has happened.
    pub(super) fn new(history: FileHistory) -> Self {
        Self { tree: Tree::new(), history, owners: BTreeMap::new(), names: BTreeMap::new() }
    }

    pub(super) fn entry(&mut self, entry: Entry, data: &[u8]) -> io::Result<()> {
        match entry {
            Entry::Did(operation) => return self.operation(&operation, data),
            Entry::Drives(count) => return self.drives(count),
            Entry::Synced(syncs) => self.sync(syncs, true)?,
            Entry::SyncFailed(syncs) => self.sync(syncs, false)?,
            Entry::Acknowledged(text) => self.history.acknowledge(&text),
            Entry::Owned(ino, owner) => drop(self.owners.insert(ino, owner)),
            Entry::Begun => self.history.set_begin(),
            Entry::Ended => {}
        }
        Ok(())
    }

    fn sync(&mut self, syncs: Syncs, is_done: bool) -> io::Result<()> {
        let words = match syncs {
            Syncs::Whole(ino) => format!("fsync of {}", self.path(self.tree.there(ino)?)),
            Syncs::Data(ino) => {
                format!("fdatasync of {}", self.path(self.tree.there(ino)?))
            }
            Syncs::Drive(folder) => {
                format!("sync of drive {}", self.path(self.tree.there(folder)?))
            }
            Syncs::Everything => "sync".to_owned(),
        };
        let words = if is_done { words } else { format!("failed {words}") };
        let since = self.history.events().len() as u32;
        self.history.sync(&words, syncs, since, is_done);
        Ok(())
    }

    fn drives(&mut self, count: u32) -> io::Result<()> {
        if !(2..=DRIVES_MOST).contains(&count) || self.history.event_count() > 0 {
            let problem = format!("2 to {DRIVES_MOST} drives stand at the beginning");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let made = self.tree.make_drives(count)?;
        let folders: Vec<Ino> = made.iter().map(|(folder, _)| *folder).collect();
        self.history.set_drives(&folders);
        for (number, (folder, steps)) in (1..).zip(made) {
            self.name(Some(folder), Ino::ROOT, &format!("{number}"));
            self.history.call(&format!("drive {number}"), steps);
        }
        Ok(())
    }

    fn operation(&mut self, operation: &Operation, data: &[u8]) -> io::Result<()> {
        // With the names of before: what is renamed or removed has them.
        let words = self.words(operation, data.len());
        let moved = match operation {
            Operation::Rename { from, to, how } => {
                let exchanged = (*how == Renaming::Exchange).then(|| self.tree.lookup(to.0, &to.1));
                Some((self.tree.lookup(from.0, &from.1), exchanged.flatten()))
            }
            _ => None,
        };
        let made = operation.apply(&mut self.tree, data)?;
        match (operation, made.ino) {
            (
                Operation::Create { folder, name, .. } | Operation::Symlink { folder, name, .. },
                Some(ino),
            ) => self.name(Some(ino), *folder, name),
            (Operation::Rename { from, to, .. }, _) => {
                let (moved, other) = moved.unwrap_or_default();
                self.name(moved, to.0, &to.1);
                self.name(other, from.0, &from.1);
            }
            _ => {}
        }
        if !made.steps.is_empty() {
            self.history.call(&words, made.steps);
        }
        Ok(())
    }

    fn name(&mut self, ino: Option<Ino>, folder: Ino, name: &str) {
        if let Some(ino) = ino {
            self.names.insert(ino, (folder, name.to_owned()));
        }
    }

    /// A path below the folder that was recorded; of something that has lost its name, the last one.
    pub(super) fn path(&self, ino: Ino) -> String {
        let mut parts = Vec::new();
        let mut at = ino;
        // A damaged recording may move folders around in circles.
        while let Some((folder, name)) = self.names.get(&at)
            && parts.len() < self.names.len()
        {
            parts.push(name.as_str());
            at = *folder;
        }
        parts.reverse();
        if parts.is_empty() { "/".to_owned() } else { parts.join("/") }
    }

    fn words(&self, operation: &Operation, bytes: usize) -> String {
        let at = |folder: &Ino, name: &String| match self.path(*folder).as_str() {
            "/" => name.clone(),
            folder => format!("{folder}/{name}"),
        };
        match operation {
            Operation::Create { folder, name, kind: super::step::Kind::Folder } => {
                format!("mkdir {}", at(folder, name))
            }
            Operation::Create { folder, name, .. } => format!("creation of {}", at(folder, name)),
            Operation::Symlink { folder, name, target } => {
                format!("symbolic link {} to {target}", at(folder, name))
            }
            Operation::Link { file, folder, name } => {
                format!("link of {} as {}", self.path(*file), at(folder, name))
            }
            Operation::Remove { folder, name, .. } => format!("removal of {}", at(folder, name)),
            Operation::Rename { from, to, how } => {
                let verb = if *how == Renaming::Exchange { "exchange" } else { "rename" };
                format!("{verb} of {} and {}", at(&from.0, &from.1), at(&to.0, &to.1))
            }
            Operation::Write { file, offset } => {
                format!("write of {bytes} B at {offset} of {}", self.path(*file))
            }
            Operation::Zero { file, offset, bytes } => {
                format!("zeroing of {bytes} B at {offset} of {}", self.path(*file))
            }
            Operation::SetLength { file, bytes } => {
                format!("truncation of {} to {bytes} B", self.path(*file))
            }
            Operation::SetXattr { of, name } => {
                format!("setxattr of {name}, {bytes} B, on {}", self.path(*of))
            }
            Operation::RemoveXattr { of, name } => {
                format!("removexattr of {name} on {}", self.path(*of))
            }
            Operation::Close { file } => format!("close of {}", self.path(*file)),
        }
    }
}

#[cfg(test)]
mod tests;
