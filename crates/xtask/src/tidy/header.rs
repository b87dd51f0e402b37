//! The C header says what its Rust source says.

use super::Finding;
use super::tree::Tree;
use crate::header::{HEADER, SOURCES, header};

const REMEDY: &str = "write it again: cargo xtask header";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let sources: Option<Vec<&str>> = SOURCES.iter().map(|path| tree.text(path)).collect();
    let Some(sources) = sources else { return Vec::new() };
    match header(&sources) {
        Ok(made) => {
            let found = tree.text(HEADER).unwrap_or_default();
            let differs = made.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
            let is_current = made == found;
            let finding = Finding::new(HEADER, differs + 1, "the header is not current", REMEDY);
            if is_current { Vec::new() } else { vec![finding] }
        }
        Err(unknown) => {
            let remedy = "use a form that is known, or teach it to crates/xtask/src/header.rs";
            vec![Finding::new(SOURCES[unknown.source], unknown.line, unknown.problem, remedy)]
        }
    }
}
