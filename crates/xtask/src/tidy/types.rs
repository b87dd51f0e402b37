//! Types stay small enough to be understood whole: a struct has few fields, and its methods are in few
//! files.
//!
//! A struct that is a mere list of values is exempt: its fields are all `pub`, or it is a table of a
//! configuration or a record (it derives `Serialize` and `JsonSchema`).

use std::collections::BTreeMap;

use super::Finding;
use super::code::{line_of, words};
use super::source::{Source, sources};
use super::tree::Tree;

/// Fields of a struct.
const MOST_FIELDS: usize = 16;
/// Files with methods of one type; traits that it implements are not counted.
const MOST_FILES: usize = 4;

/// Types that may have more, as `crate::Type`, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("host::PageCache", "one state machine; to be cut when zoned_block brings a second host layer"),
    (
        "host::Flusher",
        "as PageCache: its configuration, its walk and what was lost are three things",
    ),
    (
        "device::Zoned",
        "a namespace's commands, turns and dump all move data between its buffer and its zones",
    ),
    ("host::Request", "as PageCache: a request's range and its progress are two things"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, EXCEPTIONS)
}

/// With these exceptions, for tests.
pub(super) fn check_with(tree: &Tree, exceptions: &[(&str, &str)]) -> Vec<Finding> {
    let sources = sources(tree);
    let mut found: Vec<(String, Finding)> = Vec::new();
    for source in &sources {
        found.extend(structs(source).into_iter().filter_map(|it| too_many_fields(source, &it)));
    }
    found.extend(spread(&sources));
    let is_known = |name: &str| exceptions.iter().any(|(known, _)| *known == name);
    let needed: Vec<&String> = found.iter().map(|(name, _)| name).collect();
    let idle = exceptions.iter().filter(|(known, _)| !needed.iter().any(|name| name == known));
    let mut findings: Vec<Finding> = Vec::new();
    for (name, reason) in idle {
        let path = "crates/xtask/src/tidy/types.rs";
        // A tree without this file is a test's, of other things.
        if tree.exists(path) {
            let problem = format!("`{name}` needs no exception any more (\"{reason}\")");
            findings.push(Finding::new(path, 1, problem, "take it out of EXCEPTIONS"));
        }
    }
    findings.extend(found.into_iter().filter(|(name, _)| !is_known(name)).map(|(_, it)| it));
    findings
}

/// A struct with named fields.
struct Struct<'a> {
    name: &'a str,
    at: usize,
    fields: usize,
    is_list: bool,
}

fn too_many_fields(source: &Source<'_>, it: &Struct<'_>) -> Option<(String, Finding)> {
    if it.fields <= MOST_FIELDS || it.is_list {
        return None;
    }
    let problem = format!("`{}` has {} fields, {MOST_FIELDS} at most", it.name, it.fields);
    let remedy = "give groups of them that belong together a type, and their methods with them";
    let finding = Finding::new(source.path, line_of(&source.code, it.at), problem, remedy);
    Some((full_name(source, it.name), finding))
}

fn full_name(source: &Source<'_>, name: &str) -> String {
    format!("{}::{name}", source.krate.trim_start_matches("crates/"))
}

fn structs<'a>(source: &'a Source<'_>) -> Vec<Struct<'a>> {
    let code = &source.code;
    words(code, "struct").filter_map(|at| named_struct(code, at)).collect()
}

fn named_struct(code: &str, at: usize) -> Option<Struct<'_>> {
    let behind = code[at + "struct".len()..].trim_start();
    let name = name_at(behind);
    // Of `struct A;` and `struct A(B);` nothing is asked.
    let brace = behind.find(['{', ';', '(']).filter(|&brace| behind[brace..].starts_with('{'))?;
    let body = body(&behind[brace..]);
    let fields = fields(body);
    let is_public = |field: &&str| field.starts_with("pub ");
    let attributes = &code[..at].rsplit(['}', ';']).next().unwrap_or_default();
    let is_table = ["Serialize", "JsonSchema"]
        .iter()
        .all(|derived| words(attributes, derived).next().is_some());
    let is_list = is_table || fields.iter().all(is_public);
    Some(Struct { name, at, fields: fields.len(), is_list })
}

/// The name that `code` begins with.
fn name_at(code: &str) -> &str {
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_');
    &code[..end.unwrap_or(code.len())]
}

/// The text between the brace that `code` begins with and the one that closes it.
fn body(code: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &code[1..at];
        }
    }
    &code[1..]
}

/// The fields in the body of a struct, without their attributes.
fn fields(body: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let parts = body.split(|c: char| {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    let bare = |part: &'_ str| -> usize {
        // Attributes end with the last `]` before the field's name.
        let name = part.find(':').unwrap_or(part.len());
        part[..name].rfind(']').map_or(0, |at| at + 1)
    };
    let bared = parts.map(|part| part[bare(part)..].trim());
    bared.filter(|part| part.contains(':')).collect()
}

/// Types whose methods are in many files of their crate. Two types of one name in a crate are not told
/// apart, and not looked at.
fn spread(sources: &[Source<'_>]) -> Vec<(String, Finding)> {
    let mut defined: BTreeMap<(&str, &str), Vec<(&Source<'_>, usize)>> = BTreeMap::new();
    let mut files: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for source in sources {
        for kind in ["struct", "enum"] {
            for at in words(&source.code, kind) {
                let name = name_at(source.code[at + kind.len()..].trim_start());
                defined.entry((source.krate, name)).or_default().push((source, at));
            }
        }
        for name in words(&source.code, "impl").filter_map(|at| inherent(&source.code, at)) {
            let files = files.entry((source.krate, name)).or_default();
            if files.last() != Some(&source.path) {
                files.push(source.path);
            }
        }
    }
    let mut found = Vec::new();
    for (key, files) in files.iter().filter(|(_, files)| files.len() > MOST_FILES) {
        let Some([(source, at)]) = defined.get(key).map(Vec::as_slice) else { continue };
        let name = key.1;
        let problem =
            format!("methods of `{name}` are in {} files, {MOST_FILES} at most", files.len());
        let remedy =
            "split the type, not its `impl`: each part that a file is about becomes a type";
        let finding = Finding::new(source.path, line_of(&source.code, *at), problem, remedy);
        found.push((full_name(source, name), finding));
    }
    found
}

/// The type whose methods follow the `impl` at `at`, if it is no trait that is implemented.
fn inherent(code: &str, at: usize) -> Option<&str> {
    // Elsewhere on a line, it is the type of an argument or of what is returned.
    let begins_line = code[..at].rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
    let mut head = &code[at + "impl".len()..];
    head = &head[..head.find('{').filter(|_| begins_line)?];
    if head.starts_with('<') {
        let mut depth = 0_usize;
        let close = head.char_indices().find(|&(_, c)| {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        head = &head[close?.0 + 1..];
    }
    let head = &head[..words(head, "where").next().unwrap_or(head.len())];
    let is_of_trait = words(head, "for").next().is_some();
    Some(name_at(head.trim_start())).filter(|name| !name.is_empty() && !is_of_trait)
}
