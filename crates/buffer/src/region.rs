//! The region of a buffer that capacitors protect, and its pools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of the buffer that capacitors protect, and so the cost of FLUSH and FUA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// Nothing: FLUSH and FUA wait until the data is on flash.
    None,
    /// All of it: FLUSH and FUA cost nothing.
    #[default]
    Full,
    /// `protected_size` of it, for writes that ask for it with the PLP flag, or on conventional drives with
    /// FUA: FLUSH waits only for the rest.
    Selective,
}

/// A part of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// Capacitors keep what is in it.
    Protected,
    /// Volatile.
    Plain,
}

impl PoolKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Protected, Self::Plain];

    /// As an array index.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The size of a pool, in mapping units; 0 if there is no such pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolSize {
    /// Slots.
    pub slots: u32,
    /// Dirty slots from which on it is written out.
    pub threshold: u32,
    /// Dirty slots down to which it is then; no more than `threshold`.
    pub low: u32,
}

/// The sizes of the pools, by [`PoolKind::index`].
pub type PoolSizes = [PoolSize; 2];
