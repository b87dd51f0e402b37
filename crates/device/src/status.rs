//! How commands end.

/// How a command ended: NVMe status codes (status code type, status code).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Status {
    /// 0h / 00h.
    Success,
    /// 0h / 01h: the drive does not know the command: one for zones, sent to a conventional drive.
    InvalidOpcode,
    /// 0h / 02h: a length of zero sectors, or one that overflows; the PLP flag, on a drive that protects
    /// nothing.
    InvalidField,
    /// 0h / 0Ch, command sequence error: a protected write above unprotected data, on a drive that does
    /// not promote it.
    SequenceError,
    /// 0h / 80h: the range ends beyond the namespace.
    LbaOutOfRange,
    /// 0h / 82h, namespace not ready: the drive has no power. With "do not retry" clear, since the same
    /// command may succeed later.
    NotReady,
    /// 1h / 83h, command size limit exceeded: a copy of more ranges, or of more data, than the drive takes.
    SizeLimit,
    /// 1h / B6h, invalid zone operation request: a Zone Random Write Area where there can be none, or an
    /// append to a zone that has one.
    ZoneInvalidOperation,
    /// 1h / B7h: no Zone Random Write Area is left.
    ZrwaUnavailable,
    /// 1h / B8h, zone boundary error: beyond the zone's capacity, or across zones.
    ZoneBoundary,
    /// 1h / B9h.
    ZoneFull,
    /// 1h / BAh.
    ZoneReadOnly,
    /// 1h / BBh.
    ZoneOffline,
    /// 1h / BCh: not at the write pointer, or outside the Zone Random Write Area.
    ZoneInvalidWrite,
    /// 1h / BDh.
    TooManyActiveZones,
    /// 1h / BEh.
    TooManyOpenZones,
    /// 1h / BFh.
    ZoneInvalidTransition,
    /// 2h / 80h: the flash has no room left to write (its spare blocks are used up).
    WriteFault,
    /// 2h / 81h: what was stored there can't be read back.
    UnrecoveredRead,
}

impl Status {
    /// The NVMe status field: status code type in bits 10:8, status code in bits 7:0 (NVM Express
    /// Base 2.0, figure 88).
    pub const fn code(self) -> u16 {
        match self {
            Self::Success => 0x000,
            Self::InvalidOpcode => 0x001,
            Self::InvalidField => 0x002,
            Self::SequenceError => 0x00c,
            Self::LbaOutOfRange => 0x080,
            Self::NotReady => 0x082,
            Self::SizeLimit => 0x183,
            Self::ZoneInvalidOperation => 0x1b6,
            Self::ZrwaUnavailable => 0x1b7,
            Self::ZoneBoundary => 0x1b8,
            Self::ZoneFull => 0x1b9,
            Self::ZoneReadOnly => 0x1ba,
            Self::ZoneOffline => 0x1bb,
            Self::ZoneInvalidWrite => 0x1bc,
            Self::TooManyActiveZones => 0x1bd,
            Self::TooManyOpenZones => 0x1be,
            Self::ZoneInvalidTransition => 0x1bf,
            Self::WriteFault => 0x280,
            Self::UnrecoveredRead => 0x281,
        }
    }
}
