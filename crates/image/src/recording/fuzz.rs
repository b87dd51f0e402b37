//! Recordings from loose records, and back, for fuzzing.

use super::format::{HEAD_BYTES, head};
use super::frames::{FRAME_MOST, next_frame, pack};

/// A recording with these records in one frame.
pub(crate) fn pack_all(records: &[u8]) -> Vec<u8> {
    let mut bytes = head();
    bytes.extend(pack(&records[..records.len().min(FRAME_MOST)]).expect("memory can be packed"));
    bytes
}

/// All records of a recording.
pub(crate) fn unpack_all(recording: &[u8]) -> Vec<u8> {
    let mut rest = &recording[HEAD_BYTES..];
    let mut records = Vec::new();
    while let Ok(Some(frame)) = next_frame(&mut rest) {
        records.extend(frame);
    }
    records
}
