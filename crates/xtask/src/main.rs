//! `cargo xtask`: checks of this repository that neither rustc nor clippy can make.
//!
//! **What lives here**: [`mod@tidy`], and the command around it. **What doesn't**: anything a user of
//! Leyden runs; anything that needs the other crates (their tests do that).
//!
//! **Invariants**: no dependencies, so that it builds in a second; a finding names file, line and
//! remedy.

mod tidy;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use tidy::tree::Tree;

const USAGE: &str = "\
Usage: cargo xtask tidy

  tidy    check which crates depend on which, circles between files, the size of files and types,
          module docs, unsafe code, left-overs, policy registries, paths of one machine, and the
          documentation's links and figures

Exit codes: 0 tidy, 1 findings, 2 bad usage, 3 the repository could not be read";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy(),
        ["-h" | "--help" | "help"] => writeln!(io::stdout(), "{USAGE}").map(|()| 0),
        _ => writeln!(io::stderr(), "{USAGE}").map(|()| 2),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nothing is left to be done if standard error is closed too.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(3)
        }
    }
}

/// Checks the repository this was built in, and prints what it finds.
fn tidy() -> io::Result<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = Tree::read(&root)?;
    let findings = tidy::check(&tree);
    let mut out = io::stdout().lock();
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    if findings.is_empty() {
        writeln!(out, "tidy: {} files, nothing found", tree.len())?;
        return Ok(0);
    }
    writeln!(out, "tidy: {} files, findings: {}", tree.len(), findings.len())?;
    Ok(1)
}
