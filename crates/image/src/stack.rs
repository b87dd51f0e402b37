//! A block device on two drives, as an image has it: both drives, which lose their power together, and the layer on them.
//!
//! A checkpoint holds the two drives and nothing of the layer, which finds its tables on them. So whoever takes one makes
//! the layer write its tables before ([`Stack::settle`]), and takes it down and up after ([`Stack::remount`]): the device
//! that goes on is then the one that whoever opens the image gets.
//!
//! **Invariants**: it is up, has failed, or is without power whenever somebody asks; never amid the reading of tables.

use std::io::{Read, Write};

use leyden_device::{
    BlockDevice, Command, Completion, Lba, PowerLoss, Recovery, SnapshotError, Ssd, Stats, Status,
    ZnsSsd,
};
use leyden_host::zoned_block::superblock::Journal;
use leyden_host::zoned_block::{Home, Pair, Stored, StoredData, flash_of_both};
use leyden_host::{Powered, ZonedBlock, ZonedBlockStats};
use leyden_sim::{ConfigError, Counted, Digest, Time};

use crate::layout::{ImageConfig, StackConfig};
use crate::{ImageError, Places};

/// The conventional drive below a layer.
pub type Conventional = Ssd<Stored<Places>>;
/// The zoned one.
pub type Zoned = ZnsSsd<Stored<Places>>;
type Layered = ZonedBlock<Places, Conventional, Zoned>;

/// How hard the conventional drive's snapshot is packed: it holds all versions of the tables that flash has, which are
/// much alike.
const PACKED: i32 = 1;

/// See the module.
#[derive(Clone, Debug)]
pub struct Stack {
    layer: Layered,
    /// The layer's counts when the image was opened: those of a log that was run again.
    before: ZonedBlockStats,
}

/// The configuration of the layer that `config`, of a stack, has.
fn parts(config: &ImageConfig) -> &StackConfig {
    config.stack.as_ref().expect("the configuration of a stack")
}

fn pair(conventional: Conventional, zoned: Zoned) -> Pair<Conventional, Zoned> {
    let shape = *zoned.zone_shape();
    Pair { conventional, zoned, shape }
}

impl Stack {
    /// An empty device.
    pub(crate) fn new(config: &ImageConfig) -> Result<Self, ConfigError> {
        let StackConfig { conventional, layer } = parts(config);
        let conventional = Ssd::new(conventional, config.seed)
            .map_err(|error| error.within("conventional").within("host"))?;
        let zoned = ZnsSsd::new(&config.device, !config.seed)?;
        let device = ZonedBlock::format(layer, pair(conventional, zoned), config.seed)
            .map_err(|error| error.within("zoned_block").within("host"))?;
        Ok(Self { layer: device, before: ZonedBlockStats::default() })
    }

    /// A device at rest, from its snapshot.
    pub(crate) fn load(config: &ImageConfig, from: &mut impl Read) -> Result<Self, ImageError> {
        let StackConfig { conventional, layer } = parts(config);
        let mut length = [0; 8];
        from.read_exact(&mut length)?;
        let mut packed = Vec::new();
        from.take(u64::from_le_bytes(length)).read_to_end(&mut packed)?;
        let mut unpacked = zstd::Decoder::new(&packed[..])?;
        let conventional = Ssd::load(conventional, config.seed, &mut unpacked)?;
        let zoned = ZnsSsd::load(&config.device, !config.seed, from)?;
        let device = ZonedBlock::open(layer, pair(conventional, zoned))?;
        Ok(Self { layer: device, before: ZonedBlockStats::default() })
    }

    /// Saves it; it has been [settled](Stack::settle).
    pub(crate) fn save(&self, to: &mut impl Write) -> Result<(), SnapshotError> {
        let mut packer = zstd::Encoder::new(Vec::new(), PACKED)?;
        self.layer.conventional().save(&mut packer)?;
        let packed = packer.finish()?;
        to.write_all(&(packed.len() as u64).to_le_bytes())?;
        to.write_all(&packed)?;
        self.layer.zoned().save(to)
    }

    /// Writes the layer's tables, and lets the drives come to rest at the device's time. The device is idle.
    pub(crate) fn settle(&mut self, now: Time) {
        let mut ended = Vec::new();
        let mut now = now.max(self.now());
        loop {
            self.layer.submit(now, Command::flush());
            // Operations that begin meanwhile end, too.
            while let Some(next) = self.next_event().filter(|_| !self.is_idle()) {
                now = now.max(next);
                self.layer.advance(now, &mut ended);
            }
            let is_done = ended.drain(..).all(|end| end.status == Status::Success);
            if !is_done || !self.layer.is_dirty() {
                break;
            }
        }
        if self.is_idle() {
            self.layer.tell_time();
        }
    }

    /// Takes the layer down and opens it again, if it could be [settled](Stack::settle).
    pub(crate) fn remount(&mut self) {
        if self.is_idle() {
            self.layer.remount();
        }
    }

    pub(crate) fn submit(&mut self, now: Time, command: Command<Places>) {
        self.layer.submit(now, command);
    }

    pub(crate) fn advance(&mut self, now: Time, completions: &mut Vec<Completion<Places>>) {
        self.layer.advance(now, completions);
    }

    pub(crate) fn cut_power(&mut self, now: Time) -> PowerLoss {
        self.layer.cut_power(now).drive
    }

    /// The power returns, and the tables are read.
    pub(crate) fn restore_power(&mut self, now: Time) -> Recovery {
        let recovery = self.layer.restore_power(now);
        while self.layer.is_loading() {
            let next = self.layer.next_event().expect("tables are being read");
            self.layer.advance(next.max(self.now()), &mut Vec::new());
        }
        Recovery { ready_at: recovery.ready_at.max(self.now()), ..recovery }
    }

