//! The commit and the profile of this build, for `leyden --version` and run records: digests hold for one build,
//! speeds for one profile.

use std::path::Path;
use std::process::Command;

/// The sources of the binary, beside this folder.
const SOURCES: [&str; 4] =
    ["../../crates", "../../scenarios", "../../Cargo.lock", "../../Cargo.toml"];

#[expect(clippy::disallowed_methods, reason = "how a packer tells the commit")]
fn main() {
    // A package is built outside of a checkout: whoever packs it may say what from.
    println!("cargo::rerun-if-env-changed=LEYDEN_COMMIT");
    let told = std::env::var("LEYDEN_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = told.or_else(of_checkout).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let profile = profile();
    let shown = if commit.is_empty() {
        format!("{version} ({profile})")
    } else {
        format!("{version} ({commit}, {profile})")
    };
    println!("cargo::rustc-env=LEYDEN_COMMIT={commit}");
    println!("cargo::rustc-env=LEYDEN_PROFILE={profile}");
    println!("cargo::rustc-env=LEYDEN_VERSION={shown}");
}

/// The profile of this build, which decides its speed: as `./release` says, else cargo's.
#[expect(clippy::disallowed_methods, reason = "how ./release names its build")]
fn profile() -> String {
    println!("cargo::rerun-if-env-changed=LEYDEN_PROFILE");
    if let Some(said) = std::env::var("LEYDEN_PROFILE").ok().filter(|said| !said.is_empty()) {
        return said;
    }
    // PROFILE says `release` for every profile that inherits it; only the folder has the name:
    // target/[TRIPLE/]PROFILE/build/leyden-HASH/out.
    let folder = std::env::var_os("OUT_DIR").map(std::path::PathBuf::from).unwrap_or_default();
    let name = folder.ancestors().nth(3).and_then(Path::file_name).and_then(|name| name.to_str());
    match name {
        Some("debug") | None => "dev".to_owned(),
        Some(name) => name.to_owned(),
    }
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
