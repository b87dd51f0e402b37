//! A drive's state at rest, saved and loaded.
//!
//! Layout, little-endian: magic `LEYDSNAP`, format version (u32), kind of payload and of drive (u8), length of
//! the body (u64), the body ([`State`], in postcard's encoding), CRC-32 of everything before it
//! (u32). A snapshot belongs to a configuration: its loader must give the one it was made with.

use std::io::{self, BufReader, BufWriter, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::controller::{Controller, ControllerState, Namespace};
use crate::{Payload, SnapshotError};

const MAGIC: &[u8; 8] = b"LEYDSNAP";
/// Bumped with every change of the layout.
const VERSION: u32 = 9;
/// The oldest that is read. 8 saves long arrays whole, which `sparse` reads, too; 7 differs from 8 in what `harvest` keeps: a
/// drive with another schedule is read as one of today.
const VERSION_LEAST: u32 = 7;
const HEADER_BYTES: usize = 8 + 4 + 1 + 8;
/// The body is read and written in pieces of this size.
const CHUNK_BYTES: usize = 1 << 20;

/// In the byte that tells kinds of payload apart: the drive is a zoned one.
const ZONED: u8 = 128;

/// A namespace whose state at rest can be saved.
pub(crate) trait Resting<P: Payload>: Namespace<P> {
    /// True of a zoned one.
    const IS_ZONED: bool;
    /// The state that outlives an idle moment, borrowed.
    type State<'a>: Serialize
    where
        Self: 'a;
    /// The same, owned.
    type Loaded: DeserializeOwned;

    /// The state.
    fn state(&self) -> Self::State<'_>;

    /// Takes over a state. `None` if it is of a drive of another shape.
    ///
    /// # Errors
    /// Says how it contradicts itself.
    fn restore(&mut self, state: Self::Loaded) -> Option<Result<(), String>>;
}

#[derive(Serialize, Deserialize)]
struct State<S> {
    controller: ControllerState,
    namespace: S,
}

/// The byte that tells kinds of payload and of drive apart.
const fn kind<P: Payload, N: Resting<P>>() -> u8 {
    if N::IS_ZONED { P::KIND | ZONED } else { P::KIND }
}

/// Saves a drive's state, in a stream: no copy of it is made.
///
/// # Panics
/// If the drive is not idle.
pub(crate) fn save<P: Payload, N: Resting<P>>(
    drive: &Controller<P, N>,
    to: &mut dyn Write,
) -> Result<(), SnapshotError> {
    assert!(drive.is_idle(), "the drive is at work");
    let state = State { controller: drive.state(), namespace: drive.namespace().state() };
    let mut length = Counting(0);
    write_body(&state, &mut length)?;

    let mut to = Hashing::new(to);
    to.write_all(MAGIC)?;
    to.write_all(&VERSION.to_le_bytes())?;
    to.write_all(&[kind::<P, N>()])?;
    to.write_all(&length.0.to_le_bytes())?;
    write_body(&state, &mut to)?;
    let crc = to.crc.clone().finalize();
    to.inner.write_all(&crc.to_le_bytes())?;
    Ok(())
}

/// Writes `state`. Through a table, so that all that is written is compiled for one type of writer.
fn write_body(state: &impl Serialize, to: &mut dyn Write) -> Result<(), SnapshotError> {
    let mut body = BufWriter::with_capacity(CHUNK_BYTES, to);
    if postcard::to_io(state, &mut body).is_err() {
        return Err(body_error(&mut body));
    }
    body.flush()?;
    Ok(())
}

/// Gives `drive`, which is new, a saved state.
pub(crate) fn load<P: Payload, N: Resting<P>>(
    mut drive: Controller<P, N>,
    from: &mut dyn Read,
) -> Result<Controller<P, N>, SnapshotError> {
    let state: State<N::Loaded> = read_state(from, kind::<P, N>())?;
    let foreign = || SnapshotError::Foreign("it is of a drive of another shape".to_owned());
    let namespace = drive.restore(&state.controller);
    let restored = namespace.restore(state.namespace).ok_or_else(foreign)?;
    restored.map_err(SnapshotError::Corrupt)?;
    Ok(drive)
}

/// Reads header, body and checksum, and checks all three.
fn read_state<S: DeserializeOwned>(
    from: &mut dyn Read,
    kind: u8,
) -> Result<State<S>, SnapshotError> {
    let mut from = Hashing::new(from);
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header).map_err(short)?;
    let length = check_header(&header, kind)?;

    let body = BufReader::with_capacity(CHUNK_BYTES, (&mut from).take(length));
    let mut scratch = [0; 16]; // for texts and bytes, of which there are none
    let (state, (mut rest, _)) =
        postcard::from_io((body, &mut scratch[..])).map_err(|error| match error {
            postcard::Error::DeserializeUnexpectedEnd => {
                SnapshotError::Corrupt("it ends too early".to_owned())
            }
            other => SnapshotError::Corrupt(other.to_string()),
        })?;
    if rest.read(&mut [0])? > 0 {
        return Err(SnapshotError::Corrupt("it is longer than its content".to_owned()));
    }
    drop(rest);
    let crc = from.crc.clone().finalize();
    let mut expected = [0; 4];
    from.inner.read_exact(&mut expected).map_err(short)?;
    if crc != u32::from_le_bytes(expected) {
        return Err(SnapshotError::Corrupt("its checksum does not match".to_owned()));
    }
    if from.inner.read(&mut [0])? > 0 {
        return Err(SnapshotError::Corrupt("there is something behind its end".to_owned()));
    }
    Ok(state)
}

