//! The protocol between programs with `libleyden.so` and a served drive, a protocol of our own.
//!
//! A client says [`Hello`], and the server [`Welcome`]. Then come requests, each a [`Request`] and its payload, and
//! replies, each a [`Reply`] and its payload. A reply has the tag of its request, and comes when the drive has answered:
//! in any order. All numbers are little-endian, offsets and lengths are in bytes. What is reserved is zero.

use thiserror::Error;

/// The newest version of the protocol, and so far the only one.
pub const VERSION: u16 = 1;
/// Bytes of a [`Hello`] and of a [`Welcome`].
pub const GREETING_BYTES: usize = 16;
/// Bytes of a [`Request`].
pub const REQUEST_BYTES: usize = 32;
/// Bytes of a [`Reply`].
pub const REPLY_BYTES: usize = 24;
/// Bytes of a [`ZoneLine`].
pub const ZONE_BYTES: usize = 40;
/// The most bytes of a read, of a write, and of the payload of any reply.
pub const TRANSFER_MOST: u32 = 32 << 20;

const MAGIC: &[u8; 8] = b"LEYDPROG";
/// The first bytes of a request.
const REQUEST_MAGIC: u16 = 0x714c;
/// The first bytes of a reply.
const REPLY_MAGIC: u16 = 0x724c;

/// The other side does not speak the protocol: the connection is of no use any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ProgramsError {
    /// A message does not begin as each does.
    #[error("the message does not begin as it must")]
    Magic,
    /// A field that is reserved says something.
    #[error("a field that must be zero is not")]
    Reserved,
    /// There is no such request.
    #[error("there is no request of kind {0}")]
    Kind(u8),
    /// A payload is longer than any, or one that must be there is not.
    #[error("a payload of {0} bytes is not read here")]
    Length(u32),
}

/// Takes numbers out of a message, which is long enough.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_at(N);
        self.0 = rest;
        first.try_into().expect("N bytes")
    }
    fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
    fn zero<const N: usize>(&mut self) -> Result<(), ProgramsError> {
        if self.take::<N>() == [0; N] { Ok(()) } else { Err(ProgramsError::Reserved) }
    }
}

/// A message of `N` bytes from its fields.
fn message<const N: usize>(fields: &[&[u8]]) -> [u8; N] {
    fields.concat().try_into().expect("fields of a message")
}

/// The first thing that a client says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// It speaks these versions: the first.
    pub oldest: u16,
    /// And the last.
    pub newest: u16,
    /// It wants to be the only one that says so: a file system that must not be mounted twice.
    pub claims: bool,
}

impl Hello {
    /// As bytes.
    pub fn encode(self) -> [u8; GREETING_BYTES] {
        let flags = u32::from(self.claims);
        let [oldest, newest] = [self.oldest, self.newest].map(u16::to_le_bytes);
        message(&[MAGIC, &oldest, &newest, &flags.to_le_bytes()])
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn parse(bytes: &[u8; GREETING_BYTES]) -> Result<Self, ProgramsError> {
        let mut fields = Fields(bytes);
        if fields.take() != *MAGIC {
            return Err(ProgramsError::Magic);
        }
        let (oldest, newest, flags) = (fields.u16(), fields.u16(), fields.u32());
        // Flags of later versions are none of this one.
        if flags > 1 && newest <= VERSION {
            return Err(ProgramsError::Reserved);
        }
        Ok(Self { oldest, newest, claims: flags & 1 != 0 })
    }

    /// The version to go on with; `None` if there is none.
    pub const fn version(self) -> Option<u16> {
        let speaks = self.oldest <= VERSION && VERSION <= self.newest;
        if speaks { Some(VERSION) } else { None }
    }
}

/// The first thing that a server says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Welcome {
    /// Requests may come, in this version.
    Version(u16),
    /// The server speaks another version, this one.
    Other(u16),
    /// Another program has claimed the drive.
    Claimed,
}

