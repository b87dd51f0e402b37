//! The fill of the buffer's pools.

/// Of the pools of the buffer, how full or how large they are, in mapping units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolFill {
    /// In the protected pool.
    pub protected: u32,
    /// In the other one.
    pub plain: u32,
}