/// Checks the header; returns the length of the body.
fn check_header(header: &[u8; HEADER_BYTES], kind: u8) -> Result<u64, SnapshotError> {
    if &header[..8] != MAGIC {
        return Err(SnapshotError::Foreign("it does not begin with LEYDSNAP".to_owned()));
    }
    let version = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
    if !(VERSION_LEAST..=VERSION).contains(&version) {
        let what = format!("it has format version {version}, this Leyden reads {VERSION}");
        return Err(SnapshotError::Foreign(what));
    }
    if header[12] != kind {
        return Err(SnapshotError::Foreign(
            "it is of a drive of another kind, or was saved with run.stamps set otherwise"
                .to_owned(),
        ));
    }
    Ok(u64::from_le_bytes(header[13..21].try_into().expect("eight bytes")))
}

/// Makes the length and the checksum of a damaged snapshot right: without it, no changed byte gets past
/// them to what lies behind.
pub(crate) fn reseal(data: &mut [u8]) {
    let Some(body) = data.len().checked_sub(HEADER_BYTES + 4) else { return };
    data[13..21].copy_from_slice(&(body as u64).to_le_bytes());
    let end = data.len() - 4;
    let crc = crc32fast::hash(&data[..end]);
    data[end..].copy_from_slice(&crc.to_le_bytes());
}

fn short(error: io::Error) -> SnapshotError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => SnapshotError::Corrupt("it ends too early".to_owned()),
        _ => SnapshotError::Io(error),
    }
}

/// The error below postcard, which does not report it: writing again does.
fn body_error(body: &mut impl Write) -> SnapshotError {
    let error = body.flush().err();
    SnapshotError::Io(error.unwrap_or_else(|| io::Error::other("the snapshot was not written")))
}

/// Counts bytes.
struct Counting(u64);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passes bytes through, and their checksum along.
struct Hashing<T> {
    inner: T,
    crc: crc32fast::Hasher,
}

impl<T> Hashing<T> {
    fn new(inner: T) -> Self {
        Self { inner, crc: crc32fast::Hasher::new() }
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.crc.update(&bytes[..read]);
        Ok(read)
    }
}
