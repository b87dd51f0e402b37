//! Long arrays that are mostly default values, saved as the parts that are not, and loaded without touching the rest.
//!
//! An array of a drive has a value for each mapping unit: of a drive of terabytes that is nearly empty, gigabytes of zeroes.
//! Saved is a mark, the length, and runs: where each begins, how long it is, its values. What begins with a number that is
//! not the mark is an array as serde saves one: so older files are read, too.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// No array is so long.
const MARK: u64 = u64::MAX;
/// No array has more values: places on flash have 31 bits.
const LENGTH_MOST: u64 = 1 << 31;
/// Room is made for so many values at once, before they are there.
const PIECE: usize = 4_096;
/// So many default values in a row end a run: a few are shorter than the head of another.
const GAP: usize = 8;

/// A saved array, loaded: its length, and its values but for default ones.
#[derive(Clone, Debug)]
pub struct Runs<T> {
    length: usize,
    /// Of each run its first place and its length, in order; they do not overlap.
    places: Vec<(usize, usize)>,
    /// Of all runs.
    values: Vec<T>,
}

impl<T> Runs<T> {
    /// The array's length.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// The values, and where each belongs.
    pub fn into_values(self) -> impl Iterator<Item = (usize, T)> {
        let places = self.places.into_iter().flat_map(|(begin, count)| begin..begin + count);
        places.zip(self.values)
    }
}

/// Saves an array of `length` values: those of `pieces`, in order, and default values between them.
///
/// # Errors
/// If the serializer fails.
pub fn save<'a, T, S>(
    to: S,
    length: usize,
    pieces: impl Iterator<Item = (usize, &'a [T])> + Clone,
) -> Result<S::Ok, S::Error>
where
    T: Serialize + Default + PartialEq + 'a,
    S: Serializer,
{
    let runs = pieces.flat_map(split);
    let mut all = to.serialize_tuple(usize::MAX)?;
    all.serialize_element(&MARK)?;
    all.serialize_element(&(length as u64))?;
    all.serialize_element(&(runs.clone().count() as u64))?;
    for (begin, values) in runs {
        all.serialize_element(&(begin as u64))?;
        all.serialize_element(&(values.len() as u64))?;
        for value in values {
            all.serialize_element(value)?;
        }
    }
    all.end()
}

/// The runs of a piece.
fn split<T: Default + PartialEq>(
    (begin, values): (usize, &[T]),
) -> impl Iterator<Item = (usize, &[T])> + Clone {
    let mut at = 0;
    std::iter::from_fn(move || {
        let default = T::default();
        let is_set = |value: &T| *value != default;
        let first = at + values[at..].iter().position(is_set)?;
        at = first + 1;
        while let Some(gap) = values[at..].iter().take(GAP).position(is_set) {
            at += gap + 1;
        }
        Some((begin + first, &values[first..at]))
    })
}

/// An array to be [saved](save): its length, and the pieces in which it is not default.
#[derive(Clone, Copy, Debug)]
pub struct Sparse<I> {
    /// Its length.
    pub length: usize,
    /// Where each piece begins, and its values, in order.
    pub pieces: I,
}

impl<'a, T, I> Serialize for Sparse<I>
where
    T: Serialize + Default + PartialEq + 'a,
    I: Iterator<Item = (usize, &'a [T])> + Clone,
{
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        save(to, self.length, self.pieces.clone())
    }
}

/// For `#[serde(with)]`: saves `values`, found by a pass over them.
///
/// # Errors
/// If the serializer fails.
pub fn serialize<T, S>(values: &[T], to: S) -> Result<S::Ok, S::Error>
where
    T: Serialize + Default + PartialEq,
    S: Serializer,
{
    save(to, values.len(), std::iter::once((0, values)))
}

/// For `#[serde(with)]`. What is default is memory that was never touched, if `T` is a number.
///
/// # Errors
/// If it is no array, or memory for it cannot be had.
pub fn deserialize<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: DeserializeOwned + Clone + Default,
    D: Deserializer<'de>,
{
    let loaded: Runs<T> = load(from)?;
    // An array as serde saves one.
    if loaded.values.len() == loaded.length {
        return Ok(loaded.values);
    }
    // A damaged file may give any length: that is an error, and no abort.
    if Vec::<T>::new().try_reserve_exact(loaded.length).is_err() {
        let length = loaded.length;
        return Err(D::Error::custom(format!("there is no memory for {length} values")));
    }
    let mut values = vec![T::default(); loaded.length];
    for (at, value) in loaded.into_values() {
        values[at] = value;
    }
    Ok(values)
}

