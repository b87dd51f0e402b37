//! Every command that a page prints is run: README, docs/, the scenarios' headers.
//!
//! In a short form ([`short`]): the same command on the same drive, with no preconditioning and little work. So a
//! command that is refused is found, whatever refuses it: a flag, a key, a scenario, a drive that cannot be built.
//! The output that a page shows is compared in full by
//!
//! ```sh
//! cargo test --release --workspace --test docs -- --ignored                  # says what differs
//! DOCS=overwrite cargo test --release --workspace --test docs -- --ignored   # and writes it anew
//! ```

mod conclusions;
mod pages;
mod samples;
mod shell;
mod short;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use pages::{Step, Typed, files_below, mentions, pages, root, steps};
use serde_json::Value;
use shell::Line;

/// A traveller through a page: a folder with what was saved, and a drive that is served.
struct Reader {
    folder: tempfile::TempDir,
    /// With its switch.
    served: Option<(Child, PathBuf)>,
}

impl Reader {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Files of a reader who comes from elsewhere: a trace of the FIU kind, a store's calls on
        // files, a home, and a stranger's image.
        let trace = "Timestamp,Response,IOType,LUN,Offset,Size\n1456135200.013118000,0.000806000,R,0,8192,4096\n";
        fs::write(folder.path().join("LUN3.csv.gz"), trace).unwrap();
        let files =
            "leyden-files 1\n0 0 1000 c 0 1 0 /db/000004.log\n1 0 400000 a 0 40 37000\nend\n";
        fs::write(folder.path().join("mine.files"), files).unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        let reader = Self { folder, served: None };
        let create = ["image", "create", "stranger.leyden"].map(str::to_owned);
        let create = short::form(&create, &|args| reader.leyden(args).output().unwrap());
        assert!(reader.leyden(&create).output().unwrap().status.success());
        reader
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn leyden(&self, args: &[String]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leyden"));
        command.current_dir(self.path()).args(args).stdin(Stdio::null());
        command.env("HOME", self.path().join("home")).env("XDG_CACHE_HOME", self.path());
        command
    }

    fn expand(&self, word: &str) -> String {
        let home = self.path().join("home");
        let socket = self.path().join("leyden.sock");
        let word = word.replace("/tmp/leyden.sock", socket.to_str().unwrap());
        word.strip_prefix("~/").map_or(word.clone(), |rest| home.join(rest).display().to_string())
    }

    /// Runs `line`; `None` if it is not for `leyden`, and only looked at.
    fn run(&mut self, line: &Line) -> Option<Output> {
        if line.words[0] == "mkdir" {
            assert_eq!(line.words[1], "-p");
            fs::create_dir_all(self.expand(&line.words[2])).unwrap();
            return None;
        }
        if line.words[0] != "leyden" {
            names_what_is_there(&line.words);
            return None;
        }
        let words: Vec<_> = line.words[1..].iter().map(|word| self.expand(word)).collect();
        match words[0].as_str() {
            // Commands that take root or certificates: served.rs and the tests of `serve` have the
            // rest.
            "mount" | "crashtest" => Flags::default().know(&line.words),
            "serve" if words.iter().any(|word| word.starts_with("--tls")) => {
                Flags::default().know(&line.words);
            }
            "serve" => self.serve(&words),
            _ => return Some(self.ask(line, &words)),
        }
        None
    }

    fn ask(&mut self, line: &Line, words: &[String]) -> Output {
        if words[0] == "recording" {
            self.close(); // what is recorded is looked at once it is whole
        }
        let args = short::form(words, &|args| self.leyden(args).output().unwrap());
        let output = self.leyden(&args).output().unwrap();
        if let Some(file) = &line.file {
            let file = self.path().join(self.expand(file));
            let file = fs::File::create(&file);
            file.expect("a folder that is there").write_all(&output.stdout).unwrap();
        }
        output
    }

