//! The switch: requests to a drive over its control socket, and their answers.

use std::time::Duration;

use hdrhistogram::Histogram;
use leyden_device::{CutCost, FaultReport, FaultRule, PowerLoss, Recovery, SECTOR_BYTES, Stats};
use leyden_image::{Device, Drive, ImageError, Stack};
use leyden_sim::Time;
use serde::{Deserialize, Serialize};

/// Commands served, by kind, and how much later than the drive they were answered.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) flushes: u64,
    pub(crate) trims: u64,
    pub(crate) failed: u64,
    pub(crate) no_space: u64,
    /// Nanoseconds.
    pub(crate) late: Histogram<u32>,
    /// Of all commands: nanoseconds of lateness, and those that the modelled drive took.
    pub(crate) late_ns: u64,
    pub(crate) modelled_ns: u64,
}

/// So many commands say whether the host keeps up.
const TELLING: u64 = 1_000;
/// The host is the limit, and not the drive, if more of the commands' time is its own.
pub const HOST_SHARE_MOST: f64 = 0.2;

/// Later than this counts as this.
const LATE_MOST_NS: u64 = 10_000_000_000;

impl Default for Served {
    fn default() -> Self {
        let late = Histogram::new_with_max(LATE_MOST_NS, 3);
        let late = late.expect("a largest value above one, and up to five digits");
        Self {
            reads: 0,
            writes: 0,
            flushes: 0,
            trims: 0,
            failed: 0,
            no_space: 0,
            late,
            late_ns: 0,
            modelled_ns: 0,
        }
    }
}

impl Served {
    /// A command took the modelled drive so long, and was answered so much later than by that drive: what it waited for
    /// before the drive was asked is part of that.
    pub(crate) fn answered(&mut self, late: Duration, modelled: Duration) {
        self.late.saturating_record(late.as_nanos() as u64);
        self.late_ns = self.late_ns.saturating_add(late.as_nanos() as u64);
        self.modelled_ns = self.modelled_ns.saturating_add(modelled.as_nanos() as u64);
    }

    /// The host's share of the time that commands took; `None` while that says nothing.
    pub(crate) fn host_share(&self) -> Option<f64> {
        let all = self.late_ns.saturating_add(self.modelled_ns);
        (self.late.len() >= TELLING && all > 0).then(|| self.late_ns as f64 / all as f64)
    }
}

/// A question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// How does it go?
    Status,
    /// The power fails.
    Cut,
    /// The power returns.
    Restore {
        /// With so much capacitance instead of what the drive had, in nanofarads.
        #[serde(default)]
        capacitance_nf: Option<u64>,
    },
    /// Commands fail from now on as this rule says, beside those that there are; without one, what came of these.
    Fault {
        /// The rule.
        #[serde(default)]
        rule: Option<FaultRule>,
        /// Those that there are end.
        #[serde(default)]
        clear: bool,
    },
    /// Close the image and end.
    Stop,
}

/// An answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// How it goes.
    Status(Box<StatusReport>),
    /// The power is off.
    Cut(CutReport),
    /// The power is back.
    Restored(RestoreReport),
    /// The rules by which commands fail.
    Faults {
        /// One by one.
        rules: Vec<FaultReport>,
    },
    /// The image is closed.
    Stopped,
    /// It cannot be done.
    Refused {
        /// The reason.
        why: String,
    },
}

/// The dump and the losses of a power cut.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CutReport {
    /// The drive's clock.
    pub time_ns: u64,
    /// Commands that were under way.
    pub interrupted_commands: u64,
    /// Bytes of the host's data that the drive had promised to keep, and dumped.
    pub dumped_bytes: u64,
    /// Pages dumped, those of the mapping table included.
    pub dumped_pages: u64,
    /// How long that took.
    pub dump_ns: u64,
    /// Energy taken from the capacitors, in nanojoules.
    pub energy_nj: u64,
    /// Energy left in them.
    pub energy_left_nj: u64,
    /// Pages whose program was torn.
    pub torn_pages: u64,
    /// Pages of the mapping table that could not be dumped.
    pub lost_map_pages: u64,
    /// Ranges that lost what was promised: first LBA, and sectors.
    pub lost: Vec<(u64, u64)>,
    /// Ranges of which the drive may not know the newest version.
    pub uncertain: Vec<(u64, u64)>,
}

