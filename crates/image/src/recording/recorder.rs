//! The writer of recordings.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use leyden_device::Lba;
use leyden_sim::Time;
use sha2::{Digest as _, Sha256};

use super::format::{Head, MARK_MOST, Record, Step, head};
use super::frames::{FRAME_MOST, pack};
use crate::content::whole_units;
use crate::log::Event;

/// Records gathered before they are packed and written.
const FRAME_BYTES: usize = 256 << 10;
/// Pieces of the drive's state.
const PIECE_BYTES: usize = 128 << 10;

/// The state of a recording that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Bytes in its file.
    pub bytes: u64,
    /// It could not be written, and has ended before the drive.
    pub has_failed: bool,
}

/// A recording that is being written.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: File,
    unit_bytes: u32,
    /// Records that are not in the file yet.
    frame: Vec<u8>,
    /// The numbers of bytes that were recorded, by their checksum.
    contents: BTreeMap<[u8; 32], u32>,
    /// The first error: nothing is recorded after it.
    failed: Option<io::Error>,
}

impl Recorder {
    /// A new recording; a file that exists is left alone. What is at rest in the drive must follow:
    /// its state, then the bytes of its units.
    pub(crate) fn create(path: &Path, head_json: &Head) -> io::Result<Self> {
        // It holds all that is written: it is as secret as the drive.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(&head())?;
        let mut recorder = Self {
            file,
            unit_bytes: head_json.unit_bytes,
            frame: Vec::new(),
            contents: BTreeMap::new(),
            failed: None,
        };
        recorder.note(&Record::Head(serde_json::to_vec(head_json)?));
        Ok(recorder)
    }

    /// The bytes of a unit of the drive at rest.
    pub(crate) fn base_unit(&mut self, unit: u32, bytes: &[u8]) {
        let content = self.content(bytes);
        self.note(&Record::BaseUnit(unit, content));
    }

    /// Something happens to the drive; `data` are a write's bytes.
    pub(crate) fn event(&mut self, time: Time, event: &Event, data: &[u8]) {
        let step = match event {
            Event::Read(lba, sectors) => Step::Read(*lba, *sectors),
            Event::Write { lba, sectors, flags, .. } => {
                Step::Write(*lba, *sectors, *flags, self.units(*lba, data))
            }
            Event::Append { lba, sectors, flags, .. } => {
                Step::Append(*lba, *sectors, *flags, self.units(*lba, data))
            }
            Event::Zone(ask) => Step::Zone(*ask),
            Event::ZoneReport(lba, most) => Step::ZoneReport(*lba, *most),
            Event::Flush => Step::Flush,
            Event::Trim(lba, sectors) => Step::Trim(*lba, *sectors),
            Event::WritePrepare(ranges) => Step::WritePrepare(ranges.clone()),
            Event::WriteZeroes(lba, sectors, fua) => Step::WriteZeroes(*lba, *sectors, *fua),
            Event::Cut => Step::Cut,
            Event::Restore(bank) => Step::Restore(*bank),
            Event::Remount | Event::Journal { .. } => {
                unreachable!("a block device on two drives is not recorded")
            }
        };
        self.note(&Record::Step(time, step));
    }

    /// The host's note; of a long one its beginning.
    pub(crate) fn mark(&mut self, time: Time, text: &[u8]) {
        let text = text[..text.len().min(MARK_MOST)].to_vec();
        self.note(&Record::Step(time, Step::Mark(text)));
    }

    /// The numbers of the bytes of each mapping unit that a write touches.
    fn units(&mut self, lba: Lba, data: &[u8]) -> Vec<u32> {
        let unit_bytes = self.unit_bytes as usize;
        let units = whole_units(lba, data, self.unit_bytes);
        units.chunks_exact(unit_bytes).map(|unit| self.content(unit)).collect()
    }

    /// The number of these bytes: they are kept once.
    fn content(&mut self, bytes: &[u8]) -> u32 {
        let key: [u8; 32] = Sha256::digest(bytes).into();
        let next = self.contents.len() as u32;
        let content = *self.contents.entry(key).or_insert(next);
        if content == next {
            self.note(&Record::Content(bytes.to_vec()));
        }
        content
    }

    fn note(&mut self, record: &Record) {
        if self.failed.is_some() {
            return;
        }
        record.encode(&mut self.frame);
        debug_assert!(self.frame.len() <= FRAME_MOST);
        if self.frame.len() >= FRAME_BYTES {
            self.write_frame();
        }
    }

    fn write_frame(&mut self) {
        let frame = std::mem::take(&mut self.frame);
        let written = pack(&frame).and_then(|packed| self.file.write_all(&packed));
        self.frame = frame;
        self.frame.clear();
        self.failed = self.failed.take().or(written.err());
    }

    /// Writes what is gathered: a kill from now on loses nothing before it. `digest` is the drive's at
    /// `time`, to which it has come.
    pub(crate) fn settle(&mut self, time: Time, digest: u64) {
        if !self.frame.is_empty() {
            self.note(&Record::Step(time, Step::Check(digest)));
            self.write_frame();
        }
    }

    pub(crate) fn recorded(&self) -> Recorded {
        let bytes = (&self.file).stream_position().unwrap_or(0); // of a file that is only appended to
        Recorded { bytes, has_failed: self.failed.is_some() }
    }

    /// Ends the recording; the first error that there was.
    pub(crate) fn end(mut self, time: Time, digest: u64) -> io::Result<()> {
        self.note(&Record::Step(time, Step::Check(digest)));
        self.note(&Record::End);
        self.write_frame();
        match self.failed {
            Some(error) => Err(error),
            None => self.file.sync_all(),
        }
    }
}

/// The drive's state at rest, as a stream.
pub(crate) struct Base<'a>(pub(crate) &'a mut Recorder);

impl Write for Base<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.0.note(&Record::Base(piece.to_vec()));
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
