//! Power cuts since the server began, the newest of them with what each has saved and lost.

use std::collections::VecDeque;

use leyden_device::SECTOR_BYTES;
use serde::Serialize;

use crate::switch::{CutReport, RestoreReport};

/// Cuts that are kept.
pub(crate) const KEPT: usize = 16;
/// Lost ranges of a cut that are kept.
const RANGES: usize = 8;

/// A power cut, and how the drive came back.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cut {
    /// Its number since the server began, from 1 on.
    pub(crate) number: u64,
    /// With the first lost ranges only.
    #[serde(flatten)]
    pub(crate) report: CutReport,
    /// All ranges that lost acknowledged data.
    pub(crate) lost_ranges: usize,
    pub(crate) lost_bytes: u64,
    pub(crate) restored: Option<RestoreReport>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts {
    kept: VecDeque<Cut>,
    last: Option<CutReport>,
    pub(crate) count: u64,
    /// Acknowledged bytes that all cuts together have lost.
    pub(crate) lost_bytes: u64,
}

impl Cuts {
    pub(crate) fn cut(&mut self, report: &CutReport) {
        let sectors: u64 = report.lost.iter().map(|&(_, sectors)| sectors).sum();
        let (lost_bytes, lost_ranges) = (sectors * SECTOR_BYTES, report.lost.len());
        self.count += 1;
        self.lost_bytes += lost_bytes;
        self.last = Some(report.clone());
        let mut report = report.clone();
        report.lost.truncate(RANGES);
        report.uncertain.truncate(RANGES);
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        let number = self.count;
        self.kept.push_back(Cut { number, report, lost_ranges, lost_bytes, restored: None });
    }

    pub(crate) fn restored(&mut self, report: &RestoreReport) {
        if let Some(cut) = self.kept.back_mut() {
            cut.restored = Some(report.clone());
        }
    }

    /// The last one, with all lost ranges.
    pub(crate) const fn last(&self) -> Option<&CutReport> {
        self.last.as_ref()
    }

    /// The newest ones, the oldest of them first.
    pub(crate) fn kept(&self) -> Vec<Cut> {
        self.kept.iter().cloned().collect()
    }
}
