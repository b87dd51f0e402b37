//! Events without a host's command: hosts fall silent, power fails and returns, drives change zones.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leyden_device::{SECTOR_BYTES, ZoneId};
use leyden_nvme::Event;
use tracing::info;

use super::CutMode;
use super::authentication::PATIENCE;
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
        changed: vec![BTreeSet::new(); shared.drives.len()],
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

/// The state seen last.
struct Keeper {
    switched: Vec<u32>,
    /// Zones that drives report as changed by themselves, by their first blocks; for each drive.
    changed: Vec<BTreeSet<u64>>,
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
        let drives = shared.drives.iter().zip(&shared.namespaces).zip(&mut self.changed);
        for (number, ((drive, namespace), before)) in (1..).zip(drives) {
            if namespace.zones.is_none() || drive.is_off() {
                continue;
            }
            let block_sectors = u64::from(namespace.block_bytes) / SECTOR_BYTES;
            let changed = drive.look(move |seen| {
                let Some(ssd) = seen.drive.device().zoned() else { return BTreeSet::new() };
                let zones = (0..ssd.zone_shape().zones).map(|zone| ssd.zone(ZoneId(zone)));
                let changed = zones.filter(|zone| zone.is_changed);
                changed.map(|zone| zone.start.0 / block_sectors).collect()
            });
            let Some(changed) = changed else { continue };
            let mut state = shared.lock();
            for start in news(before, changed) {
                state.subsystem.raise(Event::ZoneChanged(number, start));
            }
            state.tell();
        }
    }
}

/// Of `now`, which zones have changed since `before`; one that was reset meanwhile may change again.
fn news(before: &mut BTreeSet<u64>, now: BTreeSet<u64>) -> Vec<u64> {
    let new = now.difference(before).copied().collect();
    *before = now;
    new
}

/// Ends the connections of hosts that do not keep them alive.
fn silence(shared: &Shared) {
    let state = shared.lock();
    for controller in state.subsystem.expired(shared.now_ms()) {
        info!(controller, "an NVMe host has not kept its controller alive");
        state.close(controller);
    }
    let late = state.close_unproved(PATIENCE);
    if late > 0 {
        info!(late, "NVMe hosts have not proved who they are");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_that_changes_again_is_told_again() {
        let mut before = BTreeSet::new();
        assert_eq!(news(&mut before, BTreeSet::from([8, 16])), [8, 16]);
        assert_eq!(news(&mut before, BTreeSet::from([8, 16])), [0; 0]);
        assert_eq!(news(&mut before, BTreeSet::from([16])), [0; 0], "the first was reset");
        assert_eq!(news(&mut before, BTreeSet::from([8, 16])), [8]);
    }
}
