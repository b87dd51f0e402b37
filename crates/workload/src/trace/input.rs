//! Bytes of a file, decompressed, through one buffer of fixed size.
//!
//! **What lives here**: gzip and zstd by their magic bytes, the window over the stream, lines.
//! **What doesn't**: formats.
//!
//! **Invariants**
//! - Memory doesn't depend on the file: one buffer, plus what a decompressor keeps.
//! - A line longer than [`MAX_LINE_BYTES`] is an error before it is held whole.
//! - A compressed stream that ends early, or is followed by something else than zeroes, is an error.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::ErrorKind;

/// Longest line of text that is taken, in bytes.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 10;
/// How much of a compressed stream is read on behind an error, to tell whether the stream is to blame.
const CHECKED_BYTES: u64 = 1 << 30;
/// Size of the window over the decompressed stream, in bytes.
const BUFFER_BYTES: usize = 256 << 10;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The text of zstd's error if no frame begins where one should.
const NO_FRAME: &str = "Unknown frame descriptor";
const UTF8_BOM: &[u8] = &[0xef, 0xbb, 0xbf];

/// How far a reader has come in its file, in bytes as stored; to be shared with who shows progress.
#[derive(Clone, Debug, Default)]
pub struct Position(Arc<AtomicU64>);

impl Position {
    /// Bytes of the file (compressed, if it is) that were read.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Counted<R> {
    inner: R,
    position: Position,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.position.0.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Something that is no gzip member follows one.
#[derive(Debug, thiserror::Error)]
#[error("other data follows the compressed data")]
struct Tail;

/// The members of a gzip file, one after another. Zeroes behind the last are padding, as to gzip(1).
struct Members<R> {
    /// `None` while a member is exchanged for the next, and behind the last.
    member: Option<flate2::bufread::GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    fn new(inner: R) -> Self {
        Self { member: Some(flate2::bufread::GzDecoder::new(inner)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(mut inner) = self.member.take().map(flate2::bufread::GzDecoder::into_inner)
            else {
                break;
            };
            let mut padding = false;
            loop {
                let next = inner.fill_buf()?;
                match next.first() {
                    None => break,
                    Some(0) => {
                        let zeroes = next.iter().take_while(|&&byte| byte == 0).count();
                        inner.consume(zeroes);
                        padding = true;
                    }
                    Some(&first) if first == GZIP_MAGIC[0] && !padding => {
                        self.member = Some(flate2::bufread::GzDecoder::new(inner));
                        break;
                    }
                    Some(_) => return Err(io::Error::other(Tail)),
                }
            }
        }
        Ok(0)
    }
}

/// A window over the decompressed bytes of a file.
pub(crate) struct Input {
    source: Box<dyn Read + Send>,
    is_compressed: bool,
    buffer: Box<[u8]>,
    begin: usize,
    end: usize,
    ended: bool,
    /// Offset of `begin` in the decompressed stream.
    offset: u64,
}

impl Input {
    /// Takes the raw bytes of a file and finds out how they are compressed.
    pub(crate) fn new(file: Box<dyn Read + Send>, position: Position) -> Result<Self, ErrorKind> {
        let mut file = Counted { inner: file, position };
        let mut magic = Vec::new();
        (&mut file)
            .take(ZSTD_MAGIC.len() as u64)
            .read_to_end(&mut magic)
            .map_err(ErrorKind::Read)?;
        let (gzip, zstd) = (magic.starts_with(GZIP_MAGIC), magic.starts_with(ZSTD_MAGIC));
        let whole = Cursor::new(magic).chain(file);
        let source: Box<dyn Read + Send> = if gzip {
            Box::new(Members::new(BufReader::with_capacity(BUFFER_BYTES, whole)))
        } else if zstd {
            Box::new(zstd::stream::read::Decoder::new(whole).map_err(ErrorKind::Read)?)
        } else {
            Box::new(whole)
        };
        Ok(Self {
            source,
            is_compressed: gzip || zstd,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            begin: 0,
            end: 0,
            ended: false,
            offset: 0,
        })
    }

    /// The bytes in the window.
    #[inline]
    pub(crate) fn window(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Offset of the window's first byte in the decompressed stream.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The fault behind a parser's error of the reason `kind`: that, or a damaged compressed
    /// stream, whose checksums come only further on.
    #[cold]
    pub(crate) fn cause(&mut self, kind: ErrorKind) -> ErrorKind {
        let mut left = if self.is_compressed { CHECKED_BYTES } else { 0 };
        while left > 0 {
            self.begin = self.end;
            match self.more() {
                Ok(true) => left = left.saturating_sub((self.end - self.begin) as u64),
                Ok(false) => break,
                Err(damage) => return damage,
            }
        }
        kind
    }

    /// Whether a decompressor failed at what follows a whole stream.
    fn is_trailing(&self, error: &io::Error) -> bool {
        let is_tail =
            error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Tail>);
        // zstd has no kind for it: where a frame belongs, something else begins.
        is_tail || self.offset + self.end as u64 > 0 && error.to_string().starts_with(NO_FRAME)
    }

    /// Moves the window forward.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.begin);
        self.begin += count;
        self.offset += count as u64;
    }

