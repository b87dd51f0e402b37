//! The page: one file, made of its parts when it is asked for.

use std::io;

use super::reply::{Status, whole};
use super::secret;

const PAGE: &str = include_str!("../../assets/watch.html");
const STYLE: &str = include_str!("../../assets/watch.css");
const SCRIPT: &str = include_str!("../../assets/watch.js");
/// Of the page of `leyden-wasm`, too.
const FIGURES: &str = include_str!("../../assets/figures.js");
const PLOTS: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const PLOTS_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const LICENCE: &str = include_str!("../../assets/uplot/LICENSE");

/// The page is not longer.
pub(super) const BYTES_MOST: usize = PAGE.len()
    + STYLE.len()
    + SCRIPT.len()
    + FIGURES.len()
    + PLOTS.len()
    + PLOTS_STYLE.len()
    + LICENCE.len()
    + (1 << 10);

/// The page as a reply: its head and its body. It loads nothing, and runs no other script than its own.
///
/// # Errors
/// If the system has no random numbers.
pub(super) fn reply() -> io::Result<(String, Vec<u8>)> {
    let nonce = secret::random()?;
    let parts = [
        ("@nonce@", nonce.as_str()),
        ("@style@", STYLE),
        ("@plots-style@", PLOTS_STYLE),
        ("@licence@", LICENCE),
        ("@plots@", PLOTS),
        ("@figures@", FIGURES),
        ("@script@", SCRIPT),
    ];
    let body = parts.iter().fold(PAGE.to_owned(), |page, (mark, part)| page.replace(mark, part));
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Ok(whole(Status::Ok, "text/html; charset=utf-8", &policy, body))
}
