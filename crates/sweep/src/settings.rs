//! Keys of the configuration and their values, as a plan writes them.

use leyden_report::Dimension;
use toml::{Table, Value};

/// A key of the configuration and a value of it, as `--set KEY=VALUE` has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: String,
    /// For people and for columns: texts without quotes.
    pub(crate) value: String,
    /// For the configuration: TOML.
    pub(crate) literal: String,
}

impl Setting {
    pub(crate) fn new(key: String, value: &Value) -> Self {
        Self { key, value: text_of(value), literal: value.to_string() }
    }

    /// Of a value that is a number with or without its unit.
    pub(crate) fn of_quantity(key: String, value: String) -> Self {
        Self { key, literal: value.clone(), value }
    }
}

/// A column of the results for a key that differs between points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Varied {
    pub(crate) key: String,
    /// In which unit its values are numbers; `None` if some are names.
    pub(crate) dimension: Option<Dimension>,
}

impl Varied {
    /// Its name in the results.
    pub(crate) fn column(&self) -> String {
        format!("config.{}{}", self.key, self.dimension.map_or("", Dimension::suffix))
    }
}

/// The keys of `table` with what they hold; tables below it are parts of keys: `a.b = 1` and `[a] b = 1` and `"a.b" = 1`
/// are the same. A table that `is_leaf` accepts, with its key as written, is a value.
pub(crate) fn flatten(
    table: &Table,
    is_leaf: &dyn Fn(&str, &Table) -> bool,
) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    below("", table, is_leaf, &mut found);
    // The order does not depend on how the keys were written.
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    found
}

fn below(
    path: &str,
    table: &Table,
    is_leaf: &dyn Fn(&str, &Table) -> bool,
    into: &mut Vec<(String, Value)>,
) {
    for (key, value) in table {
        let whole = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Table(inner) if !is_leaf(key, inner) => below(&whole, inner, is_leaf, into),
            value => into.push((whole, value.clone())),
        }
    }
}

/// A value as the command line would have it: texts without quotes.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
