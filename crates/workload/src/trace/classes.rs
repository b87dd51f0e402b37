//! The names of classes that one reader has met.
//!
//! **What lives here**: finding a name's class again without asking the table that all share. **What
//! doesn't**: the table ([`ClassNames`]).

use crate::class::BadName;
use crate::{Class, ClassNames};

use super::error::ErrorKind;

/// The rule for names of classes.
pub(crate) const WANT: &str = "a name of at most 40 letters, digits and -_./:+";

/// A reader's view of the names.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    names: ClassNames,
    /// By name. A table is asked once for each: that takes a lock.
    met: Vec<(Box<[u8]>, Class)>,
    /// The place of the last one: neighbours often have the same.
    last: usize,
}

impl Classes {
    pub(crate) fn new(names: ClassNames) -> Self {
        Self { names, ..Self::default() }
    }

    pub(crate) fn names(&self) -> &ClassNames {
        &self.names
    }

    /// The class called `name`.
    #[inline]
    pub(crate) fn class(&mut self, name: &[u8]) -> Result<Class, ErrorKind> {
        match self.met.get(self.last) {
            Some((last, class)) if **last == *name => Ok(*class),
            _ => self.another(name),
        }
    }

    fn another(&mut self, name: &[u8]) -> Result<Class, ErrorKind> {
        match self.met.binary_search_by(|(met, _)| (**met).cmp(name)) {
            Ok(at) => self.last = at,
            Err(at) => {
                let malformed = ErrorKind::Field { column: "class", want: WANT.into() };
                let class = match std::str::from_utf8(name).map(|name| self.names.class(name)) {
                    Ok(Ok(class)) => class,
                    Ok(Err(BadName::TooMany)) => {
                        return Err(ErrorKind::TooManyClasses { most: ClassNames::MOST });
                    }
                    Ok(Err(BadName::Malformed)) | Err(_) => return Err(malformed),
                };
                self.met.insert(at, (name.into(), class));
                self.last = at;
            }
        }
        Ok(self.met[self.last].1)
    }
}
