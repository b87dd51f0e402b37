//! rusty-leveldb, unmodified, on files that a power cut may take: its `Env` on a folder of a crash test, and a promise that it
//! does not keep.
//!
//! ```sh
//! cargo test --package leveldb-crashtest
//! ```
//!
//! `DB::write(batch, true)` and `DB::flush` promise data on disk (4.0.2). They call `Write::flush` of the log, which a file answers
//! without a sync: a power cut takes acknowledged batches. An `Env` whose `flush` syncs keeps the promise.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use leyden_crashtest::{File, Fs, OpenOptions};
use rusty_leveldb::env::{Env, FileLock, Logger, RandomAccess};
use rusty_leveldb::{DB, Options, Result};

/// What `flush` of a written file does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// Nothing, as in rusty-leveldb's own `Env`.
    Nothing,
    /// It syncs the file, which is synced when it is closed as well; a folder is synced after a new name.
    Syncs,
}

/// A folder of a crash test as the engine's file system.
#[derive(Debug)]
pub struct InFolder {
    fs: Fs,
    flush: Flush,
    now_us: Cell<u64>,
}

#[derive(Debug)]
struct Output {
    file: File,
    flush: Flush,
}

#[derive(Debug)]
struct Input(File);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.flush == Flush::Syncs { self.file.sync_all() } else { Ok(()) }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _ = self.flush(); // a file that cannot be synced has no promise
    }
}

impl RandomAccess for Input {
    fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<usize> {
        Ok(self.0.read_at(bytes, offset as u64)?)
    }
}

impl InFolder {
    /// A file that is written, which may be new.
    fn output(&self, options: OpenOptions, path: &Path) -> Result<Box<dyn Write>> {
        let file = options.create(true).open(&self.fs, path)?;
        self.sync_parent(path)?;
        Ok(Box::new(Output { file, flush: self.flush }))
    }

    fn sync_parent(&self, path: &Path) -> Result<()> {
        match (self.flush, path.parent()) {
            (Flush::Syncs, Some(folder)) => Ok(self.fs.sync_dir(folder)?),
            _ => Ok(()),
        }
    }
}

impl Env for InFolder {
    fn open_sequential_file(&self, path: &Path) -> Result<Box<dyn Read>> {
        Ok(Box::new(self.fs.open(path)?))
    }

    fn open_random_access_file(&self, path: &Path) -> Result<Box<dyn RandomAccess>> {
        Ok(Box::new(Input(self.fs.open(path)?)))
    }

    fn open_writable_file(&self, path: &Path) -> Result<Box<dyn Write>> {
        self.output(OpenOptions::new().write(true).truncate(true), path)
    }

    fn open_appendable_file(&self, path: &Path) -> Result<Box<dyn Write>> {
        self.output(OpenOptions::new().append(true), path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.fs.exists(path))
    }

    fn children(&self, path: &Path) -> Result<Vec<PathBuf>> {
        Ok(self.fs.read_dir(path)?.into_iter().map(PathBuf::from).collect())
    }

    fn size_of(&self, path: &Path) -> Result<usize> {
        Ok(self.fs.metadata(path)?.len() as usize)
    }

    fn delete(&self, path: &Path) -> Result<()> {
        Ok(self.fs.remove_file(path)?)
    }

    fn mkdir(&self, path: &Path) -> Result<()> {
        Ok(self.fs.create_dir_all(path)?)
    }

    fn rmdir(&self, path: &Path) -> Result<()> {
        Ok(self.fs.remove_dir(path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.rename(from, to)?;
        self.sync_parent(to)
    }

    /// A power cut takes the process, and its locks.
    fn lock(&self, path: &Path) -> Result<FileLock> {
        Ok(FileLock { id: path.to_string_lossy().into_owned() })
    }

    fn unlock(&self, _: FileLock) -> Result<()> {
        Ok(())
    }

    fn new_logger(&self, _: &Path) -> Result<Logger> {
        Ok(Logger::new(Box::new(io::sink())))
    }

    /// A clock that every run reads alike: a state can be repeated.
    fn micros(&self) -> u64 {
        self.now_us.replace(self.now_us.get() + 1)
    }

    fn sleep_for(&self, us: u32) {
        self.now_us.set(self.now_us.get() + u64::from(us));
    }
}

/// Opens the database in this folder, or makes it.
///
/// # Errors
/// If the folder is no database, or cannot be recovered.
pub fn open(fs: &Fs, folder: &str, flush: Flush) -> Result<DB> {
    let env = InFolder { fs: fs.clone(), flush, now_us: Cell::new(0) };
    // Tables are written and compacted within a short run.
    let options =
        Options { env: Rc::new(Box::new(env)), write_buffer_size: 8 << 10, ..Options::default() };
    DB::open(folder, options)
}

#[cfg(test)]
mod tests {
    use leyden_crashtest::{CrashTest, Persistence, Summary};
    use rusty_leveldb::WriteBatch;

    use super::*;

    fn key(number: usize, part: u32) -> String {
        format!("{number:06}.{part}")
    }

    fn value(number: usize) -> String {
        format!("{number} {}", "x".repeat(300))
    }

    /// Batches of two records; acknowledged when the synced write has returned.
    fn work(fs: &Fs, flush: Flush) -> Result<()> {
        let mut database = open(fs, "db", flush)?;
        for number in 1..=40 {
            let mut batch = WriteBatch::default();
            for part in 0..2 {
                batch.put(key(number, part).as_bytes(), value(number).as_bytes());
            }
            database.write(batch, true)?;
            fs.acknowledge(&number.to_string());
        }
        // As a program that is killed: the database is not closed.
        std::mem::forget(database);
        Ok(())
    }

    fn check(fs: &Fs, acks: &[String]) -> std::result::Result<(), String> {
        let mut database = open(fs, "db", Flush::Nothing).map_err(|it| format!("no open: {it}"))?;
        for number in 1..=acks.len() {
            for part in 0..2 {
                let found = database.get(key(number, part).as_bytes());
                if found.as_deref() != Some(value(number).as_bytes()) {
                    return Err(format!("lost {} of {}", key(number, part), acks.len()));
                }
            }
        }
        // The batch under way is there as a whole, or not at all.
        let mut has = |part: u32| database.get(key(acks.len() + 1, part).as_bytes()).is_some();
        if has(0) == has(1) { Ok(()) } else { Err(format!("a part of batch {}", acks.len() + 1)) }
    }

    fn run(flush: Flush, rules: Persistence) -> Summary {
        let setup = |fs: &Fs| drop(open(fs, "db", Flush::Syncs).expect("nothing fails"));
        let work = move |fs: &Fs| work(fs, flush).expect("nothing fails");
        let test = CrashTest::files(work, check).setup(setup).persistence(rules);
        test.states(1_000).run().expect("in memory")
    }

    #[test]
    fn its_synced_writes_are_lost() {
        let summary = run(Flush::Nothing, Persistence::Xfs);
        let findings = &summary.models[0].findings;
        assert!(findings.iter().any(|it| it.said.starts_with("lost 000001.0 of")), "{findings:?}");
    }

    #[test]
    fn with_syncs_they_survive_on_every_file_system() {
        for rules in Persistence::ALL {
            let summary = run(Flush::Syncs, rules);
            summary.assert_held();
            assert!(summary.models[0].states >= 100, "{rules:?}: {}", summary.models[0].states);
        }
    }
}
