//! Draws the steady state of a drive.

use leyden_device::{Payload, Ssd};

use super::RunError;
use leyden_config::Scenario;
use leyden_config::stationary::Stationary;

/// Makes `ssd`, which is new, one in the steady state of uniform random writes.
pub(super) fn draw<P: Payload>(ssd: &mut Ssd<P>, scenario: &Scenario) -> Result<(), RunError> {
    let mut state = Stationary::new(&scenario.device.ftl.gc.victim, scenario.seed);
    let drawn = ssd.fill_sampled(|share| state.valid_units(share));
    drawn.map_err(|error| RunError::Precondition(error.to_string()))
}
