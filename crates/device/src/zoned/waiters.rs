//! Commands that wait for a part of a zone to be on flash: FLUSH and FUA.

use leyden_ftl::zoned::ZoneId;

use crate::controller::RequestId;

/// See the module's documentation. A request is listed once for each zone that it waits for.
#[derive(Clone, Debug)]
pub(super) struct FlashWaiters {
    /// By zone: up to which unit, and who.
    by_zone: Vec<Vec<(u32, RequestId)>>,
    count: usize,
}

impl FlashWaiters {
    pub(super) fn new(zones: u32) -> Self {
        Self { by_zone: vec![Vec::new(); zones as usize], count: 0 }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if anyone waits for data of `zone` to be on flash.
    pub(super) fn wait_for(&self, zone: ZoneId) -> bool {
        !self.by_zone[zone.index()].is_empty()
    }

    /// Lets `id` wait until everything of `zone` below `unit` is on flash.
    pub(super) fn add(&mut self, zone: ZoneId, unit: u32, id: RequestId) {
        self.by_zone[zone.index()].push((unit, id));
        self.count += 1;
    }

    /// `id` has ended: it waits for nothing any more.
    pub(super) fn forget(&mut self, id: RequestId) {
        for waits in &mut self.by_zone {
            let before = waits.len();
            waits.retain(|&(_, other)| other != id);
            self.count -= before - waits.len();
        }
    }

    /// Flash holds `zone` up to `settled`: those whose wait is over, in the order they came.
    #[inline]
    pub(super) fn settled(&mut self, zone: ZoneId, settled: u32) -> Vec<RequestId> {
        let waits = &mut self.by_zone[zone.index()];
        if waits.is_empty() {
            return Vec::new();
        }
        let over: Vec<_> =
            waits.iter().filter(|&&(unit, _)| unit <= settled).map(|&(_, id)| id).collect();
        waits.retain(|&(unit, _)| unit > settled);
        self.count -= over.len();
        over
    }
}
