//! Fabrics commands: Connect, and properties.

use zerocopy::FromBytes;

use crate::auth::MESSAGE_MOST;
use crate::status::Status;
use crate::wire::{ConnectData, FabricsSqe, SGL_IN_CAPSULE, name_of};

/// A property of a controller, by its offset; of eight bytes, or of four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Property {
    /// Where.
    pub offset: u32,
    /// Eight bytes.
    pub is_long: bool,
}

/// A host's request to connect a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Connect {
    pub(crate) queue: u16,
    /// Entries.
    pub(crate) size: u32,
    /// The host ignores SQHD.
    pub(crate) no_flow_control: bool,
    pub(crate) keep_alive_ms: u32,
    pub(crate) host_id: [u8; 16],
    pub(crate) controller: u16,
    pub(crate) subsystem: String,
    pub(crate) host: String,
}

/// A queue that is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connected {
    /// The controller.
    pub controller: u16,
    /// The queue: 0 for admin commands.
    pub queue: u16,
    /// Its entries.
    pub size: u32,
    /// Submission queue flow control is off: completions have no head.
    pub no_flow_control: bool,
    /// Of a discovery controller.
    pub is_discovery: bool,
}

/// A fabrics command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FabricsCommand {
    /// 01h.
    Connect,
    /// 04h.
    Get(Property),
    /// 00h, with its value.
    Set(Property, u64),
    /// 05h: a message of the host, of so many bytes.
    AuthenticationSend(u32),
    /// 06h: the message that is due to the host, in so many bytes.
    AuthenticationReceive(u32),
}

/// Where Connect was wrong: what its completion says beside 182h (Base 2.0, figure 546).
const fn in_entry(at: u32) -> (Status, u32) {
    (Status::CONNECT_INVALID, at)
}
const fn in_data(at: u32) -> (Status, u32) {
    (Status::CONNECT_INVALID, at | 1 << 16)
}
pub(crate) const NO_SUBSYSTEM: (Status, u32) = in_data(256);
pub(crate) const NO_HOST: (Status, u32) = in_data(512);
pub(crate) const NO_CONTROLLER: (Status, u32) = in_data(16);
pub(crate) const NO_HOST_ID: (Status, u32) = in_data(0);
pub(crate) const BAD_QUEUE: (Status, u32) = in_entry(42);
pub(crate) const BAD_SIZE: (Status, u32) = in_entry(44);

/// The length of a message of the one protocol of authentication there is (figures 386 and 391).
fn message_bytes(sqe: &FabricsSqe) -> Result<u32, Status> {
    let (protocol, specific) =
        (sqe.word42.get() >> 8, [sqe.word40.get() >> 8, sqe.word42.get() & 0xff]);
    let bytes = u32::from(sqe.word44.get()) | u32::from(sqe.word46.get()) << 16;
    let is_right = protocol == 0xe9 && specific == [1, 1];
    if is_right && (1..=MESSAGE_MOST as u32).contains(&bytes) && sqe.sgl.length.get() == bytes {
        Ok(bytes)
    } else {
        Err(Status::INVALID_FIELD)
    }
}

const CONNECT: u8 = 0x01;
const SEND: u8 = 0x05;
const RECEIVE: u8 = 0x06;

impl FabricsSqe {
    /// True of a message of an authentication, or a request for one: a queue takes them before its host is known.
    pub const fn is_authentication(&self) -> bool {
        matches!(self.kind, SEND | RECEIVE)
    }

    /// Bytes that the host is to be invited to send, if they do not come along.
    ///
    /// # Errors
    /// If they have to come along, and do not.
    pub const fn invited_bytes(&self) -> Result<usize, Status> {
        match self.kind {
            CONNECT if self.sgl.id != SGL_IN_CAPSULE => Err(Status::SGL_TYPE),
            SEND => Ok(self.sgl.length.get() as usize),
            _ => Ok(0),
        }
    }
}

impl FabricsCommand {
    /// Which fabrics command it is.
    ///
    /// # Errors
    /// If it is none that is known.
    pub fn parse(sqe: &FabricsSqe) -> Result<Self, Status> {
        let offset = u32::from(sqe.word44.get()) | u32::from(sqe.word46.get()) << 16;
        let property = || match sqe.word40.get() & 7 {
            0 => Ok(Property { offset, is_long: false }),
            1 => Ok(Property { offset, is_long: true }),
            _ => Err(Status::INVALID_FIELD),
        };
        match sqe.kind {
            0x00 => Ok(Self::Set(property()?, sqe.value.get())),
            CONNECT => Ok(Self::Connect),
            0x04 => Ok(Self::Get(property()?)),
            SEND => Ok(Self::AuthenticationSend(message_bytes(sqe)?)),
            RECEIVE => Ok(Self::AuthenticationReceive(message_bytes(sqe)?)),
            _ => Err(Status::INVALID_OPCODE),
        }
    }
}

impl Connect {
    pub(crate) fn parse(sqe: &FabricsSqe, data: &[u8]) -> Result<Self, (Status, u32)> {
        if sqe.word40.get() != 0 {
            return Err((Status::CONNECT_FORMAT, 0));
        }
        if sqe.sgl.id != SGL_IN_CAPSULE {
            return Err((Status::SGL_TYPE, 0));
        }
        let Ok((data, _)) = ConnectData::ref_from_prefix(data) else {
            return Err((Status::SGL_LENGTH, 0));
        };
        Ok(Self {
            queue: sqe.word42.get(),
            size: u32::from(sqe.word44.get()) + 1,
            no_flow_control: sqe.word46.get() & 1 << 2 != 0,
            keep_alive_ms: sqe.value.get() as u32,
            host_id: data.host_id,
            controller: data.controller.get(),
            subsystem: name_of(&data.subsystem).ok_or(NO_SUBSYSTEM)?.to_owned(),
            host: name_of(&data.host).ok_or(NO_HOST)?.to_owned(),
        })
    }
}
