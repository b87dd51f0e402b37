//! Programs of this project that are not part of this one, and others that they need.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The folder of this program.
pub(super) fn own_folder() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.parent()?.to_owned())
}

/// The file called `name` that `variable` names, or that stands beside this program or in one of `folders`.
pub(super) fn file(name: &str, variable: &str, folders: &[&Path]) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let own = own_folder().map(|folder| folder.join(name));
    let others = folders.iter().map(|folder| folder.join(name));
    named.into_iter().chain(own).chain(others).find(|path| path.is_file())
}

/// The program called `name` in one of the folders of PATH.
pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(OsStr::new(&path)).map(|folder| folder.join(name));
    all.find(|path| path.is_file())
}
