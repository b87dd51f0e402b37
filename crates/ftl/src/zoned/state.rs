//! The zone state machine: a pure table.
//!
//! NVMe Zoned Namespace Command Set 1.1, 2.1.1.3 (states and transitions), 2.1.1.4 (resources), 3.4.3
//! (Zone Management Send). Time, data and limits are not its business: what a transition needs of the
//! resources is for [`super::ZoneTable`].

use serde::{Deserialize, Serialize};

/// The state of a zone (ZNS 1.1, figure 37: the number is the field `ZS` of a zone descriptor).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum ZoneState {
    /// ZSE, 1h: nothing is written.
    Empty,
    /// ZSIO, 2h: opened by a write.
    ImplicitlyOpen,
    /// ZSEO, 3h: opened by a command.
    ExplicitlyOpen,
    /// ZSC, 4h: active, not open.
    Closed,
    /// ZSF, Eh: written to its end, or finished.
    Full,
    /// ZSRO, Dh: can only be read.
    ReadOnly,
    /// ZSO, Fh: can not be used any more.
    Offline,
}

/// An action on a zone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ZoneAction {
    /// Write, Write Zeroes, Zone Append, destination of a Copy: some of it, but not the last block.
    Write,
    /// Zone Management Send 03h.
    Open,
    /// 01h.
    Close,
    /// 02h.
    Finish,
    /// 04h.
    Reset,
    /// 05h.
    Offline,
    /// 10h, Set Zone Descriptor Extension.
    SetExtension,
    /// 11h (TP 4076), commits what a Zone Random Write Area holds. It opens a closed zone, and is
    /// legal only in zones with such an area, which [`super::ZoneTable`] knows.
    FlushZrwa,
}

impl ZoneAction {
    /// The zone send action (ZSA) of Zone Management Send; `None` of a write.
    pub const fn code(self) -> Option<u8> {
        match self {
            Self::Write => None,
            Self::Close => Some(0x01),
            Self::Finish => Some(0x02),
            Self::Open => Some(0x03),
            Self::Reset => Some(0x04),
            Self::Offline => Some(0x05),
            Self::SetExtension => Some(0x10),
            Self::FlushZrwa => Some(0x11),
        }
    }
}

/// Why a zone's state does not allow an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// 1BFh, Invalid Zone State Transition.
    InvalidTransition,
    /// 1B9h, Zone Is Full.
    Full,
    /// 1BAh, Zone Is Read Only.
    ReadOnly,
    /// 1BBh, Zone Is Offline.
    Offline,
}

type Cell = Result<ZoneState, Refusal>;

const INVALID: Cell = Err(Refusal::InvalidTransition);
const TO_EMPTY: Cell = Ok(ZoneState::Empty);
const TO_IMPLICIT: Cell = Ok(ZoneState::ImplicitlyOpen);
const TO_EXPLICIT: Cell = Ok(ZoneState::ExplicitlyOpen);
const TO_CLOSED: Cell = Ok(ZoneState::Closed);
const TO_FULL: Cell = Ok(ZoneState::Full);
const TO_OFFLINE: Cell = Ok(ZoneState::Offline);
const IS_FULL: Cell = Err(Refusal::Full);
const IS_READ_ONLY: Cell = Err(Refusal::ReadOnly);
const IS_OFFLINE: Cell = Err(Refusal::Offline);

/// By state, then by action, both in the order of their declaration. A write: 2.1.1.3.1 to .7; the
/// commands: 3.4.3.1.1 (Close), .2 (Finish), .3 (Open), .4 (Reset), .5 (Offline), .6 (Set Zone
/// Descriptor Extension).
#[rustfmt::skip]
const TABLE: [[Cell; 8]; 7] = [
    // Write         Open         Close      Finish     Reset      Offline     SetExtension FlushZrwa
    [TO_IMPLICIT,   TO_EXPLICIT, INVALID,   TO_FULL,   TO_EMPTY,  INVALID,    TO_CLOSED,   INVALID],
    [TO_IMPLICIT,   TO_EXPLICIT, TO_CLOSED, TO_FULL,   TO_EMPTY,  INVALID,    INVALID,     TO_IMPLICIT],
    [TO_EXPLICIT,   TO_EXPLICIT, TO_CLOSED, TO_FULL,   TO_EMPTY,  INVALID,    INVALID,     TO_EXPLICIT],
    [TO_IMPLICIT,   TO_EXPLICIT, TO_CLOSED, TO_FULL,   TO_EMPTY,  INVALID,    INVALID,     TO_IMPLICIT],
    [IS_FULL,       INVALID,     INVALID,   TO_FULL,   TO_EMPTY,  INVALID,    INVALID,     INVALID],
    [IS_READ_ONLY,  INVALID,     INVALID,   INVALID,   INVALID,   TO_OFFLINE, INVALID,     INVALID],
    [IS_OFFLINE,    INVALID,     INVALID,   INVALID,   INVALID,   TO_OFFLINE, INVALID,     INVALID],
];

