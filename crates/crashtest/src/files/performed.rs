//! A recording of files, performed on a real file system: the same calls once more, where power cuts can be seen.

#![expect(unsafe_code, reason = "sync_file_range(2) has no safe form")]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use leyden_sim::Rng;
use nix::fcntl::{AT_FDCWD, FallocateFlags, RenameFlags, fallocate, renameat2};
use nix::libc;
use rustix::fs::XattrFlags;

use super::atom::Ino;
use super::history::FileHistory;
use super::history::Syncs;
use super::membership::{SeenFiles, allows};
use super::operation::{Entry, Operation};
use super::recording::{Again, each, read};
use super::rules::Persistence;
use super::step::Kind;
use super::tree::Renaming;
use crate::cut::Flushes;
use crate::error::CrashError;
use crate::history::History as _;

/// One of so many calls is followed by one that has the kernel write a file out, which promises nothing.
const WRITTEN_OUT: u64 = 4;

/// The half of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// The preparation.
    Setup,
    /// The work that follows.
    Work,
}

/// Performs half of a recording in `folder`. Writes a line to `acks` for each sync of the work.
///
/// # Errors
/// If the recording cannot be read, or a call fails that had gone well.
pub fn perform(
    recording: &Path,
    half: Half,
    folder: &Path,
    acks: &mut dyn Write,
) -> Result<(), CrashError> {
    let file = File::open(recording).map_err(CrashError::io(recording))?;
    let mut performer = Performer {
        again: Again::new(FileHistory::new(Persistence::Posix)),
        top: folder.to_owned(),
        half,
        is_begun: false,
        handles: BTreeMap::new(),
        rng: Rng::new(1, "write out"),
    };
    let performed = each(BufReader::new(file), |_, entry, data| performer.entry(entry, data, acks));
    performed.map_err(|problem| CrashError::Input(format!("{}: {problem}", recording.display())))
}

/// Files that were seen after a power cut that `syncs` syncs of the work had returned before, and are not allowed by `rules`.
///
/// # Errors
/// If the recording cannot be read.
pub fn not_allowed(
    recording: &Path,
    rules: Persistence,
    seen: impl IntoIterator<Item = (usize, SeenFiles)>,
) -> Result<Vec<(usize, SeenFiles)>, CrashError> {
    let history = read(recording, FileHistory::new(rules))?.history;
    let cuts = history.cuts(Flushes::All, &|_| true);
    // A sync may be done and not have said it yet.
    let is_allowed = |(syncs, files): &(usize, SeenFiles)| {
        let moments = cuts.iter().skip(*syncs).take(2);
        moments.into_iter().any(|cut| allows(&history, cut, files))
    };
    Ok(seen.into_iter().filter(|seen| !is_allowed(seen)).collect())
}

struct Performer {
    again: Again,
    top: PathBuf,
    half: Half,
    is_begun: bool,
    /// Files that are open: a handle that ends has the kernel write some files out.
    handles: BTreeMap<Ino, File>,
    rng: Rng,
}

impl Performer {
    fn entry(&mut self, entry: Entry, data: &[u8], acks: &mut dyn Write) -> io::Result<()> {
        if entry == Entry::Begun {
            self.is_begun = true;
        }
        if self.is_begun == (self.half == Half::Work) {
            match &entry {
                Entry::Did(operation) => self.operation(operation, data)?,
                Entry::Synced(syncs) => {
                    self.sync(*syncs)?;
                    if self.is_begun {
                        writeln!(acks, "ack sync")?;
                        acks.flush()?;
                    }
                }
                _ => {}
            }
        }
        let made = match &entry {
            Entry::Did(Operation::Create { folder, name, kind: Kind::File }) => {
                Some((*folder, name.clone()))
            }
            _ => None,
        };
        self.again.entry(entry, data)?;
        // It is known by its number now.
        if let Some((folder, name)) = made
            && self.is_begun == (self.half == Half::Work)
            && let Some(ino) = self.again.tree.lookup(folder, &name)
        {
            self.handle(ino)?;
        }
        if self.is_begun && self.rng.below(WRITTEN_OUT) == 0 {
            self.write_out()?;
        }
        Ok(())
    }

    fn place(&self, folder: Ino, name: &str) -> PathBuf {
        let folder = self.again.path(folder);
        self.top.join(folder.trim_start_matches('/')).join(name)
    }

