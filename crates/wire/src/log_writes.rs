//! The log of dm-log-writes: what was written to a block device, in the order in which it got there.
//!
//! Source: the description at the head of Linux's `drivers/md/dm-log-writes.c`, and its two structures. All numbers are
//! little-endian. The first sector of the log is its head; each entry is a sector, with the data that it announces
//! after it. xfstests and QEMU's `blklogwrites` use the format, too.
//!
//! A write stands in the log before the flush that made it durable, and those that no flush did at the end.

use std::io::{self, Read, Seek, SeekFrom, Write};

use thiserror::Error;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const HEAD_BYTES: usize = 28;
const ENTRY_BYTES: usize = 32;
const FLUSH: u64 = 1 << 0;
const FUA: u64 = 1 << 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;

/// Something that happened to the device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogEntry {
    /// Everything before it was flushed first.
    pub flush: bool,
    /// Its action; none if it only flushes.
    pub action: Option<LogAction>,
}

/// The action of an entry on the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogAction {
    /// Bytes from this byte on; durable at once with `fua`.
    Write {
        /// Where.
        offset_bytes: u64,
        /// What.
        data: Vec<u8>,
        /// Force unit access.
        fua: bool,
    },
    /// A range that is needed no more.
    Discard {
        /// Where it begins.
        offset_bytes: u64,
        /// How long it is.
        length_bytes: u64,
    },
    /// A note of the host's.
    Mark(Vec<u8>),
}

/// A log that cannot be read.
#[derive(Debug, Error)]
pub enum LogError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It begins otherwise.
    #[error("it is no log of dm-log-writes: it begins otherwise")]
    Magic,
    /// Another version.
    #[error("it is of version {0}, and version 1 is known")]
    Version(u64),
    /// Sectors of another size than devices have.
    #[error("its sectors are of {0} bytes")]
    Sector(u32),
    /// It ends within an entry.
    #[error("it ends within entry {0}: it was cut short")]
    Truncated(u64),
    /// An entry that makes no sense.
    #[error("entry {0} is none that dm-log-writes makes: it is damaged")]
    Entry(u64),
}

/// Reads a log, entry by entry.
#[derive(Debug)]
pub struct LogReader<R> {
    from: R,
    sector_bytes: u32,
    entries: u64,
    read: u64,
}

impl<R: Read> LogReader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// If it is no such log.
    pub fn new(mut from: R) -> Result<Self, LogError> {
        let mut head = [0; HEAD_BYTES];
        from.read_exact(&mut head).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => LogError::Magic,
            _ => LogError::Io(error),
        })?;
        if number(&head, 0) != MAGIC {
            return Err(LogError::Magic);
        }
        if number(&head, 8) != VERSION {
            return Err(LogError::Version(number(&head, 8)));
        }
        let sector_bytes = u32::from_le_bytes([head[24], head[25], head[26], head[27]]);
        if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
            return Err(LogError::Sector(sector_bytes));
        }
        let mut log = Self { from, sector_bytes, entries: number(&head, 16), read: 0 };
        log.skip(sector_bytes as usize - HEAD_BYTES)?;
        Ok(log)
    }

    /// Bytes of a sector of the log and its device.
    pub const fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Entries that the head announces.
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// The next entry; nothing after the last.
    ///
    /// # Errors
    /// If reading fails, or the log is damaged there.
    pub fn entry(&mut self) -> Result<Option<LogEntry>, LogError> {
        if self.read == self.entries {
            return Ok(None);
        }
        let mut entry = [0; ENTRY_BYTES];
        self.fill(&mut entry)?;
        let (sector, sectors) = (number(&entry, 0), number(&entry, 8));
        let (flags, length) = (number(&entry, 16), number(&entry, 24));
        let room = self.sector_bytes as usize - ENTRY_BYTES;
        let bytes = |sectors: u64| {
            sectors.checked_mul(u64::from(self.sector_bytes)).ok_or(LogError::Entry(self.read))
        };
        let (offset_bytes, length_bytes) = (bytes(sector)?, bytes(sectors)?);
        let mut rest = room;
        let action = if flags & MARK != 0 {
            let length = usize::try_from(length).ok().filter(|&length| length <= room);
            let mut text = vec![0; length.ok_or(LogError::Entry(self.read))?];
            self.fill(&mut text)?;
            rest -= text.len();
            Some(LogAction::Mark(text))
        } else if flags & DISCARD != 0 {
            Some(LogAction::Discard { offset_bytes, length_bytes })
        } else if sectors > 0 {
            Some(LogAction::Write { offset_bytes, data: Vec::new(), fua: flags & FUA != 0 })
        } else {
            None
        };
        self.skip(rest)?;
        let action = match action {
            Some(LogAction::Write { offset_bytes, fua, .. }) => {
                let mut data = Vec::new();
                // No more is taken than there is.
                let read = self.from.by_ref().take(length_bytes).read_to_end(&mut data)?;
                if read as u64 != length_bytes {
                    return Err(LogError::Truncated(self.read));
                }
                Some(LogAction::Write { offset_bytes, data, fua })
            }
            other => other,
        };
        self.read += 1;
        Ok(Some(LogEntry { flush: flags & FLUSH != 0, action }))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), LogError> {
        self.from.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => LogError::Truncated(self.read),
            _ => LogError::Io(error),
        })
    }

    fn skip(&mut self, count: usize) -> Result<(), LogError> {
        let mut bytes = vec![0; count];
        self.fill(&mut bytes)
    }
}

