//! Whose bytes an atom holds: which file's, and where in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

/// What lies in an atom.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Place {
    /// The atom.
    pub atom: u32,
    /// The file's path below the mount, or what of the file system it is.
    pub name: String,
    /// The first byte of it in that file; `None` if it is no file.
    pub offset_bytes: Option<u64>,
}

/// The ext4 journal's inode.
const JOURNAL_INODE: &str = "8";

/// The files below `folder` that have bytes in these atoms, by FIEMAP (filefrag).
pub(crate) fn files(folder: &Path, atoms: &[u32], atom_bytes: u64) -> BTreeMap<u32, Place> {
    let mut found = BTreeMap::new();
    for file in files_below(folder) {
        let listed = Command::new("filefrag").args(["-e", "-b1"]).arg(&file).output();
        let Ok(listed) = listed else { return found };
        let name = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
        for extent in String::from_utf8_lossy(&listed.stdout).lines().filter_map(extent) {
            for &atom in atoms {
                let begin = u64::from(atom) * atom_bytes;
                if (extent.physical..extent.physical + extent.length).contains(&begin) {
                    let offset_bytes = Some(extent.logical + begin - extent.physical);
                    found.insert(atom, Place { atom, name: name.clone(), offset_bytes });
                }
            }
        }
    }
    found
}

/// The rest of these atoms: the journal's, or other metadata's.
pub(crate) fn with_metadata(
    mut found: BTreeMap<u32, Place>,
    atoms: &[u32],
    atom_bytes: u64,
    fs: &str,
    device: &Path,
) -> Vec<Place> {
    let place = |&atom: &u32| {
        found.remove(&atom).unwrap_or_else(|| {
            let block = u64::from(atom) * atom_bytes / 4_096;
            let is_journal =
                fs == "ext4" && inode_of(device, block).as_deref() == Some(JOURNAL_INODE);
            let what = if is_journal { "journal" } else { "metadata" };
            Place { atom, name: format!("{fs} {what}"), offset_bytes: None }
        })
    };
    atoms.iter().map(place).collect()
}

/// The inode that a block of an ext4 file system belongs to.
fn inode_of(device: &Path, block: u64) -> Option<String> {
    let output = Command::new("debugfs")
        .args(["-R", &format!("icheck {block}")])
        .arg(device)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (number, inode) = text.lines().last()?.split_once('\t')?;
    (number.trim() == block.to_string()).then(|| inode.trim().to_owned())
}

#[derive(Debug, PartialEq, Eq)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
}

/// A line of `filefrag -e`: `  0:        0..    4095:    36864..   40959:   4096: last,eof`.
fn extent(line: &str) -> Option<Extent> {
    let mut fields = line.split(':');
    fields.next()?.trim().parse::<u32>().ok()?;
    let mut first = || fields.next()?.split("..").next()?.trim().parse().ok();
    Some(Extent { logical: first()?, physical: first()?, length: first()? })
}

/// In the order of their names.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_read() {
        let line = "   1:     8192..   12287:   36864..   40959:   4096:    24576: last,eof";
        assert_eq!(extent(line), Some(Extent { logical: 8192, physical: 36_864, length: 4_096 }));
        assert_eq!(extent(" ext:     logical_offset:        physical_offset: length:"), None);
    }
}
