//! The mapping table: where each logical page lies on flash.

use leyden_nand::{Lpn, Ppa};
use leyden_sim::sparse::{self, Sparse};
use leyden_sim::{Divisor, prefetch};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

/// Bytes of a mapping entry (design, section 4).
pub const ENTRY_BYTES: u32 = 4;

/// A mapping (translation) page: as many consecutive entries as fit in a flash page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MapPage(pub u32);

impl MapPage {
    /// As an array index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One 4-byte entry per logical page, grouped in mapping pages of one flash page each.
///
/// An entry is the address plus one, or 0 where nothing is mapped, so that a new table is memory
/// that was never touched.
#[derive(Clone, Debug, Deserialize)]
pub struct MapTable {
    #[serde(deserialize_with = "sparse::deserialize")]
    entries: Vec<u32>,
    entries_per_page: Divisor,
    /// Mapped entries of each mapping page, so that trimming unmapped space is cheap.
    mapped: Vec<u32>,
    mapped_total: u64,
}

impl MapTable {
    /// A table of `lpns` entries, none mapped, in mapping pages of `entries_per_page`.
    pub fn new(lpns: u32, entries_per_page: u32) -> Self {
        Self {
            entries: vec![0; lpns as usize],
            entries_per_page: Divisor::new(entries_per_page),
            mapped: vec![0; lpns.div_ceil(entries_per_page) as usize],
            mapped_total: 0,
        }
    }

    /// Where `lpn` lies, if it is mapped.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Option<Ppa> {
        self.entries[lpn.index()].checked_sub(1).map(Ppa)
    }

    /// Brings the entry of `lpn` near, which will be asked for or set soon.
    ///
    /// The table is the largest array that is accessed at random: waiting for it would be most of
    /// what a simulated write costs.
    #[inline]
    pub fn expect(&self, lpn: Lpn) {
        prefetch(&self.entries, lpn.index());
    }

    /// Points `lpn` to `ppa`, and returns where it lay before.
    #[inline]
    pub fn set(&mut self, lpn: Lpn, ppa: Ppa) -> Option<Ppa> {
        let old = std::mem::replace(&mut self.entries[lpn.index()], ppa.0 + 1);
        if old == 0 {
            let page = self.page_of(lpn);
            self.mapped[page.index()] += 1;
            self.mapped_total += 1;
        }
        old.checked_sub(1).map(Ppa)
    }

    /// Forgets `lpn`, and returns where it lay.
    pub fn unmap(&mut self, lpn: Lpn) -> Option<Ppa> {
        let old = std::mem::take(&mut self.entries[lpn.index()]).checked_sub(1).map(Ppa)?;
        let page = self.page_of(lpn);
        self.mapped[page.index()] -= 1;
        self.mapped_total -= 1;
        Some(old)
    }

    /// The first mapped page at or after `lpn` and before `end`. Skips whole mapping pages that
    /// hold nothing.
    pub fn next_mapped(&self, lpn: Lpn, end: Lpn) -> Option<Lpn> {
        let mut at = lpn.0;
        while at < end.0 {
            let page = self.page_of(Lpn(at)).0;
            let page_end = end.0.min((page + 1).saturating_mul(self.entries_per_page.get()));
            if self.mapped[page as usize] > 0 {
                let entries = &self.entries[at as usize..page_end as usize];
                if let Some(offset) = entries.iter().position(|&entry| entry != 0) {
                    return Some(Lpn(at + offset as u32));
                }
            }
            at = page_end;
        }
        None
    }

    /// Logical pages.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// True if the table has no entries at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Logical pages that are mapped.
    pub const fn mapped(&self) -> u64 {
        self.mapped_total
    }

    /// Entries of a mapping page.
    pub const fn entries_per_page(&self) -> u32 {
        self.entries_per_page.get()
    }

    /// The mapping page that holds the entry of `lpn`.
    #[inline]
    pub const fn page_of(&self, lpn: Lpn) -> MapPage {
        MapPage(self.entries_per_page.divide(lpn.0))
    }

    /// The logical pages whose entries `page` holds: from the first up to, not including, the second.
    pub fn lpns_of(&self, page: MapPage) -> (Lpn, Lpn) {
        let first = page.0 * self.entries_per_page.get();
        (Lpn(first), Lpn(self.len().min(first.saturating_add(self.entries_per_page.get()))))
    }

    /// True if any entry of `page` is mapped.
    pub fn has_mapped(&self, page: MapPage) -> bool {
        self.mapped[page.index()] > 0
    }

    /// Takes over the entries of `page` from flash ([`MapTable::entries_of`]).
    ///
    /// # Panics
    /// If they are not as many as the page has.
    pub fn load(&mut self, page: MapPage, entries: &[u32]) {
        let (first, end) = self.lpns_of(page);
        self.entries[first.index()..end.index()].copy_from_slice(entries);
        let mapped = entries.iter().filter(|&&entry| entry != 0).count() as u32;
        let before = std::mem::replace(&mut self.mapped[page.index()], mapped);
        self.mapped_total = self.mapped_total + u64::from(mapped) - u64::from(before);
    }

    /// A copy of the entries of `page`, as flash holds them: the address plus one, or 0.
    pub fn entries_of(&self, page: MapPage) -> Box<[u32]> {
        let (first, end) = self.lpns_of(page);
        self.entries[first.index()..end.index()].into()
    }

    /// Mapping pages.
    pub fn pages(&self) -> u32 {
        self.mapped.len() as u32
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        (self.entries.len() + self.mapped.len()) as u64 * 4
    }
}

/// Saved are the mapping pages that map anything.
impl Serialize for MapTable {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let used = (0..self.pages()).map(MapPage).filter(|&page| self.has_mapped(page));
        let pieces = used.map(|page| {
            let (first, end) = self.lpns_of(page);
            (first.index(), &self.entries[first.index()..end.index()])
        });
        let mut all = to.serialize_struct("MapTable", 4)?;
        all.serialize_field("entries", &Sparse { length: self.entries.len(), pieces })?;
        all.serialize_field("entries_per_page", &self.entries_per_page)?;
        all.serialize_field("mapped", &self.mapped)?;
        all.serialize_field("mapped_total", &self.mapped_total)?;
        all.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against the slow twin: an ordered map.
        #[test]
        fn behaves_like_a_map(steps in proptest::collection::vec((0_u8..3, 0_u32..300, 0_u32..1000), 0..300)) {
            let mut table = MapTable::new(300, 16);
            let mut twin = BTreeMap::new();
            for (step, lpn, value) in steps {
                match step {
                    0 => prop_assert_eq!(table.set(Lpn(lpn), Ppa(value)), twin.insert(lpn, value).map(Ppa)),
                    1 => prop_assert_eq!(table.unmap(Lpn(lpn)), twin.remove(&lpn).map(Ppa)),
                    _ => prop_assert_eq!(
                        table.next_mapped(Lpn(lpn), Lpn(300)),
                        twin.range(lpn..).next().map(|(&lpn, _)| Lpn(lpn))
                    ),
                }
                prop_assert_eq!(table.mapped(), twin.len() as u64);
            }
            for lpn in 0..300 {
                prop_assert_eq!(table.get(Lpn(lpn)), twin.get(&lpn).copied().map(Ppa));
            }
            let saved = serde_json::to_vec(&table).unwrap();
            let loaded: MapTable = serde_json::from_slice(&saved).unwrap();
            prop_assert_eq!(&loaded.entries, &table.entries);
            prop_assert_eq!((loaded.mapped, loaded.mapped_total), (table.mapped, table.mapped_total));
        }
    }
}
