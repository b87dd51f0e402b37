//! What happens without a host's doing: hosts fall silent, power fails and returns, drives change zones.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leyden_device::ZoneId;
use leyden_nvme::Event;
use tracing::info;

use super::CutMode;
use super::house::Shared;
use crate::owner::Handle;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(20);
/// Of that, how often at zones.
const ZONES_EACH: u32 = 50;

/// Looks after everything until it is told to end.
pub(super) fn keep(shared: &Shared, closing: &AtomicBool) {
    let mut keeper = Keeper {
        switched: shared.drives.iter().map(Handle::switched).collect(),
        changed: BTreeSet::new(),
    };
    let mut round = 0_u32;
    while !closing.load(Ordering::Acquire) {
        keeper.power(shared);
        if round.is_multiple_of(ZONES_EACH) {
            keeper.zones(shared);
        }
        silence(shared);
        round = round.wrapping_add(1);
        std::thread::sleep(LOOK);
    }
}

/// What was seen before.
struct Keeper {
    switched: Vec<u32>,
    /// Zones whose state drives have changed: namespace and first block.
    changed: BTreeSet<(u32, u64)>,
}

impl Keeper {
    fn power(&mut self, shared: &Shared) {
        for (number, (drive, before)) in (1..).zip(shared.drives.iter().zip(&mut self.switched)) {
            let now = drive.switched();
            let was_on = *before % 2 == 0;
            if now == std::mem::replace(before, now) {
                continue;
            }
            if was_on && shared.cut == CutMode::Lost {
                shared.close_cut(); // even if its power has returned since
            }
            let mut state = shared.lock();
            state.subsystem.raise(Event::NamespaceChanged(number));
            state.tell();
        }
    }

    fn zones(&mut self, shared: &Shared) {
        if !shared.lock().subsystem.wants_zones() {
            return;
        }
        for (number, drive) in (1..).zip(&shared.drives) {
            if shared.namespaces[number as usize - 1].zones.is_none() || drive.is_off() {
                continue;
            }
            let changed = drive.look(|seen| {
                let Some(ssd) = seen.drive.device().zoned() else { return Vec::new() };
                let zones = (0..ssd.zone_shape().zones).map(|zone| ssd.zone(ZoneId(zone)));
                zones.filter(|zone| zone.is_changed).map(|zone| zone.start.0).collect()
            });
            let block = u64::from(shared.namespaces[number as usize - 1].block_bytes);
            let mut state = shared.lock();
            for start in changed.unwrap_or_default() {
                let start = start * leyden_device::SECTOR_BYTES / block;
                if self.changed.insert((number, start)) {
                    state.subsystem.raise(Event::ZoneChanged(number, start));
                }
            }
            state.tell();
        }
    }
}

/// Ends the connections of hosts that do not keep them alive.
fn silence(shared: &Shared) {
    let state = shared.lock();
    for controller in state.subsystem.expired(shared.now_ms()) {
        info!(controller, "an NVMe host has not kept its controller alive");
        state.close(controller);
    }
}
