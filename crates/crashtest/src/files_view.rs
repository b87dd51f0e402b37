//! The files of a state, and where they differ from those of another.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::locate::files_below;
use crate::store::key_of;

/// Bytes that are compared at once: no drive tears less.
const BLOCK_BYTES: usize = 512;

/// A file that is another in two states.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileDifference {
    /// Its path below the mount.
    pub name: String,
    /// Its size in the state; `None` if it is not there.
    pub size_bytes: Option<u64>,
    /// Its size in the other one.
    pub other_size_bytes: Option<u64>,
    /// Ranges of bytes that differ: where they begin and end, in blocks of 512 bytes.
    pub ranges: Vec<(u64, u64)>,
}

/// Files by name: sizes, and what tells their blocks apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct FilesView(BTreeMap<String, (u64, Vec<u128>)>);

impl FilesView {
    /// The files below `folder`; what cannot be read is empty.
    pub(crate) fn of(folder: &Path) -> Self {
        let files = files_below(folder).into_iter().map(|path| {
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            (name, blocks(&path).unwrap_or_default())
        });
        Self(files.collect())
    }

    /// Files that differ in `other`, by name.
    pub(crate) fn differences(&self, other: &Self) -> Vec<FileDifference> {
        let mut names: Vec<&String> = self.0.keys().chain(other.0.keys()).collect();
        names.sort();
        names.dedup();
        let (here, there) = (|name: &str| self.0.get(name), |name: &str| other.0.get(name));
        let differing = names.into_iter().filter(|&name| here(name) != there(name));
        let difference = |name: &String| FileDifference {
            name: name.clone(),
            size_bytes: here(name).map(|it| it.0),
            other_size_bytes: there(name).map(|it| it.0),
            ranges: match (here(name), there(name)) {
                (Some(one), Some(other)) => ranges(one, other),
                _ => Vec::new(),
            },
        };
        differing.map(difference).collect()
    }
}

/// Ranges of bytes in which two files differ, up to the end of the longer.
fn ranges(one: &(u64, Vec<u128>), other: &(u64, Vec<u128>)) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for at in 0..one.1.len().max(other.1.len()) {
        if one.1.get(at) == other.1.get(at) {
            continue;
        }
        let begin = (at * BLOCK_BYTES) as u64;
        let end = (begin + BLOCK_BYTES as u64).min(one.0.max(other.0));
        match ranges.last_mut() {
            Some(last) if last.1 == begin => last.1 = end,
            _ => ranges.push((begin, end)),
        }
    }
    ranges
}

fn blocks(path: &Path) -> std::io::Result<(u64, Vec<u128>)> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64, bytes.chunks(BLOCK_BYTES).map(key_of).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_compared_by_size_and_place() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |folder: &tempfile::TempDir, name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        };
        write(&one, "same", b"as it is");
        write(&two, "same", b"as it is");
        write(&one, "gone", b"journal");
        let mut data = vec![7; 3_000];
        write(&one, "data", &data);
        (data[600], data[1_100]) = (8, 8);
        data.truncate(2_900);
        write(&two, "data", &data);
        let of = |folder: &tempfile::TempDir| FilesView::of(folder.path());
        let found = of(&one).differences(&of(&two));
        let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["data", "gone"]);
        assert_eq!((found[0].size_bytes, found[0].other_size_bytes), (Some(3_000), Some(2_900)));
        assert_eq!(found[0].ranges, [(512, 1_536), (2_560, 3_000)]);
        assert_eq!((found[1].size_bytes, found[1].other_size_bytes), (Some(7), None));
        assert!(of(&one).differences(&of(&one)).is_empty());
    }
}