/// Writes a log.
#[derive(Debug)]
pub struct LogWriter<W> {
    to: W,
    sector_bytes: u32,
    entries: u64,
}

impl<W: Write + Seek> LogWriter<W> {
    /// Begins a log with sectors of `sector_bytes`, at the beginning of `to`.
    ///
    /// # Errors
    /// If writing fails.
    ///
    /// # Panics
    /// If sectors are not of 512 bytes or more.
    pub fn new(mut to: W, sector_bytes: u32) -> io::Result<Self> {
        assert!(sector_bytes.is_power_of_two() && sector_bytes >= 512, "sectors of devices");
        to.write_all(&head(sector_bytes, 0))?;
        Ok(Self { to, sector_bytes, entries: 0 })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// If writing fails, a range is not of whole sectors, or a mark is longer than the rest of a sector.
    pub fn entry(&mut self, entry: &LogEntry) -> io::Result<()> {
        let sector = u64::from(self.sector_bytes);
        let mut flags = if entry.flush { FLUSH } else { 0 };
        let (mut offset, mut length, mut text, mut data) = (0, 0, &[][..], &[][..]);
        match &entry.action {
            None => {}
            Some(LogAction::Write { offset_bytes, data: bytes, fua }) => {
                flags |= if *fua { FUA } else { 0 };
                (offset, length, data) = (*offset_bytes, bytes.len() as u64, bytes);
            }
            Some(LogAction::Discard { offset_bytes, length_bytes }) => {
                flags |= DISCARD;
                (offset, length) = (*offset_bytes, *length_bytes);
            }
            Some(LogAction::Mark(mark)) => {
                flags |= MARK;
                text = mark;
            }
        }
        let fits = text.len() <= self.sector_bytes as usize - ENTRY_BYTES;
        if !offset.is_multiple_of(sector) || !length.is_multiple_of(sector) || !fits {
            return Err(io::Error::other("an entry that does not fit the log's sectors"));
        }
        let mut head = Vec::with_capacity(sector as usize);
        for field in [offset / sector, length / sector, flags, text.len() as u64] {
            head.extend(field.to_le_bytes());
        }
        head.extend(text);
        head.resize(sector as usize, 0);
        self.to.write_all(&head)?;
        self.to.write_all(data)?;
        self.entries += 1;
        Ok(())
    }

    /// Writes the head, now that the number of entries is known. Returns it.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> io::Result<u64> {
        self.to.seek(SeekFrom::Start(0))?;
        self.to.write_all(&head(self.sector_bytes, self.entries))?;
        self.to.flush()?;
        Ok(self.entries)
    }
}

