//! How commands end: status code type, status code, and whether to try again.

use leyden_device::Status as DriveStatus;

/// The status field of a completion (NVM Express Base 2.0, figure 94).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    code: u16,
    may_retry: bool,
}

/// One that stays as it is, however often the host tries ("do not retry").
const fn firm(code: u16) -> Status {
    Status { code, may_retry: false }
}

/// One that may go away.
const fn passing(code: u16) -> Status {
    Status { code, may_retry: true }
}

#[expect(missing_docs, reason = "the names are the specification's")]
impl Status {
    pub const SUCCESS: Self = passing(0x000);
    pub const INVALID_OPCODE: Self = firm(0x001);
    pub const INVALID_FIELD: Self = firm(0x002);
    pub const INTERNAL: Self = firm(0x006);
    pub const DATA_TRANSFER: Self = passing(0x004);
    pub const POWER_LOST: Self = passing(0x005);
    pub const NO_MEMORY: Self = passing(0x006);
    pub const INVALID_NAMESPACE: Self = firm(0x00b);
    pub const SEQUENCE: Self = firm(0x00c);
    pub const SGL_LENGTH: Self = firm(0x00f);
    pub const SGL_TYPE: Self = firm(0x011);
    pub const PRP_OFFSET: Self = firm(0x013);
    pub const SGL_OFFSET: Self = firm(0x016);
    pub const KEEP_ALIVE: Self = firm(0x01a);
    pub const TRANSIENT_TRANSPORT: Self = passing(0x022);
    pub const LBA_OUT_OF_RANGE: Self = firm(0x080);
    pub const CAPACITY_EXCEEDED: Self = firm(0x081);
    pub const NOT_READY: Self = passing(0x082);
    pub const COMPLETION_QUEUE: Self = firm(0x100);
    pub const QUEUE_NUMBER: Self = firm(0x101);
    pub const QUEUE_SIZE: Self = firm(0x102);
    pub const EVENT_LIMIT: Self = firm(0x105);
    pub const VECTOR: Self = firm(0x108);
    pub const INVALID_LOG_PAGE: Self = firm(0x109);
    pub const QUEUE_DELETION: Self = firm(0x10c);
    pub const NOT_SAVEABLE: Self = firm(0x10d);
    pub const NOT_CHANGEABLE: Self = firm(0x10e);
    pub const CONNECT_FORMAT: Self = firm(0x180);
    pub const CONNECT_BUSY: Self = passing(0x181);
    pub const CONNECT_INVALID: Self = firm(0x182);
    pub const CONNECT_HOST: Self = firm(0x184);
    pub const NOT_AUTHENTICATED: Self = firm(0x191);
    pub const SIZE_LIMIT: Self = firm(0x183);
    pub const ZONE_OFFLINE: Self = firm(0x1bb);
    pub const WRITE_FAULT: Self = firm(0x280);
    pub const UNRECOVERED_READ: Self = firm(0x281);
    pub const COMPARE_FAILURE: Self = firm(0x285);
}

impl Status {
    /// Status code type in bits 10:8, status code in bits 7:0.
    pub const fn code(self) -> u16 {
        self.code
    }

    /// As a completion has it, with the phase bit clear.
    pub const fn field(self) -> u16 {
        self.code << 1 | if self.may_retry { 0 } else { 1 << 15 }
    }

    /// True if the command has done what it was asked.
    pub const fn is_success(self) -> bool {
        self.code == 0
    }
}

impl From<DriveStatus> for Status {
    /// A host that is told "do not retry" gives up at once; one that is not tries five times more (Linux). Only a drive
    /// without power may answer otherwise later.
    fn from(status: DriveStatus) -> Self {
        match status {
            DriveStatus::Success => Self::SUCCESS,
            DriveStatus::NotReady => Self::NOT_READY,
            other => firm(other.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_that_of_a_completion() {
        assert_eq!(Status::SUCCESS.field(), 0);
        // SC << 1, SCT << 9, DNR << 15: what Linux prints as 0x4182 is this without the phase bit.
        assert_eq!(Status::CONNECT_INVALID.field() >> 1, 0x4182);
        assert_eq!(Status::NOT_READY.field() >> 1, 0x0082);
        assert_eq!(Status::from(DriveStatus::ZoneInvalidWrite).field() >> 1, 0x41bc);
        assert_eq!(Status::from(DriveStatus::NotReady), Status::NOT_READY);
    }
}
