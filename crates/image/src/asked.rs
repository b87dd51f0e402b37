//! Parameters of commands beside their range, as logs and recordings keep them.

use leyden_device::{Action, Command, Lba, ZoneAction};

use crate::Places;

/// Parameters of a write or an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// Force unit access.
    pub fua: bool,
    /// Selective-PLP's flag: the data goes to the protected region of the buffer.
    pub plp: bool,
}

impl WriteFlags {
    /// Force unit access, or not, and nothing else.
    pub const fn fua(fua: bool) -> Self {
        Self { fua, plp: false }
    }

    /// The same, but without force unit access if it is to be `left_out`.
    #[must_use]
    pub const fn but_fua(self, left_out: bool) -> Self {
        Self { fua: self.fua && !left_out, plp: self.plp }
    }

    pub(crate) const fn bits(self) -> u8 {
        self.fua as u8 | (self.plp as u8) << 1
    }

    /// `None` if some of the bits mean nothing.
    pub(crate) const fn from_bits(bits: u8) -> Option<Self> {
        if bits > 3 { None } else { Some(Self { fua: bits & 1 != 0, plp: bits & 2 != 0 }) }
    }

    /// `command` with these flags.
    pub(crate) fn of(self, command: Command<Places>) -> Command<Places> {
        command.fua(self.fua).plp(self.plp)
    }
}

/// Zone Management Send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneAsk {
    /// The action: not [`ZoneAction::Write`], and not [`ZoneAction::SetExtension`], which carries data.
    pub action: ZoneAction,
    /// The zone's first block; of [`ZoneAction::FlushZrwa`] the last one to commit.
    pub lba: Lba,
    /// Every zone in a state that this is meant for.
    pub all: bool,
    /// With [`ZoneAction::Open`]: gives the zone a Zone Random Write Area.
    pub zrwa: bool,
}

impl ZoneAsk {
    /// `action` for the zone that begins at `lba`.
    pub const fn new(action: ZoneAction, lba: Lba) -> Self {
        Self { action, lba, all: false, zrwa: false }
    }

    /// The code of its action (ZSA).
    pub fn code(self) -> u8 {
        self.action.code().expect("an action that can be asked for")
    }

    /// Its bits, as [`ZoneAsk::from_code`] takes them.
    pub const fn bits(self) -> u8 {
        self.all as u8 | (self.zrwa as u8) << 1
    }

    /// From its code and bits, as logs and recordings keep them, all zones (1) and with a Zone Random Write Area (2);
    /// `None` if there is no such action, or some of the bits mean nothing.
    pub fn from_code(code: u8, lba: Lba, bits: u8) -> Option<Self> {
        const ACTIONS: [ZoneAction; 6] = [
            ZoneAction::Open,
            ZoneAction::Close,
            ZoneAction::Finish,
            ZoneAction::Reset,
            ZoneAction::Offline,
            ZoneAction::FlushZrwa,
        ];
        let action = ACTIONS.into_iter().find(|action| action.code() == Some(code))?;
        (bits <= 3).then_some(Self { action, lba, all: bits & 1 != 0, zrwa: bits & 2 != 0 })
    }

    pub(crate) fn command(self) -> Command<Places> {
        let Self { action, lba, all, zrwa } = self;
        Action::Zone { action, lba, all, zrwa }.into()
    }
}

/// A report of all zones from the one of `lba` on, at most so many.
pub(crate) fn report(lba: Lba, most: u32) -> Command<Places> {
    let (filter, partial) = (leyden_device::ZoneFilter::All, true);
    Action::ZoneReport { lba, filter, partial, most }.into()
}

#[cfg(test)]
pub(crate) mod tests {
    use leyden_device::Hint;
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn zone_asks() -> impl Strategy<Value = ZoneAsk> {
        let codes = prop::sample::select(vec![1_u8, 2, 3, 4, 5, 0x11]);
        let ask = (codes, any::<u64>(), 0_u8..4);
        ask.prop_map(|(code, lba, bits)| ZoneAsk::from_code(code, Lba(lba), bits).unwrap())
    }

    pub(crate) fn hints() -> impl Strategy<Value = Vec<Hint>> {
        let hint = (any::<u32>(), any::<std::num::NonZeroU8>());
        prop::collection::vec(hint.prop_map(|(first, units)| Hint::new(first, units)), 0..20)
    }

    #[test]
    fn unknown_actions_and_flags_are_refused() {
        for (code, bits) in [(0, 0), (6, 0), (0x10, 0), (0x12, 0), (4, 4)] {
            assert_eq!(ZoneAsk::from_code(code, Lba(0), bits), None);
        }
        assert_eq!(WriteFlags::from_bits(4), None);
    }
}
