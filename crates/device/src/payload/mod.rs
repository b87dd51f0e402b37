//! Payloads, the contents that the drive stores for each mapping unit: nothing, a stamp, a stamp
//! for each sector, or (served devices) real bytes.
//!
//! The payload is a type parameter, so that a simulation that does not look at content pays
//! nothing for it.
//!
//! **Invariants**: content is a value. Copying flash pages, dumping a buffer and putting it back clone
//! it, so a clone must be cheap: what is large is shared (`Arc`).

mod compiled;
mod no_data;
mod sector_stamps;
mod stamp;

use std::fmt::Debug;

use leyden_nand::Content;

use crate::Part;
pub use no_data::NoData;
pub use sector_stamps::SectorStamps;
pub use stamp::Stamp;

/// The content of a mapping unit. Its default is a unit that was never written: zeroes.
pub trait Payload: Content {
    /// Tells the kinds apart in a snapshot.
    const KIND: u8;
    /// True if there is content at all; false lets code skip moving it.
    const STORED: bool;
    /// True if the crate of the drives compiles those of this payload, once. Drives of others are compiled by each crate that has
    /// one.
    const IS_COMPILED: bool = false;
    /// The data of a write command for all its sectors. A clone is cheap, as the content's is.
    type WriteData: Clone + Default + Debug;
    /// The data of a read completion: the content of each unit, in address order.
    type ReadData: Default + Debug + Clone;

    /// The table of type `T` ([`crate::DriveOps`]) of a compiled drive; none if [`Self::IS_COMPILED`] is false.
    fn compiled<T: 'static>() -> Option<&'static T> {
        None
    }

    /// The content of a unit that a write with `data` covers whole.
    fn written(data: &Self::WriteData, part: Part) -> Self;
    /// The content of a unit that held `old` after a write with `data` to a part of it.
    fn merged(old: &Self, data: &Self::WriteData, part: Part) -> Self;
    /// The content of a unit that held `old`, of which a command to write zeroes covers a part; `data`
    /// is the command's, which may tell who wrote them.
    fn zeroed(old: &Self, data: &Self::WriteData, part: Part) -> Self;
    /// Puts what a read wants of a unit in its place.
    fn gather(data: &mut Self::ReadData, part: Part, unit: &Self);
    /// A unit out of what was read; the read has covered the whole unit.
    fn unit(data: &Self::ReadData, part: Part) -> Self;
    /// The data of a write that gives neighbouring units of `unit_sectors` this content. They were
    /// last changed by the same write.
    fn data_of<'a>(units: impl Iterator<Item = &'a Self>, unit_sectors: u32) -> Self::WriteData;
}
