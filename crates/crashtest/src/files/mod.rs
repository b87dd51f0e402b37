//! Crash tests of software that works on files, in memory: no root, no mounts, in the language of the software.
//!
//! **What lives here**: what calls do ([`Fs`], `tree`), every version of each part that they change (`history`), what a
//! file system promises (`rules`, `durable`), and what a power cut leaves (`left`). **What doesn't**: which states are
//! tried, verdicts and shrinking, which files share with drives.
//!
//! A power cut keeps or loses *parts* independently of each other: pages of files, lengths, names, and the journal,
//! which holds a prefix of its entries. What depends on something that was lost is not there either ([`surviving`]).

mod atom;
mod bed;
mod by_ino;
mod calls;
mod durable;
mod file;
mod folder;
mod fs;
pub(crate) mod fuzz;
mod history;
mod membership;
mod operation;
mod performed;
mod record;
mod recording;
mod requests;
mod rules;
mod served;
mod states;
mod step;
mod surviving;
mod syncs;
mod test;
mod tree;
#[cfg(test)]
mod twin;
mod xattrs;

pub(crate) use bed::InFolder;
pub use file::{File, OpenOptions};
pub use folder::{Call, Fs, Metadata};
pub use history::FileHistory;
pub use membership::SeenFiles;
pub use performed::{Half, not_allowed, perform};
pub(crate) use record::record_files;
pub use recording::DRIVES_MOST;
pub(crate) use recording::{RecordedFiles, read as read_recording};
pub use rules::Persistence;
pub use test::{FilesTest, make_small};
pub(crate) use xattrs::first_lost;
