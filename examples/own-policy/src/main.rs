//! Leyden with a victim policy of one's own. `own-policy policies` lists it; `own-policy run tpcc --set
//! device.ftl.gc.victim=mostly_greedy` runs it.

use std::num::NonZeroU64;

use leyden::policy::{self, BlockId, DieView, Rng, VictimPolicy};

#[derive(Clone, Debug, policy::Serialize, policy::Deserialize, policy::JsonSchema)]
#[serde(crate = "leyden::policy::serde", deny_unknown_fields, default)]
#[schemars(crate = "leyden::policy::schemars")]
struct MostlyGreedy {
    /// One of this many choices is a block at random.
    one_in: NonZeroU64,
}

impl Default for MostlyGreedy {
    fn default() -> Self {
        Self { one_in: NonZeroU64::new(10).expect("not zero") }
    }
}

impl VictimPolicy for MostlyGreedy {
    fn victim(&self, blocks: &DieView<'_>, rng: &mut Rng) -> Option<BlockId> {
        if blocks.is_empty() || rng.below(self.one_in.get()) > 0 {
            return blocks.least_utilised();
        }
        Some(blocks.nth(rng.below(blocks.len().into()) as u32).block)
    }
}

fn main() -> std::process::ExitCode {
    let doc = &["The block with the fewest valid units, but now and then one at random."];
    policy::victim::<MostlyGreedy>("mostly_greedy", doc);
    leyden::main()
}
