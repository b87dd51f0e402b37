//! Random texts that nobody can guess.

use std::fmt::Write;
use std::io;

/// 128 bits as 32 digits.
pub(super) fn random() -> io::Result<String> {
    let bytes = crate::random::bytes::<16>()?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string does not fail
        text
    }))
}
