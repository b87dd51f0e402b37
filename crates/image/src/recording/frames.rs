//! Frames: records, packed and with a checksum.

use std::io::{self, Read};

use super::error::{RecordingError, damaged};

/// Lengths and checksum before a frame.
const HEAD_BYTES: usize = 12;
/// A frame unpacks to no more than this.
pub(super) const FRAME_MOST: usize = 8 << 20;
/// The fastest that still finds what occurs twice.
const LEVEL: i32 = 1;

/// Records as a frame.
pub(super) fn pack(records: &[u8]) -> io::Result<Vec<u8>> {
    let packed = zstd::bulk::compress(records, LEVEL)?;
    let mut frame = Vec::with_capacity(packed.len() + HEAD_BYTES);
    frame.extend((packed.len() as u32).to_le_bytes());
    frame.extend(crc32fast::hash(&packed).to_le_bytes());
    frame.extend((records.len() as u32).to_le_bytes());
    frame.extend(packed);
    Ok(frame)
}

/// The next frame, unpacked; `None` at the end, or where the file breaks off within a frame.
pub(super) fn next_frame(from: &mut impl Read) -> Result<Option<Vec<u8>>, RecordingError> {
    let mut head = [0; HEAD_BYTES];
    if fill(from, &mut head)? < HEAD_BYTES {
        return Ok(None);
    }
    let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("4 bytes"));
    let (length, checksum, unpacked) = (number(0) as usize, number(4), number(8) as usize);
    if length > FRAME_MOST || unpacked > FRAME_MOST {
        let most = length.max(unpacked);
        return Err(damaged(&format!(
            "a frame of it has {most} bytes, and none has more than {FRAME_MOST}"
        )));
    }
    let mut packed = vec![0; length];
    if fill(from, &mut packed)? < length {
        return Ok(None);
    }
    if crc32fast::hash(&packed) != checksum {
        return Err(damaged("the checksum of a frame does not match"));
    }
    let frame = zstd::bulk::decompress(&packed, unpacked)
        .ok()
        .filter(|frame| frame.len() == unpacked)
        .ok_or_else(|| damaged("a frame of it cannot be unpacked"))?;
    Ok(Some(frame))
}

/// Reads as much as there is, and says how much that was.
pub(super) fn fill(from: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match from.read(&mut bytes[done..]) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
