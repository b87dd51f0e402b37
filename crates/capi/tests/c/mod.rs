//! Programs in C: compiled with warnings as errors, and linked with `libleyden.so`. What a machine cannot do is said on
//! standard error, and left out.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo puts `libleyden.so`: beside this test.
fn libraries() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(folder.join("libleyden.so").exists(), "no libleyden.so in {}", folder.display());
    folder
}

#[expect(clippy::print_stderr, reason = "what is left out is said")]
pub(crate) fn say(what: &str) {
    eprintln!("{what}");
}

/// Compiles a program of ours with `compiler` and more `flags`. `None`, with a word about it, if the compiler is not
/// there, or cannot do what the flags ask for.
pub(crate) fn compiled(compiler: &str, source: &str, to: &Path, flags: &[&str]) -> Option<PathBuf> {
    let probe = to.join("probe.c");
    std::fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
    let compile = |source: &OsStr, program: &Path, more: &[&OsStr]| {
        Command::new(compiler)
            .args(["-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
            .args(flags)
            .arg(source)
            .arg("-o")
            .arg(program)
            .args(more)
            .output()
    };
    let probed = to.join("probe");
    let can = compile(probe.as_os_str(), &probed, &[]).is_ok_and(|out| out.status.success())
        && Command::new(&probed).output().is_ok_and(|out| out.status.success());
    if !can {
        say(&format!("SKIPPED: {compiler} {} is not to be had here", flags.join(" ")));
        return None;
    }
    let program = to.join(Path::new(source).file_stem().unwrap());
    let libraries = libraries();
    let (include, rpath) = (root().join("include"), format!("-Wl,-rpath,{}", libraries.display()));
    let more: Vec<&OsStr> = vec![
        "-I".as_ref(),
        include.as_os_str(),
        "-L".as_ref(),
        libraries.as_os_str(),
        "-lleyden".as_ref(),
        "-lpthread".as_ref(),
        rpath.as_ref(),
    ];
    let out = compile(root().join(source).as_os_str(), &program, &more).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(program)
}

pub(crate) fn succeeds(out: &Output) -> String {
    let [stdout, stderr] = [&out.stdout, &out.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(out.status.success(), "{}\n{stdout}\n{stderr}", out.status);
    stdout.into_owned()
}
