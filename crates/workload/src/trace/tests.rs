//! Every format on small traces written for the purpose, good and bad.

use std::io::Cursor;
use std::path::Path;

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use super::{
    BlkAction, Devices, ErrorKind, Format, OpenOptions, Place, ReadCounts, Reader, TraceError,
    Unsorted,
};
use crate::{Class, ClassNames, Request};

mod bad;
mod binary;
mod classes;
mod cloud;
mod columns;
mod elsewhere;
mod text;

/// A trace's requests, and the reader's counters.
fn read(bytes: &[u8], options: &OpenOptions) -> Result<(Vec<Request>, ReadCounts), TraceError> {
    let bytes = Box::new(Cursor::new(bytes.to_vec()));
    let mut reader = Reader::new(Path::new("test"), bytes, options)?;
    let requests: Result<Vec<_>, _> = reader.by_ref().collect();
    Ok((requests?, reader.counts().clone()))
}

fn read_plain(text: &str) -> Result<(Vec<Request>, ReadCounts), TraceError> {
    read(text.as_bytes(), &OpenOptions::default())
}

fn request(ns: u64, op: Op, lba: u64, sectors: u32) -> Request {
    Request { at: Time::from_ns(ns), op, lba: Lba(lba), sectors, fua: false, class: Class::Unknown }
}