/// Loads an array that [`save`] or serde's `Vec` has saved.
///
/// # Errors
/// If it is no array.
pub fn load<'de, T, D>(from: D) -> Result<Runs<T>, D::Error>
where
    T: DeserializeOwned + Clone + Default,
    D: Deserializer<'de>,
{
    from.deserialize_tuple(usize::MAX, RunsVisitor(PhantomData))
}

struct RunsVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for RunsVisitor<T> {
    type Value = Runs<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Runs<T>, A::Error> {
        let (first, mut values) = (number(&mut all)?, Vec::new());
        if first != MARK {
            let length = bounded::<A>(first)?;
            append(&mut values, &mut all, length)?;
            return Ok(Runs { length, places: vec![(0, length)], values });
        }
        let length = number(&mut all)?;
        let length = bounded::<A>(length)?;
        let count = number(&mut all)?;
        let (mut places, mut end) = (Vec::new(), 0_u64);
        for _ in 0..count {
            let (begin, values_of) = (number(&mut all)?, number(&mut all)?);
            let is_in = begin >= end
                && values_of > 0
                && begin.checked_add(values_of).is_some_and(|end| end <= length as u64);
            if !is_in {
                return Err(A::Error::custom("a run lies beyond its array"));
            }
            append(&mut values, &mut all, values_of as usize)?;
            places.push((begin as usize, values_of as usize));
            end = begin + values_of;
        }
        Ok(Runs { length, places, values })
    }
}

fn number<'de, A: SeqAccess<'de>>(all: &mut A) -> Result<u64, A::Error> {
    all.next_element()?.ok_or_else(|| A::Error::custom("an array ends too early"))
}

fn bounded<'de, A: SeqAccess<'de>>(length: u64) -> Result<usize, A::Error> {
    if length > LENGTH_MOST {
        return Err(A::Error::custom(format!("an array of {length} values is none of a drive")));
    }
    Ok(length as usize)
}

/// Takes so many values more; room is made as they come.
fn append<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(
    values: &mut Vec<T>,
    all: &mut A,
    count: usize,
) -> Result<(), A::Error> {
    values.reserve(count.min(PIECE));
    for _ in 0..count {
        values
            .push(all.next_element()?.ok_or_else(|| A::Error::custom("an array ends too early"))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sparsely(#[serde(with = "super")] Vec<u32>);

    fn there_and_back(values: &[u32]) -> usize {
        let saved = serde_json::to_vec(&Sparsely(values.to_vec())).unwrap();
        let loaded: Sparsely = serde_json::from_slice(&saved).unwrap();
        assert_eq!(loaded.0, values);
        saved.len()
    }

    #[test]
    fn an_array_comes_back_and_costs_what_is_in_it() {
        there_and_back(&[]);
        there_and_back(&[7]);
        there_and_back(&vec![9; 3 * PIECE + 1]);
        let mut values = vec![0; 100 * PIECE + 5];
        assert!(there_and_back(&values) < 40);
        values[3] = 1;
        values[50 * PIECE..][..PIECE].fill(2);
        values[100 * PIECE + 4] = 3;
        assert!(there_and_back(&values) < 3 * PIECE, "a piece and two values, two characters each");
        for at in (0..100 * PIECE).step_by(GAP + 1) {
            values[at] = 4;
        }
        there_and_back(&values);
    }

    #[test]
    fn an_array_as_serde_saves_one_is_read() {
        // A number for its length, and its values, as in postcard.
        let loaded: Sparsely = serde_json::from_str("[3, 5, 6, 7]").unwrap();
        assert_eq!(loaded.0, [5, 6, 7]);
    }

    #[test]
    fn wrong_arrays_are_errors_and_take_no_memory() {
        let mark = MARK;
        for text in [
            format!("[{mark}, 8, 1, 6, 3, 1, 2, 3]"),
            format!("[{mark}, 8, 1, {mark}, 3, 1, 2, 3]"),
            format!("[{mark}, 8, 2, 4, 1, 1, 4, 1, 1]"),
            format!("[{mark}, 8, 1, 0, 0]"),
            format!("[{mark}, 8, 2, 2, 3, 1, 1, 1, 4, 1, 1]"),
            format!("[{mark}, {}, 0]", LENGTH_MOST + 1),
            format!("[{mark}, 8, 1, 0, 2, 1]"),
            format!("[{LENGTH_MOST}, 1]"),
            format!("[{}, 1]", mark - 1),
            "[]".to_owned(),
        ] {
            assert!(serde_json::from_str::<Sparsely>(&text).is_err(), "{text}");
        }
    }
}
