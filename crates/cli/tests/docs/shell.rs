//! As much of a shell as the pages need: words, quotes, one pipe into jq, one file to write to.

/// A command line, in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    /// The path that `jq` takes from its output.
    pub(crate) filter: Option<String>,
    /// The file that its output goes to.
    pub(crate) file: Option<String>,
}

pub(crate) fn parse(line: &str) -> Line {
    let mut words = words(line).into_iter();
    let mut parsed = Line { words: Vec::new(), filter: None, file: None };
    while let Some(word) = words.next() {
        match word.as_str() {
            "|" => {
                assert_eq!(words.next().as_deref(), Some("jq"), "{line}");
                parsed.filter = words.by_ref().find(|word| word.starts_with('.'));
            }
            ">" => parsed.file = words.next(),
            _ => parsed.words.push(word),
        }
    }
    parsed
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_word, mut quote) = (String::new(), false, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
            (None, '#') if !is_word => break, // a comment
            (None, c) if c.is_whitespace() => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (None, c) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    assert_eq!(quote, None, "{line}: a quote is left open");
    if is_word {
        words.push(word);
    }
    words
}

#[test]
fn lines_are_taken_apart() {
    let line = parse(r#"leyden run a --set b="8 MiB" --set 'c={ d = "e" }' | jq -r .f.g   # why"#);
    assert_eq!(line.words, ["leyden", "run", "a", "--set", "b=8 MiB", "--set", "c={ d = \"e\" }"]);
    assert_eq!((line.filter.as_deref(), line.file), (Some(".f.g"), None));
    assert_eq!(parse("leyden man > 'gc.html#x'").file.as_deref(), Some("gc.html#x"));
}
