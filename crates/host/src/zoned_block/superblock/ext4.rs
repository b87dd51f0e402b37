//! ext4 (and ext3 with extents): the journal is the file of inode 8, or another device
//! (Documentation/filesystems/ext4: "Super Block", "Block Group Descriptors", "Inode Table", "Extent Tree").
//!
//! Superblock, descriptor of the first group, inode 8, the nodes of its extent tree: one read each. Fast commits lie
//! in the same file. A copy of the inode's extents in the superblock (`s_jnl_blocks`) is not used: the kernel does not
//! keep it up to date.

use std::ops::Range;

use super::fields::{le16, le32};
use super::{Journal, MAX_RANGES, Next, Step, Why};

const SUPERBLOCK: usize = 1024;
const MAGIC: u16 = 0xef53;
const HAS_JOURNAL: u32 = 0x4; // s_feature_compat
const JOURNAL_DEVICE: u32 = 0x8; // s_feature_incompat
const BITS_64: u32 = 0x80; // s_feature_incompat
const JOURNAL_INODE: u32 = 8;
const HAS_EXTENTS: u32 = 0x8_0000; // i_flags
const TREE_MAGIC: u16 = 0xf30a;
/// The deepest tree that the kernel makes.
const MAX_DEPTH: u16 = 5;
/// An extent of so many blocks is written; one of more is not, and has that many fewer.
const LONGEST_WRITTEN: u32 = 32_768;
const ENTRY_BYTES: usize = 12;

/// A node of the extent tree that is to be read.
#[derive(Clone, Copy, Debug)]
struct Node {
    block: u64,
    depth: u16,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The descriptor of the first group is being read.
    Descriptor,
    /// The journal's inode is.
    Inode,
    /// A node of its extent tree, of this depth, is.
    Tree(u16),
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Search {
    block_bytes: u64,
    blocks: u64,
    inode_bytes: u64,
    inode: u32,
    has_64_bits: bool,
    stage: Stage,
    nodes: Vec<Node>,
    journal: Vec<Range<u64>>,
}

impl Search {
    /// From `head`, the beginning of a device of `capacity_bytes`.
    pub(super) fn begin(head: &[u8], capacity_bytes: u64) -> Result<(Self, Next), Why> {
        let superblock = head.get(SUPERBLOCK..2 * SUPERBLOCK).ok_or(Why::NoFileSystem)?;
        if le16(superblock, 0x38)? != MAGIC {
            return Err(Why::NoFileSystem);
        }
        let compat = le32(superblock, 0x5c)?;
        let incompat = le32(superblock, 0x60)?;
        let log_block = le32(superblock, 0x18)?;
        if log_block > 6 {
            return Err(Why::Unbelievable("ext4 has blocks of an absurd size"));
        }
        let block_bytes = 1024_u64 << log_block;
        let has_64_bits = incompat & BITS_64 != 0;
        let high = if has_64_bits { u64::from(le32(superblock, 0x150)?) << 32 } else { 0 };
        let blocks = u64::from(le32(superblock, 0x04)?) | high;
        if blocks.checked_mul(block_bytes).is_none_or(|bytes| bytes > capacity_bytes) {
            return Err(Why::Unbelievable("ext4 is larger than the device"));
        }
        let mut search = Self {
            block_bytes,
            blocks,
            inode_bytes: u64::from(le16(superblock, 0x58)?),
            inode: le32(superblock, 0xe0)?,
            has_64_bits,
            stage: Stage::Descriptor,
            nodes: Vec::new(),
            journal: Vec::new(),
        };
        if incompat & JOURNAL_DEVICE != 0 {
            search.take(0, blocks)?;
            let found = Journal::At(std::mem::take(&mut search.journal));
            return Ok((search, Next::Found(found)));
        }
        if compat & HAS_JOURNAL == 0 {
            return Err(Why::NoJournal);
        }
        if search.inode == 0 {
            return Err(Why::Elsewhere);
        }
        let next = search.descriptor(superblock)?;
        Ok((search, next))
    }

