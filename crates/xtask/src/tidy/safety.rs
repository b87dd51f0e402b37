//! Unsafe code stays where it is expected, and lints are silenced for a reason.

use super::Finding;
use super::code::{line_of, only, words};
use super::tree::Tree;

/// Files that may hold unsafe code: the C interface, whose callers hand over pointers, and an image's file in memory.
const UNSAFE_ALLOWED: &[&str] = &[
    "crates/capi/src/arguments.rs",
    "crates/capi/src/border.rs",
    "crates/capi/src/calls.rs",
    "crates/capi/src/calls/data.rs",
    "crates/capi/src/calls/switch.rs",
    "crates/capi/src/calls/zones.rs",
    // Filters of system calls have no kept library that listens.
    "crates/crashtest/src/files/performed.rs", // sync_file_range(2)
    "crates/crashtest/src/files/syncs.rs",
    "crates/crashtest/src/network.rs", // an ioctl(2) with an address
    "crates/image/src/mapped.rs",
    "crates/wasm/src/border.rs", // names that JavaScript calls
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("rs") {
        let code = only(text);
        if !UNSAFE_ALLOWED.contains(&path) {
            findings.extend(words(&code, "unsafe").map(|at| {
                let remedy = "find a safe way, or list the file in UNSAFE_ALLOWED, \
                              crates/xtask/src/tidy/safety.rs, and say there why";
                Finding::new(path, line_of(&code, at), "unsafe code", remedy)
            }));
        }
        for attribute in ["#[allow(", "#![allow("] {
            for (at, _) in code.match_indices(attribute) {
                let end = code[at..].find(']').map_or(code.len(), |length| at + length);
                if words(&code[at..end], "reason").next().is_none() {
                    let problem = "a lint is silenced without a reason";
                    let remedy = "write #[expect(lint, reason = \"...\")]";
                    findings.push(Finding::new(path, line_of(&code, at), problem, remedy));
                }
            }
        }
    }
    findings
}
