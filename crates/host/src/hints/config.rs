//! How announcements get to the drive, and how wrong they are.

use leyden_device::MOST_RANGES;
use leyden_sim::{ConfigError, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The dirty-range queue of the block layer (Zombie Chasing, 4.2), and the errors of what goes in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HintChannelConfig {
    /// How hints reach the drive.
    pub channel: Channel,
    /// The most ranges that a command of its own names; with `channel = "command"` only.
    pub batch: u32,
    /// How long a range waits at most for its command to fill up; with `channel = "command"` only.
    pub max_delay: Span,
    /// The most ranges that wait for their way to the drive. Of more, the oldest is dropped: its
    /// data has been dirty the longest and is overwritten soonest, so the drive would gain least.
    pub queue: u32,
    /// How long each announcement is held back before it enters the queue.
    pub late: Span,
    /// Share of announcements that are lost.
    pub missing: Ratio,
    /// For each announcement, the chance that one more is made, as long, at a place chosen at random
    /// in the whole drive.
    pub false_share: Ratio,
}

impl Default for HintChannelConfig {
    fn default() -> Self {
        Self {
            channel: Channel::default(),
            batch: MOST_RANGES as u32,
            // Short beside the seconds that data stays dirty.
            max_delay: Span::from_ms(10),
            // 1 GiB of dirty data in writes of 16 KiB, as in the paper's micro-benchmark.
            queue: 65_536,
            late: Span::ZERO,
            missing: Ratio::ZERO,
            false_share: Ratio::ZERO,
        }
    }
}

/// How hints reach the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Not at all: announcements are forgotten.
    Off,
    /// One with each read or write command (Zombie Chasing, 3.3). Costs nothing, but the drive hears
    /// only as often as it is asked for something.
    #[default]
    Piggyback,
    /// In commands of their own, whose cost the drive charges: a queue slot, the controller's time
    /// for a command, 16 bytes a range on the link.
    Command,
}

/// The most that [`HintChannelConfig::queue`] may be.
const LONGEST_QUEUE: u32 = 1 << 24;

impl HintChannelConfig {
    /// Checks every value.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, problem: String| Err(ConfigError::new(key, problem));
        if !(1..=MOST_RANGES as u32).contains(&self.batch) {
            return refuse("batch", format!("{} is not in 1..={MOST_RANGES}", self.batch));
        }
        if !(1..=LONGEST_QUEUE).contains(&self.queue) {
            return refuse("queue", format!("{} is not in 1..={LONGEST_QUEUE}", self.queue));
        }
        for (key, share) in [("missing", self.missing), ("false_share", self.false_share)] {
            if share > Ratio::ONE {
                return refuse(key, format!("{share} is more than 100 %"));
            }
        }
        Ok(())
    }
}
