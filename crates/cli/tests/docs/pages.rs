//! Commands and files that a page asks its reader to type and to save.

use std::path::{Path, PathBuf};

use super::conclusions::{self, Condition};
use super::shell;

/// A line to type.
#[derive(Debug, PartialEq)]
pub(crate) struct Typed {
    /// The page, and its line: `docs/tutorial.md:20`.
    pub(crate) place: String,
    pub(crate) command: String,
    /// The lines below the command, if the page shows its output.
    pub(crate) output: Option<Vec<String>>,
    /// The page's conclusions from it, if it has any.
    pub(crate) conclusions: Vec<Condition>,
}

/// A page's steps, in its order.
#[derive(Debug)]
pub(crate) enum Step {
    Type(Typed),
    /// A file to save: its name and its content.
    Save(String, String),
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All pages with commands: the tutorial first, as others use what it saves.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut pages = files_below(&root().join("docs"), "md");
    pages.retain(|page| !page.ends_with("docs/reference/cli.md"));
    pages.extend(["README.md", "CONTRIBUTING.md", "fuzz/README.md"].map(|name| root().join(name)));
    pages.extend(files_below(&root().join("scenarios"), "toml"));
    pages.sort_by_key(|page| (!page.ends_with("docs/tutorial.md"), page.clone()));
    pages
}

/// The files with this extension in `folder` and below it.
pub(crate) fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in folder.read_dir().unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files
}

pub(crate) fn has_extension(file: &str, extension: &str) -> bool {
    Path::new(file).extension().is_some_and(|found| found == extension)
}

/// The steps of `page`.
pub(crate) fn steps(page: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(page).unwrap();
    let name = page.strip_prefix(root()).unwrap().display().to_string();
    if has_extension(&name, "toml") { header(&name, &text) } else { markdown(&name, &text) }
}

/// The comment that a scenario begins with.
fn header(name: &str, text: &str) -> Vec<Step> {
    let comment = text.lines().map_while(|line| line.strip_prefix('#'));
    let lines: Vec<_> = (1..).zip(comment).collect();
    let typed =
        commands(name, lines.iter().filter_map(|&(n, l)| Some((n, l.strip_prefix("     ")?))));
    typed.into_iter().map(Step::Type).collect()
}

/// A block of code: the number of its first line, its language, and its lines.
struct Block<'a> {
    first: usize,
    language: &'a str,
    lines: Vec<&'a str>,
}

fn markdown(name: &str, text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut before = String::new(); // the paragraph that stands above
    let mut lines = (1..).zip(text.lines()).peekable();
    let mut after_blank = true;
    let mut block_of = 0; // where the steps of the last block begin
    while let Some((first, line)) = lines.next() {
        let block = if let Some(language) = line.strip_prefix("```") {
            let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            Block { first: first + 1, language, lines: inside.collect() }
        } else if let (true, Some(line)) = (after_blank, line.strip_prefix("    ")) {
            let mut block = vec![line];
            // Blank lines are of the block if it goes on below them.
            while let Some((_, line)) =
                lines.next_if(|(_, line)| line.is_empty() || line.starts_with("    "))
            {
                block.push(line.get(4..).unwrap_or_default());
            }
            block.truncate(block.len() - block.iter().rev().take_while(|l| l.is_empty()).count());
            Block { first, language: "", lines: block }
        } else if let Some(conditions) = conclusions::parse(line) {
            // Of a block's commands, the first that measures something and has none yet.
            let silent = |step: &&mut Step| {
                let Step::Type(typed) = step else { return false };
                typed.conclusions.is_empty() && conclusions::measures(&shell::parse(&typed.command))
            };
            match steps[block_of..].iter_mut().find(silent) {
                Some(Step::Type(typed)) => typed.conclusions = conditions,
                _ => panic!("{name}:{first}: a conclusion without a command"),
            }
            continue;
        } else {
            if after_blank && !line.is_empty() {
                before.clear();
            }
            after_blank = line.is_empty();
            before += line;
            before += " ";
            continue;
        };
        after_blank = true;
        let typed = commands(name, (block.first..).zip(block.lines.iter().copied()));
        if !typed.is_empty() && matches!(block.language, "" | "sh") {
            block_of = steps.len();
            steps.extend(typed.into_iter().map(Step::Type));
        } else if let Some(file) = named_file(&before)
            && (block.language == "toml" || !has_extension(&file, "toml"))
        {
            steps.push(Step::Save(file, block.lines.join("\n") + "\n"));
        }
        before.clear();
    }
    steps
}

