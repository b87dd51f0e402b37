//! Admin commands: what a controller answers. No command is longer than its answer: none of them asks a drive.

mod features;
mod identify;
mod logs;

pub use logs::Health;

use std::net::IpAddr;

use crate::io::Transfer;
use crate::status::Status;
use crate::subsystem::Subsystem;
use crate::wire::Sqe;

/// How an admin command ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It has ended.
    Done {
        /// How.
        status: Status,
        /// Double words 0 and 1 of the completion.
        result: u64,
        /// The data for the host.
        data: Vec<u8>,
    },
    /// A request for events is held: [`Subsystem::event`] says when it ends.
    Held,
}

/// Facts that a controller cannot know by itself.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// A clock that only goes on.
    pub now_ms: u64,
    /// How each namespace's drive is, if [`wants_health`]: `None` for one without power.
    pub health: Vec<Option<Health>>,
    /// Where the host has reached the server.
    pub address: Option<(IpAddr, u16)>,
}

type Done = Result<(u64, Vec<u8>), Status>;

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const ABORT: u8 = 0x08;
const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0a;
const EVENT_REQUEST: u8 = 0x0c;
const KEEP_ALIVE: u8 = 0x18;
/// Opcodes of admin commands that there are.
const OPCODES: [u8; 7] =
    [GET_LOG_PAGE, IDENTIFY, ABORT, SET_FEATURES, GET_FEATURES, EVENT_REQUEST, KEEP_ALIVE];

/// The first bit of DW0 of Abort's completion: the command was not aborted.
const NOT_ABORTED: u64 = 1;

/// The data that goes with an admin command: its direction is in the opcode, and how much it is in its SGL.
pub const fn transfer(sqe: &Sqe) -> Transfer {
    let bytes = sqe.sgl.length.get() as usize;
    match sqe.opcode & 3 {
        1 if bytes > 0 => Transfer::FromHost(bytes),
        2 => Transfer::ToHost(bytes),
        _ => Transfer::None,
    }
}

/// True if the answer tells how drives are.
pub const fn wants_health(sqe: &Sqe) -> bool {
    sqe.opcode == GET_LOG_PAGE && sqe.cdw10.get() & 0xff == logs::HEALTH as u32
}

impl Subsystem {
    /// Answers an admin command of `controller`.
    pub fn admin(&mut self, controller: u16, sqe: &Sqe, data: &[u8], around: &Around) -> Answer {
        if sqe.opcode == EVENT_REQUEST {
            let held = self
                .ready(controller)
                .and_then(|()| self.controller_mut(controller)?.events.hold(sqe.cid.get()));
            return match held {
                Ok(()) => Answer::Held,
                Err(status) => Answer::Done { status, result: 0, data: Vec::new() },
            };
        }
        match self.answer(controller, sqe, data, around) {
            Ok((_, data)) if data.len() > sqe.sgl.length.get() as usize => {
                Answer::Done { status: Status::SGL_LENGTH, result: 0, data: Vec::new() }
            }
            Ok((result, data)) => Answer::Done { status: Status::SUCCESS, result, data },
            Err(status) => Answer::Done { status, result: 0, data: Vec::new() },
        }
    }

    /// Whether a controller takes commands.
    fn ready(&self, controller: u16) -> Result<(), Status> {
        if self.controller(controller)?.is_ready() { Ok(()) } else { Err(Status::SEQUENCE) }
    }

