//! Checkpoints, and opening an image: the last one, and what was asked since.

use std::io::{self, Write};
use std::path::Path;

use leyden_device::{Lba, SnapshotError};
use leyden_host::zoned_block::superblock::{Journal, Why};
use leyden_sim::{Capacitance, Time};

use super::{Content, Drive, ImageFile, Log, Opened, Powered, Regions, Root, Spare, journal};
use crate::clock::{Clock, ClockPage};
use crate::layout::{Fields, Head, read_head, seal, unseal};
use crate::log::{Entry, Event};
use crate::stack::Stack;
use crate::{ImageConfig, ImageError};

/// The beginning of a checkpoint, before the drive: the bank (u64, 0 if it is the configuration's)
/// and the number of slots (u32); then the slots' checksums, and the checksum of it all.
const PREFIX_BYTES: usize = 8 + 4;

/// File systems give room back in blocks, which are no larger.
const ROOM_UNIT: u64 = 64 << 10;

/// Bytes of log from which on a checkpoint is worth its time.
const WORTH_A_CHECKPOINT: u64 = 64 << 20;
/// Bytes of log from which on commands should wait for one.
const NEEDS_A_CHECKPOINT: u64 = 4 << 30;

/// Content that may lie in memory: half as many slots again as are in use are handed out, and what is in use lies on the
/// flash or in the buffer. More than that is written to the file.
const CONTENT_OVER_FLASH: u64 = 2;
const CONTENT_SPARE_BYTES: u64 = 256 << 20;

impl Drive {
    /// Opens an image. If the process that had it was killed, that was a power cut: the drive comes to
    /// the moment at which it happened, what capacitors save is saved, and its power is off.
    ///
    /// # Errors
    /// If it is no image, damaged, or in use.
    pub fn open(path: &Path) -> Result<(Self, Opened), ImageError> {
        let file = ImageFile::open(path)?;
        let Head { config, units, version } = read_head(&file)?;
        let regions = Regions::new(units);
        let root = Root::read(&file)?;
        let (page, clock) = ClockPage::read(&file, version)?;
        if clock.generation > root.generation {
            return Err(ImageError::Damaged("its newest root cannot be read".to_owned()));
        }
        // It was killed between the two, and has done nothing since, if the clock is the older one.
        let clock = Some(clock).filter(|clock| clock.generation == root.generation);
        let (powered, content) = load(&file, regions, config, &root)?;
        if powered.device().units() != units {
            return Err(ImageError::Damaged("its head names a drive of another size".to_owned()));
        }
        let known = clock.map_or(root.first_sequence, |clock| clock.next_sequence);
        let (log, entries) = Log::read(&file, regions, root.first_sequence, known)?;
        let mut drive = Self::with(file, regions, powered, content, log, root, page);
        drive.content.keep_used_by(drive.powered.device(), 0);
        drive.come_back(clock, &entries)
    }

    pub(super) fn with(
        file: ImageFile,
        regions: Regions,
        powered: Powered,
        mut content: Content,
        log: Log,
        root: Root,
        clock: ClockPage,
    ) -> Self {
        content
            .map(&file, CONTENT_OVER_FLASH * powered.device().flash_bytes() + CONTENT_SPARE_BYTES);
        Self {
            clock,
            ended: Vec::new(),
            completions: Vec::new(),
            recorder: None,
            spare: Spare::default(),
            file,
            regions,
            powered,
            content,
            log,
            root,
        }
    }