impl ZoneState {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Empty,
        Self::ImplicitlyOpen,
        Self::ExplicitlyOpen,
        Self::Closed,
        Self::Full,
        Self::ReadOnly,
        Self::Offline,
    ];

    /// The state after `action`.
    ///
    /// # Errors
    /// Why the state does not allow it.
    ///
    /// ```
    /// use leyden_ftl::zoned::{Refusal, ZoneAction, ZoneState};
    ///
    /// assert_eq!(ZoneState::Empty.after(ZoneAction::Write), Ok(ZoneState::ImplicitlyOpen));
    /// assert_eq!(ZoneState::Full.after(ZoneAction::Write), Err(Refusal::Full));
    /// ```
    #[inline]
    pub const fn after(self, action: ZoneAction) -> Result<Self, Refusal> {
        TABLE[self as usize][action as usize]
    }

    /// The state after the power has failed (2.1.1.3): a zone whose write pointer has moved, or that
    /// has a descriptor extension or data in a Zone Random Write Area (`is_used`), is Closed if it was
    /// active; otherwise Empty.
    #[must_use]
    pub const fn after_power_loss(self, is_used: bool) -> Self {
        match self {
            Self::Full | Self::ReadOnly | Self::Offline => self,
            _ if is_used => Self::Closed,
            _ => Self::Empty,
        }
    }

    /// It takes an open resource (2.1.1.4.2).
    #[inline]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpen | Self::ExplicitlyOpen)
    }

    /// It takes an active resource (2.1.1.4.1).
    #[inline]
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }

    /// It takes no data until it is reset, if it ever does again.
    #[inline]
    pub const fn takes_no_more(self) -> bool {
        matches!(self, Self::Full | Self::ReadOnly | Self::Offline)
    }

    /// The value of the field `ZS` (figure 37).
    pub const fn code(self) -> u8 {
        match self {
            Self::Empty => 0x1,
            Self::ImplicitlyOpen => 0x2,
            Self::ExplicitlyOpen => 0x3,
            Self::Closed => 0x4,
            Self::ReadOnly => 0xd,
            Self::Full => 0xe,
            Self::Offline => 0xf,
        }
    }

    /// The state with this `ZS`; `None` if it is reserved.
    pub fn with_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::ImplicitlyOpen => "implicitly open",
            Self::ExplicitlyOpen => "explicitly open",
            Self::Closed => "closed",
            Self::Full => "full",
            Self::ReadOnly => "read only",
            Self::Offline => "offline",
        }
    }
}

impl ZoneAction {
    /// Those that Zone Management Send knows, with the values of its field `ZSA` (figure 28).
    pub const SENT: [(Self, u8); 7] = [
        (Self::Close, 0x01),
        (Self::Finish, 0x02),
        (Self::Open, 0x03),
        (Self::Reset, 0x04),
        (Self::Offline, 0x05),
        (Self::SetExtension, 0x10),
        (Self::FlushZrwa, 0x11),
    ];

    /// True if a command that selects all zones acts on those in `state`; others are left alone
    /// (3.4.3.1). `None` if there is no such command for all zones.
    pub const fn selects(self, state: ZoneState) -> Option<bool> {
        Some(match self {
            Self::Close => state.is_open(),
            Self::Finish => state.is_active(),
            Self::Open => matches!(state, ZoneState::Closed),
            Self::Reset => state.is_active() || matches!(state, ZoneState::Full),
            Self::Offline => matches!(state, ZoneState::ReadOnly),
            Self::Write | Self::SetExtension | Self::FlushZrwa => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules of every cell.
    #[test]
    fn every_cell_keeps_the_rules() {
        use ZoneAction as A;
        let actions =
            [A::Write, A::Open, A::Close, A::Finish, A::Reset, A::Offline, A::SetExtension];
        for state in ZoneState::ALL {
            for action in actions {
                let Ok(after) = state.after(action) else { continue };
                // Nothing but Reset leaves Full, and nothing leaves Offline.
                assert!(state != ZoneState::Full || action == A::Reset || after == state);
                assert!(state != ZoneState::Offline || after == state);
                // A command that selects all zones acts only where one for a single zone may.
                if action.selects(state) == Some(true) {
                    assert!(state.after(action).is_ok(), "{state:?} {action:?}");
                }
                // Faults alone make a zone read-only.
                assert_ne!(after, ZoneState::ReadOnly);
            }
            assert_eq!(ZoneState::with_code(state.code()), Some(state));
        }
        assert_eq!(ZoneState::with_code(0), None);
    }

    #[test]
    fn power_loss_closes_what_is_used() {
        for state in ZoneState::ALL {
            for is_used in [false, true] {
                let after = state.after_power_loss(is_used);
                assert!(!after.is_open());
                let stays =
                    matches!(state, ZoneState::Full | ZoneState::ReadOnly | ZoneState::Offline);
                assert_eq!(
                    stays,
                    after == state && !after.is_active() && state != ZoneState::Empty
                );
            }
        }
    }
}
