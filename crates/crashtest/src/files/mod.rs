//! Crash tests of software that works on files, in memory: no root, no mounts, in the language of the software.
//!
//! **What lives here**: what calls do ([`Fs`], `tree`), every version of each part that they change (`history`), what a
//! file system promises (`rules`, `durable`), and what a power cut leaves (`left`). **What doesn't**: which states are
//! tried, verdicts and shrinking, which files share with drives.
//!
//! A power cut keeps or loses *parts* independently of each other: pages of files, lengths, names, and the journal,
//! which holds a prefix of its entries. What depends on something that was lost is not there either ([`left`]).

mod atom;
mod durable;
mod file;
mod folder;
mod fs;
mod history;
mod left;
mod rules;
mod states;
mod step;
mod test;
mod tree;
#[cfg(test)]
mod twin;

pub use file::{File, OpenOptions};
pub use folder::{Call, Fs, Metadata};
pub use rules::Persistence;
pub use test::FilesTest;
