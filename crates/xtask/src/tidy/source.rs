//! Our crates' source files, without what only tests see.

use super::code::only;
use super::tree::Tree;

/// Folders of crates.
pub(super) const HOUSES: [&str; 2] = ["crates/", "papers/"];

/// A file of a crate's `src`.
pub(super) struct Source<'a> {
    pub(super) path: &'a str,
    /// The folder of the crate: `crates/ftl`.
    pub(super) krate: &'a str,
    /// Its module's path in the crate: `["page_mapped", "ftl"]`; empty for the crate's root.
    pub(super) module: Vec<String>,
    /// Its code up to the unit tests, without comments and literals.
    pub(super) code: String,
}

/// Every file of every crate's `src`, but those that are all tests.
pub(super) fn sources(tree: &Tree) -> Vec<Source<'_>> {
    let files = tree.with_extension("rs").filter(|(path, _)| {
        HOUSES.iter().any(|house| path.starts_with(house))
            && !path.contains("/tests/")
            && !path.ends_with("/tests.rs")
    });
    files.filter_map(|(path, text)| source(path, text)).collect()
}

fn source<'a>(path: &'a str, text: &str) -> Option<Source<'a>> {
    let (krate, file) = path.split_once("/src/")?;
    let file = file.strip_suffix(".rs")?;
    let mut module: Vec<String> = file.split('/').map(str::to_owned).collect();
    match module.last().map(String::as_str) {
        Some("mod") => drop(module.pop()),
        Some("lib" | "main") if module.len() == 1 => module.clear(),
        _ => {}
    }
    let code = only(text);
    let tests = code.find("\n#[cfg(test)]\nmod tests {").unwrap_or(code.len());
    Some(Source { path, krate, module, code: code[..tests].to_owned() })
}
