//! Where a trace is: on disk, or in this program.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use leyden_workload::trace::{self, OpenOptions, Reader, TraceError};

use super::bundled;

/// Where a trace is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceSource {
    /// On disk; the path is relative to the current folder.
    Disk(PathBuf),
    /// In this program.
    Bundled {
        /// Its path below `scenarios/`.
        name: &'static str,
        /// Its contents.
        bytes: &'static [u8],
        /// Length and SHA-256 of the file in the repository, if its bytes are others of the same meaning.
        origin: Option<&'static str>,
    },
}

impl Default for TraceSource {
    fn default() -> Self {
        Self::Disk(PathBuf::new())
    }
}

impl TraceSource {
    /// Where it is, for a file that is read in the current folder.
    pub fn place(&self) -> String {
        match self {
            Self::Disk(file) => file.display().to_string(),
            Self::Bundled { name, .. } => (*name).to_owned(),
        }
    }

    pub(super) const fn bundled(trace: bundled::Trace) -> Self {
        let bundled::Trace { name, bytes, origin } = trace;
        Self::Bundled { name, bytes, origin }
    }

    /// The file that a user calls `path`, or the bundled trace that is called so if there is no such file.
    pub fn called(path: &Path) -> Self {
        let bundled = || path.to_str().and_then(bundled::trace);
        match if path.exists() { None } else { bundled() } {
            Some(trace) => Self::bundled(trace),
            None => Self::Disk(path.to_owned()),
        }
    }

    /// All of its bytes, as they are there.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn bytes(&self) -> std::io::Result<Cow<'static, [u8]>> {
        Ok(match self {
            Self::Disk(path) => std::fs::read(path)?.into(),
            Self::Bundled { bytes, .. } => Cow::Borrowed(bytes),
        })
    }

    /// Opens it; `name` is what messages call it.
    pub fn open(&self, name: &str, options: &OpenOptions) -> Result<Reader, TraceError> {
        match self {
            Self::Disk(path) => trace::open(path, options),
            Self::Bundled { bytes, .. } => Reader::new(Path::new(name), Box::new(*bytes), options),
        }
    }
}
