//! The RWBS letters of the Linux block layer, as blkparse and the block tracepoints print them.
//!
//! **What lives here**: their grammar: `[F] operation {F A S M ...}`, where an `F` before the
//! operation asks for a flush first (`REQ_PREFLUSH`) and one after it is forced unit access.
//! **What doesn't**: what a request becomes.
//!
//! **Invariants**: letters the kernel may add later are read past and reported, anything else that
//! isn't a capital letter is an error.

use super::super::error::ErrorKind;

/// The operation's letter(s).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    WriteZeroes,
    Trim,
    Flush,
    /// Zone append and zone management.
    Zone,
    /// `N`: none of the above.
    None,
}

/// Parsed letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rwbs {
    pub(crate) kind: Kind,
    pub(crate) preflush: bool,
    pub(crate) fua: bool,
    pub(crate) unknown: bool,
}

impl Rwbs {
    #[inline]
    pub(crate) fn parse(letters: &[u8]) -> Result<Self, ErrorKind> {
        let (preflush, rest) = match letters {
            [b'F', rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let (kind, rest) = match rest {
            [b'W', b'Z', rest @ ..] => (Kind::WriteZeroes, rest),
            [b'W', rest @ ..] => (Kind::Write, rest),
            [b'R', rest @ ..] => (Kind::Read, rest),
            [b'D', rest @ ..] => (Kind::Trim, rest),
            [b'F', rest @ ..] => (Kind::Flush, rest),
            [b'N', rest @ ..] => (Kind::None, rest),
            [b'Z', ..] => (Kind::Zone, &[][..]),
            [] if preflush => (Kind::Flush, &[][..]),
            _ => {
                return Err(ErrorKind::Field {
                    column: "flags",
                    want: "RWBS letters, such as WS, FWFS or RA",
                });
            }
        };
        let mut parsed = Self { kind, preflush, fua: false, unknown: false };
        for &letter in rest {
            match letter {
                b'F' => parsed.fua = true,
                // Readahead, sync, metadata; barrier (old kernels), atomic, secure erase.
                b'A' | b'S' | b'M' | b'B' | b'U' | b'E' => {}
                b'A'..=b'Z' => parsed.unknown = true,
                _ => {
                    return Err(ErrorKind::Field {
                        column: "flags",
                        want: "RWBS letters, such as WS, FWFS or RA",
                    });
                }
            }
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_before_and_after_the_operation_differ() {
        let parse = |letters: &str| {
            let rwbs = Rwbs::parse(letters.as_bytes()).unwrap();
            (rwbs.kind, rwbs.preflush, rwbs.fua, rwbs.unknown)
        };
        assert_eq!(parse("RA"), (Kind::Read, false, false, false));
        assert_eq!(parse("FWFSM"), (Kind::Write, true, true, false));
        assert_eq!(parse("WFS"), (Kind::Write, false, true, false));
        assert_eq!(parse("FF"), (Kind::Flush, true, false, false));
        assert_eq!(parse("F"), (Kind::Flush, true, false, false));
        assert_eq!(parse("FN"), (Kind::None, true, false, false));
        assert_eq!(parse("DS"), (Kind::Trim, false, false, false));
        assert_eq!(parse("DE"), (Kind::Trim, false, false, false));
        assert_eq!(parse("WZS"), (Kind::WriteZeroes, false, false, false));
        assert_eq!(parse("ZRA"), (Kind::Zone, false, false, false));
        assert_eq!(parse("WSQ"), (Kind::Write, false, false, true));
        for garbled in ["", "w", "W-", "7", "W1"] {
            assert!(Rwbs::parse(garbled.as_bytes()).is_err(), "{garbled}");
        }
    }
}
