//! The part of a digest about a power cut and the recovery from it.

use leyden_device::Recovery;
use leyden_host::Cut;
use leyden_sim::Digest;

/// Takes in what a cut lost, from the top down.
pub(crate) fn add_cut(digest: &mut Digest, cut: &Cut) {
    for of_layer in [cut.dirty_units, cut.waiting_hint_units].into_iter().flatten() {
        digest.add(of_layer);
    }
    let loss = &cut.drive;
    let cost = &loss.cost;
    digest.add(cost.promised.get()).add(cost.pages).add(cost.time.as_ns());
    digest.add(cost.energy.as_pj()).add(loss.energy_left.as_pj()).add(loss.torn_pages);
    digest.add(loss.lost.len() as u64).add(loss.lost_map_pages);
}

/// Takes in what a recovery did.
pub(crate) fn add_recovery(digest: &mut Digest, recovery: &Recovery) {
    digest.add(recovery.dump.as_ns()).add(recovery.scan.as_ns()).add(recovery.pages_scanned);
    digest.add(recovery.pages_restored).add(recovery.scanned_map_pages);
    digest.add(recovery.ready_at.as_ns());
}
