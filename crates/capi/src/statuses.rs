//! Statuses that calls return, one for each failure, and their names.

use std::ffi::CStr;
use std::io;

use leyden_config::LoadError;
use leyden_device::{SnapshotError, Status};
use leyden_image::ImageError;
use leyden_serve::{DirectError, Outcome, RemoteError};

use crate::types::*;

/// A failed call: its status, and a sentence.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: leyden_status,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: leyden_status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// A wrong argument.
    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(LEYDEN_E_ARGUMENT, text)
    }

    /// An NVMe status field.
    fn of_drive(code: u16) -> Self {
        let code = leyden_status::from(code);
        let name = name_of(code).to_string_lossy();
        Self::new(code, format!("{name} (NVMe status {code:03x}h)"))
    }

    /// The same, with what it is about before it.
    pub(crate) fn about(self, what: impl std::fmt::Display) -> Self {
        Self { text: format!("{what}: {}", self.text), ..self }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::of_drive(status.code())
    }
}

impl From<DirectError> for Failure {
    fn from(error: DirectError) -> Self {
        match error {
            DirectError::Drive(status) => status.into(),
            DirectError::Image(error) => error.into(),
            DirectError::PowerLost => Self::new(LEYDEN_E_POWER_LOST, error.to_string()),
            DirectError::Switch(_) => Self::new(LEYDEN_E_SWITCH, error.to_string()),
            DirectError::Stopped(_) => Self::new(LEYDEN_E_STOPPED, error.to_string()),
        }
    }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        let text = error.to_string();
        let status = match error {
            RemoteError::Failed(Outcome::Status(code), _) => return Self::of_drive(code),
            RemoteError::Failed(outcome, text) => return Self::new(of_outcome(outcome), text),
            RemoteError::Nobody(_) => {
                let remedy = "serve its image: leyden serve IMAGE --programs unix:PATH";
                return Self::new(LEYDEN_E_NOT_FOUND, format!("{text}; {remedy}"));
            }
            RemoteError::Claimed => LEYDEN_E_IN_USE,
            RemoteError::Version(_) => LEYDEN_E_FOREIGN,
            RemoteError::Gone(_) => LEYDEN_E_GONE,
        };
        Self::new(status, text)
    }
}

const fn of_outcome(outcome: Outcome) -> leyden_status {
    match outcome {
        Outcome::Done => LEYDEN_OK,
        Outcome::Status(code) => code as leyden_status,
        Outcome::PowerLost => LEYDEN_E_POWER_LOST,
        Outcome::NoSpace => LEYDEN_E_NO_SPACE,
        Outcome::Image => LEYDEN_E_IO,
        Outcome::Gone => LEYDEN_E_GONE,
        Outcome::Switch => LEYDEN_E_SWITCH,
        Outcome::Config => LEYDEN_E_CONFIG,
        Outcome::NotFound => LEYDEN_E_NOT_FOUND,
        Outcome::Argument => LEYDEN_E_ARGUMENT,
    }
}

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        let status = match &error {
            ImageError::Io(error) | ImageError::State(SnapshotError::Io(error)) => of_io(error),
            ImageError::Foreign(_) | ImageError::State(SnapshotError::Foreign(_)) => {
                LEYDEN_E_FOREIGN
            }
            ImageError::Damaged(_) | ImageError::State(SnapshotError::Corrupt(_)) => {
                LEYDEN_E_DAMAGED
            }
            ImageError::InUse => LEYDEN_E_IN_USE,
            ImageError::Config(_) | ImageError::State(SnapshotError::Config(_)) => LEYDEN_E_CONFIG,
            ImageError::Diverged(_) => LEYDEN_E_DIVERGED,
        };
        Self::new(status, with_causes(&error))
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let status = match &error {
            LoadError::Read { source, .. } => of_io(source),
            LoadError::Invalid(_) => LEYDEN_E_CONFIG,
        };
        Self::new(status, error.to_string())
    }
}

fn of_io(error: &io::Error) -> leyden_status {
    match error.kind() {
        io::ErrorKind::NotFound => LEYDEN_E_NOT_FOUND,
        io::ErrorKind::AlreadyExists => LEYDEN_E_EXISTS,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LEYDEN_E_NO_SPACE,
        _ => LEYDEN_E_IO,
    }
}

