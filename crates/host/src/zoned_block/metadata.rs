//! The metadata on the members, as bytes.
//!
//! Numbers are little-endian. A *superblock* begins a set (and the label of the zoned member is one):
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `LEYDZBLK` |
//! | 8..12 | format version, 1 |
//! | 12..16 | 0 and 1: the sets; 2: the label |
//! | 16..24 | generation |
//! | 24..32 | identity, the same on both members |
//! | 32..64 | the layout: bytes of a block; blocks of a zone; from zone to zone; random, metadata and sequential zones; chunks; journal zones |
//! | 64..68 | CRC-32 of the checksums of the set's blocks |
//! | 68..72 | CRC-32 of everything before |
//!
//! A block of the tables is words of 64 bits, its number in the set (4 bytes), and the CRC-32 of both. Every block
//! has its own checksum, so damage is found; the superblock has one of all of them, so a block that is whole but
//! older is found, too.
//!
//! **Invariants**: any bytes yield tables that keep the invariants of [`super::map::Map`], or an error.

use super::layout::Layout;

const MAGIC: &[u8; 8] = b"LEYDZBLK";
const VERSION: u32 = 1;
/// Bytes of a superblock that count.
const LENGTH: usize = 72;
/// The superblock of the zoned member.
pub(super) const LABEL: u32 = 2;

/// The fields of a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Superblock {
    /// Which of the sets it begins, or [`LABEL`].
    pub(super) role: u32,
    pub(super) generation: u64,
    pub(super) identity: u64,
    /// CRC-32 of the checksums of the tables' blocks.
    pub(super) digest: u32,
}

/// The damage of a superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Damage {
    /// There is none.
    Blank,
    /// The field that is wrong, and how.
    Bad(String),
}

fn layout_fields(layout: &Layout) -> [(&'static str, u32); 8] {
    [
        ("bytes of a block", layout.unit_bytes),
        ("blocks of a zone", layout.zone_blocks),
        ("blocks from zone to zone", layout.stride),
        ("random zones", layout.random),
        ("metadata zones", layout.meta),
        ("sequential zones", layout.sequential),
        ("chunks", layout.chunks),
        ("journal zones", layout.journal),
    ]
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

impl Superblock {
    pub(super) fn encode(&self, layout: &Layout) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(layout.unit_bytes as usize);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.role.to_le_bytes());
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.identity.to_le_bytes());
        for (_, value) in layout_fields(layout) {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&self.digest.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes.resize(layout.unit_bytes as usize, 0);
        bytes
    }

    /// # Errors
    /// If it is none of this layout.
    pub(super) fn decode(layout: &Layout, bytes: &[u8]) -> Result<Self, Damage> {
        let Some(head) = bytes.get(..LENGTH).filter(|head| head.iter().any(|&byte| byte != 0))
        else {
            return Err(Damage::Blank);
        };
        if !head.starts_with(MAGIC) {
            return Err(Damage::Bad("begins with something else".to_owned()));
        }
        if crc32fast::hash(&head[..LENGTH - 4]) != u32_at(head, LENGTH - 4) {
            return Err(Damage::Bad("does not match its checksum".to_owned()));
        }
        if u32_at(head, 8) != VERSION {
            return Err(Damage::Bad(format!("is of version {}, not {VERSION}", u32_at(head, 8))));
        }
        for (index, (name, value)) in layout_fields(layout).into_iter().enumerate() {
            let found = u32_at(head, 32 + 4 * index);
            if found != value {
                return Err(Damage::Bad(format!(
                    "says {found} {name}, and the members have {value}"
                )));
            }
        }
        Ok(Self {
            role: u32_at(head, 12),
            generation: u64_at(head, 16),
            identity: u64_at(head, 24),
            digest: u32_at(head, 64),
        })
    }
}

/// The bytes of block `number` of the tables, and their checksum.
pub(super) fn encode_block(layout: &Layout, number: u32, words: &[u64]) -> (Vec<u8>, u32) {
    let mut bytes = Vec::with_capacity(layout.unit_bytes as usize);
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.resize(layout.unit_bytes as usize - 8, 0);
    bytes.extend_from_slice(&number.to_le_bytes());
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    (bytes, crc)
}

/// The checksum of all of a set's blocks.
pub(super) fn digest(crcs: &[u32]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for crc in crcs {
        hasher.update(&crc.to_le_bytes());
    }
    hasher.finalize()
}

/// The words of the tables, and the checksums of their blocks.
///
/// # Errors
/// If a block is damaged, or is not the one that `superblock` speaks of.
pub(super) fn decode_blocks<'a>(
    layout: &Layout,
    superblock: &Superblock,
    blocks: impl Iterator<Item = &'a [u8]>,
) -> Result<(Vec<u64>, Vec<u32>), String> {
    let (mut words, mut crcs) = (Vec::new(), Vec::new());
    let length = layout.unit_bytes as usize;
    for (number, bytes) in blocks.enumerate() {
        if bytes.len() != length {
            return Err(format!("block {number} of the tables was never written"));
        }
        let crc = crc32fast::hash(&bytes[..length - 4]);
        if crc != u32_at(bytes, length - 4) || u32_at(bytes, length - 8) != number as u32 {
            return Err(format!("block {number} of the tables is damaged"));
        }
        crcs.push(crc);
        words.extend((0..layout.words_per_block() as usize).map(|word| u64_at(bytes, 8 * word)));
    }
    if digest(&crcs) != superblock.digest {
        return Err("a block of the tables is older than the superblock".to_owned());
    }
    words.truncate(layout.words() as usize);
    Ok((words, crcs))
}
