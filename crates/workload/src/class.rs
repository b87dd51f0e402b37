//! Classes of a request's data: a few that policies understand, and any others by name.
//!
//! **What lives here**: [`Class`], and the names that a trace gives to classes ([`ClassNames`]). **What
//! doesn't**: how a trace's format writes them (`trace`).
//!
//! **Invariants**
//! - A name stands for one class, a class for one name, as long as the names live.
//! - There are at most [`ClassNames::MOST`] names, each of at most [`ClassNames::MOST_BYTES`] bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The class of a request's data, where a trace has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Class {
    /// Nothing is known.
    #[default]
    Unknown,
    /// File or table data.
    Data,
    /// A database's write-ahead log.
    Wal,
    /// A file system's journal.
    Journal,
    /// A file system's other metadata.
    FsMeta,
    /// A class with a name of its trace's ([`ClassNames`]). It is counted by that name; policies
    /// treat it as [`Unknown`](Self::Unknown).
    Named(NameId),
}

/// Which of the names of one [`ClassNames`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameId(u8);

impl Class {
    /// The known ones, in their order.
    pub const KNOWN: [Self; 5] =
        [Self::Unknown, Self::Data, Self::Wal, Self::Journal, Self::FsMeta];
    /// Their names, in the same order.
    pub const NAMES: [&str; 5] = ["unknown", "data", "wal", "journal", "fs-meta"];
    /// How many there can be: numbers are below.
    pub const MOST: usize = Self::KNOWN.len() + ClassNames::MOST;

    /// The name of a known one.
    ///
    /// ```
    /// use leyden_workload::Class;
    /// assert_eq!((Class::Unknown.known_name(), Class::FsMeta.known_name()), (Some("unknown"), Some("fs-meta")));
    /// ```
    pub const fn known_name(self) -> Option<&'static str> {
        match self {
            Self::Named(_) => None,
            _ => Some(Self::NAMES[self.number() as usize]),
        }
    }

    /// The known ones are numbered from 0, the others follow in the order in which they were named.
    #[inline]
    pub const fn number(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Data => 1,
            Self::Wal => 2,
            Self::Journal => 3,
            Self::FsMeta => 4,
            Self::Named(NameId(id)) => Self::KNOWN.len() as u8 + id,
        }
    }
}

/// Why a name is no class's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadName {
    /// It is too long, or has a character that no name has.
    Malformed,
    /// There are as many as there can be.
    TooMany,
}

/// The names that a trace gives to classes beside the known ones.
///
/// Clones are one table: who reads a trace adds to it, who counts or writes what was read looks it up.
///
/// ```
/// use leyden_workload::{Class, ClassNames};
///
/// let names = ClassNames::default();
/// let heap = names.class("heap").unwrap();
/// assert_eq!(names.class("heap"), Ok(heap));
/// assert_eq!(names.class("wal"), Ok(Class::Wal));
/// assert_eq!((names.name(heap), names.name(Class::Wal)), (Some("heap"), Some("wal")));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClassNames(Arc<Table>);

#[derive(Debug)]
struct Table {
    /// By id, filled from the front; read without a lock.
    names: [OnceLock<Box<str>>; ClassNames::MOST],
    ids: Mutex<BTreeMap<Box<str>, u8>>,
}

impl Default for Table {
    fn default() -> Self {
        Self { names: [const { OnceLock::new() }; ClassNames::MOST], ids: Mutex::default() }
    }
}

impl ClassNames {
    /// The most names beside the known ones: with these, a class's number is a byte.
    pub const MOST: usize = 250;
    /// The longest name, in bytes.
    pub const MOST_BYTES: usize = 40;

    /// The class called `name`, which gets a number if it has none. The known ones go by their names; an
    /// empty name, `-`, `other` and `unknown` are all [`Class::Unknown`].
    pub fn class(&self, name: &str) -> Result<Class, BadName> {
        match name {
            "" | "-" | "other" => return Ok(Class::Unknown),
            _ => {}
        }
        if let Some(known) = Class::NAMES.iter().position(|&known| known == name) {
            return Ok(Class::KNOWN[known]);
        }
        if !Self::is_name(name) {
            return Err(BadName::Malformed);
        }
        let mut ids = self.0.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&id) = ids.get(name) {
            return Ok(Class::Named(NameId(id)));
        }
        let id = ids.len();
        let place = self.0.names.get(id).ok_or(BadName::TooMany)?;
        place.get_or_init(|| name.into());
        ids.insert(name.into(), id as u8);
        Ok(Class::Named(NameId(id as u8)))
    }

    /// The name of a class; `None` if it was named by another table.
    pub fn name(&self, class: Class) -> Option<&str> {
        match class {
            Class::Named(NameId(id)) => self.0.names.get(usize::from(id))?.get().map(AsRef::as_ref),
            known => known.known_name(),
        }
    }

    /// The names of all classes that there are, by number.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let named = self.0.names.iter().map_while(|name| name.get().map(AsRef::as_ref));
        Class::NAMES.into_iter().chain(named)
    }

    /// Whether `name` could be one: 1 to 40 letters, digits and `-_./:+`.
    fn is_name(name: &str) -> bool {
        let may_stand = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:+".contains(&byte);
        (1..=Self::MOST_BYTES).contains(&name.len()) && name.bytes().all(may_stand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_known_classes() {
        let names = ClassNames::default();
        for (class, name) in Class::KNOWN.into_iter().zip(Class::NAMES) {
            assert_eq!(names.class(name), Ok(class));
            assert_eq!((names.name(class), class.known_name()), (Some(name), Some(name)));
        }
        for unknown in ["", "-", "other"] {
            assert_eq!(names.class(unknown), Ok(Class::Unknown));
        }
        assert!(names.all().eq(Class::NAMES));
        let numbers: Vec<u8> = Class::KNOWN.map(Class::number).into();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn names_are_kept_and_bounded() {
        let names = ClassNames::default();
        let also = names.clone();
        for i in 0..ClassNames::MOST {
            let class = names.class(&format!("t{i}")).unwrap();
            assert_eq!(usize::from(class.number()), 5 + i);
            assert_eq!(also.name(class), Some(&*format!("t{i}")));
        }
        assert_eq!(also.class("t7"), names.class("t7"));
        assert_eq!(also.class("one-more"), Err(BadName::TooMany));
        assert_eq!(names.all().count(), Class::MOST);
        assert_eq!(names.all().last(), Some("t249"));
        let elsewhere = ClassNames::default();
        assert_eq!(elsewhere.name(names.class("t7").unwrap()), None);
    }

    #[test]
    fn names_are_short_and_plain() {
        let names = ClassNames::default();
        let longest = "x".repeat(ClassNames::MOST_BYTES);
        for good in ["sst-l3", "catalog/other", "a.b:c_d+E", &longest, "--"] {
            assert!(matches!(names.class(good), Ok(Class::Named(_))), "{good}");
        }
        for bad in [&*format!("{longest}x"), "a b", "a,b", "\u{e4}", "a\n", "\0", "<b>"] {
            assert_eq!(names.class(bad), Err(BadName::Malformed), "{bad:?}");
        }
    }
}
