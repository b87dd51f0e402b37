//! Whether the rules allow files that were seen after a power cut: the question to a model when a real file system has
//! answered.
//!
//! For a given journal, parts are independent but for the length that pages bring, so that no states need to be counted.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::atom::{Atom, Cell, Ino, Page};
use super::history::{Event, FileHistory, Syncs};
use super::step::{Kind, PAGE_BYTES};
use super::surviving::Choice;
use super::xattrs::xattrs_of;
use crate::cut::{Cut, Unsettled};
use crate::state::State;
use crate::store::key_of;

/// Files, folders and symbolic links by their paths below a folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct SeenFiles {
    files: BTreeMap<String, Seen>,
    /// Extended attributes of users by path, that of the folder itself being empty: values by name, as digests.
    xattrs: BTreeMap<String, BTreeMap<String, String>>,
}

/// Extended attributes that a file system does not set of its own accord.
const OF_USERS: &str = "user.";

/// Something with a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Seen {
    Folder,
    Symlink(String),
    /// The pages that are not all zeroes, by number, as digests.
    File {
        bytes: u64,
        pages: BTreeMap<u32, String>,
    },
}

impl SeenFiles {
    /// Everything below `folder`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mut seen = Self::default();
        let mut folders = vec![String::new()];
        seen.see_xattrs(folder, "")?;
        while let Some(at) = folders.pop() {
            for entry in fs::read_dir(folder.join(&at))? {
                let entry = entry?;
                let name =
                    entry.file_name().into_string().map_err(|_| io::ErrorKind::InvalidData)?;
                let path = if at.is_empty() { name } else { format!("{at}/{name}") };
                let kind = entry.file_type()?;
                // ext4 makes one for its own check.
                if path == "lost+found" {
                    continue;
                }
                let node = if kind.is_dir() {
                    folders.push(path.clone());
                    Seen::Folder
                } else if kind.is_symlink() {
                    Seen::Symlink(fs::read_link(entry.path())?.to_string_lossy().into_owned())
                } else {
                    let mut bytes = Vec::new();
                    fs::File::open(entry.path())?.read_to_end(&mut bytes)?;
                    file(&bytes)
                };
                seen.see_xattrs(folder, &path)?;
                seen.files.insert(path, node);
            }
        }
        Ok(seen)
    }

    fn see_xattrs(&mut self, folder: &Path, path: &str) -> io::Result<()> {
        for (name, value) in xattrs_of(&folder.join(path))? {
            if name.starts_with(OF_USERS) {
                self.insert_xattr(path, &name, &value);
            }
        }
        Ok(())
    }

    pub(crate) fn insert_xattr(&mut self, path: &str, name: &str, value: &[u8]) {
        let of_path = self.xattrs.entry(path.to_owned()).or_default();
        of_path.insert(name.to_owned(), format!("{:032x}", key_of(value)));
    }

    /// A folder with this path.
    #[cfg(test)]
    pub(crate) fn insert_folder(&mut self, path: &str) {
        self.files.insert(path.to_owned(), Seen::Folder);
    }

    /// A file with this path and these bytes.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, path: &str, bytes: &[u8]) {
        self.files.insert(path.to_owned(), file(bytes));
    }
}

fn file(bytes: &[u8]) -> Seen {
    let pages = (0..).zip(bytes.chunks(PAGE_BYTES as usize));
    let pages = pages.filter_map(|(page, part)| {
        let mut whole = part.to_vec();
        whole.resize(PAGE_BYTES as usize, 0);
        Some((page, digest(&whole)?))
    });
    Seen::File { bytes: bytes.len() as u64, pages: pages.collect() }
}

/// Digits that differ for pages that differ; none for zeroes.
fn digest(page: &[u8]) -> Option<String> {
    let is_empty = page.iter().all(|byte| *byte == 0);
    (!is_empty).then(|| format!("{:032x}", key_of(page)))
}

