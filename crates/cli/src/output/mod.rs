//! Tables, progress, and files that appear whole or not at all.

pub(crate) mod atomic;
pub(crate) mod escape;
pub(crate) mod place;
pub(crate) mod progress;
pub(crate) mod table;
