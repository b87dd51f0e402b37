//! Any bytes as a device that a journal is looked for on.

use super::{Journal, MAX_READS, Next, Search};

/// Looks for a journal on a device that holds `data`, over and over.
///
/// # Panics
/// If a search does not keep what [`super`] says of it.
pub fn search(data: &[u8]) {
    let Some((&log_size, data)) = data.split_first() else { return };
    // Much larger than the bytes: superblocks that point far are not all beyond the end.
    let capacity_bytes = 4096_u64 << (log_size % 40);
    let (mut search, mut range) = Search::begin(capacity_bytes);
    for _ in 0..MAX_READS {
        assert!(range.end <= capacity_bytes, "{range:?} is beyond the end");
        match search.read(&at(data, range.start, range.end - range.start)) {
            Next::Read(next) => range = next,
            Next::Found(journal) => return check(&journal, capacity_bytes),
        }
    }
    panic!("more than {MAX_READS} reads");
}

/// Bytes of a device that holds `data` again and again.
fn at(data: &[u8], from: u64, length: u64) -> Vec<u8> {
    if data.is_empty() {
        return vec![0; length as usize];
    }
    let from = (from % data.len() as u64) as usize;
    data.iter().copied().cycle().skip(from).take(length as usize).collect()
}

fn check(journal: &Journal, capacity_bytes: u64) {
    let Journal::At(ranges) = journal else { return };
    assert!(ranges.iter().all(|range| range.start < range.end), "an empty range");
    assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "out of order");
    assert!(ranges.last().is_some_and(|last| last.end <= capacity_bytes), "beyond the end");
    assert!(journal.contains(ranges[0].start) && !journal.contains(capacity_bytes));
    assert!(journal.bytes() > 0);
}
