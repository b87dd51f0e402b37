//! Replies: statuses, heads with headers that keep other sites out, and server-sent events.

use std::fmt::Write;
use std::time::Duration;

/// The type of a reason.
pub(super) const TEXT: &str = "text/plain; charset=utf-8";
/// A reply that is no page loads nothing, if a browser takes it for one.
pub(super) const NOTHING: &str = "default-src 'none'";

/// A client that follows something hears from the server this often, so that either side finds out when the other is gone.
pub(super) const SILENCE: Duration = Duration::from_secs(15);
/// A comment: there is no event.
pub(super) const NOTHING_NEW: &str = ":\n\n";

/// Statuses of replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Conflict,
    TooLarge,
    Misdirected,
    HeadTooLarge,
    NotImplemented,
    Unavailable,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::Unauthorized => "401 Unauthorized",
            Self::Forbidden => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::Conflict => "409 Conflict",
            Self::TooLarge => "413 Content Too Large",
            Self::Misdirected => "421 Misdirected Request",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::NotImplemented => "501 Not Implemented",
            Self::Unavailable => "503 Service Unavailable",
        })
    }
}

/// The head of a reply; one without a length goes on until the connection ends.
pub(super) fn head(
    status: Status,
    content_type: &str,
    policy: &str,
    body_bytes: Option<usize>,
) -> String {
    let length = body_bytes.map_or_else(String::new, |it| format!("Content-Length: {it}\r\n"));
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{length}Connection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: {policy}\r\n\r\n"
    )
}

/// A reply with its length, and with what its page may load.
pub(super) fn whole(
    status: Status,
    content_type: &str,
    policy: &str,
    body: String,
) -> (String, Vec<u8>) {
    (head(status, content_type, policy, Some(body.len())), body.into_bytes())
}

/// Writes an event.
pub(super) fn event(text: &mut String, name: &str, data: &str) {
    // JSON has no line breaks, and writing to a string does not fail.
    let _ = write!(text, "event: {name}\ndata: {data}\n\n");
}
