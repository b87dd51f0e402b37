//! I/O errors that come and go on a served drive: the drive's rules ([`FaultRule`]), by the host's clock.

use std::time::Instant;

use leyden_device::{
    FaultKind, FaultReport, FaultRule, FaultRules, FaultTarget, SECTOR_BYTES, Status,
};

use crate::ask::Ask;
use crate::clock::wall;

fn target_of(ask: &Ask) -> Option<FaultTarget> {
    let (kind, range) = match *ask {
        Ask::Read(lba, sectors) => (FaultKind::Read, Some((lba.0, sectors.into()))),
        Ask::Write(lba, ref data, _) => {
            (FaultKind::Write, Some((lba.0, data.len() as u64 / SECTOR_BYTES)))
        }
        // An append has no place yet: its zone's first sector is what it names.
        Ask::Append(lba, ..) => (FaultKind::Write, Some((lba.0, 1))),
        Ask::WriteZeroes(lba, sectors, _) => (FaultKind::Write, Some((lba.0, sectors.into()))),
        Ask::Trim(lba, sectors) => (FaultKind::Trim, Some((lba.0, sectors.into()))),
        Ask::Flush => (FaultKind::Flush, None),
        Ask::Zone(ask) => (FaultKind::Zone, Some((ask.lba.0, 1))),
        Ask::Zones(..) | Ask::WritePrepare(_) | Ask::Extents(..) | Ask::Mark(_) => return None,
    };
    Some(FaultTarget { kind, range })
}

/// The rules of a served drive.
#[derive(Debug)]
pub(crate) struct Faults {
    rules: FaultRules,
    began: Instant,
}

impl Default for Faults {
    fn default() -> Self {
        Self { rules: FaultRules::default(), began: wall() }
    }
}

impl Faults {
    fn now_ns(&self) -> u64 {
        wall().duration_since(self.began).as_nanos() as u64
    }

    /// Adds a rule. False if there are too many.
    pub(crate) fn add(&mut self, rule: FaultRule) -> bool {
        let now_ns = self.now_ns();
        self.rules.add(rule, now_ns)
    }

    /// Everything works again.
    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    /// How a command fails; `None` if it does not.
    pub(crate) fn fails(&mut self, ask: &Ask) -> Option<Status> {
        if self.rules.is_empty() {
            return None;
        }
        let now_ns = self.now_ns();
        self.rules.fails(target_of(ask)?, now_ns)
    }

    pub(crate) fn report(&self) -> Vec<FaultReport> {
        self.rules.report(self.now_ns())
    }
}

#[cfg(test)]
mod tests {
    use leyden_device::Lba;
    use leyden_image::WriteFlags;

    use super::*;

    #[test]
    fn rules_see_what_clients_ask_for() {
        let asks = [
            Ask::Read(Lba(7), 2),
            Ask::Write(Lba(8), vec![0; 4_096], WriteFlags::default()),
            Ask::WriteZeroes(Lba(1), 7, false),
            Ask::Trim(Lba(15), 9),
            Ask::Flush,
            Ask::Mark(Vec::new()),
        ];
        let mut faults = Faults::default();
        assert!(asks.iter().all(|ask| faults.fails(ask).is_none()));
        assert!(faults.add("any:lba=8+8,times=all".parse().unwrap()));
        assert!(faults.add("flush".parse().unwrap()));
        let failed = asks.each_ref().map(|ask| faults.fails(ask));
        let (read, write) = (Some(Status::UnrecoveredRead), Some(Status::WriteFault));
        assert_eq!(failed, [read, write, None, write, write, None]);
        let report = faults.report();
        assert_eq!([report[0].failed, report[1].failed], [3, 1]);
        faults.clear();
        assert_eq!(faults.fails(&asks[0]), None);
    }
}
