//! The C interface: a drive in an image, opened in the caller's process.
//!
//! **What lives here**: the types and functions of `include/leyden.h`, which `cargo xtask header` makes from [`types`]
//! and [`calls`], and the border between C and Rust ([`border`]). **What doesn't**: the drive, and who has it while a
//! call is under way ([`leyden_serve::Direct`]).
//!
//! **Invariants**: nothing unwinds into C; a pointer of the caller is looked at here and nowhere deeper; of a structure
//! no more is read or written than the caller's size says.
#![expect(unsafe_code, reason = "C calls it")]
#![allow(
    clippy::wildcard_imports,
    reason = "the names of the interface say by their prefix where they are from"
)]

mod arguments;
mod border;
#[expect(clippy::missing_safety_doc, reason = "the header says what a caller has to keep to")]
pub mod calls;
mod client;
mod handle;
mod statuses;
#[expect(non_camel_case_types, reason = "they have the names that they have in C")]
pub mod types;
