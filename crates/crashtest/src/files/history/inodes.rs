//! Everything that was ever made: kinds, drives, names, and every version of each extended attribute.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Atom, ByIno, Cell, Drive, Ino, Kind, Name, Version, key_of};

/// The extended attributes that a file or folder has ever had.
pub(crate) type Xattrs = BTreeMap<Name, Cell<Option<Value>>>;

/// The value of an extended attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Value {
    pub(crate) bytes: Arc<[u8]>,
    /// Differs where the bytes differ.
    pub(crate) key: u128,
}

/// Files, folders and symbolic links.
#[derive(Clone, Debug)]
pub(super) struct Inodes {
    pub(super) kinds: ByIno<Kind>,
    /// Drives of files and folders, by number; empty if there is one drive.
    pub(super) drives: Vec<Drive>,
    /// Where symbolic links lead.
    pub(super) targets: BTreeMap<Ino, Arc<str>>,
    /// Every name that each has ever had.
    pub(super) places: BTreeMap<Ino, BTreeSet<(Ino, Name)>>,
    pub(super) xattrs: BTreeMap<Ino, Xattrs>,
}

impl Inodes {
    /// The top alone.
    pub(super) fn new() -> Self {
        let mut kinds = ByIno::new();
        kinds.get_or_insert_with(Ino::ROOT, || Kind::Folder);
        Self {
            kinds,
            drives: Vec::new(),
            targets: BTreeMap::new(),
            places: BTreeMap::new(),
            xattrs: BTreeMap::new(),
        }
    }

    /// A new version of an extended attribute, and its part if each is written by itself; `parts` are all parts then.
    pub(super) fn put_xattr(
        &mut self,
        of: Ino,
        name: Name,
        event: u32,
        value: Option<Arc<[u8]>>,
        parts: Option<&mut Vec<Atom>>,
    ) -> Option<u32> {
        let next = parts.as_ref().map(|parts| parts.len() as u32);
        let all = self.xattrs.entry(of).or_default();
        let cell =
            all.entry(name.clone()).or_insert_with(|| Cell { atom: next, versions: Vec::new() });
        if let Some(parts) = parts
            && cell.atom == next
        {
            parts.push(Atom::Xattr(of, name));
        }
        let value = value.map(|bytes| Value { key: key_of(&bytes), bytes });
        cell.versions.push(Version { event, needs: None, value });
        cell.atom
    }
}
