//! Puts planted bugs into a source file, each behind a switch.
//!
//! A function with bugs gets one body for each bug and one as it is; the switch chooses. So a bug may change anything
//! within a function. A planted line with the word `PLANTED` stays in the body as it is instead, and `PLANTED` is
//! true there if the bug is chosen: many such bugs cost one body.

use std::collections::BTreeMap;
use std::ops::Range;

use super::list::Change;
use crate::tidy::code::{only, words};

/// The word that a planted line has in place of the switch.
const WORD: &str = "PLANTED";

/// A bug's change of a file, by the bug's number.
pub(super) type Numbered<'a> = (u32, &'a Change);

/// Where `change` applies in `lines`: exactly once, whatever the indentation.
pub(super) fn find(lines: &[&str], change: &Change) -> Result<Range<usize>, String> {
    let old: Vec<&str> = change.old.iter().map(|line| line.trim()).collect();
    if old.is_empty() {
        return Err("names no line of the file as it is".to_owned());
    }
    let is_here = |at: &usize| {
        lines[*at..].len() >= old.len()
            && lines[*at..].iter().zip(&old).all(|(line, old)| line.trim() == *old)
    };
    let mut found = (0..lines.len()).filter(is_here);
    match (found.next(), found.count()) {
        (Some(at), 0) => Ok(at..at + old.len()),
        (Some(_), more) => Err(format!("its lines are there {} times: add lines around", more + 1)),
        (None, _) => {
            let gone = old.iter().find(|old| !lines.iter().any(|line| line.trim() == **old));
            Err(match gone {
                Some(line) => format!("the line `{line}` is not there any more"),
                None => "its lines do not follow one another any more".to_owned(),
            })
        }
    }
}

/// A function with a body: bytes of the body without its braces, and of the word `const` before `fn`, if it has one.
struct Function {
    body: Range<usize>,
    signature: Range<usize>,
    constant: Option<Range<usize>>,
}

/// Every function of `code`, which is without comments and literals.
fn functions(code: &str) -> Vec<Function> {
    words(code, "fn").filter_map(|at| function_at(code, at)).collect()
}

fn function_at(code: &str, at: usize) -> Option<Function> {
    let (mut depth, mut begin) = (0_i32, None);
    for (offset, byte) in code[at..].bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' if depth == 0 => return None,
            b'{' if depth == 0 => {
                begin = Some(at + offset + 1);
                break;
            }
            _ => {}
        }
        if depth < 0 {
            return None; // a type: `fn(T) -> U` as an argument
        }
    }
    let begin = begin?;
    let mut open = 1;
    let end = code[begin..].bytes().position(|byte| {
        open += i32::from(byte == b'{') - i32::from(byte == b'}');
        open == 0
    })?;
    let before = &code[..at];
    let constant = before.trim_end().ends_with("const").then(|| {
        let end = before.trim_end().len();
        end - "const".len()..end
    });
    Some(Function { body: begin..begin + end, signature: at..begin, constant })
}

