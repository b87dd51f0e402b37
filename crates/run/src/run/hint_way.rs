//! The way that hints take to the drive.

use leyden_host::Channel;

use super::watcher;
use crate::driver::Measured;
use leyden_config::Scenario;

/// The name of the way that hints take.
pub(super) fn name(scenario: &Scenario) -> &'static str {
    match scenario.host.channel().map(|hints| hints.channel) {
        Some(Channel::Piggyback) => "piggyback",
        Some(Channel::Command) => "command",
        Some(Channel::Off) | None => watcher::OFF,
    }
}

/// Says so if hints find no way to the drive, or their way is of no use.
pub(super) fn idle(scenario: &Scenario, measured: &Measured) -> Option<String> {
    let announcing = measured.hints > 0 || scenario.host.page_cache.is_some();
    match (scenario.host.channel(), announcing) {
        (None, true) if measured.hints == 0 => None,
        (None, true) => Some(format!(
            "{} hints of the trace were ignored: there is no way for them to the drive; set \
             host.hints.channel = \"piggyback\" or \"command\"",
            measured.hints
        )),
        (Some(_), false) => Some(
            "host.hints did nothing, as nothing was announced: name a file of hints as \
             workload.trace.hints, or add a host.page_cache"
                .to_owned(),
        ),
        _ => None,
    }
}