/// Whether a power cut at the moment of `cut` may leave these files.
pub(super) fn allows(history: &FileHistory, cut: &Cut, seen: &SeenFiles) -> bool {
    let journals =
        cut.unsettled.iter().find(|part| history.atom(part.atom) == Some(&Atom::Journal(0)));
    let journals = journals.map_or(vec![None], |part| {
        let lost = part.versions.iter().enumerate();
        lost.map(|(place, version)| (place > 0).then_some((part.atom, *version))).collect()
    });
    let under_way = log_under_way(history, cut.at);
    let last = cut.at.checked_sub(1).map(|last| last as u32);
    journals.into_iter().any(|journal| {
        let choices =
            choices_of_names(history, cut, journal.map_or(last, |lost| lost.1), under_way);
        choices.into_iter().any(|choice| {
            let mut lost: Vec<_> = journal.into_iter().chain(choice).collect();
            lost.sort_unstable();
            let is = Choice::new(history, &State::new(cut.at, lost));
            let mut question = Question { history, cut, seen, is, under_way };
            question.by_log(Ino::ROOT, |question| question.has_xattrs(Ino::ROOT, ""))
                && question.folder(Ino::ROOT, "")
        })
    })
}

/// The part of the log that a sync is about to have written.
fn log_under_way(history: &FileHistory, at: usize) -> Option<u32> {
    let sync = history.events().get(at)?;
    let Event::Sync { syncs: Syncs::Whole(ino) | Syncs::Data(ino), .. } = sync else { return None };
    history.logs().of_file(*ino).map(|(atom, _)| atom)
}

/// Parts of which each choice is tried. With more of them a folder may be called "not allowed" that is.
const CHOSEN_MOST: usize = 12;

/// Choices of losses on which names depend, for a journal: whether a sync under way has written its log, and whether others found
/// something.
fn choices_of_names(
    history: &FileHistory,
    cut: &Cut,
    journal: Option<u32>,
    under_way: Option<u32>,
) -> Vec<Vec<(u32, Option<u32>)>> {
    let depends = |part: &&Unsettled| match history.atom(part.atom) {
        Some(Atom::Found(file)) => history.logs().may_find_nothing(*file, journal),
        _ => under_way == Some(part.atom),
    };
    let mut choices = vec![Vec::new()];
    for part in cut.unsettled.iter().filter(depends).take(CHOSEN_MOST) {
        let older = (part.atom, part.versions[1]);
        let with: Vec<Vec<_>> =
            choices.iter().map(|choice| [&choice[..], &[older]].concat()).collect();
        choices.extend(with);
    }
    choices
}

/// The version of a part that a state has.
#[derive(Clone, Copy)]
enum Kept {
    Newest,
    Older(Option<u32>),
}

/// Files that were seen, and what has been chosen to explain them.
struct Question<'a> {
    history: &'a FileHistory,
    cut: &'a Cut,
    seen: &'a SeenFiles,
    is: Choice,
    /// The log that a sync was writing, on which names depend: it is chosen already.
    under_way: Option<u32>,
}

