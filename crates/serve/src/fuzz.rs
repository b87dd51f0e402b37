//! What fuzz targets and the short fuzz test call: whatever comes in over a socket.

pub use leyden_wire::fuzz::{client as nbd_client, seed as nbd_seed};
pub use leyden_wire::fuzz::{
    program, program_seed, served as served_drive, served_seed as served_drive_seed,
};

use crate::switch::Ask;

/// Any bytes as a question on the control socket.
///
/// # Errors
/// If they are none.
pub fn control_line(line: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<Ask>(line).map(drop)
}
