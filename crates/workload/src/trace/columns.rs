//! Contents of a text's columns, as users write them and as the known formats of this kind have them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use leyden_device::{Op, SECTOR_BYTES};

use super::num::words;

/// How a trace's lines are laid out: `time:ns lba:4096 len:4096 op:r/w`, written as the lines are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns(pub(super) Arc<Layout>);

#[derive(PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) text: String,
    pub(super) separator: Separator,
    pub(super) columns: Vec<Column>,
    /// More columns may follow, which are not used.
    pub(super) is_open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Separator {
    /// Any number of blanks and tabs.
    Blanks,
    Byte(u8),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Column {
    /// In units of 10^digits ns.
    Time {
        digits: usize,
    },
    /// In blocks of so many bytes.
    Lba {
        unit: u64,
    },
    /// In blocks of so many bytes.
    Len {
        unit: u64,
    },
    Op(Operations),
    /// A part of the device's name.
    Device {
        is_number: bool,
    },
    /// Not used.
    Other {
        is_number: bool,
    },
}

/// The values of a column of operations; `None` is a record that is counted and skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Operations {
    pub(super) names: Vec<(Vec<u8>, Option<Op>)>,
    pub(super) skips_others: bool,
}

/// The operations in the order in which a description names them.
pub(super) const OPS: [(Op, &str); 5] = [
    (Op::Read, "read"),
    (Op::Write, "write"),
    (Op::Flush, "flush"),
    (Op::Trim, "discard"),
    (Op::WriteZeroes, "write zeroes"),
];
/// Units of time, and their nanoseconds as powers of ten.
pub(super) const TIMES: [(&str, usize, &str); 5] = [
    ("s", 9, "decimal seconds"),
    ("ms", 6, "decimal milliseconds"),
    ("us", 3, "decimal microseconds"),
    ("100ns", 2, "ticks of 100 ns"),
    ("ns", 0, "whole nanoseconds"),
];
pub(super) const EXAMPLE: &str = "time:us op:R/W lba:512 len:512";

/// A description of columns that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}, such as `{EXAMPLE}`")]
pub struct ColumnsError(String);

impl FromStr for Columns {
    type Err = ColumnsError;

    fn from_str(text: &str) -> Result<Self, ColumnsError> {
        let text = text.trim();
        let is_separator = |c: char| matches!(c, ',' | ';' | '|' | '\t');
        let separator = match text.chars().find(|&c| is_separator(c)) {
            // A single byte, by the match above.
            Some(c) => Separator::Byte(c as u8),
            None => Separator::Blanks,
        };
        let mut layout = Layout { text: text.into(), separator, columns: vec![], is_open: false };
        for word in separator.split(text.as_bytes()) {
            let word = String::from_utf8_lossy(word.trim_ascii()).into_owned();
            if layout.is_open {
                return wrong(format!("`{word}` stands behind `..`, which ends the columns"));
            }
            match word.as_str() {
                ".." => layout.is_open = true,
                word => layout.columns.push(Column::parse(word)?),
            }
        }
        for name in ["time", "lba", "len", "op"] {
            let count = layout.columns.iter().filter(|column| column.name() == name).count();
            if count != 1 {
                let how = if count == 0 { "no column" } else { "more than one column" };
                return wrong(format!("{how} is `{name}`: name `time`, `lba`, `len` and `op`"));
            }
        }
        Ok(Self(Arc::new(layout)))
    }
}

