//! The commit of this build, as `crates/cli/build.rs` finds it: results of another are refused.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=LEYDEN_COMMIT");
    let told = option_env!("LEYDEN_COMMIT").filter(|commit| !commit.is_empty()).map(str::to_owned);
    let commit = told.or_else(of_checkout).unwrap_or_default();
    println!("cargo::rustc-env=LEYDEN_COMMIT={commit}");
}

/// The commit of the checkout that this folder is in, with `+` if its files differ.
fn of_checkout() -> Option<String> {
    let root = Path::new("../..").canonicalize().ok()?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    for name in ["HEAD", "index"] {
        println!("cargo::rerun-if-changed={}", git(&["rev-parse", "--git-path", name])?);
    }
    println!("cargo::rerun-if-changed=../../crates");
    git(&["describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("--no-optional-locks").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