impl CutReport {
    /// `unit_sectors` are those of a mapping unit.
    pub fn new(loss: &PowerLoss, interrupted_commands: u64, unit_sectors: u64) -> Self {
        let range = |first: u64, end: u64| (first * unit_sectors, (end - first) * unit_sectors);
        let mut lost: Vec<(u64, u64)> = Vec::new();
        let mut units: Vec<_> = loss.lost.iter().map(|lpn| u64::from(lpn.0)).collect();
        units.sort_unstable();
        units.dedup();
        let lost_bytes = units.len() as u64 * unit_sectors * SECTOR_BYTES;
        for unit in units {
            let (lba, sectors) = range(unit, unit + 1);
            match lost.last_mut() {
                Some(last) if last.0 + last.1 == lba => last.1 += sectors,
                _ => lost.push((lba, sectors)),
            }
        }
        let uncertain = loss.uncertain.iter();
        let uncertain = uncertain.map(|(a, b)| range(u64::from(a.0), u64::from(b.0))).collect();
        Self {
            time_ns: loss.time.as_ns(),
            interrupted_commands,
            dumped_bytes: loss.cost.promised.get().saturating_sub(lost_bytes),
            dumped_pages: loss.cost.pages,
            dump_ns: loss.cost.time.as_ns(),
            energy_nj: loss.cost.energy.as_nj(),
            energy_left_nj: loss.energy_left.as_nj(),
            torn_pages: loss.torn_pages,
            lost_map_pages: loss.lost_map_pages,
            lost,
            uncertain,
        }
    }
}

/// A step of recovery.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepReport {
    /// The step.
    pub what: String,
    /// How long it took.
    pub time_ns: u64,
}

/// How the drive came back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RestoreReport {
    /// Nanoseconds until it is ready.
    pub ready_in_ns: u64,
    /// The part of it that reading flash takes.
    pub scan_ns: u64,
    /// The part of it that charging the capacitors takes.
    pub charge_ns: u64,
    /// Pages read.
    pub pages_scanned: u64,
    /// Pages of the dump that were put back.
    pub pages_restored: u64,
    /// The steps, in order.
    pub steps: Vec<StepReport>,
}

impl RestoreReport {
    /// `now` is when the power returned.
    pub fn new(recovery: &Recovery, now: Time) -> Self {
        Self {
            ready_in_ns: recovery.ready_at.since(now).as_ns(),
            scan_ns: recovery.scan.as_ns(),
            charge_ns: recovery.charge.as_ns(),
            pages_scanned: recovery.pages_scanned,
            pages_restored: recovery.pages_restored,
            steps: (recovery.steps.iter())
                .map(|step| StepReport {
                    what: step.name.name().to_owned(),
                    time_ns: step.time.as_ns(),
                })
                .collect(),
        }
    }
}

/// How it goes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StatusReport {
    /// The drive's name.
    pub name: String,
    /// The power is on.
    pub is_on: bool,
    /// The drive's clock.
    pub time_ns: u64,
    /// Bytes that can be addressed.
    pub capacity_bytes: u64,
    /// Bytes that the image takes up in its file system.
    pub allocated_bytes: u64,
    /// Bytes of the log since the last checkpoint.
    pub log_bytes: u64,
    /// Power cuts since the bank was last changed.
    pub cuts: u64,
    /// Commands under way.
    pub pending: u64,
    /// Reads served since the server began.
    pub reads: u64,
    /// Writes, those of zeroes included.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Trims.
    pub trims: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Those of them that failed because the file system of the image was full.
    #[serde(default)]
    pub no_space: u64,
    /// By how much later than by the modelled drive half of the commands were answered, in nanoseconds, from when they had
    /// come in; 0 with `--latency off`.
    #[serde(default)]
    pub late_p50_ns: u64,
    /// The same of 99 in 100.
    #[serde(default)]
    pub late_p99_ns: u64,
    /// The host's share of the time that commands took; none with `--latency off`, and for fewer than 1,000 commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_share: Option<f64>,
    /// Units that were programmed for each unit that the host has written, since the drive was opened.
    pub waf: f64,
    /// The cost of a power cut at this moment; of a drive that has capacitors, and power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_cut_now: Option<CostReport>,
    /// Of a block device on two drives: what its layer does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zoned_block: Option<LayerReport>,
}