fn head(sector_bytes: u32, entries: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(sector_bytes as usize);
    for field in [MAGIC, VERSION, entries] {
        head.extend(field.to_le_bytes());
    }
    head.extend(sector_bytes.to_le_bytes());
    head.resize(sector_bytes as usize, 0);
    head
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn written(sector_bytes: u32, entries: &[LogEntry]) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let mut log = LogWriter::new(&mut bytes, sector_bytes).unwrap();
        for entry in entries {
            log.entry(entry).unwrap();
        }
        assert_eq!(log.finish().unwrap(), entries.len() as u64);
        bytes.into_inner()
    }

    fn read(bytes: &[u8]) -> Result<Vec<LogEntry>, LogError> {
        let mut log = LogReader::new(bytes)?;
        std::iter::from_fn(|| log.entry().transpose()).collect()
    }

    fn entries() -> impl Strategy<Value = Vec<LogEntry>> {
        let action = prop_oneof![
            Just(None),
            (0..1_000_u64, 1..4_usize, any::<u8>(), any::<bool>()).prop_map(
                |(at, count, byte, fua)| Some(LogAction::Write {
                    offset_bytes: at * 512,
                    data: vec![byte; count * 512],
                    fua,
                })
            ),
            (0..1_000_u64, 0..4_000_u64).prop_map(|(at, count)| Some(LogAction::Discard {
                offset_bytes: at * 512,
                length_bytes: count * 512,
            })),
            "[a-z]{0,40}".prop_map(|text| Some(LogAction::Mark(text.into_bytes()))),
        ];
        let entry = (any::<bool>(), action).prop_map(|(flush, action)| LogEntry { flush, action });
        proptest::collection::vec(entry, 0..20)
    }

    proptest! {
        #[test]
        fn written_entries_are_read(entries in entries()) {
            let bytes = written(512, &entries);
            prop_assert_eq!(read(&bytes).unwrap(), entries);
            // Cut anywhere, it is refused, or was whole.
            for at in (0..bytes.len()).step_by(97) {
                prop_assert!(read(&bytes[..at]).is_err());
            }
        }
    }

    #[test]
    fn wrong_logs_are_refused() {
        assert!(matches!(read(b"no"), Err(LogError::Magic)));
        let mut bytes = written(512, &[LogEntry { flush: true, action: None }]);
        bytes[8] = 9;
        assert!(matches!(read(&bytes), Err(LogError::Version(9))));
        bytes[8] = 1;
        bytes[25] = 3;
        assert!(matches!(read(&bytes), Err(LogError::Sector(768))));
        bytes[25] = 2;
        // An entry that reaches beyond all numbers.
        bytes[512 + 7] = 0xff;
        assert!(matches!(read(&bytes), Err(LogError::Entry(0))));
    }

    #[test]
    fn the_bytes_are_those_that_qemu_writes() {
        // `qemu-io -c "write -P 1 4k 512" -c flush` through its driver blklogwrites.
        let data = vec![1; 512];
        let write = LogAction::Write { offset_bytes: 4_096, data, fua: false };
        let entries = [
            LogEntry { flush: false, action: Some(write) },
            LogEntry { flush: true, action: None },
        ];
        let bytes = written(512, &entries);
        assert_eq!(bytes[..8], [0x72, 0x68, 0x73, 0x77, 0x66, 0x73, 0x6a, 0]);
        assert_eq!(bytes[8..28], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0]);
        assert_eq!(bytes[512..532], [8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[1_024..1_536], [1; 512]);
        assert_eq!((bytes[1_536 + 16], bytes.len()), (1, 2_048));
    }
}
