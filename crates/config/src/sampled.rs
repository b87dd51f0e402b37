//! Which scenarios can begin with a steady state that is drawn.

use leyden_ftl::gc::level::LevelConfig;
use leyden_ftl::logs::LogConfig;
use leyden_ftl::place::PlacementConfig;
use leyden_sim::ConfigError;

use super::stationary;
use super::{Distribution, PreconditionKind, Scenario};

/// Refuses `sampled` where there is no theory of the steady state.
pub(super) fn check(scenario: &Scenario) -> Result<(), ConfigError> {
    if scenario.precondition.kind != PreconditionKind::Sampled {
        return Ok(());
    }
    let ftl = &scenario.device.ftl;
    let without_theory = if scenario.precondition.distribution != Distribution::Uniform {
        Some("precondition.distribution = \"workload\"".to_owned())
    } else if !stationary::is_known(&ftl.gc.victim) {
        Some(format!("device.ftl.gc.victim = \"{}\"", ftl.gc.victim.name()))
    } else if !matches!(ftl.gc.levelling, LevelConfig::Off(_)) {
        Some(format!("device.ftl.gc.levelling = \"{}\"", ftl.gc.levelling.name()))
    } else if !matches!(ftl.placement, PlacementConfig::Single(_)) {
        Some(format!("device.ftl.placement = \"{}\"", ftl.placement.name()))
    } else if ftl.zombie_block {
        Some("device.ftl.zombie_block = true".to_owned())
    } else if !matches!(ftl.log_stream, LogConfig::Off(_)) {
        Some(format!("device.ftl.log_stream = \"{}\"", ftl.log_stream.name()))
    } else {
        None
    };
    let Some(what) = without_theory else { return Ok(()) };
    let problem =
        format!("the steady state with {what} is not known; set precondition.kind = \"steady\"");
    Err(ConfigError::new("precondition.kind", problem))
}