/// The cost of a power cut, if the bank holds enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CostReport {
    /// Bytes of the host's data that the drive has promised to keep, and that flash does not hold.
    pub promised_bytes: u64,
    /// Pages that the dump would program, those of the mapping table included.
    pub dumped_pages: u64,
    /// How long that would take.
    pub dump_ns: u64,
    /// Energy that it would take from the capacitors, in nanojoules.
    pub energy_nj: u64,
    /// The capacitance that holds so much, in nanofarads.
    pub capacitance_nf: u64,
}

impl From<CutCost> for CostReport {
    fn from(cost: CutCost) -> Self {
        Self {
            promised_bytes: cost.promised.get(),
            dumped_pages: cost.pages,
            dump_ns: cost.time.as_ns(),
            energy_nj: cost.energy.as_nj(),
            capacitance_nf: cost.capacitance.as_nf(),
        }
    }
}

/// The cost of a power cut now, for a single drive; `None` for a block device on two.
fn if_cut_now(device: &Device) -> Option<CostReport> {
    let cost = match device {
        Device::Conventional(ssd) => ssd.cut_cost(),
        Device::Zoned(ssd) => ssd.cut_cost(),
        Device::Stack(_) => None,
    };
    cost.map(CostReport::from)
}

/// Counters of the layer of a block device on two drives, since the drive was opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LayerReport {
    /// Bytes of the file system's journal, if it is looked for and was found; else 0.
    pub journal_bytes: u64,
    /// Bytes that the host has written.
    pub host_bytes: u64,
    /// Of those, a journal's.
    pub host_journal_bytes: u64,
    /// Bytes that went to journal zones.
    pub separated_bytes: u64,
    /// Bytes that reclaim has copied.
    pub copied_bytes: u64,
    /// Of those, a journal's.
    pub copied_journal_bytes: u64,
    /// Chunks that were moved.
    pub reclaimed: u64,
}

impl LayerReport {
    fn new(stack: &Stack, unit_bytes: u64) -> Self {
        let stats = stack.layer_stats();
        let copied =
            stats.copied_data_blocks + stats.copied_meta_blocks + stats.copied_journal_blocks;
        Self {
            journal_bytes: stack.journal_bytes(),
            host_bytes: stats.host_blocks * unit_bytes,
            host_journal_bytes: stats.host_journal_blocks * unit_bytes,
            separated_bytes: stats.separated_blocks * unit_bytes,
            copied_bytes: copied * unit_bytes,
            copied_journal_bytes: stats.copied_journal_blocks * unit_bytes,
            reclaimed: stats.reclaimed,
        }
    }
}

/// Units that were programmed, and those that the host has written: of a block device on two drives to the layer.
pub(crate) const fn amplified(stats: &Stats, is_stack: bool) -> (u64, u64) {
    let ftl = &stats.ftl;
    let written = if is_stack { stats.ssd.units_written } else { ftl.user_units };
    (ftl.user_units + ftl.gc.copied_units, written)
}

impl StatusReport {
    pub(crate) fn new(drive: &Drive, served: &Served, pending: u64) -> Result<Self, ImageError> {
        let info = drive.info()?;
        let stats = drive.device().stats();
        let stack = drive.device().stack();
        let (programmed, written) = amplified(&stats, stack.is_some());
        let waf = programmed as f64 / written.max(1) as f64;
        let unit_bytes = u64::from(drive.unit_bytes());
        Ok(Self {
            name: drive.config().name.clone(),
            is_on: !drive.is_off(),
            time_ns: info.time_ns,
            capacity_bytes: info.capacity_sectors * SECTOR_BYTES,
            allocated_bytes: info.allocated_bytes,
            log_bytes: info.log_bytes,
            cuts: info.cuts,
            pending,
            reads: served.reads,
            writes: served.writes,
            flushes: served.flushes,
            trims: served.trims,
            failed: served.failed,
            no_space: served.no_space,
            late_p50_ns: served.late.value_at_quantile(0.5),
            late_p99_ns: served.late.value_at_quantile(0.99),
            host_share: served.host_share(),
            waf,
            if_cut_now: if_cut_now(drive.device()),
            zoned_block: stack.map(|stack| LayerReport::new(stack, unit_bytes)),
        })
    }
}