/// The text of a file with `changes` behind the switch; the number of a bug that cannot be placed, and why.
pub(super) fn place(text: &str, changes: &[Numbered<'_>]) -> Result<String, (u32, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let code = only(text);
    let functions = functions(&code);
    // Of each function, by where its body begins: the changes in it.
    let mut by_function: BTreeMap<usize, (&Function, Vec<Placed<'_>>)> = BTreeMap::new();
    for &(number, change) in changes {
        let at = find(&lines, change).map_err(|problem| (number, problem))?;
        let placed = Placed::new(number, at, change);
        let holds = |function: &&Function| {
            let line_of = |byte| starts.partition_point(|&start| start <= byte) - 1;
            let (first, last) = (line_of(function.body.start - 1), line_of(function.body.end));
            first < placed.at.start && placed.at.end <= last
        };
        let function = functions.iter().filter(holds).min_by_key(|function| function.body.len());
        let Some(function) = function else {
            return Err((number, "its lines are not within one function".to_owned()));
        };
        let entry = by_function.entry(function.body.start).or_insert((function, Vec::new()));
        entry.1.push(placed);
    }
    let mut out = text.to_owned();
    let mut last = usize::MAX;
    for (function, placed) in by_function.values().rev() {
        if function.body.end > last {
            return Err((
                placed[0].number,
                "a function within its function has bugs, too".to_owned(),
            ));
        }
        last = function.body.start;
        let body = bodies(text, &starts, function, placed)?;
        out.replace_range(function.body.clone(), &body);
        if let Some(constant) = &function.constant
            && body.contains("planted_switch")
        {
            out.replace_range(constant.clone(), "     ");
        }
    }
    Ok(out)
}

/// Lines that a bug replaces, without those around them that only say where.
struct Placed<'a> {
    number: u32,
    at: Range<usize>,
    new: &'a [String],
}

impl<'a> Placed<'a> {
    fn new(number: u32, at: Range<usize>, change: &'a Change) -> Self {
        let (old, new) = (&change.old, &change.new);
        let same = |(old, new): &(&String, &String)| old == new;
        let before = old.iter().zip(new).take_while(same).count();
        let after = old[before..].iter().rev().zip(new[before..].iter().rev()).take_while(same);
        let after = after.count();
        Self { number, at: at.start + before..at.end - after, new: &new[before..new.len() - after] }
    }

    fn is_in_place(&self) -> bool {
        self.new.iter().any(|line| words(line, WORD).next().is_some())
    }
}

/// The body of `function` with a switch around a body for each bug.
fn bodies(
    text: &str,
    starts: &[usize],
    function: &Function,
    placed: &[Placed<'_>],
) -> Result<String, (u32, String)> {
    let mut in_place: Vec<&Placed<'_>> = Vec::new();
    let mut chosen: BTreeMap<u32, Vec<&Placed<'_>>> = BTreeMap::new();
    for change in placed {
        let overlaps = in_place
            .iter()
            .any(|other| other.at.start < change.at.end && change.at.start < other.at.end);
        if change.is_in_place() && !overlaps {
            in_place.push(change);
        } else {
            chosen.entry(change.number).or_default().push(change);
        }
    }
    let body = |changes: &[&Placed<'_>], is_chosen: bool| {
        changed(text, starts, &function.body, changes, is_chosen)
    };
    let as_it_is = body(&in_place, false);
    if chosen.is_empty() {
        return Ok(as_it_is);
    }
    if text[function.signature.clone()].contains("-> impl ") {
        let number = chosen.keys().next().copied().unwrap_or_default();
        let problem = "its function returns `impl ..`, so there is one body only: write `PLANTED` where the bug is \
                       chosen";
        return Err((number, problem.to_owned()));
    }
    let arms =
        chosen.iter().map(|(number, changes)| format!("{number} => {{{}}}\n", body(changes, true)));
    let arms: String = arms.collect();
    Ok(format!("\nmatch crate::planted_switch::which() {{\n{arms}_ => {{{as_it_is}}}\n}}\n"))
}

/// The bytes `body` of `text` with `changes`, none of which overlap.
fn changed(
    text: &str,
    starts: &[usize],
    body: &Range<usize>,
    changes: &[&Placed<'_>],
    is_chosen: bool,
) -> String {
    let mut changes = changes.to_vec();
    changes.sort_by_key(|change| (change.at.start, change.at.end));
    let (mut out, mut at) = (String::new(), body.start);
    for change in changes {
        out.push_str(&text[at..starts[change.at.start]]);
        for line in change.new {
            let which = format!("(crate::planted_switch::which() == {})", change.number);
            let switch = if is_chosen { "true" } else { which.as_str() };
            out.push_str(&replace_word(line, switch));
            out.push('\n');
        }
        at = starts[change.at.end];
    }
    out.push_str(&text[at..body.end]);
    out
}

fn replace_word(line: &str, with: &str) -> String {
    let mut out = line.to_owned();
    let places: Vec<usize> = words(line, WORD).collect();
    for at in places.into_iter().rev() {
        out.replace_range(at..at + WORD.len(), with);
    }
    out
}

/// The module that a crate gets, whose bugs have these names and numbers.
pub(super) fn switch(names: &[(&str, u32)]) -> String {
    let arms: Vec<String> =
        names.iter().map(|(name, number)| format!("{name:?} => {number}, ")).collect();
    let arms = arms.concat();
    format!(
        "\n/// Which bug is planted: the one that the variable PLANTED names.\n\
         pub(crate) mod planted_switch {{\n\
         static WHICH: std::sync::OnceLock<u32> = std::sync::OnceLock::new();\n\
         #[inline]\n\
         pub(crate) fn which() -> u32 {{\n\
         *WHICH.get_or_init(|| match std::env::var(\"PLANTED\").unwrap_or_default().as_str() {{ {arms}_ => 0 }})\n\
         }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "const A: u32 = 1;\n\nimpl X {\n    const fn a(x: [u8; 2]) -> u32 {\n        let y = \"}\";\n        \
                        1\n    }\n\n    fn b() {\n        one();\n        two();\n    }\n}\n";

    fn change(old: &[&str], new: &[&str]) -> Change {
        let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
        Change { path: "a.rs".to_owned(), old: lines(old), new: lines(new) }
    }

    #[test]
    fn a_function_gets_a_body_for_each_bug() {
        let (first, second) =
            (change(&["1"], &["2"]), change(&["fn b() {", "one();"], &["fn b() {"]));
        let third = change(&["two();", "}"], &["three();", "}"]);
        let placed = place(FILE, &[(1, &first), (2, &second), (3, &third), (2, &third)]).unwrap();
        let code: String = placed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            code.contains("1 => { let y = \"}\"; 2 } _ => { let y = \"}\"; 1 } } } fn b"),
            "{code}"
        );
        assert!(
            code.contains("2 => { three(); } 3 => { one(); three(); } _ => { one(); two(); }"),
            "{code}"
        );
        assert!(!code.contains("const fn"), "{code}");
    }

    #[test]
    fn a_line_with_the_word_stays_in_the_one_body() {
        let (first, second) =
            (change(&["1"], &["if PLANTED { 2 } else { 1 }"]), change(&["1"], &["u(PLANTED)"]));
        let placed = place(FILE, &[(7, &first)]).unwrap();
        assert!(
            placed.contains("\nif (crate::planted_switch::which() == 7) { 2 } else { 1 }\n"),
            "{placed}"
        );
        let placed = place(FILE, &[(7, &first), (8, &second)]).unwrap();
        assert!(placed.contains("8 => {\n        let y = \"}\";\nu(true)\n    }"), "{placed}");
    }

    #[test]
    fn hunks_without_a_place_say_why() {
        let why = |old: &[&str]| place(FILE, &[(4, &change(old, &["x"]))]).unwrap_err();
        assert_eq!(why(&["three();"]), (4, "the line `three();` is not there any more".to_owned()));
        assert_eq!(why(&["two();", "one();"]).1, "its lines do not follow one another any more");
        assert_eq!(why(&["}"]).1, "its lines are there 3 times: add lines around");
        assert_eq!(why(&["const A: u32 = 1;"]).1, "its lines are not within one function");
    }
}
