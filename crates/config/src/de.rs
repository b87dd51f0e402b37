//! Reads configuration types from a [`Node`] tree, keeping hold of where things were written.
//!
//! Errors stay structured until they meet the tree: serde's own hooks say which key or variant was
//! unknown and what would have been known, and the innermost node that an error passes on its way
//! out gives it its place.

use std::collections::btree_map;
use std::fmt;

use serde::de::{self, DeserializeSeed, IntoDeserializer, Unexpected, Visitor};

use super::diagnostic::Origin;
use super::tree::{Entry, Node, Value, join};

/// Serde's complaint.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Complaint {
    UnknownKey {
        key: String,
        expected: &'static [&'static str],
    },
    UnknownVariant {
        name: String,
        expected: &'static [&'static str],
    },
    MissingKey(&'static str),
    /// A value of the wrong type.
    Type {
        found: String,
        expected: String,
    },
    /// A type's own words.
    Other(String),
}

/// A complaint, and where it arose once that is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Error {
    pub complaint: Complaint,
    /// The dotted key, and where it was written.
    pub at: Option<(String, Origin)>,
}

impl Error {
    fn new(complaint: Complaint) -> Self {
        Self { complaint, at: None }
    }

    /// Places the error at `node`, unless a deeper node has done so. What serde buffered (tables
    /// tagged with their policy) has lost its places: those are looked for by name.
    fn placed(mut self, path: &str, node: &Node) -> Self {
        if self.at.is_none() {
            let found = match &self.complaint {
                Complaint::UnknownKey { key, .. } => node.find_key(key),
                Complaint::UnknownVariant { name, .. } => node.find_text(name),
                _ => None,
            };
            let origin = found.unwrap_or(&node.origin).clone();
            let path = match &self.complaint {
                Complaint::UnknownKey { key, .. } => join(path, key),
                _ => path.to_owned(),
            };
            self.at = Some((path, origin));
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.complaint)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Complaint::Other(message.to_string()))
    }
    fn unknown_field(key: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Complaint::UnknownKey { key: key.to_owned(), expected })
    }
    fn unknown_variant(name: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Complaint::UnknownVariant { name: name.to_owned(), expected })
    }
    fn missing_field(key: &'static str) -> Self {
        Self::new(Complaint::MissingKey(key))
    }
    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(Complaint::Type { found: plain(found), expected: expected.to_string() })
    }
    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(found, expected)
    }
}

/// The value that was found, in a configuration's words rather than serde's.
fn plain(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(value) => format!("the number `{value}`"),
        Unexpected::Signed(value) => format!("the number `{value}`"),
        Unexpected::Float(value) => format!("the number `{value}`"),
        Unexpected::Str(text) => format!("the text \"{text}\""),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

/// A node on its way into a type, and the dotted key that led there.
pub(super) struct Reader<'a> {
    pub node: &'a Node,
    pub path: &'a str,
}

/// Reads a whole tree.
pub(super) fn read<T: de::DeserializeOwned>(node: &Node) -> Result<T, Error> {
    let reader = Reader { node, path: "" };
    T::deserialize(reader).map_err(|error| error.placed("", node))
}

impl<'de> de::Deserializer<'de> for Reader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Text(text) => visitor.visit_str(text),
            Value::Natural(number) => visitor.visit_u64(*number),
            Value::Negative(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Array(items) => {
                visitor.visit_seq(Items { items: items.iter().enumerate(), path: self.path })
            }
            Value::Table(table) => {
                visitor.visit_map(Entries { rest: table.iter(), next: None, path: self.path })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self) // what is not there has no node
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Text(name) => visitor.visit_enum(name.as_str().into_deserializer()),
            Value::Table(table) => {
                visitor.visit_enum(de::value::MapAccessDeserializer::new(Entries {
                    rest: table.iter(),
                    next: None,
                    path: self.path,
                }))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'a> {
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
    path: &'a str,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some((index, node)) = self.items.next() else {
            return Ok(None);
        };
        let path = join(self.path, &index.to_string());
        let read = seed.deserialize(Reader { node, path: &path });
        read.map(Some).map_err(|error| error.placed(&path, node))
    }
}

struct Entries<'a> {
    rest: btree_map::Iter<'a, String, Entry>,
    next: Option<(&'a String, &'a Entry)>,
    path: &'a str,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.next = self.rest.next();
        let Some((key, entry)) = self.next else {
            return Ok(None);
        };
        let deserializer: de::value::StrDeserializer<'_, Error> = key.as_str().into_deserializer();
        seed.deserialize(deserializer).map(Some).map_err(|mut error| {
            error.at = Some((join(self.path, key), entry.key.clone()));
            error
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (key, entry) = self.next.take().expect("serde asks for a key first");
        let path = join(self.path, key);
        let reader = Reader { node: &entry.node, path: &path };
        seed.deserialize(reader).map_err(|error| error.placed(&path, &entry.node))
    }
}
