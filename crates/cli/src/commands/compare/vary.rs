//! `--vary KEY=A,B,...`: the values of a key.

use anyhow::bail;

/// The most values that a range stands for.
const MOST_IN_RANGE: u64 = 10_000;
const HELP: &str = "write key=a,b, like device.ftl.gc.victim=greedy,cost_benefit";

/// `key=a,b,c` as the key and its values; `1..3` stands for 1, 2 and 3.
pub(super) fn varied(text: &str) -> Result<(&str, Vec<String>), anyhow::Error> {
    let Some((key, list)) = text.split_once('=') else {
        bail!("--vary {text}: there is no `=`\n  help: {HELP}");
    };
    let mut values: Vec<String> = Vec::new();
    for value in split(list) {
        if value.is_empty() {
            bail!("--vary {text}: a value is empty\n  help: {HELP}");
        }
        for value in range(value, text)? {
            if values.contains(&value) {
                bail!(
                    "--vary {text}: `{value}` is there twice\n  help: the same run would be made \
                     again; name each value once"
                );
            }
            values.push(value);
        }
    }
    Ok((key.trim(), values))
}

/// The parts between commas outside of brackets and quotes.
fn split(list: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start) = (0_u32, false, 0);
    let mut values = Vec::new();
    for (index, c) in list.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if depth == 0 && !quoted => {
                values.push(list[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    values.push(list[start..].trim());
    values
}

/// The values that `value` stands for: itself, unless it is a range of whole numbers.
fn range(value: &str, text: &str) -> Result<Vec<String>, anyhow::Error> {
    let ends =
        value.split_once("..").map(|(first, last)| (first.parse::<u64>(), last.parse::<u64>()));
    let Some((Ok(first), Ok(last))) = ends else { return Ok(vec![value.to_owned()]) };
    if first > last || last - first >= MOST_IN_RANGE {
        bail!(
            "--vary {text}: {value} is no range of at most {MOST_IN_RANGE} values\n  help: write the \
             smaller number first, like seed=1..5, which is 1,2,3,4,5"
        );
    }
    Ok((first..=last).map(|value| value.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_outside_of_brackets_and_quotes() {
        let split = |text| varied(text).unwrap().1.join("|");
        assert_eq!(split("k=a, b,c"), "a|b|c");
        assert_eq!(split("k={ a = 1, b = [2, 3] },\"x,y\""), "{ a = 1, b = [2, 3] }|\"x,y\"");
        assert!(varied("k").is_err() && varied("k=a,").is_err() && varied("k=").is_err());
    }

    #[test]
    fn ranges_stand_for_their_numbers_and_no_value_is_there_twice() {
        assert_eq!(varied("seed=1..4,9").unwrap().1, ["1", "2", "3", "4", "9"]);
        assert_eq!(varied("path=../a..b").unwrap().1, ["../a..b"]);
        for wrong in ["seed=4..1", "seed=0..99999", "k=a,a", "seed=1..3,2"] {
            assert!(varied(wrong).is_err(), "{wrong}");
        }
    }
}
