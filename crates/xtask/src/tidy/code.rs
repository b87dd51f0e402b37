//! Rust source without its comments and literals, so that rules see code only; and its string literals alone.

use std::ops::Range;

/// Replaces comments and the insides of string, byte and character literals by spaces. Line breaks
/// stay where they are, so positions keep their lines.
pub(crate) fn only(source: &str) -> String {
    scan(source).out
}

/// Where the string literals of `source` lie, with their quotes.
pub(super) fn strings(source: &str) -> Vec<Range<usize>> {
    scan(source).strings
}

fn scan(source: &str) -> Scanner<'_> {
    let out = String::with_capacity(source.len());
    let mut scanner = Scanner { rest: source, out, strings: Vec::new() };
    while !scanner.rest.is_empty() {
        scanner.step();
    }
    scanner
}

/// The line, counted from 1, of byte `at` of `text`.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Where `word` stands in `text` with no letter, digit or underscore on either side.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        !text[..at].ends_with(part_of_word) && !text[at + word.len()..].starts_with(part_of_word)
    })
}

struct Scanner<'a> {
    rest: &'a str,
    /// As long as what was read.
    out: String,
    strings: Vec<Range<usize>>,
}

impl Scanner<'_> {
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            self.blank(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.blank(block_comment(rest));
        } else if let Some(length) = raw_string(rest).filter(|_| !self.in_word()) {
            self.string(length);
        } else if rest.starts_with('"') {
            self.string(quoted(rest, '"'));
        } else if let Some(length) = character(rest) {
            self.blank(length);
        } else {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            self.out.push_str(&rest[..length]);
            self.rest = &rest[length..];
        }
    }

    /// True if what comes next continues a name, like the `r` of `for`.
    fn in_word(&self) -> bool {
        self.out.ends_with(|c: char| c.is_alphanumeric() || c == '_')
    }

    fn string(&mut self, length: usize) {
        let from = self.out.len();
        self.strings.push(from..from + length);
        self.blank(length);
    }

    fn blank(&mut self, length: usize) {
        let (blanked, rest) = self.rest.split_at(length);
        let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
        self.out.extend(blanked.bytes().map(blank));
        self.rest = rest;
    }
}

/// The length of the (nested) block comment that `text` begins with.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of the raw string (`r"..."`, `br#"..."#`) that `text` begins with, if it does.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = 1 + usize::from(text.starts_with('b'));
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = after.bytes().take_while(|&byte| byte == b'#').count();
    let inside = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(prefix + hashes + 1 + length)
}

/// The length of the literal between two `quote`s that `text` begins with.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// The length of the character literal that `text` begins with; lifetimes are none.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    let is_literal = first == '\\' || inside[first.len_utf8()..].starts_with('\'');
    is_literal.then(|| quoted(text, '\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_kept() {
        let source = "let a = \"x // \\\" y\"; // note\n/* a /* b */\nc */ let b = 'q'; b'\\'';\n\
                      let c: &'static str = r#\"raw \" text\"#; for r in x {}\n";
        let code = only(source);
        assert_eq!(code.lines().count(), source.lines().count());
        for gone in ["x", "y", "note", "c */", "q", "raw"] {
            assert!(words(&code, gone).all(|at| code[at..].starts_with("x {}")), "{gone}: {code}");
        }
        for kept in ["let a =", "let b =", "&'static str", "for r in x {}"] {
            assert!(code.contains(kept), "{kept}: {code}");
        }
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(words("all allow allow_x allow", "allow").collect::<Vec<_>>(), [4, 18]);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
