//! No content.

use leyden_nand::Content;
use serde::{Deserialize, Serialize};

use super::compiled::compiled_here;
use crate::{Part, Payload};

/// No content: the fastest simulations.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoData;

impl Content for NoData {}

impl Payload for NoData {
    const KIND: u8 = 0;
    const STORED: bool = false;
    type WriteData = ();
    type ReadData = ();
    compiled_here!(NoData);
    #[inline]
    fn written((): &(), _: Part) -> Self {
        Self
    }
    #[inline]
    fn merged(_: &Self, (): &(), _: Part) -> Self {
        Self
    }
    #[inline]
    fn zeroed(_: &Self, (): &(), _: Part) -> Self {
        Self
    }
    #[inline]
    fn gather((): &mut (), _: Part, _: &Self) {}
    #[inline]
    fn unit((): &(), _: Part) -> Self {
        Self
    }
    #[inline]
    fn data_of<'a>(_: impl Iterator<Item = &'a Self>, _: u32) {}
}
