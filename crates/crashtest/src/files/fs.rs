//! The calls of `std::fs` on a folder in memory.

use std::io;
use std::path::Path;

use nix::errno::Errno;

use super::file::{File, OpenOptions};
use super::folder::{Call, Fs, Metadata};
use super::history::Syncs;
use super::step::Kind;
use super::tree::Renaming;

impl Fs {
    /// Promises something: it must be there after every power cut from now on. A line of `acks` in the check.
    pub fn acknowledge(&self, what: &str) {
        self.lock().acknowledge(what);
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().read(true).open(self, path)
    }

    /// Opens a file for writing; one that exists is cut to nothing.
    ///
    /// # Errors
    /// If its folder does not exist.
    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(self, path)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let file = self.open(path)?;
        let bytes = file.metadata().len() as usize;
        file.read_at_most(0, bytes)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// If there is none, or it is no UTF-8.
    pub fn read_to_string(&self, path: impl AsRef<Path>) -> io::Result<String> {
        String::from_utf8(self.read(path)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Makes a file with these bytes, or replaces those of one. Nothing is synced, as in `std::fs`.
    ///
    /// # Errors
    /// If its folder does not exist.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.create(path)?.write_all_at(bytes.as_ref(), 0)
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// If it exists, or the one above it does not.
    pub fn create_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let mut inner = self.lock();
        inner.begin(Call::Create)?;
        let (folder, name) = inner.place(path)?;
        let (_, steps) = inner.tree.create(folder, name, Kind::Folder)?;
        inner.note(|| format!("mkdir {}", path.display()), steps);
        Ok(())
    }

    /// Makes a folder, and those above it.
    ///
    /// # Errors
    /// If a file has the name of one of them.
    pub fn create_dir_all(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let above: Vec<&Path> =
            path.ancestors().filter(|path| path.file_name().is_some()).collect();
        for path in above.into_iter().rev() {
            match self.create_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if !self.metadata(path)?.is_dir() {
                        return Err(error);
                    }
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let inner = self.lock();
        let folder = inner.resolve(path.as_ref())?;
        if inner.tree.kind(folder) != Kind::Folder {
            return Err(Errno::ENOTDIR.into());
        }
        Ok(inner.tree.entries(folder).into_keys().map(|name| name.to_string()).collect())
    }

    /// Metadata of a file or folder.
    ///
    /// # Errors
    /// If there is none.
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        let inner = self.lock();
        let ino = inner.resolve(path.as_ref())?;
        Ok(inner.metadata(ino))
    }

    /// Whether there is a file or folder of this name.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.metadata(path).is_ok()
    }

    /// Renames a file or folder; a file, or an empty folder, of the new name is replaced.
    ///
    /// # Errors
    /// As rename(2).
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        self.renamed(from.as_ref(), to.as_ref(), Renaming::Replace)
    }

    /// Renames if the new name is free (`RENAME_NOREPLACE`).
    ///
    /// # Errors
    /// As renameat2(2).
    pub fn rename_new(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        self.renamed(from.as_ref(), to.as_ref(), Renaming::New)
    }

    /// Exchanges two files or folders (`RENAME_EXCHANGE`).
    ///
    /// # Errors
    /// As renameat2(2).
    pub fn exchange(&self, one: impl AsRef<Path>, other: impl AsRef<Path>) -> io::Result<()> {
        self.renamed(one.as_ref(), other.as_ref(), Renaming::Exchange)
    }

    fn renamed(&self, from: &Path, to: &Path, how: Renaming) -> io::Result<()> {
        let mut inner = self.lock();
        inner.begin(Call::Rename)?;
        let (source, target) = (inner.place(from)?, inner.place(to)?);
        let steps = inner.tree.rename(source, target, how)?;
        let verb = if how == Renaming::Exchange { "exchange of" } else { "rename of" };
        inner.note(|| format!("{verb} {} and {}", from.display(), to.display()), steps);
        Ok(())
    }

    /// A further name of a file.
    ///
    /// # Errors
    /// As link(2).
    pub fn hard_link(&self, file: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        let (file, link) = (file.as_ref(), link.as_ref());
        let mut inner = self.lock();
        inner.begin(Call::Create)?;
        let ino = inner.resolve(file)?;
        let (folder, name) = inner.place(link)?;
        let steps = inner.tree.link(ino, folder, name)?;
        inner.note(|| format!("link of {} as {}", file.display(), link.display()), steps);
        Ok(())
    }

    /// Removes a name of a file. Handles stay.
    ///
    /// # Errors
    /// As unlink(2).
    pub fn remove_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.removed(path.as_ref(), Kind::File)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// As rmdir(2).
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.removed(path.as_ref(), Kind::Folder)
    }

    fn removed(&self, path: &Path, kind: Kind) -> io::Result<()> {
        let mut inner = self.lock();
        inner.begin(Call::Remove)?;
        let (folder, name) = inner.place(path)?;
        let steps = inner.tree.remove(folder, name, kind)?;
        inner.note(|| format!("removal of {}", path.display()), steps);
        Ok(())
    }

    /// Sets an extended attribute of a file or folder (`setxattr`). Its name begins with `user.`, `trusted.` or `security.`.
    ///
    /// # Errors
    /// As setxattr(2).
    pub fn set_xattr(
        &self,
        path: impl AsRef<Path>,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> io::Result<()> {
        let (path, value) = (path.as_ref(), value.as_ref());
        let mut inner = self.lock();
        inner.begin(Call::Xattr)?;
        let of = inner.resolve(path)?;
        let steps = inner.tree.set_xattr(of, name, value)?;
        inner.note(
            || format!("setxattr of {name}, {} B, on {}", value.len(), path.display()),
            steps,
        );
        Ok(())
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// As removexattr(2): `ENODATA` if there is none.
    pub fn remove_xattr(&self, path: impl AsRef<Path>, name: &str) -> io::Result<()> {
        let path = path.as_ref();
        let mut inner = self.lock();
        inner.begin(Call::Xattr)?;
        let of = inner.resolve(path)?;
        let steps = inner.tree.remove_xattr(of, name)?;
        inner.note(|| format!("removexattr of {name} on {}", path.display()), steps);
        Ok(())
    }

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// As getxattr(2): `ENODATA` if there is none.
    pub fn xattr(&self, path: impl AsRef<Path>, name: &str) -> io::Result<Vec<u8>> {
        let inner = self.lock();
        let of = inner.resolve(path.as_ref())?;
        Ok(inner.tree.xattr(of, name)?.to_vec())
    }

    /// The names of the extended attributes of a file or folder, sorted.
    ///
    /// # Errors
    /// If there is no such file or folder.
    pub fn list_xattrs(&self, path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let inner = self.lock();
        let of = inner.resolve(path.as_ref())?;
        Ok(inner.tree.xattrs(of).iter().map(ToString::to_string).collect())
    }

    /// `fsync` of a folder: `File::open(folder)?.sync_all()` in `std`.
    ///
    /// # Errors
    /// If there is none.
    pub fn sync_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let mut inner = self.lock();
        let folder = inner.resolve(path)?;
        inner.sync(Syncs::Whole(folder), &path.display().to_string())
    }

    /// `sync`: everything is durable.
    ///
    /// # Errors
    /// If that call is to fail.
    pub fn sync(&self) -> io::Result<()> {
        self.lock().sync(Syncs::Everything, "")
    }
}
