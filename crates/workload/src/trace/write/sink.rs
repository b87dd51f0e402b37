//! Where encoded bytes go: a file that appears when it is complete, a device or pipe, or memory;
//! compressed or not.
//!
//! **What lives here**: compression of output. **What doesn't**: formats, and how a file appears whole
//! ([`leyden_files`]).
//!
//! **Invariants**: a sink that is dropped before it is finished leaves no file behind.

use std::io::{self, Write};
use std::path::Path;

use leyden_files::{NewFile, WriteError};

use super::super::error::ErrorKind;
use super::{Compression, WriteOptions};

const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Where the (compressed) bytes end up.
enum Target {
    File(NewFile),
    Memory(Vec<u8>),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Memory(memory) => memory.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Coder {
    Plain(Target),
    Gzip(flate2::write::GzEncoder<Target>),
    Zstd(zstd::stream::write::Encoder<'static, Target>),
}

impl From<WriteError> for ErrorKind {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Exists { .. } => Self::Exists,
            WriteError::Io { source, .. } => Self::Write(source),
        }
    }
}

/// Takes encoded bytes.
pub(crate) struct Sink {
    coder: Coder,
}

impl Sink {
    pub(crate) fn file(path: &Path, options: &WriteOptions) -> Result<Self, ErrorKind> {
        let file =
            if options.overwrite { NewFile::create(path) } else { NewFile::create_new(path) }?;
        Self::new(Target::File(file), options.compression)
    }

    pub(crate) fn memory(options: &WriteOptions) -> Result<Self, ErrorKind> {
        Self::new(Target::Memory(Vec::new()), options.compression)
    }

    fn new(target: Target, compression: Compression) -> Result<Self, ErrorKind> {
        let coder = match compression {
            Compression::None => Coder::Plain(target),
            Compression::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Coder::Gzip(flate2::write::GzEncoder::new(target, level))
            }
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(target, ZSTD_LEVEL)
                    .map_err(ErrorKind::Write)?;
                encoder.include_checksum(true).map_err(ErrorKind::Write)?;
                Coder::Zstd(encoder)
            }
        };
        Ok(Self { coder })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        match &mut self.coder {
            Coder::Plain(target) => target.write_all(bytes),
            Coder::Gzip(encoder) => encoder.write_all(bytes),
            Coder::Zstd(encoder) => encoder.write_all(bytes),
        }
        .map_err(ErrorKind::Write)
    }

    /// Ends the stream; the header replaces the first bytes unless they are compressed already.
    fn end(self, header: Option<&[u8]>) -> Result<Target, ErrorKind> {
        let ended = match self.coder {
            Coder::Plain(mut target) => match (header, &mut target) {
                (None, _) => Ok(target),
                (Some(header), Target::Memory(memory)) => {
                    memory[..header.len()].copy_from_slice(header);
                    Ok(target)
                }
                // A stream's header stays as it is: what it counts is not known.
                (Some(header), Target::File(file)) => file.rewrite_head(header).map(|()| target),
            },
            Coder::Gzip(encoder) => encoder.finish(),
            Coder::Zstd(encoder) => encoder.finish(),
        };
        ended.map_err(ErrorKind::Write)
    }

    /// Completes the file and returns its size in bytes.
    pub(crate) fn finish(self, header: Option<&[u8]>) -> Result<u64, ErrorKind> {
        match self.end(header)? {
            Target::File(file) => Ok(file.commit()?),
            Target::Memory(memory) => Ok(memory.len() as u64),
        }
    }

    /// Completes a sink in memory; one in a file yields nothing and leaves nothing.
    pub(crate) fn into_bytes(self, header: Option<&[u8]>) -> Result<Vec<u8>, ErrorKind> {
        match self.end(header)? {
            Target::Memory(memory) => Ok(memory),
            Target::File(_) => Ok(Vec::new()),
        }
    }
}
