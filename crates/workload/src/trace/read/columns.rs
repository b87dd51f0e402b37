//! The parser of text in plain columns.
//!
//! **What lives here**: the parser of lines that [`Columns`] describe. **What doesn't**: the description
//! (`trace/columns`), the known formats (`known`).
//!
//! **Invariants**
//! - Each line has a time, an address, a length and an operation.
//! - A known format is read to the letter. In columns that a user described, blanks and quotes around a value,
//!   fractions finer than a nanosecond and whole numbers with a point (`4096.0`) are taken as well.

use std::borrow::Cow;

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use crate::{Class, Request};

use super::super::columns::{Column, Columns, Layout};
use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{NotNumber, decimal, decimal_ns};
use super::LineParser;
use super::options::OpenOptions;

/// A format of plain columns whose layout is known.
pub(crate) trait Known: Default {
    /// Its columns, as [`Columns`] describes them.
    const COLUMNS: &'static str;
    /// Its own names of them, separated likewise; as a line, a header.
    const NAMES: &'static str;
}

/// The columns that the user described.
#[derive(Default)]
pub(crate) struct Described;

impl Known for Described {
    const COLUMNS: &'static str = "";
    const NAMES: &'static str = "";
}

/// A parser of lines in columns.
#[derive(Default)]
pub(crate) struct InColumns<K> {
    layout: Option<Columns>,
    /// Whether a line was read: a header can only be the first.
    begun: bool,
    device: Vec<u8>,
    known: std::marker::PhantomData<K>,
}

/// A line, before its device is looked up.
struct Record {
    ns: u64,
    op: Option<Op>,
    offset: u64,
    bytes: u64,
    len_column: &'static str,
}

/// The layout of a known format.
fn layout<K: Known>() -> Columns {
    K::COLUMNS.parse().expect("a known format's columns are right")
}

impl<K: Known> InColumns<K> {
    const IS_LENIENT: bool = K::NAMES.is_empty();

    /// Reads the columns of `line`; the device's name is left in `self.device`.
    #[inline]
    fn record(&mut self, line: &[u8]) -> Result<Record, ErrorKind> {
        let columns = self.layout.get_or_insert_with(layout::<K>);
        let layout = &*columns.0;
        self.device.clear();
        let mut record = Record { ns: 0, op: None, offset: 0, bytes: 0, len_column: "len" };
        let mut values = layout.separator.split(line);
        for (at, column) in layout.columns.iter().enumerate() {
            let value = match values.next() {
                Some(value) => value,
                // Tabs at the end of a line are no part of it.
                None if Self::IS_LENIENT && matches!(column, Column::Other { .. }) => break,
                None => return Err(surplus::<K>(layout, line)),
            };
            let value = if Self::IS_LENIENT { bare(value) } else { value };
            let bad = |error: NotNumber| match error {
                NotNumber::Garbled => {
                    ErrorKind::Field { column: named::<K>(layout, at), want: column.want() }
                }
                NotNumber::TooLarge => ErrorKind::Overflow { column: named::<K>(layout, at) },
            };
            match column {
                Column::Time { digits } => {
                    record.ns = time(value, *digits, Self::IS_LENIENT).map_err(bad)?;
                }
                Column::Lba { unit } => {
                    let lba = number(value, Self::IS_LENIENT).map_err(bad)?;
                    record.offset = lba.checked_mul(*unit).ok_or(ErrorKind::Range)?;
                }
                Column::Len { unit } => {
                    let len = number(value, Self::IS_LENIENT).map_err(bad)?;
                    record.len_column = named::<K>(layout, at);
                    let bytes = len.checked_mul(*unit);
                    record.bytes = bytes.ok_or_else(|| bad(NotNumber::TooLarge))?;
                }
                Column::Op(operations) => {
                    record.op = operations.of(value).ok_or_else(|| bad(NotNumber::Garbled))?;
                }
                Column::Device { is_number } => {
                    if *is_number {
                        decimal(value).map_err(bad)?;
                    }
                    if !self.device.is_empty() {
                        self.device.push(b',');
                    }
                    self.device.extend_from_slice(value);
                }
                Column::Other { is_number } => {
                    if *is_number && !is_signed(value) {
                        return Err(bad(NotNumber::Garbled));
                    }
                }
            }
        }
        if !layout.is_open && values.next().is_some() {
            return Err(surplus::<K>(layout, line));
        }
        Ok(record)
    }

    /// Whether the first line that the user described is a header: nothing in it is a number that should be.
    fn is_header(&self, line: &[u8]) -> bool {
        let Some(Columns(layout)) = &self.layout else { return false };
        let mut found = layout.columns.iter().zip(layout.separator.split(line));
        found.all(|(column, value)| match column {
            Column::Time { .. } | Column::Lba { .. } | Column::Len { .. } => {
                bare(value).first().is_some_and(|byte| !byte.is_ascii_digit() && *byte != b'-')
            }
            _ => true,
        })
    }
}