/// An error, and what has led to it.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The name of a status.
pub(crate) const fn name_of(status: leyden_status) -> &'static CStr {
    match status {
        LEYDEN_OK => c"Success",
        LEYDEN_E_ARGUMENT => c"Invalid Argument",
        LEYDEN_E_NOT_FOUND => c"Not Found",
        LEYDEN_E_EXISTS => c"Exists Already",
        LEYDEN_E_IN_USE => c"Image In Use",
        LEYDEN_E_FOREIGN => c"Not An Image",
        LEYDEN_E_DAMAGED => c"Image Damaged",
        LEYDEN_E_DIVERGED => c"Image Of Another Version",
        LEYDEN_E_CONFIG => c"Impossible Configuration",
        LEYDEN_E_IO => c"Image Input/Output Error",
        LEYDEN_E_NO_SPACE => c"File System Full",
        LEYDEN_E_POWER_LOST => c"Power Lost",
        LEYDEN_E_SWITCH => c"Power On Or Off Already",
        LEYDEN_E_STOPPED => c"Drive Stopped",
        LEYDEN_E_NOT_ZONED => c"Not A Zoned Drive",
        LEYDEN_E_BUG => c"Bug In Leyden",
        LEYDEN_E_GONE => c"Server Gone",
        LEYDEN_NVME_INVALID_OPCODE => c"Invalid Command Opcode",
        LEYDEN_NVME_INVALID_FIELD => c"Invalid Field In Command",
        LEYDEN_NVME_SEQUENCE_ERROR => c"Command Sequence Error",
        LEYDEN_NVME_LBA_OUT_OF_RANGE => c"LBA Out Of Range",
        LEYDEN_NVME_NOT_READY => c"Namespace Not Ready",
        LEYDEN_NVME_SIZE_LIMIT => c"Command Size Limit Exceeded",
        LEYDEN_NVME_ZONE_INVALID_OPERATION => c"Invalid Zone Operation Request",
        LEYDEN_NVME_ZRWA_UNAVAILABLE => c"Zone Random Write Area Resources Unavailable",
        LEYDEN_NVME_ZONE_BOUNDARY => c"Zone Boundary Error",
        LEYDEN_NVME_ZONE_FULL => c"Zone Is Full",
        LEYDEN_NVME_ZONE_READ_ONLY => c"Zone Is Read Only",
        LEYDEN_NVME_ZONE_OFFLINE => c"Zone Is Offline",
        LEYDEN_NVME_ZONE_INVALID_WRITE => c"Zone Invalid Write",
        LEYDEN_NVME_TOO_MANY_ACTIVE => c"Too Many Active Zones",
        LEYDEN_NVME_TOO_MANY_OPEN => c"Too Many Open Zones",
        LEYDEN_NVME_ZONE_INVALID_TRANSITION => c"Invalid Zone State Transition",
        LEYDEN_NVME_WRITE_FAULT => c"Write Fault",
        LEYDEN_NVME_UNRECOVERED_READ => c"Unrecovered Read Error",
        _ => c"Unknown Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_of_the_drive_has_its_constant_and_name() {
        for (status, code) in [
            (Status::Success, LEYDEN_OK),
            (Status::InvalidOpcode, LEYDEN_NVME_INVALID_OPCODE),
            (Status::InvalidField, LEYDEN_NVME_INVALID_FIELD),
            (Status::SequenceError, LEYDEN_NVME_SEQUENCE_ERROR),
            (Status::LbaOutOfRange, LEYDEN_NVME_LBA_OUT_OF_RANGE),
            (Status::NotReady, LEYDEN_NVME_NOT_READY),
            (Status::SizeLimit, LEYDEN_NVME_SIZE_LIMIT),
            (Status::ZoneInvalidOperation, LEYDEN_NVME_ZONE_INVALID_OPERATION),
            (Status::ZrwaUnavailable, LEYDEN_NVME_ZRWA_UNAVAILABLE),
            (Status::ZoneBoundary, LEYDEN_NVME_ZONE_BOUNDARY),
            (Status::ZoneFull, LEYDEN_NVME_ZONE_FULL),
            (Status::ZoneReadOnly, LEYDEN_NVME_ZONE_READ_ONLY),
            (Status::ZoneOffline, LEYDEN_NVME_ZONE_OFFLINE),
            (Status::ZoneInvalidWrite, LEYDEN_NVME_ZONE_INVALID_WRITE),
            (Status::TooManyActiveZones, LEYDEN_NVME_TOO_MANY_ACTIVE),
            (Status::TooManyOpenZones, LEYDEN_NVME_TOO_MANY_OPEN),
            (Status::ZoneInvalidTransition, LEYDEN_NVME_ZONE_INVALID_TRANSITION),
            (Status::WriteFault, LEYDEN_NVME_WRITE_FAULT),
            (Status::UnrecoveredRead, LEYDEN_NVME_UNRECOVERED_READ),
        ] {
            assert_eq!(leyden_status::from(status.code() as i16), code, "{status:?}");
            assert_ne!(name_of(code), c"Unknown Status", "{status:?}");
        }
        assert_eq!(name_of(-99), c"Unknown Status");
    }
}