    /// The journal is here from now on.
    pub(crate) fn found_journal(
        &mut self,
        now: Time,
        sources: Vec<std::ops::Range<u64>>,
        journal: Journal,
    ) {
        self.layer.found_journal(now, sources, journal);
    }

    /// True once after what the journal was found by has changed.
    pub(crate) fn take_superblock_changed(&mut self) -> bool {
        self.layer.take_superblock_changed()
    }

    /// Whether somebody has to look for the journal.
    pub(crate) fn needs_superblocks(&self) -> bool {
        self.layer.needs_superblocks() && self.layer.problem().is_none()
    }

    /// Why it could not be brought back after a power cut.
    pub fn problem(&self) -> Option<&str> {
        self.layer.problem()
    }

    /// The layer's counts since the image was opened.
    pub fn layer_stats(&self) -> ZonedBlockStats {
        self.layer.stats().since(&self.before)
    }

    /// Leaves out the counts so far.
    pub(crate) fn count_anew(&mut self) {
        self.before = self.layer.stats();
    }

    /// Bytes of the journal, if it was found.
    pub fn journal_bytes(&self) -> u64 {
        self.layer.journal().map_or(0, Journal::bytes)
    }

    pub(crate) fn now(&self) -> Time {
        Powered::now(&self.layer)
    }
    pub(crate) fn units(&self) -> u64 {
        let units = |of: u32| u64::from(of);
        units(self.layer.conventional().geometry().units())
            + units(self.layer.zoned().geometry().units())
    }
    pub(crate) fn unit_bytes(&self) -> u32 {
        self.layer.zoned().geometry().unit_bytes()
    }
    pub(crate) fn flash_bytes(&self) -> u64 {
        self.layer.conventional().geometry().flash_bytes()
            + self.layer.zoned().geometry().flash_bytes()
    }
    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.layer.capacity_sectors()
    }
    /// Fingerprint of the drives' operations, and so of the layer's.
    pub(crate) fn digest(&self) -> Digest {
        let (conventional, zoned) = (self.layer.conventional(), self.layer.zoned());
        *Digest::default().add(conventional.digest().value()).add(zoned.digest().value())
    }
    pub(crate) fn cuts(&self) -> u64 {
        self.layer.zoned().cuts()
    }
    pub(crate) fn pending(&self) -> usize {
        self.layer.pending()
    }

    /// The conventional drive.
    pub const fn conventional(&self) -> &Conventional {
        self.layer.conventional()
    }
    /// The zoned drive.
    pub const fn zoned(&self) -> &Zoned {
        self.layer.zoned()
    }

    /// Both drives' counters as one's.
    pub(crate) fn stats(&self) -> Stats {
        let (zoned, conventional) = (self.layer.zoned(), self.layer.conventional());
        flash_of_both(&zoned.stats(), &conventional.stats(), self.layer.stats().host_blocks)
    }

    /// Erases of every block of both drives; `None` for bad ones.
    pub fn wear(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.layer.conventional().wear().chain(self.layer.zoned().wear())
    }

    /// True if nothing is under way, and it can be saved. One that has failed never can.
    pub(crate) fn is_idle(&self) -> bool {
        self.layer.is_at_rest()
            && !self.layer.has_failed()
            && self.layer.conventional().is_idle()
            && self.layer.zoned().is_idle()
    }

    pub(crate) fn next_event(&self) -> Option<Time> {
        // One that has failed would try to tidy up for ever.
        let is_over = self.layer.has_failed() && self.layer.is_at_rest();
        if is_over { None } else { self.layer.next_event() }
    }

    /// The places that a read of the mapping unit of `lba` would return if it took no time.
    pub(crate) fn newest(&self, lba: Lba) -> Places {
        match self.layer.home(lba) {
            None => Places::default(),
            Some(Home::Conventional(lba)) => self.layer.conventional().newest(lba).data(),
            Some(Home::Zoned(lba)) => self.layer.zoned().newest(lba).data(),
        }
    }

    /// Whether a read would be carried out.
    pub(crate) fn may_read(&self) -> Result<(), Status> {
        self.layer.problem().map_or(Ok(()), |_| Err(Status::UnrecoveredRead))
    }

    /// Calls `note` for every place that it has a use for, be it on a drive, under way there, or in the layer.
    pub(crate) fn each_place(&self, mut note: impl FnMut(u64)) {
        let (conventional, zoned) = (self.layer.conventional(), self.layer.zoned());
        let stored = conventional.contents().chain(zoned.contents());
        stored.for_each(|unit| of_unit(unit, &mut note));
        for (written, read) in conventional.in_flight().chain(zoned.in_flight()) {
            match written {
                Some(StoredData::Host { data, .. }) => each(data, &mut note),
                Some(StoredData::Units(units)) => {
                    units.iter().for_each(|unit| of_unit(unit, &mut note));
                }
                None => {}
            }
            for unit in read {
                of_unit(unit, &mut note);
            }
        }
        for (written, read) in self.layer.in_flight() {
            if let Some(places) = written {
                each(places, &mut note);
            }
            each(read, &mut note);
        }
        self.layer.old_units().for_each(|places| places.each_place(&mut note));
    }
}

fn of_unit(unit: &Stored<Places>, note: &mut impl FnMut(u64)) {
    if let Stored::Data(places) = unit {
        places.each_place(note);
    }
}

fn each(places: &[u64], note: &mut impl FnMut(u64)) {
    places.iter().copied().filter(|&place| place > 0).for_each(note);
}
