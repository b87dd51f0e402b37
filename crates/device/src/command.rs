//! Commands of a host to a drive.

use leyden_ftl::zoned::ZoneAction;

use crate::{Hint, Lba, Op, Payload, ZoneFilter};

/// The host's declaration of the kind of data. It promises nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DataKind {
    /// Nothing in particular.
    #[default]
    Data,
    /// It belongs to a log: the stream that the host has set aside for it (NVM Express Base 2.0, streams
    /// directive). Drives ask only if they are told to (`ftl.log_stream`).
    Log,
    /// It is a file system's metadata, and no log (Linux: `REQ_META`).
    Meta,
}

/// The action, with its arguments.
#[derive(Clone, Debug)]
pub enum Action<P: Payload> {
    /// Read: returns [`Output::Read`](crate::Output::Read).
    Read {
        /// Where it begins.
        lba: Lba,
        /// How many sectors it covers.
        sectors: u32,
        /// Rides along.
        hint: Option<Hint>,
    },
    /// Write.
    Write {
        /// Where it begins.
        lba: Lba,
        /// How many sectors it covers.
        sectors: u32,
        /// The data to write.
        data: P::WriteData,
        /// Force unit access: it completes only when it would survive a power cut.
        fua: bool,
        /// The host's declaration of the kind of data.
        kind: DataKind,
        /// The PLP flag (Selective-PLP, section 4.2; CDW3 bit 0): once acknowledged, the data survives a
        /// power cut. Drives whose buffer protects nothing refuse it.
        plp: bool,
        /// Rides along.
        hint: Option<Hint>,
    },
    /// Flush: on completion, every write acknowledged before it survives a power cut.
    Flush {
        /// The file that it is asked for, as `fsync` does: of a page cache's dirty pages, those in this range. A
        /// drive knows no files, and flushes everything.
        file: Option<(Lba, u32)>,
    },
    /// Dataset management, deallocate: the whole mapping units of the range read as zeroes from now
    /// on.
    Trim {
        /// Where it begins.
        lba: Lba,
        /// How many sectors it covers.
        sectors: u32,
    },
    /// Write zeroes: the range reads as zeroes from now on. Whole mapping units are deallocated.
    WriteZeroes {
        /// Where it begins.
        lba: Lba,
        /// How many sectors it covers.
        sectors: u32,
        /// Of no bytes: what tells this write from others, for payloads that trace writes.
        data: P::WriteData,
        /// Force unit access, as for a write.
        fua: bool,
    },
    /// Dataset management with the range attribute "write prepare": the ranges will be overwritten
    /// before long. Changes no promise.
    WritePrepare {
        /// At least one, and at most [`MOST_RANGES`].
        ranges: Box<[Hint]>,
    },
    /// Zone Append: writes at the zone's write pointer, and returns where that was
    /// ([`Output::Appended`](crate::Output::Appended)).
    ZoneAppend {
        /// The zone's first block.
        lba: Lba,
        /// How many sectors it covers.
        sectors: u32,
        /// The data to write.
        data: P::WriteData,
        /// Force unit access, as for a write.
        fua: bool,
        /// The PLP flag, as for a write.
        plp: bool,
    },
    /// Copy with source ranges of format 0 (Simple Copy): what they hold, one after the other, is written from
    /// `lba` on. Zoned drives alone know it.
    Copy {
        /// Where it is written.
        lba: Lba,
        /// At least one, and at most [`MOST_COPY_RANGES`].
        ranges: Box<[CopyRange]>,
        /// Force unit access, as for a write.
        fua: bool,
        /// The PLP flag, as for a write.
        plp: bool,
    },
    /// Zone Management Send.
    Zone {
        /// The action. [`ZoneAction::SetExtension`] is a command of its own here.
        action: ZoneAction,
        /// The zone's first block; for [`ZoneAction::FlushZrwa`] the last block to commit.
        lba: Lba,
        /// Select all: every zone in a state that this is meant for.
        all: bool,
        /// With [`ZoneAction::Open`]: gives the zone a Zone Random Write Area.
        zrwa: bool,
    },
    /// Zone Management Send, Set Zone Descriptor Extension.
    ZoneExtension {
        /// The zone's first block.
        lba: Lba,
        /// The extension.
        data: Box<[u8]>,
    },
    /// Zone Management Receive, Report Zones: returns [`Output::Zones`](crate::Output::Zones).
    ZoneReport {
        /// A block of the first zone to report.
        lba: Lba,
        /// Which zones.
        filter: ZoneFilter,
        /// The number returned counts the zones reported, and not all there are from `lba` on.
        partial: bool,
        /// The most zones to report.
        most: u32,
    },
}