    fn answer(&mut self, controller: u16, sqe: &Sqe, data: &[u8], around: &Around) -> Done {
        self.ready(controller)?;
        let is_discovery = self.controller(controller)?.is_discovery();
        match sqe.opcode {
            GET_LOG_PAGE => self.log_page(controller, sqe, around),
            IDENTIFY => self.identify(controller, sqe).map(|data| (0, data)),
            GET_FEATURES => features::get_feature(self.controller(controller)?, sqe),
            SET_FEATURES => {
                let controller = self.controller_mut(controller)?;
                features::set_feature(controller, sqe, data, around.now_ms)
                    .map(|it| (it, Vec::new()))
            }
            ABORT if !is_discovery => Ok((NOT_ABORTED, Vec::new())),
            KEEP_ALIVE => {
                let controller = self.controller_mut(controller)?;
                if controller.keep_alive_ms == 0 {
                    return Err(Status::KEEP_ALIVE);
                }
                controller.hear(around.now_ms);
                Ok((0, Vec::new()))
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::events::Event;
    use crate::subsystem::tests::{ready, subsystem};

    /// An admin command with room for `bytes`.
    pub(crate) fn sqe(opcode: u8, nsid: u32, cdw10: u32, cdw11: u32, bytes: u32) -> Sqe {
        let mut sqe = Sqe { opcode, flags: 0x40, nsid: nsid.into(), ..Sqe::default() };
        (sqe.cdw10, sqe.cdw11) = (cdw10.into(), cdw11.into());
        sqe.sgl.length = bytes.into();
        sqe
    }

    pub(crate) fn ask(subsystem: &mut Subsystem, controller: u16, sqe: &Sqe) -> Done {
        match subsystem.admin(controller, sqe, &[], &Around::default()) {
            Answer::Done { status, result, data } if status.is_success() => Ok((result, data)),
            Answer::Done { status, .. } => Err(status),
            Answer::Held => panic!("it is held"),
        }
    }

    #[test]
    fn a_controller_that_is_not_enabled_takes_nothing() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let identify = sqe(IDENTIFY, 0, 1, 0, 4_096);
        assert!(ask(&mut subsystem, number, &identify).is_ok());
        let cc = crate::Property { offset: 0x14, is_long: false };
        subsystem.set_property(number, cc, 0x0046_0060).unwrap();
        assert_eq!(ask(&mut subsystem, number, &identify), Err(Status::SEQUENCE));
        assert_eq!(ask(&mut subsystem, 77, &identify), Err(Status::SEQUENCE));
    }

    #[test]
    fn unknown_commands_are_invalid_opcodes_and_short_room_a_length_error() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        for opcode in [0x00, 0x01, 0x04, 0x05, 0x0d, 0x10, 0x11, 0x14, 0x80, 0x84, 0xff] {
            let refused = ask(&mut subsystem, number, &sqe(opcode, 1, 0, 0, 4_096));
            assert_eq!(refused, Err(Status::INVALID_OPCODE), "{opcode:#x}");
        }
        let short = sqe(IDENTIFY, 0, 1, 0, 4_092);
        assert_eq!(ask(&mut subsystem, number, &short), Err(Status::SGL_LENGTH));
        assert_eq!(ask(&mut subsystem, number, &sqe(ABORT, 0, 1, 0, 0)).unwrap().0, 1);
    }

    #[test]
    fn keep_alive_keeps_a_controller_and_needs_a_time() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let keep = sqe(KEEP_ALIVE, 0, 0, 0, 0);
        let around = Around { now_ms: 4_000, ..Around::default() };
        subsystem.admin(number, &keep, &[], &around);
        assert!(subsystem.expired(8_999).is_empty());
        assert_eq!(subsystem.expired(9_001), [number]);
        let never = sqe(SET_FEATURES, 0, 0x0f, 0, 0);
        ask(&mut subsystem, number, &never).unwrap();
        assert_eq!(ask(&mut subsystem, number, &keep), Err(Status::KEEP_ALIVE));
    }

    #[test]
    fn events_are_held_told_and_read() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let mut request = sqe(EVENT_REQUEST, 0, 0, 0, 0);
        request.cid = 0x1f.into();
        assert_eq!(subsystem.admin(number, &request, &[], &Around::default()), Answer::Held);
        ask(&mut subsystem, number, &sqe(SET_FEATURES, 0, 0x0b, 1 << 8, 0)).unwrap();
        subsystem.raise(Event::NamespaceChanged(2));
        assert_eq!(subsystem.event(number), Some((0x1f, 0x0004_0002)));
        let read = sqe(GET_LOG_PAGE, u32::MAX, 0x03ff_0004, 0, 4_096);
        let (_, page) = ask(&mut subsystem, number, &read).unwrap();
        assert_eq!((&page[..8], page.len()), (&[2, 0, 0, 0, 0, 0, 0, 0][..], 4_096));
        let (_, page) = ask(&mut subsystem, number, &read).unwrap();
        assert_eq!(page[..4], [0; 4], "it was read");
    }
}
