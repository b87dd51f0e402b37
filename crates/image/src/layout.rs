//! Where everything lies in an image, byte by byte (docs/image.md).
//!
//! All numbers are little-endian. Each record ends with a CRC-32 (IEEE) of what comes before it in the
//! record.

use leyden_device::Config;
use leyden_host::ZonedBlockConfig;
use leyden_sim::Time;
use serde::{Deserialize, Serialize};

use crate::ImageError;
use crate::file::ImageFile;

/// Bumped with every change of the layout. Version 1 has no entries for zones in its log, and flags of writes that say
/// force unit access only; everything that it has means what it means in version 2. Version 3 is of block devices on two
/// drives only. Version 4 is of all, and has two places for the clock.
pub const FORMAT_VERSION: u32 = 4;
/// Images up to this version have one place for the clock, and keep it.
pub(crate) const FORMAT_OF_ONE_CLOCK: u32 = 3;

const MAGIC: &[u8; 8] = b"LEYDIMG\0";
/// The head lies here, and has room for so much.
const HEAD_AT: u64 = 0;
const HEAD_BYTES: usize = 64;
/// Two places for the root, which are written in turn.
const ROOTS_AT: [u64; 2] = [4_096, 8_192];
const ROOT_BYTES: usize = 64;
// Between roots and configuration: the clock.
const CONFIG_AT: u64 = 16_384;
const CONFIG_MOST: u64 = (1 << 20) - CONFIG_AT;
/// Two places for checkpoints, which are written in turn.
const CHECKPOINTS_AT: u64 = 1 << 20;
/// The log may become so long; a checkpoint is due long before.
pub(crate) const LOG_BYTES: u64 = 16 << 30;

/// The configuration of a drive in an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// Its name.
    pub name: String,
    /// The seed of everything random in it.
    pub seed: u64,
    /// The drive; of a block device on two drives the zoned one.
    pub device: Config,
    /// The other parts of a block device on two drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackConfig>,
    /// The version of Leyden that made it.
    pub made_by: String,
}

/// A block device on a zoned drive: what beside that makes it up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackConfig {
    /// The conventional drive.
    pub conventional: Config,
    /// The layer on both.
    pub layer: ZonedBlockConfig,
}

impl ImageConfig {
    /// A drive that this version makes. Without a table `power` it gets one, with a dump `in_place`: what a drive in an
    /// image does when the power goes has to be known.
    pub fn new(name: String, seed: u64, device: Config) -> Self {
        let made_by = env!("CARGO_PKG_VERSION").to_owned();
        Self { name, seed, device: with_power(device), stack: None, made_by }
    }

    /// The same with a layer and a conventional drive, which make a block device of it.
    #[must_use]
    pub fn stacked(mut self, conventional: Config, layer: ZonedBlockConfig) -> Self {
        self.stack = Some(StackConfig { conventional: with_power(conventional), layer });
        self
    }

    /// The drives.
    pub(crate) fn drives(&self) -> impl Iterator<Item = &Config> {
        [Some(&self.device), self.stack.as_ref().map(|stack| &stack.conventional)]
            .into_iter()
            .flatten()
    }
}

fn with_power(mut device: Config) -> Config {
    device.power.get_or_insert_with(|| leyden_power::Config {
        dump: leyden_power::DumpConfig::by_name("in_place").expect("a dump of this name"),
        ..leyden_power::Config::default()
    });
    device
}

/// The regions of an image of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Regions {
    checkpoint_bytes: u64,
}

impl Regions {
    /// For a drive with so many physical units and slots of its buffer.
    pub(crate) const fn new(units: u64) -> Self {
        // Bytes of a unit in a snapshot, with room to spare: owner, version and places.
        Self { checkpoint_bytes: (64 << 20) + units * 256 }
    }

    pub(crate) const fn checkpoint(self, area: usize) -> (u64, u64) {
        (CHECKPOINTS_AT + area as u64 * self.checkpoint_bytes, self.checkpoint_bytes)
    }

    pub(crate) const fn log(self) -> u64 {
        CHECKPOINTS_AT + 2 * self.checkpoint_bytes
    }

    pub(crate) const fn content(self) -> u64 {
        (self.log() + LOG_BYTES).next_multiple_of(1 << 20)
    }
}

/// Ends a record with its checksum.
pub(crate) fn seal(record: &mut Vec<u8>) {
    seal_from(record, 0);
}

/// Ends the record that begins at `begin` of `records` with its checksum.
pub(crate) fn seal_from(records: &mut Vec<u8>, begin: usize) {
    let crc = crc32fast::hash(&records[begin..]);
    records.extend(crc.to_le_bytes());
}

/// The body of a record, if its checksum matches.
pub(crate) fn unseal(record: &[u8]) -> Option<&[u8]> {
    let (body, crc) = record.split_at(record.len().checked_sub(4)?);
    (crc32fast::hash(body).to_le_bytes() == *crc).then_some(body)
}

/// Takes numbers out of a record, one after the other.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_at(N);
        self.0 = rest;
        first.try_into().expect("N bytes")
    }
    pub(crate) fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// Writes what never changes: the head, and the configuration.
