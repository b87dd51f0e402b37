//! The bytes that atoms have had: each content once, by number.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

/// The number of a content in its [`Store`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Content(u32);

impl Content {
    /// Zeroes.
    pub const ZEROES: Self = Self(0);
}

/// Contents of one size.
#[derive(Clone, Debug)]
pub struct Store {
    atom_bytes: usize,
    bytes: Vec<u8>,
    /// The first half of each content's SHA-256: what states are told apart by.
    keys: Vec<u128>,
    /// Where the zeroes at the end of each content begin.
    used_bytes: Vec<u32>,
    numbers: BTreeMap<u128, u32>,
}

impl Store {
    /// A store that holds zeroes only.
    pub(crate) fn new(atom_bytes: usize) -> Self {
        let (keys, used_bytes) = (Vec::new(), Vec::new());
        let mut store =
            Self { atom_bytes, bytes: Vec::new(), keys, used_bytes, numbers: BTreeMap::new() };
        assert_eq!(store.put(&vec![0; atom_bytes]), Content::ZEROES);
        store
    }

    /// The number of these bytes, which are an atom's.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Content {
        assert_eq!(bytes.len(), self.atom_bytes, "an atom's bytes");
        let key = key_of(bytes);
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            self.used_bytes.push(used as u32);
            self.bytes.extend(bytes);
        }
        Content(number)
    }

    /// The bytes of a content.
    pub fn bytes(&self, content: Content) -> &[u8] {
        &self.bytes[content.0 as usize * self.atom_bytes..][..self.atom_bytes]
    }

    /// The key of a content, the same in every run.
    pub(crate) fn key(&self, content: Content) -> u128 {
        self.keys[content.0 as usize]
    }

    /// Bytes of a content before the zeroes at its end.
    pub(crate) fn used_bytes(&self, content: Content) -> usize {
        self.used_bytes[content.0 as usize] as usize
    }
}

/// The first half of a SHA-256.
pub(crate) fn key_of(bytes: &[u8]) -> u128 {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    u128::from_le_bytes(digest[..16].try_into().expect("16 of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_kept_once() {
        let mut store = Store::new(4);
        let one = store.put(b"abcd");
        assert_eq!((store.put(b"abcd"), store.put(&[0; 4])), (one, Content::ZEROES));
        let other = store.put(b"abce");
        assert_ne!(one, other);
        assert_eq!((store.bytes(one), store.bytes(other)), (&b"abcd"[..], &b"abce"[..]));
        assert_ne!(store.key(one), store.key(other));
        let short = store.put(b"ab\0\0");
        assert_eq!([Content::ZEROES, one, short].map(|it| store.used_bytes(it)), [0, 4, 2]);
    }
}
