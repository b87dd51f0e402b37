//! A folder in memory as the kernel sees it, by FUSE: where software is recorded, and where checks find states.
//!
//! Nothing is cached that could be of another state: what the kernel calls a node has the number of the state in its
//! upper half, and names in the top folder are asked for each time.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{BackgroundSession, Config, FileAttr, FileType, INodeNo, MountOption, SessionACL};
use leyden_device::{FaultKind, FaultReport, FaultRule, FaultRules, FaultTarget};
use nix::errno::Errno;

use super::atom::{Ino, Name};
use super::history::Syncs;
use super::operation::{Entry, Operation, Owner};
use super::recording::Recorder;
use super::step::{Kind, PAGE_BYTES};
use super::surviving::SurvivingFiles;
use super::tree::Tree;

/// Validity of the kernel's cache for a folder that shows one state only.
const FOREVER: Duration = Duration::from_hours(1);
/// Bytes of pages that are written to a folder at most, while it is recorded or shown: they are held in memory.
const HELD_MOST: u64 = 2 << 30;
/// The top folder.
const ROOT: INodeNo = INodeNo(1);

/// A folder that is mounted; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Served(Arc<Mutex<Shown>>);

/// The state that the folder shows.
#[derive(Debug)]
pub(crate) struct Shown {
    tree: Tree,
    /// How many states were shown before.
    state: u32,
    owners: Arc<BTreeMap<Ino, Owner>>,
    /// Nodes made or changed since the state is shown.
    changed: BTreeMap<Ino, Changed>,
    recorder: Option<Recorder>,
    /// Calls that fail.
    faults: FaultRules,
    /// The recording could not be written.
    failed: Option<io::Error>,
    listings: Listings,
    /// Bytes of pages that were written since the state is shown.
    held_bytes: u64,
}

/// Folders that are being read, as they were when that began.
#[derive(Debug, Default)]
struct Listings {
    next: u64,
    all: BTreeMap<u64, Vec<(Name, Ino)>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Changed {
    owner: Option<Owner>,
    modified: Option<SystemTime>,
    /// Or whose it is, its name or its time of change was changed.
    altered: Option<SystemTime>,
}

impl Served {
    /// An empty folder, recorded.
    pub(crate) fn recorded(recorder: Recorder) -> Self {
        Self::new(Some(recorder), BTreeMap::new())
    }

    /// A folder for states, whose files belong to `owners`.
    pub(crate) fn of_states(owners: BTreeMap<Ino, Owner>) -> Self {
        Self::new(None, owners)
    }

    fn new(recorder: Option<Recorder>, owners: BTreeMap<Ino, Owner>) -> Self {
        Self(Arc::new(Mutex::new(Shown {
            tree: Tree::new(),
            state: 0,
            owners: Arc::new(owners),
            changed: BTreeMap::new(),
            recorder,
            faults: FaultRules::default(),
            failed: None,
            listings: Listings::default(),
            held_bytes: 0,
        })))
    }

    /// Makes its top hold so many drives, if there is more than one.
    pub(crate) fn make_drives(&self, count: u32) -> io::Result<()> {
        let mut shown = self.lock();
        if count > 1 {
            shown.tree.make_drives(count)?;
            shown.note(Entry::Drives(count), &[]);
        }
        Ok(())
    }

    /// Mounts it, until the session is dropped.
    pub(crate) fn mount(&self, folder: &Path) -> io::Result<BackgroundSession> {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("leyden".to_owned()),
            MountOption::Subtype("leyden".to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
        ];
        // Software under test may change its user, as database servers do.
        config.acl = SessionACL::All;
        fuser::spawn_mount(self.clone(), folder, &config)
    }

    /// Shows what a power cut has left; what was done to the last state is forgotten.
    pub(crate) fn show(&self, left: SurvivingFiles) {
        let mut shown = self.lock();
        shown.tree = Tree::over(left);
        shown.state += 1;
        shown.changed.clear();
        shown.listings.all.clear();
        shown.held_bytes = 0;
    }

