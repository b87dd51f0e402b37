//! Folders and files as calls find and change them: the one place that knows what each call does.
//!
//! The changes by a call come back as *steps*: parts that a power cut keeps or loses each by
//! itself, in order.

mod names;
mod xattrs;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

pub(super) use self::names::check_name;
use self::xattrs::Xattrs;
use super::atom::{Drive, Ino, Name};
use super::step::{Effect, Kind, PAGE_BYTES, Step};
use super::surviving::SurvivingFiles;

/// The longest file: page numbers have 32 bits.
const LENGTH_MOST: u64 = PAGE_BYTES << 31;
/// The longest name, as Linux has it (limits.h, `NAME_MAX`).
const NAME_MOST: usize = 255;

/// How a name may be changed into another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Renaming {
    /// Replaces the node of the new name.
    Replace,
    /// The new name must be free.
    New,
    /// Both names exist and are exchanged.
    Exchange,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    bytes: u64,
    /// Its length was set to nothing, and no handle has ended since.
    is_cut: bool,
    /// Names that it has.
    links: u32,
    drive: Drive,
}

/// Folders and files, over what a power cut has left if that is where they begin.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    base: Option<SurvivingFiles>,
    /// How many drives there are.
    drives: u32,
    nodes: BTreeMap<Ino, Node>,
    /// Names that differ from those of the base.
    names: BTreeMap<Ino, BTreeMap<Name, Option<Ino>>>,
    pages: BTreeMap<(Ino, u32), Arc<[u8]>>,
    /// Where symbolic links of this tree lead.
    targets: BTreeMap<Ino, Arc<str>>,
    /// Extended attributes that differ from those of the base.
    xattrs: BTreeMap<Ino, Xattrs>,
    next: u32,
}

