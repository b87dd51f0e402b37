//! Names in folders, and the drives that folders of the top are.

use std::io;
use std::sync::Arc;

use nix::errno::Errno;

use super::{NAME_MOST, Node, Renaming, Tree};
use crate::files::atom::{Drive, Ino, Name};
use crate::files::step::{Effect, Kind, Step};

impl Tree {
    /// Makes the folders `1`, `2` and so on, each a drive of its own. Nothing else is ever made beside them.
    pub(crate) fn make_drives(&mut self, count: u32) -> io::Result<Vec<(Ino, Vec<Step>)>> {
        if self.next != Ino::ROOT.0 + 1 {
            return Err(Errno::EEXIST.into());
        }
        let make = |number: u32| self.create(Ino::ROOT, &number.to_string(), Kind::Folder);
        let made = (1..=count).map(make).collect::<io::Result<Vec<_>>>()?;
        for (drive, (folder, _)) in (0..).zip(&made) {
            self.nodes.get_mut(folder).expect("it was made").drive = drive;
        }
        self.drives = count;
        Ok(made)
    }

    pub(crate) const fn drives(&self) -> u32 {
        self.drives
    }

    fn drive_of(&self, ino: Ino) -> Drive {
        self.node(ino).drive
    }

    /// The top is fixed where it holds drives, as mount points are.
    pub(super) fn check_folder(&self, folder: Ino) -> io::Result<()> {
        let is_fixed = self.drives > 1 && folder == Ino::ROOT;
        if is_fixed { Err(Errno::EROFS.into()) } else { Ok(()) }
    }

    /// No name leads from one drive to another.
    fn check_drives(&self, one: Ino, other: Ino) -> io::Result<()> {
        let is_one = self.drive_of(one) == self.drive_of(other);
        if is_one { Ok(()) } else { Err(Errno::EXDEV.into()) }
    }

    fn name_change(&mut self, folder: Ino, name: &str, holds: Option<Ino>) -> Effect {
        let held = self.lookup(folder, name);
        for (ino, is_new) in [(held, false), (holds, true)] {
            if let Some(ino) = ino {
                let mut node = self.node(ino);
                node.links = if is_new { node.links + 1 } else { node.links.saturating_sub(1) };
                self.nodes.insert(ino, node);
            }
        }
        let name: Name = name.into();
        self.names.entry(folder).or_default().insert(name.clone(), holds);
        Effect::Name { folder, name, held, holds }
    }

    /// A new file or folder.
    pub(crate) fn create(
        &mut self,
        folder: Ino,
        name: &str,
        kind: Kind,
    ) -> io::Result<(Ino, Vec<Step>)> {
        check_name(name)?;
        if self.lookup(folder, name).is_some() {
            return Err(Errno::EEXIST.into());
        }
        self.check_folder(folder)?;
        let (ino, drive) = (Ino(self.next), self.drive_of(folder));
        self.next += 1;
        self.nodes.insert(ino, Node { kind, bytes: 0, is_cut: false, links: 0, drive });
        let step = vec![Effect::Born { ino, kind }, self.name_change(folder, name, Some(ino))];
        Ok((ino, vec![step]))
    }

    /// A new symbolic link.
    pub(crate) fn symlink(
        &mut self,
        folder: Ino,
        name: &str,
        target: &str,
    ) -> io::Result<(Ino, Vec<Step>)> {
        if target.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        let (link, mut steps) = self.create(folder, name, Kind::Symlink)?;
        let target: Arc<str> = target.into();
        self.targets.insert(link, Arc::clone(&target));
        steps[0].push(Effect::Target { link, target });
        Ok((link, steps))
    }

