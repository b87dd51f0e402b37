//! The mapping table on flash: its pages, and pages of its journal, as bytes.
//!
//! Little-endian. A mapping page: `settled_below` and `records_below` (8 bytes each), then 4 bytes for
//! each entry: the address plus one, or 0 where nothing is mapped. A page of the journal: 8 bytes for each
//! record, the logical page and the entry.

use leyden_nand::{Lpn, Ppa};

use super::Record;
use super::journal::RECORD_BYTES;

/// The contents of a mapping page on flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedPage {
    /// Every write with a version below this one had been mapped, or superseded, when it was written:
    /// an entry that says "not mapped" is right about them.
    pub settled_below: u64,
    /// Every record of the journal before this one is contained in it.
    pub records_below: u64,
    /// The entries: the address plus one, or 0 where nothing is mapped.
    pub entries: Box<[u32]>,
}

impl SavedPage {
    /// As a flash page holds it.
    pub fn encode(&self) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(16 + self.entries.len() * 4);
        bytes.extend(self.settled_below.to_le_bytes());
        bytes.extend(self.records_below.to_le_bytes());
        bytes.extend(self.entries.iter().flat_map(|entry| entry.to_le_bytes()));
        bytes.into_boxed_slice()
    }

    /// Decodes [`SavedPage::encode`]; `None` if `bytes` are something else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (settled_below, rest) = bytes.split_first_chunk()?;
        let (records_below, rest) = rest.split_first_chunk()?;
        Some(Self {
            settled_below: u64::from_le_bytes(*settled_below),
            records_below: u64::from_le_bytes(*records_below),
            entries: words(rest)?.collect(),
        })
    }
}

/// Records of the journal, as a flash page holds them.
pub fn encode_records(records: &[Record]) -> Box<[u8]> {
    let words = |record: &Record| [record.lpn.0, record.unit.map_or(0, |unit| unit.0 + 1)];
    records.iter().flat_map(words).flat_map(u32::to_le_bytes).collect()
}

/// Decodes [`encode_records`]; `None` if `bytes` are something else.
pub fn decode_records(bytes: &[u8]) -> Option<Box<[Record]>> {
    if !bytes.len().is_multiple_of(RECORD_BYTES as usize) {
        return None;
    }
    let mut words = words(bytes)?;
    let record = || Some((words.next()?, words.next()?));
    let pairs = std::iter::from_fn(record);
    Some(
        pairs
            .map(|(lpn, unit)| Record { lpn: Lpn(lpn), unit: unit.checked_sub(1).map(Ppa) })
            .collect(),
    )
}

fn words(bytes: &[u8]) -> Option<impl Iterator<Item = u32> + '_> {
    let (words, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| words.iter().map(|&word| u32::from_le_bytes(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            settled_below: u64, records_below: u64, entries in proptest::collection::vec(any::<u32>(), 0..50),
        ) {
            let page = SavedPage { settled_below, records_below, entries: entries.into() };
            prop_assert_eq!(SavedPage::decode(&page.encode()), Some(page.clone()));
            let record = |&entry: &u32| {
                Record { lpn: Lpn(entry), unit: (entry % 3 > 0).then_some(Ppa(entry / 2)) }
            };
            let records: Box<[_]> = page.entries.iter().map(record).collect();
            prop_assert_eq!(decode_records(&encode_records(&records)), Some(records));
        }

        #[test]
        fn anything_is_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            let page = SavedPage::decode(&bytes);
            prop_assert_eq!(page.is_some(), bytes.len() >= 16 && bytes.len().is_multiple_of(4));
            prop_assert_eq!(decode_records(&bytes).is_some(), bytes.len().is_multiple_of(8));
        }
    }
}