impl Tree {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        let root = Node { kind: Kind::Folder, bytes: 0, is_cut: false, links: 1, drive: 0 };
        Self {
            base: None,
            drives: 1,
            nodes: BTreeMap::from([(Ino::ROOT, root)]),
            names: BTreeMap::new(),
            pages: BTreeMap::new(),
            targets: BTreeMap::new(),
            xattrs: BTreeMap::new(),
            next: Ino::ROOT.0 + 1,
        }
    }

    /// The tree that a power cut has left.
    pub(crate) fn over(left: SurvivingFiles) -> Self {
        let (next, drives) = (left.next_ino(), left.drives());
        Self { base: Some(left), drives, nodes: BTreeMap::new(), next, ..Self::new() }
    }

    fn node(&self, ino: Ino) -> Node {
        if let Some(node) = self.nodes.get(&ino) {
            return *node;
        }
        let left = self.base.as_ref().expect("a number that was given");
        let (kind, bytes, links) = (left.kind(ino), left.length(ino), left.links(ino));
        Node { kind, bytes, is_cut: false, links, drive: left.drive_of(ino) }
    }

    /// Whether there is, or was, something with this number.
    pub(crate) fn has(&self, ino: Ino) -> bool {
        self.nodes.contains_key(&ino) || self.base.as_ref().is_some_and(|left| left.has(ino))
    }

    pub(crate) fn kind(&self, ino: Ino) -> Kind {
        self.node(ino).kind
    }

    /// Where a symbolic link leads.
    pub(crate) fn target(&self, link: Ino) -> Option<Arc<str>> {
        let own = self.targets.get(&link).cloned();
        own.or_else(|| self.base.as_ref()?.target(link))
    }

    /// Names of a file; those of a folder are not counted.
    pub(crate) fn links(&self, ino: Ino) -> u32 {
        self.node(ino).links
    }

    /// The pages of a file that are no holes, from `first` on, in order.
    fn stored_from(&self, file: Ino, first: u32) -> BTreeSet<u32> {
        let own = self.pages.range((file, first)..=(file, u32::MAX)).map(|((_, page), _)| *page);
        let below = self.base.iter().filter(|left| left.has(file));
        let below = below.flat_map(|left| left.pages(file)).filter(|page| *page >= first);
        own.chain(below).collect()
    }

    /// Pages of a file that are no holes.
    pub(crate) fn stored(&self, file: Ino) -> u64 {
        let own = self.pages.range((file, 0)..=(file, u32::MAX)).count();
        let below = self.base.iter().filter(|left| left.has(file));
        let below = below.flat_map(|left| left.pages(file));
        let is_shown = |page: &u32| !self.pages.contains_key(&(file, *page));
        (own + below.filter(is_shown).count()) as u64
    }

    /// The next byte from `offset` on that is data, or that is in a hole; the end of the file is one (lseek(2)).
    pub(crate) fn seek(&self, file: Ino, offset: u64, is_data: bool) -> io::Result<u64> {
        let length = self.length(file);
        if offset >= length {
            return Err(Errno::ENXIO.into());
        }
        let first = (offset / PAGE_BYTES) as u32;
        let stored = self.stored_from(file, first);
        let found = if is_data {
            stored.first().copied().ok_or(Errno::ENXIO)?
        } else {
            let mut at = first;
            while stored.contains(&at) {
                at += 1;
            }
            at
        };
        let found = offset.max(u64::from(found) * PAGE_BYTES);
        if found < length {
            Ok(found)
        } else if is_data {
            Err(Errno::ENXIO.into())
        } else {
            Ok(length)
        }
    }

    /// Bytes of a file.
    pub(crate) fn length(&self, file: Ino) -> u64 {
        self.node(file).bytes
    }

    /// The node of a name in a folder.
    pub(crate) fn lookup(&self, folder: Ino, name: &str) -> Option<Ino> {
        if let Some(found) = self.names.get(&folder).and_then(|names| names.get(name)) {
            return *found;
        }
        self.base.as_ref()?.lookup(folder, name)
    }

    /// Everything in a folder, by name.
    pub(crate) fn entries(&self, folder: Ino) -> BTreeMap<Name, Ino> {
        let mut entries: BTreeMap<Name, Ino> =
            self.base.as_ref().map_or_else(BTreeMap::new, |left| left.entries(folder));
        for (name, ino) in self.names.get(&folder).into_iter().flatten() {
            match ino {
                Some(ino) => entries.insert(name.clone(), *ino),
                None => entries.remove(name),
            };
        }
        entries
    }

    fn page(&self, file: Ino, page: u32) -> Option<Arc<[u8]>> {
        if let Some(bytes) = self.pages.get(&(file, page)) {
            return Some(Arc::clone(bytes));
        }
        // Of a file of the base, as far as it reached there and was not cut since.
        self.base.as_ref().filter(|_| !self.is_born_here(file))?.bytes(file, page)
    }

    /// The bytes of a page, zeroes among them.
    fn whole_page(&self, file: Ino, page: u32) -> Arc<[u8]> {
        self.page(file, page).unwrap_or_else(|| vec![0; PAGE_BYTES as usize].into())
    }

    fn is_born_here(&self, file: Ino) -> bool {
        self.base.as_ref().is_none_or(|left| file.0 >= left.next_ino())
    }

    /// The bytes of a file from `offset` on: `most`, or fewer at its end.
    pub(crate) fn read(&self, file: Ino, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let end = self.length(file).min(offset.saturating_add(most as u64));
        let mut bytes = Vec::new();
        // A hole of a terabyte is no reason to end the process.
        bytes.try_reserve_exact(end.saturating_sub(offset) as usize).map_err(|_| Errno::ENOMEM)?;
        let mut at = offset;
        while at < end {
            let (page, from) = ((at / PAGE_BYTES) as u32, (at % PAGE_BYTES) as usize);
            let to = ((end - at) as usize + from).min(PAGE_BYTES as usize);
            match self.page(file, page) {
                Some(page) => bytes.extend_from_slice(&page[from..to]),
                None => bytes.resize(bytes.len() + to - from, 0),
            }
            at += (to - from) as u64;
        }
        Ok(bytes)
    }

    /// Writes into a file. Each page is a step of its own: a power cut tears a call between any two.
    pub(crate) fn write(&mut self, file: Ino, offset: u64, data: &[u8]) -> io::Result<Vec<Step>> {
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= LENGTH_MOST);
        let end = end.ok_or(Errno::EFBIG)?;
        let mut steps = Vec::new();
        let length = self.length(file);
        if !data.is_empty() && offset / PAGE_BYTES > length / PAGE_BYTES {
            steps.extend(self.fill_last_page(file, length));
        }
        let mut at = offset;
        while at < end {
            let page = (at / PAGE_BYTES) as u32;
            let to = end.min((at / PAGE_BYTES + 1) * PAGE_BYTES);
            let mut bytes = self.whole_page(file, page).to_vec();
            let from = (at % PAGE_BYTES) as usize;
            let part = &data[(at - offset) as usize..(to - offset) as usize];
            bytes[from..from + part.len()].copy_from_slice(part);
            steps.push(self.put_page(file, page, bytes.into(), to));
            at = to;
        }
        Ok(steps)
    }

    /// Zeroes a range of a file, as far as the file reaches: its pages change each by itself.
    pub(crate) fn zero(&mut self, file: Ino, offset: u64, bytes: u64) -> Vec<Step> {
        let end = offset.saturating_add(bytes).min(self.length(file));
        if offset >= end {
            return Vec::new();
        }
        let (first, last) = ((offset / PAGE_BYTES) as u32, ((end - 1) / PAGE_BYTES) as u32);
        // Holes stay what they are, and may be terabytes.
        let pages = self.stored_from(file, first);
        let mut steps = Vec::new();
        for page in pages.into_iter().take_while(|page| *page <= last) {
            let begin = u64::from(page) * PAGE_BYTES;
            let (from, to) = (offset.max(begin), end.min(begin + PAGE_BYTES));
            let mut new = self.whole_page(file, page).to_vec();
            new[(from - begin) as usize..(to - begin) as usize].fill(0);
            let mut step = self.put_page(file, page, new.into(), to);
            if to - from == PAGE_BYTES {
                step.insert(0, Effect::Freed { file, page });
            }
            steps.push(step);
        }
        steps
    }

    /// Before bytes that leave a gap the kernel fills the last page with zeroes, and may write it out as a whole.
    fn fill_last_page(&mut self, file: Ino, length: u64) -> Option<Step> {
        let page = (length / PAGE_BYTES) as u32;
        if length.is_multiple_of(PAGE_BYTES) {
            return None;
        }
        let bytes = self.whole_page(file, page);
        Some(self.put_page(file, page, bytes, (u64::from(page) + 1) * PAGE_BYTES))
    }

    fn put_page(&mut self, file: Ino, page: u32, bytes: Arc<[u8]>, reach: u64) -> Step {
        self.pages.insert((file, page), Arc::clone(&bytes));
        let mut step = Vec::new();
        let mut node = self.node(file);
        if reach > node.bytes {
            node.bytes = reach;
            self.nodes.insert(file, node);
            step.push(Effect::Grown { file, bytes: reach });
        }
        step.push(Effect::Page { file, page, bytes });
        step
    }

    /// Sets the length of a file; a new end is filled with zeroes.
    pub(crate) fn set_length(&mut self, file: Ino, bytes: u64) -> io::Result<Vec<Step>> {
        if bytes > LENGTH_MOST {
            return Err(Errno::EFBIG.into());
        }
        let mut node = self.node(file);
        let old = node.bytes;
        // ext4_setattr truncates a file that is empty already, too.
        node.is_cut |= bytes == 0;
        node.bytes = bytes;
        self.nodes.insert(file, node);
        if bytes == old {
            return Ok(Vec::new());
        }
        let mut steps = Vec::new();
        if bytes < old {
            steps.extend(self.drop_pages(file, bytes, old));
        }
        steps.push(vec![Effect::Set { file, bytes }]);
        Ok(steps)
    }

    /// The pages from byte `from` on hold zeroes: those of this tree, and those below it. The page that is cut in its
    /// midst may be written out before the length is there.
    fn drop_pages(&mut self, file: Ino, from: u64, to: u64) -> Option<Step> {
        let first = from.div_ceil(PAGE_BYTES) as u32;
        let mut step = None;
        if !from.is_multiple_of(PAGE_BYTES)
            && let Some(bytes) = self.page(file, first - 1)
        {
            let mut bytes = bytes.to_vec();
            bytes[(from % PAGE_BYTES) as usize..].fill(0);
            let bytes: Arc<[u8]> = bytes.into();
            self.pages.insert((file, first - 1), Arc::clone(&bytes));
            step = Some(vec![Effect::Page { file, page: first - 1, bytes }]);
        }
        let gone: Vec<u32> = self
            .pages
            .range((file, first)..=(file, u32::MAX))
            .map(|((_, page), _)| *page)
            .collect();
        for page in gone {
            self.pages.remove(&(file, page));
        }
        if let Some(left) = &self.base
            && !self.is_born_here(file)
        {
            let zeroes: Arc<[u8]> = vec![0; PAGE_BYTES as usize].into();
            let last = to.div_ceil(PAGE_BYTES) as u32;
            for page in left.pages(file).filter(|page| (first..last).contains(page)) {
                self.pages.insert((file, page), Arc::clone(&zeroes));
            }
        }
        step
    }

    /// A handle on a file ends.
    pub(crate) fn close(&mut self, file: Ino) -> Vec<Step> {
        let mut node = self.node(file);
        if !node.is_cut {
            return Vec::new();
        }
        node.is_cut = false;
        self.nodes.insert(file, node);
        vec![vec![Effect::Brings { file }]]
    }
}
