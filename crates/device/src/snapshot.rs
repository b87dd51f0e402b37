//! A drive's state at rest, saved and loaded.
//!
//! Layout, little-endian: magic `LEYDSNAP`, format version (u32), kind of payload (u8), length of
//! the body (u64), the body ([`State`], in postcard's encoding), CRC-32 of everything before it
//! (u32). A snapshot belongs to a configuration: its loader must give the one it was made with.

use std::io::{self, Read, Write};

use leyden_buffer::{BufferState, SlotId};
use leyden_ftl::page_mapped::FtlState;
use leyden_sim::Time;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Config, ConfigError, Payload, Ssd};

const MAGIC: &[u8; 8] = b"LEYDSNAP";
/// Bumped with every change of the layout.
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 8 + 4 + 1 + 8;

/// Why a snapshot could not be saved or loaded.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// Reading or writing failed.
    #[error("cannot read or write the snapshot")]
    Io(#[from] io::Error),
    /// It is not a snapshot, or of another version or payload.
    #[error("not a snapshot for this run: {0}; delete it and precondition again")]
    Foreign(String),
    /// It is damaged.
    #[error("the snapshot is corrupt: {0}; delete it and precondition again")]
    Corrupt(String),
    /// The configuration is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

#[derive(Serialize, Deserialize)]
#[serde(bound = "P: Payload")]
struct State<P: Payload> {
    now: Time,
    next_id: u64,
    digest: leyden_sim::Digest,
    staged: Vec<Vec<SlotId>>,
    cursor: u32,
    buffer: BufferState<P>,
    ftl: FtlState<P>,
}

impl<P: Payload> Ssd<P> {
    /// Saves the drive's state.
    ///
    /// # Panics
    /// If the drive is not idle.
    pub fn save(&self, to: &mut impl Write) -> Result<(), SnapshotError> {
        assert!(self.is_idle(), "the drive is at work");
        let (staged, cursor) = self.writer.staged();
        let state = State {
            now: self.now,
            next_id: self.next_id,
            digest: self.digest,
            staged: staged.to_vec(),
            cursor,
            buffer: self.writer.buffer.state(),
            ftl: self.ftl.state(),
        };
        let body = postcard::to_stdvec(&state).map_err(io::Error::other)?;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.push(P::KIND);
        header.extend_from_slice(&(body.len() as u64).to_le_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header);
        crc.update(&body);
        to.write_all(&header)?;
        to.write_all(&body)?;
        to.write_all(&crc.finalize().to_le_bytes())?;
        Ok(())
    }

    /// A drive with a saved state. `config` and `seed` are those it was saved with.
    pub fn load(config: &Config, seed: u64, from: &mut impl Read) -> Result<Self, SnapshotError> {
        let mut ssd = Self::new(config, seed)?;
        let body = read_body(from, P::KIND)?;
        let state: State<P> = postcard::from_bytes(&body)
            .map_err(|error| SnapshotError::Corrupt(error.to_string()))?;
        let foreign = || SnapshotError::Foreign("it is of a drive of another shape".to_owned());
        if !ssd.writer.restore(state.staged, state.cursor)
            || !ssd.writer.buffer.restore(state.buffer)
            || !ssd.ftl.fits(&state.ftl)
        {
            return Err(foreign());
        }
        ssd.ftl.restore(state.ftl).map_err(|error| SnapshotError::Corrupt(error.to_string()))?;
        (ssd.now, ssd.next_id, ssd.digest) = (state.now, state.next_id, state.digest);
        ssd.writer.wake(&ssd.ftl);
        Ok(ssd)
    }
}

/// Reads the header and the body, and checks both.
fn read_body(from: &mut impl Read, kind: u8) -> Result<Vec<u8>, SnapshotError> {
    let short = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SnapshotError::Corrupt("it ends too early".to_owned()),
        _ => SnapshotError::Io(error),
    };
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header).map_err(short)?;
    if &header[..8] != MAGIC {
        return Err(SnapshotError::Foreign("it does not begin with LEYDSNAP".to_owned()));
    }
    let version = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
    if version != VERSION {
        let what = format!("it has format version {version}, this Leyden reads {VERSION}");
        return Err(SnapshotError::Foreign(what));
    }
    if header[12] != kind {
        return Err(SnapshotError::Foreign(
            "it was saved with run.stamps set otherwise".to_owned(),
        ));
    }
    let length = u64::from_le_bytes(header[13..21].try_into().expect("eight bytes"));
    // Not allocated up front: a corrupt length must not ask for all memory.
    let mut body = Vec::new();
    from.take(length).read_to_end(&mut body)?;
    if body.len() as u64 != length {
        return Err(SnapshotError::Corrupt("it ends too early".to_owned()));
    }
    let mut expected = [0; 4];
    from.read_exact(&mut expected).map_err(short)?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header);
    crc.update(&body);
    if crc.finalize() != u32::from_le_bytes(expected) {
        return Err(SnapshotError::Corrupt("its checksum does not match".to_owned()));
    }
    Ok(body)
}
