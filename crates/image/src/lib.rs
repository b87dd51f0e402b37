//! A drive in a file: real bytes, and a log that brings back the moment at which its process was killed.
//!
//! **What lives here**: the format of images ([`layout`]), what of them is bytes ([`content`]), what brings
//! the drive back ([`log`], checkpoints), and the drive on top of them ([`Drive`]). **What doesn't**: wall
//! clocks, sockets, threads (servers), and anything that decides what a drive does (the device).
//!
//! The device is deterministic: the same commands at the same times make the same drive. So an image holds
//! the drive at rest (a *checkpoint*), each command since then with its time, *before* the device is given
//! it, and how far the drive's clock has come. Opening an image whose process was killed runs the device
//! from the checkpoint to that time; there the power is cut, and all that follows is the device's own:
//! capacitors, dump, what is lost, recovery. docs/image.md has the format byte by byte, and
//! docs/decisions/0014 the reasons.
//!
//! The device moves no bytes. It moves [`Places`]: where in the image the bytes of each sector lie.
//!
//! **Invariants**
//! - A command is in the log before the device is given it, and its bytes are in the image before that.
//! - What the host has been told, the clock in the image has passed.
//! - Bytes are overwritten only if the drive, as the log brings it back, has no use for them any more.

mod asked;
mod clock;
mod content;
mod device;
mod drive;
mod error;
mod file;
pub mod fuzz;
mod layout;
mod log;
mod mapped;
mod places;
mod powered;
pub mod raw;
pub mod recording;
mod slots;
mod stack;

pub use asked::{WriteFlags, ZoneAsk};
pub use device::Device;
pub use drive::{Checked, Done, Drive, DriveInfo, Opened};
pub use error::ImageError;
pub use layout::{FORMAT_VERSION, ImageConfig, StackConfig};
pub use log::{Entry, Event};
pub use places::Places;
pub use stack::{Conventional, Stack, Zoned};
