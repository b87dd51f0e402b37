//! A saved record: the commands that were run, and what pages use of what they measured.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::expression::Values;

/// A file of `docs/papers/figures`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Record {
    /// The commands by a label, which the keys of what they measured begin with; it is empty if there is one.
    pub(super) commands: BTreeMap<String, String>,
    /// Where a run record has what tells runs apart, as JSON pointers; what a run does not have is left out.
    pub(super) name: Vec<String>,
    /// Where it has what tells runs of one name apart: their values become a list.
    pub(super) over: String,
    /// Leyden's version.
    pub(super) version: String,
    /// All seeds of the runs.
    pub(super) seeds: Vec<u64>,
    pub(super) figures: BTreeMap<String, Values>,
}

/// The key that distinguishes runs of one name unless the record says.
const SEED: &str = "/seed";

impl Record {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        let object = value.as_object().ok_or("no JSON object")?;
        let mut record = Self { over: SEED.to_owned(), ..Self::default() };
        for (key, value) in object {
            record.read(key, value).ok_or_else(|| format!("`{key}` is not as it must be"))?;
        }
        if record.commands.is_empty() {
            return Err("it does not say which command made it".to_owned());
        }
        Ok(record)
    }

    /// Reads one key; `None` if there is no such key, or if the value is of another kind.
    fn read(&mut self, key: &str, value: &Value) -> Option<()> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match key {
            "commands" => {
                let command =
                    |(label, command): (&String, _)| Some((label.clone(), text(command)?));
                self.commands = value.as_object()?.iter().map(command).collect::<Option<_>>()?;
            }
            "name" => self.name = value.as_array()?.iter().map(text).collect::<Option<_>>()?,
            "over" => self.over = text(value)?,
            "version" => self.version = text(value)?,
            "seeds" => {
                self.seeds = value.as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
            }
            "figures" => {
                let figure = |(key, figure): (&String, _)| Some((key.clone(), values(figure)?));
                self.figures = value.as_object()?.iter().map(figure).collect::<Option<_>>()?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether the page `text` shows one of the commands.
    pub(super) fn is_shown_in(&self, text: &str) -> bool {
        let plain =
            |text: &str| text.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let text = plain(text);
        self.commands.values().any(|command| text.contains(&plain(command)))
    }

    /// As it is saved: a line for each figure, in the order of keys.
    pub(super) fn to_text(&self) -> String {
        let commands: Map<String, Value> = self
            .commands
            .iter()
            .map(|(label, command)| (label.clone(), command.as_str().into()))
            .collect();
        let mut text = "{\n".to_owned();
        let mut add = |line: String| text.push_str(&line);
        add(format!("  \"commands\": {{\n{}\n  }},\n", lines(&commands)));
        if !self.name.is_empty() {
            add(format!("  \"name\": {},\n", Value::from(self.name.clone())));
        }
        if self.over != SEED {
            add(format!("  \"over\": {},\n", Value::from(self.over.as_str())));
        }
        add(format!("  \"version\": {},\n", Value::from(self.version.as_str())));
        add(format!("  \"seeds\": {},\n", Value::from(self.seeds.clone())));
        let figures = self.figures.iter().map(|(key, values)| (key.clone(), to_json(values)));
        let figures: Map<String, Value> = figures.collect();
        add(format!("  \"figures\": {{\n{}\n  }}\n}}\n", lines(&figures)));
        text
    }
}

/// The entries of an object, a line each.
fn lines(object: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (key, value) in object {
        let end = if text.is_empty() { "" } else { ",\n" };
        // Nothing fails that writes into a text.
        let _ = write!(text, "{end}    {}: {value}", Value::from(key.as_str()));
    }
    text
}

/// A number, a list of numbers, or a word.
pub(super) fn values(value: &Value) -> Option<Values> {
    Some(match value {
        Value::String(word) => Values::Word(word.clone()),
        Value::Array(list) if !list.is_empty() => {
            Values::Numbers(list.iter().map(Value::as_f64).collect::<Option<_>>()?)
        }
        _ => Values::Numbers(vec![value.as_f64()?]),
    })
}

/// Whole numbers without a fraction.
fn to_json(values: &Values) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number = |value: f64| {
        if value.fract() == 0.0 && value.abs() < EXACT {
            Value::from(value as i64)
        } else {
            Value::from(value)
        }
    };
    match values {
        Values::Word(word) => Value::from(word.as_str()),
        Values::Numbers(numbers) => match numbers.as_slice() {
            [one] => number(*one),
            list => list.iter().map(|value| number(*value)).collect(),
        },
    }
}
