//! Block traces: readers, writers, profiles.
//!
//! **What lives here**: requests from trace files of the usual formats ([`Format`]), plain or
//! compressed with gzip or zstd; writing them; merging hints into them, cutting, packing and
//! profiling them. **What doesn't**: pacing requests against a device, which is `experiment`'s driver; generating them, which is
//! [`synth`](crate::synth).
//!
//! ```no_run
//! use std::path::Path;
//! use leyden_workload::trace::{self, OpenOptions};
//!
//! let mut reader = trace::open(Path::new("db.csv.zst"), &OpenOptions::default())?;
//! for request in &mut reader {
//!     let request = request?;
//!     println!("{:?} {:?} {}", request.at, request.lba, request.sectors);
//! }
//! for warning in reader.warnings() {
//!     eprintln!("{warning}");
//! }
//! # Ok::<(), trace::TraceError>(())
//! ```
//!
//! **Invariants**
//! - A trace is streamed: memory doesn't grow with it (a profile's grows with its footprint).
//! - Bad input is an error that names file, place, finding and remedy; what is read past is
//!   counted. No input panics.
//! - Requests come in time order, the first at time zero.

mod classes;
mod columns;
mod context;
mod cut;
mod error;
pub mod fuzz;
mod input;
mod merge;
mod num;

mod pack;
mod profile;
mod read;
mod reader;
#[cfg(test)]
mod tests;
mod write;

pub use columns::{Columns, ColumnsError};
pub use context::{Devices, ReadCounts, Unsorted};
pub use cut::{Cut, CutIter};
pub use error::{ErrorKind, Place, TraceError};
pub use input::Position;
pub use merge::Merged;
pub use pack::{Packed, Packing};
pub use profile::{Distances, Profile, profile};
pub use read::Format;
pub use read::action::BlkAction;
pub use read::compact::Declared;
pub use read::options::OpenOptions;
pub use read::registry::UnknownFormatName;
pub use reader::{Reader, open};
pub use write::{Compression, Lost, WriteOptions, Writer, Written, convert};
