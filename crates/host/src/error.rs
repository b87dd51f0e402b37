//! Why a host layer can't be built.

use thiserror::Error;

/// A configuration that is impossible; `key` is relative to the layer's own table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The offending key.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub problem: String,
}
