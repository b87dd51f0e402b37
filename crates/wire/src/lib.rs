//! Wire formats: bytes to what they say, and back.
//!
//! **What lives here**: the formats, each message a value. **What doesn't**: sockets, threads, drives; who
//! may say what when.
//!
//! **Invariants**: whatever the bytes are, a parser returns a value or an error, and allocates no more
//! than it was given.

pub mod fuzz;
pub mod log_writes;
pub mod nbd;
pub mod programs;
