//! The control socket: pull the switch, put it back, ask how it goes.
//!
//! A line of JSON for each question, and one for each answer; the socket lies beside the image, with
//! `.sock` behind its name.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::listen::Socket;
use crate::switch::{Answer, Ask};

/// No question is longer.
const LINE_MOST: u64 = 4_096;

/// The control socket of an image.
pub fn socket_of(image: &Path) -> PathBuf {
    let mut name = image.as_os_str().to_owned();
    name.push(".sock");
    name.into()
}

/// Asks the server of `image`, and waits for its answer.
///
/// # Errors
/// If the image is not served, or the answer is malformed.
pub fn ask(image: &Path, ask: &Ask) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket_of(image))?;
    let mut line = serde_json::to_vec(ask)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Answers one client until it goes.
pub(crate) fn serve(stream: Socket, control: impl Fn(Ask) -> Option<Answer>) -> io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if lines.by_ref().take(LINE_MOST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str::<Ask>(&line) {
            Ok(ask) => control(ask),
            Err(error) => Some(Answer::Refused { why: format!("that is no question: {error}") }),
        };
        let answer =
            answer.unwrap_or_else(|| Answer::Refused { why: "the drive is gone".to_owned() });
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        out.write_all(&line)?;
    }
}
