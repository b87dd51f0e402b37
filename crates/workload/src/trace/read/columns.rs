//! What formats of plain columns share.

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use crate::{Class, Request};

use super::super::error::ErrorKind;
use super::super::num::split;

/// The comma-separated columns of a line, which must be `N`; `want` names them.
pub(super) fn columns<'a, const N: usize>(
    line: &'a [u8],
    want: &'static str,
) -> Result<[&'a [u8]; N], ErrorKind> {
    let mut columns = [&[][..]; N];
    let got = split(line, b',', &mut columns);
    if got == N { Ok(columns) } else { Err(ErrorKind::Columns { got, want }) }
}

/// The operation that a single letter or digit stands for.
pub(super) fn op_of(column: &[u8], read: u8, write: u8) -> Option<Op> {
    match column {
        [byte] if byte.eq_ignore_ascii_case(&read) => Some(Op::Read),
        [byte] if byte.eq_ignore_ascii_case(&write) => Some(Op::Write),
        _ => None,
    }
}

/// A request of which a format says no more than this.
pub(super) const fn plain(ns: u64, op: Op, lba: u64, sectors: u32) -> Request {
    Request { at: Time::from_ns(ns), op, lba: Lba(lba), sectors, fua: false, class: Class::Unknown }
}