    fn serve(&mut self, args: &[String]) {
        self.close();
        let mut args = args.to_vec();
        // Whether this machine can mount is asked in served.rs.
        if let Some(fuse) = args.iter().position(|arg| arg == "--fuse") {
            args.drain(fuse..fuse + 2);
        }
        // The usual port may be taken.
        args.iter_mut().filter(|arg| *arg == "tcp").for_each(|arg| "tcp:0".clone_into(arg));
        if !args.iter().any(|arg| arg == "--nbd" || arg == "--programs" || arg == "--nvme") {
            args.extend(["--nbd".to_owned(), self.expand("unix:/tmp/leyden.sock")]);
        }
        let child = self.leyden(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        // The last that is opened.
        let switch = self.path().join(format!("{}.sock", args[1]));
        self.served = Some((child.unwrap(), switch.clone()));
        for _ in 0..1200 {
            // The file is there before the server listens.
            if UnixStream::connect(&switch).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("nothing is served: {args:?}");
    }

    /// Ends the server, if one runs, as Ctrl-C does.
    fn close(&mut self) {
        let Some((mut child, switch)) = self.served.take() else { return };
        let term = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(term.unwrap().success());
        assert!(child.wait().unwrap().success());
        assert!(!switch.exists());
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.served.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// The help of each command, read once.
#[derive(Default)]
struct Flags {
    helps: BTreeMap<String, String>,
}

impl Flags {
    /// Asserts that there is such a command of `leyden`, with these flags.
    fn know(&mut self, words: &[String]) {
        // `leyden trace info|convert` names two; `leyden compare ...` leaves the rest out. The commands of a crash
        // test have flags of their own.
        let has_command = words.get(2).is_some_and(|word| !word.starts_with("--"));
        let has_commands = matches!(&*words[1], "crashtest" | "trace");
        let depth = if has_commands && has_command { 3 } else { 2 };
        let help = self.helps.entry(words[1..depth].join(" ")).or_insert_with(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_leyden"));
            let output = command.args(&words[1..depth]).arg("--help").output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        });
        if words[1] == "fs" {
            return; // what it takes is for `leyden-fs` to say, which is not built here
        }
        assert!(help.contains("Usage: leyden"), "{words:?}");
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            let flag = flag.split('=').next().unwrap();
            assert!(help.contains(flag), "{words:?}: there is no {flag}");
        }
    }
}

/// A command that is not `leyden`'s: what it names must be in this repository.
fn names_what_is_there(words: &[String]) {
    let named = |flag: &'static str| {
        let pairs = words.windows(2).filter(move |pair| pair[0] == flag);
        pairs.map(|pair| pair[1].as_str()).filter(|name| !is_placeholder(name))
    };
    if words[0].starts_with("./") || words[0].contains("campaigns/") {
        assert!(root().join(&words[0]).exists(), "{words:?}");
    }
    for path in named("--path") {
        assert!(root().join(path).exists(), "{words:?}: no {path}");
    }
    for package in named("-p").chain(named("--package")) {
        let folder =
            if package == "leyden" { "cli" } else { package.trim_start_matches("leyden-") };
        let is_there = root().join("crates").join(folder).exists()
            || root().join("examples").join(package).join("Cargo.toml").exists();
        assert!(is_there, "{words:?}: no {package}");
    }
    // The crate of fuzz targets is none of this workspace.
    let manifest = named("--manifest-path").next().map(|path| root().join(path));
    let home =
        manifest.as_ref().map_or_else(|| root().join("crates"), |path| path.with_file_name(""));
    for bin in named("--bin").filter(|_| manifest.is_some()) {
        let text = fs::read_to_string(manifest.as_ref().unwrap()).unwrap();
        assert!(text.contains(&format!("name = \"{bin}\"")), "{words:?}: no {bin}");
    }
    let sources = files_below(&home, "rs");
    for (flag, folder) in [("--test", "tests/"), ("--example", "examples/"), ("--lib", "src/")] {
        for name in named(flag).map(|name| name.trim_end_matches("::")) {
            let ends = ["", "/main", "/mod"].map(|end| format!("/{name}{end}.rs"));
            let is_there = sources.iter().any(|file| {
                let file = file.to_str().unwrap();
                file.contains(folder) && ends.iter().any(|end| file.ends_with(end))
            });
            assert!(is_there, "{words:?}: no {name} in {folder} of a crate");
        }
    }
}

/// A word that stands for a value of the reader's own.
fn is_placeholder(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

/// The difference between the page and the result of `typed`, if there is one.
fn complaint(typed: &Typed, line: &Line, output: &Output) -> Option<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let refused = typed.output.as_ref().is_some_and(|lines| lines[0].starts_with("error: "));
    let code = if refused { 2 } else { 0 };
    if output.status.code() != Some(code) {
        return Some(format!("{}, not {code}\n{stderr}", output.status));
    }
    if let Some(shown) = &typed.output {
        let labels = refused || samples::labels_are_in(shown, &stdout);
        let same = !refused || samples::fits(shown, &stderr);
        if !labels || !same {
            return Some(format!(
                "the page shows\n{}\nand it says\n{stdout}{stderr}",
                shown.join("\n")
            ));
        }
    }
    if let Some(filter) = &line.filter {
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = value.pointer(&filter.replace('.', "/")).is_some_and(|found| !found.is_null());
        return (!found).then(|| format!("no {filter} in the record"));
    }
    None
}

/// Goes through `pages` one after the other; each command must do what the page says.
fn read(pages: &[&Path]) -> (usize, Vec<String>) {
    let mut reader = Reader::new();
    let (mut count, mut complaints) = (0, Vec::new());
    // A page may show the file below the command that wants it.
    let in_order = |page: &&Path| {
        let mut steps = steps(page);
        steps.sort_by_key(|step| matches!(step, Step::Type(_)));
        steps
    };
    for step in pages.iter().flat_map(in_order) {
        let typed = match step {
            Step::Save(name, content) => {
                fs::write(reader.path().join(name), content).unwrap();
                continue;
            }
            Step::Type(typed) => typed,
        };
        count += 1;
        let line = shell::parse(&typed.command);
        let Some(output) = reader.run(&line) else { continue };
        if let Some(complaint) = complaint(&typed, &line, &output) {
            complaints.push(format!("{}: {}\n{complaint}", typed.place, typed.command));
        }
    }
    (count, complaints)
}

/// The pages of `part`, which go through the same folder.
fn check(belongs: impl Fn(&str) -> bool, at_least: usize) {
    let all = pages();
    let part: Vec<_> = all
        .iter()
        .map(PathBuf::as_path)
        .filter(|page| belongs(page.strip_prefix(root()).unwrap().to_str().unwrap()))
        .collect();
    let (count, complaints) = read(&part);
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
    assert!(count >= at_least, "{count} commands were found: is the reader of pages blind?");
}

fn of_research(page: &str) -> bool {
    page.starts_with("docs/papers/") || page.starts_with("docs/notebooks/")
}

/// Those that build on each other: the tutorial's files and records are used by the recipes.
fn for_newcomers(page: &str) -> bool {
    ["docs/tutorial.md", "README.md"].contains(&page) || page.starts_with("docs/how-to/")
}

#[test]
fn commands_for_newcomers_do_what_their_pages_say() {
    check(for_newcomers, 45);
}

#[test]
fn commands_of_papers_and_notebooks_do_what_they_say() {
    check(of_research, 40);
}

#[test]
fn commands_of_other_pages_do_what_they_say() {
    let is_elsewhere = |page: &str| page.starts_with("scenarios/") || of_research(page);
    check(|page| !for_newcomers(page) && !is_elsewhere(page), 50);
}

#[test]
fn commands_in_scenarios_do_what_they_say() {
    check(|page| page.starts_with("scenarios/"), 25);
}

#[test]
fn commands_in_running_text_have_their_flags() {
    let mut flags = Flags::default();
    let mut count = 0;
    for mention in pages().iter().flat_map(|page| mentions(page)) {
        count += 1;
        let words = shell::parse(&mention).words;
        if !words[1].starts_with("--") {
            flags.know(&words);
        }
    }
    assert!(count > 20, "{count} commands were found");
}

/// Pages whose recipes must say what comes of them.
fn has_recipes(page: &Path) -> bool {
    page.ends_with("docs/tutorial.md")
        || page.parent().is_some_and(|folder| folder.ends_with("docs/how-to"))
}

/// Whether others build on what a command writes.
fn makes_files(line: &Line) -> bool {
    line.words.iter().any(|word| word == "--out" || word == "--report")
}

/// A recipe that answers something says what, for the test below.
#[test]
fn recipes_say_what_they_conclude() {
    let mut count = 0;
    for page in pages().iter().filter(|page| has_recipes(page)) {
        let mut silent = Vec::new();
        for step in steps(page) {
            let Step::Type(typed) = step else { continue };
            let refused = typed.output.iter().flatten().any(|line| line.starts_with("error: "));
            count += typed.conclusions.len();
            let line = shell::parse(&typed.command);
            let must = conclusions::measures(&line) && !makes_files(&line) && !refused;
            if must && typed.conclusions.is_empty() {
                silent.push(format!("{}: {}", typed.place, typed.command));
            }
        }
        assert!(silent.is_empty(), "no `<!-- concludes: ... -->` behind\n{}", silent.join("\n"));
    }
    assert!(count > 30, "{count} conclusions were found");
}

#[test]
#[ignore = "takes minutes: what recipes conclude, in full"]
#[expect(clippy::disallowed_methods, reason = "chooses a recipe by hand")]
fn recipes_come_to_their_conclusions() {
    let reader = Reader::new();
    let mut complaints = Vec::new();
    let only = std::env::var("RECIPE").unwrap_or_default(); // a part of the place or the command
    for page in pages().iter().filter(|page| has_recipes(page)) {
        let mut steps = steps(page);
        steps.sort_by_key(|step| matches!(step, Step::Type(_)));
        for step in steps {
            let typed = match step {
                Step::Save(name, content) => {
                    fs::write(reader.path().join(name), content).unwrap();
                    continue;
                }
                Step::Type(typed) => typed,
            };
            let line = shell::parse(&typed.command);
            let makes = makes_files(&line);
            let is_chosen = format!("{} {}", typed.place, typed.command).contains(&only);
            if line.words[0] != "leyden" || !(makes || is_chosen && !typed.conclusions.is_empty()) {
                continue;
            }
            let mut words = line.words[1..].to_vec();
            words.push("--json".to_owned());
            let output = reader.leyden(&words).output().unwrap();
            let Ok(printed) = serde_json::from_slice::<Value>(&output.stdout) else {
                let said = String::from_utf8_lossy(&output.stderr);
                complaints.push(format!("{}: {}\n{said}", typed.place, typed.command));
                continue;
            };
            let printed = printed.get("runs").cloned().unwrap_or(printed); // of a comparison
            for conclusion in &typed.conclusions {
                if let Some(complaint) = conclusion.complaint(&printed) {
                    complaints.push(format!("{}: {}\n{complaint}", typed.place, typed.command));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
#[ignore = "takes minutes: what pages show as output, in full"]
fn shown_outputs_are_current() {
    let overwrite = std::env::var_os("DOCS").is_some_and(|what| what == "overwrite");
    let reader = Reader::new();
    let mut differences = Vec::new();
    for page in pages().iter().rev() {
        for step in steps(page) {
            let typed = match step {
                Step::Save(name, content) => {
                    fs::write(reader.path().join(name), content).unwrap();
                    continue;
                }
                Step::Type(typed) => typed,
            };
            let Some(shown) = &typed.output else { continue };
            let words = shell::parse(&typed.command).words;
            let output = reader.leyden(&words[1..]).output().unwrap();
            let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
            let said = String::from_utf8(said).unwrap();
            if samples::fits(shown, &said) {
                continue;
            }
            differences.push(format!("{}: {}\n{said}", typed.place, typed.command));
            if overwrite {
                samples::overwrite(page, &typed, &said);
            }
        }
    }
    assert!(differences.is_empty() || overwrite, "{}", differences.join("\n\n"));
}
