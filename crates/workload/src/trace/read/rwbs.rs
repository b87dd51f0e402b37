//! The RWBS letters of the Linux block layer, as blkparse and the block tracepoints print them.
//!
//! **What lives here**: their grammar: `[F] operation {F A S M ...}`, where an `F` before the
//! operation asks for a flush first (`REQ_PREFLUSH`) and one after it is forced unit access.
//! **What doesn't**: what a request becomes.
//!
//! **Invariants**: letters the kernel may add later are read past and reported, anything else that
//! isn't a capital letter is an error.

use leyden_device::{Op, ZoneAction};

use super::super::error::ErrorKind;

/// The operation's letter(s).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    WriteZeroes,
    Trim,
    Flush,
    /// `ZA`, `ZR`, `ZF`, `ZO`, `ZC`: zone append, reset, finish, open, close (Linux 6.19).
    Zone(Op),
    /// `ZRA`, reset of all zones; and a bare `Z`, as older kernels print.
    OtherZone,
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

/// Zone operations that traces carry, and the letters behind their `Z`.
pub(crate) const ZONE_OPS: [(u8, Op); 5] = [
    (b'A', Op::ZoneAppend),
    (b'R', Op::Zone(ZoneAction::Reset)),
    (b'F', Op::Zone(ZoneAction::Finish)),
    (b'O', Op::Zone(ZoneAction::Open)),
    (b'C', Op::Zone(ZoneAction::Close)),
];

fn zone_op(letter: u8) -> Option<Op> {
    ZONE_OPS.into_iter().find(|&(known, _)| known == letter).map(|(_, op)| op)
}

/// The letter behind the `Z` of a zone operation; `None` of one that traces do not carry.
pub(crate) fn zone_letter(op: Op) -> Option<u8> {
    ZONE_OPS.into_iter().find(|&(_, known)| known == op).map(|(letter, _)| letter)
}

/// Parses what follows the `Z` of our text's column `op`.
pub(crate) fn named_zone_op(name: &[u8]) -> Option<Op> {
    match name {
        [b'Z', letter] => zone_op(*letter),
        _ => None,
    }
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
            [b'Z', b'R', b'A', rest @ ..] => (Kind::OtherZone, rest),
            [b'Z', letter, rest @ ..] => match zone_op(*letter) {
                Some(op) => (Kind::Zone(op), rest),
                None => (Kind::OtherZone, &[][..]),
            },
            [b'Z'] => (Kind::OtherZone, &[][..]),
            [] if preflush => (Kind::Flush, &[][..]),
            _ => {
                return Err(ErrorKind::Field {
                    column: "flags",
                    want: "RWBS letters, such as WS, FWFS or RA".into(),
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
                        want: "RWBS letters, such as WS, FWFS or RA".into(),
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
        assert_eq!(parse("ZRA"), (Kind::OtherZone, false, false, false));
        assert_eq!(parse("ZAFS"), (Kind::Zone(Op::ZoneAppend), false, true, false));
        assert_eq!(parse("ZR"), (Kind::Zone(Op::Zone(ZoneAction::Reset)), false, false, false));
        assert_eq!(parse("WSQ"), (Kind::Write, false, false, true));
        for garbled in ["", "w", "W-", "7", "W1"] {
            assert!(Rwbs::parse(garbled.as_bytes()).is_err(), "{garbled}");
        }
    }
}