    /// Notes something that is no call on the files.
    pub(crate) fn note(&self, entry: Entry) {
        self.lock().note(entry, &[]);
    }

    /// From now on calls fail by these rules.
    pub(crate) fn set_faults(&self, rules: &[FaultRule]) {
        let mut shown = self.lock();
        let now_ns = shown.now_ns();
        for rule in rules {
            let _ = shown.faults.add(*rule, now_ns); // the command line has fewer
        }
    }

    /// No call fails any more; what came of the rules.
    pub(crate) fn take_faults(&self) -> Vec<FaultReport> {
        let mut shown = self.lock();
        let now_ns = shown.now_ns();
        std::mem::take(&mut shown.faults).report(now_ns)
    }

    /// Ends the recording: nothing that comes later is in it.
    pub(crate) fn take_recorder(&self) -> io::Result<Option<Recorder>> {
        let mut shown = self.lock();
        match shown.failed.take() {
            Some(error) => Err(error),
            None => Ok(shown.recorder.take()),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    /// The number of a node of the state that is shown; those of earlier ones are stale.
    pub(super) fn ino(&self, node: INodeNo) -> io::Result<Ino> {
        if node == ROOT {
            return Ok(Ino::ROOT);
        }
        let is_shown = (node.0 >> 32) as u32 == self.state;
        if is_shown { self.tree.there(Ino(node.0 as u32)) } else { Err(Errno::ESTALE.into()) }
    }

    fn node(&self, ino: Ino) -> INodeNo {
        if ino == Ino::ROOT {
            return ROOT;
        }
        INodeNo((u64::from(self.state) << 32) | u64::from(ino.0))
    }

    /// Pages that there are, and those of them that are free.
    pub(super) const fn room(&self) -> (u64, u64) {
        let free = (HELD_MOST - self.held_bytes) / PAGE_BYTES;
        (HELD_MOST / PAGE_BYTES, free)
    }

    pub(super) const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// How long the kernel may keep the attributes of a node, and what it has heard of a name in it.
    pub(super) fn kept(node: INodeNo) -> Duration {
        if node == ROOT { Duration::ZERO } else { FOREVER }
    }

    /// Does an operation and records it.
    pub(super) fn operate(&mut self, operation: Operation, data: &[u8]) -> io::Result<Option<Ino>> {
        // A page that is written in part is held as a whole, by the history of a recording once for each write.
        let pages = (data.len() as u64).div_ceil(PAGE_BYTES) + u64::from(!data.is_empty());
        if self.held_bytes + pages * PAGE_BYTES > HELD_MOST {
            return Err(Errno::ENOSPC.into());
        }
        let made = operation.apply(&mut self.tree, data)?;
        self.held_bytes += pages * PAGE_BYTES;
        let now = Some(crate::clock::now());
        for ino in operation.touched().into_iter().chain([made.ino]).flatten() {
            let changed = self.changed.entry(ino).or_default();
            changed.altered = now;
            if operation.modifies(ino) {
                changed.modified = now;
            }
        }
        // To cut an empty file changes what its close does.
        let is_cut = matches!(operation, Operation::SetLength { bytes: 0, .. });
        if !made.steps.is_empty() || is_cut {
            self.note(Entry::Did(operation), data);
        }
        Ok(made.ino)
    }

    fn now_ns(&self) -> u64 {
        self.recorder.as_ref().map_or(0, Recorder::now_ns)
    }

    /// Fails if a call of this kind is to fail.
    pub(super) fn begin(&mut self, kind: FaultKind) -> io::Result<()> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let now_ns = self.now_ns();
        match self.faults.fails(FaultTarget { kind, range: None }, now_ns) {
            Some(_) => Err(Errno::EIO.into()),
            None => Ok(()),
        }
    }

    pub(super) fn sync(&mut self, syncs: Syncs) -> io::Result<()> {
        let begun = self.begin(FaultKind::Flush);
        let entry = if begun.is_ok() { Entry::Synced(syncs) } else { Entry::SyncFailed(syncs) };
        self.note(entry, &[]);
        begun
    }

    /// `sync(2)` or `syncfs(2)`, which cannot fail, on something with this path below the top: its drive is synced, or all.
    pub(super) fn sync_all(&mut self, on: &Path) {
        let drive = on.iter().next().and_then(|name| self.tree.lookup(Ino::ROOT, name.to_str()?));
        let drive = drive.filter(|_| self.tree.drives() > 1);
        self.note(Entry::Synced(drive.map_or(Syncs::Everything, Syncs::Drive)), &[]);
    }

    fn note(&mut self, entry: Entry, data: &[u8]) {
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.note(entry, data)
        {
            // A call that cannot be recorded ends the recording.
            self.recorder = None;
            self.failed = Some(error);
        }
    }

    pub(super) fn owner(&self, ino: Ino) -> Owner {
        let changed = self.changed.get(&ino).and_then(|changed| changed.owner);
        let mode = if self.tree.kind(ino) == Kind::File { 0o644 } else { 0o755 };
        let first = Owner { mode, uid: 0, gid: 0 };
        changed.or_else(|| self.owners.get(&ino).copied()).unwrap_or(first)
    }

    pub(super) fn set_owner(&mut self, ino: Ino, owner: Owner) {
        let changed = self.changed.entry(ino).or_default();
        changed.owner = Some(owner);
        changed.altered = Some(crate::clock::now());
        self.note(Entry::Owned(ino, owner), &[]);
    }

    pub(super) fn set_modified(&mut self, ino: Ino, time: SystemTime) {
        let changed = self.changed.entry(ino).or_default();
        changed.modified = Some(time);
        changed.altered = Some(crate::clock::now());
    }

    pub(super) fn attributes(&self, ino: Ino) -> FileAttr {
        let kind = self.tree.kind(ino);
        let size = match kind {
            Kind::Symlink => self.tree.target(ino).map_or(0, |target| target.len() as u64),
            Kind::File | Kind::Folder => self.tree.length(ino),
        };
        let Owner { mode, uid, gid } = self.owner(ino);
        let changed = self.changed.get(&ino).copied().unwrap_or_default();
        let modified = changed.modified.unwrap_or(UNIX_EPOCH + FOREVER);
        let altered = changed.altered.unwrap_or(UNIX_EPOCH + FOREVER);
        let stored = if kind == Kind::File { self.tree.stored(ino) } else { 0 };
        FileAttr {
            ino: self.node(ino),
            size,
            blocks: stored * (PAGE_BYTES / 512),
            atime: modified,
            mtime: modified,
            ctime: altered,
            crtime: modified,
            kind: file_type(kind),
            perm: mode,
            // find(1) takes a folder with one link for one whose subfolders it must count.
            nlink: if kind == Kind::Folder { 1 } else { self.tree.links(ino) },
            uid,
            gid,
            rdev: 0,
            flags: 0,
            blksize: PAGE_BYTES as u32,
        }
    }

    /// Begins to read a folder; the number of the listing.
    pub(super) fn list(&mut self, folder: Ino) -> u64 {
        self.listings.next += 1;
        self.list_again(self.listings.next, folder);
        self.listings.next
    }

    /// The folder is read from its beginning (rewinddir(3)): what is in it now is listed.
    pub(super) fn list_again(&mut self, listing: u64, folder: Ino) {
        let entries = self.tree.entries(folder).into_iter().collect();
        self.listings.all.insert(listing, entries);
    }

    /// The entries of a listing from the one with number `first` on.
    pub(super) fn listed(
        &self,
        listing: u64,
        first: usize,
    ) -> impl Iterator<Item = (INodeNo, FileType, &Name)> {
        let entries = self.listings.all.get(&listing).into_iter().flatten().skip(first);
        entries.map(|(name, ino)| (self.node(*ino), file_type(self.tree.kind(*ino)), name))
    }

    pub(super) fn end_listing(&mut self, listing: u64) {
        self.listings.all.remove(&listing);
    }
}

const fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Folder => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
    }
}

/// A name as paths have it here.
pub(super) fn utf8(name: &OsStr) -> io::Result<&str> {
    name.to_str().ok_or_else(|| Errno::EILSEQ.into())
}
