//! The commands of docs/crashtest.md are run, one after the other, with its scripts: with few
//! states, where this machine has the programs they take.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

use std::path::Path;
use std::process::{Command, Stdio};

const LEYDEN: &str = env!("CARGO_BIN_EXE_leyden");

/// A page's scripts, by name, and its commands; in the order in which they stand there.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Script(String, String),
    Command(String),
}

/// A block of shell is the script that was named last in the text before and has no block yet.
fn parts(page: &str) -> Vec<Part> {
    let (mut parts, mut named) = (Vec::new(), std::collections::VecDeque::new());
    let mut block: Option<(bool, String)> = None;
    for line in page.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some((language == "sh", String::new())),
            (Some(_), Some(_)) => {
                if let Some((true, text)) = block.take() {
                    let name: String = named.pop_front().expect("a script without a name");
                    parts.push(Part::Script(name, text));
                }
            }
            (Some((_, text)), None) => text.extend([line, "\n"]),
            (None, None) => {
                if let Some(args) = line.strip_prefix("    leyden crashtest") {
                    parts.push(Part::Command(format!("crashtest{args}")));
                } else {
                    let names = line.split('`').skip(1).step_by(2);
                    named.extend(names.filter(|name| is_script(name)).map(str::to_owned));
                }
            }
        }
    }
    parts
}

fn is_script(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "sh")
}

/// The same with few states.
fn shortened(command: &str) -> String {
    let mut words: Vec<&str> = command.split(' ').collect();
    for at in 1..words.len() {
        match words[at - 1] {
            "--states" | "--cuts" => words[at] = "12",
            "--uf" => words[at] = "60,400",
            _ => {}
        }
    }
    let mut short = words.join(" ").replace("\"5 min\"", "10s");
    // Those that record and run at once, and runs by time.
    if (words[1].starts_with("devices/") || words[1] == "run") && !command.contains("--states") {
        short.push_str(" --states 30");
    }
    short
}

fn run(folder: &Path, command: &str) {
    let path = std::env::join_paths(
        [Path::new(LEYDEN).parent().unwrap().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new("sh")
        .args(["-c", &format!("leyden {command}")])
        .current_dir(folder)
        .env("PATH", path.unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Something may have broken: that is what they are for.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{command}\n{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success()
            || stdout.contains(": NOT ")
            || stdout.contains("acknowledged lost"),
        "{stdout}{stderr}"
    );
}

#[test]
fn commands_of_the_page_are_run() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/crashtest.md");
    let parts = parts(&std::fs::read_to_string(page).unwrap());
    let commands = parts.iter().filter(|part| matches!(part, Part::Command(_))).count();
    assert!(commands >= 10 && parts.len() - commands >= 4, "{parts:?}");
    let doctor = Command::new(LEYDEN).args(["crashtest", "doctor"]).output().unwrap();
    if !doctor.status.success() {
        eprintln!("LEFT OUT: {}", String::from_utf8_lossy(&doctor.stderr).trim());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut early = String::new();
    for part in parts {
        match part {
            // The page says what to change for it to break: that is done, so that there are findings.
            Part::Script(name, text) if name == "work.sh" => {
                let (sync, ack) = ("sync $LEYDEN_MOUNT", "echo \"ack");
                early = text
                    .lines()
                    .filter(|line| !line.contains(ack))
                    .map(|line| {
                        let ack = text.lines().find(|line| line.contains(ack)).unwrap();
                        if line.contains(sync) {
                            format!("{ack}\n{line}\n")
                        } else {
                            format!("{line}\n")
                        }
                    })
                    .collect();
                std::fs::write(folder.path().join(name), text).unwrap();
            }
            Part::Script(name, text) => std::fs::write(folder.path().join(name), text).unwrap(),
            // A shell takes a terminal.
            Part::Command(command) if command.contains("--shell") => {}
            Part::Command(command) => {
                run(folder.path(), &shortened(&command));
                if command.starts_with("crashtest devices/")
                    && folder.path().join("work.sh").exists()
                {
                    std::fs::write(folder.path().join("work.sh"), &early).unwrap();
                    std::fs::remove_dir_all(folder.path().join("crash")).unwrap();
                    run(folder.path(), &shortened(&command));
                }
            }
        }
    }
}
