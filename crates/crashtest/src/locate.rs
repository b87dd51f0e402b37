//! Whose bytes an atom holds: which file's, and where in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

/// An atom's place in the file system.
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
    let block_bytes = block_bytes(device);
    let place = |&atom: &u32| {
        found.remove(&atom).unwrap_or_else(|| {
            let block = u64::from(atom) * atom_bytes / block_bytes;
            let is_journal =
                fs == "ext4" && inode_of(device, block).as_deref() == Some(JOURNAL_INODE);
            let what = if is_journal { "journal" } else { "metadata" };
            Place { atom, name: format!("{fs} {what}"), offset_bytes: None }
        })
    };
    atoms.iter().map(place).collect()
}

/// The same of an image that is not mounted, by debugfs.
pub(crate) fn in_image(atoms: &[u32], atom_bytes: u64, fs: &str, image: &Path) -> Vec<Place> {
    let block_bytes = block_bytes(image);
    let mut found = BTreeMap::new();
    for &atom in atoms {
        let begin = u64::from(atom) * atom_bytes;
        let block = begin / block_bytes;
        let Some(inode) = inode_of(image, block) else { continue };
        let Some(name) = name_of(image, &inode) else { continue };
        let listed = debugfs(image, &format!("dump_extents <{inode}>")).unwrap_or_default();
        let extent = listed
            .lines()
            .filter_map(leaf)
            .find(|extent| (extent.physical..extent.physical + extent.length).contains(&block));
        let offset_bytes = extent.map(|extent| {
            (extent.logical + block - extent.physical) * block_bytes + begin % block_bytes
        });
        found.insert(atom, Place { atom, name, offset_bytes });
    }
    with_metadata(found, atoms, atom_bytes, fs, image)
}

/// Bytes of a block of an ext file system: 1024 << s_log_block_size, which is the 7th word of the superblock at byte
/// 1024 (Documentation/filesystems/ext4/super.rst).
fn block_bytes(device: &Path) -> u64 {
    use std::os::unix::fs::FileExt;
    let mut log = [0; 4];
    let read = fs::File::open(device).and_then(|file| file.read_exact_at(&mut log, 1_024 + 24));
    let log = u32::from_le_bytes(log);
    if read.is_ok() && log <= 6 { 1_024 << log } else { 4_096 }
}

/// The answer of debugfs to a command.
fn debugfs(device: &Path, command: &str) -> Option<String> {
    let output = Command::new("debugfs").args(["-R", command]).arg(device).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The path of an inode, if it is a file's.
fn name_of(device: &Path, inode: &str) -> Option<String> {
    let text = debugfs(device, &format!("ncheck {inode}"))?;
    let (number, name) = text.lines().last()?.split_once('\t')?;
    (number.trim() == inode).then(|| name.trim().trim_start_matches('/').to_owned())
}

/// A line of `dump_extents`: ` 0/ 0   1/  1     0 -     7    9217 -    9224      8`; none of the tree's inner nodes.
fn leaf(line: &str) -> Option<Extent> {
    let numbers: Option<Vec<u64>> = line
        .split(['/', '-', ' '])
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().ok())
        .collect();
    match numbers?[..] {
        [level, depth, _, _, logical, _, physical, _, length] if level == depth => {
            Some(Extent { logical, physical, length })
        }
        _ => None,
    }
}

/// The inode that a block of an ext4 file system belongs to.
fn inode_of(device: &Path, block: u64) -> Option<String> {
    let text = debugfs(device, &format!("icheck {block}"))?;
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
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
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
        let found = leaf(" 0/ 0   1/  2     3 -     7    9217 -    9221      5 ");
        assert_eq!(found, Some(Extent { logical: 3, physical: 9_217, length: 5 }));
        assert_eq!(leaf(" 0/ 1   1/  1     0 -    40    9300               41 "), None);
        assert_eq!(leaf("Level Entries       Logical          Physical Length Flags"), None);
    }
}