    fn come_back(
        mut self,
        clock: Option<Clock>,
        entries: &[Entry],
    ) -> Result<(Self, Opened), ImageError> {
        let replayed = entries.len() as u64;
        if self.root.is_closed && entries.is_empty() {
            self.find_journal()?;
            return Ok((self, Opened { cut: None, replayed }));
        }
        let told = |entry: &Entry| clock.is_some_and(|clock| entry.sequence < clock.next_sequence);
        let (known, rest): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| told(entry));
        for entry in known {
            self.repeat(entry)?;
        }
        if let Some(clock) = clock {
            self.drop_completions(clock.time);
            if self.device().digest().value() != clock.digest {
                return Err(ImageError::Diverged(self.config().made_by.clone()));
            }
        }
        for entry in rest {
            self.repeat(entry)?;
        }
        if let Some(stack) = self.powered.stack_mut() {
            stack.count_anew();
        }
        if self.is_off() {
            return Ok((self, Opened { cut: None, replayed }));
        }
        let now = self.now();
        let cut = Some(self.cut(now)?);
        Ok((self, Opened { cut, replayed }))
    }

    /// Does again what the log says.
    fn repeat(&mut self, entry: &Entry) -> Result<(), ImageError> {
        if entry.time < self.now() {
            return Err(ImageError::Damaged("the times of its log go back".to_owned()));
        }
        self.drop_completions(entry.time);
        let made_by = self.config().made_by.clone();
        let diverged = || ImageError::Diverged(made_by.clone());
        match &entry.event {
            Event::Cut | Event::Restore(_) if self.is_off() == (entry.event == Event::Cut) => {
                return Err(diverged());
            }
            Event::Cut => {
                self.powered.cut(entry.time);
            }
            Event::Restore(bank) => {
                self.powered.restore(entry.time, *bank)?;
            }
            Event::Remount | Event::Journal { .. } if self.device().stack().is_none() => {
                return Err(diverged());
            }
            Event::Remount => {
                self.powered.settle(entry.time);
                self.powered.remount();
            }
            Event::Journal { sources, journal } => {
                // Why there was none is not known any more.
                let nowhere = Journal::Nowhere(Why::NoFileSystem);
                let journal = journal.clone().map_or(nowhere, Journal::At);
                self.powered.found_journal(entry.time, sources.clone(), journal);
            }
            Event::Write { lba, sectors, slots, .. }
            | Event::Append { lba, sectors, slots, .. } => {
                let count = slots.len() as u32;
                if count != self.content.slots_of(*lba, *sectors) {
                    let what = "an entry of its log names more or fewer slots than it has units";
                    return Err(ImageError::Damaged(what.to_owned()));
                }
                if self.content.is_short_of(count) {
                    self.content.keep_used_by(self.powered.device(), count);
                }
                if !self.content.take(slots) {
                    return Err(diverged());
                }
            }
            _ => {}
        }
        if let Some(command) = self.content.command(&entry.event) {
            self.powered.submit(entry.time, command);
        }
        Ok(())
    }

    /// Advances the device to `time`; completions were delivered before and are dropped.
    fn drop_completions(&mut self, time: Time) {
        self.powered.advance(time, &mut self.completions);
        self.completions.clear();
    }

    /// Looks for the journal again if the device says so.
    pub(super) fn follow_journal(&mut self) -> Result<(), ImageError> {
        let has_changed = self.powered.stack_mut().is_some_and(Stack::take_superblock_changed);
        if has_changed && !self.is_off() { self.find_journal() } else { Ok(()) }
    }

    /// Looks for the journal, and tells the device, if it wants to know.
    pub(super) fn find_journal(&mut self) -> Result<(), ImageError> {
        if !self.device().stack().is_some_and(Stack::needs_superblocks) {
            return Ok(());
        }
        let (sources, journal) = journal::find(self)?;
        let (now, event) = (self.now(), journal::event(sources.clone(), &journal));
        self.log.prepare(&self.file, event.slots())?;
        self.note(now, &event, &[]);
        self.powered.found_journal(now, sources, journal);
        Ok(())
    }

    /// Takes all the room that a write needs from the file system, and puts its bytes there.
    pub(super) fn store(
        &mut self,
        lba: Lba,
        units: u32,
        data: &[u8],
    ) -> Result<Vec<(u32, u32)>, ImageError> {
        self.spare.reserve(&self.file, self.regions, &self.root, units)?;
        self.log.prepare(&self.file, units as usize)?;
        self.content.store(&self.file, lba, data)
    }

    /// True if a checkpoint is worth its time when the drive is idle; `urgent`, if commands should wait for
    /// one.
    pub const fn wants_checkpoint(&self, urgent: bool) -> bool {
        let length = self.log.len();
        length > if urgent { NEEDS_A_CHECKPOINT } else { WORTH_A_CHECKPOINT }
            || (!urgent && self.spare.is_wanted(length))
    }

    /// Saves the drive at rest, and starts a new log.
    ///
    /// # Errors
    /// If the image cannot be written; it is as it was then.
    ///
    /// # Panics
    /// If the drive is not idle.
    pub fn checkpoint(&mut self, is_closed: bool) -> Result<(), ImageError> {
        if self.device().stack().is_none() {
            return self.save(is_closed);
        }
        self.log.prepare(&self.file, 0)?;
        let now = self.now();
        // If the checkpoint fails, the old log goes on, and has it.
        self.note(now, &Event::Remount, &[]);
        self.powered.settle(now);
        if !self.is_idle() {
            let what = "the drive does not take the tables of the block device on it";
            return Err(io::Error::other(what).into());
        }
        self.save(is_closed)?;
        if is_closed { Ok(()) } else { self.find_journal() }
    }

    /// Runs the drive until it is idle, and until all that a conventional drive buffers is on flash, as if it had been idle
    /// for long. This is no command, so a checkpoint takes the place of the log.
    ///
    /// # Errors
    /// If the image cannot be written.
    pub fn write_out(&mut self) -> Result<(), ImageError> {
        self.rest()?;
        if self.is_off() || !self.is_idle() {
            return Ok(());
        }
        self.powered.write_out();
        self.checkpoint(false)
    }

    fn save(&mut self, is_closed: bool) -> Result<(), ImageError> {
        let slots = self.content.slots().clone();
        self.content.keep_used_by(self.powered.device(), 0);
        let root = Root {
            generation: self.root.generation + 1,
            checkpoint_bytes: 0,
            first_sequence: self.log.next_sequence(),
            time: self.now(),
            is_closed,
        };
        self.log.unmap();
        match self.write_root(root) {
            Ok(root) => self.root = root,
            Err(error) => {
                // The old log goes on, and hands out the slots that it would have without this.
                self.content.set_slots(slots);
                self.powered.remount();
                return Err(error);
            }
        }
        self.spare = Spare::default();
        // The drive continues as the checkpoint opens.
        self.powered.remount();
        self.write_clock()?;
        self.log.restart(&self.file)?;
        self.content.punch_dead(&self.file)
    }

    fn write_root(&self, mut root: Root) -> Result<Root, ImageError> {
        root.checkpoint_bytes = self.write_checkpoint(&root)?;
        root.write(&self.file)?;
        Ok(root)
    }

    /// Writes the checkpoint that `root` will name. Returns its length.
    fn write_checkpoint(&self, root: &Root) -> Result<u64, ImageError> {
        let checksums = self.content.checksums();
        let mut prefix = Vec::with_capacity(PREFIX_BYTES + checksums.len() * 4);
        prefix.extend(self.powered.bank().map_or(0, Capacitance::as_nf).to_le_bytes());
        prefix.extend((checksums.len() as u32).to_le_bytes());
        prefix.extend(checksums.iter().flat_map(|checksum| checksum.to_le_bytes()));
        seal(&mut prefix);
        let (begin, most) = self.regions.checkpoint(root.area());
        // The old checkpoint keeps its room until this one is whole: that may be all the room there
        // is.
        let mut region = Region { file: &self.file, begin, at: 0, end: most };
        region.write_all(&prefix)?;
        self.device().save(&mut region).map_err(|error| match error {
            SnapshotError::Io(error) => ImageError::Io(error),
            other => other.into(),
        })?;
        let end = region.at.next_multiple_of(ROOM_UNIT).min(most);
        self.file.punch(begin + end, most - end)?;
        Ok(region.at)
    }
}

