//! Configuration as written: a tree of values that remember where each was written, so that
//! errors found long after merging still name the file and line.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, Origin, Source};

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub value: Value,
    pub origin: Origin,
}

/// A key's own place, and what it stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub key: Origin,
    pub node: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Natural(u64),
    Negative(i64),
    Float(f64),
    Bool(bool),
    Array(Vec<Node>),
    Table(BTreeMap<String, Entry>),
}

/// The parser's own limit (`toml_parser`).
const DEPTH_MOST: usize = 80;

/// Kinds of workload: a file that names one replaces what the file it extends named.
const EXCLUSIVE: [&str; 2] = ["job", "trace"];

impl Node {
    /// Reads a whole file.
    pub(super) fn parse(source: &Arc<Source>) -> Result<Self, Box<Diagnostic>> {
        let table = DeTable::parse(&source.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let origin = Origin { source: Arc::clone(source), span };
            // The parser says that there is a limit, and not which.
            let problem = match error.message() {
                said if said.contains("recurs") => {
                    format!("keys, tables and arrays nest deeper than {DEPTH_MOST} levels")
                }
                said => format!("not valid TOML: {said}"),
            };
            Box::new(
                Diagnostic::new(problem)
                    .at(&origin)
                    .help("keys and values are written `key = value`; texts go in double quotes"),
            )
        })?;
        let span = table.span();
        Self::from_toml(DeValue::Table(table.into_inner()), source, 0, span)
    }

    /// Converts a parsed value whose spans count from `offset` in the source.
    pub(super) fn from_toml(
        value: DeValue<'_>,
        source: &Arc<Source>,
        offset: usize,
        span: std::ops::Range<usize>,
    ) -> Result<Self, Box<Diagnostic>> {
        let shift = |span: std::ops::Range<usize>| Origin {
            source: Arc::clone(source),
            span: span.start + offset..span.end + offset,
        };
        let origin = shift(span);
        let refuse = |what: String| Box::new(Diagnostic::new(what).at(&origin));
        let value = match value {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(number) => {
                integer(number.as_str(), number.radix()).ok_or_else(|| {
                    refuse(format!("`{}` is more than 64 bits hold", number.as_str()))
                })?
            }
            DeValue::Float(number) => Value::Float(
                number
                    .as_str()
                    .parse()
                    .map_err(|_| refuse(format!("`{}` is not a number", number.as_str())))?,
            ),
            DeValue::Boolean(value) => Value::Bool(value),
            DeValue::Datetime(_) => {
                return Err(refuse("dates and times of day mean nothing here".into()));
            }
            DeValue::Array(items) => {
                let mut nodes = Vec::with_capacity(items.len());
                for item in items {
                    let span = item.span();
                    nodes.push(Self::from_toml(item.into_inner(), source, offset, span)?);
                }
                Value::Array(nodes)
            }
            DeValue::Table(entries) => {
                let mut table = BTreeMap::new();
                for (key, value) in entries {
                    let (key_origin, span) = (shift(key.span()), value.span());
                    let node = Self::from_toml(value.into_inner(), source, offset, span)?;
                    let key = key.into_inner().into_owned();
                    table.insert(key, Entry { key: key_origin, node });
                }
                Value::Table(table)
            }
        };
        Ok(Self { value, origin })
    }

    /// This tree with `over` laid on top: tables merge key by key, everything else is replaced.
    pub(super) fn overlaid(self, over: Self) -> Self {
        self.overlaid_at(over, "")
    }

    fn overlaid_at(self, over: Self, path: &str) -> Self {
        let (base_origin, mut base, over_table) = match (self.value, over.value) {
            (Value::Table(base), Value::Table(over)) => (self.origin, base, over),
            // `placement = "dac"` below `placement.regions = 4` means that policy with that
            // parameter: a bare text is short for a table with one key.
            (Value::Text(text), Value::Table(over)) => {
                let key = if path == "workload.trace" { "path" } else { "policy" };
                let entry = Entry {
                    key: self.origin.clone(),
                    node: Self { value: Value::Text(text), origin: self.origin.clone() },
                };
                (self.origin, BTreeMap::from([(key.into(), entry)]), over)
            }
            // `job.0.count = 5` changes an item in place.
            (Value::Array(mut items), Value::Table(over))
                if over.keys().all(|key| in_range(key, items.len())) =>
            {
                for (key, entry) in over {
                    let index: usize = key.parse().unwrap_or(0);
                    let path = join(path, &key);
                    items[index] = items[index].clone().overlaid_at(entry.node, &path);
                }
                return Self { value: Value::Array(items), origin: self.origin };
            }
            (_, value) => {
                return Self { value, origin: over.origin };
            }
        };
        // Parameters of one policy, or of one distribution, mean nothing to another.
        let other_policy = match (base.get("policy"), over_table.get("policy")) {
            (Some(old), Some(new)) => old.node.value != new.node.value,
            _ => false,
        };
        if other_policy || path.ends_with("distribution") && !base.keys().eq(over_table.keys()) {
            base.clear();
        }
        if path == "workload" && EXCLUSIVE.iter().any(|kind| over_table.contains_key(*kind)) {
            base.retain(|key, _| {
                !EXCLUSIVE.contains(&key.as_str()) || over_table.contains_key(key)
            });
        }
        for (key, entry) in over_table {
            let node = match base.remove(&key) {
                Some(old) => {
                    let path = join(path, &key);
                    old.node.overlaid_at(entry.node, &path)
                }
                None => entry.node,
            };
            base.insert(key, Entry { key: entry.key, node });
        }
        Self { value: Value::Table(base), origin: base_origin }
    }

    /// The child called `key`, or numbered so.
    pub(super) fn child(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(table) => table.get(key).map(|entry| &entry.node),
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The node of the dotted `path`, or of the nearest table above it; and whether it is that very
    /// key.
    pub(super) fn nearest(&self, path: &str) -> (&Self, bool) {
        let mut node = self;
        for key in path.split('.') {
            match node.child(key) {
                Some(child) => node = child,
                None => return (node, false),
            }
        }
        (node, true)
    }

    /// Where the key `wanted` was written, anywhere below.
    pub(super) fn find_key(&self, wanted: &str) -> Option<&Origin> {
        match &self.value {
            Value::Table(table) => table
                .get(wanted)
                .map(|entry| &entry.key)
                .or_else(|| table.values().find_map(|entry| entry.node.find_key(wanted))),
            Value::Array(items) => items.iter().find_map(|item| item.find_key(wanted)),
            _ => None,
        }
    }

    /// Where the text `wanted` was written as a value, anywhere below.
    pub(super) fn find_text(&self, wanted: &str) -> Option<&Origin> {
        match &self.value {
            Value::Text(text) if text == wanted => Some(&self.origin),
            Value::Table(table) => table.values().find_map(|entry| entry.node.find_text(wanted)),
            Value::Array(items) => items.iter().find_map(|item| item.find_text(wanted)),
            _ => None,
        }
    }
}

/// `path.key`.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn in_range(key: &str, len: usize) -> bool {
    key.parse::<usize>().is_ok_and(|index| index < len)
}

fn integer(digits: &str, radix: u32) -> Option<Value> {
    // The parser has removed the prefix and underscores, and left the sign.
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    u64::from_str_radix(digits, radix)
        .map(Value::Natural)
        .or_else(|_| i64::from_str_radix(digits, radix).map(Value::Negative))
        .ok()
}
