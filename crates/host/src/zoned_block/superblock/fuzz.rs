//! Any bytes as a device that a journal is looked for on.

use std::ops::Range;

use super::{Journal, MAX_READS, Next, Search};

/// Two devices as [`search`] takes them: what is read of file systems that mkfs has made (`fixtures/make.py`).
pub fn seeds() -> [Vec<u8>; 2] {
    let ext4 = include_bytes!("fixtures/ext4-large-journal.bin");
    let xfs = include_bytes!("fixtures/xfs.bin");
    [[&[20], &ext4[..]].concat(), [&[17], &xfs[..]].concat()]
}

/// Looks for a journal on the device that `data` describes: one byte for its size, 4 KiB x 2^n; then pieces, each its
/// first byte and its length (8 bytes each) and its bytes. What is in no piece is zeroes.
///
/// # Panics
/// If a search does not keep what [`super`] says of it.
pub fn search(data: &[u8]) {
    let Some((&log_size, data)) = data.split_first() else { return };
    let capacity_bytes = 4096_u64 << (log_size % 40);
    let pieces = pieces(data);
    let (mut search, mut range) = Search::begin(capacity_bytes);
    for _ in 0..MAX_READS {
        assert!(range.end <= capacity_bytes, "{range:?} is beyond the end");
        match search.read(&read(&pieces, &range)) {
            Next::Read(next) => range = next,
            Next::Found(journal) => return check(&journal, capacity_bytes),
        }
    }
    panic!("more than {MAX_READS} reads");
}

/// The pieces of a device; the last one ends with the data.
fn pieces(mut data: &[u8]) -> Vec<(u64, &[u8])> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let mut pieces = Vec::new();
    while let Some((head, rest)) = data.split_first_chunk::<16>() {
        let length = number(&head[8..]).min(rest.len() as u64) as usize;
        let (piece, rest) = rest.split_at(length);
        pieces.push((number(&head[..8]), piece));
        data = rest;
    }
    pieces
}

fn read(pieces: &[(u64, &[u8])], range: &Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    for &(first, piece) in pieces {
        let from = first.max(range.start);
        let end = first.saturating_add(piece.len() as u64).min(range.end);
        if from < end {
            let source = &piece[(from - first) as usize..(end - first) as usize];
            bytes[(from - range.start) as usize..(end - range.start) as usize]
                .copy_from_slice(source);
        }
    }
    bytes
}

fn check(journal: &Journal, capacity_bytes: u64) {
    let Journal::At(ranges) = journal else { return };
    assert!(ranges.iter().all(|range| range.start < range.end), "an empty range");
    assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "out of order");
    assert!(ranges.last().is_some_and(|last| last.end <= capacity_bytes), "beyond the end");
    assert!(journal.contains(ranges[0].start) && !journal.contains(capacity_bytes));
    assert!(ranges.iter().all(|range| journal.contains_all(range)) && journal.bytes() > 0);
}
