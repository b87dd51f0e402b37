//! Requests: one for each connection, read within the deadline of the negotiation, and refused before anything is done.
//!
//! **Invariants**
//! - A request whose `Host` is a name that is not the server's own is refused: a page of another site could have its name
//!   point here (DNS rebinding). Addresses cannot be pointed elsewhere.
//! - A request of another origin is refused.
//! - A request that changes something has the token.

use std::io::{self, ErrorKind, Read};
use std::net::IpAddr;

use subtle::ConstantTimeEq;
use thiserror::Error;

use super::reply::Status;

/// No head of a request is longer.
const HEAD_MOST: usize = 8 << 10;
/// Headers of a request.
const HEADERS_MOST: usize = 64;
/// No body of a request is longer.
pub(super) const BODY_MOST: usize = 1 << 10;
/// Bytes that are read at once.
const PIECE: usize = 1 << 10;

/// A request that is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{status}: {why}")]
pub(crate) struct Refusal {
    pub(super) status: Status,
    pub(super) why: &'static str,
}

pub(super) const fn refuse<T>(status: Status, why: &'static str) -> Result<T, Refusal> {
    Err(Refusal { status, why })
}

/// The methods that are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    Get,
    /// A GET without its body.
    Head,
    Post,
}

/// A request that has come in whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    host: String,
    origin: Option<String>,
    bearer: Option<Vec<u8>>,
    content_bytes: usize,
}

/// Reads a request; `None` if the client goes without a word.
///
/// # Errors
/// The outer ones are the socket's.
pub(super) fn read(stream: &mut impl Read) -> io::Result<Option<Result<Request, Refusal>>> {
    let mut bytes = Vec::new();
    let head_bytes = loop {
        if let Some(end) = end_of_head(&bytes) {
            break end;
        }
        if bytes.len() >= HEAD_MOST {
            let why = "the head of a request has 8 KiB at most";
            return Ok(Some(refuse(Status::HeadTooLarge, why)));
        }
        match take(stream, &mut bytes) {
            Err(error) if bytes.is_empty() && error.kind() == ErrorKind::TimedOut => {
                return Ok(None);
            }
            Err(error) => return Err(error),
            Ok(0) if bytes.is_empty() => return Ok(None),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
        }
    };
    let mut request = match parse(&bytes[..head_bytes]) {
        Ok(request) => request,
        Err(refusal) => return Ok(Some(Err(refusal))),
    };
    bytes.drain(..head_bytes);
    while bytes.len() < request.content_bytes {
        if take(stream, &mut bytes)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    bytes.truncate(request.content_bytes);
    request.body = bytes;
    Ok(Some(Ok(request)))
}

fn take(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut piece = [0; PIECE];
    let count = stream.read(&mut piece)?;
    bytes.extend(&piece[..count]);
    Ok(count)
}

/// The length of a head with the empty line at its end.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|it| it == b"\r\n\r\n").map(|at| at + 4)
}

/// A head, without its body.
fn parse(head: &[u8]) -> Result<Request, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MOST];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => {
            return refuse(Status::HeadTooLarge, "a request has 64 headers at most");
        }
        _ => return refuse(Status::BadRequest, "this is no HTTP/1.1 request"),
    }
    let method = match parsed.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some("POST") => Method::Post,
        _ => return refuse(Status::MethodNotAllowed, "send GET, HEAD or POST"),
    };
    let path = parsed.path.unwrap_or_default().to_owned();
    if header(parsed.headers, "transfer-encoding")?.is_some() {
        return refuse(Status::NotImplemented, "send the body with a Content-Length");
    }
    let content_bytes = match header(parsed.headers, "content-length")? {
        None => 0,
        Some(length) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().unwrap_or(usize::MAX)
        }
        Some(_) => return refuse(Status::BadRequest, "the Content-Length is no number"),
    };
    if content_bytes > BODY_MOST {
        return refuse(Status::TooLarge, "the body of a request has 1 KiB at most");
    }
    let Some(host) = header(parsed.headers, "host")? else {
        return refuse(Status::BadRequest, "the Host header is missing");
    };
    let bearer = header(parsed.headers, "authorization")?;
    let bearer = bearer.and_then(|it| it.strip_prefix("Bearer ")).map(|it| it.trim().into());
    Ok(Request {
        method,
        path,
        body: Vec::new(),
        host: host.to_owned(),
        origin: header(parsed.headers, "origin")?.map(str::to_owned),
        bearer,
        content_bytes,
    })
}

/// The value of a header that stands there once at most.
fn header<'a>(headers: &'a [httparse::Header<'_>], name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut all = headers.iter().filter(|it| it.name.eq_ignore_ascii_case(name));
    let (first, second) = (all.next(), all.next());
    if second.is_some() {
        return refuse(Status::BadRequest, "a header stands there twice");
    }
    let Some(first) = first else { return Ok(None) };
    match str::from_utf8(first.value) {
        Ok(value) => Ok(Some(value.trim())),
        Err(_) => refuse(Status::BadRequest, "a header is no text"),
    }
}

