//! Policies that other crates register beside those of a folder.
//!
//! **What lives here**: the list of a folder's policies from outside, and one of them as a configuration names it.
//! **What doesn't**: policies; the folders' own lists, which [`policies!`](crate::policies) declares.
//!
//! **Invariants**: a program that registers nothing reads, writes and draws as if this file were not there.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use schemars::{Schema, SchemaGenerator};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::PolicyInfo;

/// A policy from outside, of a folder whose policies are `T`s.
pub struct OutsideEntry<T: ?Sized + 'static> {
    /// Its name, and its documentation for users.
    pub info: PolicyInfo,
    /// The policy with such parameters, or why there is none.
    pub make: fn(Value) -> Result<Box<T>, String>,
    /// Its parameters by default.
    pub defaults: fn() -> Value,
    /// The schema of its parameters.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The policies from outside of one folder.
pub struct OutsideRegistry<T: ?Sized + 'static>(RwLock<Vec<&'static OutsideEntry<T>>>);

impl<T: ?Sized> Default for OutsideRegistry<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized> OutsideRegistry<T> {
    /// None yet.
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    /// Adds one; `known` are the folder's own.
    ///
    /// # Panics
    /// If there is a policy of that name already.
    pub fn add(&self, entry: OutsideEntry<T>, known: &[PolicyInfo]) {
        let name = entry.info.name;
        let is_taken = known.iter().any(|info| info.name == name) || self.find(name).is_some();
        assert!(!is_taken, "there is a policy `{name}` already: give yours another name");
        let entry = Box::leak(Box::new(entry));
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// All of them.
    pub fn all(&self) -> Vec<&'static OutsideEntry<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, name: &str) -> Option<&'static OutsideEntry<T>> {
        self.all().into_iter().find(|entry| entry.info.name == name)
    }

    /// The policy called `name` with its default parameters.
    pub fn named(&self, name: &str) -> Option<Outside<T>> {
        let entry = self.find(name)?;
        let parameters = (entry.defaults)().as_object().cloned().unwrap_or_default();
        Some(Outside { entry, parameters })
    }

    /// The policy that the table `given` names under `policy`; none if it is not from outside.
    ///
    /// # Errors
    /// If its parameters are wrong.
    pub fn read(&self, given: &Map<String, Value>) -> Option<Result<Outside<T>, String>> {
        let mut given = given.clone();
        let name = given.remove("policy")?;
        let mut outside = self.named(name.as_str()?)?;
        outside.parameters.extend(given);
        let made = (outside.entry.make)(Value::Object(outside.parameters.clone()));
        Some(made.map(|_| outside))
    }

    /// Adds the variants of policies from outside to the schema of the folder's own.
    pub fn extend_schema(&self, schema: &mut Schema) {
        // With a variant that has no tag, whose schema is left out, it says "any of", and means one.
        if let Some(variants) = schema.remove("anyOf") {
            schema.insert("oneOf".to_owned(), variants);
        }
        for entry in self.all() {
            let parameters = (entry.schema)(&mut SchemaGenerator::default()).to_value();
            let mut properties = parameters["properties"].as_object().cloned().unwrap_or_default();
            let tag = serde_json::json!({ "type": "string", "const": entry.info.name });
            properties.insert("policy".to_owned(), tag);
            let doc: Vec<&str> = entry.info.doc.iter().map(|line| line.trim()).collect();
            let variant = serde_json::json!({
                "type": "object", "description": doc.join("\n"), "properties": properties,
                "required": ["policy"], "additionalProperties": false,
            });
            if let Some(Value::Array(variants)) = schema.get_mut("oneOf") {
                variants.push(variant);
            }
        }
    }
}

/// A policy from outside, as a configuration has it.
pub struct Outside<T: ?Sized + 'static> {
    entry: &'static OutsideEntry<T>,
    parameters: Map<String, Value>,
}

impl<T: ?Sized> Outside<T> {
    /// The name a configuration uses.
    pub const fn name(&self) -> &'static str {
        self.entry.info.name
    }

    /// The policy.
    ///
    /// # Panics
    /// If its crate refuses parameters that it has taken before.
    pub fn policy(&self) -> Box<T> {
        let made = (self.entry.make)(Value::Object(self.parameters.clone()));
        made.unwrap_or_else(|error| panic!("the policy `{}`: {error}", self.name()))
    }
}

impl<T: ?Sized> Clone for Outside<T> {
    fn clone(&self) -> Self {
        Self { entry: self.entry, parameters: self.parameters.clone() }
    }
}

impl<T: ?Sized> fmt::Debug for Outside<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.name()).field(&self.parameters).finish()
    }
}

impl<T: ?Sized> PartialEq for Outside<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), &self.parameters) == (other.name(), &other.parameters)
    }
}

impl<T: ?Sized> Serialize for Outside<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.parameters.len() + 1))?;
        map.serialize_entry("policy", self.name())?;
        for (key, value) in &self.parameters {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