/// The most ranges of a dataset management command (NVM Command Set 1.0, 3.2.3).
pub const MOST_RANGES: usize = 256;

/// The most source ranges of a copy (the field MSRC + 1 of Identify Namespace; as many as it can tell).
pub const MOST_COPY_RANGES: usize = 256;

/// A source range of a copy (NVM Command Set 1.0, 3.2.2, descriptor format 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyRange {
    /// Where it begins.
    pub lba: Lba,
    /// How many sectors it covers.
    pub sectors: u32,
}

impl<P: Payload> Action<P> {
    /// The action's kind.
    #[inline]
    pub const fn op(&self) -> Op {
        match self {
            Self::Read { .. } => Op::Read,
            Self::Write { .. } => Op::Write,
            Self::Flush { .. } => Op::Flush,
            Self::Trim { .. } => Op::Trim,
            Self::WriteZeroes { .. } => Op::WriteZeroes,
            Self::WritePrepare { .. } => Op::WritePrepare,
            Self::ZoneAppend { .. } => Op::ZoneAppend,
            Self::Copy { .. } => Op::Copy,
            Self::Zone { action, .. } => Op::Zone(*action),
            Self::ZoneExtension { .. } => Op::Zone(ZoneAction::SetExtension),
            Self::ZoneReport { .. } => Op::ZoneReport,
        }
    }

    /// The range of sectors that it reads or changes, where it begins and how long it is; `None` if it
    /// has none. Of an append that is the beginning of its zone; of a copy, what it writes.
    #[inline]
    pub const fn extent(&self) -> Option<(Lba, u32)> {
        if let Self::Copy { lba, ranges, .. } = self {
            return Some((*lba, sectors_of(ranges)));
        }
        match *self {
            Self::Read { lba, sectors, .. }
            | Self::Write { lba, sectors, .. }
            | Self::Trim { lba, sectors }
            | Self::WriteZeroes { lba, sectors, .. }
            | Self::ZoneAppend { lba, sectors, .. } => Some((lba, sectors)),
            Self::Flush { .. }
            | Self::WritePrepare { .. }
            | Self::Copy { .. }
            | Self::Zone { .. }
            | Self::ZoneExtension { .. }
            | Self::ZoneReport { .. } => None,
        }
    }

    /// The data that it writes, or the mark that distinguishes its zeroes from others'; `None` if
    /// it writes neither.
    #[inline]
    pub const fn data(&self) -> Option<&P::WriteData> {
        match self {
            Self::Write { data, .. }
            | Self::WriteZeroes { data, .. }
            | Self::ZoneAppend { data, .. } => Some(data),
            _ => None,
        }
    }
}

/// Sectors of all of `ranges`; more than can be counted are more than any drive takes.
const fn sectors_of(ranges: &[CopyRange]) -> u32 {
    let (mut sum, mut at) = (0_u32, 0);
    while at < ranges.len() {
        sum = sum.saturating_add(ranges[at].sectors);
        at += 1;
    }
    sum
}

