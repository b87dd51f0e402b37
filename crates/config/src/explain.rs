//! Turns a complaint of serde's or of a layer's into a message with its remedy.

use super::de::{Complaint, Error};
use super::diagnostic::Diagnostic;

/// The message for `error`. `defaults` is the whole configuration as it is by default: a key that
/// is unknown where it stands may be known elsewhere.
pub(super) fn explain(error: Error, defaults: &serde_json::Value) -> Diagnostic {
    let (path, origin) = match error.at {
        Some((path, origin)) => (path, Some(origin)),
        None => (String::new(), None),
    };
    let shown = if path.is_empty() { "the file" } else { &path };
    let diagnostic = match error.complaint {
        Complaint::UnknownKey { key, expected } => Diagnostic::new(format!("unknown key `{path}`"))
            .help(remedy_for_key(&key, expected, defaults)),
        Complaint::UnknownVariant { name, expected } => {
            Diagnostic::new(format!("`{shown}` knows no `{name}`"))
                .help(remedy_for_name(&name, expected))
        }
        Complaint::MissingKey(key) => Diagnostic::new(format!("`{shown}` lacks the key `{key}`"))
            .help(format!("add `{key} = ...`; `leyden schema` says what it takes")),
        Complaint::Type { found, expected } => Diagnostic::new(format!(
            "`{shown}` is {found}, where {} is expected",
            expected_plain(&expected)
        ))
        .help(match expected.as_str() {
            // A number beyond the list's end leads here.
            "a sequence" if found == "a table" => {
                format!(
                    "write a list in square brackets, or number an item that is there: `{shown}.0`"
                )
            }
            expected => format!("write {}", expected_plain(expected)),
        }),
        Complaint::Other(message) => other(shown, &message),
    };
    match origin {
        Some(origin) => diagnostic.at(&origin),
        None => diagnostic,
    }
}

/// A layer's own words: by convention the remedy follows the problem after a semicolon or colon.
pub(super) fn remedied(message: &str) -> (&str, Option<&str>) {
    match message.split_once("; ").or_else(|| message.split_once(": ")) {
        Some((problem, remedy)) => (problem, Some(remedy)),
        None => (message, None),
    }
}

fn other(shown: &str, message: &str) -> Diagnostic {
    match remedied(message) {
        (problem, Some(remedy)) => Diagnostic::new(format!("`{shown}`: {problem}")).help(remedy),
        (message, None) => Diagnostic::new(format!("`{shown}`: {message}"))
            .help("write a number that fits, with its unit"),
    }
}

fn remedy_for_key(key: &str, expected: &[&str], defaults: &serde_json::Value) -> String {
    if let Some(near) = nearest(key, expected.iter().copied()) {
        return format!("the nearest key is `{near}`");
    }
    let mut homes = Vec::new();
    find_elsewhere(defaults, key, "", &mut homes);
    if let Some(home) = homes.first() {
        return format!("there is a `{home}`: say that");
    }
    if expected.is_empty() {
        return "this takes no keys: remove it".into();
    }
    format!("the keys here are {}", list(expected))
}

fn remedy_for_name(name: &str, expected: &[&str]) -> String {
    match nearest(name, expected.iter().copied()) {
        Some(near) => format!("the nearest is `{near}`; there are {}", list(expected)),
        None => format!("there are {}", list(expected)),
    }
}

/// The candidate most like `name`, if it is like it at all: at most a third of it differs.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let name = plain(name);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&name, &plain(candidate)), candidate))
        .filter(|&(distance, candidate)| distance <= (candidate.len().max(name.len()) / 3).max(1))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Every dotted path in `value` whose last key is `key`.
fn find_elsewhere(value: &serde_json::Value, key: &str, path: &str, found: &mut Vec<String>) {
    let Some(table) = value.as_object() else {
        return;
    };
    for (name, below) in table {
        let path = super::tree::join(path, name);
        if name == key {
            found.push(path.clone());
        }
        find_elsewhere(below, key, &path, found);
    }
}

fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Serde's name for a type, in a configuration's words.
fn expected_plain(expected: &str) -> String {
    match expected {
        "u8" => "a whole number in 0..=255".into(),
        "u16" => "a whole number in 0..=65535".into(),
        "u32" => "a whole number in 0..=4294967295".into(),
        "u64" | "usize" => "a whole number, not negative".into(),
        "f64" => "a number".into(),
        "a boolean" => "`true` or `false`".into(),
        "a string" => "a text in double quotes".into(),
        "a sequence" => "a list in square brackets".into(),
        "a map" => "a table".into(),
        other if other.starts_with("struct ") => "a table".into(),
        other if other.starts_with("enum ") || other.contains("variant") => {
            "a name in double quotes".into()
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_is_near_or_nothing() {
        let names = ["page_size", "pages_per_block", "read"];
        assert_eq!(nearest("page_siz", names.into_iter()), Some("page_size"));
        assert_eq!(nearest("Page-Size", names.into_iter()), Some("page_size"));
        assert_eq!(nearest("raed", names.into_iter()), Some("read"));
        assert_eq!(nearest("temperature", names.into_iter()), None);
    }
}
