//! The interface from C: compiled with warnings as errors, run plain and under sanitizers, and killed.
//!
//! `tests/c/interface.c` has every call, rightly and wrongly; `examples/c-log/log.c` is the worked example of
//! docs/c-interface.md. What a machine cannot do is said on standard error, and left out.

mod c;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use c::{compiled, root, say, succeeds};
use leyden_sim::Rng;

fn every_call(compiler: &str, flags: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(compiler, "tests/c/interface.c", folder.path(), flags) else {
        return;
    };
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let mut program = Command::new(&program);
    // Memory of the library passes between threads under locks that the sanitizer does not see: it
    // looks at the program alone.
    program.env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
    let out = program.arg(&work).output().unwrap();
    assert_eq!(succeeds(&out).trim(), "all is well");
}

#[test]
fn every_call_from_c() {
    every_call("cc", &["-std=c11"]);
}

#[test]
fn every_call_under_the_address_sanitizer() {
    every_call("cc", &["-std=c11", "-fsanitize=address,undefined"]);
}

#[test]
fn every_call_under_the_thread_sanitizer() {
    every_call("cc", &["-std=c11", "-fsanitize=thread"]);
}

/// A planted slip, so that the sanitizers are known to look: a buffer that is shorter than what is read into it.
#[test]
fn the_address_sanitizer_finds_a_buffer_that_is_too_short() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-std=c11", "-fsanitize=address"];
    let Some(program) = compiled("cc", "tests/c/overrun.c", folder.path(), &flags) else { return };
    let out = Command::new(&program).arg(folder.path().join("disk.leyden")).output().unwrap();
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && told.contains("AddressSanitizer"), "{told}");
}

#[test]
fn the_header_is_c99_and_cpp() {
    let header = root().join("include/leyden.h");
    for (compiler, flags) in [
        ("cc", ["-std=c99", "-xc"]),
        ("c++", ["-std=c++11", "-xc++"]),
        ("clang", ["-std=c17", "-xc"]),
    ] {
        let out = Command::new(compiler)
            .args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
            .args(flags)
            .arg(&header)
            .output();
        match out {
            Err(_) => say(&format!("SKIPPED: there is no {compiler}")),
            // A compiler may warn that a header was given alone.
            Ok(out) => {
                let told = String::from_utf8_lossy(&out.stderr);
                assert!(out.status.success(), "{compiler}: {told}");
            }
        }
    }
}

/// The program of docs/c-interface.md, as it stands there.
#[test]
fn the_program_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(root().join("../../docs/c-interface.md")).unwrap();
    let program = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let source = folder.path().join("first.c");
    std::fs::write(&source, program).unwrap();
    let flags = ["-std=c11", "-Wno-missing-field-initializers"];
    let compiled = compiled("cc", source.to_str().unwrap(), folder.path(), &flags);
    let Some(program) = compiled else { return };
    let told = succeeds(&Command::new(program).current_dir(folder.path()).output().unwrap());
    assert!(page.contains(&format!("prints `{}`", told.trim())), "{told}");
}

/// The worked example, killed at random moments: every record that it has told of is there.
#[test]
fn promised_data_of_a_killed_program_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("cc", "../../examples/c-log/log.c", folder.path(), &["-std=c99"])
    else {
        return;
    };
    let image = folder.path().join("disk.leyden");
    let log = |command: &str, more: &[&str]| {
        let mut log = Command::new(&program);
        log.arg(command).arg(&image).args(more);
        log
    };
    succeeds(&log("create", &[]).output().unwrap());
    let mut rng = Rng::new(5, "capi.kill");
    let (mut promised, mut in_all) = (0, 0);
    for round in 0..12 {
        let mut child = log("append", &["100000"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut left = rng.below(600);
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let number: u64 = line.unwrap().parse().unwrap();
            assert_eq!(number, promised, "round {round}");
            promised += 1;
            if left == 0 {
                child.kill().unwrap();
            }
            left = left.saturating_sub(1);
        }
        child.wait().unwrap();
        let told = succeeds(&log("check", &[]).output().unwrap());
        let found: u64 = told.split(' ').next().unwrap().parse().unwrap();
        // One record may have been written, and not told of.
        assert!((promised..=promised + 1).contains(&found), "round {round}: {found} of {promised}");
        in_all += found - promised;
        promised = found;
    }
    say(&format!("{promised} records, {in_all} of them not told of"));
    assert!(promised > 500);
}

/// Threads whose appends take turns between the pools of the buffer: a healthy zone takes them all.
#[test]
fn healthy_zones_take_appends_from_several_threads() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("cc", "tests/c/appends.c", folder.path(), &["-std=c11"]) else {
        return;
    };
    for threads in ["4", "8"] {
        let image = folder.path().join(format!("{threads}.leyden"));
        succeeds(&Command::new(&program).arg("create").arg(&image).output().unwrap());
        let out = Command::new(&program).arg("open").arg(&image).arg(threads).output().unwrap();
        assert_eq!(succeeds(&out).trim(), "all is well");
    }
}
