//! The command line that makes a run again.

/// `leyden run FILE` with what was set.
pub fn run_command<S: ToString>(file: &str, sets: &[S]) -> String {
    let mut command = format!("leyden run {}", quote(file));
    for set in sets {
        command.push_str(" --set ");
        command.push_str(&quote(&set.to_string()));
    }
    command
}

/// `text` as a shell takes it for one word.
pub fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=%:,+@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_read_back_what_is_quoted() {
        assert_eq!(quote("a.toml"), "a.toml");
        assert_eq!(quote("device.nand.read=60 us"), "'device.nand.read=60 us'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(run_command("a b.toml", &["seed=7"]), "leyden run 'a b.toml' --set seed=7");
    }
}
