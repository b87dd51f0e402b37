//! Contents of mapping units: the out-of-band area and the content of each.

use std::fmt::Debug;
use std::ops::Range;

use leyden_sim::prefetch;
use leyden_sim::sparse::{self, Runs, Sparse};
use serde::de::DeserializeOwned;
use serde::ser::{Error as _, SerializeStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{BlockId, Geometry, Lpn, Ppa};

/// The content of a mapping unit besides its OOB entry. Garbage collection clones it.
pub trait Content:
    Clone + Default + Debug + PartialEq + Serialize + DeserializeOwned + 'static
{
}

/// Units of a chunk: contents come to memory in chunks, when the first unit of one is written.
const CHUNK_UNITS: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 12;

/// The cells. `C` is what a unit stores; a zero-sized type costs nothing.
///
/// The OOB entry of a unit names its owner: the LPN of the data plus one, or 0 where no data of the
/// host's can be read (an erased, padded or torn unit, or a page of the drive's own). On a drive whose
/// recovery may have to find data by it, an entry also holds the data's *version*: the order in which
/// the host's writes were programmed, which a copy keeps.
///
/// An empty drive takes next to no memory, whatever its size: what was never written is never touched, nor saved.
#[derive(Clone, Debug)]
pub(crate) struct Cells<C> {
    owners: Vec<u32>,
    /// Empty unless recovery may need them.
    versions: Vec<u64>,
    /// By chunk. Of a chunk in which nothing was ever written it is empty. None if `C` has no size.
    content: Vec<Box<[C]>>,
    /// A bit for each chunk in which something was written; the other chunks are as new.
    begun: Vec<u64>,
}

const fn place(unit: Ppa) -> (usize, usize) {
    (unit.index() >> CHUNK_BITS, unit.index() % CHUNK_UNITS)
}

/// The chunks in which `units` lie.
fn chunks_of(units: &Range<usize>) -> Range<usize> {
    let first = units.start >> CHUNK_BITS;
    if units.is_empty() { first..first } else { first..units.end.div_ceil(CHUNK_UNITS) }
}

impl<C: Content> Cells<C> {
    /// Erased cells. The memory is only touched as it is written.
    pub(crate) fn new(geometry: &Geometry, with_versions: bool) -> Self {
        let units = geometry.units() as usize;
        let chunks = units.div_ceil(CHUNK_UNITS);
        Self {
            owners: vec![0; units],
            versions: vec![0; if with_versions { units } else { 0 }],
            content: vec![Box::default(); if size_of::<C>() > 0 { chunks } else { 0 }],
            begun: vec![0; chunks.div_ceil(64)],
        }
    }

    #[inline]
    pub(crate) fn lpn(&self, unit: Ppa) -> Option<Lpn> {
        self.owners[unit.index()].checked_sub(1).map(Lpn)
    }

    /// Brings the owner of `unit` near.
    #[inline]
    pub(crate) fn expect_lpn(&self, unit: Ppa) {
        prefetch(&self.owners, unit.index());
    }

    pub(crate) fn has_versions(&self) -> bool {
        !self.versions.is_empty()
    }

    /// 0 if versions are not kept.
    #[inline]
    pub(crate) fn version(&self, unit: Ppa) -> u64 {
        self.versions.get(unit.index()).copied().unwrap_or(0)
    }

    /// The contents of `count` units from `first` on, including unreadable ones, without some that
    /// were never written. None if `C` has no size.
    pub(crate) fn contents(&self, first: Ppa, count: u32) -> impl Iterator<Item = &C> {
        let end = first.index() + count as usize;
        chunks_of(&(first.index()..end)).flat_map(move |chunk| {
            let units: &[C] = self.content.get(chunk).map_or(&[], |units| units);
            let at = chunk * CHUNK_UNITS;
            let begin = first.index().saturating_sub(at).min(units.len());
            units[begin..(end - at).clamp(begin, units.len().max(begin))].iter()
        })
    }

    #[inline]
    pub(crate) fn content(&self, unit: Ppa) -> C {
        if size_of::<C>() == 0 {
            return C::default();
        }
        let (chunk, at) = place(unit);
        self.content[chunk].get(at).cloned().unwrap_or_default()
    }

    /// Stores `units` of one version, from `first` on.
    #[inline]
    pub(crate) fn write(
        &mut self,
        first: Ppa,
        version: u64,
        units: impl ExactSizeIterator<Item = (Lpn, C)>,
    ) {
        let places = first.index()..first.index() + units.len();
        for chunk in chunks_of(&places) {
            self.want(chunk);
        }
        if !self.versions.is_empty() {
            self.versions[places.clone()].fill(version);
        }
        let mut unit = first;
        for (owner, (lpn, content)) in self.owners[places].iter_mut().zip(units) {
            *owner = lpn.0 + 1;
            if size_of::<C>() > 0 {
                let (chunk, at) = place(unit);
                self.content[chunk][at] = content;
                unit.0 += 1;
            }
        }
    }

    /// Stores in `to` what `from` holds, with its version. Returns whose data it is; `None` if it is none of the host's.
    #[inline]
    pub(crate) fn copy(&mut self, from: Ppa, to: Ppa) -> Option<Lpn> {
        let (chunk, at) = place(to);
        self.want(chunk);
        self.owners[to.index()] = self.owners[from.index()];
        if !self.versions.is_empty() {
            self.versions[to.index()] = self.versions[from.index()];
        }
        if size_of::<C>() > 0 {
            self.content[chunk][at] = self.content(from);
        }
        self.lpn(from)
    }

    #[inline]
    fn has_begun(&self, chunk: usize) -> bool {
        self.begun[chunk / 64] >> (chunk % 64) & 1 == 1
    }

    /// Something is to be written in `chunk`.
    #[inline]
    fn want(&mut self, chunk: usize) {
        if !self.has_begun(chunk) {
            self.begin(chunk);
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self, chunk: usize) {
        self.begun[chunk / 64] |= 1 << (chunk % 64);
        if size_of::<C>() > 0 {
            self.content[chunk] = vec![C::default(); self.units_of(chunk)].into();
        }
    }

    fn units_of(&self, chunk: usize) -> usize {
        CHUNK_UNITS.min(self.owners.len() - chunk * CHUNK_UNITS)
    }

    /// Stores nothing that can be read: padding, or what a failed program left.
    #[inline]
    pub(crate) fn pad(&mut self, unit: Ppa) {
        let (chunk, _) = place(unit);
        if self.has_begun(chunk) {
            self.owners[unit.index()] = 0;
            self.spoil(unit);
        }
    }

    /// Makes the unit's data unreadable; its out-of-band area stays.
    #[inline]
    pub(crate) fn spoil(&mut self, unit: Ppa) {
        let (chunk, at) = place(unit);
        if let Some(content) = self.content.get_mut(chunk).and_then(|units| units.get_mut(at)) {
            *content = C::default();
        }
    }

    pub(crate) fn erase(&mut self, geometry: &Geometry, block: BlockId) {
        let first = geometry.first_unit_of_block(block).index();
        let end = first + geometry.units_per_block() as usize;
        for chunk in chunks_of(&(first..end)) {
            let at = chunk * CHUNK_UNITS;
            let units = if self.has_begun(chunk) { self.units_of(chunk) } else { 0 };
            let (begin, end) = (first.saturating_sub(at).min(units), (end - at).min(units));
            self.owners[at..][begin..end].fill(0);
            if size_of::<C>() > 0 {
                self.content[chunk][begin..end].fill(C::default());
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let content = self.owners.len() * size_of::<C>();
        (self.owners.len() * 4 + self.versions.len() * 8 + content) as u64
    }

    /// Where each chunk begins in which anything was written, and how many units it has.
    fn used(&self) -> impl Iterator<Item = (usize, usize)> + Clone {
        let all = 0..self.owners.len().div_ceil(CHUNK_UNITS);
        let chunks = all.filter(|&chunk| self.has_begun(chunk));
        chunks.map(|chunk| (chunk * CHUNK_UNITS, self.units_of(chunk)))
    }

    /// Takes over a state of cells of this shape, which are erased; false if it is of others.
    pub(crate) fn restore(&mut self, state: CellsState<'_, C>) -> bool {
        let CellsState::Saved(SavedCells { owners, versions, content }) = state else {
            return false;
        };
        let units = self.owners.len();
        let fits = owners.length() == units
            && versions.length() == self.versions.len()
            && content.length() == units;
        if !fits {
            return false;
        }
        for (unit, owner) in owners.into_values().filter(|&(_, owner)| owner != 0) {
            self.want(unit >> CHUNK_BITS);
            self.owners[unit] = owner;
        }
        for (unit, version) in versions.into_values().filter(|&(_, version)| version != 0) {
            self.want(unit >> CHUNK_BITS);
            self.versions[unit] = version;
        }
        let default = C::default();
        for (unit, content) in content.into_values().filter(|(_, content)| *content != default) {
            self.want(unit >> CHUNK_BITS);
            self.content[unit >> CHUNK_BITS][unit % CHUNK_UNITS] = content;
        }
        true
    }
}

/// The saved state of cells: borrowed to save it, or loaded.
#[derive(Debug)]
pub(crate) enum CellsState<'a, C> {
    Here(&'a Cells<C>),
    Saved(SavedCells<C>),
}

/// Cells that were loaded: they are as long as the file says.
#[derive(Debug, Deserialize)]
#[serde(bound = "C: Content")]
pub(crate) struct SavedCells<C> {
    #[serde(deserialize_with = "sparse::load")]
    owners: Runs<u32>,
    #[serde(deserialize_with = "sparse::load")]
    versions: Runs<u64>,
    #[serde(deserialize_with = "sparse::load")]
    content: Runs<C>,
}

/// Saved are the chunks in which anything was written.
impl<C: Content> Serialize for CellsState<'_, C> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self::Here(cells) = self else {
            return Err(S::Error::custom("loaded cells are saved as a medium's"));
        };
        let of = cells.used();
        let versions = of.clone().filter(|_| cells.has_versions());
        let content = of.clone().filter(|_| size_of::<C>() > 0);
        let mut all = to.serialize_struct("Cells", 3)?;
        let pieces = of.map(|(at, units)| (at, &cells.owners[at..][..units]));
        all.serialize_field("owners", &Sparse { length: cells.owners.len(), pieces })?;
        let pieces = versions.map(|(at, units)| (at, &cells.versions[at..][..units]));
        all.serialize_field("versions", &Sparse { length: cells.versions.len(), pieces })?;
        let pieces = content.map(|(at, _)| (at, &*cells.content[at >> CHUNK_BITS]));
        all.serialize_field("content", &Sparse { length: cells.owners.len(), pieces })?;
        all.end()
    }
}

impl<'de, C: Content> Deserialize<'de> for CellsState<'_, C> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        SavedCells::deserialize(from).map(Self::Saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Letter(u16);

    impl Content for Letter {}

    impl From<u16> for Letter {
        fn from(number: u16) -> Self {
            Self(number)
        }
    }

    /// Content without a size: owners and versions must be kept, and saved, as with any other.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Nothing;

    impl Content for Nothing {}

    impl From<u16> for Nothing {
        fn from(_: u16) -> Self {
            Self
        }
    }

    /// Two blocks and a half to a chunk: chunks begin and end amid blocks, and the last one is short.
    fn geometry() -> Geometry {
        Geometry::new(1, 1, 7, (CHUNK_UNITS * 2 / 5) as u32, 1, 4_096)
    }

    /// Where chunks and blocks begin and end, and beside that.
    const UNITS: &[u32] =
        &[0, 1, 1_637, 1_638, 3_275, 3_276, 4_095, 4_096, 4_097, 8_191, 8_192, 11_465];

    /// The slow twin: a record for each unit.
    type Twin<C> = Vec<(u32, u64, C)>;

    /// A kind of step, its unit, and a number.
    type Step = (u8, u32, u16);

    fn step<C>(cells: &mut Cells<C>, twin: &mut Twin<C>, (kind, unit, number): Step)
    where
        C: Content + Copy + From<u16>,
    {
        let (at, with_versions) = (unit as usize, cells.has_versions());
        match kind {
            0..=2 => {
                let version = u64::from(number);
                let places = &mut twin[at..];
                let count = places.len().min(usize::from(number % 4));
                let numbers = (number..).take(count);
                let units: Vec<_> = numbers.map(|it| (Lpn(it.into()), C::from(it))).collect();
                cells.write(Ppa(unit), version, units.iter().copied());
                let version = if with_versions { version } else { 0 };
                for (place, (lpn, content)) in places.iter_mut().zip(units) {
                    *place = (lpn.0 + 1, version, content);
                }
            }
            3 => {
                cells.pad(Ppa(unit));
                (twin[at].0, twin[at].2) = (0, C::default());
            }
            4 => {
                cells.spoil(Ppa(unit));
                twin[at].2 = C::default();
            }
            5 => {
                let from = usize::from(number) % twin.len();
                assert_eq!(cells.copy(Ppa(from as u32), Ppa(unit)), cells.lpn(Ppa(from as u32)));
                twin[at] = twin[from];
            }
            _ => {
                let block = geometry().block_of(Ppa(unit));
                cells.erase(&geometry(), block);
                let first = geometry().first_unit_of_block(block).index();
                for it in &mut twin[first..][..geometry().units_per_block() as usize] {
                    (it.0, it.2) = (0, C::default());
                }
            }
        }
    }

    fn agree<C: Content>(cells: &Cells<C>, twin: &Twin<C>) -> Result<(), TestCaseError> {
        for (unit, (owner, version, content)) in (0..).map(Ppa).zip(twin) {
            prop_assert_eq!(cells.lpn(unit), owner.checked_sub(1).map(Lpn));
            prop_assert_eq!(cells.version(unit), *version);
            prop_assert_eq!(&cells.content(unit), content);
        }
        Ok(())
    }

    fn are_right<C>(
        with_versions: bool,
        steps: &[Step],
        (first, count): (u32, u32),
    ) -> Result<(), TestCaseError>
    where
        C: Content + Copy + From<u16>,
    {
        let mut cells = Cells::<C>::new(&geometry(), with_versions);
        let mut twin = vec![(0, 0, C::default()); geometry().units() as usize];
        for &step_of in steps {
            step(&mut cells, &mut twin, step_of);
        }
        agree(&cells, &twin)?;
        let count = count.min(geometry().units() - first);
        let is_set = |content: &C| *content != C::default();
        let found: Vec<C> = cells.contents(Ppa(first), count).copied().filter(is_set).collect();
        let range = first as usize..(first + count) as usize;
        let held: Vec<C> = twin[range].iter().map(|it| it.2).filter(is_set).collect();
        prop_assert_eq!(found, held);

        let saved = serde_json::to_vec(&CellsState::Here(&cells)).unwrap();
        let mut loaded = Cells::<C>::new(&geometry(), with_versions);
        prop_assert!(loaded.restore(serde_json::from_slice(&saved).unwrap()));
        agree(&loaded, &twin)?;
        prop_assert_eq!(serde_json::to_vec(&CellsState::Here(&loaded)).unwrap(), saved.clone());
        let mut other = Cells::<C>::new(&geometry(), !with_versions);
        prop_assert!(!other.restore(serde_json::from_slice(&saved).unwrap()));
        Ok(())
    }

    /// As a dump does for each page that holds something else than units.
    #[test]
    fn no_units_begin_no_chunk() {
        let mut cells = Cells::<Letter>::new(&geometry(), true);
        cells.write(Ppa(5), 7, std::iter::empty());
        assert_eq!(cells.used().count(), 0);
    }

    proptest! {
        #[test]
        fn behave_like_a_record_for_each_unit_and_come_back_from_a_file(
            with_versions: bool,
            steps in proptest::collection::vec((0_u8..7, proptest::sample::select(UNITS), 1_u16..60_000), 0..40),
            range in (0..geometry().units(), 0..geometry().units()),
        ) {
            are_right::<Letter>(with_versions, &steps, range)?;
            are_right::<Nothing>(with_versions, &steps, range)?;
        }
    }
}
