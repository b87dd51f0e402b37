//! Errors of a scenario, with their place and remedy.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The most that is quoted of a line.
const QUOTE_CHARS: usize = 160;

/// A text that configuration came from: a file, a bundled scenario, or a `--set` argument.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// How messages name it.
    pub name: String,
    /// All of it, to quote from.
    pub text: String,
    /// The folder that paths in it are relative to.
    pub base: Base,
}

/// The folder that paths in a text are relative to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// A folder on disk; empty for the current one.
    Disk(PathBuf),
    /// A folder among the bundled scenarios, like `bench`; empty for their root.
    Bundled(String),
    /// The folder of a record or report, which may have been moved: then the current one.
    Saved(PathBuf),
}

/// Where in which text a key or value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub source: Arc<Source>,
    pub span: Range<usize>,
}

/// A place in a text, as people and editors write it: 1-based, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or what stands for one (`--set`).
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line itself.
    pub quote: String,
    /// How many characters of it are meant; at least 1.
    pub width: usize,
}

/// Where something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// Here.
    Place(Place),
    /// In this file: something is not written there.
    File(String),
}

/// One thing wrong with a scenario. Displays as the message, the place with the line quoted, and
/// the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The error; names the key where there is one.
    pub message: String,
    /// Where it was written.
    pub at: Option<At>,
    /// The remedy.
    pub help: Option<String>,
}

impl Origin {
    /// As a place to show. A span of several lines is cut to its first.
    pub(super) fn place(&self) -> Place {
        let text = &self.source.text;
        let mut start = self.span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let quote = text[line_start..line_end].trim_end();
        let end = self.span.end.clamp(start, line_start + quote.len().max(start - line_start));
        let width = text.get(start..end).map_or(1, |meant| meant.chars().count());
        Place {
            file: self.source.name.clone(),
            line: text[..line_start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            quote: quote.to_owned(),
            width: width.max(1),
        }
    }
}

impl Place {
    /// The part of the line that is shown, and how many of its characters come before the place meant.
    fn excerpt(&self) -> (String, usize) {
        let before = self.column - 1;
        let skipped = before.saturating_sub(QUOTE_CHARS / 2);
        // Control characters, which a terminal would obey, are not quoted.
        let plain = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
        let shown = self.quote.chars().skip(skipped).take(QUOTE_CHARS).map(plain).collect();
        (shown, before - skipped)
    }
}

impl Diagnostic {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), at: None, help: None }
    }

    pub(super) fn at(mut self, origin: &Origin) -> Self {
        self.at = Some(At::Place(origin.place()));
        self
    }

    /// It is about what `file` does not say.
    pub(super) fn within(mut self, file: &str) -> Self {
        self.at = Some(At::File(file.to_owned()));
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(At::Place(place)) = &self.at {
            let margin = place.line.to_string().len();
            let (quote, before) = place.excerpt();
            // Tabs are quoted as they are, so the caret's margin repeats them.
            let indent: String =
                quote.chars().take(before).map(|c| if c == '\t' { c } else { ' ' }).collect();
            write!(
                f,
                "\n{:margin$}--> {}:{}:{}\n{:margin$} |\n{} | {}\n{:margin$} | {indent}{}",
                "",
                place.file,
                place.line,
                place.column,
                "",
                place.line,
                quote,
                "",
                "^".repeat(place.width.min(quote.chars().count().saturating_sub(before)).max(1)),
            )?;
        }
        if let Some(At::File(file)) = &self.at {
            write!(f, "\n --> {file}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str, span: Range<usize>) -> Origin {
        Origin {
            source: Arc::new(Source {
                name: "a.toml".into(),
                text: text.into(),
                base: Base::Disk(PathBuf::new()),
            }),
            span,
        }
    }

    #[test]
    fn quotes_the_line_with_a_caret_under_the_characters() {
        let diagnostic = Diagnostic::new("no such key")
            .at(&origin("[a]\nb = 1\n\"µs\" = \"x\"\n", 18..21))
            .help("remove it");
        assert_eq!(
            diagnostic.to_string(),
            "no such key\n --> a.toml:3:8\n  |\n3 | \"µs\" = \"x\"\n  |        ^^^\n  help: remove it"
        );
    }

    #[test]
    fn long_lines_are_cut_and_control_characters_are_not_repeated() {
        let text = format!("a = \"{}\u{1b}[31m{}\"", "x".repeat(900), "y".repeat(900));
        let shown = Diagnostic::new("no").at(&origin(&text, 905..1800)).to_string();
        assert!(shown.contains("xxx\u{fffd}[31myyy"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() < 200), "{shown}");
        let shown = Diagnostic::new("no").at(&origin("", 0..0)).to_string();
        assert!(shown.ends_with("| ^"), "{shown}");
        // In the spaces at a line's end, which are not quoted.
        let shown = Diagnostic::new("no").at(&origin("a =   ", 5..6)).to_string();
        assert!(shown.ends_with("1 | a =\n  |    ^"), "{shown}");
    }

    #[test]
    fn spans_over_several_lines_or_past_the_end_are_cut() {
        let place = origin("a = [\n 1,\n]\n", 4..11).place();
        assert_eq!((place.line, place.column, place.width), (1, 5, 1));
        let place = origin("a", 7..9).place();
        assert_eq!((place.line, place.column, place.width), (1, 2, 1));
        let place = origin("", 0..0).place();
        assert_eq!((place.line, place.column, place.width), (1, 1, 1));
    }
}
