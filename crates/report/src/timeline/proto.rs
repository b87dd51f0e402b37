//! Messages of Protocol Buffers, as far as a trace needs them: numbers, texts, and messages within messages.

/// A message on its way: fields one after another.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

/// How a field is stored.
const VARINT: u32 = 0;
const FIXED: u32 = 1;
const BYTES: u32 = 2;

impl Message {
    /// A whole number, in seven bits a byte.
    #[must_use]
    pub(super) fn number(mut self, field: u32, value: u64) -> Self {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// A number of eight bytes.
    #[must_use]
    pub(super) fn fixed(mut self, field: u32, value: u64) -> Self {
        self.key(field, FIXED);
        self.0.extend(value.to_le_bytes());
        self
    }

    #[must_use]
    pub(super) fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    #[must_use]
    pub(super) fn message(self, field: u32, inner: &Self) -> Self {
        self.bytes(field, &inner.0)
    }

    pub(super) fn finished(self) -> Vec<u8> {
        self.0
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.key(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn key(&mut self, field: u32, stored: u32) {
        self.varint(u64::from(field << 3 | stored));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that the encoding's own documentation shows: field 1 of 150, field 2 of "testing", and field 3 of the
    /// first message.
    #[test]
    fn messages_are_those_of_the_documentation() {
        let one = || Message::default().number(1, 150);
        assert_eq!(one().finished(), [0x08, 0x96, 0x01]);
        let text = Message::default().text(2, "testing").finished();
        assert_eq!(text, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        assert_eq!(
            Message::default().message(3, &one()).finished(),
            [0x1a, 0x03, 0x08, 0x96, 0x01]
        );
        let fixed = Message::default().fixed(47, 258).finished();
        assert_eq!(fixed, [0xf9, 0x02, 2, 1, 0, 0, 0, 0, 0, 0]);
    }
}