impl<K: Known> LineParser for InColumns<K> {
    fn choose(&mut self, options: &OpenOptions) -> Result<(), ErrorKind> {
        if Self::IS_LENIENT {
            let columns = options.columns.clone().ok_or(ErrorKind::Unsupported {
                what: "the format `columns` without its columns",
                remedy: "Say what they hold: --columns \"time:us op:R/W lba:512 len:512\", or the key `columns`",
            })?;
            self.layout = Some(columns);
        }
        Ok(())
    }

    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        if Self::IS_LENIENT {
            return Ok(false); // it has no look of its own
        }
        let Columns(layout) = &layout::<K>();
        let mut values = layout.separator.split(line);
        let fits = |column: &Column| {
            values.next().is_some_and(|value| match column {
                Column::Time { digits } => decimal_ns(value, *digits).is_ok(),
                Column::Op(operations) => matches!(operations.of(value), Some(Some(_))),
                Column::Device { is_number: true } => decimal(value).is_ok(),
                _ => true,
            })
        };
        let fits = layout.columns.iter().all(fits) && (layout.is_open || values.next().is_none());
        Ok(fits || line == K::NAMES.as_bytes())
    }

    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let first = !std::mem::replace(&mut self.begun, true);
        if first && (line == K::NAMES.as_bytes() || Self::IS_LENIENT && self.is_header(line)) {
            return Ok(());
        }
        if Self::IS_LENIENT && line.starts_with(b"#") {
            return Ok(());
        }
        let Record { ns, op, offset, bytes, len_column } = self.record(line)?;
        let Some(op) = op else {
            context.counts.skipped_no_type += 1;
            return Ok(());
        };
        let base = if self.device.is_empty() { Some(0) } else { context.device(&self.device)? };
        let Some(base) = base else { return Ok(()) };
        let widened = context.widen(offset, bytes);
        let (lba, sectors) = widened.map_err(|error| match error {
            ErrorKind::Overflow { .. } => ErrorKind::Overflow { column: len_column },
            error => error,
        })?;
        context.emit(out, base, plain(ns, op, lba, sectors))
    }
}

/// How the format calls its column number `at`.
#[cold]
fn named<K: Known>(layout: &Layout, at: usize) -> &'static str {
    let own = layout.separator.split(K::NAMES.as_bytes()).nth(at);
    let own = own.and_then(|name| std::str::from_utf8(name).ok());
    own.filter(|name| !name.is_empty()).unwrap_or_else(|| layout.columns[at].name())
}

#[cold]
fn surplus<K: Known>(layout: &Layout, line: &[u8]) -> ErrorKind {
    let want: Cow<'static, str> =
        if K::NAMES.is_empty() { layout.text.clone().into() } else { K::NAMES.into() };
    ErrorKind::Columns { got: layout.separator.split(line).count(), want }
}

/// A value without blanks and quotes around it.
fn bare(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii();
    let inner = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    inner.unwrap_or(value)
}

/// A time in units of 10^digits ns.
#[inline]
fn time(value: &[u8], digits: usize, is_lenient: bool) -> Result<u64, NotNumber> {
    let dot = if is_lenient { value.iter().position(|&byte| byte == b'.') } else { None };
    match dot {
        None => decimal_ns(value, digits),
        Some(dot) if !value[dot + 1..].iter().all(u8::is_ascii_digit) => Err(NotNumber::Garbled),
        // Digits beyond a nanosecond are cut off.
        Some(dot) if digits == 0 || dot + 1 == value.len() => decimal_ns(&value[..dot], digits),
        Some(dot) => decimal_ns(&value[..value.len().min(dot + 1 + digits)], digits),
    }
}

#[inline]
fn number(value: &[u8], is_lenient: bool) -> Result<u64, NotNumber> {
    match value.iter().position(|&byte| byte == b'.') {
        Some(dot) if is_lenient && value[dot + 1..].iter().all(|&byte| byte == b'0') => {
            decimal(&value[..dot])
        }
        _ => decimal(value),
    }
}

/// Whether `value` is a number, with or without a sign and a fraction, or nothing.
fn is_signed(value: &[u8]) -> bool {
    let value = value.strip_prefix(b"-").unwrap_or(value);
    let mut parts = value.splitn(2, |&byte| byte == b'.');
    parts.all(|part| part.iter().all(u8::is_ascii_digit))
}

/// A request of which a format says no more than this.
pub(super) const fn plain(ns: u64, op: Op, lba: u64, sectors: u32) -> Request {
    Request { at: Time::from_ns(ns), op, lba: Lba(lba), sectors, fua: false, class: Class::Unknown }
}