/// The file of one's own that a paragraph names last: no path, and in backticks.
fn named_file(paragraph: &str) -> Option<String> {
    let named = paragraph.split('`').skip(1).step_by(2).filter(|name| {
        ["toml", "csv", "txt"].iter().any(|&end| has_extension(name, end))
            && !name.contains(['/', ' '])
    });
    named.last().map(str::to_owned)
}

/// The commands among `lines` of a block: `leyden ...`, or `$ leyden ...` with its output below.
fn commands<'a>(name: &str, lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Typed> {
    let mut commands: Vec<Typed> = Vec::new();
    let mut is_continued = false;
    for (number, line) in lines {
        let shown = line.strip_prefix("$ ");
        let typed = shown.unwrap_or(line);
        if is_continued {
            let command = &mut commands.last_mut().unwrap().command;
            *command = format!("{} {}", command.trim_end_matches('\\'), typed.trim());
            is_continued = command.ends_with('\\');
        } else if is_command(typed) {
            let (place, command) = (format!("{name}:{number}"), typed.trim().to_owned());
            is_continued = command.ends_with('\\');
            commands.push(Typed {
                place,
                command,
                output: shown.map(|_| Vec::new()),
                conclusions: Vec::new(),
            });
        } else if let Some(Typed { output: Some(output), .. }) = commands.last_mut() {
            output.push(line.to_owned());
        }
    }
    commands
}

fn is_command(line: &str) -> bool {
    ["leyden ", "cargo ", "./", "campaigns/", "papers/campaigns/", "mkdir "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Commands named in running text, between backticks: `leyden trace info`. Line breaks are spaces there.
pub(crate) fn mentions(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut inside_code = false;
    let prose: Vec<_> = text
        .lines()
        .filter(|line| {
            let fence = line.starts_with("```");
            inside_code ^= fence;
            !fence && !inside_code
        })
        .collect();
    let prose = prose.join(" ");
    let quoted = prose.split('`').skip(1).step_by(2);
    quoted.filter(|quoted| quoted.starts_with("leyden ")).map(str::to_owned).collect()
}

#[test]
fn commands_files_and_outputs_are_found() {
    let page = "Save this as `a.toml`,\nnext to it:\n\n```toml\nx = 1\n```\n\nThen\n\n    leyden run a.toml \\\n        --json\n\n\
                or\n\n    $ leyden run b\n    error: no b\n\n    help: b\n\nand `leyden check`.\n";
    let steps = markdown("p.md", page);
    let Step::Save(name, content) = &steps[0] else { panic!("{steps:?}") };
    assert_eq!((name.as_str(), content.as_str()), ("a.toml", "x = 1\n"));
    let typed: Vec<_> = steps[1..]
        .iter()
        .map(|step| match step {
            Step::Type(typed) => {
                (typed.place.as_str(), typed.command.as_str(), typed.output.clone())
            }
            Step::Save(..) => panic!("{step:?}"),
        })
        .collect();
    let shown = Some(vec!["error: no b".to_owned(), String::new(), "help: b".to_owned()]);
    assert_eq!(
        typed,
        [("p.md:10", "leyden run a.toml  --json", None), ("p.md:15", "leyden run b", shown)]
    );
}
