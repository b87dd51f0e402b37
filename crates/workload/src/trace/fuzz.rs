//! Entry points of the fuzz targets and of the short fuzz test.
//!
//! **What lives here**: reading any bytes as any format, and checking what every reader promises; changing
//! bytes, for short tests of this and other inputs. **What doesn't**: where the bytes come from.
//!
//! **Invariants**: none may panic but for a broken promise.

use std::io::Cursor;
use std::path::Path;

use leyden_device::Op;
use leyden_sim::{Rng, Time};

use crate::{Class, ClassNames, Request};

use super::read::compact::{BLOCK_HEADER_BYTES, HEADER_BYTES};
use super::{Devices, ErrorKind, Format, OpenOptions, Reader, TraceError, WriteOptions, Writer};

/// How the seeds of the format `columns` are laid out.
pub const COLUMNS: &str = "time:ms;op:r/w/f+sync/d/z/!n;lba:4096;len:1;device;-;..";

/// How a file in `format` is read here.
///
/// # Panics
/// Never: the columns are right.
pub fn options(format: Option<Format>) -> OpenOptions {
    let columns = (format == Some(Format::Columns)).then(|| COLUMNS.parse().expect("right"));
    OpenOptions { format, columns, devices: Devices::Overlay, ..OpenOptions::default() }
}

/// Reads all of `data` as `format` (or as what it looks like), and returns how many requests it
/// held, or what was wrong.
///
/// # Panics
/// If the reader breaks a promise: times that run backwards, requests without sectors (other than flushes and zone management), ranges beyond 2^64
/// bytes, more after an error.
pub fn read_all(format: Option<Format>, data: &[u8]) -> Result<u64, TraceError> {
    let options = options(format);
    let bytes = Box::new(Cursor::new(data.to_vec()));
    let mut reader = Reader::new(Path::new("(fuzz)"), bytes, &options)?;
    let mut requests = 0u64;
    let mut last = Time::ZERO;
    let ended = loop {
        let request = match reader.next() {
            None => break Ok(requests),
            Some(Err(error)) => break Err(error),
            Some(Ok(request)) => request,
        };
        assert!(requests > 0 || request.at == Time::ZERO);
        assert!(request.at >= last, "time ran backwards");
        last = request.at;
        match request.op {
            Op::Flush => {} // of a file or of everything
            Op::Zone(_) => assert_eq!(request.sectors, 0),
            _ => assert!(request.sectors > 0),
        }
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        assert!(end.is_some_and(|end| end <= 1 << 55));
        let class = reader.classes().name(request.class);
        assert!(class.is_some_and(|name| (1..=ClassNames::MOST_BYTES).contains(&name.len())));
        requests += 1;
    };
    assert!(reader.next().is_none(), "something followed the end");
    assert_eq!(reader.counts().requests, requests);
    assert!(ended.is_err() || requests > 0, "an empty trace must be an error");
    if let Err(error) = &ended {
        assert!(error.to_string().len() < 2048);
        assert!(!matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Write(_)));
    }
    ended
}

/// Reads all of `data`; if it is a trace, writes it as our text and as the compact format, and reads these.
///
/// # Panics
/// If anything of a request, or the name of a class, is not what it was.
pub fn write_back(format: Format, data: &[u8]) {
    let Ok(found) = everything(Some(format), data.to_vec(), Format::Csv) else { return };
    for format in [Format::Compact, Format::Csv] {
        let written = everything(None, found.1.clone(), format).expect("our own text");
        assert_eq!(written.0, found.0, "as it was");
        let back = everything(None, written.1, Format::Csv).expect("what was written");
        assert_eq!(back.0, found.0, "{format}");
    }
}

/// The requests of a trace with their classes' names, and the trace written as `to`.
#[expect(clippy::type_complexity, reason = "used here only")]
fn everything(
    format: Option<Format>,
    data: Vec<u8>,
    to: Format,
) -> Result<(Vec<(Request, String)>, Vec<u8>), TraceError> {
    let options = options(format);
    let reader = Reader::new(Path::new("(fuzz)"), Box::new(Cursor::new(data)), &options)?;
    let classes = reader.classes().clone();
    let mut writer =
        Writer::in_memory(&WriteOptions { classes: classes.clone(), ..WriteOptions::new(to) })?;
    let mut requests = Vec::new();
    for request in reader {
        let request = request?;
        writer.write(&request)?;
        let name = classes.name(request.class).unwrap_or_default().to_owned();
        // By number, classes of two readers differ.
        requests.push((Request { class: Class::Unknown, ..request }, name));
    }
    let (bytes, written) = writer.into_bytes()?;
    assert!(written.lost.is_nothing(), "{:?}", written.lost);
    Ok((requests, bytes))
}

/// Changes `bytes` somewhere: a bit, a byte, an end, a gap, a piece of `other`, or one of `tokens`.
///
/// # Panics
/// If there are no tokens.
pub fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8], tokens: &[&[u8]]) {
    let mut below = |end: usize| rng.below(end.max(1) as u64) as usize;
    let at = below(bytes.len());
    match below(7) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << below(8),
        1 if !bytes.is_empty() => bytes[at] = below(256) as u8,
        2 => bytes.truncate(at),
        3 => {
            let to = (at + below(16)).min(bytes.len());
            bytes.drain(at.min(to)..to);
        }
        4 => {
            let from = below(other.len());
            let to = (from + below(64)).min(other.len());
            bytes.splice(at..at, other[from..to].iter().copied());
        }
        _ => {
            let token = tokens[below(tokens.len())];
            bytes.splice(at..at, token.iter().copied());
        }
    }
}

/// Makes the checksums of a compact trace right, as far as its blocks can be followed: without it,
/// hardly a changed byte gets past them to what lies behind.
pub fn reseal(data: &mut [u8]) {
    let Some((header, mut rest)) = data.split_at_mut_checked(HEADER_BYTES) else {
        return;
    };
    let crc = crc32fast::hash(&header[..36]);
    header[36..].copy_from_slice(&crc.to_le_bytes());
    while let Some((header, behind)) = rest.split_at_mut_checked(BLOCK_HEADER_BYTES) {
        let mut length = [0; 4];
        length.copy_from_slice(&header[..4]);
        let length = (u32::from_le_bytes(length) as usize).min(behind.len());
        let (payload, behind) = behind.split_at_mut(length);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header[..16]);
        hasher.update(payload);
        header[16..].copy_from_slice(&hasher.finalize().to_le_bytes());
        rest = behind;
    }
}