    /// A path of a file, of all that it may have.
    fn path_of(&self, file: Ino) -> io::Result<PathBuf> {
        let mut folders = vec![Ino::ROOT];
        while let Some(folder) = folders.pop() {
            for (name, ino) in self.again.tree.entries(folder) {
                if ino == file {
                    return Ok(self.place(folder, &name));
                }
                if self.again.tree.kind(ino) == Kind::Folder {
                    folders.push(ino);
                }
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn handle(&mut self, file: Ino) -> io::Result<&File> {
        if !self.handles.contains_key(&file) {
            let opened = OpenOptions::new().read(true).write(true).open(self.path_of(file)?)?;
            self.handles.insert(file, opened);
        }
        Ok(&self.handles[&file])
    }

    /// A file that loses its name may be used by its handle all the same.
    fn keep(&mut self, folder: Ino, name: &str) -> io::Result<()> {
        match self.again.tree.lookup(folder, name) {
            Some(ino) if self.again.tree.kind(ino) == Kind::File => self.handle(ino).map(drop),
            _ => Ok(()),
        }
    }

    fn operation(&mut self, operation: &Operation, data: &[u8]) -> io::Result<()> {
        match operation {
            Operation::Create { folder, name, kind: Kind::Folder } => {
                fs::create_dir(self.place(*folder, name))
            }
            Operation::Create { folder, name, .. } => {
                File::create_new(self.place(*folder, name)).map(drop)
            }
            Operation::Symlink { folder, name, target } => {
                std::os::unix::fs::symlink(target, self.place(*folder, name))
            }
            Operation::Link { file, folder, name } => {
                fs::hard_link(self.path_of(*file)?, self.place(*folder, name))
            }
            Operation::Remove { folder, name, kind: Kind::Folder } => {
                fs::remove_dir(self.place(*folder, name))
            }
            Operation::Remove { folder, name, .. } => {
                self.keep(*folder, name)?;
                fs::remove_file(self.place(*folder, name))
            }
            Operation::Rename { from, to, how } => {
                self.keep(to.0, &to.1)?;
                let flags = match how {
                    Renaming::Replace => RenameFlags::empty(),
                    Renaming::New => RenameFlags::RENAME_NOREPLACE,
                    Renaming::Exchange => RenameFlags::RENAME_EXCHANGE,
                };
                let (from, to) = (self.place(from.0, &from.1), self.place(to.0, &to.1));
                Ok(renameat2(AT_FDCWD, &from, AT_FDCWD, &to, flags)?)
            }
            Operation::Write { file, offset } => self.handle(*file)?.write_all_at(data, *offset),
            Operation::Zero { file, offset, bytes } => {
                let hole =
                    FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
                Ok(fallocate(self.handle(*file)?, hole, *offset as i64, *bytes as i64)?)
            }
            Operation::SetLength { file, bytes } => self.handle(*file)?.set_len(*bytes),
            Operation::SetXattr { of, name } => self.with_xattrs(
                *of,
                |file| rustix::fs::fsetxattr(file, name, data, XattrFlags::empty()),
                |path| rustix::fs::lsetxattr(path, name, data, XattrFlags::empty()),
            ),
            Operation::RemoveXattr { of, name } => self.with_xattrs(
                *of,
                |file| rustix::fs::fremovexattr(file, name),
                |path| rustix::fs::lremovexattr(path, name),
            ),
            Operation::Close { file } => {
                self.handles.remove(file);
                Ok(())
            }
        }
    }

    /// Calls the one with the handle of a file, or the other with the path of anything else.
    fn with_xattrs(
        &mut self,
        of: Ino,
        by_handle: impl FnOnce(&File) -> rustix::io::Result<()>,
        by_path: impl FnOnce(&Path) -> rustix::io::Result<()>,
    ) -> io::Result<()> {
        if self.again.tree.kind(of) == Kind::File {
            return Ok(by_handle(self.handle(of)?)?);
        }
        Ok(by_path(&self.top.join(self.again.path(of).trim_start_matches('/')))?)
    }

    fn sync(&mut self, syncs: Syncs) -> io::Result<()> {
        let of = match syncs {
            Syncs::Whole(ino) | Syncs::Data(ino) => ino,
            Syncs::Drive(_) | Syncs::Everything => {
                return Ok(nix::unistd::syncfs(&File::open(&self.top)?)?);
            }
        };
        if self.again.tree.kind(of) == Kind::Folder {
            return File::open(self.top.join(self.again.path(of).trim_start_matches('/')))?
                .sync_all();
        }
        let is_data = matches!(syncs, Syncs::Data(_));
        let handle = self.handle(of)?;
        if is_data { handle.sync_data() } else { handle.sync_all() }
    }

    /// Has the kernel write some file out, and waits for the end of it.
    fn write_out(&mut self) -> io::Result<()> {
        let count = self.handles.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let which = self.rng.below(count) as usize;
        let handle = self.handles.values().nth(which).expect("one of them");
        let page = self.rng.below(4) as i64 * 4_096;
        let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // SAFETY: the descriptor is open, and no memory is shared.
        let done = unsafe { libc::sync_file_range(handle.as_raw_fd(), page, 4_096, all) };
        nix::errno::Errno::result(done).map(drop).map_err(io::Error::from)
    }
}
