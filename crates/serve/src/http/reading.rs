//! Readings of a drive: its counters, levels and power at one moment, taken by the drive's thread.

use std::time::Instant;

use leyden_device::{Controller, Namespace, Payload, PoolFill, Stats, ZnsSsd, ZoneState};
use leyden_image::recording::Recorded;
use leyden_image::{Device, Drive};
use serde::Serialize;

use crate::clock::wall;
use crate::cuts::Cut;
use crate::direct::Counts;
use crate::engine::Seen;
use crate::latencies::Latencies;
use crate::switch::{StatusReport, amplified};

/// See the module.
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) status: StatusReport,
    pub(super) counts: Counts,
    pub(super) latencies: Latencies,
    pub(super) stats: Stats,
    pub(super) kind: &'static str,
    pub(super) unit_bytes: u64,
    /// Fill and size of the buffer's regions, in bytes; none of a device of two drives.
    pub(super) buffer: Option<Buffer>,
    /// Dirty pages of the mapping table, and how many may be; of a conventional drive.
    pub(super) map: Option<(u32, u32)>,
    pub(super) banks: Vec<Bank>,
    pub(super) zones: Option<Zones>,
    pub(super) recorded: Option<Recorded>,
    pub(super) cuts: Vec<Cut>,
    pub(super) cut_count: u64,
    pub(super) lost_bytes: u64,
}

/// Bytes in each region of the write buffer, and its size.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "units stand last in names")]
pub(super) struct Buffer {
    pub(super) protected_bytes: u64,
    pub(super) protected_size_bytes: u64,
    pub(super) plain_bytes: u64,
    pub(super) plain_size_bytes: u64,
}

/// A capacitor bank, and what a cut at this moment would take from it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Bank {
    /// The drive that has it: a block device on two drives has two.
    pub(super) of: &'static str,
    /// Energy of the full bank.
    pub(super) holds_nj: u64,
    pub(super) holds_nf: u64,
    /// None without power, and until recovery has ended.
    pub(super) needs: Option<Needs>,
}

/// The dump of a cut at this moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Needs {
    pub(super) energy_nj: u64,
    pub(super) capacitance_nf: u64,
    pub(super) dump_ns: u64,
    pub(super) promised_bytes: u64,
    pub(super) pages: u64,
}

/// Zones in use, and how many there are in each state.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Zones {
    pub(super) open: u32,
    pub(super) active: u32,
    pub(super) open_most: u32,
    pub(super) active_most: u32,
    /// In the order of [`ZoneState::ALL`].
    pub(super) states: [u32; ZoneState::ALL.len()],
}

impl Reading {
    /// The drive as it is; `None` if its image cannot be asked for its size.
    pub(super) fn of(seen: &Seen<'_>) -> Option<Self> {
        let (drive, cuts) = (seen.drive, seen.cuts);
        let device = drive.device();
        let unit_bytes = u64::from(drive.unit_bytes());
        Some(Self {
            at: wall(),
            status: StatusReport::new(drive, seen.served, seen.pending).ok()?,
            counts: seen.counts,
            latencies: seen.latencies.clone(),
            stats: device.stats(),
            kind: kind_of(device),
            unit_bytes,
            buffer: buffer_of(device, unit_bytes),
            map: map_of(device),
            banks: banks_of(drive),
            zones: zones_of(device),
            recorded: drive.recorded(),
            cuts: cuts.kept(),
            cut_count: cuts.count,
            lost_bytes: cuts.lost_bytes,
        })
    }

    /// Units that were programmed, and those that the host has written.
    pub(super) fn amplified(&self) -> (u64, u64) {
        amplified(&self.stats, self.status.zoned_block.is_some())
    }
}

const fn kind_of(device: &Device) -> &'static str {
    match device {
        Device::Conventional(_) => "conventional",
        Device::Zoned(_) => "zoned",
        Device::Stack(_) => "zoned-block",
    }
}

fn buffer_of(device: &Device, unit_bytes: u64) -> Option<Buffer> {
    let (fill, sizes): (PoolFill, PoolFill) = match device {
        Device::Conventional(ssd) => (ssd.pool_fill(), ssd.pool_sizes()),
        Device::Zoned(ssd) => (ssd.pool_fill(), ssd.pool_sizes()),
        Device::Stack(_) => return None,
    };
    let bytes = |units: u32| u64::from(units) * unit_bytes;
    Some(Buffer {
        protected_bytes: bytes(fill.protected),
        protected_size_bytes: bytes(sizes.protected),
        plain_bytes: bytes(fill.plain),
        plain_size_bytes: bytes(sizes.plain),
    })
}

fn map_of(device: &Device) -> Option<(u32, u32)> {
    if let Device::Conventional(ssd) = device { Some(ssd.dirty_map_pages()) } else { None }
}

fn banks_of(drive: &Drive) -> Vec<Bank> {
    let banks = match drive.device() {
        Device::Conventional(ssd) => [bank("drive", ssd), None],
        Device::Zoned(ssd) => [bank("drive", ssd), None],
        Device::Stack(stack) => {
            [bank("conventional drive", stack.conventional()), bank("zoned drive", stack.zoned())]
        }
    };
    banks.into_iter().flatten().collect()
}

fn bank<P: Payload, N: Namespace<P>>(of: &'static str, ssd: &Controller<P, N>) -> Option<Bank> {
    let bank = ssd.power_supply()?.bank;
    let needs = ssd.cut_cost().map(|cost| Needs {
        energy_nj: cost.energy.as_nj(),
        capacitance_nf: cost.capacitance.as_nf(),
        dump_ns: cost.time.as_ns(),
        promised_bytes: cost.promised.get(),
        pages: cost.pages,
    });
    let (holds_nj, holds_nf) = (bank.energy().as_nj(), bank.capacitance().as_nf());
    Some(Bank { of, holds_nj, holds_nf, needs })
}

fn zones_of(device: &Device) -> Option<Zones> {
    match device {
        Device::Conventional(_) => None,
        Device::Zoned(ssd) => Some(zones(ssd)),
        Device::Stack(stack) => Some(zones(stack.zoned())),
    }
}

fn zones<P: Payload>(ssd: &ZnsSsd<P>) -> Zones {
    let (shape, (open, active)) = (ssd.zone_shape(), ssd.zone_resources());
    let (open_most, active_most) = (shape.max_open, shape.max_active);
    Zones { open, active, open_most, active_most, states: ssd.zones_in_state() }
}
