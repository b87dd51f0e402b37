//! Drives of a history: each is a folder of the top, with a journal of its own, and all share one order of events.

use super::{Atom, Drive, Event, FileHistory, Ino};
use crate::files::step::{Effect, Step};

impl FileHistory {
    /// Each of these folders of the top is a drive from now on. Nothing has happened yet.
    pub(crate) fn set_drives(&mut self, folders: &[Ino]) {
        assert!(self.events.is_empty(), "drives come first");
        self.atoms = (0..folders.len() as Drive).map(Atom::Journal).collect();
        self.growth.last_entry = vec![None; folders.len()];
        // The top itself never changes again; it counts to the first.
        self.inodes.drives = vec![0, 0];
        for (drive, folder) in (0..).zip(folders) {
            assert_eq!(folder.0 as usize, self.inodes.drives.len(), "folders come in order");
            self.inodes.drives.push(drive);
        }
    }

    /// How many drives there are.
    pub fn drives(&self) -> u32 {
        self.growth.last_entry.len() as u32
    }

    /// The drive of a file or folder.
    pub(crate) fn drive_of(&self, ino: Ino) -> Drive {
        self.inodes.drives.get(ino.0 as usize).copied().unwrap_or_default()
    }

    /// The drive of a part.
    pub(crate) fn drive_of_atom(&self, atom: u32) -> Drive {
        match self.atoms[atom as usize] {
            Atom::Journal(drive) => drive,
            Atom::Name(ino, _)
            | Atom::Length(ino)
            | Atom::Page(ino, _)
            | Atom::Piece(ino, ..)
            | Atom::Found(ino)
            | Atom::Log(ino)
            | Atom::Xattr(ino, _) => self.drive_of(ino),
        }
    }

    /// The last entry of a drive's journal before an event.
    pub(crate) fn last_entry(&self, drive: Drive, before: u32) -> Option<u32> {
        let is_entry = |event: &u32| {
            let step = &self.events[*event as usize];
            matches!(step, Event::Step { is_entry: true, drive: of, .. } if *of == drive)
        };
        (0..before).rev().find(is_entry)
    }

    /// The drive of a step. New files are on the drive of their folder; they have the next number.
    pub(super) fn place(&mut self, step: &Step) -> Drive {
        if self.drives() == 1 {
            return 0;
        }
        let mut on = 0;
        for effect in step {
            let ino = match effect {
                Effect::Name { folder, .. } => *folder,
                Effect::Xattr { of, .. } => *of,
                Effect::Page { file, .. }
                | Effect::Freed { file, .. }
                | Effect::Grown { file, .. }
                | Effect::Set { file, .. }
                | Effect::Brings { file } => *file,
                Effect::Born { .. } | Effect::Target { .. } => continue,
            };
            on = self.drive_of(ino);
        }
        for effect in step {
            if let Effect::Born { ino, .. } = effect
                && ino.0 as usize == self.inodes.drives.len()
            {
                self.inodes.drives.push(on);
            }
        }
        on
    }
}

#[cfg(test)]
mod tests;
