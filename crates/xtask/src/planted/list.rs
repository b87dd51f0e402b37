//! Lists of planted bugs: what each is, what must find it, and the lines it changes.

use std::fmt;

/// A bug of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bug {
    pub(crate) name: String,
    pub(crate) what: String,
    /// Each must find the bug; of the alternatives of one, any may.
    pub(crate) found_by: Vec<Vec<Finder>>,
    pub(crate) changes: Vec<Change>,
    /// The file of the list, and the line in it, counted from 1.
    pub(crate) list: String,
    pub(crate) line: usize,
}

/// The test or program that must find a bug.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finder {
    /// Torture of a kind of drive, within so many seeds.
    Torture { kind: String, seeds: u64 },
    /// A failure that was made small and kept, by the name of its file.
    Kept { name: String },
    /// A test program: arguments of `cargo test` after `--package`.
    Test { package: String, target: String, filter: Option<String> },
}

/// Consecutive lines of a file, as they are and as planted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) old: Vec<String>,
    pub(crate) new: Vec<String>,
}

/// Kinds of drives that torture has.
pub(crate) const KINDS: &[&str] = &["conventional", "guided", "zoned", "zoned-block"];

impl Finder {
    /// True if torture finds what this finds, and no test.
    pub(crate) const fn is_torture(&self) -> bool {
        !matches!(self, Self::Test { .. })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let first = words.next()?;
        let finder = if first == "test" {
            let (package, target) = (words.next()?.to_owned(), words.next()?.to_owned());
            Self::Test { package, target, filter: words.next().map(str::to_owned) }
        } else if first == "kept" {
            Self::Kept { name: words.next()?.to_owned() }
        } else {
            let kind = KINDS.iter().find(|&&kind| kind == first)?;
            Self::Torture { kind: (*kind).to_owned(), seeds: words.next()?.parse().ok()? }
        };
        words.next().is_none().then_some(finder)
    }
}

impl fmt::Display for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torture { kind, seeds } => write!(f, "{seeds} {kind} seeds"),
            Self::Kept { name } => write!(f, "the kept failure {name}"),
            Self::Test { package, target, filter } => {
                write!(f, "{package} {target} {}", filter.as_deref().unwrap_or("(all)"))
            }
        }
    }
}

/// The bugs of the list `text`, which is the file `path`; the line and what is wrong with it otherwise.
pub(crate) fn parse(path: &str, text: &str) -> Result<Vec<Bug>, (usize, String)> {
    let mut bugs: Vec<Bug> = Vec::new();
    // True from a file's line `---` to the next bug: what stands here are lines of that file.
    let mut in_change = false;
    for (at, line) in text.lines().enumerate() {
        let wrong = |problem: &str| Err((at + 1, problem.to_owned()));
        if let Some(name) = line.strip_prefix("bug ") {
            let (list, name) = (path.to_owned(), name.trim().to_owned());
            let (what, found_by, changes) = (String::new(), Vec::new(), Vec::new());
            bugs.push(Bug { name, what, found_by, changes, list, line: at + 1 });
            in_change = false;
            continue;
        }
        let Some(bug) = bugs.last_mut() else {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            return wrong("stands before the first line `bug NAME`");
        };
        if let Some(path) = line.strip_prefix("--- ") {
            let path = path.to_owned();
            bug.changes.push(Change { path, old: Vec::new(), new: Vec::new() });
            in_change = true;
        } else if line == "@@" && in_change {
            let path = bug.changes.last().map(|change| change.path.clone()).unwrap_or_default();
            bug.changes.push(Change { path, old: Vec::new(), new: Vec::new() });
        } else if let Some(change) = bug.changes.last_mut().filter(|_| in_change) {
            let (sign, rest) = line.split_at(line.len().min(1));
            match sign {
                "-" => change.old.push(rest.to_owned()),
                "+" => change.new.push(rest.to_owned()),
                " " | "" => {
                    change.old.push(rest.to_owned());
                    change.new.push(rest.to_owned());
                }
                _ => return wrong("begins with neither `-`, `+` nor a space"),
            }
        } else if let Some(finders) = line.strip_prefix("found by ") {
            let finders: Option<Vec<_>> = finders.split(" or ").map(Finder::parse).collect();
            let Some(finders) = finders else {
                return wrong(
                    "is not `found by KIND SEEDS`, `found by kept FILE` or `found by test PACKAGE TARGET [FILTER]`, with \
                     `conventional`, `guided`, `zoned` or `zoned-block` as kind, `lib`, a test's name or `all` as target",
                );
            };
            bug.found_by.push(finders);
        } else if !line.is_empty() {
            let gap = if bug.what.is_empty() { "" } else { " " };
            bug.what = format!("{}{gap}{line}", bug.what);
        }
    }
    for bug in &mut bugs {
        bug.changes.iter_mut().for_each(Change::trim_end);
        if bug.what.is_empty() || bug.found_by.is_empty() || bug.changes.is_empty() {
            let problem =
                format!("{} lacks its description, `found by`, or a file's lines", bug.name);
            return Err((bug.line, problem));
        }
    }
    Ok(bugs)
}

impl Change {
    /// Blank lines between bugs are no lines of a file.
    fn trim_end(&mut self) {
        let is_blank = |lines: &[String]| lines.last().is_some_and(|line| line.trim().is_empty());
        while is_blank(&self.old) && is_blank(&self.new) {
            self.old.pop();
            self.new.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# About this list.\n\nbug Early\nEnds too\nearly.\nfound by zoned 9 or test a lib x\n\
                        found by conventional 10\n--- a.rs\n x\n-    old\n+    new\n@@\n+y\n z\n\nbug Late\nLate.\n\
                        found by test b all\n--- b.rs\n-q\n";

    #[test]
    fn a_list_has_bugs_with_finders_and_changes() {
        let bugs = parse("l.diff", LIST).unwrap();
        let early = &bugs[0];
        assert_eq!(
            (early.name.as_str(), early.what.as_str(), early.line),
            ("Early", "Ends too early.", 3)
        );
        assert_eq!(early.found_by[0].len(), 2);
        assert_eq!(early.found_by[1], [Finder::Torture { kind: "conventional".into(), seeds: 10 }]);
        assert_eq!((early.changes[0].old.len(), early.changes[0].new[1].as_str()), (2, "    new"));
        assert_eq!((early.changes[1].path.as_str(), early.changes[1].old.len()), ("a.rs", 1));
        assert_eq!(bugs[1].changes[0].new.len(), 0);
    }

    #[test]
    fn wrong_lists_are_refused_by_their_line() {
        let line = |text| parse("l.diff", text).unwrap_err().0;
        assert_eq!(line("x\n"), 1);
        assert_eq!(line("bug A\nB\nfound by nothing 3\n"), 3);
        assert_eq!(line("bug A\nB\nfound by zoned 3\n--- a.rs\n*x\n"), 5);
        assert_eq!(line("\nbug A\nB\nfound by zoned 3\n"), 2);
    }
}
