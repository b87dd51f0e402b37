//! The control socket: pull the switch, put it back, ask how it goes.
//!
//! A line of JSON for each question, and one for each answer; the socket lies beside the image, with
//! `.sock` behind its name.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::warn;

use crate::guests::Guest;
use crate::listen::{Socket, dial};
use crate::negotiating::Negotiating;
use crate::switch::{Answer, Ask};

/// No question is longer.
const LINE_MOST: u64 = 4_096;
/// No answer is longer.
const ANSWER_MOST: u64 = 64 << 20;
/// Those who ask at once.
pub(crate) const ASKERS_MOST: usize = 16;
/// A question comes within this time.
const QUESTION: Duration = Duration::from_mins(1);
/// A server answers within this time: a drive may have to come to rest, or to recover.
const ANSWER: Duration = Duration::from_mins(2);
/// A server that is busy lets one in within this time.
const CONNECT: Duration = Duration::from_secs(5);

/// The control socket of an image.
pub fn socket_of(image: &Path) -> PathBuf {
    let mut name = image.as_os_str().to_owned();
    name.push(".sock");
    name.into()
}

/// Asks the server of `image`, and waits for its answer.
///
/// # Errors
/// If the image is not served, the answer is malformed or does not come in time, or who listens there has no right to the
/// image.
pub fn ask(image: &Path, ask: &Ask) -> io::Result<Answer> {
    let stream = dial(&socket_of(image), CONNECT)?;
    let mut socket = Socket::from(stream);
    let server = socket.credentials().map(|who| who.uid.as_raw());
    let owner = image.metadata()?.uid();
    if server.is_none_or(|user| user != 0 && user != owner && user != own_user()) {
        let who =
            server.map_or_else(|| "an unknown user".to_owned(), |user| format!("user {user}"));
        let what = format!("{who} listens there, and the image is of user {owner}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    let mut line = serde_json::to_vec(ask)?;
    line.push(b'\n');
    let stream = Negotiating::of_socket(&mut socket, ANSWER);
    let mut stream = BufReader::new(stream);
    stream.get_mut().write_all(&line)?;
    let mut answer = String::new();
    stream.take(ANSWER_MOST).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Why this client may not ask that; `None` if it may. Who may connect may look; the switch is its owner's and root's.
fn forbidden(socket: &Socket, ask: Ask) -> Option<String> {
    let user = socket.credentials()?.uid.as_raw();
    let may = ask == Ask::Status || user == 0 || user == own_user();
    (!may)
        .then(|| format!("user {user} may look, and only user {} and root may do that", own_user()))
}

/// Answers one client until it goes.
pub(crate) fn serve(
    stream: &Socket,
    guest: &Guest,
    control: impl Fn(Ask) -> Option<Answer>,
) -> io::Result<()> {
    let (mut socket, mut out) = (stream.clone(), stream.clone());
    let mut lines = BufReader::new(Negotiating::of_socket(&mut socket, QUESTION));
    loop {
        lines.get_mut().extend(QUESTION);
        let mut line = String::new();
        if lines.by_ref().take(LINE_MOST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        guest.settle()?;
        let answer = match serde_json::from_str::<Ask>(&line) {
            Ok(ask) => match forbidden(stream, ask) {
                None => control(ask),
                Some(why) => {
                    let (client, peer) = (guest.number(), guest.peer());
                    guest.say(|left_out| warn!(client, peer, left_out, ?ask, "refused"));
                    Some(Answer::Refused { why })
                }
            },
            Err(error) => Some(Answer::Refused { why: format!("that is no question: {error}") }),
        };
        let answer =
            answer.unwrap_or_else(|| Answer::Refused { why: "the drive is gone".to_owned() });
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        out.write_all(&line)?;
    }
}