pub(super) fn wrong<T>(problem: String) -> Result<T, ColumnsError> {
    Err(ColumnsError(problem))
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl Separator {
    pub(super) fn split(self, line: &[u8]) -> impl Iterator<Item = &[u8]> {
        let (by_words, by_byte) = match self {
            Self::Blanks => (Some(words(line)), None),
            Self::Byte(byte) => (None, Some(line.split(move |&b| b == byte))),
        };
        by_words.into_iter().flatten().chain(by_byte.into_iter().flatten())
    }
}

impl Column {
    pub(super) fn parse(word: &str) -> Result<Self, ColumnsError> {
        let (name, rest) = match word.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (word, None),
        };
        let unit = || match rest.map_or(Ok(SECTOR_BYTES), str::parse::<u64>) {
            Ok(unit @ 1..=0x4000_0000) => Ok(unit),
            _ => wrong(format!("`{word}` does not say how many bytes a unit of `{name}` has")),
        };
        match (name, rest) {
            ("time", Some(unit)) if TIMES.iter().any(|(name, ..)| *name == unit) => {
                let digits = TIMES.iter().find(|(name, ..)| *name == unit).map_or(0, |t| t.1);
                Ok(Self::Time { digits })
            }
            ("time", _) => wrong(format!("`{word}` has no unit of s, ms, us, 100ns or ns")),
            ("lba", _) => Ok(Self::Lba { unit: unit()? }),
            ("len", _) => Ok(Self::Len { unit: unit()? }),
            ("op", Some(names)) => Operations::parse(names).map(Self::Op),
            ("op", None) => wrong("`op` does not say what a read and a write are called".into()),
            ("device", None) => Ok(Self::Device { is_number: false }),
            ("device#", None) => Ok(Self::Device { is_number: true }),
            ("-", None) => Ok(Self::Other { is_number: false }),
            ("#", None) => Ok(Self::Other { is_number: true }),
            _ => wrong(format!(
                "`{word}` is no column: there are time, lba, len, op, device, - (not used) and .. (all the rest)"
            )),
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Time { .. } => "time",
            Self::Lba { .. } => "lba",
            Self::Len { .. } => "len",
            Self::Op(_) => "op",
            Self::Device { .. } => "device",
            Self::Other { .. } => "unused",
        }
    }

    /// The contents that the column must have, for errors.
    pub(super) fn want(&self) -> Cow<'static, str> {
        match self {
            Self::Time { digits } => {
                TIMES.iter().find(|t| t.1 == *digits).map_or("a time", |t| t.2).into()
            }
            Self::Lba { unit: 1 } | Self::Len { unit: 1 } => "a number of bytes".into(),
            Self::Lba { unit: SECTOR_BYTES } | Self::Len { unit: SECTOR_BYTES } => {
                "a number of 512-byte sectors".into()
            }
            Self::Lba { unit } | Self::Len { unit } => {
                format!("a number of {unit}-byte blocks").into()
            }
            Self::Op(operations) => operations.to_string().into(),
            Self::Device { .. } | Self::Other { .. } => "a number".into(),
        }
    }
}

impl Operations {
    pub(super) fn parse(text: &str) -> Result<Self, ColumnsError> {
        let mut all = Self { names: Vec::new(), skips_others: false };
        let mut ops = OPS.iter();
        for part in text.split('/') {
            let (names, op) = match part.strip_prefix('!') {
                Some("*") => {
                    all.skips_others = true;
                    continue;
                }
                Some(names) => (names, None),
                None => match ops.next() {
                    Some((op, _)) => (part, Some(*op)),
                    None => return wrong(format!("`op:{text}` names more than five operations")),
                },
            };
            if op.is_none() || !names.is_empty() {
                all.names.extend(names.split('+').map(|name| (name.as_bytes().to_vec(), op)));
            }
        }
        let writes = |&(_, op): &(_, Option<Op>)| matches!(op, Some(Op::Read | Op::Write));
        if !all.names.iter().any(writes) {
            return wrong(format!("`op:{text}` names neither reads nor writes"));
        }
        Ok(all)
    }

    /// The operation that `value` stands for; `Some(None)` if it is to be skipped.
    #[inline]
    #[expect(
        clippy::option_option,
        reason = "an operation, one that is skipped, or a name that is not known"
    )]
    pub(super) fn of(&self, value: &[u8]) -> Option<Option<Op>> {
        let known = self.names.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
        known.map(|&(_, op)| op).or_else(|| self.skips_others.then_some(None))
    }
}

impl fmt::Display for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one of ")?;
        for (at, (name, op)) in self.names.iter().enumerate() {
            let what = OPS.iter().find(|(of, _)| Some(*of) == *op).map_or("skipped", |o| o.1);
            let name =
                if name.is_empty() { "nothing".into() } else { name.escape_ascii().to_string() };
            write!(f, "{}{name} ({what})", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
