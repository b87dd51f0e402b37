//! Text of others on a terminal: names, paths and answers may hold what a terminal takes for commands.

/// `text` with what a terminal would obey as escapes, lines and tabs excepted if `keeps_lines`.
pub(crate) fn shown(text: &str, keeps_lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' if keeps_lines => out.push(char),
            _ if is_obeyed(char) => out.extend(char.escape_default()),
            _ => out.push(char),
        }
    }
    out
}

/// True if a terminal does something else with `char` than show it: control characters, and those that turn the
/// direction of what follows.
pub(crate) fn is_obeyed(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        let hostile = "x\x1b]0;owned\x07\x1b[2Jy\u{9b}1m\u{202e}z\r";
        let safe = shown(hostile, false);
        assert!(!safe.contains(is_obeyed), "{safe}");
        assert_eq!(safe, r"x\u{1b}]0;owned\u{7}\u{1b}[2Jy\u{9b}1m\u{202e}z\r");
        assert_eq!(shown("Größe\n\t1", true), "Größe\n\t1");
        assert_eq!(shown("a\nb", false), r"a\nb");
    }
}
