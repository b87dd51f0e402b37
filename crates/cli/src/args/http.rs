//! How drives are shown to browsers and Prometheus.

use std::path::{Path, PathBuf};

use leyden_serve::{HttpOptions, Listen};

/// Shorter tokens can be guessed.
const TOKEN_LEAST: usize = 16;
/// Longer ones do not fit into a request.
const TOKEN_MOST: usize = 256;

/// Options of `leyden serve` about the page.
#[derive(Debug, clap::Args)]
pub(crate) struct HttpArgs {
    /// Show the drives on a page at HOST:PORT, or PORT of the loopback interface: figures, power cuts, the switch
    ///
    /// /metrics has OpenMetrics for Prometheus. The switch takes the token that is printed at the start.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub(crate) http: Option<Listen>,
    /// Take the token of the switch from this file, and print none
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) http_token: Option<PathBuf>,
}

impl HttpArgs {
    /// The server's options; `None` without a page.
    pub(crate) fn options(&self) -> Result<Option<HttpOptions>, String> {
        let Some(listen) = self.http.clone() else { return Ok(None) };
        let token = self.http_token.as_deref().map(token_in).transpose()?;
        Ok(Some(HttpOptions { listen, token }))
    }
}

/// The token in the first line of a file.
fn token_in(file: &Path) -> Result<String, String> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        format!(
            "{name}: {error}\n  help: head -c 16 /dev/urandom | xxd -p >{name}; chmod 600 {name}"
        )
    })?;
    let token = text.lines().next().unwrap_or_default().trim();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain || !(TOKEN_LEAST..=TOKEN_MOST).contains(&token.len()) {
        return Err(format!(
            "{name} holds no token\n  help: its first line has {TOKEN_LEAST} to {TOKEN_MOST} letters, digits and signs, \
             without spaces"
        ));
    }
    Ok(token.to_owned())
}

/// HOST:PORT, or a port of the loopback interface.
pub(crate) fn parse_address(text: &str) -> Result<Listen, String> {
    match format!("tcp:{text}").parse() {
        Ok(listen) => Ok(listen),
        Err(_) => Err("write PORT or HOST:PORT, as 7070 or 127.0.0.1:7070".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_in_a_browser() {
        let tcp = |address: &str| Ok(Listen::Tcp(address.to_owned()));
        assert_eq!(parse_address("127.0.0.1:7070"), tcp("127.0.0.1:7070"));
        assert_eq!(parse_address("7070"), tcp("127.0.0.1:7070"));
        assert_eq!(parse_address("[::1]:0"), tcp("[::1]:0"));
        for wrong in ["", "tcp", "unix:/a", "host", "http://127.0.0.1:7070", "99999", "1:2:3"] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_long_and_plain() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            token_in(&file)
        };
        assert_eq!(read("0123456789abcdef\nmore"), Ok("0123456789abcdef".to_owned()));
        for wrong in ["", "short", "0123456789 abcdef", &"x".repeat(TOKEN_MOST + 1)] {
            assert!(read(wrong).unwrap_err().contains("holds no token"), "{wrong}");
        }
        assert!(token_in(&folder.path().join("none")).unwrap_err().contains("chmod 600"));
    }
}