impl Welcome {
    /// As bytes.
    pub fn encode(self) -> [u8; GREETING_BYTES] {
        let (version, outcome) = match self {
            Self::Version(version) => (version, 0_u16),
            Self::Other(version) => (version, 1),
            Self::Claimed => (VERSION, 2),
        };
        message(&[MAGIC, &version.to_le_bytes(), &outcome.to_le_bytes(), &[0; 4]])
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn parse(bytes: &[u8; GREETING_BYTES]) -> Result<Self, ProgramsError> {
        let mut fields = Fields(bytes);
        if fields.take() != *MAGIC {
            return Err(ProgramsError::Magic);
        }
        let (version, outcome) = (fields.u16(), fields.u16());
        fields.zero::<4>()?;
        match outcome {
            0 => Ok(Self::Version(version)),
            1 => Ok(Self::Other(version)),
            2 => Ok(Self::Claimed),
            _ => Err(ProgramsError::Reserved),
        }
    }
}

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// The identity of the drive: JSON.
    Identify = 1,
    /// `length` bytes from `offset` on.
    Read,
    /// The payload, at `offset`; with [`FUA`] and [`PLP`].
    Write,
    /// The payload, to the zone that begins at `offset`; with the same. The reply's value is where it lies.
    Append,
    /// Acknowledged data survives.
    Flush,
    /// `length` bytes from `offset` on are not needed.
    Trim,
    /// Zone send action `length` to the zone at `offset`; with [`ALL_ZONES`] and [`WITH_AREA`].
    Zone,
    /// `length` zones at most, from the one at `offset` on: [`ZoneLine`]s.
    Zones,
    /// The power fails: JSON.
    Cut,
    /// The power returns, with `length` nanofarads if that is not 0: JSON.
    Restore,
    /// Counters: JSON.
    Stats,
    /// Every counter of every layer: JSON.
    AllStats,
    /// The last power cut: JSON.
    LastCut,
    /// The payload is noted in the recording.
    Mark,
}

impl Kind {
    const ALL: [Self; 14] = [
        Self::Identify,
        Self::Read,
        Self::Write,
        Self::Append,
        Self::Flush,
        Self::Trim,
        Self::Zone,
        Self::Zones,
        Self::Cut,
        Self::Restore,
        Self::Stats,
        Self::AllStats,
        Self::LastCut,
        Self::Mark,
    ];

    /// The longest payload of such a request.
    const fn payload_most(self) -> u32 {
        match self {
            Self::Write | Self::Append => TRANSFER_MOST,
            Self::Mark => 64 << 10,
            _ => 0,
        }
    }
}

/// Flag of writes and appends: force unit access.
pub const FUA: u8 = 1;
/// Flag of writes and appends: to the protected region of the buffer.
pub const PLP: u8 = 2;
/// Flag of zone actions: every zone that it is meant for.
pub const ALL_ZONES: u8 = 1;
/// Flag of zone actions: the zone gets a Zone Random Write Area.
pub const WITH_AREA: u8 = 2;

/// A request, before its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its kind.
    pub kind: Kind,
    /// Flags of its kind.
    pub flags: u8,
    /// Bytes that follow.
    pub payload: u32,
    /// The client's own number for it.
    pub tag: u64,
    /// Where.
    pub offset: u64,
    /// How much, or what its kind says.
    pub length: u64,
}

impl Request {
    /// As bytes.
    pub fn encode(self) -> [u8; REQUEST_BYTES] {
        let head = [self.kind as u8, self.flags];
        let [tag, offset, length] = [self.tag, self.offset, self.length].map(u64::to_le_bytes);
        let (magic, payload) = (REQUEST_MAGIC.to_le_bytes(), self.payload.to_le_bytes());
        message(&[&magic, &head, &payload, &tag, &offset, &length])
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, ProgramsError> {
        let mut fields = Fields(bytes);
        if fields.u16() != REQUEST_MAGIC {
            return Err(ProgramsError::Magic);
        }
        let (code, flags, payload) = (fields.u8(), fields.u8(), fields.u32());
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == code);
        let kind = kind.ok_or(ProgramsError::Kind(code))?;
        if payload > kind.payload_most() {
            return Err(ProgramsError::Length(payload));
        }
        if flags > 3 {
            return Err(ProgramsError::Reserved);
        }
        Ok(Self {
            kind,
            flags,
            payload,
            tag: fields.u64(),
            offset: fields.u64(),
            length: fields.u64(),
        })
    }
}

