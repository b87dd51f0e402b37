//! Power cuts within a run.

use leyden_sim::{ConfigError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No run is longer: times beyond saturate.
const LONGEST: Span = Span::from_ms(100 * 365 * 24 * 3600 * 1000);

/// A power cut within the run. The drive needs a table `[device.power]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CutConfig {
    /// When the power fails, from the beginning of the run: after preconditioning, its ramp included.
    /// Cuts are listed in the order of their times.
    pub at: Span,
    /// How long it stays off. Simulated time continues; the host waits.
    #[serde(default = "default_off")]
    pub off: Span,
}

const fn default_off() -> Span {
    Span::from_ms(100)
}

/// Checks the cuts of a run.
pub(super) fn check(cuts: &[CutConfig], has_power: bool) -> Result<(), ConfigError> {
    if !cuts.is_empty() && !has_power {
        let problem = "the drive's power is never cut, for it has no table [device.power]; add one, \
                       or leave out `run.cut`";
        return Err(ConfigError::new("run.cut", problem));
    }
    for (index, cut) in cuts.iter().enumerate() {
        let wrong = |key: &str, problem: String| {
            Err(ConfigError::new(format!("run.cut.{index}.{key}"), problem))
        };
        for (key, span) in [("at", cut.at), ("off", cut.off)] {
            if span > LONGEST {
                return wrong(key, format!("{span} is longer than {LONGEST}; use less"));
            }
        }
        if cut.off == Span::ZERO {
            return wrong("off", "power that is never off is not cut; use 1 ns or more".into());
        }
        let Some(before) = index.checked_sub(1).map(|index| cuts[index]) else { continue };
        let back = before.at + before.off;
        if cut.at < before.at {
            let problem = format!(
                "{} is before the cut above it, at {}; list cuts in the order of their times",
                cut.at, before.at
            );
            return wrong("at", problem);
        }
        if cut.at < back || cut.at == before.at {
            let problem = format!(
                "the power is off at {}, from {} until {back}; cut later, or shorten \
                 `run.cut.{}.off`",
                cut.at,
                before.at,
                index - 1
            );
            return wrong("at", problem);
        }
    }
    Ok(())
}