impl Question<'_> {
    /// The versions that a part may have.
    fn versions(&self, atom: Option<u32>) -> Vec<Kept> {
        let part = atom.and_then(|atom| {
            let at = self.cut.unsettled.binary_search_by_key(&atom, |part| part.atom);
            at.ok().map(|at| &self.cut.unsettled[at])
        });
        let older = part.into_iter().flat_map(|part| &part.versions[1..]);
        std::iter::once(Kept::Newest).chain(older.map(|version| Kept::Older(*version))).collect()
    }

    fn choose(&mut self, atom: Option<u32>, kept: Kept) {
        match (atom, kept) {
            (Some(atom), Kept::Older(event)) => self.is.lose(atom, event),
            (Some(atom), Kept::Newest) => self.is.put_back(atom),
            (None, _) => {}
        }
    }

    /// Whether each name of a folder may be what it was seen to be. Names that share a file are looked at one by one.
    fn folder(&mut self, folder: Ino, path: &str) -> bool {
        let names = self.history.names(folder);
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let is_known = |path: &String| {
            let name = path.strip_prefix(&below).filter(|name| !name.contains('/'));
            name.is_none_or(|name| names.is_some_and(|names| names.contains_key(name)))
        };
        if !self.seen.files.keys().all(is_known) {
            return false;
        }
        names.into_iter().flatten().all(|(name, cell)| {
            let path = format!("{below}{name}");
            self.versions(cell.atom).into_iter().any(|kept| {
                self.choose(cell.atom, kept);
                let ino = self.is.name(self.history, folder, name);
                self.node(ino, &path)
            })
        })
    }

    fn node(&mut self, ino: Option<Ino>, path: &str) -> bool {
        let (ino, seen) = match (ino, self.seen.files.get(path)) {
            (None, seen) => return seen.is_none(),
            (Some(_), None) => return false,
            (Some(ino), Some(seen)) => (ino, seen),
        };
        let has_xattrs = |question: &mut Self| question.has_xattrs(ino, path);
        match (self.history.kind(ino), seen) {
            (Kind::Folder, Seen::Folder) => self.by_log(ino, has_xattrs) && self.folder(ino, path),
            (Kind::Symlink, Seen::Symlink(to)) => {
                self.history.target(ino).as_deref() == Some(to) && self.by_log(ino, has_xattrs)
            }
            (Kind::File, Seen::File { bytes, pages }) => self.by_log(ino, |question| {
                question.file(ino, *bytes, pages) && question.has_xattrs(ino, path)
            }),
            _ => false,
        }
    }

    /// Whether a file or folder is as it was seen by one of its logs, or by none.
    fn by_log(&mut self, ino: Ino, mut is_alike: impl FnMut(&mut Self) -> bool) -> bool {
        let log = self.history.logs().of_file(ino).map(|(atom, _)| atom);
        if log.is_some() && log == self.under_way {
            return is_alike(self);
        }
        self.versions(log).into_iter().any(|kept| {
            self.choose(log, kept);
            is_alike(self)
        })
    }

    /// Whether each extended attribute may be what it was seen to be.
    fn has_xattrs(&mut self, of: Ino, path: &str) -> bool {
        let (known, seen) = (self.history.xattrs(of), self.seen.xattrs.get(path));
        let is_known = |name: &String| known.is_some_and(|all| all.contains_key(name.as_str()));
        if !seen.into_iter().flatten().all(|(name, _)| is_known(name)) {
            return false;
        }
        let of_users = known.into_iter().flatten().filter(|(name, _)| name.starts_with(OF_USERS));
        of_users.into_iter().all(|(name, cell)| {
            let seen = seen.and_then(|seen| seen.get(&**name));
            self.versions(cell.atom).into_iter().any(|kept| {
                self.choose(cell.atom, kept);
                let value = self.is.xattr(self.history, of, name);
                value.map(|value| format!("{:032x}", value.key)).as_ref() == seen
            })
        })
    }

    fn file(&mut self, file: Ino, bytes: u64, seen: &BTreeMap<u32, String>) -> bool {
        let known = self.history.pages(file);
        if !seen.keys().all(|page| known.is_some_and(|known| known.contains_key(page))) {
            return false;
        }
        let atom = self.history.length(file).and_then(|cell| cell.atom);
        self.versions(atom).into_iter().any(|kept| {
            self.choose(atom, kept);
            let alone = self.is.length_alone(self.history, file);
            let mut reached = alone.unwrap_or_else(|| self.is.set(self.history, file).1);
            let are_alike = known.into_iter().flatten().all(|(page, cell)| {
                let end = self.page(file, *page, cell, bytes, seen.get(page));
                reached = reached.max(end.unwrap_or(0));
                end.is_some()
            });
            are_alike && reached == bytes
        })
    }

    /// The furthest length that this page may bring, no longer than the file, if it may be as it was seen.
    fn page(
        &mut self,
        file: Ino,
        page: u32,
        cell: &Cell<Page>,
        bytes: u64,
        seen: Option<&String>,
    ) -> Option<u64> {
        let versions = self.versions(cell.atom).into_iter();
        let ends = versions.filter_map(|kept| {
            self.choose(cell.atom, kept);
            let end = self.is.brought_by(self.history, file, page).unwrap_or(0);
            let shown = self.is.page_bytes(self.history, file, page, bytes);
            let is_alike = shown.and_then(|shown| digest(&shown)).as_ref() == seen;
            (is_alike && end <= bytes).then_some(end)
        });
        let furthest = ends.max();
        self.choose(cell.atom, Kept::Newest);
        furthest
    }
}
