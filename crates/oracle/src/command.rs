//! Commands to the drive, and the units they touch. A sector may be of any size; only the number of
//! sectors per unit matters.

/// The kind of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Read.
    Read,
    /// Write: every unit touched becomes the command's stamp.
    Write,
    /// Flush of everything.
    Flush,
    /// Flush of the file that lies in the range (`fsync`).
    Sync,
    /// Deallocate: whole units become zeroes; units touched in part stay as they are.
    Trim,
    /// Write zeroes: whole units become zeroes, units touched in part the command's stamp.
    WriteZeroes,
}

/// A command about to be submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The kind.
    pub op: Op,
    /// First sector; ignored by `Flush`.
    pub lba: u64,
    /// Sectors, at least 1; ignored by `Flush`.
    pub sectors: u32,
    /// Force unit access: promised with its acknowledgement. A trim has no such flag.
    pub fua: bool,
    /// The PLP flag: with [`Promise::Selective`](crate::Promise::Selective), promised with its
    /// acknowledgement.
    pub plp: bool,
}

impl Request {
    /// The units of `unit_sectors` sectors that it changes, and what it makes of each.
    pub fn effects(&self, unit_sectors: u32) -> impl Iterator<Item = (u32, Effect)> + use<> {
        Touched::new(self, unit_sectors).effects()
    }

    /// Its effect on `unit`, if it has one.
    pub fn effect(&self, unit: u32, unit_sectors: u32) -> Option<Effect> {
        Touched::new(self, unit_sectors).effect(unit)
    }
}

/// The oracle's number of a command, and the stamp of what it writes. Never 0: that is zeroes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Id(pub u64);

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It succeeded: a write is acknowledged.
    Done,
    /// It failed: it may have happened or not.
    Failed,
}

/// The effect of a command on a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The command's stamp.
    Stamp,
    /// Zeroes.
    Zeroes,
}

/// The units of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touched {
    op: Op,
    /// Units touched at all.
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// Units touched as a whole; empty if `whole_first >= whole_end`.
    whole_first: u32,
    whole_end: u32,
}

impl Touched {
    pub(crate) fn new(request: &Request, unit_sectors: u32) -> Self {
        let Request { op, lba, sectors, .. } = *request;
        if op == Op::Flush {
            return Self { op, first: 0, end: 0, whole_first: 0, whole_end: 0 };
        }
        let (size, end) = (u64::from(unit_sectors), lba + u64::from(sectors));
        Self {
            op,
            first: (lba / size) as u32,
            end: end.div_ceil(size) as u32,
            whole_first: lba.div_ceil(size) as u32,
            whole_end: (end / size) as u32,
        }
    }

    pub(crate) fn units(self) -> std::ops::Range<u32> {
        self.first..self.end
    }

    /// The effect on `unit`, if there is one.
    pub(crate) fn effect(self, unit: u32) -> Option<Effect> {
        if !self.units().contains(&unit) {
            return None;
        }
        let whole = (self.whole_first..self.whole_end).contains(&unit);
        match self.op {
            Op::Read | Op::Flush | Op::Sync => None,
            Op::Trim => whole.then_some(Effect::Zeroes),
            Op::WriteZeroes if whole => Some(Effect::Zeroes),
            Op::Write | Op::WriteZeroes => Some(Effect::Stamp),
        }
    }

    /// The units that change, and how.
    pub(crate) fn effects(self) -> impl Iterator<Item = (u32, Effect)> {
        self.units().filter_map(move |unit| Some((unit, self.effect(unit)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(op: Op, lba: u64, sectors: u32) -> Vec<(u32, Effect)> {
        let request = Request { op, lba, sectors, fua: false, plp: false };
        Touched::new(&request, 8).effects().collect()
    }

    #[test]
    fn parts_of_units_are_written_and_not_trimmed() {
        use Effect::{Stamp, Zeroes};
        assert_eq!(effects(Op::Write, 4, 8), [(0, Stamp), (1, Stamp)]);
        assert_eq!(effects(Op::Trim, 4, 8), []);
        assert_eq!(effects(Op::Trim, 4, 20), [(1, Zeroes), (2, Zeroes)]);
        assert_eq!(effects(Op::WriteZeroes, 4, 13), [(0, Stamp), (1, Zeroes), (2, Stamp)]);
        assert_eq!(effects(Op::WriteZeroes, 9, 2), [(1, Stamp)]);
        assert_eq!(effects(Op::Read, 0, 8), []);
        assert_eq!(effects(Op::Flush, 0, 8), []);
        assert_eq!(effects(Op::Sync, 0, 8), []);
    }
}
