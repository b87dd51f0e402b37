//! Why a configuration is refused: one error for every layer, which knows the keys of its own table only.

use thiserror::Error;

/// A value that is impossible, and the key that it stands under.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The offending key, dotted, relative to the table that was checked: `faults.erase_failures`.
    pub key: String,
    /// The fault, and the remedy.
    pub problem: String,
}

impl ConfigError {
    /// An error at `key`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }

    /// The same error, seen from the table that holds `table`.
    #[must_use]
    pub fn within(self, table: &str) -> Self {
        Self { key: format!("{table}.{}", self.key), problem: self.problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_come_before_the_key() {
        let error = ConfigError::new("pages_per_block", "0 is not in 1..=65536");
        assert_eq!(error.to_string(), "pages_per_block: 0 is not in 1..=65536");
        let error = error.within("nand").within("device");
        assert_eq!(error.to_string(), "device.nand.pages_per_block: 0 is not in 1..=65536");
    }
}
