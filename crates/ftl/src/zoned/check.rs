//! What must hold inside the zoned FTL.

use leyden_nand::{BlockId, Content, Health, Lpn};

use super::ftl::ZonedFtl;

impl<C: Content> ZonedFtl<C> {
    /// Checks that zones and blocks agree with each other and with the medium: a block is in one place;
    /// whatever is said to lie somewhere lies there; the resources are counted right. `settled` says of
    /// each zone how much of it flash holds for certain.
    ///
    /// # Errors
    /// Says what does not hold.
    pub fn check(&self, settled: impl Fn(super::ZoneId) -> u32) -> Result<(), String> {
        self.zones.check()?;
        let mut seen = vec![false; self.geometry().blocks() as usize];
        let in_bodies = self.bodies.iter().flat_map(super::body::Body::blocks);
        for block in in_bodies.chain(self.blocks.all()).chain(self.dumps.blocks()) {
            if std::mem::replace(&mut seen[block.index()], true) {
                return Err(format!("{block:?} is in two places"));
            }
        }
        // A block that is being erased is nowhere.
        if self.medium.is_idle()
            && let Some(block) = (0..self.geometry().blocks())
                .map(BlockId)
                .find(|&block| !seen[block.index()] && self.medium.health(block) == Health::Good)
        {
            return Err(format!("{block:?} is nowhere"));
        }
        for (id, _) in self.zones.all() {
            let body = &self.bodies[id.index()];
            for unit in 0..settled(id).min(body.end()) {
                let owner = self.medium.lpn(body.lies(unit, self.geometry()));
                if owner != Some(Lpn(id.0 * self.shape.size + unit)) {
                    return Err(format!("unit {unit} of {id:?} lies where {owner:?} is"));
                }
            }
            if body.end() < settled(id) {
                return Err(format!("{id:?} has lost its data from {} on", body.end()));
            }
        }
        Ok(())
    }
}
