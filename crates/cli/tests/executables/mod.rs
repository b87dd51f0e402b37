//! Programs that a test puts where it wants them, and executes.

use std::path::Path;
use std::process::Command;

/// Copies `from` to `to`, which can be executed then.
///
/// A child copies it: one that another test begins meanwhile would inherit the file from this process, open for writing,
/// and nothing can execute it as long as it is ("text file busy").
pub(crate) fn copy(from: &Path, to: &Path) {
    let output = Command::new("install").args(["-m", "755"]).arg(from).arg(to).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a script of the shell.
pub(crate) fn script(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, format!("#!/bin/sh\n{text}\n")).unwrap();
    copy(&draft, path);
}
