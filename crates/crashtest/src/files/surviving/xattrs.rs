//! Extended attributes that a power cut leaves.

use std::sync::Arc;

use super::{Cell, Choice, FileHistory, Ino, Name, SurvivingFiles, mixed};
use crate::files::history::Value;

impl Choice {
    /// The value of an extended attribute, if it is there.
    pub(crate) fn xattr<'a>(
        &self,
        history: &'a FileHistory,
        of: Ino,
        name: &str,
    ) -> Option<&'a Value> {
        self.xattr_of(history, of, history.xattrs(of)?.get(name)?)
    }

    fn xattr_of<'a>(
        &self,
        history: &FileHistory,
        of: Ino,
        cell: &'a Cell<Option<Value>>,
    ) -> Option<&'a Value> {
        let has_journal = history.rules().has_journal();
        let last = if has_journal {
            self.journal(history, of).max(self.logged(history, of))
        } else {
            self.of(cell.atom)
        };
        cell.at(last)?.as_ref()
    }

    fn xattrs<'a>(
        &self,
        history: &'a FileHistory,
        of: Ino,
    ) -> impl Iterator<Item = (&'a Name, &'a Value)> {
        let all = history.xattrs(of).into_iter().flatten();
        all.filter_map(move |(name, cell)| Some((name, self.xattr_of(history, of, cell)?)))
    }

    /// A number that is the same where the extended attributes are.
    pub(super) fn key_of_xattrs(&self, history: &FileHistory, of: Ino) -> u128 {
        let keys = self.xattrs(history, of).map(|(name, value)| {
            mixed(mixed(crate::store::key_of(name.as_bytes()), of.0.into()) ^ value.key, 1)
        });
        keys.fold(0, u128::wrapping_add)
    }
}

impl SurvivingFiles {
    pub(crate) fn xattr(&self, of: Ino, name: &str) -> Option<Arc<[u8]>> {
        Some(Arc::clone(&self.is.xattr(&self.history, of, name)?.bytes))
    }

    /// The names of all extended attributes that are there.
    pub(crate) fn xattrs(&self, of: Ino) -> impl Iterator<Item = &Name> {
        self.is.xattrs(&self.history, of).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests;