/// How a request has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Well.
    Done,
    /// The drive says so: an NVMe status field, 11 bits and not 0.
    Status(u16),
    /// The power failed while it was under way.
    PowerLost,
    /// The image's file system is full.
    NoSpace,
    /// The image cannot be read or written.
    Image,
    /// The drive is not served any more.
    Gone,
    /// The power is on already, or off.
    Switch,
    /// There can be no drive with such a bank.
    Config,
    /// There is nothing of the kind.
    NotFound,
    /// The request is none that this drive knows.
    Argument,
}

impl Outcome {
    const FAILURES: [(Self, u16); 8] = [
        (Self::PowerLost, 0x8001),
        (Self::NoSpace, 0x8002),
        (Self::Image, 0x8003),
        (Self::Gone, 0x8004),
        (Self::Switch, 0x8005),
        (Self::Config, 0x8006),
        (Self::NotFound, 0x8007),
        (Self::Argument, 0x8008),
    ];

    fn code(self) -> u16 {
        match self {
            Self::Done => 0,
            Self::Status(code) => code,
            other => Self::FAILURES.iter().find(|it| it.0 == other).expect("one of these").1,
        }
    }

    fn from_code(code: u16) -> Option<Self> {
        match code {
            0 => Some(Self::Done),
            1..=0x7ff => Some(Self::Status(code)),
            _ => Self::FAILURES.iter().find(|it| it.1 == code).map(|it| it.0),
        }
    }
}

/// A reply, before its payload: what was asked for, or of a failure a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// How it has ended.
    pub outcome: Outcome,
    /// Bytes that follow.
    pub payload: u32,
    /// That of the request.
    pub tag: u64,
    /// A value that the request's kind defines; else 0.
    pub value: u64,
}

impl Reply {
    /// As bytes.
    pub fn encode(self) -> [u8; REPLY_BYTES] {
        let (magic, outcome) = (REPLY_MAGIC.to_le_bytes(), self.outcome.code().to_le_bytes());
        let [tag, value] = [self.tag, self.value].map(u64::to_le_bytes);
        message(&[&magic, &outcome, &self.payload.to_le_bytes(), &tag, &value])
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn parse(bytes: &[u8; REPLY_BYTES]) -> Result<Self, ProgramsError> {
        let mut fields = Fields(bytes);
        if fields.u16() != REPLY_MAGIC {
            return Err(ProgramsError::Magic);
        }
        let outcome = Outcome::from_code(fields.u16()).ok_or(ProgramsError::Reserved)?;
        let payload = fields.u32();
        if payload > TRANSFER_MOST {
            return Err(ProgramsError::Length(payload));
        }
        Ok(Self { outcome, payload, tag: fields.u64(), value: fields.u64() })
    }
}

/// A zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneLine {
    /// Its number.
    pub zone: u32,
    /// Its state, as in the ZNS Command Set.
    pub state: u8,
    /// It has a Zone Random Write Area.
    pub has_area: bool,
    /// The drive changed its state, and not the host.
    pub is_changed: bool,
    /// Offset of its first byte.
    pub start: u64,
    /// Its writable bytes.
    pub capacity: u64,
    /// Offset of its write pointer; all ones if there is none.
    pub write_pointer: u64,
    /// Bytes from its beginning that flash or the buffer holds.
    pub held: u64,
}

