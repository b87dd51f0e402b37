//! Entry points of the fuzz target and the short fuzz test.

use super::request::{BODY_MOST, read};

pub(super) const TOKEN: &str = "0123456789abcdef";

/// Any bytes as a request.
///
/// # Errors
/// If they are none, or it is refused.
pub fn request(mut bytes: &[u8]) -> Result<(), String> {
    let Some(request) = read(&mut bytes).map_err(|error| error.to_string())? else { return Ok(()) };
    let request = request.map_err(|refusal| refusal.to_string())?;
    assert!(request.body.len() <= BODY_MOST);
    request.check(&[]).map_err(|refusal| refusal.to_string())
}

/// A request that throws the switch.
pub fn seed() -> Vec<u8> {
    let body = "{\"ask\":\"cut\"}";
    let head =
        "POST /drives/0 HTTP/1.1\r\nHost: localhost:7070\r\nOrigin: http://localhost:7070\r\n";
    let length = body.len();
    format!("{head}Authorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n\r\n{body}").into()
}