/// The drive at rest.
pub(super) fn load(
    file: &ImageFile,
    regions: Regions,
    config: ImageConfig,
    root: &Root,
) -> Result<(Powered, Content), ImageError> {
    let damaged = || ImageError::Damaged("its checkpoint cannot be read".to_owned());
    let (begin, most) = regions.checkpoint(root.area());
    if root.checkpoint_bytes > most {
        return Err(damaged());
    }
    let mut region = Region { file, begin, at: 0, end: root.checkpoint_bytes };
    let mut prefix = vec![0; PREFIX_BYTES];
    io::Read::read_exact(&mut region, &mut prefix).map_err(|_| damaged())?;
    let mut fields = Fields(&prefix);
    let (bank, count) = (fields.u64(), fields.u32());
    let rest = u64::from(count) * 4 + 4;
    if rest > region.end - region.at {
        return Err(damaged());
    }
    prefix.resize(PREFIX_BYTES + rest as usize, 0);
    io::Read::read_exact(&mut region, &mut prefix[PREFIX_BYTES..])?;
    let body = unseal(&prefix).ok_or_else(damaged)?;
    let checksums = body[PREFIX_BYTES..].chunks_exact(4).map(|bytes| Fields(bytes).u32()).collect();
    let bank = (bank > 0).then(|| Capacitance::from_nf(bank));
    let powered = Powered::load(config, bank, &mut region)?;
    let unit_bytes = powered.device().unit_bytes();
    Ok((powered, Content::new(regions.content(), unit_bytes, checksums)))
}

/// A region of the image as a stream.
struct Region<'a> {
    file: &'a ImageFile,
    begin: u64,
    at: u64,
    end: u64,
}

impl Write for Region<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.end - self.at {
            return Err(io::Error::other("the checkpoint is larger than its region"));
        }
        self.file.write(bytes, self.begin + self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Read for Region<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = bytes.len().min((self.end - self.at) as usize);
        self.file.read(&mut bytes[..count], self.begin + self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
