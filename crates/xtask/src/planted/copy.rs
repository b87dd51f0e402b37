//! The copy of the sources that holds the bugs, below the target folder, and the programs built from it.
//!
//! It is built with the profile and into the target folder of everything else: what others wrote is not compiled
//! again. Files that have not changed keep their time, and so does what was built from them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::list::Finder;

/// The name of the example that runs seeds.
const EXAMPLE: &str = "planted";
/// Folders from which no program is built.
const LEFT_OUT: &[&str] = &[".git", "target", "out", "fuzz"];
/// Where our own lints begin in the workspace's manifest: a planted line may look odd.
const LINTS: &str = "[workspace.lints.";

/// The programs that find bugs.
pub(super) struct Programs {
    /// The copy, where tests find their files.
    pub(super) folder: PathBuf,
    pub(super) torture: Option<PathBuf>,
    /// The programs of a package's test target, each with the folder of its package.
    pub(super) tests: BTreeMap<(String, String), Vec<(PathBuf, PathBuf)>>,
}

/// Writes the copy of `root` with `texts` in place of the files at their paths, and builds what `finders` name.
pub(super) fn build(
    root: &Path,
    texts: &BTreeMap<String, String>,
    finders: &BTreeSet<Finder>,
    profile: Option<&str>,
) -> io::Result<Programs> {
    let root = root.canonicalize()?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let target = std::path::absolute(target)?;
    let folder = target.join("planted");
    let mut kept = BTreeSet::new();
    write(&root, &folder, Path::new(""), texts, &mut kept)?;
    remove_others(&folder, Path::new(""), &kept)?;
    // Bugs that no finder of this run links must compile, too: only the run of all tests builds them.
    let packages = packages(texts);
    let chosen = packages.iter().flat_map(|name| ["--package", name]);
    let arguments: Vec<&str> = ["check", "--lib"].into_iter().chain(chosen).collect();
    cargo(&folder, &target, &arguments, profile)?;
    let mut programs = Programs { folder, torture: None, tests: BTreeMap::new() };
    if finders.iter().any(Finder::is_torture) {
        let built = cargo(
            &programs.folder,
            &target,
            &["build", "--workspace", "--example", EXAMPLE],
            profile,
        )?;
        programs.torture = built.into_iter().map(|(program, _)| program).next();
    }
    for finder in finders {
        let Finder::Test { package, target: test, .. } = finder else { continue };
        let key = (package.clone(), test.clone());
        if programs.tests.contains_key(&key) {
            continue;
        }
        let mut arguments = vec!["test", "--no-run", "--package", package];
        match test.as_str() {
            "lib" => arguments.push("--lib"),
            "all" => arguments.extend(["--lib", "--tests"]),
            name => arguments.extend(["--test", name]),
        }
        let all = cargo(&programs.folder, &target, &arguments, profile)?;
        let home = programs.folder.join("crates").join(package.trim_start_matches("leyden-"));
        let built = all.into_iter().filter(|(_, manifest)| manifest.parent() == Some(&home));
        let built: Vec<_> = built.map(|(program, _)| (program, home.clone())).collect();
        if built.is_empty() {
            return Err(io::Error::other(format!("{package} has no test target {test}")));
        }
        programs.tests.insert(key, built);
    }
    Ok(programs)
}

/// The packages of the files at `texts`' paths.
fn packages(texts: &BTreeMap<String, String>) -> BTreeSet<String> {
    let folders = texts.keys().filter_map(|path| path.strip_prefix("crates/")?.split('/').next());
    folders.map(|folder| format!("leyden-{folder}")).collect()
}

/// Runs cargo in `folder`; the programs that it has built, and their packages' manifests.
fn cargo(
    folder: &Path,
    target: &Path,
    arguments: &[&str],
    profile: Option<&str>,
) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .args(profile.iter().flat_map(|profile| ["--profile", profile]))
        .args(["--locked", "--quiet", "--message-format", "json-render-diagnostics"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .env_remove("PLANTED")
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        let problem = format!("cargo {} failed in {}", arguments.join(" "), folder.display());
        return Err(io::Error::other(problem));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let path = |key: &str| message[key].as_str().map(PathBuf::from);
        Some((path("executable")?, path("manifest_path")?))
    };
    Ok(messages.filter_map(program).collect())
}

/// Copies what is below `at`, and notes what belongs there.
fn write(
    root: &Path,
    folder: &Path,
    at: &Path,
    texts: &BTreeMap<String, String>,
    kept: &mut BTreeSet<PathBuf>,
) -> io::Result<()> {
    std::fs::create_dir_all(folder.join(at))?;
    for entry in std::fs::read_dir(root.join(at))? {
        let entry = entry?;
        if at == Path::new("") && LEFT_OUT.iter().any(|&name| entry.file_name() == OsStr::new(name))
        {
            continue;
        }
        let path = at.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if entry.path() == folder || entry.file_name() == OsStr::new("target") {
                continue;
            }
            write(root, folder, &path, texts, kept)?;
        } else if kind.is_file() {
            let text = path.to_str().and_then(|path| texts.get(path));
            let bytes = match text {
                Some(text) => text.clone().into_bytes(),
                None => std::fs::read(entry.path())?,
            };
            let bytes = if path == Path::new("Cargo.toml") { without_lints(&bytes) } else { bytes };
            let to = folder.join(&path);
            if std::fs::read(&to).ok().as_ref() != Some(&bytes) {
                std::fs::write(&to, &bytes)?;
                std::fs::set_permissions(&to, entry.metadata()?.permissions())?;
            }
        } else {
            continue;
        }
        kept.insert(path);
    }
    Ok(())
}

/// Removes what is in the copy and not in the sources any more.
fn remove_others(folder: &Path, at: &Path, kept: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder.join(at))? {
        let entry = entry?;
        let path = at.join(entry.file_name());
        match (kept.contains(&path), entry.file_type()?.is_dir()) {
            (true, true) => remove_others(folder, &path, kept)?,
            (true, false) => {}
            (false, true) => std::fs::remove_dir_all(entry.path())?,
            (false, false) => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// The workspace's manifest with all lints off.
fn without_lints(manifest: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(manifest);
    let mut out = String::new();
    let mut is_lint = false;
    for line in text.lines() {
        if line.starts_with('[') {
            is_lint = line.starts_with(LINTS);
        }
        if !is_lint {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.push_str("\n[workspace.lints.rust]\nwarnings = \"allow\"\n");
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_with_a_bug_is_compiled() {
        let paths = ["crates/ftl/src/a.rs", "crates/ftl/src/b.rs", "crates/serve/src/lib.rs"];
        let texts = paths.map(|path| (path.to_owned(), String::new())).into();
        assert!(packages(&texts).iter().eq(["leyden-ftl", "leyden-serve"]));
    }

    #[test]
    fn the_copy_of_the_manifest_allows_everything() {
        let manifest = b"[a]\nb = 1\n[workspace.lints.rust]\nc = \"warn\"\n[workspace.lints.clippy]\nd = 1\n[e]\nf = 2\n";
        let copy = String::from_utf8(without_lints(manifest)).unwrap();
        assert_eq!(
            copy,
            "[a]\nb = 1\n[e]\nf = 2\n\n[workspace.lints.rust]\nwarnings = \"allow\"\n"
        );
    }
}
