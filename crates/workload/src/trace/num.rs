//! Numbers and columns out of bytes, without allocating.
//!
//! **What lives here**: the few lexical rules that all text formats share. **What doesn't**: what
//! the columns mean.
//!
//! **Invariants**: no sign, no exponent, no `NaN`, no surrounding blanks: what isn't plain decimal
//! digits is refused, and so is what doesn't fit.

use super::error::ErrorKind;

/// Nanoseconds of a microsecond and of a second as powers of ten.
pub(crate) const US_DIGITS: usize = 3;
/// See [`US_DIGITS`].
pub(crate) const S_DIGITS: usize = 9;

/// The reason why digits are no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotNumber {
    Garbled,
    TooLarge,
}

impl NotNumber {
    pub(crate) fn of(self, column: &'static str, want: &'static str) -> ErrorKind {
        match self {
            Self::Garbled => ErrorKind::Field { column, want: want.into() },
            Self::TooLarge => ErrorKind::Overflow { column },
        }
    }
}

/// An unsigned decimal number, and nothing else.
#[inline]
pub(crate) fn decimal(text: &[u8]) -> Result<u64, NotNumber> {
    if text.is_empty() {
        return Err(NotNumber::Garbled);
    }
    // 19 digits always fit; what is longer goes the slow way.
    if text.len() > 19 {
        return long_decimal(text);
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(NotNumber::Garbled);
        }
        value = value * 10 + u64::from(digit);
    }
    Ok(value)
}

#[cold]
fn long_decimal(text: &[u8]) -> Result<u64, NotNumber> {
    if !text.iter().all(u8::is_ascii_digit) {
        return Err(NotNumber::Garbled);
    }
    text.iter()
        .try_fold(0u64, |value, byte| value.checked_mul(10)?.checked_add(u64::from(byte - b'0')))
        .ok_or(NotNumber::TooLarge)
}

/// A decimal number with an optional fraction, in units of `10^digits` ns, as nanoseconds. Finer
/// than a nanosecond is refused unless it is zeroes.
#[inline]
pub(crate) fn decimal_ns(text: &[u8], digits: usize) -> Result<u64, NotNumber> {
    let scale = 10u64.pow(digits as u32);
    let dot = text.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match dot {
        None => (text, &[][..]),
        Some(dot) => (&text[..dot], &text[dot + 1..]),
    };
    if dot.is_some() && fraction.is_empty() {
        return Err(NotNumber::Garbled);
    }
    let (fine, finer) = fraction.split_at(fraction.len().min(digits));
    if !finer.iter().all(|&byte| byte == b'0') {
        return Err(NotNumber::Garbled);
    }
    let mut ns = if fine.is_empty() { 0 } else { decimal(fine)? };
    for _ in fine.len()..digits {
        ns *= 10;
    }
    decimal(whole)?
        .checked_mul(scale)
        .and_then(|whole_ns| whole_ns.checked_add(ns))
        .ok_or(NotNumber::TooLarge)
}

/// Splits `line` at `separator` into `columns` and returns how many there are; those beyond the
/// room of `columns` are counted, not kept.
#[inline]
pub(crate) fn split<'a, const N: usize>(
    line: &'a [u8],
    separator: u8,
    columns: &mut [&'a [u8]; N],
) -> usize {
    let mut count = 0;
    let mut begin = 0;
    for (at, &byte) in line.iter().enumerate() {
        if byte == separator {
            if count < N {
                columns[count] = &line[begin..at];
            }
            count += 1;
            begin = at + 1;
        }
    }
    if count < N {
        columns[count] = &line[begin..];
    }
    count + 1
}

/// The words of a line, separated by blanks and tabs.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty())
}

/// Appends `value` in decimal.
pub(crate) fn push_decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `ns` in units of `10^digits` ns with exactly `digits` decimals.
pub(crate) fn push_decimal_ns(out: &mut Vec<u8>, ns: u64, digits: usize) {
    let scale = 10u64.pow(digits as u32);
    push_decimal(out, ns / scale);
    out.push(b'.');
    let mut place = scale;
    for _ in 0..digits {
        place /= 10;
        out.push(b'0' + (ns / place % 10) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_digits_are_numbers() {
        assert_eq!(decimal(b"0"), Ok(0));
        assert_eq!(decimal(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(decimal(b"18446744073709551616"), Err(NotNumber::TooLarge));
        for garbled in ["", "-1", "+1", " 1", "1 ", "1e3", "NaN", "0x10", "1.5"] {
            assert_eq!(decimal(garbled.as_bytes()), Err(NotNumber::Garbled), "{garbled}");
        }
    }

    #[test]
    fn fractions_become_nanoseconds() {
        assert_eq!(decimal_ns(b"12", US_DIGITS), Ok(12_000));
        assert_eq!(decimal_ns(b"12.5", US_DIGITS), Ok(12_500));
        assert_eq!(decimal_ns(b"1.000000001", S_DIGITS), Ok(1_000_000_001));
        assert_eq!(decimal_ns(b"1.00000000100", S_DIGITS), Ok(1_000_000_001));
        assert_eq!(decimal_ns(b"1.0000000015", S_DIGITS), Err(NotNumber::Garbled));
        assert_eq!(decimal_ns(b"1.", S_DIGITS), Err(NotNumber::Garbled));
        assert_eq!(decimal_ns(b".5", S_DIGITS), Err(NotNumber::Garbled));
        assert_eq!(decimal_ns(b"99999999999999999999", S_DIGITS), Err(NotNumber::TooLarge));
        assert_eq!(decimal_ns(b"18446744073709551615", US_DIGITS), Err(NotNumber::TooLarge));
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for value in [0, 7, 10, 999, 1_000, u64::MAX] {
            let mut text = Vec::new();
            push_decimal(&mut text, value);
            assert_eq!(decimal(&text), Ok(value));
            text.clear();
            push_decimal_ns(&mut text, value, S_DIGITS);
            assert_eq!(decimal_ns(&text, S_DIGITS), Ok(value));
        }
    }

    #[test]
    fn surplus_columns_are_counted() {
        let mut columns = [&[][..]; 2];
        assert_eq!(split(b"a,,c", b',', &mut columns), 3);
        assert_eq!(columns, [&b"a"[..], b""]);
    }
}
