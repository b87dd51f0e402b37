//! Random texts that nobody can guess.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};

/// 128 bits as 32 digits.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string does not fail
        text
    }))
}