impl ZoneLine {
    /// As bytes.
    pub fn encode(self) -> [u8; ZONE_BYTES] {
        let flags = u8::from(self.has_area) | u8::from(self.is_changed) << 1;
        let numbers = [self.start, self.capacity, self.write_pointer, self.held];
        let [start, capacity, pointer, held] = numbers.map(u64::to_le_bytes);
        let zone = self.zone.to_le_bytes();
        message(&[&zone, &[self.state, flags, 0, 0], &start, &capacity, &pointer, &held])
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn parse(bytes: &[u8; ZONE_BYTES]) -> Result<Self, ProgramsError> {
        let mut fields = Fields(bytes);
        let (zone, state, flags) = (fields.u32(), fields.u8(), fields.u8());
        fields.zero::<2>()?;
        if flags > 3 {
            return Err(ProgramsError::Reserved);
        }
        Ok(Self {
            zone,
            state,
            has_area: flags & 1 != 0,
            is_changed: flags & 2 != 0,
            start: fields.u64(),
            capacity: fields.u64(),
            write_pointer: fields.u64(),
            held: fields.u64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = Kind> {
        prop::sample::select(Kind::ALL.to_vec())
    }

    fn outcomes() -> impl Strategy<Value = Outcome> {
        let failures = Outcome::FAILURES.map(|it| it.0).to_vec();
        prop_oneof![
            Just(Outcome::Done),
            (1_u16..0x800).prop_map(Outcome::Status),
            prop::sample::select(failures)
        ]
    }

    proptest! {
        #[test]
        fn messages_are_understood(
            kind in kinds(), outcome in outcomes(), flags in 0_u8..4, words: [u64; 4], payload: u32,
            versions: [u16; 2], claims: bool,
        ) {
            let [tag, offset, length, value] = words;
            let payload_in = payload.checked_rem(kind.payload_most() + 1).unwrap_or(0);
            let request = Request { kind, flags, payload: payload_in, tag, offset, length };
            prop_assert_eq!(Request::parse(&request.encode()), Ok(request));
            let reply = Reply { outcome, payload: payload % (TRANSFER_MOST + 1), tag, value };
            prop_assert_eq!(Reply::parse(&reply.encode()), Ok(reply));
            let hello = Hello { oldest: versions[0], newest: versions[1], claims };
            prop_assert_eq!(Hello::parse(&hello.encode()), Ok(hello));
            for welcome in [Welcome::Version(versions[0]), Welcome::Other(versions[0]), Welcome::Claimed] {
                prop_assert_eq!(Welcome::parse(&welcome.encode()), Ok(welcome));
            }
            let zone = ZoneLine {
                zone: payload, state: flags, has_area: claims, is_changed: flags == 1,
                start: tag, capacity: offset, write_pointer: length, held: value,
            };
            prop_assert_eq!(ZoneLine::parse(&zone.encode()), Ok(zone));
        }

        #[test]
        fn any_bytes_are_a_message_or_none(bytes: [u8; REQUEST_BYTES]) {
            let _ = (Request::parse(&bytes), Reply::parse(bytes[..REPLY_BYTES].try_into().unwrap()));
            let greeting = bytes[..GREETING_BYTES].try_into().unwrap();
            let _ = (Hello::parse(greeting), Welcome::parse(greeting));
        }
    }

    #[test]
    fn a_payload_that_nobody_would_read_is_refused() {
        let request =
            |kind, payload| Request { kind, flags: 0, payload, tag: 1, offset: 0, length: 0 };
        let too_long = Err(ProgramsError::Length(TRANSFER_MOST + 1));
        assert_eq!(Request::parse(&request(Kind::Write, TRANSFER_MOST + 1).encode()), too_long);
        assert_eq!(
            Request::parse(&request(Kind::Flush, 1).encode()),
            Err(ProgramsError::Length(1))
        );
        let reply = Reply { outcome: Outcome::Done, payload: TRANSFER_MOST + 1, tag: 0, value: 0 };
        assert_eq!(Reply::parse(&reply.encode()), Err(ProgramsError::Length(TRANSFER_MOST + 1)));
    }

    #[test]
    fn versions_are_settled_by_the_server() {
        let version = |oldest, newest| Hello { oldest, newest, claims: false }.version();
        assert_eq!(version(1, 1), Some(1));
        assert_eq!(version(1, 9), Some(1));
        assert_eq!((version(2, 9), version(0, 0), version(9, 1)), (None, None, None));
    }
}
