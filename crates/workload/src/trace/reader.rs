//! Opening a trace and handing out its requests in time order.
//!
//! **What lives here**: [`open`], [`Reader`], the window in which late records are sorted. **What
//! doesn't**: parsing (`read`), what is done with requests.
//!
//! **Invariants**
//! - Times handed out never run backwards, and the first is zero.
//! - Records of the same time keep the file's order.
//! - After an error there is nothing more; everything before the error was handed out.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use leyden_sim::Time;

use crate::{ClassNames, Request};

use super::classes::Classes;
use super::context::{Context, ReadCounts};
use super::error::{ErrorKind, TraceError};
use super::input::{Input, Position};
use super::read::compact::Declared;
use super::read::options::OpenOptions;
use super::read::registry::SNIFF_BYTES;
use super::read::{Format, Source};

/// Requests that are parsed at a time when nothing needs to be sorted.
const BATCH: usize = 4096;

/// The requests of a trace, in time order, streamed.
pub struct Reader {
    path: PathBuf,
    format: Format,
    source: Box<dyn Source + Send>,
    context: Context,
    window: usize,
    position: Position,
    /// Parsed requests with absolute times, `next..ready` of them in order and to be handed out,
    /// those behind kept back to be sorted with what follows.
    buffer: Vec<Request>,
    next: usize,
    ready: usize,
    /// Time of the first request.
    base: Option<Time>,
    state: State,
}

enum State {
    Reading,
    /// The file ended, well or not; `Some` is still to be reported.
    Ended(Option<TraceError>),
}

/// Opens the trace at `path`.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Reader, TraceError> {
    let file = File::open(path).map_err(|e| TraceError::file(path, ErrorKind::Read(e)))?;
    Reader::new(path, Box::new(file), options)
}

impl Reader {
    /// Reads a trace from anything; `name` stands for a path in errors.
    pub fn new(
        name: &Path,
        bytes: Box<dyn Read + Send>,
        options: &OpenOptions,
    ) -> Result<Self, TraceError> {
        let position = Position::default();
        let begin = || -> Result<_, ErrorKind> {
            let mut input = Input::new(bytes, position.clone())?;
            input.hold(SNIFF_BYTES)?;
            let format = match options.format {
                Some(format) => format,
                None if options.columns.is_some() => Format::Columns,
                None => Format::sniff(input.window(), options.skip_lines)?,
            };
            Ok((format, format.open(options, input)?))
        };
        let (format, source) = begin().map_err(|kind| TraceError::file(name, kind))?;
        // A source sorted by construction needs no window.
        let window = if source.is_sorted() { 0 } else { options.unsorted.window() };
        let mut reader = Self {
            path: name.to_owned(),
            format,
            source,
            context: Context::new(
                options.devices.clone(),
                window,
                options.classes.clone(),
                &options.without,
            ),
            window,
            position,
            buffer: Vec::new(),
            next: 0,
            ready: 0,
            base: None,
            state: State::Reading,
        };
        reader.source.header().map_err(|error| error.in_file(name))?;
        Ok(reader)
    }

    /// The file, or what it was said to be called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format that was given or told.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The names of the classes of what was read so far.
    pub fn classes(&self) -> &ClassNames {
        self.context.classes.names()
    }

    /// Names classes as `classes` does, with which another reader names its own.
    ///
    /// # Panics
    /// If anything was read already: it bears names of its own.
    pub(super) fn name_classes_by(&mut self, classes: &ClassNames) {
        assert!(self.buffer.is_empty() && self.base.is_none(), "classes were named already");
        self.context.classes = Classes::new(classes.clone());
    }

    /// The counters so far, beside the requests themselves.
    pub fn counts(&self) -> &ReadCounts {
        &self.context.counts
    }

    /// Warnings about the requests read so far, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        self.context.warnings()
    }

    /// The header's declaration of the whole file (compact traces only, and not all of them).
    pub fn declared(&self) -> Option<Declared> {
        self.source.declared()
    }

    /// A handle that tells how far the file was read, for progress.
    pub fn position(&self) -> Position {
        self.position.clone()
    }

    /// The first request's time in the file's own clock, once it was handed out: what to add to
    /// the times handed out to compare them with another file of the same capture.
    pub fn base(&self) -> Option<Time> {
        self.base
    }

    /// Makes more requests ready; false if there is none.
    #[cold]
    fn refill(&mut self) -> bool {
        if matches!(self.state, State::Ended(_)) {
            return false;
        }
        self.buffer.drain(..self.ready);
        (self.next, self.ready) = (0, 0);
        let limit = self.window.saturating_mul(2).max(BATCH);
        match self.source.fill(&mut self.context, &mut self.buffer, limit) {
            Ok(true) => {}
            Ok(false) => self.state = State::Ended(None),
            Err(error) => self.state = State::Ended(Some(error.in_file(&self.path))),
        }
        if std::mem::take(&mut self.context.disordered) {
            self.buffer.sort_by_key(|request| request.at);
        }
        self.ready = match self.state {
            State::Reading => self.buffer.len() - self.window,
            State::Ended(_) => self.buffer.len(),
        };
        if let Some(last) = self.buffer[..self.ready].last() {
            self.context.floor = last.at;
        }
        self.context.counts.requests += self.ready as u64;
        if self.base.is_none() {
            self.base = self.buffer[..self.ready].first().map(|first| first.at);
            if self.base.is_none() && matches!(self.state, State::Ended(None)) {
                let skipped = self.context.counts.skipped();
                let remedy = self.context.remedy_if_empty();
                let error = TraceError::file(&self.path, ErrorKind::Empty { skipped, remedy });
                self.state = State::Ended(Some(error));
            }
        }
        self.ready > 0
    }

    #[cold]
    fn next_batch(&mut self) -> Option<Result<Request, TraceError>> {
        if self.refill() {
            return self.next();
        }
        match &mut self.state {
            State::Ended(error) => error.take().map(Err),
            State::Reading => None,
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Request, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.ready {
            return self.next_batch();
        }
        let mut request = self.buffer[self.next];
        self.next += 1;
        let base = self.base.unwrap_or(Time::ZERO);
        request.at = Time::from_ns(request.at.as_ns() - base.as_ns());
        Some(Ok(request))
    }
}
