//! Where encoded bytes go: a temporary file that is renamed when complete, a device or pipe, or
//! memory; compressed or not.
//!
//! **What lives here**: durability and compression of output. **What doesn't**: formats.
//!
//! **Invariants**: a sink that is dropped before it is finished leaves no file behind.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::super::error::ErrorKind;
use super::{Compression, WriteOptions};

const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Where the (compressed) bytes end up.
enum Target {
    File(TempFile),
    /// A device or pipe, and what it was given, in bytes.
    Stream(File, u64),
    Memory(Vec<u8>),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(temp) => temp.file.write(bytes),
            Self::Stream(file, sent) => {
                let taken = file.write(bytes)?;
                *sent += taken as u64;
                Ok(taken)
            }
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

/// Takes encoded bytes.
pub(crate) struct Sink {
    coder: Coder,
}

impl Sink {
    pub(crate) fn file(path: &Path, options: &WriteOptions) -> Result<Self, ErrorKind> {
        if !options.overwrite && path.exists() {
            return Err(ErrorKind::Exists);
        }
        // A rename would put a file in the place of a device, or of a link to somewhere else.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let target = match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                return Err(ErrorKind::Write(io::ErrorKind::IsADirectory.into()));
            }
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(&path).map_err(ErrorKind::Write)?;
                Target::Stream(file, 0)
            }
            _ => Target::File(TempFile::create(&path, options.overwrite)?),
        };
        Self::new(target, options.compression)
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
                // A stream's header stays as it is: what it counts is not known.
                (None, _) | (_, Target::Stream(..)) => Ok(target),
                (Some(header), Target::Memory(memory)) => {
                    memory[..header.len()].copy_from_slice(header);
                    Ok(target)
                }
                (Some(header), Target::File(temp)) => temp.replace_head(header).map(|()| target),
            },
            Coder::Gzip(encoder) => encoder.finish(),
            Coder::Zstd(encoder) => encoder.finish(),
        };
        ended.map_err(ErrorKind::Write)
    }

    /// Completes the file and returns its size in bytes.
    pub(crate) fn finish(self, header: Option<&[u8]>) -> Result<u64, ErrorKind> {
        match self.end(header)? {
            Target::File(temp) => temp.persist(),
            Target::Stream(_, sent) => Ok(sent),
            Target::Memory(memory) => Ok(memory.len() as u64),
        }
    }

    /// Completes a sink in memory; one in a file yields nothing and leaves nothing.
    pub(crate) fn into_bytes(self, header: Option<&[u8]>) -> Result<Vec<u8>, ErrorKind> {
        match self.end(header)? {
            Target::Memory(memory) => Ok(memory),
            Target::File(_) | Target::Stream(..) => Ok(Vec::new()),
        }
    }
}

/// A file beside the one it will become, removed if it doesn't.
struct TempFile {
    file: NamedTempFile,
    becomes: PathBuf,
    overwrite: bool,
}

impl TempFile {
    fn create(becomes: &Path, overwrite: bool) -> Result<Self, ErrorKind> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".leyden-trace-");
        // As any new file, not for the owner's eyes only, as is the way of temporary ones.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder(becomes)).map_err(ErrorKind::Write)?;
        Ok(Self { file, becomes: becomes.to_owned(), overwrite })
    }

    fn replace_head(&mut self, header: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(header)
    }

    /// Makes the bytes durable, then the name: after a crash there is the whole file or none.
    fn persist(self) -> Result<u64, ErrorKind> {
        let file = self.file.as_file();
        file.sync_all().map_err(ErrorKind::Write)?;
        let bytes = file.metadata().map_err(ErrorKind::Write)?.len();
        let persisted = if self.overwrite {
            self.file.persist(&self.becomes)
        } else {
            self.file.persist_noclobber(&self.becomes)
        };
        persisted.map_err(|failed| match failed.error.kind() {
            io::ErrorKind::AlreadyExists => ErrorKind::Exists,
            _ => ErrorKind::Write(failed.error),
        })?;
        // Not every system can open a folder; the file itself is safe either way.
        if let Ok(folder) = File::open(folder(&self.becomes)) {
            let _ = folder.sync_all();
        }
        Ok(bytes)
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
