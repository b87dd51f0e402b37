//! The repository as the rules see it: paths and texts.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Folders that are not part of the repository: `.gitignore` lists the same. A name without a slash
/// is left out wherever it is.
const SKIPPED: &[&str] =
    &[".git", "target", "out", "fuzz/corpus", "fuzz/artifacts", "fuzz/coverage"];

/// Files of others, kept as they came: no rule applies to them.
const VENDORED: &[&str] = &["crates/report/assets/vega/", "crates/serve/assets/uplot/"];

/// Every file, by its path from the root; binary files have no text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads the repository at `root`.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue; // nothing of ours has such a name
            };
            let path = format!("{prefix}{name}");
            if SKIPPED.contains(&path.as_str()) || SKIPPED.contains(&name.as_str()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.read_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() {
                let text = String::from_utf8(std::fs::read(entry.path())?).ok();
                self.files.insert(path, text);
            }
        }
        Ok(())
    }

    /// A repository of these files, for tests.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| (path.to_owned(), Some(text.to_owned()));
        Self { files: files.iter().map(file).collect() }
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// The text of the file at `path`, if it has one.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// True if there is a file, or a folder with files, at `path`; the root has none.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let below = self.files.range(folder.clone()..).next();
        path.is_empty()
            || self.files.contains_key(path)
            || below.is_some_and(|(first, _)| first.starts_with(&folder))
    }

    /// Path and text of every file of ours, in the order of paths.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(|(path, _)| !VENDORED.iter().any(|folder| path.starts_with(folder)))
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// The same of files whose name ends in `.extension`.
    pub(crate) fn with_extension<'a>(
        &'a self,
        extension: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.texts().filter(move |(path, _)| {
            path.rsplit_once('.').is_some_and(|(_, found)| found == extension)
        })
    }
}
