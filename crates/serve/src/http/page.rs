//! The page: one file, made of its parts when it is asked for.

use std::io;

use super::reply::{Status, whole};
use super::secret;

/// A subject's own parts of its page.
pub(crate) struct Page {
    /// Beside the name of the program.
    pub(super) what: &'static str,
    /// Controls of the head.
    pub(super) tools: &'static str,
    pub(super) main: &'static str,
    pub(super) script: &'static str,
}

const FRAME: &str = include_str!("../../assets/frame.html");
/// The section of plots, which stands among a subject's own.
const PLOTS_SECTION: &str = include_str!("../../assets/plots.html");
const STYLE: &str = include_str!("../../assets/watch.css");
const FRAME_SCRIPT: &str = include_str!("../../assets/frame.js");
/// Of the page of `leyden-wasm`, too.
const FIGURES: &str = include_str!("../../assets/figures.js");
const PLOTS: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const PLOTS_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const LICENCE: &str = include_str!("../../assets/uplot/LICENSE");

/// Bytes of everything that is not a subject's own.
const COMMON_MOST: usize = FRAME.len()
    + PLOTS_SECTION.len()
    + STYLE.len()
    + FRAME_SCRIPT.len()
    + FIGURES.len()
    + PLOTS.len()
    + PLOTS_STYLE.len()
    + LICENCE.len()
    + (1 << 10);

/// The page is not longer.
pub(super) const fn bytes_most(page: &Page) -> usize {
    COMMON_MOST + 2 * page.what.len() + page.tools.len() + page.main.len() + page.script.len()
}

/// The page as a reply: its head and its body. It loads nothing, and runs no other script than its own.
///
/// # Errors
/// If the system has no random numbers.
pub(super) fn reply(page: &Page) -> io::Result<(String, Vec<u8>)> {
    let nonce = secret::random()?;
    let parts = [
        ("@nonce@", nonce.as_str()),
        ("@kind@", page.what),
        ("@tools@", page.tools),
        ("@main@", page.main),
        ("@section-of-plots@", PLOTS_SECTION),
        ("@style@", STYLE),
        ("@plots-style@", PLOTS_STYLE),
        ("@licence@", LICENCE),
        ("@plots@", PLOTS),
        ("@figures@", FIGURES),
        ("@frame@", FRAME_SCRIPT),
        ("@script@", page.script),
    ];
    let body = parts.iter().fold(FRAME.to_owned(), |page, (mark, part)| page.replace(mark, part));
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Ok(whole(Status::Ok, "text/html; charset=utf-8", &policy, body))
}
