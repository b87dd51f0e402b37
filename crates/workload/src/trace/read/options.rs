//! How a trace is read: what its file does not say of itself.

use crate::ClassNames;

use super::super::columns::Columns;
use super::super::context::{Devices, Unsorted};
use super::Format;
use super::action::BlkAction;

/// How to read a trace.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Its format; told from its content if not given.
    pub format: Option<Format>,
    /// The contents of its columns, if it is text in columns of no known format.
    pub columns: Option<Columns>,
    /// Lines at the beginning of a text that are not read.
    pub skip_lines: u32,
    /// For blktrace, blkparse, biosnoop and block tracepoints: which events are requests.
    pub blkparse_action: BlkAction,
    /// The meaning of late records.
    pub unsorted: Unsorted,
    /// The meaning of several devices in one file.
    pub devices: Devices,
    /// Names of classes whose requests are left out. What is no name ([`ClassNames::class`]) leaves nothing out.
    pub without: Vec<String>,
    /// Where names of classes are kept; readers whose options are clones of one share them.
    pub classes: ClassNames,
}