impl Request {
    /// Checks that it was meant for this server, by nobody else's page.
    pub(super) fn check(&self, own_names: &[String]) -> Result<(), Refusal> {
        let name = name_of(&self.host).to_ascii_lowercase();
        if !is_address(&name) && name != "localhost" && !own_names.contains(&name) {
            let why =
                "the server has another name: use its address, or the name that --http was given";
            return refuse(Status::Misdirected, why);
        }
        let is_own = |origin: &str| {
            let host = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
            host.is_some_and(|it| it.eq_ignore_ascii_case(&self.host))
        };
        if self.origin.as_deref().is_some_and(|origin| !is_own(origin)) {
            return refuse(Status::Forbidden, "the request comes from the page of another site");
        }
        Ok(())
    }

    /// Checks the token, in the same time whatever part of it is right.
    pub(super) fn check_token(&self, token: &str) -> Result<(), Refusal> {
        let given = self.bearer.as_deref().unwrap_or_default();
        if bool::from(given.ct_eq(token.as_bytes())) {
            return Ok(());
        }
        refuse(Status::Unauthorized, "send the server's token: Authorization: Bearer TOKEN")
    }
}

/// The name in a `Host` header, without the port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_address(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => matches!(name.parse(), Ok(IpAddr::V4(_))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(request: &str) -> Result<Request, Refusal> {
        read(&mut request.as_bytes()).unwrap().unwrap()
    }

    fn status(request: &str) -> Status {
        let own = ["ssd.example".to_owned()];
        match answer(request).and_then(|request| request.check(&own)) {
            Ok(()) => Status::Ok,
            Err(refusal) => refusal.status,
        }
    }

    #[test]
    fn a_request_is_read_with_its_body() {
        let request =
            answer("POST /drives/0 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcdef")
                .unwrap();
        assert_eq!((request.method, request.path.as_str()), (Method::Post, "/drives/0"));
        assert_eq!(request.body, b"abc");
        assert!(read(&mut &b""[..]).unwrap().is_none());
        assert!(read(&mut &b"GET / HT"[..]).is_err());
    }

    /// Names can be pointed at this server by whoever owns them; addresses and `localhost` cannot.
    #[test]
    fn hosts_and_origins_that_are_not_the_servers_own_are_refused() {
        let get = |host: &str, more: &str| {
            status(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"))
        };
        for own in [
            "127.0.0.1:7070",
            "localhost:9",
            "LOCALHOST",
            "[::1]:7070",
            "ssd.example:7070",
            "10.0.0.1",
        ] {
            assert_eq!(get(own, ""), Status::Ok, "{own}");
            assert_eq!(get(own, &format!("Origin: http://{own}\r\n")), Status::Ok, "{own}");
            for other in ["http://evil.example", "null", "http://127.0.0.1:1", "", "http://", own] {
                let origin = format!("Origin: {other}\r\n");
                assert_eq!(get(own, &origin), Status::Forbidden, "{own} {other}");
            }
        }
        for other in [
            "evil.example",
            "evil.example:7070",
            "127.0.0.1.evil.example",
            "",
            "::1",
            "[evil]",
            "localhost.evil:1",
        ] {
            assert_eq!(get(other, ""), Status::Misdirected, "{other}");
        }
    }

    #[test]
    fn requests_that_are_none_are_refused_with_a_reason() {
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\n";
        let with = |more: &str| status(&format!("{head}{more}\r\n\r\n"));
        assert_eq!(with("Content-Length: 1025"), Status::TooLarge);
        assert_eq!(with("Content-Length: 99999999999999999999999"), Status::TooLarge);
        assert_eq!(with("Content-Length: -1"), Status::BadRequest);
        assert_eq!(with("Content-Length: 0\r\nContent-Length: 0"), Status::BadRequest);
        assert_eq!(with("Host: localhost"), Status::BadRequest);
        assert_eq!(with("Transfer-Encoding: chunked"), Status::NotImplemented);
        assert_eq!(with(&"A: b\r\n".repeat(70)), Status::HeadTooLarge);
        assert_eq!(with(&format!("A: {}", "b".repeat(9_000))), Status::HeadTooLarge);
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), Status::BadRequest);
        assert_eq!(
            status("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            Status::MethodNotAllowed
        );
        assert_eq!(status("NBDMAGIC\r\n\r\n"), Status::BadRequest);
    }

    #[test]
    fn the_token_is_the_whole_token() {
        let check = |header: &str| {
            let request = answer(&format!("GET / HTTP/1.1\r\nHost: a\r\n{header}\r\n")).unwrap();
            request.check_token("0123456789abcdef").is_ok()
        };
        assert!(check("Authorization: Bearer 0123456789abcdef\r\n"));
        for wrong in [
            "",
            "Authorization: Bearer 0123456789abcde\r\n",
            "Authorization: Bearer \r\n",
            "Authorization: Bearer 0123456789abcdeF\r\n",
            "Authorization: 0123456789abcdef\r\n",
        ] {
            assert!(!check(wrong), "{wrong}");
        }
    }
}