pub(crate) fn write_head(
    file: &ImageFile,
    config: &ImageConfig,
    units: u64,
) -> Result<(), ImageError> {
    let text = serde_json::to_vec(config).map_err(std::io::Error::other)?;
    if text.len() as u64 > CONFIG_MOST {
        return Err(ImageError::Foreign("its configuration is longer than a megabyte".to_owned()));
    }
    let mut head = MAGIC.to_vec();
    head.extend(FORMAT_VERSION.to_le_bytes());
    head.extend((text.len() as u32).to_le_bytes());
    head.extend(crc32fast::hash(&text).to_le_bytes());
    head.extend(units.to_le_bytes());
    head.resize(HEAD_BYTES - 4, 0);
    seal(&mut head);
    file.write(&text, CONFIG_AT)?;
    Ok(file.write(&head, HEAD_AT)?)
}

/// The part of an image that never changes.
pub(crate) struct Head {
    pub(crate) config: ImageConfig,
    /// Physical units of the drive.
    pub(crate) units: u64,
    /// The format's version.
    pub(crate) version: u32,
}

/// Reads what never changes.
pub(crate) fn read_head(file: &ImageFile) -> Result<Head, ImageError> {
    let mut head = [0; HEAD_BYTES];
    file.read(&mut head, HEAD_AT)?;
    if !head.starts_with(MAGIC) {
        return Err(ImageError::Foreign("it does not begin as an image does".to_owned()));
    }
    let mut fields = Fields(&head[8..]);
    let version = fields.u32();
    if !(1..=FORMAT_VERSION).contains(&version) {
        let what =
            format!("it has format version {version}, this Leyden reads 1 to {FORMAT_VERSION}");
        return Err(ImageError::Foreign(what));
    }
    if unseal(&head).is_none() {
        return Err(ImageError::Damaged("the checksum of its head does not match".to_owned()));
    }
    let (length, crc, units) = (fields.u32(), fields.u32(), fields.u64());
    if units > u64::from(u32::MAX) || u64::from(length) > CONFIG_MOST {
        return Err(ImageError::Damaged("its head names an impossible size".to_owned()));
    }
    let mut text = vec![0; length as usize];
    file.read(&mut text, CONFIG_AT)?;
    if crc32fast::hash(&text) != crc {
        let what = "the checksum of its configuration does not match";
        return Err(ImageError::Damaged(what.to_owned()));
    }
    let config = serde_json::from_slice(&text)
        .map_err(|error| ImageError::Foreign(format!("its configuration: {error}")))?;
    Ok(Head { config, units, version })
}

/// The part that changes with each checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// Counted from one; the newer of the two is the one that holds.
    pub(crate) generation: u64,
    /// Length of the checkpoint, which lies in area `generation % 2`.
    pub(crate) checkpoint_bytes: u64,
    /// The sequence of the first entry of the log behind it.
    pub(crate) first_sequence: u64,
    /// When it was taken.
    pub(crate) time: Time,
    /// The drive was closed with it, and has done nothing since.
    pub(crate) is_closed: bool,
}

impl Root {
    pub(crate) fn write(&self, file: &ImageFile) -> Result<(), ImageError> {
        let mut root = Vec::with_capacity(ROOT_BYTES);
        root.extend(self.generation.to_le_bytes());
        root.extend(self.checkpoint_bytes.to_le_bytes());
        root.extend(self.first_sequence.to_le_bytes());
        root.extend(self.time.as_ns().to_le_bytes());
        root.push(u8::from(self.is_closed));
        root.resize(ROOT_BYTES - 4, 0);
        seal(&mut root);
        Ok(file.write(&root, ROOTS_AT[self.area()])?)
    }

    /// The newer of the two that are whole.
    pub(crate) fn read(file: &ImageFile) -> Result<Self, ImageError> {
        let mut newest: Option<Self> = None;
        let mut spoiled = 0;
        for at in ROOTS_AT {
            let mut root = [0; ROOT_BYTES];
            file.read(&mut root, at)?;
            if root == [0; ROOT_BYTES] {
                continue; // not written yet
            }
            let Some(body) = unseal(&root) else {
                spoiled += 1;
                continue;
            };
            let mut fields = Fields(body);
            let root = Self {
                generation: fields.u64(),
                checkpoint_bytes: fields.u64(),
                first_sequence: fields.u64(),
                time: Time::from_ns(fields.u64()),
                is_closed: fields.u8() != 0,
            };
            newest = newest.filter(|other| other.generation > root.generation).or(Some(root));
        }
        // Roots are never torn: a process that is killed has written all of one or nothing. So one that
        // is spoiled may have been the newer one.
        match newest {
            Some(root) if spoiled == 0 => Ok(root),
            _ => Err(ImageError::Damaged("the checksum of a root does not match".to_owned())),
        }
    }

    pub(crate) const fn area(&self) -> usize {
        (self.generation % 2) as usize
    }

    /// Where the next checkpoint goes.
    pub(crate) const fn next_area(&self) -> usize {
        (self.generation.wrapping_add(1) % 2) as usize
    }
}
