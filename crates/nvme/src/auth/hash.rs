//! The hash functions of challenges and answers.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// A hash function, by its identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hash {
    Sha256 = 1,
    Sha384 = 2,
    Sha512 = 3,
}

/// Runs `$with` with the type of a hash function.
macro_rules! with_hash {
    ($hash:expr, $type:ident => $with:expr) => {
        match $hash {
            Hash::Sha256 => {
                type $type = Sha256;
                $with
            }
            Hash::Sha384 => {
                type $type = Sha384;
                $with
            }
            Hash::Sha512 => {
                type $type = Sha512;
                $with
            }
        }
    };
}

impl Hash {
    /// The longest of those that a host offers by their identifiers.
    pub(super) fn of(offered: &[u8]) -> Option<Self> {
        let longest_first = [Self::Sha512, Self::Sha384, Self::Sha256];
        longest_first.into_iter().find(|hash| offered.contains(&hash.id()))
    }

    pub(super) const fn id(self) -> u8 {
        self as u8
    }

    /// Bytes of a hash.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    pub(super) fn digest(self, data: &[u8]) -> Vec<u8> {
        with_hash!(self, T => T::digest(data).to_vec())
    }

    /// The keyed hash (RFC 2104) of some parts, one behind the other.
    pub(super) fn keyed(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        with_hash!(self, T => {
            let mut mac = Hmac::<T>::new_from_slice(key).expect("keys of any length are taken");
            for part in parts {
                mac.update(part);
            }
            mac.finalize().into_bytes().to_vec()
        })
    }

    /// True if `found` is the keyed hash of these parts; in constant time.
    pub(super) fn is_keyed(self, key: &[u8], parts: &[&[u8]], found: &[u8]) -> bool {
        with_hash!(self, T => {
            let mut mac = Hmac::<T>::new_from_slice(key).expect("keys of any length are taken");
            for part in parts {
                mac.update(part);
            }
            mac.verify_slice(found).is_ok()
        })
    }
}