    /// A further name of a file.
    pub(crate) fn link(&mut self, file: Ino, folder: Ino, name: &str) -> io::Result<Vec<Step>> {
        check_name(name)?;
        if self.lookup(folder, name).is_some() {
            return Err(Errno::EEXIST.into());
        }
        if self.kind(file) == Kind::Folder {
            return Err(Errno::EPERM.into());
        }
        self.check_folder(folder)?;
        self.check_drives(file, folder)?;
        Ok(vec![vec![self.name_change(folder, name, Some(file))]])
    }

    /// Whether a call that expects this kind may take the name of `ino` away.
    fn check_removal(&self, ino: Ino, expected: Kind) -> io::Result<()> {
        match (expected, self.kind(ino)) {
            (Kind::File | Kind::Symlink, Kind::Folder) => Err(Errno::EISDIR.into()),
            (Kind::Folder, Kind::File | Kind::Symlink) => Err(Errno::ENOTDIR.into()),
            (Kind::Folder, Kind::Folder) if !self.entries(ino).is_empty() => {
                Err(Errno::ENOTEMPTY.into())
            }
            _ => Ok(()),
        }
    }

    /// Takes the name of a file, or of an empty folder, away.
    pub(crate) fn remove(&mut self, folder: Ino, name: &str, kind: Kind) -> io::Result<Vec<Step>> {
        let ino = self.lookup(folder, name).ok_or(Errno::ENOENT)?;
        self.check_folder(folder)?;
        self.check_removal(ino, kind)?;
        Ok(vec![vec![self.name_change(folder, name, None)]])
    }

    /// Changes a name, in one step.
    pub(crate) fn rename(
        &mut self,
        from: (Ino, &str),
        to: (Ino, &str),
        how: Renaming,
    ) -> io::Result<Vec<Step>> {
        check_name(to.1)?;
        let moved = self.lookup(from.0, from.1).ok_or(Errno::ENOENT)?;
        let replaced = self.lookup(to.0, to.1);
        self.check_drives(from.0, to.0)?;
        self.check_folder(from.0)?;
        self.check_folder(to.0)?;
        if how == Renaming::New && replaced.is_some() {
            return Err(Errno::EEXIST.into());
        }
        if self.is_below(to.0, moved) {
            return Err(Errno::EINVAL.into()); // a folder into itself
        }
        if how == Renaming::Exchange {
            let other = replaced.ok_or(Errno::ENOENT)?;
            if self.is_below(from.0, other) {
                return Err(Errno::EINVAL.into());
            }
            let there = self.name_change(to.0, to.1, Some(moved));
            return Ok(vec![vec![there, self.name_change(from.0, from.1, Some(other))]]);
        }
        if replaced == Some(moved) {
            return Ok(Vec::new()); // two names of one file: rename(2) does nothing
        }
        if replaced.is_some_and(|replaced| self.is_below(from.0, replaced)) {
            return Err(Errno::ENOTEMPTY.into()); // a folder that it lies in
        }
        if let Some(replaced) = replaced {
            self.check_removal(replaced, self.kind(moved))?;
        }
        let mut step =
            vec![self.name_change(from.0, from.1, None), self.name_change(to.0, to.1, Some(moved))];
        if replaced.is_some() && self.kind(moved) == Kind::File {
            step.push(Effect::Brings { file: moved });
        }
        Ok(vec![step])
    }

    /// Whether `folder` is `top`, or lies in it.
    fn is_below(&self, folder: Ino, top: Ino) -> bool {
        // Without recursion: folders may be nested deeper than a stack is.
        let mut folders = vec![top];
        while let Some(at) = folders.pop() {
            if at == folder {
                return true;
            }
            if self.kind(at) == Kind::Folder {
                let entries = self.entries(at);
                folders.extend(entries.into_values().filter(|ino| self.kind(*ino) == Kind::Folder));
            }
        }
        false
    }
}

pub(in crate::files) fn check_name(name: &str) -> io::Result<()> {
    if name.len() > NAME_MOST {
        return Err(Errno::ENAMETOOLONG.into());
    }
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(Errno::EINVAL.into());
    }
    Ok(())
}