    /// Reads until the window holds `count` bytes; false if the stream ends first.
    pub(crate) fn hold(&mut self, count: usize) -> Result<bool, ErrorKind> {
        debug_assert!(count <= BUFFER_BYTES);
        while self.end - self.begin < count {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads once more into the window; false at the end of the stream.
    fn more(&mut self) -> Result<bool, ErrorKind> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(ErrorKind::Truncated("its compressed data"));
                }
                Err(error) if self.is_trailing(&error) => return Err(ErrorKind::Trailing),
                Err(error) => return Err(ErrorKind::Read(error)),
            }
        }
    }
}

/// The lines of a text.
pub(crate) struct Lines {
    input: Input,
    /// Number of the line handed out last, counted from 1.
    number: u64,
    /// Whether the text ended without a line feed.
    unterminated: bool,
}

impl Lines {
    pub(crate) fn new(mut input: Input) -> Result<Self, ErrorKind> {
        if input.hold(UTF8_BOM.len())? && input.window().starts_with(UTF8_BOM) {
            input.consume(UTF8_BOM.len());
        }
        Ok(Self { input, number: 0, unterminated: false })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// See [`Input::cause`].
    pub(crate) fn cause(&mut self, kind: ErrorKind) -> ErrorKind {
        self.input.cause(kind)
    }

    pub(crate) fn unterminated(&self) -> bool {
        self.unterminated
    }

    /// The next line, without its line feed (and carriage return).
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, ErrorKind> {
        let found = memchr::memchr(b'\n', self.input.window());
        let (length, step) = match found {
            Some(length) => (length, length + 1),
            None => match self.find_end()? {
                None => return Ok(None),
                Some(found) => found,
            },
        };
        self.number += 1;
        if length > MAX_LINE_BYTES {
            return Err(too_long());
        }
        let begin = self.input.begin;
        self.input.consume(step);
        let line = &self.input.buffer[begin..begin + length];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// The end of a line that the window doesn't hold yet: its length, and with its line feed.
    #[cold]
    fn find_end(&mut self) -> Result<Option<(usize, usize)>, ErrorKind> {
        loop {
            let searched = self.input.window().len();
            if searched > MAX_LINE_BYTES {
                self.number += 1;
                return Err(too_long());
            }
            if !self.input.more()? {
                self.unterminated |= searched > 0;
                return Ok((searched > 0).then_some((searched, searched)));
            }
            if let Some(at) = memchr::memchr(b'\n', &self.input.window()[searched..]) {
                return Ok(Some((searched + at, searched + at + 1)));
            }
        }
    }
}

fn too_long() -> ErrorKind {
    ErrorKind::LineTooLong { limit_bytes: MAX_LINE_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn lines_of(bytes: Vec<u8>) -> Result<Vec<String>, ErrorKind> {
        let input = Input::new(Box::new(Cursor::new(bytes)), Position::default())?;
        let mut lines = Lines::new(input)?;
        let mut all = Vec::new();
        while let Some(line) = lines.next()? {
            all.push(String::from_utf8_lossy(line).into_owned());
        }
        Ok(all)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn lines_end_in_any_of_the_usual_ways() {
        assert_eq!(lines_of(b"\xef\xbb\xbfa\r\nb\n\nc".to_vec()).unwrap(), ["a", "b", "", "c"]);
        assert!(lines_of(Vec::new()).unwrap().is_empty());
    }

    #[test]
    fn concatenated_members_are_one_text() {
        let members = [gzip(b"a\nb"), gzip(b"b\nc\n")].concat();
        assert_eq!(lines_of(members.clone()).unwrap(), ["a", "bb", "c"]);
        let padded = [members, vec![0; 5000]].concat();
        assert_eq!(lines_of(padded).unwrap(), ["a", "bb", "c"]);
        let frames = [
            zstd::encode_all(&b"a\nb"[..], 1).unwrap(),
            zstd::encode_all(&b"b\nc\n"[..], 1).unwrap(),
        ];
        assert_eq!(lines_of(frames.concat()).unwrap(), ["a", "bb", "c"]);
    }

    #[test]
    fn a_compressed_stream_cut_anywhere_is_an_error() {
        let text: Vec<u8> = (0..200u32).flat_map(|i| format!("{}\n", i * i).into_bytes()).collect();
        for whole in [gzip(&text), zstd::encode_all(&text[..], 1).unwrap()] {
            assert!(lines_of(whole.clone()).is_ok());
            for cut in 4..whole.len() {
                assert!(lines_of(whole[..cut].to_vec()).is_err(), "cut at {cut}");
            }
            let trailing = [whole, b"junk".to_vec()].concat();
            assert!(matches!(lines_of(trailing).unwrap_err(), ErrorKind::Trailing));
        }
    }

    #[test]
    fn endless_lines_are_refused_and_long_ones_taken() {
        let fits = vec![b'x'; MAX_LINE_BYTES];
        assert_eq!(lines_of(fits.clone()).unwrap().len(), 1);
        for tail in [&b"x"[..], b"x\n"] {
            let error = lines_of([&fits[..], tail].concat()).unwrap_err();
            assert!(matches!(error, ErrorKind::LineTooLong { .. }));
        }
        let bomb = zstd::encode_all(&vec![b'0'; 1 << 24][..], 19).unwrap();
        assert!(bomb.len() < 4096);
        assert!(matches!(lines_of(bomb).unwrap_err(), ErrorKind::LineTooLong { .. }));
    }
}
