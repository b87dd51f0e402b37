//! Which commit this is built from, for `leyden --version` and run records: digests hold for one build.

use std::path::Path;
use std::process::Command;

/// What the binary is made of, beside this folder.
const SOURCES: [&str; 4] =
    ["../../crates", "../../scenarios", "../../Cargo.lock", "../../Cargo.toml"];

#[expect(clippy::disallowed_methods, reason = "how a packer tells the commit")]
fn main() {
    // A package is built outside of a checkout: whoever packs it may say what from.
    println!("cargo::rerun-if-env-changed=LEYDEN_COMMIT");
    let told = std::env::var("LEYDEN_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = told.or_else(of_checkout).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let shown =
        if commit.is_empty() { version.to_owned() } else { format!("{version} ({commit})") };
    println!("cargo::rustc-env=LEYDEN_COMMIT={commit}");
    println!("cargo::rustc-env=LEYDEN_VERSION={shown}");
}

/// The commit of the checkout, with `+` if its files differ from it. None without git, and in a folder
/// that merely lies inside of somebody else's checkout.
fn of_checkout() -> Option<String> {
    let root = Path::new("../..").canonicalize().ok()?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    for name in ["HEAD", "index"] {
        println!("cargo::rerun-if-changed={}", git(&["rev-parse", "--git-path", name])?);
    }
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    git(&["describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"])
}

fn git(args: &[&str]) -> Option<String> {
    // Without optional locks: `describe --dirty` would refresh the index, which this script watches.
    let output = Command::new("git").arg("--no-optional-locks").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