/// One command. See [`Action`] for what its constructors make.
///
/// ```
/// use leyden_device::{Command, Lba, Op, Stamp};
///
/// let command = Command::<Stamp>::write(Lba(16), 8, 7).fua(true).tag(3);
/// assert_eq!((command.op(), command.extent(), command.tag), (Op::Write, Some((Lba(16), 8)), 3));
/// ```
#[derive(Clone, Debug)]
pub struct Command<P: Payload> {
    /// The action.
    pub action: Action<P>,
    /// A read or write that passes a page cache by (`O_DIRECT`). Others do the same with it or without.
    pub direct: bool,
    /// Handed back in the completion: the driver's own note, like the thread that asked.
    pub tag: u32,
}

impl<P: Payload> From<Action<P>> for Command<P> {
    #[inline]
    fn from(action: Action<P>) -> Self {
        Self { action, direct: false, tag: 0 }
    }
}

impl<P: Payload> Command<P> {
    /// A read.
    #[inline]
    pub fn read(lba: Lba, sectors: u32) -> Self {
        Action::Read { lba, sectors, hint: None }.into()
    }

    /// A write.
    #[inline]
    pub fn write(lba: Lba, sectors: u32, data: P::WriteData) -> Self {
        let (fua, kind, plp, hint) = (false, DataKind::Data, false, None);
        Action::Write { lba, sectors, data, fua, kind, plp, hint }.into()
    }

    /// A flush.
    #[inline]
    pub fn flush() -> Self {
        Action::Flush { file: None }.into()
    }

    /// A flush of the file that lies in a range (`fsync`).
    #[inline]
    pub fn sync(lba: Lba, sectors: u32) -> Self {
        Action::Flush { file: Some((lba, sectors)) }.into()
    }

    /// A trim.
    #[inline]
    pub fn trim(lba: Lba, sectors: u32) -> Self {
        Action::Trim { lba, sectors }.into()
    }

    /// Zeroes.
    #[inline]
    pub fn write_zeroes(lba: Lba, sectors: u32, data: P::WriteData) -> Self {
        Action::WriteZeroes { lba, sectors, data, fua: false }.into()
    }

    /// An announcement of writes.
    pub fn write_prepare(ranges: impl IntoIterator<Item = Hint>) -> Self {
        Action::WritePrepare { ranges: ranges.into_iter().collect() }.into()
    }

    /// An append to the zone that begins at `lba`.
    #[inline]
    pub fn zone_append(lba: Lba, sectors: u32, data: P::WriteData) -> Self {
        Action::ZoneAppend { lba, sectors, data, fua: false, plp: false }.into()
    }

    /// A copy to `lba`.
    pub fn copy(lba: Lba, ranges: impl IntoIterator<Item = CopyRange>) -> Self {
        let ranges = ranges.into_iter().collect();
        Action::Copy { lba, ranges, fua: false, plp: false }.into()
    }

    /// Does `action` to the zone that begins at `lba`.
    #[inline]
    pub fn zone(action: ZoneAction, lba: Lba) -> Self {
        Action::Zone { action, lba, all: false, zrwa: false }.into()
    }

    /// Applies `action` to every zone in an eligible state.
    pub fn all_zones(action: ZoneAction) -> Self {
        Action::Zone { action, lba: Lba(0), all: true, zrwa: false }.into()
    }

    /// A report of all zones from the one of `lba` on.
    pub fn zone_report(lba: Lba) -> Self {
        let (filter, partial, most) = (ZoneFilter::All, false, u32::MAX);
        Action::ZoneReport { lba, filter, partial, most }.into()
    }

