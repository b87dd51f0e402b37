//! Tables, numbers, progress, and files that appear whole or not at all.

pub(crate) mod atomic;
pub(crate) mod number;
pub(crate) mod progress;
pub(crate) mod table;
