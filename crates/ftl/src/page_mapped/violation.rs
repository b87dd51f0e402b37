//! Violations of a state's invariants.

use thiserror::Error;

/// A broken invariant: a bug of ours, or a corrupt snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Violation(pub String);