    /// A command of the kind `op`, for drivers that replay operations or draw them. Of `lba`, `sectors`
    /// and `data` it takes what commands of that kind have.
    #[inline]
    pub fn new(op: Op, lba: Lba, sectors: u32, data: P::WriteData) -> Self {
        match op {
            Op::Read => Self::read(lba, sectors),
            Op::Write => Self::write(lba, sectors, data),
            Op::Flush => Self::flush(),
            Op::Trim => Self::trim(lba, sectors),
            Op::WriteZeroes => Self::write_zeroes(lba, sectors, data),
            Op::WritePrepare => Self::write_prepare(Hint::covering(lba, sectors)),
            Op::ZoneAppend => Self::zone_append(lba, sectors, data),
            // Of what lies there already: the least that makes one.
            Op::Copy => Self::copy(lba, [CopyRange { lba, sectors }]),
            Op::Zone(ZoneAction::SetExtension) => {
                Action::ZoneExtension { lba, data: Box::default() }.into()
            }
            Op::Zone(action) => Self::zone(action, lba),
            Op::ZoneReport => Self::zone_report(lba),
        }
    }

    /// With this tag.
    #[inline]
    #[must_use]
    pub fn tag(self, tag: u32) -> Self {
        Self { tag, ..self }
    }

    /// Forces unit access, or doesn't, if this writes data or zeroes; else it stays as it is.
    #[inline]
    #[must_use]
    pub fn fua(mut self, on: bool) -> Self {
        if let Action::Write { fua, .. }
        | Action::WriteZeroes { fua, .. }
        | Action::Copy { fua, .. }
        | Action::ZoneAppend { fua, .. } = &mut self.action
        {
            *fua = on;
        }
        self
    }

    /// With the PLP flag, or without, if this writes data; else it stays as it is.
    #[inline]
    #[must_use]
    pub fn plp(mut self, on: bool) -> Self {
        if let Action::Write { plp, .. }
        | Action::ZoneAppend { plp, .. }
        | Action::Copy { plp, .. } = &mut self.action
        {
            *plp = on;
        }
        self
    }

    /// Gives the zone that this opens a Zone Random Write Area, if this opens one.
    #[inline]
    #[must_use]
    pub const fn zrwa(mut self, on: bool) -> Self {
        if let Action::Zone { zrwa, .. } = &mut self.action {
            *zrwa = on;
        }
        self
    }

    /// Its data is of this kind, if this writes data; else it stays as it is.
    #[inline]
    #[must_use]
    pub fn kind(mut self, of: DataKind) -> Self {
        if let Action::Write { kind, .. } = &mut self.action {
            *kind = of;
        }
        self
    }

    /// Passes page caches by, or doesn't.
    #[inline]
    #[must_use]
    pub fn direct(self, direct: bool) -> Self {
        Self { direct, ..self }
    }

    /// Takes a hint along, if this reads or writes; else it stays as it is.
    #[inline]
    #[must_use]
    pub fn hint(mut self, hint: Option<Hint>) -> Self {
        if let Some(place) = self.hint_mut() {
            *place = hint;
        }
        self
    }

    /// The place for a hint; `None` if this can't take one along.
    #[inline]
    pub const fn hint_mut(&mut self) -> Option<&mut Option<Hint>> {
        match &mut self.action {
            Action::Read { hint, .. } | Action::Write { hint, .. } => Some(hint),
            _ => None,
        }
    }

    /// The command's kind.
    #[inline]
    pub const fn op(&self) -> Op {
        self.action.op()
    }

    /// The range of sectors that it reads or changes (see [`Action::extent`]).
    #[inline]
    pub const fn extent(&self) -> Option<(Lba, u32)> {
        self.action.extent()
    }

    /// The data that it writes, or the mark that distinguishes its zeroes from others'; `None` if
    /// it writes neither.
    #[inline]
    pub const fn data(&self) -> Option<&P::WriteData> {
        self.action.data()
    }

    /// True if it forces unit access.
    #[inline]
    pub const fn is_fua(&self) -> bool {
        matches!(
            self.action,
            Action::Write { fua: true, .. }
                | Action::WriteZeroes { fua: true, .. }
                | Action::ZoneAppend { fua: true, .. }
                | Action::Copy { fua: true, .. }
        )
    }
}