    /// Asks for the descriptor of the first group, which has the first inodes.
    fn descriptor(&self, superblock: &[u8]) -> Step {
        let is_sane = self.inode_bytes.is_power_of_two()
            && (128..=self.block_bytes).contains(&self.inode_bytes);
        let per_group = le32(superblock, 0x28)?;
        if self.inode != JOURNAL_INODE || !is_sane || per_group < self.inode {
            return Err(Why::Unbelievable("ext4 has inodes of an absurd size, or another journal"));
        }
        let bytes = if self.has_64_bits { u64::from(le16(superblock, 0xfe)?) } else { 32 };
        if !(32..=1024).contains(&bytes) {
            return Err(Why::Unbelievable("ext4 has group descriptors of an absurd size"));
        }
        let first = u64::from(le32(superblock, 0x14)?); // the block of the superblock
        if first > 1 {
            return Err(Why::Unbelievable("ext4 begins at an absurd block"));
        }
        let at = (first + 1) * self.block_bytes;
        Ok(Next::Read(at..at + bytes))
    }

    /// The bytes that it wanted last.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Step {
        match self.stage {
            Stage::Descriptor => self.found_table(bytes),
            Stage::Inode => {
                if le32(bytes, 0x20)? & HAS_EXTENTS == 0 {
                    return Err(Why::Unbelievable("the journal of ext3 is not mapped by extents"));
                }
                let root = bytes.get(0x28..0x28 + 60);
                self.found_node(root.unwrap_or_default(), None)
            }
            Stage::Tree(depth) => self.found_node(bytes, Some(depth)),
        }
    }

    fn found_table(&mut self, descriptor: &[u8]) -> Step {
        let is_wide = self.has_64_bits && descriptor.len() >= 64;
        let high = if is_wide { u64::from(le32(descriptor, 0x28)?) << 32 } else { 0 };
        let table = self.block(u64::from(le32(descriptor, 8)?) | high)?;
        let at = table + u64::from(self.inode - 1) * self.inode_bytes;
        self.stage = Stage::Inode;
        Ok(Next::Read(at..at + self.inode_bytes))
    }

    /// Where a block begins.
    fn block(&self, block: u64) -> Result<u64, Why> {
        if block == 0 || block >= self.blocks {
            return Err(Why::Unbelievable("ext4 points beyond its end"));
        }
        Ok(block * self.block_bytes)
    }

    /// Blocks `first..first + count` are the journal's.
    fn take(&mut self, first: u64, count: u64) -> Result<(), Why> {
        let end = first.checked_add(count).filter(|&end| end <= self.blocks && count > 0);
        let end = end.ok_or(Why::Unbelievable("the journal ends beyond its file system"))?;
        if self.journal.len() == MAX_RANGES {
            return Err(Why::Unbelievable("the journal is in too many pieces"));
        }
        self.journal.push(first * self.block_bytes..end * self.block_bytes);
        Ok(())
    }

    /// A node of the extent tree; its depth is known but for the root's.
    fn found_node(&mut self, node: &[u8], expected: Option<u16>) -> Step {
        let (magic, entries, depth) = (le16(node, 0)?, le16(node, 2)?, le16(node, 6)?);
        // Depths that fall by one from node to node leave no room for a cycle.
        let is_right = expected.map_or(depth <= MAX_DEPTH, |expected| depth == expected);
        if magic != TREE_MAGIC || !is_right {
            return Err(Why::Unbelievable("the journal's extent tree is damaged"));
        }
        for entry in 1..=usize::from(entries) {
            let at = entry * ENTRY_BYTES;
            if depth == 0 {
                let length = u32::from(le16(node, at + 4)?);
                let written =
                    if length <= LONGEST_WRITTEN { length } else { length - LONGEST_WRITTEN };
                let first = u64::from(le32(node, at + 8)?) | u64::from(le16(node, at + 6)?) << 32;
                self.take(first, written.into())?;
            } else {
                let block = u64::from(le32(node, at + 4)?) | u64::from(le16(node, at + 8)?) << 32;
                self.nodes.push(Node { block, depth: depth - 1 });
            }
        }
        self.next_node()
    }

    fn next_node(&mut self) -> Step {
        let Some(Node { block, depth }) = self.nodes.pop() else {
            return Ok(Next::Found(Journal::At(std::mem::take(&mut self.journal))));
        };
        let at = self.block(block)?;
        self.stage = Stage::Tree(depth);
        Ok(Next::Read(at..at + self.block_bytes))
    }
}
