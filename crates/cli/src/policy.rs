//! Policies of your own: register one, then call [`crate::main`].
//!
//! A policy is a type that holds its parameters and implements the folder's trait; it derives `Clone, Debug, Default,
//! Serialize, Deserialize, JsonSchema`. Registered, its name is known to configurations, `--set` and `--vary`, the
//! schema, `leyden policies`, and torture, which draws it as it draws any other.
//!
//! ```no_run
//! use leyden::policy::{self, BlockId, DieView, Rng, VictimPolicy};
//!
//! #[derive(Clone, Debug, Default, policy::Serialize, policy::Deserialize, policy::JsonSchema)]
//! #[serde(crate = "leyden::policy::serde", deny_unknown_fields, default)]
//! #[schemars(crate = "leyden::policy::schemars")]
//! struct Any {}
//!
//! impl VictimPolicy for Any {
//!     fn victim(&self, blocks: &DieView<'_>, rng: &mut Rng) -> Option<BlockId> {
//!         let n = (!blocks.is_empty()).then(|| rng.below(blocks.len().into()) as u32);
//!         n.map(|n| blocks.nth(n).block)
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     policy::victim::<Any>("any", &["A block at random."]);
//!     leyden::main()
//! }
//! ```

pub use leyden_buffer::zoned::schedule::ZoneSchedule;
pub use leyden_ftl::gc::{Candidate, DieView, Order, VictimPolicy};
pub use leyden_ftl::zoned::place::PlacePolicy;
pub use leyden_nand::BlockId;
pub use leyden_sim::Rng;
pub use schemars::{self, JsonSchema};
pub use serde::{self, Deserialize, Serialize};

use serde::de::DeserializeOwned;

/// Parameters of a policy: serializable, with defaults and a schema.
pub trait Parameters: Default + Serialize + DeserializeOwned + JsonSchema + 'static {}

impl<P: Default + Serialize + DeserializeOwned + JsonSchema + 'static> Parameters for P {}

/// Adds a policy that chooses which block is collected next: `device.ftl.gc.victim`. `doc` is what `leyden policies`
/// says of it, a line each.
///
/// # Panics
/// If there is a policy of that name already.
pub fn victim<P: VictimPolicy + Parameters>(name: &'static str, doc: &'static [&'static str]) {
    leyden_ftl::gc::VictimConfig::register::<P>(name, doc);
}

/// Adds a policy that chooses which zone of a zoned drive's buffer is programmed next: `device.buffer.zones.schedule`.
///
/// # Panics
/// If there is a policy of that name already.
pub fn schedule<P: ZoneSchedule + Parameters>(name: &'static str, doc: &'static [&'static str]) {
    leyden_buffer::zoned::schedule::ZoneScheduleConfig::register::<P>(name, doc);
}

/// Adds a policy that chooses the dies of a zone: `device.zoned.place`.
///
/// # Panics
/// If there is a policy of that name already.
pub fn placement<P: PlacePolicy + Parameters>(name: &'static str, doc: &'static [&'static str]) {
    leyden_ftl::zoned::place::PlaceConfig::register::<P>(name, doc);
}
