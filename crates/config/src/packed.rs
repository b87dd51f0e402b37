//! Tables of text column by column: what is alike lies together, and compresses better than lines do.
//!
//! Also part of the build script, which packs; so nothing of the crate is used here.

use std::fmt::Write as _;

/// The byte that ends a column.
const END: u8 = 0;

/// A table with a header, in which the first column holds ascending numbers mostly; nothing if the text is no such table, or would not
/// come back to the byte.
pub(super) fn pack(text: &[u8]) -> Option<Vec<u8>> {
    let (head, body) = std::str::from_utf8(text).ok()?.split_once('\n')?;
    let width = head.split(',').count();
    let body = body.strip_suffix('\n')?;
    let mut columns = vec![String::new(); width];
    let mut before = 0;
    for line in body.split('\n') {
        let mut cells = line.split(',');
        let number: i64 = cells.next()?.parse().ok()?;
        writeln!(columns[0], "{}", number.checked_sub(before)?).ok()?;
        before = number;
        for column in &mut columns[1..] {
            *column += cells.next()?;
            column.push('\n');
        }
        if cells.next().is_some() {
            return None;
        }
    }
    let mut packed = head.as_bytes().to_vec();
    for column in columns {
        packed.push(END);
        packed.extend(column.as_bytes());
    }
    (unpack(&packed)? == text).then_some(packed)
}

/// The text that was packed; nothing if it was none.
pub(super) fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut parts = std::str::from_utf8(packed).ok()?.split(char::from(END));
    let head = parts.next()?;
    let mut columns: Vec<_> = parts.map(str::lines).collect();
    let (first, others) = columns.split_first_mut()?;
    let mut text = String::with_capacity(packed.len() * 2);
    text += head;
    text.push('\n');
    let mut number = 0_i64;
    for step in first {
        number = number.checked_add(step.parse().ok()?)?;
        text += &number.to_string();
        for column in &mut *others {
            text.push(',');
            text += column.next()?;
        }
        text.push('\n');
    }
    Some(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_back_to_the_byte_and_nothing_else_is_packed() {
        let table = b"time_us,op,lba\n10,R,88\n14,W,96\n13,W,\n";
        let packed = pack(table).unwrap();
        assert_eq!(packed, b"time_us,op,lba\x0010\n4\n-1\n\x00R\nW\nW\n\x0088\n96\n\n");
        assert_eq!(unpack(&packed).unwrap(), table);
        let others: [&[u8]; 7] = [
            b"a,b\n1,2",          // no end of line
            b"a,b\n01,2\n",       // a number of another form
            b"a,b\n1,2,3\n",      // too wide
            b"a,b\n1\n",          // too narrow
            b"a,b\nx,2\n",        // no number
            b"a,b\n1,\xff\n",     // no text
            b"a,b\n1,2\r\n1,2\n", // lines of two kinds
        ];
        for other in others {
            assert_eq!(pack(other), None, "{:?}", String::from_utf8_lossy(other));
        }
        assert_eq!(unpack(b"a,b\x001\n\x00"), None, "a column that is shorter");
    }
}
