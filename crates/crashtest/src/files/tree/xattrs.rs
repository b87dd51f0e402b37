//! Extended attributes as calls find and change them (xattr(7)).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use nix::errno::Errno;

use super::{NAME_MOST, Tree};
use crate::files::atom::{Ino, Name};
use crate::files::step::{Effect, Step};

/// The longest value, and the longest list of names, as Linux has them (limits.h, `XATTR_SIZE_MAX` and `XATTR_LIST_MAX`).
const VALUE_MOST: usize = 65_536;
const LIST_MOST: usize = 65_536;
/// Namespaces that are kept. ACLs, in `system.`, are not: nothing here would heed them.
const NAMESPACES: [&str; 3] = ["user.", "trusted.", "security."];

/// Extended attributes by name: values, or none where they were removed.
pub(super) type Xattrs = BTreeMap<Name, Option<Arc<[u8]>>>;

impl Tree {
    /// The value of an extended attribute.
    pub(crate) fn xattr(&self, of: Ino, name: &str) -> io::Result<Arc<[u8]>> {
        check_xattr(name)?;
        let value = match self.xattrs.get(&of).and_then(|own| own.get(name)) {
            Some(own) => own.clone(),
            None => self.base.as_ref().and_then(|left| left.xattr(of, name)),
        };
        value.ok_or_else(|| Errno::ENODATA.into())
    }

    /// The names of all extended attributes.
    pub(crate) fn xattrs(&self, of: Ino) -> BTreeSet<Name> {
        let below = self.base.iter().flat_map(|left| left.xattrs(of).cloned());
        let mut names: BTreeSet<Name> = below.collect();
        for (name, value) in self.xattrs.get(&of).into_iter().flatten() {
            match value {
                Some(_) => names.insert(name.clone()),
                None => names.remove(name),
            };
        }
        names
    }

    /// Sets an extended attribute.
    pub(crate) fn set_xattr(&mut self, of: Ino, name: &str, value: &[u8]) -> io::Result<Vec<Step>> {
        check_xattr(name)?;
        if value.len() > VALUE_MOST {
            return Err(Errno::E2BIG.into());
        }
        let mut names = self.xattrs(of);
        names.insert(name.into());
        if names.iter().map(|name| name.len() + 1).sum::<usize>() > LIST_MOST {
            return Err(Errno::ENOSPC.into());
        }
        self.put_xattr(of, name, Some(value.into()))
    }

    /// Removes an extended attribute.
    pub(crate) fn remove_xattr(&mut self, of: Ino, name: &str) -> io::Result<Vec<Step>> {
        self.xattr(of, name)?;
        self.put_xattr(of, name, None)
    }

    fn put_xattr(
        &mut self,
        of: Ino,
        name: &str,
        value: Option<Arc<[u8]>>,
    ) -> io::Result<Vec<Step>> {
        self.check_folder(of)?;
        let name: Name = name.into();
        self.xattrs.entry(of).or_default().insert(name.clone(), value.clone());
        Ok(vec![vec![Effect::Xattr { of, name, value }]])
    }
}

fn check_xattr(name: &str) -> io::Result<()> {
    let mut spaces = NAMESPACES.into_iter();
    let rest = spaces.find_map(|space| name.strip_prefix(space)).ok_or(Errno::EOPNOTSUPP)?;
    if rest.is_empty() || rest.contains('\0') {
        return Err(Errno::EINVAL.into());
    }
    if name.len() > NAME_MOST {
        return Err(Errno::ERANGE.into());
    }
    Ok(())
}
