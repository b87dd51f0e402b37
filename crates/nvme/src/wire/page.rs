//! A page of data that is filled field by field, at the offsets that the specification gives.

/// See the module. Bytes that are not set are zero.
#[derive(Clone, Debug)]
pub struct Page(Vec<u8>);

impl Page {
    /// A page of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    /// Bytes of it.
    pub const fn size(&self) -> usize {
        self.0.len()
    }

    /// Puts `field` there.
    ///
    /// # Panics
    /// If it is not in the page.
    pub fn bytes(&mut self, at: usize, field: &[u8]) -> &mut Self {
        self.0[at..at + field.len()].copy_from_slice(field);
        self
    }
    /// A byte.
    pub fn u8(&mut self, at: usize, value: u8) -> &mut Self {
        self.bytes(at, &[value])
    }
    /// A word.
    pub fn u16(&mut self, at: usize, value: u16) -> &mut Self {
        self.bytes(at, &value.to_le_bytes())
    }
    /// A double word.
    pub fn u32(&mut self, at: usize, value: u32) -> &mut Self {
        self.bytes(at, &value.to_le_bytes())
    }
    /// A quadword.
    pub fn u64(&mut self, at: usize, value: u64) -> &mut Self {
        self.bytes(at, &value.to_le_bytes())
    }
    /// Sixteen bytes.
    pub fn u128(&mut self, at: usize, value: u128) -> &mut Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// Text of so many bytes, padded with spaces, cut if it is longer.
    pub fn text(&mut self, at: usize, bytes: usize, text: &str) -> &mut Self {
        let mut field = vec![b' '; bytes];
        for (place, byte) in field.iter_mut().zip(text.bytes()) {
            *place = if byte.is_ascii_graphic() || byte == b' ' { byte } else { b'?' };
        }
        self.bytes(at, &field)
    }

    /// The page's bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// So many bytes of it from `offset` on; beyond its end they are zero.
    pub fn part(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let to = from.saturating_add(bytes).min(self.0.len());
        let mut part = self.0[from..to].to_vec();
        part.resize(bytes, 0);
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_beyond_the_end_is_zero() {
        let mut page = Page::new(16);
        page.u32(4, 0x0403_0201).text(8, 4, "a\tlonger one");
        assert_eq!(page.part(4, 12), [1, 2, 3, 4, b'a', b'?', b'l', b'o', 0, 0, 0, 0]);
        assert_eq!(page.part(14, 4), [0; 4]);
        assert_eq!(page.part(u64::MAX, 2), [0; 2]);
    }
}
